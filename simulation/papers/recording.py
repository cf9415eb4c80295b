"""A recording of weather stations, as the experiments replay it.

Owns reading it, and which stretch and stations are taken. Must not know networks or subscriptions.
Invariant: no value is changed, filled in or shifted.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

ATTRIBUTES = (
    "ambient_temperature",
    "surface_temperature",
    "relative_humidity",
    "wind_speed",
    "wind_direction",
)
SPAN_S = 12 * 3600  # of a longer recording: half a day
PRESENT = 0.5  # of the readings of the station that has most, for each attribute
MS = 1000

Series = list[tuple[int, float]]


class RecordingError(Exception):
    """A recording cannot be used; the message says why."""


class Recording(NamedTuple):
    """Readings, (seconds since 1970, value) ascending, by station and attribute.

    Only stations that reported all five attributes throughout, in order of their names' numbers.
    """

    stations: dict[str, dict[str, Series]]
    since_s: int
    until_s: int


def read_recording(path: Path) -> Recording:
    """The stretch of half a day with the most complete stations. Raises RecordingError.

    `path` is CSV in long form, gzip or plain, with the columns timestamp_ms, station, attribute and
    value.
    """
    rows = _rows(path)
    if not rows:
        raise RecordingError(f"{path}: found no readings of {', '.join(ATTRIBUTES)}")
    first, last = min(row[0] for row in rows), max(row[0] for row in rows)
    found: list[Recording] = []
    for since in range(first, last + 1, SPAN_S):
        within = [row for row in rows if since <= row[0] < since + SPAN_S]
        found.append(Recording(_complete(within), since, min(since + SPAN_S - 1, last)))
    # The earliest of those with most stations; among these with most readings.
    return max(found, key=lambda one: (len(one.stations), readings_of(one), -one.since_s))


def readings_of(recording: Recording) -> int:
    """Count the readings that it holds."""
    return sum(len(some) for each in recording.stations.values() for some in each.values())


def _rows(path: Path) -> list[tuple[int, str, str, float]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            return [
                (int(row["timestamp_ms"]) // MS, row["station"], row["attribute"], value)
                for row in csv.DictReader(file)
                if row["attribute"] in ATTRIBUTES and (value := float(row["value"])) is not None
            ]
    except OSError as error:
        raise RecordingError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (KeyError, TypeError, ValueError, EOFError) as error:
        raise RecordingError(
            f"{path}: expected the columns timestamp_ms, station, attribute, value: {error}"
        ) from None


def _complete(rows: list[tuple[int, str, str, float]]) -> dict[str, dict[str, Series]]:
    stations: dict[str, dict[str, Series]] = {}
    for t, station, attribute, value in rows:
        series = stations.setdefault(station, {name: [] for name in ATTRIBUTES})
        series[attribute].append((t, value))
    counts = {
        name: max((len(each[name]) for each in stations.values()), default=0) for name in ATTRIBUTES
    }
    return {
        station: {name: sorted(series) for name, series in each.items()}
        for station, each in sorted(stations.items(), key=lambda item: _number(item[0]))
        if all(len(each[name]) >= max(1, PRESENT * counts[name]) for name in ATTRIBUTES)
    }


def _number(station: str) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, station))
    return (int(digits) if digits else 0, station)
