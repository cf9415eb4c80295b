"""One specification and its events give the same in a replay, in a network of brokers and on Spark.

The events are spread over sources at six brokers, whose links fail and processes end; on Spark they
come in batches of any size and order. Spark is here what it does with the operator: the real one
runs some of these cases in `test_on_spark.py`.
"""

import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from language import check_text
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of
from tests.server.test_detection import on_spark, plain, replayed
from tests.simulation.network.spread import Spread, moved

CASE = (
    st.sampled_from(list(CONSTRUCTS)),
    st.sampled_from(list(CONTEXTS)),
    st.integers(min_value=0, max_value=10**6),
    st.sampled_from([0, 15]),
)


def compare(construct, context, seed, faults):
    """How many results all three have; None where the case is none for a network."""
    spec, events = random_case(seed, construct, context)
    text, events = text_of(spec), moved(events)
    if not events or not check_text(text).ok or "absent" in text:
        return None
    expected = plain(replayed(text, events))
    assert plain(on_spark(text, events, random.Random(seed))) == expected, f"on Spark:\n{text}"
    if plain(on_spark(text, events, random.Random(seed), finished=False)) != expected:
        return None  # something is open until the end of all time, to which no broker comes
    run = Spread(seed, text, events, faults)
    run.run()
    assert plain(run.results) == expected, f"in the network:\n{text}"
    return len(expected)


@pytest.mark.timeout(60)
@given(*CASE)
@example("then-bound", "unrestricted", 0, 15)
@example("every", "recent", 2, 15)
@settings(max_examples=8)
def test_replay_network_and_spark_give_the_same(construct, context, seed, faults):
    compare(construct, context, seed, faults)


@pytest.mark.long
@pytest.mark.timeout(3600)
@given(*CASE)
def test_replay_network_and_spark_give_the_same_in_many_more_cases(
    construct, context, seed, faults
):
    compare(construct, context, seed, faults)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_most_of_these_cases_have_results_to_compare():
    found = Counter(bool(compare(construct, "unrestricted", 1, 0)) for construct in CONSTRUCTS)
    assert found[True] > len(CONSTRUCTS) / 2
