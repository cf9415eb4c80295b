"""Events leave in the order of time, however they came; groups are due when they were told last."""

from __future__ import annotations

import random
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import event_class
from broker.engine.pattern.agent.patience import Pending, by_end
from broker.engine.runtime.agenda import Agenda
from tests.growing import growth

READING = event_class("Reading", {})


def made(draw: random.Random, count: int) -> list[tuple[int, object]]:
    """Events for three atoms, many of them of one end; some stand for several atoms."""
    events = []
    for number in range(count):
        end = draw.randrange(20)
        event = READING(id=f"e{number}", start=end - draw.randrange(3), end=end)
        events += [(at, event) for at in draw.sample(range(3), draw.choice((1, 1, 2)))]
    return events


@pytest.mark.parametrize("seed", range(20))
def test_events_are_released_in_order_and_none_too_early(seed):
    draw = random.Random(seed)
    events = made(draw, 60)
    pending, released = Pending(), []
    rest = events.copy()
    draw.shuffle(rest)
    until = -1
    for end in sorted(draw.sample(range(25), 6)):
        now = [entry for entry in rest if entry[1].end > until and draw.random() < 0.5]
        # What ends by a time that has passed comes no more: it comes before that.
        now += [entry for entry in rest if until < entry[1].end <= end and entry not in now]
        rest = [entry for entry in rest if entry not in now]
        for at, event in now:
            pending.add(at, [event])
        until = end
        left = pending.release(until)
        assert all(event.end <= until for _, event in left)
        assert pending.first_end is None or pending.first_end > until
        released += left
    assert released == sorted(
        (entry for entry in events if entry[1].end <= until),
        key=lambda entry: (entry[1].order, entry[0]),
    )


ends_that_come = st.lists(st.integers(0, 400), max_size=60) | st.lists(
    st.integers(0, 400), max_size=2
)


@given(
    st.lists(st.tuples(st.integers(0, 2), ends_that_come), max_size=8),
    st.integers(0, 40) | st.just(WATERMARK_END),
)
def test_what_comes_is_released_with_what_waited(pushes, lateness_ms):
    """Also where few come while many wait, which go on a heap, and many again after that."""
    pending, newest = Pending(), 0
    waiting: list[tuple[int, Any]] = []
    for leaf, ends in (*pushes, (0, [])):
        on_time = [end for end in ends if end > newest - lateness_ms]
        events = [READING(id=f"{end}", start=end, end=end) for end in on_time]
        newest = max([newest, *on_time])
        batch = [(leaf, events), (1 - leaf, events[::3])]
        waiting += [(at, event) for at, same in batch for event in same]
        until = newest - lateness_ms
        wanted = [entry for entry in waiting if entry[1].end <= until]
        waiting = [entry for entry in waiting if entry[1].end > until]
        wanted.sort(key=lambda entry: (entry[1].order, entry[0]))
        assert pending.pass_through(batch, until) == wanted
        assert len(pending) == len(waiting)
    waiting.sort(key=lambda entry: (entry[1].order, entry[0]))
    assert pending.entries == waiting
    assert pending.pass_through([], WATERMARK_END) == waiting


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 9), max_size=5)), max_size=3))
def test_the_entries_of_a_batch_stand_by_end(given_ends):
    batch = [
        (leaf, [READING(id=f"{end}", start=end, end=end) for end in sorted(ends)])
        for leaf, ends in given_ends
    ]
    wanted = [(leaf, event) for leaf, events in batch for event in events]
    wanted.sort(key=lambda entry: entry[1].end)
    assert by_end(batch) == wanted


def test_a_group_is_due_when_it_was_told_last():
    agenda = Agenda()
    agenda.set(("a",), 5)
    agenda.set(("b",), 7)
    agenda.set(("a",), 9)
    agenda.set(("c",), 7)
    agenda.set(("c",), None)
    assert agenda.first() == 7
    assert agenda.take(8) == [("b",)]
    assert agenda.take(8) == []
    assert agenda.take(9) == [("a",)]
    assert agenda.first() is None


def test_what_is_due_at_the_end_alone_is_not_kept():
    agenda = Agenda()
    for number in range(1_000):
        agenda.set(("a",), WATERMARK_END if number % 2 else 10 + number)
    agenda.set(("a",), WATERMARK_END)
    assert agenda.first() is None
    assert agenda.take(WATERMARK_END) == []


def seconds(count: int, order: str) -> float:
    """What it takes to put that many readings under two atoms in one batch each, and release."""
    events = [READING(id=f"e{number}", start=number, end=number) for number in range(count)]
    if order == "shuffled":
        random.Random(count).shuffle(events)
    pending = Pending()
    begun = process_time()
    for at in range(2):
        pending.add(at, events)
    released = pending.release(count)
    taken = process_time() - begun
    assert len(released) == 2 * count
    return taken


@pytest.mark.parametrize("order", ["two aliases of one type", "shuffled"])
def test_a_greater_batch_costs_no_more_for_each_event(order):
    # Thirty-two times the events: thirty-two times the work, not a thousand times.
    enough = 32 * 6
    assert growth(lambda: seconds(1_000, order), lambda: seconds(32_000, order), enough) < enough


def test_what_waits_is_listed_in_order():
    draw = random.Random(7)
    events = made(draw, 80)
    draw.shuffle(events)
    pending = Pending()
    for at, event in events:
        pending.add(at, [event])
    assert pending.entries == sorted(events, key=lambda entry: (entry[1].order, entry[0]))
    assert len(pending) == len(events)
    assert pending.first_end == min(event.end for _, event in events)
