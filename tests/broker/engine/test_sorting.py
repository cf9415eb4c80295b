"""Occurrences and results leave in their order, however they were given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.event.occurrence import order_of, sort_in_order
from broker.engine.pattern.uncertainty.uncertainty import Maybe
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.results import sort_results
from broker.engine.runtime.subscribed import IN_ORDER, OccurrenceResult
from headwater import Engine, Event

Reading = event_class("Reading", {"x": "float"})
FOUR = (
    "event A(v: float)\n"
    + "".join(f"subscription S{at} seq 1 from u to a detect A(v < {at + 2})\n" for at in range(4))
)  # fmt: skip


def reading(name: str, start: int, end: int) -> Any:
    return Reading(id=name, start=start, end=end)


moments = st.integers(0, 4) | st.sampled_from([-(2**61), 2**61, 2**62, -(2**70)])
readings = st.builds(reading, st.sampled_from("abc"), moments, moments)
pairs = st.tuples(moments, moments, readings, readings)
maybes = st.builds(lambda pair: (Maybe(pair[0]), *pair[1:]), pairs)
occurrences = st.lists(readings | pairs, max_size=12) | st.lists(readings | pairs | maybes)


@pytest.mark.parametrize("grouped", [False, True])
@given(items=occurrences)
def test_key_after_key_gives_the_order_that_all_of_it_gives(items, grouped):
    """Also where many end together; equal ones stand as they stood."""
    found: list[Any] = [(one, ()) for one in items] if grouped else list(items)
    sort_in_order(found, *(IN_ORDER if grouped else ()))
    wanted = sorted(items, key=order_of)
    assert [id(one[0]) if grouped else id(one) for one in found] == list(map(id, wanted))


class Place:
    """What all results of one subscription share, as far as their order asks."""

    __slots__ = ("name", "place", "subscription")

    def __init__(self, place: int) -> None:
        self.place = place
        self.subscription = self  # and has a name
        self.name = f"S{place}"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40, unique=True),
    st.sampled_from([1, 3, 40]),
)
def test_results_are_sorted_by_what_occurred_and_by_their_subscriptions(told_of, each):
    """Whatever the order in which their subscriptions are given them; ends of two are the same."""
    places: Any = [Place(at) for at in range(4)]
    events = [reading(f"e{at}", end - end % 3, end) for at, end in enumerate((*range(9), 8))]
    results: list[Any] = [
        OccurrenceResult(places[place], events[at].start, events[at].end, (), events[at])
        for place, at in told_of
    ]
    in_one_go(sort_results(results, each))
    found = [(one.end, one.occurrence.id, one.place) for one in results]
    assert found == sorted((events[at].end, f"e{at}", place) for place, at in told_of)


@given(st.lists(st.integers(0, 30), max_size=30).map(sorted), st.randoms(use_true_random=False))
def test_results_of_several_subscriptions_are_put_back_in_order(times, draw):
    """Also where they come by events, those of one in the order of their subscriptions."""
    engine = Engine(FOUR, lateness_ms=0)
    events = [Event("A", id=f"e{at:02}", timestamp=end, v=2.0) for at, end in enumerate(times)]
    results = engine._pipeline.admit(engine._decoded(events).events)
    by_event = [[one for one in results if one.end == end] for end in dict.fromkeys(times)]
    draw.shuffle(by_event)
    turned = [one for same in by_event for one in same]
    if draw.random() < 0.5:
        draw.shuffle(turned)
    in_one_go(sort_results(turned, 3))
    assert turned == results
