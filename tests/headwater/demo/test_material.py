"""The demonstration's material: what is published, and in which order."""

from itertools import pairwise

import msgspec
import pytest

from headwater.demo.material import (
    EARLY_MS,
    NetworkSettled,
    RecordedReading,
    Station,
    StationAdvertised,
    StationRecording,
    StationWithdrawn,
    load,
    steps,
)
from headwater.demo.moments import windows_ms


@pytest.fixture(scope="module")
def material():
    return load()


def recording(title: str, *sent: tuple[str, int]) -> StationRecording:
    stations: dict[str, Station] = {}
    readings = []
    for index, (name, time_ms) in enumerate(sent):
        stations.setdefault(name, Station(name, name)).last = index
        readings.append(RecordedReading(f"{name}-{index}", "T", name, time_ms, b"{}"))
    return StationRecording(title, stations, readings)


def told(recordings):
    for _, step in steps(recordings):
        match step:
            case StationAdvertised(station):
                yield f"+{station.name}"
            case StationWithdrawn(station):
                yield f"-{station.name}"
            case RecordedReading():
                yield f"{step.source}{step.time_ms}"
            case NetworkSettled():
                yield "!"


def test_a_station_comes_before_its_first_reading_and_goes_after_its_last():
    one = recording("one", ("a", 1), ("b", 2), ("a", 3), ("b", 4))
    assert list(told([one])) == ["+a", "+b", "!", "a1", "b2", "a3", "-a", "b4", "-b"]


def test_a_station_that_sends_much_later_comes_later():
    late_ms = 1 + EARLY_MS
    one = recording("one", ("a", 1), ("b", late_ms), ("a", late_ms))
    wanted = ["+a", "!", "a1", "+b", f"b{late_ms}", "-b", f"a{late_ms}", "-a"]
    assert list(told([one])) == wanted


def test_between_two_recordings_there_is_always_a_station():
    one, two = recording("one", ("a", 1)), recording("two", ("c", 8), ("d", 9))
    wanted = ["+a", "!", "a1", "+c", "+d", "!", "-a", "c8", "-c", "d9", "-d"]
    assert list(told([one, two])) == wanted


def test_a_station_with_one_reading_comes_and_goes():
    one = recording("one", ("a", 1), ("b", 2), ("a", 3))
    assert list(told([one])) == ["+a", "+b", "!", "a1", "b2", "-b", "a3", "-a"]


def test_every_reading_of_the_extracts_is_played_once_in_the_order_of_time(material):
    played = [step for _, step in steps(material.recordings) if isinstance(step, RecordedReading)]
    assert len(played) == material.readings_count == 26_661 + 23_522
    assert all(a.time_ms <= b.time_ms for a, b in pairwise(played))
    assert len({reading.id for reading in played}) == len(played)


def test_the_stations_are_those_of_both_networks(material):
    mountain, city = material.recordings
    assert (len(mountain.stations), len(city.stations)) == (23, 17)
    assert all(station.position is None for station in mountain.stations.values())
    assert city.stations["S06"].position == [1.3524, 103.9007]
    assert "surface_temperature" in mountain.stations["GSB4"].types
    # the windows of a station are those of its air temperature: every one must be waited for
    for station in (*mountain.stations.values(), *city.stations.values()):
        assert "ambient_temperature" in station.types


def test_a_payload_holds_what_neither_topic_nor_advertisement_says(material):
    reading = material.recordings[1].readings[0]
    assert (reading.type, reading.source) == ("ambient_temperature", "S06")
    assert msgspec.json.decode(reading.payload) == {
        "id": "S06-00001",
        "timestamp": 1488772859000,
        "value": 31.2,
    }


def test_every_subscription_has_an_expectation(material):
    names = [name for _, name in material.specification.subscriptions]
    assert sorted(names) == sorted(material.expected)
    assert min(material.expected.values()) > 0


def test_the_subscriptions_that_wait_for_windows(material):
    ten_minutes = 600_000
    assert windows_ms(material.specification) == {
        "ColdStation": ten_minutes,
        "HotStation": ten_minutes,
        "CoolingFront": ten_minutes,
    }
