"""A placement on many brokers with the ways of its streams, where links or what is sent is limited.

Owns the ways, the loads and by how much limits are broken. Must not know which moves a search
wants. Invariant: `flow`, `excess()` and `broken` are what the ways and hosts come to; `undo` puts
all back as it was before the last `move`.

Where `loaded.LoadedState` weighs each broker for a piece by what the streams leave of the links,
this weighs by hop counts alone (of the links that a stream of that rate may pass at all) and lays
the streams that a move concerns in the room that there is: a move costs milliseconds on a thousand
brokers. A stream that finds no room goes where that breaks limits least.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from random import Random

import numpy as np

from planner.flow import MISSED, over
from planner.layout import partial_name
from planner.network import Arc
from planner.search.metric import FAR, Metric
from planner.search.model import Model
from planner.search.prices import Priced

TOLL = 4.0  # hops that a link costs where there is no room, and as many for each limit beyond
ROOM = 1e-9

Way = tuple[int, ...]
"""Directed links, by number."""


class TrafficState(Priced):
    """Where each piece is, the way of each stream, and what is over limits."""

    def __init__(self, model: Model, hosts: Sequence[int]) -> None:
        net = model.network
        self.arcs = [(a, b) for a, others in enumerate(net.neighbours) for b in others]
        self.onward: list[list[tuple[int, int]]] = [[] for _ in net.neighbours]
        for number, (a, b) in enumerate(self.arcs):
            self.onward[a].append((b, number))
        self.tail = [a for a, _ in self.arcs]
        self.numbers = {arc: number for number, arc in enumerate(self.arcs)}
        limits = [net.limits.get(arc) for arc in self.arcs]
        self.limit = [inf if limit is None else float(limit) for limit in limits]
        self.bound = [inf if limit is None else float(limit) for limit in model.egress]
        layout = model.layout
        self.room = [limit * (1 + ROOM) for limit in self.limit]
        self.out_room = [limit * (1 + ROOM) for limit in self.bound]
        self.prices = [*model.rates, *model.partial_rates]
        self.rates = [float(stream.rate) for stream in layout.streams]
        self.rates += [float(aggregate.rate) for aggregate in layout.aggregates]
        self.prices_of: dict[int, float] = {}
        self._hop_each = self._lengths = [1.0] * len(self.arcs)
        self.work_price = np.ones(model.nodes)
        self._hosts_before: list[tuple[int, int]] = []
        self._laid_before: list[tuple[int, dict[int, Way], float, int]] = []
        self._flow_before = 0.0
        super().__init__(model, hosts)

    # --- counting ----------------------------------------------------------------------------

    def recount(self) -> None:
        """Lays everything anew, the greatest rates first."""
        model = self.model
        self.work = np.bincount(
            np.array(self.hosts, dtype=np.int64), weights=model.costs, minlength=model.nodes
        ).astype(np.float64)
        self.load = [0.0] * len(self.arcs)
        self.sent = [0.0] * model.nodes
        self.streams, self.sends = [0] * len(self.arcs), [0] * model.nodes
        """How many streams are on each link, and how often each broker sends one."""
        self.ways: list[dict[int, Way]] = [{} for _ in self.rates]
        self.cost = [0.0] * len(self.rates)
        self.missed = [0] * len(self.rates)
        self.lost = 0
        self.flow = 0.0
        self.link_excess = 0.0
        self.broken: dict[int, None] = {}
        self.lay_again(range(len(self.rates)))

    def excess(self) -> float:
        """By how much limits are broken together, each as a part of itself, at its price."""
        return self._work_excess() + self._way_excess()

    def _work_excess(self) -> float:
        return float(self.limits.excess(self.work) @ self.work_price)

    def _way_excess(self) -> float:
        return (self.link_excess if self.broken else 0.0) + MISSED * self.lost

    def _carry(self, number: int, way: Iterable[int], *, off: bool = False) -> None:
        """Puts a stream on links, or takes it off."""
        rate = -self.rates[number] if off else self.rates[number]
        load, sent, tail, broken = self.load, self.sent, self.tail, self.broken
        room, out_room, streams, sends = self.room, self.out_room, self.streams, self.sends
        more = -1 if off else 1
        for link in way:
            streams[link] += more
            after = load[link] + rate if streams[link] else 0.0  # whatever sums come to
            if after > room[link] or link in broken:
                self._note(link, load[link], after, self.limit[link])
            load[link] = after
            node = tail[link]
            sends[node] += more
            after = sent[node] + rate if sends[node] else 0.0
            if after > out_room[node] or -1 - node in broken:
                self._note(-1 - node, sent[node], after, self.bound[node])
            sent[node] = after

    def users(self, what: int) -> list[int]:
        """The streams that take a link, or, of -1 less a broker, that it sends."""
        each = [(number, way) for number, ways in enumerate(self.ways) for way in ways.values()]
        if what >= 0:
            found = [number for number, way in each if what in way]
        else:
            apart = {link for _, link in self.onward[-1 - what]}.isdisjoint
            found = [number for number, way in each if not apart(way)]
        return list(dict.fromkeys(found))

    def _note(self, what: int, before: float, after: float, limit: float) -> None:
        price = self.prices_of.get(what, 1.0)
        now = price * over(after, limit)
        if what in self.broken:
            self.link_excess += now - price * over(before, limit)
            if not now:
                del self.broken[what]
                if not self.broken:
                    self.link_excess = 0.0
        elif now:
            self.link_excess += now
            self.broken[what] = None

    def pieces_of(self, number: int) -> list[int]:
        """The pieces that send or want a stream."""
        layout, streams = self.model.layout, len(self.model.rates)
        if number >= streams:
            aggregate = layout.aggregates[number - streams]
            return [*aggregate.partials, aggregate.header]
        stream = layout.streams[number]
        return [*stream.consumers, *([] if stream.piece is None else [stream.piece])]

    # --- moves -------------------------------------------------------------------------------

    def move(self, moves: Sequence[tuple[int, int]], most: float = inf) -> bool:
        """Puts pieces elsewhere and lays their streams anew; as `lay_again` where that is vain."""
        model = self.model
        back = [(piece, self.hosts[piece]) for piece, _ in moves]
        touched: dict[int, None] = {}
        for piece, _ in moves:
            touched.update(dict.fromkeys(model.of_piece[piece]))
            if (of := model.aggregate_of[piece]) is not None:
                touched[len(model.rates) + of] = None
        self._put(moves)
        good = self.lay_again(touched, most)
        self._hosts_before = back
        return good

    def _put(self, moves: Iterable[tuple[int, int]]) -> None:
        for piece, host in moves:
            cost = self.model.costs[piece]
            self.work[self.hosts[piece]] -= cost
            self.work[host] += cost
            self.hosts[piece] = host

    def lay_again(
        self, numbers: Iterable[int], most: float = inf, wild: Random | None = None
    ) -> bool:
        """Lays streams anew, the greatest first; where it is to be `wild`, in any order by any way.

        False as soon as limits are broken by more than `most`, which no stream that is still to be
        laid makes less: some are not laid then, and all is to be undone.
        """
        order = sorted(numbers, key=lambda n: (-self.rates[n], n))
        if wild is not None:
            wild.shuffle(order)
            self._lengths = [1.0 + wild.random() for _ in self.arcs]
        self._flow_before, self._hosts_before = self.flow, []
        self._laid_before = [(n, self.ways[n], self.cost[n], self.missed[n]) for n in order]
        for number in order:
            self._take_up(number)
        most -= self._work_excess()
        for number in order:
            if self._way_excess() > most:
                return False
            self._lay(number, wild)
        return self._way_excess() <= most

    def undo(self) -> None:
        """As it was before the last move, or before the last streams were laid again."""
        for number, *_ in self._laid_before:
            self._take_up(number)
        for number, ways, cost, missed in self._laid_before:
            for way in ways.values():
                self._carry(number, way)
            self._keep(number, ways, cost, missed)
        self._put(self._hosts_before)
        self.flow = self._flow_before
        self._laid_before, self._hosts_before = [], []

    def apply(self, moves: Iterable[tuple[int, int]]) -> float:
        """Moves pieces; returns by how much the flow changed."""
        before = self.flow
        self.move(list(moves))
        return self.flow - before

    # --- ways --------------------------------------------------------------------------------

    def _take_up(self, number: int) -> None:
        for way in self.ways[number].values():
            self._carry(number, way, off=True)
        self.flow -= self.cost[number]
        self.lost -= self.missed[number]
        self.ways[number], self.cost[number], self.missed[number] = {}, 0.0, 0

    def _keep(self, number: int, ways: dict[int, Way], cost: float, missed: int) -> None:
        self.ways[number], self.cost[number], self.missed[number] = ways, cost, missed
        self.flow += cost
        self.lost += missed

    def _lay(self, number: int, wild: Random | None = None) -> None:
        """Finds ways for a stream in the room that there is."""
        streams = len(self.model.rates)
        if number < streams:
            metric = self.metric(number)
            source, targets = self.ends(number)
            trees = [(source, targets)] if targets else []
        else:
            metric = self.partial_metric(number - streams)
            aggregate = self.model.layout.aggregates[number - streams]
            header = self.hosts[aggregate.header]
            sources = {self.hosts[piece] for piece in aggregate.partials} - {header}
            trees = [(source, (header,)) for source in sorted(sources)]
        ways: dict[int, Way] = {}
        links = missed = 0
        for source, targets in trees:
            if wild is None:
                way, lost = self._tree(number, metric, source, targets)
            else:
                way, lost = self._wild_tree(number, source, wild.sample(targets, len(targets)))
            ways[source] = tuple(way)
            links += len(way)
            missed += lost
        self._keep(number, ways, self.prices[number] * links, missed)

    def _tree(
        self, number: int, metric: Metric, source: int, targets: Sequence[int]
    ) -> tuple[list[int], int]:
        """A tree to the targets, always to the nearest; its links, and how many are not reached."""
        inside, left = [source], list(targets)
        way: list[int] = []
        lost = 0
        while left:
            if len(left) == 1:
                away = metric.distance[inside, left[0]]
            else:
                away = metric.distance[np.ix_(inside, left)].ravel()
            least = int(away.argmin())
            one, other = divmod(least, len(left))
            target = left.pop(other)
            if target in inside:
                continue
            near = away[least] < FAR
            branch = self._short(number, metric, inside[one], target) if near else None
            if branch is None and near:
                branch = self._around(number, metric, inside, target)
            if branch is None:
                branch = self._through(number, inside, target)
            if branch is None:
                lost += 1
                continue
            self._carry(number, branch)
            way += branch
            inside += [self.arcs[link][1] for link in branch]
        return way, lost

    def _wild_tree(self, number: int, source: int, targets: Iterable[int]) -> tuple[list[int], int]:
        """A tree to targets as they come, by links that are as long as chance has it."""
        inside, way, lost = [source], list[int](), 0
        for target in targets:
            if target in inside:
                continue
            branch = self._through(number, inside, target, self._lengths)
            if branch is None:
                lost += 1
                continue
            self._carry(number, branch)
            way += branch
            inside += [self.arcs[link][1] for link in branch]
        return way, lost

    def _short(self, number: int, metric: Metric, start: int, target: int) -> list[int] | None:
        """The usual shortest way, if there is room on it."""
        rate, load, sent = self.rates[number], self.load, self.sent
        found = [self.numbers[arc] for arc in metric.path(start, target)]
        for link in found:
            node = self.tail[link]
            if load[link] + rate > self.room[link] or sent[node] + rate > self.out_room[node]:
                return None
        return found

    def _around(
        self, number: int, metric: Metric, inside: Sequence[int], target: int
    ) -> list[int] | None:
        """A shortest way over links with room, by A*; none where there is none."""
        ahead: list[float] = metric.distance[:, target].tolist()
        rate, load, sent, room = self.rates[number], self.load, self.sent, self.room
        far = dict.fromkeys(inside, 0)
        over_link: dict[int, int] = {}
        heap = [(ahead[node], 0, node) for node in inside]
        heapify(heap)
        while heap:
            _, back, node = heappop(heap)
            if node == target:
                return self._back(over_link, target)
            if -back > far[node] or sent[node] + rate > self.out_room[node]:
                continue
            on = 1 - back
            for other, link in self.onward[node]:
                if on < far.get(other, inf) and load[link] + rate <= room[link]:
                    far[other] = on
                    over_link[other] = link
                    heappush(heap, (on + ahead[other], -on, other))
        return None

    def _through(
        self,
        number: int,
        inside: Sequence[int],
        target: int,
        lengths: Sequence[float] | None = None,
    ) -> list[int] | None:
        """The way that breaks limits least for its length; none where brokers are not joined."""
        lengths = self._hop_each if lengths is None else lengths
        ahead: list[float] = self.model.hops[target].tolist()
        rate, load, limit, room = self.rates[number], self.load, self.limit, self.room
        price = self.prices_of.get
        far = dict.fromkeys(inside, 0.0)
        over_link: dict[int, int] = {}
        heap = [(ahead[node], 0.0, node) for node in inside if ahead[node] < FAR]
        heapify(heap)
        while heap:
            _, way, node = heappop(heap)
            if node == target:
                return self._back(over_link, target)
            if way > far[node]:
                continue
            out = over(self.sent[node] + rate, self.bound[node]) * price(-1 - node, 1.0)
            least = way + (TOLL * (1.0 + out) if out else 0.0)
            for other, link in self.onward[node]:
                known = far.get(other, inf)
                if least + 1.0 >= known:
                    continue
                on, after = least + lengths[link], load[link] + rate
                if after > room[link]:
                    beyond = out + over(after, limit[link]) * price(link, 1.0)
                    on = way + lengths[link] + TOLL * (1.0 + beyond)
                if on < known:
                    far[other] = on
                    over_link[other] = link
                    heappush(heap, (on + ahead[other], on, other))
        return None

    def _back(self, over_link: Mapping[int, int], target: int) -> list[int]:
        found = []
        node = target
        while node in over_link:
            found.append(over_link[node])
            node = self.arcs[over_link[node]][0]
        return found

    def named_trees(self) -> dict[str, tuple[Arc, ...]]:
        """The trees by the streams' names."""
        layout, streams = self.model.layout, len(self.model.rates)
        found = {}
        for number, ways in enumerate(self.ways):
            for source, way in ways.items():
                if number < streams:
                    name = layout.streams[number].name
                else:
                    task = layout.aggregates[number - streams].task
                    name = partial_name(task, self.model.network.names[source])
                found[name] = tuple(sorted(self.arcs[link] for link in way))
        return found
