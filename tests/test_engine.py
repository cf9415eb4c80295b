"""The engine against the reference matcher: worked cases and generated ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import headwater
from language import check_text
from tests.oracles.compare import compare, unmet
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.oracles.worked import WorkedCase
from tests.oracles.worked_cases import WORKED_CASES

SEEDS_FAST = 30
SEEDS_LONG = 400
RESULTS_SHARE_MIN = 0.3
REFUSED_SHARE_MAX = 0.5

Record = Callable[[str, object], None]


def replayed(text: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


@pytest.mark.parametrize("case", WORKED_CASES, ids=lambda case: case.name)
def test_the_engine_meets_every_worked_case(case: WorkedCase) -> None:
    assert unmet(case, replayed(case.text, [dict(event) for event in case.events])) == []


def only_not_yet(text: str) -> bool:
    """Whether all that keeps a text from running is that a construct does not run yet."""
    found = check_text(text).diagnostics
    return bool(found) and all(one.code.startswith("HW9") for one in found)


def agree(construct: str, context: Any, seeds: range, record: Record) -> None:
    """Engine and reference agree; enough cases have results for that to say something."""
    with_results = 0
    refused = 0
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if only_not_yet(text):
            refused += 1
            continue
        expected = run(spec, events)
        found = compare(spec, expected, replayed(text, events))
        assert found == [], f"seed {seed}, {construct}, {context}\n{text_of(spec)}\n{events}"
        with_results += bool(expected)
    held = len(seeds) - refused
    record("generated", ["held to the reference matcher", construct, context, held, with_results])
    assert with_results >= RESULTS_SHARE_MIN * held
    assert refused <= REFUSED_SHARE_MAX * len(seeds)


PAIRS = [(construct, context) for construct in CONSTRUCTS for context in CONTEXTS]


def test_so_many_cases_are_run() -> None:
    """The table at the end of a run tells how many of them there were, and how many had results."""
    assert len(PAIRS) * SEEDS_FAST >= 2_000
    assert len(PAIRS) * (SEEDS_LONG - SEEDS_FAST) >= 20_000


@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_generated_cases_agree_with_the_reference(
    construct: str, context: Any, record_property: Record
) -> None:
    agree(construct, context, range(SEEDS_FAST), record_property)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_many_generated_cases_agree_with_the_reference(
    construct: str, context: Any, record_property: Record
) -> None:
    agree(construct, context, range(SEEDS_FAST, SEEDS_LONG), record_property)


@pytest.mark.parametrize(
    "construct",
    [
        *("mixed", "definition-twice", "pre-post", "range", "session", "session-max", "days"),
        *("distinct-in-window", "every-reported"),
    ],
)
def test_batches_and_order_do_not_show(construct: str) -> None:
    """In order one by one, or at once in any order: the same results, ids included."""
    for seed in range(20):
        spec, events = random_case(seed, construct, "recent")
        text = text_of(spec)
        whole = replayed(text, events)
        shuffled = random.Random(seed).sample(events, len(events))
        assert replayed(text, shuffled) == whole
