"""Types that `last at most T`: the same as without the words, of events that keep to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import headwater

TYPES = ("A", "B", "C")
TEXTS = (
    "detect A then B",
    "detect[first] A then B then C",
    "detect[chronicle] A and B within 9 ms",
    "detect A without B",
    "detect A then (B or C)",
    "detect A during B",
    "detect absent A for 5 ms",
    "detect A then B+ then C assign n = Count(B)",
    "detect A(duration > 1) overlaps B",
)
WINDOWS = ("aggr every 5 ms", "aggr session 3 ms", "aggr range 6 ms")


def declared(limits: dict[str, int | None]) -> str:
    """Declare the types, each with its limit."""
    ends = {name: "" if ms is None else f" lasts at most {ms} ms" for name, ms in limits.items()}
    return "".join(f"event {name}(n: int){ends[name]}\n" for name in TYPES)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw events that last, with ids that tell them apart."""
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(TYPES), st.integers(0, 40), st.integers(0, 8)), max_size=14
        )
    )
    return [
        {"type": kind, "id": f"{kind}{place}", "start": start, "end": start + ms, "n": place}
        for place, (kind, start, ms) in enumerate(rows)
    ]


def told(text: str, events: list[dict[str, Any]], lateness_ms: int | None) -> list[str]:
    """Return what is detected: which events each result holds, in the order of results."""
    engine = headwater.Engine(text, lateness_ms=lateness_ms)
    ordered = sorted(events, key=lambda one: (one["end"], one["id"]))
    results = [result for one in ordered for result in engine.push([one])]
    found = [*results, *engine.finish()]
    # A task's key is in the ids of what it detects, so that these differ.
    for one in found:
        one["events"].pop("W", None)
    return sorted(repr((one["start"], one["end"], one["events"], one["values"])) for one in found)


limits = st.fixed_dictionaries({name: st.none() | st.integers(0, 8) for name in TYPES})


@given(st.sampled_from(TEXTS), limits, histories(), st.sampled_from([None, 0, 3]))
def test_patterns_find_what_they_find_of_events_that_keep_to_it(detect, bound, events, lateness):
    """By a text without the words, over the history without what is longer."""
    assume(any(ms is not None for ms in bound.values()))
    kept = [
        one
        for one in events
        if (ms := bound[one["type"]]) is None or one["end"] - one["start"] <= ms
    ]
    subscription = f"subscription S from a to b {detect}"
    expected = told(declared(dict.fromkeys(TYPES)) + subscription, kept, lateness)
    assert told(declared(bound) + subscription, kept, lateness) == expected


@given(st.sampled_from(WINDOWS), limits, histories())
def test_windows_find_what_they_find_of_events_that_keep_to_it(window, bound, events):
    kept = [
        one
        for one in events
        if (ms := bound[one["type"]]) is None or one["end"] - one["start"] <= ms
    ]
    rest = (
        f"define W(n) {window} detect A assign n = Count(A)\n"
        "subscription S from a to b detect W then B assign n = W.n"
    )
    expected = told(declared(dict.fromkeys(TYPES)) + rest, kept, 0)
    assert told(declared(bound) + rest, kept, 0) == expected


def test_a_longer_event_is_refused_with_the_reason():
    engine = headwater.Engine(
        declared({"A": 5, "B": None, "C": None}) + "subscription S from a to b detect A"
    )
    with pytest.raises(headwater.EventError, match=r"found 6 ms, declared as at most 5"):
        engine.push([{"type": "A", "id": "a", "start": 0, "end": 6}])
    found = engine.push([{"type": "A", "id": "b", "start": 0, "end": 5}]) + engine.finish()
    assert [one["events"] for one in found] == [{"A": ["b"]}]


def test_nothing_waits_longer_for_a_partner():
    """Once an `A` has lasted, a session waits a week for the next that does; or as declared."""
    rest = (
        "define W(n) aggr session 10 ms detect A assign n = Count(A)\n"
        "subscription S from a to b detect W assign n = W.n"
    )
    events = [
        {"type": "A", "id": "a", "start": 0, "end": 5},
        {"type": "B", "id": "b", "timestamp": 1_000, "n": 1},
    ]
    waits = {}
    for ms in (5, None):
        text = declared({"A": ms, "B": None, "C": None}) + rest
        engine = headwater.Engine(text + "\nsubscription T from a to b detect B", lateness_ms=0)
        waits[ms] = [one["subscription"] for one in engine.push(events)]
    assert "S" in waits[5]
    assert "S" not in waits[None]
