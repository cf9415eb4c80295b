"""The least flow, by a mixed-integer program: for small problems, and to measure searches with.

Owns the way to HiGHS. Must not know the formulation's columns, nor how a search works. Invariant:
what is called a bound holds for every plan of the problem, with any routes.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from planner.flow import evaluate
from planner.layout import Layout
from planner.plan import Plan
from planner.problem import NoSolverError
from planner.program import SCALED, Formulation, Program

GAP = 1e-6  # of the flow: a bound as near as that is reached
GRAIN_SPARE = 1e-3  # of what flows are multiples of, so that rounding proves nothing
WHOLE_MAX = 1e9  # the solver counts in fractions, in which larger sums are not exact enough

Tighten = Callable[[Any, Formulation, float, int, Callable[[], float]], float]
"""Adds rows to a program; is given HiGHS, the scale of costs, the threads and the time spent."""


@dataclass(frozen=True)
class Optimum:
    """Report HiGHS's plan, if any; what no plan can be below; and whether that was reached."""

    plan: Plan | None
    flow: float
    bound: float
    proven: bool
    infeasible: bool
    interrupted: bool = False


def solve(
    layout: Layout,
    time_limit_s: float,
    start: Plan | None = None,
    *,
    threads: int = 0,
    clock: Callable[[], float] = time.monotonic,
    tighten: Tighten | None = None,
) -> Optimum:
    """Find the best plan by HiGHS within a time by that clock; `start` is a plan to improve on.

    `tighten` adds rows that every plan keeps and hands back a flow that they prove. An interruption
    of HiGHS ends it as its time does. Raises NoSolverError where HiGHS is missing or the problem is
    too large.
    """
    try:
        import highspy
    except ImportError:
        sentence = "the optimum needs HiGHS: install headwater with its extra, headwater[optimal]"
        raise NoSolverError(sentence) from None
    began_s = clock()

    def spent() -> float:
        return (clock() - began_s) / time_limit_s if time_limit_s > 0 else math.inf

    formulation = Formulation(layout)
    scale = max(formulation.program.cost, default=0.0) / SCALED or 1.0
    grain = _grain(layout)
    least = 0.0
    if tighten is not None:
        least = tighten(highspy, formulation, scale, threads, spent) * (1 - GAP)
    halt = Event()
    highs = solver(highspy, threads, lambda: halt.is_set() or spent() >= 1)
    highs.setOptionValue("mip_abs_gap", max(1e-9, grain / scale / 2))
    highs.passModel(as_lp(highspy, formulation.program, scale))
    if start is not None:
        _begin_with(highs, formulation, start)
    _run(highs, halt)
    outcome = _outcome(highspy, highs, formulation, (scale, grain, least))
    return replace(outcome, interrupted=halt.is_set())


def _run(highs: Any, halt: Event) -> None:
    """Have HiGHS solve until it is done; an interruption sets `halt`, which ends it.

    It runs in a thread: an interruption that came up in its callbacks would take its plan with it.
    """
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(highs.run)
        while not run.done():
            try:
                run.result()
            except KeyboardInterrupt:  # any more of them change nothing
                halt.set()
        run.result()  # raises what HiGHS did


def _grain(layout: Layout) -> int:
    """Return what the flow of every plan is a multiple of; 0 if rates are not whole."""
    rates = [stream.rate for stream in layout.streams]
    rates += [aggregate.rate for aggregate in layout.aggregates]
    whole = [rate for rate in rates if isinstance(rate, int)]
    return math.gcd(*whole) if len(whole) == len(rates) and sum(whole) < WHOLE_MAX else 0


def _begin_with(highs: Any, formulation: Formulation, start: Plan) -> None:
    """Tells the solver where the pieces of a plan are."""
    columns = np.array([c for places in formulation.at for c in places.values()], dtype=np.int32)
    pairs = zip(formulation.at, start.hosts, strict=True)
    chosen = {places[host] for places, host in pairs if host in places}
    values = np.array([float(column in chosen) for column in columns.tolist()])
    highs.setSolution(len(columns), columns, values)


def _outcome(
    highspy: Any, highs: Any, formulation: Formulation, scales: tuple[float, int, float]
) -> Optimum:
    """Return what came of it; told are the scale of costs, the grain of flows, and a bound."""
    scale, grain, least = scales
    status = highs.getModelStatus()
    info = highs.getInfo()
    statuses = highspy.HighsModelStatus
    bound = max(least, float(info.mip_dual_bound) * scale)
    if grain and math.isfinite(bound):  # the next flow that a plan can have
        bound = max(bound, grain * math.ceil(bound * (1 - GAP) / grain - GRAIN_SPARE))
    if status == statuses.kInfeasible:
        return Optimum(None, float("inf"), float("inf"), proven=True, infeasible=True)
    empty = status == statuses.kModelEmpty  # nothing is to be placed or sent: the flow is 0
    feasible = highspy.SolutionStatus.kSolutionStatusFeasible
    if info.primal_solution_status != feasible and not empty:
        return Optimum(None, float("inf"), bound, proven=False, infeasible=False)
    plan = formulation.plan(list(highs.getSolution().col_value))
    flow = float(evaluate(formulation.layout, plan).flow)
    proven = status == statuses.kOptimal or empty or bound >= flow
    return Optimum(plan, flow, min(bound, flow), proven=proven, infeasible=False)


def solver(highspy: Any, threads: int, late: Callable[[], bool]) -> Any:
    """A solver that ends when it is late."""
    highs: Any = highspy.Highs()
    highs.resetGlobalScheduler(True)  # else it refuses another number of threads
    options = {"output_flag": False, "mip_rel_gap": GAP, "random_seed": 1, "threads": threads}
    for option, value in options.items():
        highs.setOptionValue(option, value)

    def watch(event: Any) -> None:
        if late():
            event.interrupt()

    for asks in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        asks.subscribe(watch)
    return highs


def as_lp(highspy: Any, program: Program, scale: float) -> Any:
    """A program as the solver takes it, its costs divided by `scale`."""
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
