"""How hard the rounds look for a better plan in a broker that has other work to do.

Owns the effort. Must not know what is planned. Invariant: a look takes no more than so many tries,
however many tasks there are.
"""

from __future__ import annotations

from broker.core.coordinator.bounds import KICKS_MAX, CoordinatorSettings
from planner.rounds.improve import Effort
from planner.rounds.settings import Settings

KICKS_FIRST = 10


def rounds_settings(settings: CoordinatorSettings, pieces: int) -> Settings:
    """How the rounds plan so many pieces."""
    most = (KICKS_MAX - KICKS_FIRST) / max(pieces, 1)
    effort = Effort()
    return Settings(
        radius=settings.radius,
        price=settings.price_percent / 100,
        effort=Effort(
            KICKS_FIRST,
            min(effort.kicks_for_each, most),
            effort.worse,
            min(effort.deep_for_each, most),
        ),
    )
