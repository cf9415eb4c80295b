"""A placement with the trees of its streams: what it costs, and the exact change of any move.

Owns hosts and trees. Must not know which moves a search wants. Invariant: `flow` and the loads are
what hosts and trees come to (with `check` they are counted again after each change, and compared);
`undo` puts all back.

A piece may be absent (its host is -1), as between a destruction and the repair: its streams are
laid as if it did not exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from random import Random
from typing import NamedTuple

from planner.flow import MISSED
from planner.search.distances import unpacked
from planner.search.instance import ABSENT, CompiledStream, Instance
from planner.search.loads import Loads, beyond
from planner.search.trees import LaidTree, TreeBuilder

# What laying a stream again takes, as a part of a row's: so many brokers.
APPLIED = 40

# Pieces, and the brokers that they go to.
Moves = Sequence[tuple[int, int]]


class StreamTrees(NamedTuple):
    """The trees of a stream by source, their links together, and how many ends they miss."""

    trees: dict[int, LaidTree]
    links: int
    missed: int


UNLAID = StreamTrees({}, 0, 0)
# What streams and hosts were before a change, and the flow and the missed ends.
Undo = tuple[dict[int, StreamTrees], list[tuple[int, int]], float, int]


class Evaluator:
    """Count what hosts and trees come to, and change them by moves that can be undone."""

    def __init__(self, instance: Instance, hosts: Sequence[int], *, check: bool = False) -> None:
        self.instance = instance
        self.check = check
        self.hosts = list(hosts)
        self.loads = Loads(instance)
        self.builder = TreeBuilder(instance, self.loads)
        self.at: list[dict[int, None]] = [{} for _ in range(instance.nodes)]
        self.laid = [UNLAID] * len(instance.flows)
        # Rows and trees that were looked at, by broker and stream: the measure of bounded searches.
        self.effort = 0
        for piece, host in enumerate(hosts):
            if host != ABSENT:
                self._work(piece, host, 1)
        self.flow, self.lost = self._prices(), 0
        for number in sorted(range(len(instance.flows)), key=lambda n: -instance.flows[n].rate):
            self._lay(number)
        self._checked()

    # --- what it comes to -----------------------------------------------------------------------

    def cost(self, penalty: float) -> float:
        """Return the flow and, at `penalty` a limit, what limits are broken by at their prices."""
        if not self.loads.broken and not self.lost:
            return self.flow
        return self.flow + penalty * (self.loads.charge() + MISSED * self.lost)

    def excess(self) -> float:
        """Return by how much limits are broken together, each as a part of itself."""
        return self.loads.excess() + MISSED * self.lost

    def row(self, group: Sequence[int], where: Sequence[int]) -> list[float]:
        """Return what streams of `group` cost with all of it at a broker, for each of `where`.

        As if links bore everything; exact where trees are least ones, else as near as adding one
        end to a tree comes. The difference of two brokers is what counts.
        """
        values, part = unpacked(self.lanes(group), self.instance.nodes), self.instance.part
        row = [values[broker] * part for broker in where]
        for piece in group if self.instance.prices else ():
            start, price = self.instance.prices.get(piece, (ABSENT, 0.0))
            if start in where:
                row[where.index(start)] -= price
        return row

    def lanes(self, group: Sequence[int]) -> int:
        """Return the same for all brokers, in parts and as lanes; without the prices of moves."""
        instance, hosts = self.instance, self.hosts
        total = 0
        numbers = dict.fromkeys(n for piece in group for n in instance.of_piece[piece])
        self.effort += instance.nodes * (1 + len(numbers))
        for number in numbers:
            flow = instance.flows[number]
            others = {hosts[piece] for piece in flow.consumers if piece not in group}
            others.discard(ABSENT)
            if flow.header is not None:
                total += flow.share * self._partials(flow, sorted(others), group)
                continue
            others.update(flow.destinations)
            if flow.sender is not None and flow.sender in group:
                total += flow.share * flow.topology.from_everywhere(tuple(sorted(others)))
                continue
            source = flow.origin if flow.sender is None else hosts[flow.sender]
            if source != ABSENT:
                others.discard(source)
                total += flow.share * flow.topology.to_everywhere(source, tuple(sorted(others)))
        return total

    def _partials(self, flow: CompiledStream, others: list[int], group: Sequence[int]) -> int:
        """Return the hops of what partials send, by the broker of `group`, as lanes."""
        assert flow.header is not None
        topology, header = flow.topology, self.hosts[flow.header]
        if flow.header in group:
            return sum(topology.ahead.lanes(node) for node in others)
        if header == ABSENT:  # it will not be far from the partials that there are
            return topology.back.nearest(others, 0) if others else 0
        # Where there is a partial already, another sends no more.
        return topology.back.without(topology.back.lanes(header), others)

    # --- changes --------------------------------------------------------------------------------

    def apply(self, moves: Moves, first: Sequence[int] = (), order: Random | None = None) -> Undo:
        """Put pieces elsewhere and lay their streams again; return what `undo` takes.

        The greatest stream is laid first, but for those named in `first`, which are laid again in
        any case. The targets of a tree come nearest first, or as `order` draws them.
        """
        instance, hosts = self.instance, self.hosts
        touched = list(dict.fromkeys(n for piece, _ in moves for n in instance.of_piece[piece]))
        if instance.limited:
            touched.sort(key=lambda n: (-instance.flows[n].rate, n))
        numbers = dict.fromkeys((*first, *touched))
        self.effort += APPLIED * (1 + len(numbers))
        flow, lost = self.flow, self.lost
        before = {number: self._take_up(number) for number in numbers}
        back = []
        for piece, host in moves:
            back.append((piece, hosts[piece]))
            self.put(piece, host)
        for number in numbers:
            self._lay(number, order)
        self._checked()
        return before, back, flow, lost

    def more_at_least(self, moves: Moves) -> float:
        """Return by how much `moves` change the flow, were no other stream in the way."""
        hosts = self.hosts
        numbers = {n for piece, _ in moves for n in self.instance.of_piece[piece]}
        before = [(piece, hosts[piece]) for piece, _ in moves]
        for piece, host in moves:
            hosts[piece] = host
        flows, laid = self.instance.flows, self.laid
        more = sum(flows[n].weight * (self.least(n) - laid[n].links) for n in numbers)
        for piece, host in before:
            hosts[piece] = host
        return more

    def undo(self, change: Undo) -> None:
        """Put all back as it was before `change`, the last that has not been undone."""
        before, back, flow, lost = change
        self._restore(before, reversed(back))
        self.flow, self.lost = flow, lost
        self._checked()

    def _restore(self, laid: Mapping[int, StreamTrees], places: Iterable[tuple[int, int]]) -> None:
        """Have streams take the trees that they are given, and pieces run at their `places`."""
        for number in laid:
            self._take_up(number)
        for piece, host in places:
            self.put(piece, host)
        for number, stream in laid.items():
            flow = self.instance.flows[number]
            for _, needs in stream.trees.values():
                self.loads.carry(number, needs, flow.rate)
            self._add(number, stream)

    def delta(self, moves: Moves, penalty: float) -> float:
        """Return by how much `moves` would change the cost: made, and undone."""
        before = self.cost(penalty)
        change = self.apply(moves)
        after = self.cost(penalty)
        self.undo(change)
        return after - before

    def put(self, piece: int, host: int) -> None:
        """Put a piece elsewhere and leave its streams as they are, until it is put back."""
        before = self.hosts[piece]
        if before != ABSENT:
            self._work(piece, before, -1)
        self.hosts[piece] = host
        if host != ABSENT:
            self._work(piece, host, 1)
        if piece in self.instance.prices:
            start, price = self.instance.prices[piece]
            self.flow += price * ((host != start) - (before != start))

    def _prices(self) -> float:
        """Return what moves cost from where pieces run to where they are placed."""
        prices = self.instance.prices.items()
        return sum(price for piece, (start, price) in prices if self.hosts[piece] != start)

    def _work(self, piece: int, node: int, sign: int) -> None:
        pieces, cost = self.at[node], self.instance.costs[piece]
        if sign > 0:
            pieces[piece] = None
        else:
            del pieces[piece]
        self.loads.run(node, sign * cost, idle=not pieces)

    def _take_up(self, number: int) -> StreamTrees:
        """Take a stream off all links; return how it was laid."""
        flow, laid = self.instance.flows[number], self.laid[number]
        for _, needs in laid.trees.values():
            self.loads.drop(number, needs, flow.rate)
        self.flow -= flow.weight * laid.links
        self.lost -= laid.missed
        self.laid[number] = UNLAID
        return laid

    def _add(self, number: int, laid: StreamTrees) -> None:
        """Count a stream by trees that the loads have."""
        self.laid[number] = laid
        self.flow += self.instance.flows[number].weight * laid.links
        self.lost += laid.missed

    # --- trees ----------------------------------------------------------------------------------

    def ends(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return each source of a stream with its targets, ascending."""
        flow, hosts = self.instance.flows[number], self.hosts
        if flow.header is not None:
            header = hosts[flow.header]
            if header == ABSENT:
                return []
            sources = {hosts[piece] for piece in flow.consumers} - {header, ABSENT}
            return [(source, (header,)) for source in sorted(sources)]
        source = flow.origin if flow.sender is None else hosts[flow.sender]
        if source == ABSENT:
            return []
        targets = {hosts[piece] for piece in flow.consumers}
        targets.update(flow.destinations)
        targets -= {source, ABSENT}
        return [(source, tuple(sorted(targets)))] if targets else []

    def least(self, number: int) -> int:
        """Return how many links a stream would have, were the others not in its way."""
        topology = self.instance.flows[number].topology
        return sum(topology.links(*ends) for ends in self.ends(number))

    def _lay(self, number: int, order: Random | None = None) -> None:
        """Find trees for a stream in the room that there is."""
        trees: dict[int, LaidTree] = {}
        links = missed = 0
        for source, targets in self.ends(number):
            tree, lost = self.builder.lay(number, source, targets, order)
            trees[source] = tree
            links += len(tree.links)
            missed += lost
        self._add(number, StreamTrees(trees, links, missed))

    def adopt(self, hosts: Sequence[int], laid: Sequence[StreamTrees]) -> None:
        """Take up a placement with its trees, as an earlier `snapshot` gave them."""
        moved = [pair for pair in enumerate(hosts) if self.hosts[pair[0]] != pair[1]]
        self._restore(dict(enumerate(laid)), moved)
        # Counted again: a sum of fractions that are taken off leaves a trifle.
        flows = zip(self.instance.flows, laid, strict=True)
        self.flow = self._prices() + sum(flow.weight * each.links for flow, each in flows)
        self._checked()

    def snapshot(self) -> tuple[list[int], list[StreamTrees]]:
        """Return what `adopt` takes."""
        return list(self.hosts), list(self.laid)

    # --- checking -------------------------------------------------------------------------------

    def _checked(self) -> None:
        """Count everything anew and compare, where `check` says so."""
        if not self.check:
            return
        instance = self.instance
        limits = self.loads
        loads, flow = [0.0] * len(limits.limits), self._prices()
        for number, (trees, _, _) in enumerate(self.laid):
            stream = instance.flows[number]
            assert set(trees) == {source for source, _ in self.ends(number)}
            for links, needs in trees.values():
                assert all(number in limits.users[limit] for limit in needs)
                flow += stream.weight * len(links)
                for link in links:
                    for limit in limits.limits_of[link]:
                        loads[limit] += stream.rate
        for piece, host in enumerate(self.hosts):
            if host != ABSENT:
                loads[limits.first_work + host] += instance.costs[piece]
        assert isclose(flow, self.flow, rel_tol=1e-9, abs_tol=1e-6), (flow, self.flow)
        for limit, (counted, kept) in enumerate(zip(loads, limits.loads, strict=True)):
            assert isclose(counted, kept, rel_tol=1e-9, abs_tol=1e-6)
            assert isclose(beyond(kept, limits.limits[limit]), limits.broken.get(limit, 0.0))
