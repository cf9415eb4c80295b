"""A list is all that lies between its neighbours, held to looking at every event in turn."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater

DECLARED = "event A(n: int)\nevent B(n: int)\nevent C(n: int)\nsubscription S from u to a\ndetect "
BEGAN = 1_700_000_000_000


def drawn(draw: random.Random) -> list[dict[str, Any]]:
    """Readings, and B that last; no two times are equal, so that nothing touches."""
    times = [BEGAN + 100 * at for at in draw.sample(range(400), 40)]
    events: list[dict[str, Any]] = []
    while len(times) > 1:
        kind, start = draw.choice("ABBBC"), times.pop()
        event = {"type": kind, "id": f"e{len(events)}", "start": start, "end": start}
        if kind == "B" and draw.random() < 0.3:
            event["start"], event["end"] = sorted((start, times.pop()))
        events.append(event)
    return events


def between(events: list[dict[str, Any]], within_ms: int) -> set[tuple[str, tuple[str, ...], str]]:
    """For each A and later C so near to each other the B that begin and end between, if any."""
    found = set()
    for a in (one for one in events if one["type"] == "A"):
        for c in (one for one in events if one["type"] == "C"):
            if not a["end"] < c["start"] <= a["end"] + within_ms:
                continue
            inside = [
                (one["end"], one["start"], one["id"])
                for one in events
                if one["type"] == "B" and a["end"] < one["start"] and one["end"] < c["start"]
            ]
            if inside:
                found.add((a["id"], tuple(name for *_, name in sorted(inside)), c["id"]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_list_is_all_that_begins_and_ends_between(seed):
    events = drawn(random.Random(seed))
    engine = headwater.Engine(f"{DECLARED}A then B+ then C within 20 s", lateness_ms=None)
    engine.push(events)
    bound = [result["events"] for result in engine.finish()]
    found = {(one["A"][0], tuple(one["B"]), one["C"][0]) for one in bound}
    assert found == between(events, 20_000)
    assert len(found) == len(bound)


def test_fifty_candidates_are_one_list():
    engine = headwater.Engine(f"{DECLARED}A then B+ then C within 60 s")
    events = [{"type": "A", "id": "a", "timestamp": BEGAN}]
    events += [{"type": "B", "id": f"b{n}", "timestamp": BEGAN + n} for n in range(1, 51)]
    events += [{"type": "C", "id": "c", "timestamp": BEGAN + 60}]
    (result,) = engine.push(events) + engine.finish()
    assert result["events"]["B"] == [f"b{n}" for n in range(1, 51)]


def test_a_list_at_the_end_is_told_in_its_own_time_though_newer_ones_are_open():
    engine = headwater.Engine(f"{DECLARED}A then B+ within 10 s", lateness_ms=0)
    times = {"a1": 0, "b1": 1_000, "a2": 5_000, "b2": 6_000, "a3": 9_000, "b3": 12_000}
    found = {}
    for name, after_ms in times.items():
        event = {"type": name[0].upper(), "id": name, "timestamp": BEGAN + after_ms}
        found[name] = [result["events"] for result in engine.push([event])]
    # What comes at 12 s says that all is there that may lie within 10 s of the first.
    assert found.pop("b3") == [{"A": ["a1"], "B": ["b1", "b2"]}]
    assert not any(found.values())
    rest = [result["events"]["A"] for result in engine.finish()]
    assert rest == [["a2"], ["a3"]]
