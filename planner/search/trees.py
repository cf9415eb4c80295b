"""The trees of streams in the room that other streams leave.

Owns how a tree is found. Must not know which streams are laid again, nor when. Invariant: a tree
that is handed back has been added to the loads, and leads from its source to all of its targets but
those that it is said to miss.

The least tree is taken where there is room on it. Else each target in turn is joined by A*: over
links with room, or, where there are none, by the links that break limits least for their length.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from typing import NamedTuple

from planner.search.distances import FAR
from planner.search.instance import CompiledStream, Instance
from planner.search.loads import Loads, Needs, beyond
from planner.search.topology import RatedTopology

# Trees that are kept with the limits that they count for.
WAYS_MAX = 200_000
# Hops that a link without room costs, and as many for each limit that it is over by.
TOLL = 4.0

# Directed links, by number.
Links = tuple[int, ...]


class LaidTree(NamedTuple):
    """The links of a tree, and what they count for."""

    links: Links
    needs: Needs


class TreeBuilder:
    """Finds trees for streams over an instance's links, with the loads of the moment."""

    def __init__(self, instance: Instance, loads: Loads) -> None:
        self.instance, self.loads = instance, loads
        # Whether a target is missed rather than reached over links without room.
        self.strict = False
        self._usual: dict[tuple[int, int, tuple[int, ...]], LaidTree] = {}

    def lay(
        self, number: int, source: int, targets: tuple[int, ...], order: Random | None
    ) -> tuple[LaidTree, int]:
        """Return a tree for a stream, and how many targets it does not reach.

        It is the least one where that has room; else, or where the `order` of targets is drawn, it
        is grown to one after the other, the nearest first.
        """
        flow = self.instance.flows[number]
        usual = None if order else self.usual(flow.topology, source, targets)
        if usual is not None and self.loads.bear(usual.needs, flow.rate):
            self.loads.carry(number, usual.needs, flow.rate)
            return usual, 0
        return self._grow(number, source, targets, order)

    def usual(
        self, topology: RatedTopology, source: int, targets: tuple[int, ...]
    ) -> LaidTree | None:
        """Return the least tree, whatever else is carried; None where a target is not reached."""
        key = (id(topology), source, targets)
        if (tree := self._usual.get(key)) is None:
            numbers = self.instance.numbers
            ahead = topology.hops_from(source)
            if any(ahead[target] >= FAR for target in targets):
                return None
            links = tuple(numbers[arc] for arc in topology.tree(source, targets))
            tree = LaidTree(links, self.loads.needs(links))
            if len(self._usual) > min(WAYS_MAX, topology.kept_max):
                self._usual.clear()
            self._usual[key] = tree
        return tree

    def _grow(
        self, number: int, source: int, targets: Sequence[int], order: Random | None
    ) -> tuple[LaidTree, int]:
        flow = self.instance.flows[number]
        inside, left = {source: 0}, list(targets)
        if order is not None:
            order.shuffle(left)
        links: list[int] = []
        missed = 0
        while left:
            target = left[0]
            if order is None and len(left) > 1:
                target = min(
                    left, key=lambda t: min(map(flow.topology.hops_to(t).__getitem__, inside))
                )
            left.remove(target)
            if target in inside:
                continue
            branch = self._branch(flow, inside, target, over=False)
            if branch is None and not self.strict:
                branch = self._branch(flow, inside, target, over=True)
            if branch is None:
                missed += 1
                continue
            self.loads.carry(number, self.loads.needs(branch), flow.rate)
            links += branch
            inside.update((self.instance.arcs[link][1], 0) for link in branch)
        return LaidTree(tuple(links), self.loads.needs(links)), missed

    def _branch(
        self, flow: CompiledStream, inside: Iterable[int], target: int, *, over: bool
    ) -> list[int] | None:
        """Return the shortest way from a tree to a target over links with room; None without.

        Where it may go `over` limits, it is the way that breaks them least for its length.
        """
        instance, loads = self.instance, self.loads
        load, room, limits, prices = loads.loads, loads.room, loads.limits, loads.prices
        rate, first_sent = flow.rate, loads.first_sent
        topology = instance.whole if over else flow.topology
        ahead = topology.hops_to(target)
        if topology.is_forest:
            start = min(inside, key=ahead.__getitem__)
            links = [instance.numbers[arc] for arc in topology.path(start, target)]
            return links if links and (over or loads.bear(loads.needs(links), rate)) else None
        far = {node: 0.0 for node in inside if ahead[node] < FAR}
        by: dict[int, int] = {}
        heap = [(float(ahead[node]), 0.0, node) for node in far]
        heapify(heap)
        while heap:
            # Among equals it goes on from where it is farthest, since any path will do.
            _, back, node = heappop(heap)
            if node == target:
                links = []
                while node in by:
                    links.append(by[node])
                    node = instance.arcs[by[node]][0]
                return links
            if -back > far[node]:
                continue
            sends, least = first_sent + node, -back
            if (after := load[sends] + rate) > room[sends]:
                if not over:
                    continue
                least += TOLL * (1.0 + beyond(after, limits[sends]) * prices[sends])
            for other, link in instance.onward[node]:
                on = least + 1.0
                if on >= far.get(other, inf):
                    continue
                if (after := load[link] + rate) > room[link]:
                    if not over:
                        continue
                    on += TOLL * (1.0 + beyond(after, limits[link]) * prices[link])
                    if on >= far.get(other, inf):
                        continue
                if (left := ahead[other]) < FAR:
                    far[other] = on
                    by[other] = link
                    heappush(heap, (on + left, -on, other))
        return None
