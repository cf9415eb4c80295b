"""When a search ends.

Owns the criteria. Must not know any search. Invariant: a criterion is asked between steps only, so
that each step is done whole and the same steps give the same plan.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: steps so far, and the steps at which it last found a better plan."""

    steps: int
    improved_at: int
    feasible: bool


class Stop(Protocol):
    """Says whether a search ends here."""

    def __call__(self, progress: Progress) -> bool:
        """True: the search ends."""
        ...


@dataclass(frozen=True)
class Steps:
    """Ends after so many steps: the same plan on any machine."""

    limit: int

    def __call__(self, progress: Progress) -> bool:
        """True: the search ends."""
        return progress.steps >= self.limit


@dataclass(frozen=True)
class Stalled:
    """Ends where so many steps found nothing better, once a plan is feasible."""

    limit: int

    def __call__(self, progress: Progress) -> bool:
        """True: the search ends."""
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
        """True: the search ends."""
        return self.clock() - self.began_s >= self.limit_s


@dataclass(frozen=True)
class First:
    """Ends as soon as one of several does."""

    stops: tuple[Stop, ...]

    def __call__(self, progress: Progress) -> bool:
        """True: the search ends."""
        return any(stop(progress) for stop in self.stops)
