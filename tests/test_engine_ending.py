"""`for` counts from the beginning, which in a stream is known once nothing earlier can come."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import headwater

HEAD = "event A(n: int)\nevent B(n: int)\nsubscription w from me to x "
SINGLY = HEAD + "for 8 ms detect B"


def event(ident: str, end: int, kind: str = "B", start: int | None = None) -> dict[str, Any]:
    times = {"timestamp": end} if start is None else {"start": start, "end": end}
    return {"type": kind, "id": ident, **times}


def ids(results: list[dict[str, Any]]) -> list[str]:
    return [
        "".join(one for some in result["events"].values() for one in some) for result in results
    ]


def pushed(engine: headwater.Engine, *events: dict[str, Any]) -> list[str]:
    return ids([result for one in events for result in engine.push([one])])


def whole(text: str, events: list[dict[str, Any]], lateness_ms: int | None) -> list[str]:
    engine = headwater.Engine(text, lateness_ms=lateness_ms)
    return sorted([*pushed(engine, *events), *ids(engine.finish())])


def test_an_earlier_event_ends_it_earlier():
    """The beginning is 1001, so that the end is 1009."""
    engine = headwater.Engine(SINGLY, lateness_ms=10)
    assert pushed(engine, event("p", 1010), event("q", 1001)) == ["q"]
    assert ids(engine.finish()) == []


def test_it_waits_until_nothing_earlier_can_come_and_no_longer():
    """The p ends in time unless something begins at 997 or before; W = greatest end - 10 - 1."""
    engine = headwater.Engine(SINGLY, lateness_ms=10)
    assert pushed(engine, event("p", 1005)) == []
    assert engine.next_due() == 997
    assert pushed(engine, event("a", 1007, "A")) == []  # W = 996
    assert pushed(engine, event("b", 1008, "A")) == ["p"]  # W = 997
    assert pushed(engine, event("q", 1001)) == ["q"]


def test_time_alone_tells_the_beginning():
    engine = headwater.Engine(SINGLY, lateness_ms=10)
    assert pushed(engine, event("p", 1005)) == []
    assert ids(engine.advance(996)) == []
    assert ids(engine.advance(997)) == ["p"]


def test_in_order_nothing_waits():
    engine = headwater.Engine(SINGLY)
    assert pushed(engine, event("p", 1010)) == ["p"]
    assert engine.next_due() is None
    assert pushed(engine, event("q", 1017, start=1012)) == ["q"]
    assert pushed(engine, event("r", 1018)) == []
    engine = headwater.Engine(SINGLY)
    assert pushed(engine, event("p", 1010, start=1005), event("q", 1012)) == ["p", "q"]


def test_a_long_time_is_not_waited_for():
    """Only what began seven days before could end it so early."""
    engine = headwater.Engine(HEAD + "for 7 days detect B", lateness_ms=10)
    assert pushed(engine, event("p", 1010), event("q", 1001)) == ["p", "q"]


def test_what_waits_is_kept_in_a_state():
    engine = headwater.Engine(SINGLY, lateness_ms=10)
    assert pushed(engine, event("p", 1005)) == []
    other = headwater.Engine(SINGLY, lateness_ms=10)
    other.restore(engine.state())
    assert other.next_due() == 997
    assert pushed(other, event("q", 1001)) == ["q"]
    assert ids(other.finish()) == ["p"]


def test_events_that_last_are_waited_for_where_it_is_told_how_long_they_do():
    """An event of 20 ms that ends after 990 begins after 970."""
    engine = headwater.Engine(SINGLY, lateness_ms=10, longest_ms=20)
    assert pushed(engine, event("p", 1005), event("a", 1010, "A")) == []
    assert pushed(engine, event("b", 1012, "A", start=996)) == []
    assert ids(engine.finish()) == []


@pytest.mark.parametrize(
    "text",
    [
        "for 8 ms detect B",
        "for 8 ms detect A then B",
        "for 9 ms detect A as x and[recent] B as y consuming y",
        "for 8 ms detect B group by n at most 1 per 2 ms",
        "for 7 ms detect last A then B",
    ],
)
def test_what_counts_does_not_depend_on_what_came_first(text):
    events = [
        event("a", 1001, "A"), event("b", 1004), event("c", 1006, "A"),
        event("d", 1009), event("e", 1010),
    ]  # fmt: skip
    told = [one | {"n": 1} for one in events]
    wanted = whole(HEAD + text, told, None)
    assert wanted
    for arrival in itertools.permutations(told):
        assert whole(HEAD + text, list(arrival), 10) == wanted
