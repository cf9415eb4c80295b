"""A placement with the trees of its streams: what it costs, and the exact change of any move.

Owns hosts, trees, loads and what limits are broken by. Must not know which moves a search wants.
Invariant: `flow`, `work`, `load`, `sent` and `broken` are what hosts and trees come to (with
`check` they are counted again after each change, and compared); `undo` puts all back.

A piece may be absent (its host is -1), as between a destruction and the repair: its streams are
laid as if it did not exist.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from math import inf, isclose
from random import Random

from experiments.search.distances import FAR, Row
from experiments.search.instance import ROOM, Flow, Instance
from planner.flow import MISSED, over

ABSENT = -1
WAYS_MAX = 200_000
"""Trees that are kept with the limits that they count for."""
TOLL = 4.0
"""Hops that a link without room costs, and as many for each limit that it is over by."""

Links = tuple[int, ...]
"""Directed links, by number."""
Way = tuple[Links, tuple[tuple[int, int], ...]]
"""The links of a tree; the limits that it counts for, and how often."""
Moves = Sequence[tuple[int, int]]
"""Pieces, and the brokers that they go to."""
Laid = tuple[int, dict[int, Way], int, int]
"""A stream, its trees by source, their links together, and how many ends they miss."""
Undo = tuple[list[Laid], list[tuple[int, int]], float, int]


class Evaluator:
    """Where each piece is, the tree of each stream, and what that comes to."""

    def __init__(self, instance: Instance, hosts: Sequence[int], *, check: bool = False) -> None:
        self.instance = instance
        self.check = check
        nodes, links = instance.nodes, len(instance.arcs)
        self.hosts = list(hosts)
        # Limits by number: those of links, then of what brokers send, then of what they run.
        self.limits = [*instance.limits, *instance.egress, *instance.capacity]
        self.room = [limit * (1 + ROOM) for limit in self.limits]
        self.first_sent, self.first_work = links, links + nodes
        self.limits_of = [
            tuple(n for n in (link, links + a) if self.limits[n] < inf)
            for link, (a, _) in enumerate(instance.arcs)
        ]
        self.prices = [1.0] * len(self.limits)
        self.loads = [0.0] * len(self.limits)
        self.broken: dict[int, float] = {}
        self.trifle = 1e-12 * max((flow.rate for flow in instance.flows), default=0.0)
        self.at: list[dict[int, None]] = [{} for _ in range(nodes)]
        self.trees: list[dict[int, Way]] = [{} for _ in instance.flows]
        self.links = [0] * len(instance.flows)
        self.missed = [0] * len(instance.flows)
        self.flow, self.lost = 0.0, 0
        self._ways: dict[tuple[int, int, tuple[int, ...]], Way] = {}
        for piece, host in enumerate(hosts):
            if host != ABSENT:
                self._work(piece, host, 1)
        order = sorted(range(len(instance.flows)), key=lambda n: -instance.flows[n].rate)
        for number in order:
            self._lay(number)
        self._checked()

    # --- what it comes to -----------------------------------------------------------------------

    def cost(self, penalty: float) -> float:
        """Return the flow and, at `penalty` a limit, what limits are broken by at their prices."""
        if not self.broken and not self.lost:
            return self.flow
        prices = self.prices
        parts = sum(prices[limit] * part for limit, part in self.broken.items())
        return self.flow + penalty * (parts + MISSED * self.lost)

    def excess(self) -> float:
        """Return by how much limits are broken together, each as a part of itself."""
        return sum(self.broken.values()) + MISSED * self.lost

    def pressure(self, node: int, cost: float) -> float:
        """Return what limits are broken by more where `node` runs `cost` more, at its price."""
        number = self.first_work + node
        load = self.loads[number] + cost
        if load <= self.room[number]:
            return 0.0 if cost >= 0 else -self.prices[number] * self.broken.get(number, 0.0)
        part = over(load, self.limits[number])
        return self.prices[number] * (part - self.broken.get(number, 0.0))

    def row(self, group: Sequence[int], where: Sequence[int]) -> list[float]:
        """Return what streams of `group` cost with all of it at a broker, for each of `where`.

        As if links bore everything; exact where trees are least ones, else as near as adding one
        end to a tree comes. The difference of two brokers is what counts.
        """
        instance = self.instance
        found = [0.0] * len(where)
        numbers = dict.fromkeys(n for piece in group for n in instance.of_piece[piece])
        for number in numbers:
            flow = instance.flows[number]
            if flow.header is not None:
                row = self._partial_row(flow, group, where)
            else:
                row = self._stream_row(flow, group, where)
            if row is not None:
                weight = flow.weight
                found = [total + weight * hops for total, hops in zip(found, row, strict=True)]
        return found

    def _stream_row(self, flow: Flow, group: Sequence[int], where: Sequence[int]) -> Row | None:
        hosts = self.hosts
        ends = {hosts[piece] for piece in flow.consumers if piece not in group}
        ends.update(flow.destinations)
        ends.discard(ABSENT)
        if flow.sender is not None and flow.sender in group:
            return flow.topology.from_brokers(where, tuple(sorted(ends))) if ends else None
        source = flow.origin if flow.sender is None else hosts[flow.sender]
        assert source is not None
        if source == ABSENT:
            return None
        ends.discard(source)
        return flow.topology.to_brokers(source, tuple(sorted(ends)), where)

    def _partial_row(self, flow: Flow, group: Sequence[int], where: Sequence[int]) -> Row | None:
        """Return what partials send, by the broker where those of `group` are."""
        hosts, topology = self.hosts, flow.topology
        stay = sorted({hosts[p] for p in flow.consumers if p not in group} - {ABSENT})
        assert flow.header is not None
        if flow.header in group:
            rows = [topology.hops_from(node) for node in stay]
            return [sum(row[broker] for row in rows) for broker in where] if stay else None
        header = hosts[flow.header]
        if header == ABSENT:  # it will not be far from the partials that there are
            return topology.near(stay, where, outward=False) if stay else None
        row = topology.hops_to(header)
        # Where there is a partial already, another sends no more.
        return [0 if broker in stay else row[broker] for broker in where]

    # --- changes --------------------------------------------------------------------------------

    def apply(self, moves: Moves, first: Sequence[int] = (), wild: Random | None = None) -> Undo:
        """Put pieces elsewhere and lay their streams again; return what `undo` takes.

        The greatest stream is laid first, but for those named in `first`, which are laid again in
        any case. Where it is to be `wild`, ways are any, and so is the order of their ends.
        """
        instance, hosts = self.instance, self.hosts
        numbers = dict.fromkeys(first)
        touched = dict.fromkeys(n for piece, _ in moves for n in instance.of_piece[piece])
        if len(touched) > 1 and instance.limited:
            numbers.update(
                dict.fromkeys(sorted(touched, key=lambda n: (-instance.flows[n].rate, n)))
            )
        else:
            numbers.update(touched)
        before = (self.flow, self.lost)
        laid = [(n, self.trees[n], self.links[n], self.missed[n]) for n in numbers]
        for number in numbers:
            self._take_up(number)
        back = []
        for piece, host in moves:
            back.append((piece, hosts[piece]))
            self._put(piece, host)
        lengths = None
        if wild is not None:
            lengths = [1.0 + wild.random() for _ in instance.arcs]
        for number in numbers:
            self._lay(number, lengths, wild)
        self._checked()
        return laid, back, *before

    def undo(self, change: Undo) -> None:
        """Put all back as it was before `change`, the last that has not been undone."""
        laid, back, flow, lost = change
        for number, *_ in laid:
            self._take_up(number)
        for piece, host in reversed(back):
            self._put(piece, host)
        for number, trees, links, missed in laid:
            rate = self.instance.flows[number].rate
            for _, needs in trees.values():
                self._carry(needs, rate)
            self.trees[number], self.links[number], self.missed[number] = trees, links, missed
        self.flow, self.lost = flow, lost
        self._checked()

    def delta(self, moves: Moves, penalty: float) -> float:
        """Return by how much `moves` would change the cost: made, and undone."""
        before = self.cost(penalty)
        change = self.apply(moves)
        after = self.cost(penalty)
        self.undo(change)
        return after - before

    def _put(self, piece: int, host: int) -> None:
        if self.hosts[piece] != ABSENT:
            self._work(piece, self.hosts[piece], -1)
        self.hosts[piece] = host
        if host != ABSENT:
            self._work(piece, host, 1)

    def _work(self, piece: int, node: int, sign: int) -> None:
        at, cost = self.at[node], self.instance.costs[piece]
        number = self.first_work + node
        if sign > 0:
            at[piece] = None
        else:
            del at[piece]
        load = self.loads[number] + sign * cost if at else 0.0  # whatever sums come to
        self.loads[number] = load
        if load > self.room[number]:
            self.broken[number] = over(load, self.limits[number])
        elif self.broken:
            self.broken.pop(number, None)

    def _carry(self, needs: Iterable[tuple[int, int]], rate: float) -> None:
        """Add what a tree counts for to loads; a rate below zero takes it off."""
        loads, room, broken, trifle = self.loads, self.room, self.broken, self.trifle
        for number, count in needs:
            load = loads[number] + rate * count
            if load < trifle:
                load = 0.0  # taken off, fractions would leave a trifle
            loads[number] = load
            if load > room[number]:
                broken[number] = over(load, self.limits[number])
            elif number in broken:
                del broken[number]

    def _needs(self, links: Iterable[int]) -> tuple[tuple[int, int], ...]:
        """Return the limits that links count for, and how often."""
        counts: dict[int, int] = {}
        for link in links:
            for number in self.limits_of[link]:
                counts[number] = counts.get(number, 0) + 1
        return tuple(counts.items())

    def _take_up(self, number: int) -> None:
        flow = self.instance.flows[number]
        for _, needs in self.trees[number].values():
            self._carry(needs, -flow.rate)
        self.flow -= flow.weight * self.links[number]
        self.lost -= self.missed[number]
        self.trees[number], self.links[number], self.missed[number] = {}, 0, 0

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
        assert source is not None
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

    def _lay(
        self, number: int, lengths: list[float] | None = None, wild: Random | None = None
    ) -> None:
        """Find trees for a stream in the room that there is."""
        flow = self.instance.flows[number]
        trees: dict[int, Way] = {}
        links = missed = 0
        for source, targets in self.ends(number):
            way = None
            if lengths is None:
                way = self._usual(flow, source, targets)
            lost = 0
            if way is not None:
                self._carry(way[1], flow.rate)
            else:
                way, lost = self._tree(flow, source, targets, lengths, wild)
            trees[source] = way
            links += len(way[0])
            missed += lost
        self.trees[number], self.links[number], self.missed[number] = trees, links, missed
        self.flow += flow.weight * links
        self.lost += missed

    def _usual(self, flow: Flow, source: int, targets: tuple[int, ...]) -> Way | None:
        """Return the least tree, if there is room on it."""
        topology = flow.topology
        key = (id(topology), source, targets)
        if (way := self._ways.get(key)) is None:
            numbers = self.instance.numbers
            ahead = topology.hops_from(source)
            if any(ahead[target] >= FAR for target in targets):
                return None
            found = tuple(numbers[arc] for arc in topology.tree(source, targets))
            way = (found, self._needs(found))
            if len(self._ways) > WAYS_MAX:
                self._ways.clear()
            self._ways[key] = way
        rate, loads, room = flow.rate, self.loads, self.room
        for number, count in way[1]:
            if loads[number] + count * rate > room[number]:
                return None
        return way

    def _tree(
        self,
        flow: Flow,
        source: int,
        targets: Sequence[int],
        lengths: list[float] | None,
        wild: Random | None,
    ) -> tuple[Way, int]:
        """Grow a tree, always to the nearest target; return it, and how many are not reached."""
        inside, left = {source: 0}, list(targets)
        if wild is not None:
            wild.shuffle(left)
        found: list[int] = []
        lost = 0
        while left:
            target = left[0]
            if wild is None and len(left) > 1:
                target = min(
                    left, key=lambda t: min(map(flow.topology.hops_to(t).__getitem__, inside))
                )
            left.remove(target)
            if target in inside:
                continue
            branch = None
            if lengths is None:
                branch = self._branch(flow, inside, target, None, hard=True)
            if branch is None:
                branch = self._branch(flow, inside, target, lengths, hard=False)
            if branch is None:
                lost += 1
                continue
            self._carry(self._needs(branch), flow.rate)
            found += branch
            inside.update((self.instance.arcs[link][1], 0) for link in branch)
        return (tuple(found), self._needs(found)), lost

    def _branch(
        self,
        flow: Flow,
        inside: Iterable[int],
        target: int,
        lengths: list[float] | None,
        *,
        hard: bool,
    ) -> list[int] | None:
        """Find a way from a tree to a target by A*; None where there is none.

        `hard`: over links with room alone; else what has none costs a toll.
        """
        instance = self.instance
        topology = flow.topology if hard else instance.whole
        ahead = topology.hops_to(target)
        rate, loads, room, limits_of = flow.rate, self.loads, self.room, self.limits_of
        price, limits, arcs = self.prices, self.limits, instance.arcs
        far: dict[int, float] = {}
        by: dict[int, int] = {}
        heap = []
        for node in inside:
            if ahead[node] < FAR:
                far[node] = 0.0
                heap.append((float(ahead[node]), 0.0, node))
        heapify(heap)
        while heap:
            _, back, node = heappop(heap)
            if node == target:
                links = []
                while node in by:
                    links.append(by[node])
                    node = arcs[by[node]][0]
                return links
            length = -back if hard else back
            if length > far[node]:
                continue
            for other, link in instance.onward[node]:
                on = length + (1.0 if lengths is None else lengths[link])
                if on >= far.get(other, inf) or ahead[other] >= FAR:
                    continue
                for number in limits_of[link]:
                    load = loads[number] + rate
                    if load > room[number]:
                        if hard:
                            on = inf
                            break
                        on += TOLL * (1.0 + over(load, limits[number]) * price[number])
                if on >= far.get(other, inf):
                    continue
                far[other] = on
                by[other] = link
                heappush(heap, (on + ahead[other], -on if hard else on, other))
        return None

    def users(self, limit: int) -> list[int]:
        """Return the streams that take a link, or that a broker sends, by the limit's number."""
        return [
            number
            for number, trees in enumerate(self.trees)
            if any(limit == one for _, needs in trees.values() for one, _ in needs)
        ]

    def adopt(self, hosts: Sequence[int], trees: Sequence[dict[int, Way]]) -> None:
        """Take up a placement with its trees, as an earlier `snapshot` gave them."""
        for number in range(len(self.trees)):
            self._take_up(number)
        for piece, host in enumerate(hosts):
            if self.hosts[piece] != host:
                self._put(piece, host)
        self.flow, self.lost = 0.0, 0
        for number, kept in enumerate(trees):
            flow = self.instance.flows[number]
            reached = sum(len(targets) for _, targets in self.ends(number))
            arcs = self.instance.arcs
            heads = {s: {arcs[link][1] for link in way[0]} for s, way in kept.items()}
            got = sum(len(heads.get(s, set()) & {*targets}) for s, targets in self.ends(number))
            for _, needs in kept.values():
                self._carry(needs, flow.rate)
            self.trees[number] = kept
            self.links[number] = sum(len(way[0]) for way in kept.values())
            self.missed[number] = reached - got
            self.flow += flow.weight * self.links[number]
            self.lost += self.missed[number]
        self._checked()

    def snapshot(self) -> tuple[list[int], list[dict[int, Way]]]:
        """Return what `adopt` takes."""
        return list(self.hosts), list(self.trees)

    # --- checking -------------------------------------------------------------------------------

    def _checked(self) -> None:
        """Count everything anew and compare, where `check` says so."""
        if not self.check:
            return
        instance = self.instance
        loads, flow = [0.0] * len(self.limits), 0.0
        for number, trees in enumerate(self.trees):
            one = instance.flows[number]
            assert set(trees) == {source for source, _ in self.ends(number)}
            for links, _ in trees.values():
                flow += one.weight * len(links)
                for link in links:
                    for limit in self.limits_of[link]:
                        loads[limit] += one.rate
        for piece, host in enumerate(self.hosts):
            if host != ABSENT:
                loads[self.first_work + host] += instance.costs[piece]
        assert isclose(flow, self.flow, rel_tol=1e-9, abs_tol=1e-6), (flow, self.flow)
        for limit, (counted, kept) in enumerate(zip(loads, self.loads, strict=True)):
            assert isclose(counted, kept, rel_tol=1e-9, abs_tol=1e-6)
            assert isclose(over(kept, self.limits[limit]), self.broken.get(limit, 0.0))
