"""What the demonstration plays: recordings of stations, as steps in the order of time.

Owns where the example files are and the order in which stations come, send and go. Must not know
MQTT. Invariant: a station is advertised before its first reading and withdrawn after its last, and
no moment between two recordings is without a station.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from headwater.replays.readers import CsvEvents, read_events
from language import Specification, check_text
from language.errors import HeadwaterError

# An installed package carries the examples beside this module, a clone at its root.
_PLACES = (Path(__file__).parent / "examples", Path(__file__).parents[2] / "examples")
SPECIFICATION = "weather.hw"
EXPECTED = "expected.json"
EARLY_MS = 600_000  # of a recording: stations that send by then are there from the beginning


class DemoMaterialError(HeadwaterError):
    """The demonstration's files are missing or damaged."""


@dataclass(slots=True)
class Station:
    """A source: its event types and, where it is known, its position [lat, lon] in degrees."""

    name: str
    location: str
    position: list[float] | None = None
    types: list[str] = field(default_factory=list)
    last: int = 0  # the index of its last reading


@dataclass(frozen=True, slots=True)
class RecordedReading:
    """One event, ready to be published; type and source stand in the topic."""

    id: str
    type: str
    source: str
    time_ms: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class StationRecording:
    """The readings that one network of stations sent, in the order of time."""

    title: str
    stations: dict[str, Station]
    readings: list[RecordedReading]


@dataclass(frozen=True, slots=True)
class StationAdvertised:
    """A station comes."""

    station: Station


@dataclass(frozen=True, slots=True)
class StationWithdrawn:
    """A station goes."""

    station: Station


@dataclass(frozen=True, slots=True)
class NetworkSettled:
    """All brokers have to know the stations that have come before anything goes on."""


Sent = StationAdvertised | RecordedReading | StationWithdrawn
Step = Sent | NetworkSettled


@dataclass(frozen=True, slots=True)
class DemoMaterial:
    """The specification's text, the recordings one after the other, and the results to expect.

    `expected` was worked out without the engine: subscription -> number of results.
    """

    text: str
    specification: Specification
    recordings: list[StationRecording]
    expected: dict[str, int]

    @property
    def readings_count(self) -> int:
        """Count the readings that will be sent."""
        return sum(len(recording.readings) for recording in self.recordings)


def folder() -> Path:
    """Return the folder of the examples. Raises MaterialError."""
    for place in _PLACES:
        if (place / SPECIFICATION).is_file():
            return place
    raise DemoMaterialError("the demonstration's files are not installed; run it from a clone")


def load() -> DemoMaterial:
    """Reads everything. Raises MaterialError, UnreadableError, LanguageError."""
    examples = folder()
    text = (examples / SPECIFICATION).read_text(encoding="utf-8")
    specification = check_text(text, file=SPECIFICATION).demand()
    declared = {
        name: event_type.attributes
        for name, event_type in specification.event_types.items()
        if not event_type.defined
    }
    recordings = [
        _recording(examples / "data" / file, title, location, declared)
        for file, title, location in (
            ("grand_st_bernard.csv.gz", "Great St Bernard, 21 October 2007", "grand-st-bernard"),
            ("singapore.csv.gz", "Singapore, 6 March 2017", "singapore"),
        )
    ]
    try:
        expected = msgspec.json.decode((examples / EXPECTED).read_bytes())["weather"]
    except (OSError, msgspec.DecodeError, KeyError) as error:
        raise DemoMaterialError(f"{EXPECTED} cannot be read: {error}") from error
    return DemoMaterial(text, specification, recordings, expected)


def _recording(path: Path, title: str, location: str, declared: Any) -> StationRecording:
    stations: dict[str, Station] = {}
    readings: list[RecordedReading] = []
    numbers: dict[str, int] = {}
    encode = msgspec.json.Encoder().encode
    for event in _events(path, declared):
        name, kind = event["source"], event["type"]
        station = stations.get(name)
        if station is None:
            station = Station(name, f"{location}/{name}", event.get("position"))
            stations[name] = station
        if kind not in station.types:
            station.types.append(kind)
        station.last = len(readings)
        numbers[name] = numbers.get(name, 0) + 1
        # The advertisement tells the rest: location and position.
        event_id = f"{name}-{numbers[name]:05}"
        sent = {"id": event_id, "timestamp": event["timestamp"], "value": event["value"]}
        readings.append(RecordedReading(event_id, kind, name, event["timestamp"], encode(sent)))
    return StationRecording(title, stations, readings)


def _events(path: Path, declared: Any) -> Iterator[dict[str, Any]]:
    for batch in read_events([str(path)], declared):
        if not isinstance(batch, CsvEvents) or batch.bad:
            raise DemoMaterialError(f"{path.name} is damaged")
        yield from batch.events


def steps(recordings: list[StationRecording]) -> Iterator[tuple[StationRecording, Step]]:
    """Everything in the order in which it is published.

    The stations that send soon come before all readings: a broker that has not heard of any could
    take time to be over where they are. For the same reason the last station of a recording goes
    only when those of the next have come.
    """
    going: list[tuple[StationRecording, Step]] = []
    for recording in recordings:
        come = dict.fromkeys(_early(recording))
        for name in come:
            yield recording, StationAdvertised(recording.stations[name])
        yield recording, NetworkSettled()
        yield from going
        going = []
        for index, reading in enumerate(recording.readings):
            station = recording.stations[reading.source]
            if station.name not in come:
                come[station.name] = None
                yield recording, StationAdvertised(station)
            yield recording, reading
            if index == station.last:
                # the very last one waits for the first of the next recording
                if index < len(recording.readings) - 1:
                    yield recording, StationWithdrawn(station)
                else:
                    going.append((recording, StationWithdrawn(station)))
    yield from going


def _early(recording: StationRecording) -> Iterator[str]:
    """The stations that send soon, each once."""
    seen: set[str] = set()
    until_ms = recording.readings[0].time_ms + EARLY_MS
    for reading in recording.readings:
        if reading.time_ms >= until_ms:
            return
        if reading.source not in seen:
            seen.add(reading.source)
            yield reading.source
