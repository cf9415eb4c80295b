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


def inside(region, *places):
    """Which of these places, by number, an event in the region is at."""
    text = f"event A(n: int)\nsubscription S from me to out\ndetect A in {region}"
    found = headwater.Engine(text).push(
        {"type": "A", "id": f"e{at}", "timestamp": at, "position": place}
        for at, place in enumerate(places)
    )
    return [int(one["events"]["A"][0][1:]) for one in found]


def flat(*places):
    return [{"x": x, "y": y} for x, y in places]


def test_a_box_has_its_border_on_the_globe_and_on_the_plane():
    borders = [(1, 2), (5, 8), (1, 5), (3, 8), (3, 4)]
    outside = [(0.999, 4), (5.001, 4), (3, 1.999), (3, 8.001)]
    assert inside("box(1 m, 2 m, 5 m, 8 m)", *flat(*borders, *outside)) == [0, 1, 2, 3, 4]
    assert inside("box(1, 2, 5, 8)", *[[*place] for place in borders + outside]) == [0, 1, 2, 3, 4]


def test_a_circle_and_a_polygon_on_the_plane_have_their_border():
    places = flat((13, 14), (10, 15), (15, 10), (13.001, 14), (10, 10))
    assert inside("circle(10 m, 10 m, 5 m)", *places) == [0, 1, 2, 4]
    places = flat((0, 0), (4, 0), (2, 0), (4, 2), (2, 2), (2, -0.001), (4.001, 2))
    corners = "0 m, 0 m, 4 m, 0 m, 4 m, 4 m, 0 m, 4 m"
    assert inside(f"polygon({corners})", *places) == [0, 1, 2, 3, 4]
