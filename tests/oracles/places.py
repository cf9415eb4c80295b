"""Where things are: positions, distances, regions and paths of locations.

Owns: the reference meaning of `spread`, `in R` and regions in conditions.
Must not know: events.
Invariant: a question about a missing position, or about two that do not fit together, is answered
None (distance) or False (region).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.oracles import spec as s

EARTH_RADIUS_M = 6_371_008.8


@dataclass(frozen=True)
class Position:
    """Degrees (lat, lon) where geographic, else metres (x, y); `z` is a height in metres."""

    geographic: bool
    first: float
    second: float
    z: float | None = None


def position_from(given: Any) -> Position | None:
    """A position as events give it: `[lat, lon]`, `[lat, lon, z]`, or `{"x":, "y":, "z":}`."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        z = given.get("z")
        return Position(False, given["x"], given["y"], z)
    lat, lon, *height = given
    return Position(True, lat, lon, height[0] if height else None)


def position_as_given(position: Position) -> list[float] | dict[str, float]:
    """The opposite of `position_from`."""
    height = [] if position.z is None else [position.z]
    if position.geographic:
        return [position.first, position.second, *height]
    return dict(zip("xyz", [position.first, position.second, *height], strict=False))


def distance_m(a: Position | None, b: Position | None) -> float | None:
    """Metres between two positions; None where one is missing or they are of two kinds."""
    if a is None or b is None or a.geographic != b.geographic:
        return None
    ground = _haversine_m(a, b) if a.geographic else _plane_m(a, b)
    if a.z is None or b.z is None:
        return ground
    return math.sqrt(ground * ground + (a.z - b.z) * (a.z - b.z))


def _plane_m(a: Position, b: Position) -> float:
    x, y = a.first - b.first, a.second - b.second
    return math.sqrt(x * x + y * y)


def _haversine_m(a: Position, b: Position) -> float:
    lat_a, lat_b = math.radians(a.first), math.radians(b.first)
    half_lat = (lat_b - lat_a) / 2
    half_lon = math.radians(b.second - a.second) / 2
    h = math.sin(half_lat) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half_lon) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, h)))


def beneath(location: str | None, path: str) -> bool:
    """Whether the location is the path or beneath it, segment by segment."""
    if location is None:
        return False
    asked = path.split("/")
    return location.split("/")[: len(asked)] == asked


def inside(position: Position | None, region: s.Region) -> bool:
    """Whether a position lies in a region of the globe, its border included."""
    if position is None or not position.geographic:
        return False
    match region:
        case s.Circle(lat, lon, radius_m):
            away = distance_m(Position(True, lat, lon), Position(True, *_ground(position)))
            return away is not None and away <= radius_m
        case s.Box(lat_1, lon_1, lat_2, lon_2):
            lat, lon = _ground(position)
            lat_in = min(lat_1, lat_2) <= lat <= max(lat_1, lat_2)
            return lat_in and min(lon_1, lon_2) <= lon <= max(lon_1, lon_2)
        case s.Polygon(corners):
            return _in_polygon(_ground(position), corners)
        case s.PathRegion():
            return False


def _ground(position: Position) -> tuple[float, float]:
    return position.first, position.second


def _in_polygon(point: tuple[float, float], corners: tuple[tuple[float, float], ...]) -> bool:
    """Exactly, in fractions: on an edge, or an odd number of edges to one side."""
    x, y = Fraction(point[0]), Fraction(point[1])
    exact = [(Fraction(a), Fraction(b)) for a, b in corners]
    crossings = 0
    for (x1, y1), (x2, y2) in pairwise([*exact, exact[0]]):
        turn = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
        in_span = min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2)
        if turn == 0 and in_span:
            return True
        if (y1 > y) != (y2 > y):
            crosses_at = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
            crossings += crosses_at > x
    return crossings % 2 == 1
