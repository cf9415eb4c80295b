"""Regions on the globe: where meridians meet and near the poles, distance tells what is inside."""

from math import asin, cos, pi, radians, sin, sqrt

import pytest

import headwater

RADIUS_M = 6_371_008.8  # the mean radius, as the language has it


def haversine_m(a, b):
    (lat, lon), (other_lat, other_lon) = a, b
    p, q = radians(lat), radians(other_lat)
    half = sin((q - p) / 2) ** 2 + cos(p) * cos(q) * sin(radians(other_lon - lon) / 2) ** 2
    return 2 * RADIUS_M * asin(min(1.0, sqrt(half)))


@pytest.mark.parametrize("km", [5, 80, 1_500])
@pytest.mark.parametrize(
    "centre", [(0.0, 179.95), (0.0, -179.95), (52.0, 179.5), (-71.0, -179.9), (88.9, 10.0)]
)
def test_a_circle_holds_what_is_near_enough_on_either_side_of_the_date_line(centre, km):
    steps = [0.01, 0.04, 0.09, 0.3, 0.7, 2.0, 9.0, 40.0, 170.0]
    lons = [(centre[1] + sign * step + 540) % 360 - 180 for step in steps for sign in (-1, 1)]
    points = [
        (min(90.0, max(-90.0, centre[0] + up)), lon)
        for lon in (centre[1], *lons)
        for up in (0.0, 0.02, -0.5, 1.05)
    ]
    text = f"""
    event A(n: int)
    region Near = circle({centre[0]}, {centre[1]}, {km} km)
    subscription S from me to out detect A in Near
    """
    engine = headwater.Engine(text)
    found = engine.push(
        {"type": "A", "id": f"e{at:03}", "timestamp": at, "position": list(point)}
        for at, point in enumerate(points)
    )
    wanted = {
        f"e{at:03}" for at, point in enumerate(points) if haversine_m(centre, point) <= km * 1000
    }
    assert {one["events"]["A"][0] for one in found} == wanted
    assert wanted


def test_half_the_globe_and_more_may_be_a_circle():
    far_m = RADIUS_M * pi * 0.75
    text = f"""
    event A(n: int)
    region Far = circle(0, 0, {far_m / 1000:.0f} km)
    subscription S from me to out detect A in Far
    """
    engine = headwater.Engine(text)
    places = [[0.0, 120.0], [0.0, 140.0], [80.0, 179.0], [-10.0, 170.0]]
    found = engine.push(
        {"type": "A", "id": f"e{at}", "timestamp": at, "position": place}
        for at, place in enumerate(places)
    )
    assert [one["events"]["A"] for one in found] == [["e0"], ["e2"]]
