"""An explanation as a person reads it, and as programs get it.

Owns the form of both. Must not look for reasons. Invariant: what is left out for its length is
counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from broker.engine.event.event import Detected, Event
from broker.engine.ingest.times import TIME_MAX_MS, TIME_MIN_MS
from broker.engine.runtime.subscribed import OccurrenceResult
from headwater.explaining.record import ResultSample, members

READINGS_MAX = 5  # told of those that a detected event was made of
MEMBERS_MAX = 20  # told of a list


def results_lines(results: ResultSample, readings: Mapping[str, Event]) -> list[str]:
    """Each result with the events that made it."""
    lines = []
    for number, result in enumerate(results.kept, 1):
        document = result.to_dict()
        head = f"  {number}. {_span(result.start, result.end)}"
        head += " (maybe)" if document["certainty"] == "maybe" else ""
        for key, value in document["group"].items():
            head += f" {key}={json.dumps(value, ensure_ascii=False)}"
        lines.append(head)
        for name, events in members(result):
            for event in events[:MEMBERS_MAX]:
                first, *others = event_lines(event, readings)
                lines += [f"     {name}: {first}", *(f"       {other}" for other in others)]
            if len(events) > MEMBERS_MAX:
                lines.append(f"     {name}: and {len(events) - MEMBERS_MAX} more")
        if not members(result):
            lines.append("     of no event: it is a silence")
    if results.count > len(results.kept):
        lines.append(f"  and {results.count - len(results.kept):,} more")
    return lines


def event_lines(event: Event, readings: Mapping[str, Event]) -> list[str]:
    """Type, id, time and place of an event; of a detected one, the readings behind it."""
    if not isinstance(event, Detected):
        return [f"{event.event_type} {event.id}, {_span(event.start, event.end)}{_place(event)}"]
    name = event.event_type.partition("@")[0]
    constituents = list(event.constituents)
    lines = [f"{name}, {_span(event.start, event.end)}, detected from"]
    lines += [_reading(event_id, readings) for event_id in constituents[:READINGS_MAX]]
    if len(constituents) > READINGS_MAX:
        lines.append(f"and {len(constituents) - READINGS_MAX} more")
    return lines


def _reading(name: str, readings: Mapping[str, Event]) -> str:
    event = readings.get(name)
    if event is None or isinstance(event, Detected):
        return name
    return f"{event.event_type} {name}, {_span(event.start, event.end)}{_place(event)}"


def _place(event: Event) -> str:
    parts = []
    if event.source is not None:
        parts.append(f" from {event.source}")
    if event.location is not None:
        parts.append(f" in {event.location}")
    if event.position is not None:
        parts.append(f" at {json.dumps(msgspec.to_builtins(event.position))}")
    return "".join(parts)


def _span(start: int, end: int) -> str:
    return moment(end) if start == end else f"{moment(start)} to {moment(end)}"


def moment(time_ms: int) -> str:
    """A time in UTC, to the millisecond."""
    if not TIME_MIN_MS <= time_ms <= TIME_MAX_MS:
        return str(time_ms)
    instant = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}Z"


def result_data(result: OccurrenceResult, readings: Mapping[str, Event]) -> dict[str, Any]:
    """A result with its events, for programs."""
    document = result.to_dict()
    document["events"] = {
        name: [_event_data(event, readings) for event in events] for name, events in members(result)
    }
    return document


def _event_data(event: Event, readings: Mapping[str, Event]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": event.event_type.partition("@")[0],
        "id": event.id,
        "start": event.start,
        "end": event.end,
    }
    for name in ("source", "location", "position"):
        value = getattr(event, name)
        if value is not None:
            document[name] = msgspec.to_builtins(value)
    if isinstance(event, Detected):
        constituents = list(event.constituents)
        behind = [readings[event_id] for event_id in constituents if event_id in readings]
        document["detected_from"] = constituents
        document["readings"] = [
            _event_data(reading, {}) for reading in behind if not isinstance(reading, Detected)
        ]
    return document
