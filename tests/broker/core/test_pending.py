"""Events leave in the order of time, however they came; groups are due when they were told last."""

from __future__ import annotations

import random
from time import process_time

import pytest

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import event_class
from broker.engine.pattern.agent.patience import Pending
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
