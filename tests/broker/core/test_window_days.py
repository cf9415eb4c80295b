"""Windows of local days: where days begin, and days that are not of 24 hours."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END
from broker.engine.window.assigners import DAY_MS, Grid, LocalDays
from tests.broker.core.window_support import CLASSES, agent_of

HOUR_MS = 3_600_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    *("UTC", "Europe/Zurich", "America/New_York", "America/Sao_Paulo", "America/Havana"),
    *("Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"),
]


def local_date(time_ms: int, zone: str) -> int:
    """The number of the date that a calendar shows."""
    local = (EPOCH + timedelta(milliseconds=time_ms)).astimezone(ZoneInfo(zone))
    return local.date().toordinal() - EPOCH.date().toordinal()


@given(st.sampled_from(ZONES), st.integers(-20_000, 40_000))
def test_a_day_begins_with_the_first_instant_of_its_date(zone: str, day: int):
    """Or, where the date is skipped, with the first of the one after it."""
    start = LocalDays(zone).start(day)
    assert local_date(start, zone) >= day
    assert local_date(start - 1, zone) < day


def test_zones_are_known_where_the_system_brings_none():
    """As on slim images, which leave the database of time zones out."""
    code = (
        "from broker.engine.window.assigners import LocalDays;"
        "print(LocalDays('Asia/Kathmandu').start(0))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(made.stdout) == LocalDays("Asia/Kathmandu").start(0) == -(5 * 60 + 30) * 60_000


@given(st.sampled_from(ZONES), st.integers(-20_000 * DAY_MS, 40_000 * DAY_MS))
def test_an_instant_lies_in_the_day_that_has_begun_last(zone: str, time_ms: int):
    days = LocalDays(zone)
    day = days.number(time_ms)
    assert days.start(day) <= time_ms < days.start(day + 1)


@given(st.sampled_from(ZONES), st.sampled_from([-(2**62), -1_000_000, 2_932_896, 2**53]))
def test_days_go_on_beyond_the_calendar(zone: str, day: int):
    days = LocalDays(zone)
    assert days.start(day) + DAY_MS == days.start(day + 1)
    assert days.number(days.start(day)) == day


def test_days_are_forgotten_and_known_again():
    days = LocalDays("Europe/Zurich")
    known = [days.start(day) for day in range(12_000)]
    assert [days.start(day) for day in range(12_000)] == known
    assert len(days._starts) <= 10_000


@given(
    st.sampled_from(ZONES),
    st.sampled_from([(1, None), (2, None), (1, 2), (2, 3), (7, 14), (3, 1)]),
    st.integers(-5_000, 30_000),
)
def test_windows_open_and_close_at_midnights(zone: str, size: tuple[int, Any], window: int):
    days = LocalDays(zone)
    grid = Grid(*size, days)
    every, reach = size
    first = window * every if reach is None else window * every - reach
    last = (window + 1) * every if reach is None else window * every
    assert grid.opens_at(window) == days.start(first)
    assert grid.closes_at(window) == days.start(last) - 1
    for time_ms in (grid.opens_at(window), grid.closes_at(window)):
        low, high = grid.windows_of(grid.pane_of(time_ms))
        assert low <= window <= high or days.start(first) == days.start(last)
    assert grid.closed_by(grid.closes_at(window)) >= window
    assert grid.closed_by(grid.closes_at(window) - 1) < window


DAYS = [
    # The last midnight of the day, and the hours that it has.
    ("Europe/Zurich", "2024-03-31T22:00+00:00", 23),
    ("Europe/Zurich", "2024-10-27T23:00+00:00", 25),
    ("Europe/Zurich", "2024-07-01T22:00+00:00", 24),
    ("America/Sao_Paulo", "2018-11-05T02:00+00:00", 23),
    ("Australia/Lord_Howe", "2024-04-07T13:30+00:00", 24.5),
]


@pytest.mark.parametrize(("zone", "ends", "hours"), DAYS)
@pytest.mark.parametrize("operand", ["A", "distinct A"])
def test_a_day_has_the_hours_that_its_clocks_give_it(
    zone: str, ends: str, hours: float, operand: str
):
    """All in one batch: what lies in the day before must not show, nor what lies after."""
    text = (
        "event A(x: float, i: int, s: text, g: text)\n"
        f'define W(n) aggr every 1 day in "{zone}"\ndetect {operand} assign n = Count(A)\n'
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    end = int(datetime.fromisoformat(ends).timestamp()) * 1_000
    begin = end - int(hours * HOUR_MS)
    times = [begin - 1, begin, *range(begin + 1, end, 30 * 60_000), end - 1, end, end + 1]
    agent = agent_of(text)
    events = [CLASSES["A"](id=str(at), start=time, end=time) for at, time in enumerate(times)]
    assert [e.a_n for e in agent.feed([(0, events)], end - 2)] == [1]
    assert agent.next_due() == end - 1
    (day,) = agent.feed([], end - 1)
    assert (day.a_n, day.start, day.end) == (len(times) - 3, end - 1, end - 1)
    assert [e.a_n for e in agent.feed([], WATERMARK_END)] == [2]
