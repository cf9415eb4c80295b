"""The example data as the expectations read it: plain csv, json and gzip.

Owns reading and the small geometry. Must not import anything of the product: what it computes is
compared with what the product finds.
"""

import csv
import gzip
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = EXAMPLES / "data"

EARTH_RADIUS_M = 6_371_008.8


@dataclass(frozen=True)
class Reading:
    time: int
    source: str
    place: tuple[float, float] | None
    kind: str
    value: float


@dataclass(frozen=True)
class Mean:
    """A window's mean and the last instant of the window."""

    source: str
    time: int
    mean: float
    readings: int


def readings(*names: str, source: str = "station") -> list[Reading]:
    """All rows of the files, in their order."""
    found = []
    for name in names:
        with gzip.open(DATA / name, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                placed = row.get("lat")
                found.append(
                    Reading(
                        time=int(row["timestamp_ms"]),
                        source=row[source],
                        place=(float(row["lat"]), float(row["lon"])) if placed else None,
                        kind=row["attribute"],
                        value=float(row["value"]),
                    )
                )
    return found


def json_lines(name: str) -> list[dict]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def distance_m(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The great-circle distance by the haversine formula."""
    (lat_a, lon_a), (lat_b, lon_b) = [[math.radians(c) for c in place] for place in (a, b)]
    h = (
        math.sin((lat_b - lat_a) / 2) ** 2
        + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(h))


def exact_mean(values: list[float]) -> float:
    """The mean of the doubles, rounded once."""
    return float(sum(map(Fraction, values)) / len(values))


def mean_of(group: list[Reading], time: int) -> Mean:
    mean = exact_mean([reading.value for reading in group])
    return Mean(group[0].source, time, mean, len(group))


def result(times: list[int], values: dict, source: str | None = None) -> dict:
    """What a result is compared by: its span, its group and its values."""
    group = {} if source is None else {"source": source}
    return {"start": min(times), "end": max(times), "group": group, "values": values}
