"""The ways to plan by name: one function from a layout to a plan and what it comes to.

Owns the names and what each needs. Must not know documents or terminals. Invariant: the evaluation
handed back is that of the plan handed back, counted anew and not by the search.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner.flow import Evaluation, evaluate
from planner.history import SearchHistory, SearchSample
from planner.layout import Layout
from planner.plan import Plan
from planner.search.instance import Instance

METHODS = ("tabu", "local", "hop", "central", "greedy", "optimal")
TIME_LIMIT_S = 10.0
RADIUS = 3
STALL_STEPS = 8000  # and STALL_STEPS_A_PIECE: without a better plan, a search ends
STALL_STEPS_A_PIECE = 500
START_SHARE = 0.1  # of the time for an optimum goes to finding a plan to begin with


@dataclass(frozen=True)
class Wanted:
    """Set how to plan: `steps`, if given, makes a search the same on every machine."""

    method: str = "tabu"
    radius: int = RADIUS
    seed: int = 1
    time_limit_s: float = TIME_LIMIT_S
    steps: int | None = None


@dataclass(frozen=True)
class Found:
    """A plan, what it comes to, and how it was found.

    `bound` is a flow that no plan can be below, where the method proves one; `complete` says that
    neither time nor an interruption ended the search. `history` is of a search alone.
    """

    plan: Plan
    evaluation: Evaluation
    steps: int = 0
    seconds: float = 0.0
    bound: float | None = None
    complete: bool = True
    interrupted: bool = False
    history: SearchHistory = field(default_factory=SearchHistory)


Tell = Callable[[SearchSample], None]
"""Is told where a search is, after each step."""


def find(layout: Layout, wanted: Wanted, tell: Tell | None = None) -> Found:
    """A plan by the method that is wanted.

    Raises ProblemError where the method needs what the problem lacks, `NoSolverError` where
    there is no solver.
    """
    from planner import baselines
    from planner.search.start import greedy

    began = time.monotonic()
    if wanted.method in {"tabu", "optimal"}:
        result = _search(layout, wanted, tell)
        if wanted.method == "optimal" and not result.interrupted:
            result = _optimum(layout, wanted, result, time.monotonic() - began)
    else:
        instance = Instance(layout)
        if wanted.method == "local":
            plan = baselines.local(instance, wanted.radius)
        elif wanted.method == "central":
            plan = baselines.central(instance)
        else:
            # Hop-based: all streams count alike (paper 003, section 5).
            plan = Plan(tuple(greedy(instance, alike=wanted.method == "hop")))
        result = Found(plan, evaluate(layout, plan, instance.network))
    return replace(result, seconds=time.monotonic() - began)


def patience_steps(layout: Layout) -> int:
    """After how many steps without a better plan a search ends before its time."""
    return STALL_STEPS + STALL_STEPS_A_PIECE * len(layout.pieces)


def _search(layout: Layout, wanted: Wanted, tell: Tell | None) -> Found:
    from planner.search import stops
    from planner.search.search import Search, as_plan

    share = START_SHARE if wanted.method == "optimal" else 1.0
    clock = stops.after_seconds(wanted.time_limit_s * share)
    stop = stops.at_first(clock, stops.when_stalled(patience_steps(layout)))
    if wanted.steps is not None:
        stop = stops.after_steps(wanted.steps)
    instance = Instance(layout)
    search = Search(instance, wanted.seed)
    history, began = SearchHistory(), time.monotonic()

    def observe(progress: stops.Progress, *, last: bool = False) -> None:
        seconds, cost = time.monotonic() - began, instance.given(progress.cost)
        best, excess = instance.given(progress.best), progress.excess
        sample = SearchSample(seconds, progress.steps, cost, best, excess)
        history.note(sample, progress.moves, last=last)
        if tell is not None and not last:
            tell(sample)

    # An interruption ends a search as its time does: what it has found is of use to who waited.
    interrupted = False
    try:
        search.run(stop, observe)
    except KeyboardInterrupt:
        # What is best is replaced as a whole, so it is a plan whatever was going on.
        interrupted = True
    observe(replace(search.progress(), cost=search.best.flow), last=True)
    plan = as_plan(instance, search.best)
    # More time would not have led on where steps were asked for, or where the search stalled.
    complete = not interrupted and (wanted.steps is not None or not clock(search.progress()))
    evaluation = evaluate(layout, plan, instance.network)
    return Found(
        plan, evaluation, search.steps,
        complete=complete, interrupted=interrupted, history=history,
    )  # fmt: skip


def _optimum(layout: Layout, wanted: Wanted, start: Found, spent_s: float) -> Found:
    from planner.optimal import solve

    begin = start.plan if start.evaluation.feasible else None
    try:
        best = solve(layout, max(1.0, wanted.time_limit_s - spent_s), begin)
    except KeyboardInterrupt:  # while the program was written down
        return replace(start, complete=False, interrupted=True)
    plan, evaluation = start.plan, start.evaluation
    if best.plan is not None:
        judged = evaluate(layout, best.plan)
        if (not judged.feasible, judged.flow) < (not evaluation.feasible, evaluation.flow):
            plan, evaluation = best.plan, judged
    bound = None if best.infeasible else best.bound
    return replace(
        start, plan=plan, evaluation=evaluation, bound=bound,
        complete=best.proven, interrupted=best.interrupted and not best.proven,
    )  # fmt: skip
