"""What live brokers report in scenarios is what the reference matcher finds in what they let in."""

import json
from collections import Counter

import pytest

from language import check_text
from simulation import texts
from simulation.scenario import Scenario
from simulation.visitors import STAYS
from tests.oracles.compare import compare
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.simulation.reference import CASES, spec_of

EVENTS_MAX = 90  # the reference looks at every combination


@pytest.mark.parametrize("name", texts.SUBSCRIPTIONS)
def test_both_writings_of_a_subscription_are_one(name):
    """Keys are of the canonical text, so that equal keys are equal meanings as written."""
    ours = check_text(texts.text_of([name], STAYS)).demand()
    theirs = check_text(text_of(spec_of([name], STAYS))).demand()
    assert ours.graph.roots == theirs.graph.roots
    assert list(CASES) == list(texts.SUBSCRIPTIONS)


def held_to_the_reference(seeds: range) -> Counter[str]:
    """How many results of each subscription were held to it."""
    held: Counter[str] = Counter()
    for seed in seeds:
        one = Scenario(seed)
        one.run()
        if len(one.account.taken) > EVENTS_MAX:
            continue
        names = [node.name for node in texts.checked(one.stays).demand().subscriptions.values()]
        spec = spec_of(names, STAYS)
        found = [
            json.loads(emission.payload)
            for _, emission in one.broker.results
            if emission.subscriber == STAYS
        ]
        expected = run(spec, list(one.account.taken.values()))
        wrong = [said for said in compare(spec, expected, found) if not said.endswith("was due")]
        assert wrong == [], f"seed {seed}: {wrong[:3]}"
        held.update(result["subscription"] for result in found)
    return held


def test_live_brokers_agree_with_the_reference():
    held = held_to_the_reference(range(40))
    assert held.total() > 500


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(40, 840, 200))
def test_many_live_brokers_agree_with_the_reference(first):
    held = held_to_the_reference(range(first, first + 200))
    assert set(held) == set(CASES)
