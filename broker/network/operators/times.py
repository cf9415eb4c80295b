"""What is known of times in the whole network: what makes δt.

Owns the greatest uncertainty, drift and duration that count for a router. Must not know operators,
patterns or events: how far apart those of an occurrence lie, engine/pattern/times/timing.py says.
Invariant: nothing that a broker takes in exceeds what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from broker.engine.pattern.times.timing import KnownTimes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker.engine.limits import Limits
    from broker.network.replication.time_promises import TimeBound

DAY_MS = 86_400_000  # in ms
WEEK_MS = 604_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Hold what is known of times in the whole network.

    `uncertainty_ms_max`: no event that is taken in has a greater ε. `drift`: ρ, of the worst clock.
    `duration_ms_max`: no event that is taken in lasts longer (Limits.event_duration_ms_max).
    `delta_t_ms_max`: what would have to wait longer for its partners travels at once: brokers on
    the way keep events for so long. `lasts_ms`: by type what holds instead of `duration_ms_max`.
    """

    uncertainty_ms_max: int
    drift: Fraction = Fraction(0)
    duration_ms_max: int = WEEK_MS
    delta_t_ms_max: int = DAY_MS
    lasts_ms: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(limits: Limits, drift_ppm: int) -> Times:
        """Return what events may be like here, and so elsewhere, as all have the same limits."""
        return Times(
            uncertainty_ms_max=limits.uncertainty_ms_max,
            drift=Fraction(drift_ppm, 1_000_000),
            duration_ms_max=limits.event_duration_ms_max,
            delta_t_ms_max=limits.kept_back_ms_max,
        )

    def promised(self, by_type: Mapping[str, TimeBound]) -> Times:
        """Return the same with what is promised of these types, of which a pattern is made."""
        epsilons = [bound.uncertainty_ms for bound in by_type.values()]
        finite = [epsilon for epsilon in epsilons if epsilon is not None]
        uncertainty_ms = self.uncertainty_ms_max
        if len(finite) == len(epsilons):
            uncertainty_ms = min(uncertainty_ms, max(finite, default=0))
        lasts_ms = {
            name: min(bound.lasts_ms, self.duration_ms_max)
            for name, bound in by_type.items()
            if bound.lasts_ms is not None
        }
        return replace(self, uncertainty_ms_max=uncertainty_ms, lasts_ms=lasts_ms)

    def longer(self, limit_ms: int) -> int:
        """Return the greatest nominal distance of two instants at most `limit_ms` apart.

        T(1 + ρ) + 2ε: `within 5 s` with ρ = 1/100 and ε = 150 ms lets 5,350 ms pass. Paper 002 has
        no clocks that differ, and takes T itself for δt.
        """
        # Whole milliseconds: what lies between two of them is no event's distance.
        return floor(limit_ms * (1 + self.drift)) + 2 * self.uncertainty_ms_max

    def known(self, made: Collection[str]) -> KnownTimes:
        """Return what operators are told; of the types `made` by definitions nobody knows."""
        # What a definition makes may last longer than any event that is taken in, and the brokers
        # on the way do not have its text.
        most_ms, lasts_ms = self.duration_ms_max, self.lasts_ms
        return KnownTimes(
            lambda name: None if name in made else lasts_ms.get(name, most_ms), self.longer
        )
