"""The least flow as a mixed-integer program: its columns and rows.

Owns the formulation. Must not know the solver, nor how a search works. Invariant: every plan of the
problem, with any routes, is a solution of the program at its flow; so a bound on the program holds
for all plans.

Where a piece runs decides where a stream enters and leaves the network. Each end of a stream has a
flow of one unit from where the stream is sent to where it is wanted; a link carries the stream if
it carries any of these. An aggregate's partials, each with one end, are flows of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.flow import ROOM_RELATIVE
from planner.layout import Aggregate, Layout, Stream, carried, partial_name
from planner.network import Arc, Network, trimmed
from planner.plan import Plan
from planner.problem import NoSolverError, Number

SCALED = 1e4  # what limits, and the greatest rate of a stream, come to in the program
VARIABLES_MAX = 3_000_000  # beyond this a solver would need more memory than a usual machine has

Terms = list[tuple[int, float]]


@dataclass
class Program:
    """Columns and rows, all columns from 0 on."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def column(self, cost: float = 0.0, *, whole: bool = False, upper: float = 1.0) -> int:
        """A new column; its number."""
        self.cost.append(float(cost))
        self.upper.append(upper)
        self.whole.append(whole)
        if len(self.cost) > VARIABLES_MAX:
            raise NoSolverError("the problem is too large for an exact method")
        return len(self.cost) - 1

    def row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        """A new row: a sum that is between two numbers."""
        for column, value in terms:
            self.index.append(column)
            self.value.append(value)
        self.starts.append(len(self.index))
        self.low.append(low)
        self.high.append(high)


@dataclass(frozen=True)
class Meeting:
    """By the brokers of a partial and of the header: the column of what goes from one to other."""

    aggregate: Aggregate
    columns: Mapping[tuple[int, int], int]


class Formulation:
    """The program of one layout; `at` are the columns by piece and broker."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.net = Network.of(layout.problem)
        self.arcs: list[Arc] = [(a, b) for a, near in enumerate(self.net.neighbours) for b in near]
        self.outward: list[list[int]] = [[] for _ in self.net.names]
        self.inward: list[list[int]] = [[] for _ in self.net.names]
        for number, (a, b) in enumerate(self.arcs):
            self.outward[a].append(number)
            self.inward[b].append(number)
        egress = [node.egress for node in layout.problem.nodes]
        self.limited = bool(self.net.limits) or any(x is not None for x in egress)
        self.hops = [self.net.hops(node) for node in range(len(self.net.names))]
        self.program = Program()
        self.at: list[dict[int, int]] = []
        self.carries: dict[str, list[int]] = {}
        self.rates: dict[str, float] = {}
        self.meetings: list[Meeting] = []
        self._pieces()
        for stream in layout.streams:
            if stream.consumers or stream.destinations:
                self._stream(stream)
        for aggregate in layout.aggregates:
            self._aggregate(aggregate)
        self._limits()

    # --- pieces -------------------------------------------------------------------------------

    def _pieces(self) -> None:
        """Each piece at one allowed broker, within the brokers' capacities."""
        capacity = [node.capacity for node in self.layout.problem.nodes]
        work: list[Terms] = [[] for _ in capacity]
        for piece in self.layout.pieces:
            columns = {host: self.program.column(whole=True) for host in piece.hosts}
            self.at.append(columns)
            self.program.row([(column, 1.0) for column in columns.values()], 1.0, 1.0)
            for host, column in columns.items():
                if piece.cost and capacity[host] is not None:
                    work[host].append((column, float(piece.cost)))
        for terms, limit in zip(work, capacity, strict=True):
            if terms and limit is not None:
                self._bounded(terms, float(limit))

    def _bounded(self, terms: Iterable[tuple[int, float]], limit: float) -> None:
        """Loads within a limit; what alone exceeds it cannot be.

        The row is scaled, as the solver's tolerance is absolute and that of a plan a part of the
        limit.
        """
        load_max = limit * (1 + ROOM_RELATIVE)
        fitting = []
        for column, load in terms:
            if load > load_max:
                self.program.upper[column] = 0.0
            elif load:
                fitting.append((column, load / limit * SCALED))
        if fitting:
            self.program.row(fitting, -np.inf, SCALED * (1 + ROOM_RELATIVE))

    # --- streams ------------------------------------------------------------------------------

    def _stream(self, stream: Stream) -> None:
        """Add what a stream costs, and which links carry it."""
        ends = [*stream.consumers, *(-1 - node for node in stream.destinations)]
        single = len(ends) == 1 and (stream.piece is None or ends[0] < 0)
        if single and not self.limited:
            self._straight(stream, ends[0])
            return
        whole = self.limited or len(ends) > 1
        used = [self.program.column(stream.rate, whole=whole) for _ in self.arcs]
        self.carries[stream.name], self.rates[stream.name] = used, float(stream.rate)
        self._units(stream, ends, used)

    def _straight(self, stream: Stream, end: int) -> None:
        """From or to a broker that is given, the shortest way is the price of the other end."""
        if stream.piece is None:
            place, columns = stream.origin, self.at[end]
        else:
            place, columns = -1 - end, self.at[stream.piece]
        assert place is not None
        for host, column in columns.items():
            self._shortest(column, stream.rate, place, host)

    def _shortest(self, column: int, rate: Number, a: int, b: int) -> None:
        """Have a column cost the shortest way between two brokers; without one it must be 0."""
        hops = self.hops[a].get(b)
        if hops is None:
            self.program.upper[column] = 0.0
        else:
            self.program.cost[column] += float(rate) * hops

    def _units(self, stream: Stream, ends: Sequence[int], used: Sequence[int]) -> None:
        """One unit to each end; a link carries the stream if it carries any of them."""
        program = self.program
        for end in ends:
            units = used if len(ends) == 1 else [program.column() for _ in self.arcs]
            if units is not used:
                for unit, carrying in zip(units, used, strict=True):
                    program.row([(unit, 1.0), (carrying, -1.0)], -np.inf, 0.0)
            source = {} if stream.piece is None else self.at[stream.piece]
            target = {} if end < 0 else self.at[end]
            self._balance(units, source, target, (stream.origin, -1 - end))

    def _balance(
        self,
        units: Sequence[int],
        source: Mapping[int, int],
        target: Mapping[int, int],
        fixed: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Have what leaves a broker, less what comes in, be what begins there less what ends there.

        It begins and ends by the columns of brokers, or at one that is `fixed`.
        """
        begin, end = fixed
        for node in range(len(self.net.names)):
            terms = [(units[number], 1.0) for number in self.outward[node]]
            terms += [(units[number], -1.0) for number in self.inward[node]]
            if node in source:
                terms.append((source[node], -1.0))
            if node in target:
                terms.append((target[node], 1.0))
            amount = (node == begin) - (node == end)
            self.program.row(terms, amount, amount)

    def _aggregate(self, aggregate: Aggregate) -> None:
        """Send one unit to the header from wherever there is a partial."""
        program = self.program
        header = self.at[aggregate.header]
        hosts = sorted({host for piece in aggregate.partials for host in self.at[piece]})
        met: dict[tuple[int, int], int] = {}
        self.meetings.append(Meeting(aggregate, met))
        for host in hosts:
            sending = program.column()
            for piece in aggregate.partials:
                if host in self.at[piece]:
                    program.row([(self.at[piece][host], 1.0), (sending, -1.0)], -np.inf, 0.0)
            arriving = {}
            for node, column in header.items():
                arriving[node] = program.column()
                met[host, node] = arriving[node]
                program.row([(arriving[node], 1.0), (column, -1.0)], -np.inf, 0.0)
            if self.limited:
                self._partial(aggregate, host, sending, arriving)
            else:
                terms = [(column, 1.0) for column in arriving.values()]
                program.row([*terms, (sending, -1.0)], 0.0, 0.0)
                for node, column in arriving.items():
                    self._shortest(column, aggregate.rate, host, node)

    def _partial(
        self, aggregate: Aggregate, host: int, sending: int, arriving: dict[int, int]
    ) -> None:
        """The links that the partial of one broker takes to the header."""
        name = partial_name(aggregate.task, self.net.names[host])
        used = [self.program.column(aggregate.rate, whole=True) for _ in self.arcs]
        self.carries[name], self.rates[name] = used, float(aggregate.rate)
        self._balance(used, {host: sending}, arriving)

    def _limits(self) -> None:
        """Limit what links carry and brokers send."""
        groups = [([number], self.net.limits.get(arc)) for number, arc in enumerate(self.arcs)]
        nodes = enumerate(self.layout.problem.nodes)
        groups += [(self.outward[number], node.egress) for number, node in nodes]
        for numbers, limit in groups:
            if limit is not None:
                terms = [
                    (used[number], self.rates[name])
                    for name, used in self.carries.items()
                    for number in numbers
                ]
                self._bounded(terms, float(limit))

    def plan(self, values: Sequence[float]) -> Plan:
        """The plan that a solution means."""
        hosts = tuple(
            max(columns, key=lambda host: (values[columns[host]], -host)) for columns in self.at
        )
        names, routes = self.net.names, {}
        for stream in carried(self.layout, hosts):
            if (used := self.carries.get(stream.name)) is not None:
                pairs = zip(self.arcs, used, strict=True)
                chosen = [arc for arc, column in pairs if values[column] > 0.5]
                tree = trimmed(stream.source, stream.targets, chosen)
                if tree != sorted(self.net.canonical(stream.source, stream.targets)[0]):
                    routes[stream.name] = tuple((names[a], names[b]) for a, b in tree)
        return Plan(hosts, routes)
