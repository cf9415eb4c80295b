"""Positions, distances and regions.

Owns the arithmetic of places. Must not know events. Invariant: mixing degrees and metres, or a
missing position, gives None (a distance) or False (a region), never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from math import asin, cos, hypot, radians, sin, sqrt
from typing import TYPE_CHECKING, Any

from broker.engine.event.event import MetricPosition, Position

if TYPE_CHECKING:
    from language.tree import RegionLiteral

# A sphere, not the ellipsoid: 0.5 % at worst, far below what positions of sensors are good for, and
# the papers give distances (002, IV.A: δl) no finer meaning.
EARTH_RADIUS_M = 6_371_008.8  # mean radius of the sphere on which distances are taken
HEIGHT_AT = 2  # index of the optional height in a position in degrees


def haversine_m(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """The great-circle distance in metres between two points in degrees."""
    phi_a = radians(lat_a)
    phi_b = radians(lat_b)
    half = sin((phi_b - phi_a) / 2) ** 2
    half += cos(phi_a) * cos(phi_b) * sin(radians(lon_b - lon_a) / 2) ** 2
    # Rounding may push `half` above 1 between antipodes, where asin would raise.
    return 2 * EARTH_RADIUS_M * asin(sqrt(min(1.0, half)))


def distance_m(p: Position | None, q: Position | None) -> float | None:
    """The distance in metres; None without two positions of one kind.

    Heights count where both have one: √(ground² + height²).
    """
    # Unknown is not far: a distance of null makes every comparison false, also `distance > 5`.
    if p is None or q is None:
        return None
    if p.__class__ is list and q.__class__ is list:
        a: Any = p
        b: Any = q
        ground = haversine_m(a[0], a[1], b[0], b[1])
        # Otherwise flat: one missing height taken for 0 would put a sensor on the ground.
        if len(a) > HEIGHT_AT and len(b) > HEIGHT_AT:
            return hypot(ground, a[HEIGHT_AT] - b[HEIGHT_AT])
        return ground
    if isinstance(p, MetricPosition) and isinstance(q, MetricPosition):
        ground = hypot(p.x - q.x, p.y - q.y)
        if p.z is not None and q.z is not None:
            return hypot(ground, p.z - q.z)
        return ground
    return None


def near(p: Position | None, q: Position | None, distance_max_m: float) -> bool:
    """Tell whether two positions are at most so many metres apart; False without both."""
    distance = distance_m(p, q)
    return distance is not None and distance <= distance_max_m


def under_path(location: str | None, prefix: str) -> bool:
    """Tell whether a location is the prefix or beneath it, by whole segments."""
    if location is None:
        return False
    # By segments, so that `building/1` does not hold `building/10`.
    return location == prefix or location.startswith(prefix + "/")


def region_test(region: RegionLiteral) -> Callable[[Any], bool]:
    """The membership test of a region: of a location (path) or of a position (the others)."""
    if region.shape == "path":
        prefix = region.path.rstrip("/")
        return lambda location: under_path(location, prefix)
    flat = _flat_test(region)
    if region.metric:
        return lambda p: isinstance(p, MetricPosition) and flat(p.x, p.y)
    return lambda p: p.__class__ is list and flat(p[0], p[1])


def _flat_test(region: RegionLiteral) -> Callable[[float, float], bool]:
    numbers = region.numbers
    if region.shape == "circle":
        lat, lon, radius_m = numbers
        if region.metric:
            return lambda x, y: hypot(x - lat, y - lon) <= radius_m
        return lambda x, y: haversine_m(lat, lon, x, y) <= radius_m
    if region.shape == "box":
        a, b, c, d = numbers  # the checker refuses corners the other way, a neighbour might not
        low_x, high_x = min(a, c), max(a, c)
        low_y, high_y = min(b, d), max(b, d)
        return lambda x, y: low_x <= x <= high_x and low_y <= y <= high_y
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    return lambda x, y: _in_polygon(corners, x, y)


def _in_polygon(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    """Even-odd test on the plane of the coordinates; the border belongs to the polygon."""
    # Ray casting rather than a winding number: corners come from a text that was checked, and
    # even-odd gives a ring that crosses itself its plain meaning.
    inside = False
    x_a, y_a = corners[-1]
    for x_b, y_b in corners:
        # The border is tested first and exactly: rays through a corner would count it once or
        # twice, and a box written as a polygon would differ from the same box.
        cross = (x_b - x_a) * (y - y_a) - (y_b - y_a) * (x - x_a)
        if (
            cross == 0
            and min(x_a, x_b) <= x <= max(x_a, x_b)
            and min(y_a, y_b) <= y <= max(y_a, y_b)
        ):
            return True
        if (y_a > y) != (y_b > y) and x < (x_b - x_a) * (y - y_a) / (y_b - y_a) + x_a:
            inside = not inside
        x_a, y_a = x_b, y_b
    return inside
