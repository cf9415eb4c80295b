"""What a pattern's agent holds is bounded; past the limit the oldest go, and each is counted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import check_text

MOST = 6
DECLARED = "event A(n: int)\nevent B(n: int)\nsubscription S from a to b "
PATTERNS = {
    "at once": "detect A then B",
    "either way": "detect A and B",
    "recent": "detect[recent] A and B",
    "in groups": "detect A then B group by source",
    "consuming": "detect A then B consuming B",
    "chronicle": "detect[chronicle] A then B",
    "first": "detect[first] A then B",
    "without": "detect A without[1 h] B",
    "last": "detect last A and B within 1 h",
    "a list": "detect (A+ then B) within 1 h",
    "one": "detect[one] A then B",
}


class Run:
    """One agent under a limit, and everything that it is asked."""

    def __init__(self, pattern: str, most: int) -> None:
        self.limits = Limits(occurrences_held_max=most)
        self.specification = check_text(DECLARED + pattern).demand()
        self.matcher = Matcher(self.limits)
        self._intake = Intake(IntakeOptions(lateness_ms=None), self.limits)
        self._intake.declare(self.specification.event_types.values())
        for task in self.specification.graph.tasks.values():
            self.matcher.install(task)

    def push(self, kind: str, at: int, source: str = "s") -> list[dict[str, Any]]:
        event = {"type": kind, "id": f"{kind}{at}", "timestamp": at, "source": source, "n": at}
        events = self._intake.from_mappings([event]).events
        return [one.to_dict() for one in in_one_go(self.matcher.push(events, lambda _: at))]

    def finish(self) -> list[dict[str, Any]]:
        return [one.to_dict() for one in in_one_go(self.matcher.push([], lambda _: WATERMARK_END))]

    @property
    def dropped(self) -> int:
        return self.matcher.dropped()["occurrences_overflow"]


@pytest.mark.parametrize("name", PATTERNS)
def test_no_more_is_held_than_the_limit_and_what_goes_is_counted(name):
    bounded, free = Run(PATTERNS[name], MOST), Run(PATTERNS[name], 1_000)
    most_held = 0
    for at in range(1, 41):
        bounded.push("A", at, f"s{at % 3}")
        free.push("A", at, f"s{at % 3}")
        assert bounded.matcher.held() <= MOST
        most_held = max(most_held, free.matcher.held())
    # Before anything is dropped, what waits is looked at: under `first` the earliest alone matters.
    assert (bounded.dropped > 0) == (most_held > MOST and name != "first")
    assert free.dropped == 0


def test_what_is_dropped_is_as_much_as_there_is_too_much():
    run = Run(PATTERNS["at once"], MOST)
    for at in range(1, 31):
        run.push("A", at)
        assert run.matcher.held() + run.dropped == at
    assert run.matcher.held() == MOST


@pytest.mark.parametrize("name", ["at once", "either way", "chronicle", "one"])
def test_the_oldest_go_first(name):
    run = Run(PATTERNS[name], MOST)
    found = []
    for at in range(1, 31):
        found += run.push("A", at)
    found += run.push("B", 31) + run.finish()
    kept = {f"A{at}" for at in range(31 - MOST, 31)}
    bound = {ident for result in found for ident in result["events"]["A"]}
    assert bound
    assert bound <= kept
    if name in ("at once", "either way"):
        assert bound >= {f"A{at}" for at in range(32 - MOST, 31)}


@pytest.mark.parametrize("name", ["at once", "either way", "in groups"])
def test_what_is_found_past_the_limit_is_a_part_of_what_is_found_without(name):
    for seed in range(30):
        draw = random.Random(seed)
        bounded, free = Run(PATTERNS[name], MOST), Run(PATTERNS[name], 1_000)
        steps = [(draw.choice("AAB"), at, draw.choice(("s", "t"))) for at in range(1, 40)]
        found, every = (
            [result["id"] for step in steps for result in run.push(*step)]
            for run in (bounded, free)
        )
        assert set(found) <= set(every)
        assert len(found) == len(set(found))
        assert (len(found) < len(every)) <= (bounded.dropped > 0)


def silent(most, ends, *, grouped=False):
    """Held at most, dropped, and the silences told of, where one event of an hour came first."""
    run = Run(f"detect absent A for 10 s{' group by source' if grouped else ''}", most)
    begun = {"type": "A", "id": "long", "start": 0, "end": 3_600_000, "source": "s", "n": 0}
    held, told = 0, []
    for at, end in enumerate((3_600_000, *ends)):
        event = {"type": "A", "id": f"a{at}", "timestamp": end, "source": "s", "n": 0}
        events = run._intake.from_mappings([event if at else begun]).events
        run.matcher.begin(min(one.start for one in events))
        told += in_one_go(run.matcher.push(events, lambda _, end=end: end - 1))
        held = max(held, run.matcher.held())
    return held, run.dropped, told + in_one_go(run.matcher.push([], lambda _: WATERMARK_END))


def test_silences_that_an_event_that_lasts_may_yet_break_are_held_up_to_the_limit():
    """Each event ends a silence of twenty seconds, and begins one that may have been broken."""
    ends = range(3_620_000, 4_600_000, 20_000)
    held, dropped, told = silent(1_000, ends)
    assert held > 40
    assert (dropped, len(told)) == (0, len(ends) + 1)
    bounded, gone, rest = silent(MOST, ends)
    assert bounded <= MOST + 2  # the newest event waits for its turn, as P and to begin with
    assert gone > 40
    assert [one.id for one in rest] == [one.id for one in told[-len(rest) :]]
    assert len(rest) + gone == len(told)


def test_what_comes_long_after_the_beginning_is_not_kept_for_it():
    """In a group, whose beginning an event that lasts may yet put earlier."""
    held, dropped, told = silent(1_000, range(3_600_500, 4_600_000, 500), grouped=True)
    assert dropped == 0
    assert len(told) == 1
    assert held < 8
