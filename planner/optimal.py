"""The least flow, by a mixed-integer program: for small problems, and to measure searches with.

Owns the formulation and its way to HiGHS. Must not know how a search works. Invariant: every plan
of the problem, with any routes, is a solution of the program at its flow; so the bound that HiGHS
proves holds for all plans.

Each stream has, for each of its ends, a flow of one unit from where it is sent to where it is
wanted; a link carries the stream if it carries any of these. Where a piece runs decides where a
unit enters and leaves. An aggregate's partials, each with one end, are flows of their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.flow import ROOM_RELATIVE, evaluate
from planner.layout import Aggregate, Layout, Stream, carried
from planner.network import Arc, Network
from planner.plan import Plan

SCALED = 1e4  # what limits, and the greatest rate of a stream, come to in the program
VARIABLES_MAX = 3_000_000  # beyond this HiGHS would need more memory than a usual machine has


class NoSolverError(RuntimeError):
    """The extra that brings HiGHS is not installed, or the problem is too large for it."""


@dataclass(frozen=True)
class Optimum:
    """What HiGHS found: a plan, if any; what no plan can be below; whether that was reached."""

    plan: Plan | None
    flow: float
    bound: float
    proven: bool
    infeasible: bool


@dataclass
class _Program:
    """Columns and rows as HiGHS takes them."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    index: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)

    def column(self, cost: float = 0.0, *, whole: bool = False, upper: float = 1.0) -> int:
        self.cost.append(float(cost))
        self.upper.append(upper)
        self.whole.append(whole)
        if len(self.cost) > VARIABLES_MAX:
            raise NoSolverError("the problem is too large for an exact method")
        return len(self.cost) - 1

    def row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        for column, value in terms:
            self.index.append(column)
            self.value.append(value)
        self.starts.append(len(self.index))
        self.low.append(low)
        self.high.append(high)


class _Formulation:
    """The program of one layout."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.net = Network(layout.problem)
        self.arcs: list[Arc] = [
            (a, b) for a, others in enumerate(self.net.neighbours) for b in others
        ]
        self.outward: list[list[int]] = [[] for _ in self.net.names]
        self.inward: list[list[int]] = [[] for _ in self.net.names]
        for number, (a, b) in enumerate(self.arcs):
            self.outward[a].append(number)
            self.inward[b].append(number)
        egress = [node.egress for node in layout.problem.nodes]
        self.limited = bool(self.net.limits) or any(x is not None for x in egress)
        self.program = _Program()
        self.at: list[dict[int, int]] = []
        self.carries: dict[str, list[int]] = {}
        self.rates: dict[str, float] = {}
        self._pieces()
        for stream in layout.streams:
            self._stream(stream)
        for aggregate in layout.aggregates:
            self._aggregate(aggregate)
        self._limits()

    def _pieces(self) -> None:
        """Each piece at one allowed broker, within the brokers' capacities."""
        capacity = [node.capacity for node in self.layout.problem.nodes]
        work: list[list[tuple[int, float]]] = [[] for _ in capacity]
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
        most = limit * (1 + ROOM_RELATIVE)
        fitting = []
        for column, load in terms:
            if load > most:
                self.program.upper[column] = 0.0
            elif load:
                fitting.append((column, load / limit * SCALED))
        if fitting:
            self.program.row(fitting, -np.inf, SCALED * (1 + ROOM_RELATIVE))

    def _stream(self, stream: Stream) -> None:
        """One unit to each end; a link carries the stream if it carries any of them."""
        ends = [*stream.consumers, *(-1 - node for node in stream.destinations)]
        if not ends:
            return
        program = self.program
        whole = self.limited or len(ends) > 1
        used = [program.column(stream.rate, whole=whole) for _ in self.arcs]
        self.carries[stream.name], self.rates[stream.name] = used, float(stream.rate)
        for end in ends:
            units = used if len(ends) == 1 else [program.column() for _ in self.arcs]
            if units is not used:
                for unit, carrying in zip(units, used, strict=True):
                    program.row([(unit, 1.0), (carrying, -1.0)], -np.inf, 0.0)
            source = {} if stream.piece is None else self.at[stream.piece]
            target = {} if end < 0 else self.at[end]
            for node in range(len(self.net.names)):
                terms = self._balance(node, units)
                amount = (node == stream.origin) - (end == -1 - node)
                if node in source:
                    terms.append((source[node], -1.0))
                if node in target:
                    terms.append((target[node], 1.0))
                program.row(terms, amount, amount)

    def _balance(self, node: int, units: Sequence[int]) -> list[tuple[int, float]]:
        """What leaves a broker less what comes in."""
        terms = [(units[number], 1.0) for number in self.outward[node]]
        return terms + [(units[number], -1.0) for number in self.inward[node]]

    def _aggregate(self, aggregate: Aggregate) -> None:
        """Where there is a partial, one unit goes from there to the header."""
        program = self.program
        header = self.at[aggregate.header]
        hosts = sorted({host for piece in aggregate.partials for host in self.at[piece]})
        for host in hosts:
            here = program.column()
            for piece in aggregate.partials:
                if host in self.at[piece]:
                    program.row([(self.at[piece][host], 1.0), (here, -1.0)], -np.inf, 0.0)
            arriving = {}
            for node, column in header.items():
                arriving[node] = program.column()
                program.row([(arriving[node], 1.0), (column, -1.0)], -np.inf, 0.0)
            if self.limited:
                self._partial(aggregate, host, here, arriving)
            else:
                hops = self.net.hops_from(host)
                terms = [(column, 1.0) for column in arriving.values()]
                program.row([*terms, (here, -1.0)], 0.0, 0.0)
                for node, column in arriving.items():
                    if hops[node] < 0:
                        program.upper[column] = 0.0
                    program.cost[column] = float(aggregate.rate) * max(0, hops[node])

    def _partial(
        self, aggregate: Aggregate, host: int, here: int, arriving: dict[int, int]
    ) -> None:
        """The links that the partial of one broker takes to the header."""
        name = f"{aggregate.task}/partial@{self.net.names[host]}"
        used = [self.program.column(aggregate.rate, whole=True) for _ in self.arcs]
        self.carries[name], self.rates[name] = used, float(aggregate.rate)
        for node in range(len(self.net.names)):
            terms = self._balance(node, used)
            if node == host:
                terms.append((here, -1.0))
            if node in arriving:
                terms.append((arriving[node], 1.0))
            self.program.row(terms, 0.0, 0.0)

    def _limits(self) -> None:
        """What links carry and brokers send."""
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
        hosts = tuple(max(at, key=lambda host: (values[at[host]], -host)) for at in self.at)
        names, routes = self.net.names, {}
        for stream in carried(self.layout, hosts):
            used = self.carries.get(stream.name)
            if used is None:
                continue
            arcs = [
                arc for arc, column in zip(self.arcs, used, strict=True) if values[column] > 0.5
            ]
            routes[stream.name] = tuple((names[a], names[b]) for a, b in _tree(stream.source, arcs))
        kept = {}
        for stream in carried(self.layout, hosts):
            if stream.name in routes:
                canonical, _ = self.net.canonical(stream.source, stream.targets)
                arcs_named = _needed(self.net, routes[stream.name], stream.targets)
                if sorted(arcs_named) != sorted((names[a], names[b]) for a, b in canonical):
                    kept[stream.name] = arcs_named
        return Plan(hosts, kept)


def _tree(source: int, arcs: Sequence[Arc]) -> list[Arc]:
    """The links by which a walk from the source first gets anywhere."""
    met, ring, kept = {source}, [source], []
    for node in ring:
        for a, b in arcs:
            if a == node and b not in met:
                met.add(b)
                ring.append(b)
                kept.append((a, b))
    return kept


def _needed(
    net: Network, arcs: Sequence[tuple[str, str]], targets: Sequence[int]
) -> tuple[tuple[str, str], ...]:
    """Those links of a tree that lead to a target."""
    parent = {b: a for a, b in arcs}
    kept: dict[tuple[str, str], None] = {}
    for target in targets:
        name = net.names[target]
        while name in parent:
            kept[parent[name], name] = None
            name = parent[name]
    return tuple(sorted(kept))


def solve(
    layout: Layout,
    time_limit_s: float,
    start: Plan | None = None,
    *,
    gap: float = 1e-6,
    threads: int = 0,
) -> Optimum:
    """The best plan by HiGHS within a time; `start` is a plan to improve on.

    Raises NoSolverError where HiGHS is missing or the problem is too large.
    """
    try:
        import highspy
    except ImportError:
        raise NoSolverError(
            "the optimum needs HiGHS: install headwater with its extra, headwater[optimal]"
        ) from None
    formulation = _Formulation(layout)
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.resetGlobalScheduler(True)  # else it refuses another number of threads
    for option, value in (
        ("output_flag", False),
        ("time_limit", float(time_limit_s)),
        ("mip_rel_gap", gap),
        ("mip_abs_gap", 1e-9),
        ("random_seed", 1),
        ("threads", threads),
    ):
        highs.setOptionValue(option, value)
    scale = max(formulation.program.cost, default=0.0) / SCALED or 1.0
    highs.passModel(_as_lp(highspy, formulation.program, scale))
    if start is not None:
        columns = np.array(
            [column for at in formulation.at for column in at.values()], dtype=np.int32
        )
        chosen = {at[h] for at, h in zip(formulation.at, start.hosts, strict=True) if h in at}
        values = np.array([float(column in chosen) for column in columns.tolist()])
        highs.setSolution(len(columns), columns, values)
    highs.run()
    return _outcome(highspy, highs, formulation, scale)


def _as_lp(highspy: Any, program: _Program, scale: float) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.low)
    lp.col_cost_ = np.array(program.cost) / scale
    lp.col_lower_ = np.zeros(len(program.cost))
    lp.col_upper_ = np.array(program.upper)
    lp.row_lower_, lp.row_upper_ = np.array(program.low), np.array(program.high)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(program.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(program.index, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(program.value)
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in program.whole]
    return lp


def _outcome(highspy: Any, highs: Any, formulation: _Formulation, scale: float) -> Optimum:
    status = highs.getModelStatus()
    info = highs.getInfo()
    statuses = highspy.HighsModelStatus
    bound = max(0.0, float(info.mip_dual_bound) * scale)
    if status == statuses.kModelEmpty:  # nothing is to be placed or sent
        plan = formulation.plan([])
        flow = float(evaluate(formulation.layout, plan).flow)
        return Optimum(plan, flow, flow, proven=True, infeasible=False)
    if status == statuses.kInfeasible:
        return Optimum(None, float("inf"), float("inf"), proven=True, infeasible=True)
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Optimum(None, float("inf"), bound, proven=False, infeasible=False)
    plan = formulation.plan(list(highs.getSolution().col_value))
    flow = float(evaluate(formulation.layout, plan).flow)
    proven = status == statuses.kOptimal
    return Optimum(plan, flow, min(bound, flow), proven=proven, infeasible=False)
