"""Jin et al.: basic events lose nothing; expanded again they are the primitive ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater

CYCLE_S = 1
TEXT = """
event Read(tagID: text, readerID: text)
define Basic(tag, reader, entered, left) aggr session 1 s
  detect Read assign tag = group.tagID, reader = group.readerID,
    entered = Min(Read.timestamp), left = Max(Read.timestamp) group by tagID, readerID
subscription S seq 1 from me to it detect Basic as b
assign tag = b.tag, reader = b.reader, entered = b.entered, left = b.left
"""


def basic(readings: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    engine = headwater.Engine(TEXT, lateness_ms=None)
    engine.push(
        {"type": "Read", "id": f"{t}{r}{s}", "timestamp": s * 1000, "tagID": t, "readerID": r}
        for t, r, s in readings
    )
    return [result["values"] for result in engine.finish()]


def test_one_basic_event_stands_for_a_minute_of_reads() -> None:
    """Section 2.3: (o, R_A) read each second for a minute is one basic event."""
    found = basic([("o", "RA", second) for second in range(25, 86)])
    assert found == [{"tag": "o", "reader": "RA", "entered": 25_000, "left": 85_000}]


@pytest.mark.parametrize("seed", range(20))
def test_basic_events_expanded_are_the_primitive_ones(seed: int) -> None:
    """Section 2.3: the read cycle fills each basic event from its start to its end."""
    draw = random.Random(seed)
    readings = [
        (t, r, s) for t in "ab" for r in ("R1", "R2") for s in range(40) if draw.random() < 0.7
    ]
    found = basic(readings)
    expanded = [
        (event["tag"], event["reader"], second)
        for event in found
        for second in range(event["entered"] // 1000, event["left"] // 1000 + 1, CYCLE_S)
    ]
    assert sorted(expanded) == sorted(readings)
    assert len(found) < len(readings)
