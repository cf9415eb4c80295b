"""From readings of metrics to the events of one mapping.

Owns which readings make one event. Must not know topics or births. Invariant: each reading that the
mapping wants stands in exactly one event, and an event's readings are of one time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from broker.bridge.mapped_payload import TIME_MAX, UnmappableError, finite, ignored, shown
from broker.bridge.sparkplug.values import Fault, Several
from broker.config.mappings import is_attribute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.bridge.sparkplug.messages import MetricReading
    from broker.config.mappings import MappingSection

_encode = msgspec.json.Encoder().encode


class MetricReader:
    """The readings of one mapping."""

    def __init__(self, section: MappingSection) -> None:
        """`section` is settled, see `broker.config.mappings`."""
        self._wanted: dict[str, list[str]] = {}  # metric → attributes
        for attribute, metric in section.attributes.items():
            self._wanted.setdefault(metric, []).append(attribute)
        self._ignored = ignored(section)

    def events(self, readings: Iterable[MetricReading], location: str) -> bytes | None:
        """The events as JSON, without type and source; None where there is none.

        One for each time, in their order; of a metric that has several values at one time each is
        in another. Raises UnmappableError.
        """
        by_instant: dict[tuple[int, int], dict[str, Any]] = {}
        counts: dict[tuple[str, int], int] = {}
        for reading in readings:
            attributes = self._attributes(reading)
            if not attributes or not self._is_said(reading):
                continue
            time = _time(reading)
            nth = counts[reading.name, time] = counts.get((reading.name, time), -1) + 1
            by_instant.setdefault((time, nth), {}).update(dict.fromkeys(attributes, reading.value))
        if not by_instant:
            return None
        events = [_event(by_instant[key], key[0], location) for key in sorted(by_instant)]
        try:
            return _encode(events[0] if len(events) == 1 else events)
        except (OverflowError, UnicodeEncodeError) as error:
            raise UnmappableError(f"found what JSON cannot say: {shown(str(error))}") from None

    def _attributes(self, reading: MetricReading) -> list[str]:
        if self._wanted:
            return self._wanted.get(reading.name, [])
        name = reading.name
        return [name] if is_attribute(name) and not isinstance(reading.value, Several) else []

    def _is_said(self, reading: MetricReading) -> bool:
        """Tell whether there is a value. Raises UnmappableError where it is none."""
        value = reading.value
        if isinstance(value, Fault):
            raise UnmappableError(f"{value.problem}, at the metric {shown(reading.name)}")
        if isinstance(value, Several):
            problem = f"found a value of kind {value.kind} at {shown(reading.name)}"
            raise UnmappableError(f"{problem}, expected one value")
        if isinstance(value, str):
            return value.strip() not in self._ignored
        return finite(reading.name, value) is not None


_NO_TIME = TIME_MAX  # behind all times: such events are stamped when they arrive


def _time(reading: MetricReading) -> int:
    if reading.time is None:
        return _NO_TIME
    if reading.time >= TIME_MAX:
        raise UnmappableError(f"found a time beyond all numbers at {shown(reading.name)}")
    return reading.time


def _event(values: dict[str, Any], time: int, location: str) -> dict[str, Any]:
    if location:
        values["location"] = location
    if time != _NO_TIME:
        values["timestamp"] = time
    return values
