"""Generated cases are worth running, and what must hold of any of them holds of the reference.

Owns: properties over many cases; the outcomes of single ones stand in `test_oracles`.
"""

import ast
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import spec as s
from tests.oracles.generate import (
    CONSTRUCTS,
    CONSTRUCTS_WHOLE,
    CONTEXTS,
    CONTEXTS_WHOLE,
    cases,
    random_case,
    specs,
    traces,
)
from tests.oracles.matcher import run
from tests.oracles.render import text_of

SEEDS = range(60)


def share_with_results(construct: str, context: s.Context, seeds: range) -> float:
    """How many of the cases have results; the order of the input is nothing to any of them."""
    with_results = 0
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        results = run(spec, events)
        with_results += any(r["subscription"] == "S1" for r in results)
        if seed % 10 == 0:
            turned = random.Random(seed).sample(events, len(events))
            assert json.dumps(run(spec, turned)) == json.dumps(results)
    return with_results / len(seeds)


@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS_WHOLE)
def test_enough_generated_cases_have_results(construct: str, context: s.Context) -> None:
    """Of so few the share may be a little less than of many."""
    assert share_with_results(construct, context, range(10)) >= 0.2


@pytest.mark.long
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS_WHOLE)
def test_enough_of_many_generated_cases_have_results(construct: str, context: s.Context) -> None:
    assert share_with_results(construct, context, range(100)) >= 0.3


def test_what_the_engine_runs_is_a_part_of_the_whole() -> None:
    assert CONSTRUCTS.items() <= CONSTRUCTS_WHOLE.items()
    assert set(CONTEXTS) <= set(CONTEXTS_WHOLE)


@pytest.mark.parametrize("context", [one for one in CONTEXTS_WHOLE if one != "unrestricted"])
@pytest.mark.parametrize("construct", ["and", "then", "and-bound", "within", "spread-globe"])
def test_a_context_reports_a_part_of_unrestricted(construct: str, context: s.Context) -> None:
    """Of one operator, or of a chain whose tests prune as they pass: every choice is a combination.
    And it is a real choice: often something is left out.
    """
    fewer = 0
    for seed in SEEDS:
        spec, events = random_case(seed, construct, context)
        freed = replace(spec, subscriptions=tuple(_freed(one) for one in spec.subscriptions))
        chosen, every = (
            {json.dumps([r["subscription"], r["structure"]]) for r in run(one, events)}
            for one in (spec, freed)
        )
        assert chosen <= every
        fewer += chosen < every
    # `latest` chooses in `then` chains alone.
    assert fewer >= 0.2 * len(SEEDS) or (context == "latest" and construct.startswith("and"))


@pytest.mark.parametrize("context", ["first", "latest", "chronicle"])
def test_what_spends_reports_an_event_once(context: s.Context) -> None:
    """Of one operator with this context, in a `detect` of two places."""
    several = 0
    for seed in range(300):
        spec, events = random_case(seed, "then", context)
        (case,) = (one.case for one in spec.subscriptions if one.name == "S1")
        pair = case.pattern.operand if isinstance(case.pattern, s.Suffixed) else case.pattern
        plain = isinstance(pair, s.Pair) and len(s.atoms_of(pair)) == 2
        if not plain or (pair.context or case.context) != context:
            continue
        results = [r for r in run(spec, events) if r["subscription"] == "S1"]
        used = [one for r in results for ids in r["structure"].values() for one in ids]
        assert len(used) == len(set(used))
        several += len(results) > 1
    assert several >= 10


def _freed(subscription: s.Subscription) -> s.Subscription:
    case = subscription.case
    return replace(subscription, case=replace(case, pattern=_plain(case.pattern), context=None))


def _plain(pattern: s.Pattern) -> s.Pattern:
    match pattern:
        case s.Pair(_, left, right):
            return replace(pattern, left=_plain(left), right=_plain(right), context=None)
        case s.Suffixed(operand):
            return replace(pattern, operand=_plain(operand))
    return pattern


def test_consumption_never_reports_an_event_twice() -> None:
    shortened = 0
    for seed in range(200):
        spec, events = random_case(seed, "consuming", "unrestricted")
        case = next(one.case for one in spec.subscriptions if one.name == "S1")
        results = [r for r in run(spec, events) if r["subscription"] == "S1"]
        used = [
            json.dumps(identity)
            for r in results
            for name in case.consuming
            for identity in r["structure"].get(name, [])
        ]
        assert len(used) == len(set(used))
        whole = replace(spec, subscriptions=(s.Subscription("S1", replace(case, consuming=())),))
        shortened += len(results) < len(run(whole, events))
    assert shortened >= 60


@settings(max_examples=20)
@given(data=st.data())
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_hypothesis_draws_cases_of_every_construct(data: st.DataObject, context: s.Context) -> None:
    """A repeated event changes nothing, whatever is matched; specifications are drawn alone too."""
    construct = data.draw(st.sampled_from(sorted(CONSTRUCTS_WHOLE)))
    spec, events = data.draw(cases(construct, context))
    assert run(spec, [*events, *events]) == run(spec, events)
    alone = data.draw(specs(construct, context))
    assert "subscription S1 " in text_of(alone)
    used = {one["type"] for one in data.draw(traces(alone))}
    assert used <= {*(one.name for one in alone.types), "Stranger"}


def test_a_case_follows_from_its_seed_alone() -> None:
    first, again, other = (random_case(seed, "mixed", "recent") for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_the_oracles_import_nothing_of_the_product() -> None:
    """Nor do they import what other tests share, which could lead there."""
    for path in sorted((Path(__file__).parent / "oracles").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
                assert not names[0].startswith("tests.") or names[0].startswith("tests.oracles")
            product = {"language", "planner", "broker", "simulation", "server", "headwater"}
            assert not {name.split(".")[0] for name in names} & product, path.name
