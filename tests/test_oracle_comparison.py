"""What compares the product with the reference matcher finds every kind of difference."""

import copy
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.compare import compare, unmet
from tests.oracles.generate import random_case
from tests.oracles.matcher import run
from tests.oracles.worked_cases import WORKED_CASES_WHOLE, WorkedCase

ROOT = Path(__file__).resolve().parent.parent


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def as_product(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference results in the product's form: digests for detected events, an id for each."""
    made = []
    for result in results:
        plain = {k: v for k, v in result.items() if k not in {"structure", "primitives", "order"}}
        plain["events"] = {
            alias: [
                digest(structure) if one is None else one
                for one, structure in zip(ids, result["structure"][alias], strict=True)
            ]
            for alias, ids in result["events"].items()
        }
        made.append({**plain, "id": digest([result["subscription"], result["structure"]])})
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def rich_case() -> tuple[Any, list[dict[str, Any]]]:
    """A case with several results that bind detected events, at least one of them twice."""
    for seed in range(500):
        spec, events = random_case(seed, "definition", "unrestricted")
        results = run(spec, events)
        detected = [
            digest(r["structure"][alias])
            for r in results
            for alias, ids in r["events"].items()
            if None in ids
        ]
        if 6 <= len(results) <= 12 and 4 <= len(set(detected)) < len(detected):
            return spec, results
    raise AssertionError


@pytest.mark.parametrize(
    "construct",
    [*("mixed", "definition-twice", "pre-post", "cases", "range", "list", "absent", "times")],
)
def test_results_agree_with_themselves(construct: str) -> None:
    for seed in range(25):
        spec, events = random_case(seed, construct, "recent")
        results = run(spec, events)
        assert compare(spec, results, as_product(results)) == []


def _drop(results: list[dict[str, Any]]) -> None:
    del results[2]


def _double(results: list[dict[str, Any]]) -> None:
    results.insert(2, copy.deepcopy(results[2]))


def _swap_ends(results: list[dict[str, Any]]) -> None:
    results[0], results[-1] = results[-1], results[0]


def _other_time(results: list[dict[str, Any]]) -> None:
    results[1]["start"] -= 1


def _maybe(results: list[dict[str, Any]]) -> None:
    results[1]["certainty"] = "maybe"


def _other_seq(results: list[dict[str, Any]]) -> None:
    results[1]["seq"] += 1


def _more_values(results: list[dict[str, Any]]) -> None:
    results[1]["values"]["surplus"] = 1


def _same_id(results: list[dict[str, Any]]) -> None:
    results[1]["id"] = results[0]["id"]


def _new_digest(results: list[dict[str, Any]]) -> None:
    """One detected event gets another digest in one of the two results that bind it."""
    seen: dict[str, dict[str, Any]] = {}
    for result in results:
        for alias, ids in result["events"].items():
            for number, one in enumerate(ids):
                if len(one) == 16 and one in seen:
                    result["events"][alias][number] = "0" * 16
                    return
                seen[one] = result
    raise AssertionError


def _one_digest(results: list[dict[str, Any]]) -> None:
    """All detected events share one digest."""
    for result in results:
        result["events"] = {
            alias: ["0" * 16 if len(one) == 16 else one for one in ids]
            for alias, ids in result["events"].items()
        }


@pytest.mark.parametrize(
    "spoil",
    [
        *(_drop, _double, _swap_ends, _other_time, _maybe, _other_seq, _more_values, _same_id),
        *(_new_digest, _one_digest),
    ],
)
def test_a_planted_difference_is_found(spoil: Callable[[list[dict[str, Any]]], None]) -> None:
    spec, results = rich_case()
    product = as_product(results)
    assert compare(spec, results, product) == []
    spoil(product)
    assert compare(spec, results, product) != []


def test_numbers_are_compared_by_worth_and_truth_values_are_none() -> None:
    case = next(
        c
        for c in WORKED_CASES_WHOLE
        if c.name == "conditions are joined by commas, membership of null is false"
    )
    results = run(case.spec, case.events)
    product = as_product(results)
    product[0]["values"]["A"]["n"] = 1.0
    assert compare(case.spec, results, product) == []
    product[0]["values"]["A"]["n"] = True
    assert compare(case.spec, results, product) != []


@pytest.mark.parametrize("case", WORKED_CASES_WHOLE, ids=lambda case: case.name)
def test_a_worked_case_is_met_by_right_results_and_by_no_others(case: WorkedCase) -> None:
    product = as_product(run(case.spec, case.events))
    assert unmet(case, product) == []
    assert unmet(case, [*product, {}]) != []
    if product:
        product[0]["events"]["surplus"] = ["x"]
        assert unmet(case, product) != []


def test_cases_are_the_same_under_every_hash_seed() -> None:
    script = (
        "import json\n"
        "from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case\n"
        "from tests.oracles.matcher import run\n"
        "from tests.oracles.render import text_of\n"
        "for c in CONSTRUCTS_WHOLE:\n"
        "    for x in CONTEXTS_WHOLE:\n"
        "        for seed in range(2):\n"
        "            spec, events = random_case(seed, c, x)\n"
        "            print(text_of(spec), json.dumps([events, run(spec, events)]))\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10_000


def test_a_class_of_results_that_look_alike_is_matched_as_a_whole() -> None:
    """Results that differ only inside detected events may come in either order of their digests."""
    for seed in range(300):
        spec, events = random_case(seed, "cases", "unrestricted")
        results = run(spec, events)
        looks = [json.dumps([r["subscription"], r["order"], r["values"]]) for r in results]
        if len(results) <= 8 and len(set(looks)) < len(looks):
            renamed = as_product(results)
            shift = {
                one: digest([random.Random(one).random()])
                for r in renamed
                for ids in r["events"].values()
                for one in ids
                if len(one) == 16
            }
            for result in renamed:
                result["events"] = {
                    alias: [shift.get(one, one) for one in ids]
                    for alias, ids in result["events"].items()
                }
            assert compare(spec, results, renamed) == []
            return
    raise AssertionError
