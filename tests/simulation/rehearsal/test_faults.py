"""How faults are asked for."""

from datetime import UTC, datetime

import pytest

from simulation.durations import duration_ms
from simulation.rehearsal.faults import (
    FaultError,
    FaultSetting,
    NetworkFault,
    check_apart,
    read_fault,
    told,
)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


FIRST, LAST = at("2024-03-04T22:00:00"), at("2024-03-05T21:00:00")
SETTING = FaultSetting(
    ("hall", "hall-a", "b", "roof"),
    (("hall", "hall-a"), ("hall-a", "b"), ("roof", "hall")),
    FIRST,
    LAST,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hall-roof@23:00+20m", at("2024-03-04T23:00:00")),
        ("hall-roof@14:00+20m", at("2024-03-05T14:00:00")),  # the next one after the first event
        ("hall-roof@22:00+20m", FIRST),
        ("hall-roof@14:00:30+20m", at("2024-03-05T14:00:30")),
        ("hall-roof@+90m+20m", FIRST + 90 * 60_000),
        ("hall-roof@+1.5h+20m", FIRST + 90 * 60_000),
        ("hall-roof@2024-03-05T01:00+20m", at("2024-03-05T01:00:00")),
        ("hall-roof@2024-03-05T01:00:00Z+20m", at("2024-03-05T01:00:00")),
        ("hall-roof@2024-03-05T01:00+02:00+20m", at("2024-03-04T23:00:00")),
        ("hall-roof@2024-03-05+20m", at("2024-03-05T00:00:00")),
    ],
)
def test_a_time_is_read_by_the_clock_of_the_events(text, expected):
    found = read_fault("cut", text, SETTING)
    assert found == NetworkFault("cut", ("roof", "hall"), expected, 20 * 60_000, 0, text)
    assert found.over_ms == expected + 20 * 60_000


def test_a_link_is_found_although_names_hold_the_sign_between_them():
    assert read_fault("cut", "hall-hall-a@23:00+1s", SETTING).brokers == ("hall", "hall-a")
    assert read_fault("cut", "b-hall-a@23:00+1s", SETTING).brokers == ("hall-a", "b")
    assert read_fault("end", "hall-a@23:00+1s", SETTING).brokers == ("hall-a",)


def test_a_slow_link_says_by_how_much():
    found = read_fault("slow", "hall-a-b@23:00+1h:500ms", SETTING)
    assert (found.lasts_ms, found.by_ms) == (3_600_000, 500)
    found = read_fault("slow", "hall-a-b@23:00:05+1h:1.5s", SETTING)
    assert (found.at_ms, found.by_ms) == (at("2024-03-04T23:00:05"), 1_500)


FAULTY = [
    ("cut", "hall-roof", "expected as a-b@14:00+20m"),
    ("cut", "hall-roof@14:00", "expected as"),
    ("cut", "hall-roof@14:00+20", "expected as"),
    ("cut", "hall-roof@14:00+20m:5s", "expected as"),
    ("slow", "hall-roof@14:00+20m", "expected as a-b@14:00+20m:500ms"),
    ("end", "hall-roof@14:00+20m", "no broker is called hall-roof"),
    ("cut", "roof-b@14:00+20m", "no link is called roof-b; there are hall-hall-a"),
    ("cut", "hall@14:00+20m", "no link"),
    ("cut", "hall-roof@21:30+20m", "begins at 2024-03-05T21:30:00Z, and the events are from"),
    ("cut", "hall-roof@2024-03-04T20:00+3h", "the events are from"),
    ("cut", "hall-roof@25:00+20m", "found the time 25:00"),
    ("cut", "hall-roof@noon+20m", "found the time noon"),
    ("cut", "hall-roof@14:00+0s", "longer than nothing"),
    ("cut", "hall-roof@14:00+400d", "a year at most"),
]


@pytest.mark.parametrize(("kind", "text", "said"), FAULTY)
def test_what_cannot_be_read_is_refused_with_a_sentence(kind, text, said):
    with pytest.raises(FaultError, match=r".") as raised:
        read_fault(kind, text, SETTING)
    assert said in str(raised.value)


def test_a_broker_does_not_end_twice_at_a_time():
    faults = [read_fault("end", f"b@{when}+20m", SETTING) for when in ("14:00", "14:10", "14:40")]
    check_apart([faults[0], faults[2]])
    with pytest.raises(FaultError, match="it has ended already"):
        check_apart(faults)


@pytest.mark.parametrize("text", ["", "5", "m", "5 years", "-5m", "1e3s", "5m5"])
def test_a_duration_has_a_number_and_a_unit(text):
    with pytest.raises(ValueError, match="expected a duration"):
        duration_ms(text)


def test_a_time_that_is_told_can_be_asked_for():
    for time_ms in (FIRST, FIRST + 1, FIRST + 1_500):
        assert read_fault("cut", f"hall-roof@{told(time_ms)}+1s", SETTING).at_ms == time_ms
