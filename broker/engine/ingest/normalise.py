"""From a decoded payload to an event as the core holds it.

Owns times, defaults, ids and the checks that decoding cannot do. Must not know payload formats.
Invariant: what passes has integer `start` ≤ `end`, an id, an ε and the exact class of its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from broker.engine.event.event import slot_of
from broker.engine.event.identity import digest
from broker.engine.ingest import reasons
from broker.engine.ingest.advertised import Advertised, Advertisement, position_fault
from broker.engine.ingest.faults import Rejection, bounded, rejection
from broker.engine.ingest.times import TIME_MAX_MS, TIME_MIN_MS, parse_time

if TYPE_CHECKING:
    from broker.engine.event.event import Event
    from broker.engine.ingest.registry import TypeEntry
    from broker.engine.limits import Limits

# (reason, what was found)
Fault = tuple[str, str]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Describe how a payload came: what its topic says and when it arrived.

    Without an arrival (a recording is read) there is no future, and no time to stamp with.
    """

    type_name: str | None = None
    source: str | None = None
    arrival_ms: int | None = None


class Normaliser:
    """Completes and checks decoded events."""

    def __init__(self, limits: Limits, advertised: Advertised, *, require_timestamp: bool) -> None:
        self._limits = limits
        self._advertised = advertised
        self._require_timestamp = require_timestamp
        self.stamped = 0

    def latest(self, origin: Origin) -> int:
        """The greatest end that is believed."""
        if origin.arrival_ms is None:
            return TIME_MAX_MS
        # One event from the year 3000 would carry its source's clock there and make all that follow
        # late: paper 001 (3) has no synchronised clocks to rely on, so the future has a bound.
        return min(origin.arrival_ms + self._limits.future_ms_max, TIME_MAX_MS)

    def vague(self, origin: Origin) -> bool:
        """Tell whether a missing ε may stand for an advertised one (the exact form cannot tell)."""
        if not self._advertised.vague:
            return False
        if origin.source is None:
            return True
        advertisement = self._advertised.describing.get(origin.source)
        return advertisement is not None and bool(advertisement.uncertainty)

    # --- readings decoded into the exact or loose class --------------------------------------

    def readings(
        self, events: list[Event], origin: Origin, rejections: list[Rejection]
    ) -> list[Event]:
        """Complete readings in place; those that pass, in their order."""
        latest = self.latest(origin)
        source = origin.source
        describing = self._advertised.describing
        suspects: list[Event] = []
        place: Any
        # Three loops instead of one with all tests: the topic names the source of nearly all
        # events, and each test is paid for every event.
        if source is not None:
            known = describing.get(source)
            for event in events:
                end = event.end
                # A reading is a point: its only time was decoded into `end`.
                event.start = end
                own = event.source
                if own is None:
                    event.source = own = source
                place = event.position
                if (
                    end > latest
                    or own != source
                    or (place is not None and not (place.__class__ is list and on_earth(place)))
                ):
                    suspects.append(event)
                elif known is not None:
                    _supply(event, known)
        elif not describing:
            for event in events:
                end = event.end
                event.start = end
                place = event.position
                if end > latest or (
                    place is not None and not (place.__class__ is list and on_earth(place))
                ):
                    suspects.append(event)
        else:
            for event in events:
                event.start = event.end
            suspects = events
        if not suspects:
            return events
        return self._sifted(events, suspects, origin, rejections)

    def _sifted(
        self,
        events: list[Event],
        suspects: Sequence[Event],
        origin: Origin,
        rejections: list[Rejection],
    ) -> list[Event]:
        latest = self.latest(origin)
        faults: dict[int, Fault] = {}
        for event in suspects:
            fault = self._sourced(event, origin) or self._checked(event, latest)
            if fault is not None:
                faults[id(event)] = fault
        if not faults:
            return events
        for index, event in enumerate(events):
            found = faults.get(id(event))
            if found is not None:
                rejections.append(rejection(*found, index))
        return [event for event in events if id(event) not in faults]

    # --- what was decoded into the lenient class ---------------------------------------------

    def complete(self, event: Event, entry: TypeEntry, origin: Origin, latest: int) -> Fault | None:
        """Complete one event of any form in place and give it its class, or say what is wrong.

        `entry` is that of its type, `latest` is that of the origin.
        """
        # None and 0 differ here: who says 0 knows its clock, and is not given the advertised doubt.
        stated: Any = event.uncertainty  # the lenient class holds None where there is none
        fault = self._sourced(event, origin)
        if fault is not None:
            return fault
        if stated is None:
            known = self._advertised.describing.get(event.source)
            event.uncertainty = (known.uncertainty or 0) if known is not None else 0
        said = event.timestamp
        untimed = False
        if event.start is None and event.end is None:
            if said is not None:
                time_ms = _time_of(said)
                if time_ms is None:
                    return reasons.BAD_TIME, f"found `{bounded(str(said), 60)}` at `timestamp`"
                event.start = event.end = time_ms
            elif origin.arrival_ms is None or self._require_timestamp:
                return reasons.NO_TIME, "there is neither `timestamp` nor `start` and `end`"
            else:
                # The arrival is the best that is known of an event without a time: paper 001 (2)
                # has occurrence and detection usually meet for primitive events.
                event.start = event.end = origin.arrival_ms
                untimed = True
        else:
            fault = self._spanned(event, entry.lasts_ms)
        if fault is None and (event.end > latest or event.position is not None):
            fault = self._checked(event, latest)
        if fault is not None:
            return fault
        event.timestamp = None
        # Last of all: until here the lenient class may hold texts for times, and nobody beyond this
        # line may meet such an event.
        event.__class__ = entry.exact
        self.stamped += untimed
        if not event.id:
            event.id = event_id(event)
        return None

    def _sourced(self, event: Event, origin: Origin) -> Fault | None:
        """Set or check the source, and fill in what its advertisement supplies."""
        if event.source is None:
            event.source = origin.source
        elif origin.source is not None and event.source != origin.source:
            found = f"source `{bounded(event.source, 60)}` on the topic of `{origin.source}`"
            return reasons.TOPIC_MISMATCH, found
        known = self._advertised.describing.get(event.source)
        if known is not None:
            _supply(event, known)
        return None

    def _spanned(self, event: Event, lasts_ms: int | None) -> Fault | None:
        for name, value in (("start", event.start), ("end", event.end)):
            if value is None:
                other = "end" if name == "start" else "start"
                return reasons.BAD_TIME, f"there is `{other}` but no `{name}`"
            time_ms = _time_of(value)
            if time_ms is None:
                return reasons.BAD_TIME, f"found `{bounded(str(value), 60)}` at `{name}`"
            setattr(event, name, time_ms)
        if event.start > event.end:
            return reasons.START_AFTER_END, f"found start {event.start} and end {event.end}"
        lasted_ms, most_ms = event.end - event.start, self._limits.event_duration_ms_max
        if lasted_ms > most_ms:
            return reasons.DURATION_TOO_LONG, f"found {lasted_ms} ms, at most {most_ms}"
        if lasts_ms is not None and lasted_ms > lasts_ms:
            found = f"found {lasted_ms} ms, declared as at most {lasts_ms}"
            return reasons.DURATION_TOO_LONG, found
        return None

    def _checked(self, event: Event, latest: int) -> Fault | None:
        if event.end > latest:
            ahead = event.end - latest + self._limits.future_ms_max
            return reasons.TOO_FAR_IN_FUTURE, f"found an end {ahead} ms ahead"
        if event.position is not None:
            fault = position_fault(event.position)
            if fault is not None:
                return reasons.BAD_POSITION, fault
        return None


def on_earth(place: list[float]) -> bool:
    """Tell whether a place is one in degrees, without height."""
    return len(place) == 2 and -90.0 <= place[0] <= 90.0 and -180.0 <= place[1] <= 180.0


def _supply(event: Event, known: Advertisement) -> None:
    if event.location is None:
        event.location = known.location
    if event.position is None:
        event.position = known.position


def _time_of(value: int | str) -> int | None:
    if isinstance(value, str):
        return parse_time(value)
    return value if TIME_MIN_MS <= value <= TIME_MAX_MS else None


def event_id(event: Event) -> str:
    """The id of an event that brought none: a digest of type, source, times and attributes.

    Attributes that are null do not count, nor does the order of their declaration.
    """
    # Nulls do not count, so that an event's id stays the same when its type gains an attribute.
    values = [
        (name, value)
        for name, slot in _slots(event.attributes)
        if (value := getattr(event, slot)) is not None
    ]
    return digest("event", event.event_type, event.source, event.start, event.end, values)


@lru_cache(maxsize=4_096)
def _slots(attributes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, slot_of(name)) for name in sorted(attributes))


def unsound(event: Event) -> Fault | None:
    """Find the fault of a float or text that Python (or msgpack) can hold and JSON cannot."""
    texts = [("id", event.id), ("source", event.source), ("location", event.location)]
    for name, value in (*texts, *event.attribute_values().items()):
        if value.__class__ is float and not isfinite(value):
            return reasons.NOT_FINITE, f"found {value!r} at `{name}`"
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return reasons.WRONG_TYPE, f"found an unpaired surrogate at `{name}`"
    return None
