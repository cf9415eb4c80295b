"""What a push costs is told by what it brings, and not by what waits meanwhile."""

from __future__ import annotations

from itertools import count
from time import process_time

import pytest

from headwater import Engine

HEAD = "event A(k: text) event B(k: text)\nsubscription S from a to b detect "
# By name: the pattern, whether many groups wait or many events, and the lateness.
CASES = {
    "last, many groups": ("last A then[..9 s] B group by k", True, 0),
    "recent, much that may yet be followed": ("A then[recent] B", False, 600_000),
    "chronicle, much that may yet be followed": ("A then[chronicle] B within 1 s", False, 600_000),
    "consuming, much that may yet be followed": ("A then B within 1 s consuming A", False, 600_000),
}


def push_ms(name: str, waiting: int) -> float:
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
    best = float("inf")
    for _ in range(4):
        batches = [events(1) for _ in range(50)]
        begun = process_time()
        for batch in batches:
            engine.push(batch)
        best = min(best, process_time() - begun)
    return best * 1_000


@pytest.mark.parametrize("name", CASES)
def test_a_push_costs_no_more_where_more_waits(name: str) -> None:
    few, many = push_ms(name, 100), push_ms(name, 4_000)
    assert many < 8 * few, f"{few:.1f} ms beside 100, {many:.1f} ms beside 4,000"
