"""When a search ends.

Owns the criteria. Must not know any search. Invariant: a criterion is asked between steps only, so
that each step is done whole and the same steps give the same plan.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Progress:
    """Tell stop criteria and callbacks how far a search is.

    `improved_at` are the steps at which it last found a better plan, `feasible` says whether that
    keeps all limits, `cost` is the flow of the placement at hand, `best` that of the best plan,
    and `excess` by what that breaks limits. `effort` is what the evaluator has looked at so far,
    and `moves` are those that were kept, by kind.
    """

    steps: int
    improved_at: int
    feasible: bool
    cost: float = 0.0
    best: float = 0.0
    excess: float = 0.0
    effort: int = 0
    moves: Mapping[str, int] = field(default_factory=dict)


Stop = Callable[[Progress], bool]
"""Says whether a search ends here."""


def after_steps(limit: int) -> Stop:
    """End after so many steps: the same plan on any machine."""
    return lambda progress: progress.steps >= limit


def after_effort(limit: int) -> Stop:
    """End after so much effort, however much each step takes: the same plan on any machine."""
    return lambda progress: progress.effort >= limit


def when_stalled(steps: int) -> Stop:
    """End where so many steps found nothing better, once a plan is feasible."""
    return lambda progress: progress.feasible and progress.steps - progress.improved_at >= steps


def after_seconds(limit_s: float, clock: Callable[[], float] = time.monotonic) -> Stop:
    """End after a time; how many steps that allows differs between machines."""
    end = clock() + limit_s
    return lambda _: clock() >= end


def at_first(*stops: Stop) -> Stop:
    """End as soon as one of several does."""
    return lambda progress: any(stop(progress) for stop in stops)
