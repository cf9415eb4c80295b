"""The engine against the reference matcher: worked cases and generated ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.oracles.compare import compare, unmet
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.matcher import run
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.oracles.spec import Spec
from tests.oracles.worked import WorkedCase
from tests.oracles.worked_cases import WORKED_CASES_WHOLE

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
SEEDS_FAST = 5
SEEDS_LONG = 70
RESULTS_SHARE_MIN = 0.3

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the files of tables stand."""
    return tmp_path_factory.mktemp("beside")


def replayed(
    text: str, events: list[dict[str, Any]], beside: Path | None = None
) -> list[dict[str, Any]]:
    file = "<text>" if beside is None else str(beside / "text.hw")
    engine = headwater.Engine(text, lateness_ms=None, file=file)
    engine.push(events)
    return engine.finish()


@pytest.mark.parametrize("case", WORKED_CASES_WHOLE, ids=lambda case: case.name)
def test_the_engine_meets_every_worked_case(case: WorkedCase, beside: Path) -> None:
    _put_tables(case.spec, beside)
    assert unmet(case, replayed(case.text, [dict(event) for event in case.events], beside)) == []


def _put_tables(spec: Spec, beside: Path) -> None:
    for name, content in files_of(spec):
        (beside / name).write_text(content, encoding="utf-8")


def agree(construct: str, seeds: range, record: Record, beside: Path) -> None:
    """Engine and reference agree; enough cases have results for that to say something."""
    with_results = 0
    for context in CONTEXTS_WHOLE:
        found_here = 0
        for seed in seeds:
            spec, events = random_case(seed, construct, context)
            text = text_of(spec)
            _put_tables(spec, beside)
            expected = run(spec, events)
            found = compare(spec, expected, replayed(text, events, beside))
            assert found == [], f"seed {seed}, {construct}, {context}\n{text}\n{events}"
            found_here += bool(expected)
        what = ["held to the reference matcher", construct, context, len(seeds), found_here]
        record("generated", what)
        with_results += found_here
    assert with_results >= RESULTS_SHARE_MIN * len(seeds) * len(CONTEXTS_WHOLE)


def test_so_many_cases_are_run() -> None:
    """The table at the end of a run tells how many of them there were, and how many had results."""
    pairs = len(CONSTRUCTS) * len(CONTEXTS_WHOLE)
    assert pairs * SEEDS_FAST >= 2_000
    assert pairs * (SEEDS_LONG - SEEDS_FAST) >= 20_000


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_generated_cases_agree_with_the_reference(
    construct: str, record_property: Record, beside: Path
) -> None:
    agree(construct, range(SEEDS_FAST), record_property, beside)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_many_generated_cases_agree_with_the_reference(
    construct: str, record_property: Record, beside: Path
) -> None:
    agree(construct, range(SEEDS_FAST, SEEDS_LONG), record_property, beside)


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
