"""The four shapes of a region and what their numbers must be.

Owns what coordinates must be: degrees within their range, or metres throughout. Knows nothing of
geometry beyond that. Invariant: a literal that leaves here is a region, if a made-up one.
"""

from __future__ import annotations

from typing import cast

from language.reading.values import distance_m, note
from language.tree import Constant, RegionLiteral, Span

LATITUDE_MAX = 90.0
LONGITUDE_MAX = 180.0


def region_literal(shape: str, values: list[Constant], span: Span) -> RegionLiteral:
    """The region of `shape` with these arguments; errors are noted."""
    if shape == "path":
        return _path(values, span)
    if shape == "circle":
        if len(values) != 3:
            return _refused(span, "circle(latitude, longitude, radius)")
        radius_m = distance_m(values[2])
        numbers, metric, _ = _coordinates(values[:2])
        return RegionLiteral("circle", (*numbers, radius_m), metric=metric, span=span)
    if shape == "box":
        if len(values) != 4:
            return _refused(span, "box(latitude, longitude, latitude, longitude)")
        numbers, metric, good = _coordinates(values)
        low_x, low_y, high_x, high_y = numbers
        # A box across the date line runs from a greater longitude to a smaller one.
        if good and (low_x > high_x or (metric and low_y > high_y)):
            note("HW316", values[0].span)
        return RegionLiteral("box", numbers, metric=metric, span=span)
    if shape == "polygon":
        if len(values) < 6 or len(values) % 2:
            return _refused(span, "polygon(latitude, longitude, …) of three points or more")
        numbers, metric, _ = _coordinates(values)
        return RegionLiteral("polygon", numbers, metric=metric, span=span)
    return RegionLiteral("path", path="", span=span)


def _refused(span: Span, form: str) -> RegionLiteral:
    note("HW312", span, form=form)
    return RegionLiteral("path", path="", span=span)


def _path(values: list[Constant], span: Span) -> RegionLiteral:
    value = values[0].value
    if len(values) != 1 or not isinstance(value, str):
        return _refused(span, 'path("building-a/floor-1")')
    if not value or any(not segment for segment in value.split("/")):
        note("HW317", values[0].span, path=value)
    return RegionLiteral("path", path=value, span=span)


def _coordinates(values: list[Constant]) -> tuple[tuple[float, ...], bool, bool]:
    """The numbers of latitude and longitude pairs, or of x and y; if in metres; if all good."""
    metric = values[0].unit == "m"
    good = True
    numbers: list[float] = []
    for index, node in enumerate(values):
        value = node.value
        if isinstance(value, bool | str) or node.unit == "ms" or (node.unit == "m") is not metric:
            note("HW318", node.span)
            value, good = 0.0, False
        limit = LONGITUDE_MAX if index % 2 else LATITUDE_MAX
        if not metric and abs(value) > limit:
            side = "longitude" if index % 2 else "latitude"
            note("HW319", node.span, side=side, limit=int(limit))
            value, good = 0.0, False
        numbers.append(float(cast("float", value)))
    return tuple(numbers), metric, good
