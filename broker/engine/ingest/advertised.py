"""What sources said about themselves: types, location, position and uncertainty.

Owns the advertisements that hold at this moment. Must not know clocks or routing. Invariant: an
event gets what is valid when it arrives; a later advertisement changes no event taken in before.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import msgspec

from broker.engine.event.event import MetricPosition, Position
from broker.engine.limits import LimitReachedError, Limits

LATITUDE_MAX = 90.0
LONGITUDE_MAX = 180.0


def position_fault(position: Position) -> str | None:
    """Explain what is wrong with a position, if anything; its shape has been decoded already."""
    if isinstance(position, MetricPosition):
        height = 0.0 if position.z is None else position.z
        if isfinite(position.x) and isfinite(position.y) and isfinite(height):
            return None
        return "x, y and z must be finite"
    latitude, longitude = position[0], position[1]
    if not -LATITUDE_MAX <= latitude <= LATITUDE_MAX:
        return f"found latitude {latitude!r}, expected -90..90"
    if not -LONGITUDE_MAX <= longitude <= LONGITUDE_MAX:
        return f"found longitude {longitude!r}, expected -180..180"
    if len(position) > 2 and not isfinite(position[2]):
        return "the height must be finite"
    return None


# DSA = (a, p) of paper 002 (IV.A), with as many types as a device has, and with what events of
# small devices need not repeat: a position is some 25 bytes in each.
class Advertisement(msgspec.Struct, frozen=True, kw_only=True):
    """Hold what a source states about itself; None is what it leaves out.

    `uncertainty` is ε in ms; no event of the source is to last longer than `lasts_ms_max`.
    """

    source: str
    types: tuple[str, ...] = ()
    location: str | None = None
    position: Position | None = None
    uncertainty: int | None = None
    lasts_ms_max: int | None = None


class Advertised:
    """The advertisements in force, by source.

    `describing` are those that supply something to events, `vague` tells whether any supplies ε.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all: dict[str, Advertisement] = {}
        self.describing: dict[str | None, Advertisement] = {}
        self.vague = False

    def advertise(self, advertisement: Advertisement) -> None:
        """Take an advertisement in the place of the source's earlier one.

        Raises ValueError where it says what cannot be, LimitReachedError.
        """
        self._check(advertisement)
        source = advertisement.source
        if source not in self._all and len(self._all) >= self._limits.sources_max:
            raise LimitReachedError("sources_max", self._limits.sources_max, "sources")
        # The latest counts as a whole: a source that leaves out its position has moved away from
        # it, as it cannot take back a single key.
        self._all[source] = advertisement
        self.describing.pop(source, None)
        if (advertisement.location, advertisement.position, advertisement.uncertainty) != (
            None,
            None,
            None,
        ):
            self.describing[source] = advertisement
        self._note()

    def withdraw(self, source: str) -> bool:
        """Forget a source; whether it was known."""
        known = self._all.pop(source, None)
        self.describing.pop(source, None)
        self._note()
        return known is not None

    def of(self, source: str) -> Advertisement | None:
        """The advertisement in force."""
        return self._all.get(source)

    def state(self) -> list[Any]:
        """Plain data."""
        return [msgspec.to_builtins(one) for one in self._all.values()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._all.clear()
        self.describing.clear()
        for one in state:
            self.advertise(msgspec.convert(one, Advertisement))
        self._note()

    def _note(self) -> None:
        # Decoding into exact classes fills in an uncertainty of 0 where there is none, so it steps
        # aside while anybody's default is another.
        self.vague = any(one.uncertainty for one in self.describing.values())

    def _check(self, advertisement: Advertisement) -> None:
        chars_max = self._limits.name_chars_max
        for name, value in (
            ("source", advertisement.source),
            ("location", advertisement.location),
        ):
            if value is not None and len(value) > chars_max:
                raise ValueError(f"{name} has {len(value)} characters, at most {chars_max} allowed")
        if not advertisement.source:
            raise ValueError("an advertisement needs a source")
        if len(advertisement.types) > self._limits.types_max:
            raise ValueError(f"more than {self._limits.types_max} types are advertised")
        epsilon = advertisement.uncertainty
        if epsilon is not None and not 0 <= epsilon <= self._limits.uncertainty_ms_max:
            raise ValueError(
                f"found uncertainty {epsilon}, expected 0..{self._limits.uncertainty_ms_max} ms"
            )
        lasts_ms, most_ms = advertisement.lasts_ms_max, self._limits.event_duration_ms_max
        if lasts_ms is not None and not 0 <= lasts_ms <= most_ms:
            raise ValueError(f"found lasts_ms_max {lasts_ms}, expected 0..{most_ms} ms")
        if advertisement.position is not None:
            fault = position_fault(advertisement.position)
            if fault is not None:
                raise ValueError(fault)
