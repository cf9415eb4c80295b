"""What a push costs is told by what it brings, and not by what waits meanwhile."""

from __future__ import annotations

from itertools import count
from time import process_time

import pytest

from headwater import Engine
from tests.growing import growth

HEAD = "event A(k: text) event B(k: text)\nsubscription S from a to b detect "
# By name: the pattern, whether many groups wait or many events, and the lateness.
CASES = {
    "last, many groups": ("last A then[..9 s] B group by k", True, 0),
    "recent, much that may yet be followed": ("A then[recent] B", False, 600_000),
    "chronicle, much that may yet be followed": ("A then[chronicle] B within 1 s", False, 600_000),
    "consuming, much that may yet be followed": ("A then B within 1 s consuming A", False, 600_000),
}


def push_seconds(name: str, waiting: int) -> float:
    """The processor time of fifty pushes of one event while so many wait."""
    pattern, groups, lateness_ms = CASES[name]
    engine = Engine(HEAD + pattern, lateness_ms=lateness_ms)
    numbers = count()

    def events(many: int) -> list[dict[str, object]]:
        return [
            {"type": "A", "id": f"e{n}", "timestamp": 10**9 + n, "k": f"g{n}" if groups else "g"}
            for n in (next(numbers) for _ in range(many))
        ]

    engine.push(events(waiting))
    batches = [events(1) for _ in range(100)]
    for batch in batches[:50]:
        engine.push(batch)
    begun = process_time()
    for batch in batches[50:]:
        engine.push(batch)
    return process_time() - begun


@pytest.mark.parametrize("name", CASES)
def test_a_push_costs_no_more_where_more_waits(name: str) -> None:
    assert growth(lambda: push_seconds(name, 100), lambda: push_seconds(name, 4_000), 8) < 8


def silences_seconds(count_of: int) -> float:
    """The processor time of fifty pushes of one event that breaks no silence of so many."""
    engine = Engine(
        "event A(v: int)\n"
        + "\n".join(
            f"subscription S{n} from a to b detect absent A(v = {n + 1}) for 60 s"
            for n in range(count_of)
        )
    )
    batch = [{"type": "A", "id": f"e{n}", "timestamp": 10**9 + n, "v": 0} for n in range(100)]
    for event in batch[:50]:
        engine.push([event])
    begun = process_time()
    for event in batch[50:]:
        engine.push([event])
    return process_time() - begun


def test_an_event_wakes_no_silence_that_it_does_not_break() -> None:
    assert growth(lambda: silences_seconds(10), lambda: silences_seconds(300), 8) < 8


def test_a_silence_in_a_group_begins_with_the_least_start_of_any_event_there() -> None:
    text = "event A(v: int, k: text)\nsubscription S from a to b\n"
    engine = Engine(f"{text}detect absent A(v = 1) for 5 s group by k", lateness_ms=3_000)
    for at, start, v in (
        (4_000, 4_000, 0),
        (5_000, 2_000, 0),
        (3_000, 3_000, 0),
        (9_000, 9_000, 1),
    ):
        engine.push([{"type": "A", "id": f"e{at}", "start": start, "end": at, "v": v, "k": "x"}])
    found = [(one["start"], one["end"]) for one in engine.finish()]
    assert found == [(2_000, 7_000), (9_000, 14_000)]
