"""When a search ends.

Owns the criteria. Must not know any search. Invariant: a criterion is asked between steps only, so
that each step is done whole and the same steps give the same plan.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


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


class Stop(Protocol):
    """Says whether a search ends here."""

    def __call__(self, progress: Progress) -> bool:
        """Return whether the search ends."""
        ...


@dataclass(frozen=True)
class Steps:
    """Ends after so many steps: the same plan on any machine."""

    limit: int

    def __call__(self, progress: Progress) -> bool:
        """Return whether the search ends."""
        return progress.steps >= self.limit


@dataclass(frozen=True)
class Spent:
    """Ends after so much effort, however much each step takes: the same plan on any machine."""

    limit: int

    def __call__(self, progress: Progress) -> bool:
        """Return whether the search ends."""
        return progress.effort >= self.limit


@dataclass(frozen=True)
class Stalled:
    """Ends where so many steps found nothing better, once a plan is feasible."""

    limit: int

    def __call__(self, progress: Progress) -> bool:
        """Return whether the search ends."""
        return progress.feasible and progress.steps - progress.improved_at >= self.limit


@dataclass
class Seconds:
    """Ends after a time; how many steps that allows differs between machines."""

    limit_s: float
    clock: Callable[[], float] = time.monotonic
    began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.began_s = self.clock()

    def __call__(self, progress: Progress) -> bool:  # noqa: ARG002
        """Return whether the search ends."""
        return self.clock() - self.began_s >= self.limit_s


@dataclass(frozen=True)
class First:
    """Ends as soon as one of several does."""

    stops: tuple[Stop, ...]

    def __call__(self, progress: Progress) -> bool:
        """Return whether the search ends."""
        return any(stop(progress) for stop in self.stops)
