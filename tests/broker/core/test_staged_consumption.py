"""However consumption is undone, the results are those of finding all again from all events."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater
from broker.engine.pattern.agent import staged_partition, staged_plan

DECLARED = "event A(n: int)\nevent B(n: int)\nevent C(n: int)\nsubscription S from u to a\ndetect "


def results(detect: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    engine = headwater.Engine(DECLARED + detect)
    return engine.push(events[:150]) + engine.push(events[150:]) + engine.finish()


def drawn(seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    kinds = draw.choices("ABC", k=300)
    return [
        {"type": kind, "id": f"e{at}", "timestamp": 1_700_000_000_000 + 500 * at}
        for at, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    "detect",
    [
        "(A then[recent, ..5 s] B) without C consuming A",
        "A then[recent, ..5 s] nth 2 B consuming B",
        "[recent] A then[..5 s] B+ then[..5 s] C consuming A",
    ],
)
def test_what_a_log_forgets_changes_nothing(detect, monkeypatch):
    wanted = {}
    for least in (10**9, 1, 8):
        monkeypatch.setattr(staged_partition, "LOG_MIN", least)
        found = [results(detect, drawn(seed)) for seed in range(3)]
        assert found == wanted.setdefault("found", found)
    assert all(wanted["found"])


@pytest.mark.parametrize(
    "detect",
    [
        "[chronicle] A then B then C consuming A",
        "[first] A then B then C consuming B",
        "[chronicle] (A as x then B) then (A as y then C) consuming y",
        "[chronicle] (A as x and B) then (A as y and C) consuming x",
        "[chronicle] A as x then (A as y and B) consuming x",
        "[chronicle] A as x then (A as y then C) consuming y",
    ],
)
def test_what_is_spent_need_not_be_found_again(detect, monkeypatch):
    seeds = range(8)
    found = [results(detect, drawn(seed)) for seed in seeds]
    monkeypatch.setattr(staged_plan, "consumption_of", lambda *_: "again")
    assert [results(detect, drawn(seed)) for seed in seeds] == found
    assert any(found)


def test_consumed_events_that_are_known_by_identity_are_kept_and_few():
    """Another event gets the identity of one that is gone, and was taken for consumed then."""
    detect = "[chronicle] (A as x and B) then (A as y and C) within 20 s consuming x"
    engine = headwater.Engine(DECLARED + detect)
    most = consumed = 0
    for event in [one for seed in range(4) for one in drawn(seed)]:
        at = event["timestamp"] + 150_000 * consumed
        consumed += event["id"] == "e299"
        engine.push([{**event, "timestamp": at}])
        (seat,) = engine._pipeline.matcher._seats.values()
        for partition in seat.agent._partitions.values():
            memory = partition.site.memory
            assert all(id(one) == key for key, one in memory.gone.items())
            most = max(most, len(memory.gone))
    assert 0 < most < 20
