"""However many keys there are, an agent keeps so many groups and so much in all of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.core.intake import Intake, IntakeOptions
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import check_text
from tests.broker.core.test_bounds import EVENTS, PATTERNS, SHORT

LIMITS = Limits(occurrences_held_max=40, groups_max=15)
MORE = ["A and B", "A then B", "A then[first] B", "A then[latest] B then[latest] C", "A+[1 s..2 s]"]
GROUPED = [*(one for one in PATTERNS if one != "A"), *MORE]


class Run:
    """The agent of one pattern, grouped by source."""

    def __init__(self, pattern: str, limits: Limits = LIMITS) -> None:
        text = EVENTS + SHORT
        at = pattern.find(" consuming ")
        parts = (pattern, "") if at < 0 else (pattern[:at], pattern[at:])
        specification = check_text(f"{text}{parts[0]}{parts[1]} group by source").demand()
        self.matcher = Matcher(limits, Ledger(), strict=False)
        self.intake = Intake(IntakeOptions(), limits)
        self.intake.declare(list(specification.event_types.values()))
        for task in specification.graph.tasks.values():
            self.matcher.install(task)

    @property
    def agent(self) -> Any:
        (seat,) = self.matcher._seats.values()
        return seat.agent

    def push(self, kind: str, at: int, source: str) -> list[Any]:
        event = {"type": kind, "id": f"{kind}{at}", "timestamp": at, "source": source, "x": 3}
        decoded = self.intake.from_mappings([event])
        return in_one_go(self.matcher.push(decoded.events, lambda _: at - 1))


@pytest.mark.parametrize("pattern", GROUPED)
def test_invented_keys_do_not_make_an_agent_grow(pattern: str) -> None:
    run = Run(pattern)
    for number in range(600):
        for offset, kind in enumerate("AB"[: 1 + number % 2]):
            run.push(kind, 10_000 + 20 * number + offset, f"k{number}")
        assert len(run.agent._partitions) <= LIMITS.groups_max
        # The event of this instant waits for the watermark.
        assert run.matcher.held() <= LIMITS.occurrences_held_max + 2
    dropped = run.matcher.dropped()
    assert dropped["groups_overflow"] + dropped["occurrences_overflow"] > 0


def test_the_group_that_began_first_goes_first_and_is_counted() -> None:
    run = Run("A then[first] B")
    for number in range(20):
        run.push("A", 1_000 + number, f"k{number}")
    found = [
        result.to_dict()["group"]["source"]
        for number in range(20)
        for result in run.push("B", 2_000 + number, f"k{number}") or run.push("C", 2_500, "-")
    ]
    assert run.matcher.dropped()["groups_overflow"] >= 5
    assert found == [f"k{number}" for number in range(20) if f"k{number}" in found]
    assert not {"k0", "k1", "k2", "k3"} & set(found)


@pytest.mark.parametrize("pattern", ["A then last B within 5 s", "A then[first] B within 5 s"])
def test_nothing_waits_for_a_group_that_went(pattern: str) -> None:
    """Groups in which something is found but not final, until other groups take their places."""
    run = Run(pattern)
    for number in range(LIMITS.groups_max):
        run.push("A", 1_000 + 2 * number, f"k{number}")
        run.push("B", 1_001 + 2 * number, f"k{number}")
        assert run.agent.watermark_out(1_001 + 2 * number) <= 1_001 + 2 * number
    for number in range(2 * LIMITS.groups_max):
        run.push("A", 2_000 + number, f"other{number}")
    assert run.push("C", 3_000, "k0") == []
    in_one_go(run.matcher.push((), lambda _: 30_000))
    assert run.agent.watermark_out(30_000) == 30_000


def test_within_the_limits_nothing_is_dropped() -> None:
    run = Run("A then[first] B")
    for number in range(LIMITS.groups_max):
        run.push("A", 1_000 + number, f"k{number}")
    run.push("C", 5_000, "k0")
    assert run.matcher.held() == LIMITS.groups_max
    assert run.matcher.dropped()["groups_overflow"] == 0


@pytest.mark.parametrize("pattern", ["A and B", "A then[first] B"])
def test_what_was_dropped_is_known_after_a_snapshot(pattern: str) -> None:
    first, second = Run(pattern), Run(pattern)
    for number in range(50):
        first.push("A", 1_000 + number, f"k{number}")
    second.agent.restore(json.loads(json.dumps(first.agent.state())))
    assert second.matcher.dropped() == first.matcher.dropped()
    assert second.matcher.dropped()["groups_overflow"] > 0
