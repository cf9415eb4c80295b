"""Stages forget groups that have nothing open."""

from __future__ import annotations

import pytest

from broker.core.intake import IntakeOptions
from headwater.engine import Pipeline
from language import check_text

DECLARED = "event A(tag: text)\nevent B(tag: text)\nsubscription S from u to a\ndetect "


def held_groups(detect: str, tags: int, step_ms: int) -> tuple[int, int]:
    """Groups known and events held after so many groups in a row, each soon silent."""
    text = f"{DECLARED}{detect}\ngroup by tag"
    pipeline = Pipeline(check_text(text).demand(), IntakeOptions())
    for number in range(tags):
        kind = "AB"[number % 2]
        event = {"type": kind, "id": str(number), "timestamp": number * step_ms}
        event["tag"] = f"tag-{number // 3}"
        pipeline.admit(pipeline.intake.from_mappings([event]).events)
    (seat,) = pipeline.matcher._seats.values()
    return len(seat.agent._partitions), pipeline.matcher.held()


@pytest.mark.parametrize(
    "detect",
    [
        "A then[chronicle] B within 10 s",
        "[first] A then B within 10 s",
        "A without[5 s] B",
        "A then B+ within 5 s",
        "A{2} within 5 s",
        "A+[..5 s]",
        "[one] A and B within 5 s",
        "A then nth 2 B within 10 s",
    ],
)
def test_groups_that_are_silent_are_forgotten(detect):
    groups, held = held_groups(detect, 3_000, 1_000)
    assert groups < 100
    assert held < 100
