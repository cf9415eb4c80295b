"""A vicinity as a problem of its own, and the tables that a plan for it asks of its members.

Owns the way from a view to what the one search takes, and back. Must not know how the search goes.
Invariant: a proposal's gain is counted from whole tables, the members' own and those it asks for,
so it is the gain of the whole network; the search's own sums are never part of that.

Members are brokers of the problem. What goes on beyond them enters and leaves by a neighbour, where
nothing can run. A header out of view stands at such a neighbour. Its partials must not become
more or fewer, since all on the way count them: keys that share a partial move as one piece, and
where two such pieces would meet, they stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from planner.layout import Aggregate, Layout, Piece, Role, Stream
from planner.network import Network
from planner.problem import Link, Node, Number, Problem
from planner.rounds.tables import HERE, TableLoads, Tables
from planner.rounds.units import broken, plain
from planner.rounds.view import Summary, View, fixed_ends, laid
from planner.search.instance import ABSENT, Instance

PRICE_PARTS = 10**6
"""The price's part of a rate, in whole numbers."""
CELLS_MAX = 100_000
"""Answers about trees that are kept, in numbers of 8 bytes: a broker has some MB for a look."""

Value = tuple[int, int]
"""(violation, flow): both whole, the first weighs more."""


def value_of(summary: Summary, tables: Tables, tree: Network) -> Value:
    """Return what a broker with these tables breaks of its limits, and what it sends."""
    account = TableLoads(tables, drained=summary.drained)
    judged: list[tuple[int, Number | None]] = [
        (account.work, 0 if summary.drained else summary.capacity),
        (account.flow, summary.egress),
    ]
    judged += [(load, tree.limits.get((summary.broker, to))) for to, load in account.sent.items()]
    violation = sum(broken(load, int(limit)) for load, limit in judged if limit is not None)
    return violation, account.flow


@dataclass(frozen=True, slots=True)
class Proposal:
    """New tables by broker, the versions that they go by, and moves: piece, from whom, to whom."""

    tables: dict[int, Tables]
    versions: dict[int, int]
    moves: tuple[tuple[int, int, int], ...]


class Vicinity:
    """A view compiled for the search; `price` is a move's, as a part of the rate of its inputs."""

    def __init__(self, view: View, price: float = 0.0) -> None:
        self.view = view
        self.numbers: dict[int, int] = {}
        """The problem's number of each member, and of each neighbour that anything crosses to."""
        for broker in chain(view.brokers, self._neighbours()):
            self.numbers.setdefault(broker, len(self.numbers))
        self.brokers = list(self.numbers)
        self.groups: list[tuple[int, ...]] = []
        """The network's pieces that each of the problem's stands for, in their order."""
        self.piece_of: dict[int, int] = {}
        self._pieces: list[Piece] = []
        self._headers: dict[int, int] = {}  # of headers that are out of view, by aggregate
        self._add_pieces()
        self.start = [view.hosts[group[0]] for group in self.groups]
        self.start += [self._pieces[piece].hosts[0] for piece in self._headers.values()]
        self.prices = self._priced(int(price * PRICE_PARTS))
        priced = {piece: (self.start[piece], plain(units)) for piece, units in self.prices.items()}
        # What goes over the links to those beyond is the same whatever is moved here.
        members = view.numbers
        limits = {
            (members[a], members[b]): plain(int(limit))
            for (a, b), limit in view.tree.limits.items()
            if a in members and b in members
        }
        self.instance = Instance(self._layout(), priced, limits, CELLS_MAX)

    def _neighbours(self) -> Sequence[int]:
        """Return the brokers beyond by which streams come and leave."""
        view = self.view
        streams, joints = view.streams.values(), view.joints.values()
        result = [broker for ends in streams for _, broker in ends.out]
        result += [ends.whence for ends in streams if ends.whence != HERE]
        result += [broker for joint in joints for _, broker, _ in joint.come]
        return result + [joint.beyond for joint in joints if joint.beyond != HERE]

    # --- the problem ----------------------------------------------------------------------------

    def _add_pieces(self) -> None:
        view = self.view
        costs = {item.piece: item.cost for each in view.summaries for item in each.tables.hosted}
        together: dict[tuple[int, int], list[int]] = {}
        for number, joint in view.joints.items():
            for piece in view.layout.aggregates[number].partials if joint.beyond != HERE else ():
                if piece in view.hosts:
                    together.setdefault((number, view.hosts[piece]), []).append(piece)
        first = {group[0]: tuple(group) for group in together.values()}
        others = {piece for group in together.values() for piece in group[1:]}
        for piece in sorted(view.hosts):
            if piece not in others:
                group = first.get(piece, (piece,))
                self._add(group, sum(costs[each] for each in group))
        for number, joint in view.joints.items():
            if joint.beyond != HERE:
                self._headers[number] = len(self._pieces)
                listed = view.layout.pieces[view.layout.aggregates[number].header]
                host = (self.numbers[joint.beyond],)
                self._pieces.append(Piece(listed.task, Role.HEADER, "", 0, host))

    def _add(self, group: tuple[int, ...], cost: int) -> None:
        view, numbers = self.view, self.view.numbers
        listed = view.layout.pieces[group[0]]
        common = set(listed.hosts).intersection(*(view.layout.pieces[p].hosts for p in group))
        allowed = [numbers[host] for host in sorted(common) if host in numbers]
        allowed = [node for node in allowed if not view.summaries[node].drained]
        # What nobody else may run stays.
        hosts = tuple(sorted(allowed)) or (view.hosts[group[0]],)
        self.piece_of.update((piece, len(self.groups)) for piece in group)
        self.groups.append(group)
        self._pieces.append(Piece(listed.task, listed.role, listed.key, plain(cost), hosts))

    def _layout(self) -> Layout:
        view, numbers = self.view, self.numbers
        streams, aggregates = self._streams()
        summaries = view.summaries
        nodes = []
        for item in summaries:
            limits = (0 if item.drained else item.capacity, item.egress)
            capacity, egress = (None if limit is None else plain(limit) for limit in limits)
            nodes.append(Node(str(item.broker), capacity, egress))
        nodes += [Node(str(broker)) for broker in self.brokers[len(summaries) :]]
        links = [
            Link(str(broker), str(other))
            for broker, number in numbers.items()
            for other in view.tree.neighbours[broker]
            if number < numbers.get(other, 0)
        ]
        problem = Problem(tuple(nodes), tuple(links), (), ())
        headers = [view.layout.aggregates[number].header for number in self._headers]
        listed = [*(group[0] for group in self.groups), *headers]
        ranks = tuple(view.layout.ranks[piece] for piece in listed)
        return Layout(problem, {}, tuple(self._pieces), tuple(streams), tuple(aggregates), ranks)

    def _streams(self) -> tuple[list[Stream], list[Aggregate]]:
        view, numbers = self.view, self.numbers
        streams: list[Stream] = []
        aggregates: list[Aggregate] = []
        for stream, ends in view.streams.items():
            listed = view.layout.streams[stream]
            maker = self.piece_of.get(-1 if listed.piece is None else listed.piece)
            origin = None
            if maker is None:
                origin = ends.source if ends.whence == HERE else numbers[ends.whence]
            takers = dict.fromkeys(self.piece_of[p] for p in listed.consumers if p in view.hosts)
            others = [numbers[broker] for broker in fixed_ends(view, stream)]
            rate = plain(ends.rate)
            streams.append(Stream("", rate, origin, maker, tuple(takers), tuple(sorted(others))))
        for number, joint in view.joints.items():
            aggregate = view.layout.aggregates[number]
            rate = plain(joint.rate)
            partials = [p for p in aggregate.partials if p in view.hosts]
            makers = tuple(dict.fromkeys(self.piece_of[p] for p in partials))
            header = self._headers.get(number)
            if header is None:
                header = self.piece_of[aggregate.header]
                aggregates.append(Aggregate(aggregate.task, rate, makers, header))
            else:  # each sends its own, as none may be merged with another
                streams += [Stream("", rate, None, m, (header,), ()) for m in makers]
            for _, broker, count in joint.come:
                streams.append(Stream("", rate * count, numbers[broker], None, (header,), ()))
        return streams, aggregates

    def _priced(self, parts: int) -> dict[int, int]:
        """Return what a move of each piece costs: a part of the rate of its inputs, in units."""
        view = self.view
        prices: dict[int, int] = {}
        for stream, ends in view.streams.items() if parts else ():
            for piece in view.layout.streams[stream].consumers:
                if piece in view.hosts:
                    own = self.piece_of[piece]
                    prices[own] = prices.get(own, 0) + ends.rate * parts // PRICE_PARTS
        return prices

    def beginning(self) -> list[int]:
        """Return where pieces are; ABSENT what must not stay there."""
        pairs = zip(self.start, self._pieces, strict=True)
        return [host if host in piece.hosts else ABSENT for host, piece in pairs]

    # --- a plan for it --------------------------------------------------------------------------

    def proposal(self, hosts: Sequence[int], gain: float) -> Proposal | None:
        """Return what a plan asks of the members; None where it does not lessen their value.

        Less flow has to be less by the price of the moves and by `gain` of the flow.
        """
        view = self.view
        placed = self._apart(hosts)
        moved = [piece for piece, host in enumerate(placed) if host != self.start[piece]]
        tables = self.tables(placed)
        before, after = self.value(), self.value(tables)
        price = sum(self.prices.get(piece, 0) for piece in moved)
        least = int(gain * before[1]) + price
        if not moved or after[0] > before[0]:
            return None
        if after[0] == before[0] and before[1] - after[1] <= least:
            return None
        changed = {
            item.broker: own
            for item, own in zip(view.summaries, tables, strict=True)
            if own != item.tables
        }
        versions = {item.broker: item.version for item in view.summaries if item.broker in changed}
        pieces = sorted((each, piece) for piece in moved for each in self.groups[piece])
        moves = tuple(
            (each, view.brokers[self.start[piece]], view.brokers[placed[piece]])
            for each, piece in pieces
        )
        return Proposal(changed, versions, moves)

    def value(self, tables: Sequence[Tables] | None = None) -> Value:
        """Return what all members' limits and flow come to, with their own or other `tables`."""
        view = self.view
        pairs = zip(view.summaries, tables or [item.tables for item in view.summaries], strict=True)
        result = [value_of(summary, own, view.tree) for summary, own in pairs]
        return sum(broken_by for broken_by, _ in result), sum(flow for _, flow in result)

    def _apart(self, hosts: Sequence[int]) -> list[int]:
        """Return `hosts` with those pieces back at the start that must not meet but do."""
        placed = list(hosts)
        for number in self._headers:
            partials = self.view.layout.aggregates[number].partials
            pieces = dict.fromkeys(self.piece_of[p] for p in partials if p in self.view.hosts)
            while len({placed[piece] for piece in pieces}) < len(pieces):
                for piece in pieces:
                    if any(placed[piece] == placed[other] for other in pieces if other != piece):
                        placed[piece] = self.start[piece]
        return placed

    def tables(self, placed: Sequence[int]) -> list[Tables]:
        """Return the tables of the members where the problem's pieces are at these hosts."""
        brokers = self.brokers
        where = {p: brokers[placed[self.piece_of[p]]] for group in self.groups for p in group}
        return laid(self.view, where)
