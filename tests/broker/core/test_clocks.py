"""Watermarks and lateness: of one stream, and of the sources of a live broker."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Event, event_class
from broker.engine.ingest.clocks import StreamClock
from broker.engine.ingest.source_clocks import SourceClocks, Split
from broker.engine.limits import LimitReachedError

pytestmark = pytest.mark.usefixtures("both_ways")

Temp = event_class("Temp", {})
Hum = event_class("Hum", {})
KINDS = {"Temp": Temp, "Hum": Hum}


def at(*ends: int, kind: type[Event] = Temp, source: str = "s") -> list[Event]:
    return [kind(id=f"{source}-{end}", source=source, start=end, end=end) for end in ends]


def ends(events: list[Event]) -> list[int]:
    return [event.end for event in events]


# --- one stream -------------------------------------------------------------------------------


def test_a_stream_is_late_by_its_newest_event():
    clock = StreamClock(5)
    split = clock.split(at(10, 20, 15, 14, 21, 16, 15), 0, None)
    assert ends(split.on_time) == [10, 20, 15, 21, 16]
    assert ends(split.late) == [14, 15]
    assert clock.watermark("Temp", 0) == 21 - 5 - 1


def test_with_lateness_zero_an_event_of_the_same_time_is_on_time():
    clock = StreamClock(0)
    assert ends(clock.split(at(10, 10, 9), 0, None).late) == [9]
    assert clock.watermark("Temp", 0) == 9


def test_a_recording_is_all_on_time_and_known_at_its_end():
    clock = StreamClock(None)
    assert clock.split(at(10, -5, 3), 0, None).late == []
    assert clock.watermark("Temp", 0) == WATERMARK_NONE
    clock.finish()
    assert clock.watermark("Temp", 0) == WATERMARK_END
    assert ends(clock.split(at(99), 0, None).late) == [99]


times = st.lists(st.integers(-30, 30), max_size=25)


def says_true(split: Split, before: list[int]) -> bool:
    """Whether what is said of the events on time holds, those before among them."""
    own = ends(split.on_time)
    both = [*before[-1:], *own] if before == sorted(before) else [max(before), *own]
    ordered = all(one <= other for one, other in pairwise(both))
    apart = all(one < other for one, other in pairwise(both))
    return (
        (ordered or not split.ordered)
        and (apart or not (split.ordered and split.apart))
        and (split.newest is None or split.newest >= max(own, default=split.newest))
        and split.ends in (None, own)
    )


@given(times, st.integers(0, 12), st.lists(st.integers(0, 25)))
def test_lateness_does_not_depend_on_where_batches_are_cut(given_ends, lateness_ms, cuts):
    naive_late, newest = [], None
    for place, end in enumerate(given_ends):
        if newest is not None and end <= newest - lateness_ms - 1:
            naive_late.append(place)
        else:
            newest = end if newest is None else max(newest, end)
    events = at(*given_ends)
    for clock in (StreamClock(lateness_ms), SourceClocks(lateness_ms, None)):
        late: list[Event] = []
        edges = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
        before: list[int] = []
        for low, high in pairwise(edges):
            split = clock.split(events[low:high], 0, None)
            late += split.late
            assert says_true(split, before)
            before += ends(split.on_time)
        assert [id(event) for event in late] == [id(events[place]) for place in naive_late]
        if newest is not None:
            assert clock.watermark("Temp", 0) == newest - lateness_ms - 1


# --- sources ----------------------------------------------------------------------------------


def test_a_types_watermark_is_that_of_its_slowest_source():
    clocks = SourceClocks(2, None)
    clocks.split(at(100, source="a"), 0, "a")
    assert clocks.watermark("Temp", 0) == 97
    clocks.split(at(99, source="b"), 0, "b")  # above what was given out, so it is on time
    clocks.split(at(200, source="a"), 0, "a")
    assert clocks.watermark("Temp", 0) == 97  # b's is 96, but 97 was given out
    clocks.split(at(150, source="b"), 0, "b")
    assert clocks.watermark("Temp", 0) == 147


def test_lateness_is_judged_by_each_source_for_itself():
    clocks = SourceClocks(5, None)
    clocks.split(at(1_000, source="fast"), 0, "fast")
    split = clocks.split(at(10, 20, 14, 15, source="slow"), 0, "slow")
    assert ends(split.late) == [14]


def test_a_mixed_batch_is_judged_as_its_parts_and_keeps_its_order():
    clocks = SourceClocks(0, None)
    clocks.split(at(10, source="a") + at(50, source="b"), 0, None)
    mixed = at(51, source="b") + at(9, source="a") + at(11, source="a") + at(20, source="b")
    split = clocks.split(mixed, 0, None)
    assert ends(split.on_time) == [51, 11]
    assert ends(split.late) == [9, 20]


def test_events_without_a_source_share_a_clock():
    clocks = SourceClocks(0, None)
    events = [Temp(id="1", start=5, end=5), Temp(id="2", start=4, end=4)]
    assert ends(clocks.split(events, 0, None).late) == [4]


def test_a_source_has_one_clock_for_all_of_its_types():
    clocks = SourceClocks(0, None)
    batch = at(10) + at(5, kind=Hum) + at(20, kind=Hum)
    assert ends(clocks.split(batch, 0, "s").late) == [5]
    assert clocks.watermark("Temp", 0) == clocks.watermark("Hum", 0) == 19


def test_what_was_given_out_binds_a_source_that_comes_later():
    clocks = SourceClocks(0, None)
    clocks.split(at(100, source="a"), 0, "a")
    assert clocks.watermark("Temp", 0) == 99
    split = clocks.split(at(99, 100, source="new"), 0, "new")
    assert (ends(split.late), ends(split.on_time)) == ([99], [100])
    assert ends(clocks.split(at(50, kind=Hum, source="other"), 0, "other").on_time) == [50]


def test_what_nobody_asked_for_binds_nobody():
    clocks = SourceClocks(0, None)
    clocks.split(at(100, source="a"), 0, "a")
    assert ends(clocks.split(at(5, source="new"), 0, "new").on_time) == [5]


def test_a_silent_sources_clock_runs_on_from_its_last_event():
    clocks = SourceClocks(2, 1_000)
    clocks.split(at(50_000), 10, "s")
    assert clocks.watermark("Temp", 1_009) == 49_997
    assert clocks.watermark("Temp", 1_010) == 49_997 + 1_000  # idle since the moment it spoke
    assert clocks.watermark("Temp", 1_500) == 49_997 + 1_490
    split = clocks.split(at(51_487, 51_488), 1_500, "s")
    assert (ends(split.late), ends(split.on_time)) == ([51_487], [51_488])
    assert clocks.watermark("Temp", 1_600) == 49_997 + 1_490  # the clock keeps what it reached


def test_a_silent_sources_clock_judges_it_whether_or_not_anyone_asked():
    clocks = SourceClocks(2, 1_000)
    clocks.split(at(50_000), 10, "s")
    split = clocks.split(at(50_987, 50_988), 1_000, "s")  # 990 ms later it is not idle yet
    assert ends(split.on_time) == [50_987, 50_988]
    split = clocks.split(at(52_485, 52_486), 2_500, "s")  # 1,500 ms later it is
    assert (ends(split.late), ends(split.on_time)) == ([52_485], [52_486])


def test_an_idle_source_does_not_hold_the_others_back():
    clocks = SourceClocks(0, 1_000)
    clocks.split(at(100, source="dead"), 0, "dead")
    clocks.split(at(90_000, source="alive"), 900, "alive")
    assert clocks.watermark("Temp", 999) == 99
    assert clocks.watermark("Temp", 1_000) == 1_099
    assert clocks.hindmost("Temp", 1_000) == "source dead"


def test_a_source_that_sends_only_late_events_is_idle_all_the_same():
    """A clock that jumped back must not hold everyone for ever."""
    clocks = SourceClocks(0, 1_000)
    clocks.split(at(5_000), 0, "s")
    for now in range(100, 3_000, 100):
        assert clocks.split(at(10), now, "s").on_time == []
    assert clocks.watermark("Temp", 3_000) == 4_999 + 3_000


def test_an_advertised_source_is_waited_for_until_the_timeout():
    clocks = SourceClocks(0, 1_000)
    clocks.advertise("quiet", ["Temp"], 0)
    clocks.split(at(100, source="a"), 500, "a")
    assert clocks.watermark("Temp", 999) == WATERMARK_NONE
    assert clocks.watermark("Temp", 1_000) == 99
    split = clocks.split(at(99, 100, source="quiet"), 1_200, "quiet")
    assert (ends(split.late), ends(split.on_time)) == ([99], [100])
    clocks.split(at(300, source="a"), 1_300, "a")
    assert clocks.watermark("Temp", 1_300) == 99  # now that it has spoken it is waited for


def test_a_withdrawn_source_is_not_waited_for():
    clocks = SourceClocks(0, None)
    clocks.split(at(100, source="a"), 0, "a")
    clocks.split(at(10, source="b"), 0, "b")
    assert clocks.watermark("Temp", 0) == 9
    clocks.withdraw("b", 5)
    assert clocks.watermark("Temp", 5) == 99
    clocks.withdraw("nobody", 5)


def test_a_type_without_a_source_goes_with_the_foremost_and_another_may_take_its_place():
    clocks = SourceClocks(10, 1_000)
    clocks.split(at(5_000, source="a"), 0, "a")
    clocks.split([KINDS["Hum"](source="h", start=7_000, end=7_000)], 0, "h")
    clocks.withdraw("a", 100)
    assert clocks.watermark("Temp", 100) == 6_989
    assert ends(clocks.split(at(6_990, source="b"), 400, "b").on_time) == [6_990]
    clocks.split(at(7_400, source="b"), 410, "b")
    assert clocks.watermark("Temp", 500) == 7_389


def test_what_is_open_is_released_only_where_no_source_is_left():
    clocks = SourceClocks(10, 1_000)
    clocks.split(at(5_000, source="a"), 0, "a")
    clocks.split(at(5_000, source="b"), 0, "b")
    due = {"Temp": 20_000}
    clocks.withdraw("a", 100)
    assert not clocks.pass_over(due, 100)
    clocks.withdraw("b", 100)
    assert clocks.pass_over(due, 100)
    assert clocks.watermark("Temp", 100) == 20_000
    assert not clocks.pass_over(due, 100)
    late = clocks.split(at(20_000, source="c"), 100, "c")
    assert (ends(late.late), ends(late.on_time)) == ([20_000], [])
    assert ends(clocks.split(at(20_001, source="c"), 100, "c").on_time) == [20_001]
    assert not clocks.pass_over({"Temp": 30_000}, 100)


def test_a_source_forgotten_for_want_of_places_was_not_withdrawn():
    clocks = SourceClocks(0, 1_000, sources_max=1)
    clocks.split(at(100, source="a"), 0, "a")
    clocks.split([KINDS["Hum"](source="h", start=7_000, end=7_000)], 2_000, "h")
    assert len(clocks) == 1
    assert not clocks.pass_over({"Temp": 50_000}, 2_000)
    assert clocks.watermark("Temp", 2_500) == 2_599


def test_a_type_without_a_source_is_waited_for_and_then_goes_with_the_foremost():
    clocks = SourceClocks(0, 1_000)
    clocks.split(at(100), 0, "s")
    assert clocks.watermark("Hum", 10) == WATERMARK_NONE
    clocks.split(at(900), 800, "s")
    assert clocks.watermark("Hum", 1_009) == WATERMARK_NONE
    assert clocks.watermark("Hum", 1_010) == 899
    split = clocks.split(at(899, 900, kind=Hum, source="h"), 1_100, "h")
    assert (ends(split.late), ends(split.on_time)) == ([899], [900])


def test_without_a_timeout_a_type_without_a_source_is_waited_for():
    clocks = SourceClocks(0, None)
    clocks.split(at(100), 0, "s")
    assert clocks.watermark("Hum", 10**9) == WATERMARK_NONE


def test_the_wake_for_a_type_without_a_source_is_when_it_is_given_up():
    clocks = SourceClocks(0, 1_000)
    clocks.split(at(100), 0, "s")
    assert clocks.next_wake(5, {"Hum": 50}) == 1_005  # as if asked for now
    clocks.watermark("Hum", 10)
    assert clocks.next_wake(20, {"Hum": 50}) == 1_010
    assert clocks.next_wake(20, {"Hum": 50, "Temp": 101}) == 1_000  # when s is idle
    assert clocks.next_wake(1_010, {"Hum": 500}) == 1_010  # s is silent, and its clock runs on
    assert clocks.watermark("Hum", 1_010) == 1_109
    assert clocks.next_wake(1_010, {"Hum": 1_500}) == 1_401
    assert clocks.watermark("Hum", 1_401) == 1_500


def test_the_end_is_the_end():
    clocks = SourceClocks(0, 1_000)
    clocks.split(at(100), 0, "s")
    clocks.finish()
    assert clocks.watermark("Temp", 0) == clocks.watermark("Hum", 0) == WATERMARK_END
    assert clocks.floor(0) == WATERMARK_END


def test_sources_are_bounded_and_idle_ones_make_room():
    clocks = SourceClocks(0, 1_000, sources_max=2)
    for name in "ab":
        clocks.split(at(10, source=name), 0, name)
    split = clocks.split(at(10, source="c") + at(11, source="a"), 10, None)
    assert ends(split.refused) == [10]
    assert ends(split.on_time) == [11]
    with pytest.raises(LimitReachedError, match="sources_max"):
        clocks.advertise("c", ["Temp"], 10)
    assert ends(clocks.split(at(2_000, source="c"), 1_005, "c").on_time) == [2_000]
    assert len(clocks) == 2  # b was idle, a was not
    assert ends(clocks.split(at(12, source="a"), 1_005, "a").on_time) == [12]


def test_sources_that_come_and_go_leave_nothing_behind():
    clocks = SourceClocks(0, 1_000)
    for now in range(5_000):
        clocks.advertise("s", ["Temp", "Hum"], now)
        clocks.withdraw("s", now)
    assert len(clocks) == 0
    assert sum(len(heap) for heap in clocks._heaps.values()) < 100


# --- properties -------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c"])
kinds = st.sampled_from(["Temp", "Hum"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("events"), names, st.lists(st.tuples(kinds, st.integers(0, 400)))),
        st.tuples(st.just("wait"), st.integers(0, 150), st.none()),
        st.tuples(st.just("ask"), kinds, st.none()),
        st.tuples(st.just("advertise"), names, kinds),
        st.tuples(st.just("withdraw"), names, st.none()),
    ),
    max_size=40,
)


@given(steps, st.integers(0, 40), st.none() | st.integers(1, 200))
def test_a_watermark_never_goes_back_and_nothing_at_or_before_it_is_let_through(
    script: Any, lateness_ms, idle_ms
):
    clocks = SourceClocks(lateness_ms, idle_ms)
    given_out = {"Temp": WATERMARK_NONE, "Hum": WATERMARK_NONE}
    now = 0
    for step, first, second in script:
        if step == "events":
            batch = [KINDS[kind](source=first, start=end, end=end) for kind, end in second]
            split = clocks.split(batch, now, first)
            assert len(split.on_time) + len(split.late) == len(batch)
            assert all(event.end > given_out[event.event_type] for event in split.on_time)
        elif step == "wait":
            now += first
        elif step == "ask":
            watermark = clocks.watermark(first, now)
            assert watermark >= given_out[first]
            given_out[first] = watermark
        elif step == "advertise":
            clocks.advertise(first, [second], now)
        else:
            clocks.withdraw(first, now)


@given(steps, st.integers(0, 40), st.integers(1, 200), kinds, st.integers(0, 600))
def test_no_watermark_is_reached_by_time_alone_before_the_wake(
    script: Any, lateness_ms, idle_ms, kind, target
):
    """`next_wake` may be too early, never too late; at the wake one may be sent on."""

    def played() -> tuple[SourceClocks, int]:
        clocks, now = SourceClocks(lateness_ms, idle_ms), 0
        for step, first, second in script:
            if step == "events":
                batch = [KINDS[name](source=first, start=end, end=end) for name, end in second]
                clocks.split(batch, now, first)
            elif step == "wait":
                now += first
            elif step == "ask":
                clocks.watermark(first, now)
            elif step == "advertise":
                clocks.advertise(first, [second], now)
            else:
                clocks.withdraw(first, now)
        return clocks, now

    clocks, now = played()
    reached = clocks.watermark(kind, now) >= target
    wakes = 0
    while not reached:
        wake = clocks.next_wake(now, {kind: target})
        if wake is None:
            assert clocks.watermark(kind, now + 10**6) < target
            return
        assert wake > now
        assert clocks.watermark(kind, wake - 1) < target
        now = wake
        reached = clocks.watermark(kind, now) >= target
        wakes += 1
        assert wakes <= 20
