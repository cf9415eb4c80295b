"""What an origin promises of times, what is heard of that, and what it holds while that grows."""

from collections import Counter
from random import Random

import pytest

from broker.engine.event.event import event_class
from broker.engine.ingest.advertised import Advertisement
from broker.network.replication.growth_hold import GrowthHold
from broker.network.replication.time_promises import (
    UNBOUNDED,
    HeardPromises,
    KnownPromises,
    TimeBound,
    TimePromises,
    step_ms,
)

DAY_MS = 86_400_000
CLASSES = {name: event_class(name, {}) for name in "AB"}


def event(name="A", end=1_000, lasts=0, uncertainty=0):
    kind = CLASSES[name]
    times = {"start": end - lasts, "end": end, "uncertainty": uncertainty}
    return kind(id=str(end), source="s", **times)


def said(**what):
    return Advertisement(source="s", **what)


@pytest.mark.parametrize(
    ("uncertainty_ms", "step"),
    [(0, 0), (1, 1), (2, 5), (5, 5), (6, 20), (21, 100), (100, 100), (101, 500), (3_000, 10_000)],
)
def test_steps(uncertainty_ms, step):
    assert step_ms(uncertainty_ms) == step


def test_a_promise_holds_for_all_that_came_whatever_the_order():
    for seed in range(50):
        draw = Random(seed)
        promises = TimePromises(DAY_MS)
        events = [
            event(draw.choice("AB"), at, draw.choice((0, 0, 0, 5)), draw.choice((0, 3, 40, 700)))
            for at in range(1_000, 1_030)
        ]
        while events:
            count = draw.randint(1, 5)
            batch, events = events[:count], events[count:]
            before = {name: promises.of((name,))[0] for name in "AB"}
            counted = promises.observe(batch)
            outside = []
            for one in batch:
                bound = promises.of((one.event_type,))[0]
                assert bound.uncertainty_ms >= one.uncertainty
                assert bound.lasts_ms is None or one.end == one.start
                was = before[one.event_type]
                lasts = one.end > one.start and was.lasts_ms is not None
                if one.uncertainty > was.uncertainty_ms or lasts:
                    outside.append(one.event_type)
                assert bound.wider(was) == bound
            assert counted == Counter(outside)
        # Three steps of uncertainty and one of duration for each type.
        assert 0 < promises.version <= 8


def test_what_is_promised_changes_rarely():
    promises = TimePromises(DAY_MS)
    for most_ms in range(1, 1_001):
        promises.observe([event(uncertainty=most_ms)])
    assert promises.version == len((1, 5, 20, 100, 500, 2_000))
    assert not promises.observe([event(uncertainty=1_000)])


def test_an_advertisement_is_a_promise_as_well():
    promises = TimePromises(DAY_MS)
    promises.advertise(["A", "B"], said(uncertainty=80))
    assert promises.of(("A", "B", "C")) == (TimeBound(100), TimeBound(100), TimeBound())
    assert not promises.observe([event("A", uncertainty=80)])
    promises.advertise(["A"], said())
    promises.advertise(["A"], said(uncertainty=3))
    assert promises.of(("A",)) == (TimeBound(100),)


def test_a_source_may_say_how_long_its_events_last_and_none_that_keeps_to_it_breaks_anything():
    promises = TimePromises(DAY_MS)
    promises.advertise(["A"], said(lasts_ms_max=3_000))
    promises.advertise(["A"], said(uncertainty=3, lasts_ms_max=2_000))  # another source of the type
    assert promises.of(("A", "B")) == (TimeBound(5, 3_000), TimeBound())
    version = promises.version
    assert not promises.observe([event("A", lasts=3_000), event("A", lasts=1, uncertainty=5)])
    assert promises.version == version
    again = TimePromises(DAY_MS)
    again.restore(promises.state(), [event("A", lasts=3_000)])
    assert again.of(("A",)) == promises.of(("A",))


def test_an_event_that_lasts_longer_than_its_source_said_breaks_the_promise_for_good():
    promises = TimePromises(DAY_MS)
    promises.advertise(["A"], said(lasts_ms_max=3_000))
    assert promises.observe([event("A", lasts=3_001)]) == {"A": 1}
    assert promises.of(("A",)) == (TimeBound(0, None),)
    promises.advertise(["A"], said(lasts_ms_max=9_000))
    assert promises.of(("A",)) == (TimeBound(0, None),)
    assert not promises.observe([event("A", lasts=50_000)])


def test_a_process_that_begins_again_keeps_its_promise_and_an_older_disk_that_of_what_it_keeps():
    promises, again, older = (TimePromises(DAY_MS) for _ in range(3))
    kept = [event(uncertainty=7), event("B", lasts=5)]
    promises.observe([*kept, event(uncertainty=30)])
    again.restore(promises.state(), kept)
    assert again.of(("A", "B")) == promises.of(("A", "B")) == (TimeBound(100), TimeBound(0, None))
    older.restore((), kept)
    assert older.of(("A", "B")) == (TimeBound(20), TimeBound(0, None))


def test_of_several_origins_the_widest_holds_and_none_becomes_less():
    heard, own = HeardPromises(), TimePromises(DAY_MS)
    known = KnownPromises(own, heard)
    heard.take("o", ("A", "B"), (TimeBound(10), TimeBound(20)))
    heard.take("p", ("A",), (TimeBound(50),))
    assert (known.of("A"), known.of("B"), known.of("C")) == (
        TimeBound(50),
        TimeBound(20),
        TimeBound(),
    )
    version = known.version
    heard.take("p", ("A",), (TimeBound(1),))
    assert known.of("A") == TimeBound(50)
    assert known.version == version
    assert heard.said("p") == (TimeBound(1),)
    own.observe([event("B", uncertainty=300)])
    assert known.of("B") == TimeBound(500)
    assert known.version > version
    heard.take("q", ("A",), (TimeBound(20),))
    assert known.of("A") == TimeBound(50)
    heard.forget("p")
    assert known.of("A") == TimeBound(20)


def test_who_promises_nothing_is_not_taken_to_promise_points():
    heard = HeardPromises()
    heard.take("old", ("A",), None)
    assert heard.of("A") == UNBOUNDED
    heard.take("odd", ("B", "C"), (TimeBound(),))
    assert heard.of("B") == heard.of("C") == UNBOUNDED
    assert heard.said("odd") is None
    heard.take("new", ("D",), ())
    assert heard.of("D") == TimeBound()
    heard.take("old", ("A",), (TimeBound(5),))  # of a later version now
    assert heard.of("A") == TimeBound(5)


def test_what_is_held_leaves_in_order_once_the_last_probe_is_answered():
    hold = GrowthHold(60_000)
    assert not hold.holds([1])
    assert not hold.defers("p", 1, "early")
    hold.begin(7, 100)
    assert hold.holds([2])
    hold.begin(9, 200)
    assert hold.holds([3, 4])
    assert hold.defers("p", 1, "question")
    assert hold.release(8, 300) is None
    assert hold.due == 60_100
    assert hold.release(9, 300) == ([2, 3, 4], [("p", 1, "question")])
    assert hold.unanswered == 0
    assert hold.due is None
    assert hold.release(9, 400) is None
    hold.begin(10, 500)
    assert hold.holds([5])
    assert hold.defers("q", 2, "another")
    assert hold.due == 60_500
    assert hold.release(10, 600) == ([5], [("q", 2, "another")])


def test_what_is_held_leaves_when_the_wait_is_over():
    hold = GrowthHold(60_000)
    hold.begin(1, 0)
    assert hold.holds([1])
    assert hold.release(0, 59_999) is None
    assert hold.release(0, 60_000) == ([1], [])
    assert hold.unanswered == 1
