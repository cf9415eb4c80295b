"""How hard the rounds look for a better plan in a broker that has other work to do.

Owns the effort. Must not know what is planned. Invariant: beyond the first descent a look takes
about so many steps and no more. In that descent each task that runs here is tried at each broker of
the vicinity, with what shares its inputs. A thorough look, at those of others too, is bounded by
itself, and is taken in slices between which all else has its turn.
"""

from __future__ import annotations

from broker.core.coordinator.bounds import LOOK_STEPS, CoordinatorSettings
from planner.rounds.improve import Effort
from planner.rounds.settings import Settings
from planner.rounds.tables import Standing

AGAIN = 30  # times what is tried once is tried after a kick, with all that it draws along in groups


def rounds_settings(
    settings: CoordinatorSettings, standing: Standing | None = None, me: int = 0
) -> Settings:
    """How the rounds plan that network from this broker."""
    usual = Effort()
    effort = usual
    if standing is not None and standing.layout.pieces:
        tried, pieces = _kick_steps(standing, me, settings.radius)
        kicks = max(1, LOOK_STEPS // max(1, tried))
        effort = Effort(
            min(usual.kicks, kicks),
            min(usual.kicks_for_each, kicks / pieces),
            usual.worse,
        )
    price = settings.price_percent / 100
    return Settings(radius=settings.radius, price=price, effort=effort)


def _kick_steps(standing: Standing, me: int, radius: int) -> tuple[int, int]:
    """(steps after one kick, which has all that shares an input tried anew; pieces looked at)."""
    layout, tree = standing.layout, standing.tree
    view = len(tree.within(me, radius))
    part = view / max(1, len(tree.hops(me)))
    pieces = max(1, round(len(layout.pieces) * part))
    ends = sum(len(one.consumers) + 1 for one in layout.streams)
    return round(AGAIN * 2 * view * ends * part), pieces
