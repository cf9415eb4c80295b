"""What the operators let travel gives the results of all events: same results, same ids.

Generated specifications of every construct under every context; events spread over six brokers;
what each operator lets travel to the home is found by brute force (tests/oracles/travelling.py),
and one engine is fed with that, and with that and what came to the home itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.broker.core.operators.travels import drawn
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE
from tests.oracles.travelling import identity

SEEDS_FAST, SEEDS_LONG = range(1), range(1, 40)
PAIRS = [(construct, context) for construct in CONSTRUCTS_WHOLE for context in CONTEXTS_WHOLE]
# Of windows, of `absent` in partitions, … nothing travels correlated; of these something must.
CORRELATED = ("and", "then", "within", "within-from", "spread-plane")


@dataclass
class Counts:
    """Cases run; with correlated operators; where these held events back; that had results then."""

    cases: int = 0
    correlated: int = 0
    held_back: int = 0
    telling: int = 0


def hold(construct: str, context: str, seeds: range, counts: Counts) -> None:
    """The results of what travels are those of all events."""
    for seed in seeds:
        world = drawn(seed, construct, context)
        if world is None:
            continue
        counts.cases += 1
        operators = world.operators()
        sent = world.travelling(operators)
        some = any(one.correlated for one in operators)
        counts.correlated += some
        if len(sent) == len({identity(one) for one in world.events}):
            continue
        whole = world.results()
        counts.held_back += some
        counts.telling += some and bool(whole)
        for more in (set(), world.at_home(random.Random(seed))):
            found = world.results(sent | more)
            assert found == whole, f"seed {seed}, {construct}, {context}: {operators}"


@pytest.mark.parametrize("construct", CONSTRUCTS_WHOLE)
def test_what_travels_gives_the_results_of_all_events(construct):
    counts = Counts()
    for context in CONTEXTS_WHOLE:
        hold(construct, context, SEEDS_FAST, counts)
    assert counts.cases


@pytest.mark.parametrize("construct", CORRELATED)
def test_where_much_travels_correlated_events_are_held_back_and_results_stay(construct):
    """So that the comparison is not one of everything with everything."""
    counts = Counts()
    hold(construct, "unrestricted", range(100, 120), counts)
    hold(construct, "recent", range(100, 110), counts)
    assert counts.correlated >= 10
    assert counts.held_back >= 8
    assert counts.telling >= 3


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_in_many_cases_what_travels_gives_the_results_of_all(construct, context, record_property):
    counts = Counts()
    hold(construct, context, SEEDS_LONG, counts)
    row = [construct, context, counts.cases]
    record_property("generated", ["fed with what travels (%: correlated)", *row, counts.correlated])
    record_property("generated", ["… (%: held back, with results)", *row, counts.telling])
