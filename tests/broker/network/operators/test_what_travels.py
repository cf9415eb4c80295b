"""What the operators let travel gives the results of all events: same results, same ids.

Generated specifications of every construct under every context; events spread over six brokers;
what each operator lets travel to the home is found by brute force (tests/oracles/travelling.py),
and one engine is fed with that, and with that and what came to the home itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.broker.network.operators.travels import World, drawn, written
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
        if world is not None:
            compare(world, seed, counts)


def hold_written(detect: str, seeds: range, counts: Counts) -> None:
    """The same of what was written by hand."""
    for seed in seeds:
        compare(written(seed, detect), seed, counts)


def compare(world: World, seed: int, counts: Counts) -> None:
    counts.cases += 1
    operators = world.operators()
    sent = world.travelling(operators)
    some = any(one.correlated for one in operators)
    counts.correlated += some
    if len(sent) == len({identity(one) for one in world.events}):
        return
    whole = world.results()
    counts.held_back += some
    counts.telling += some and bool(whole)
    for more in (set(), world.at_home(random.Random(seed))):
        found = world.results(sent | more)
        assert found == whole, f"seed {seed}: {operators}"


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
    hold(construct, "unrestricted", range(100, 112), counts)
    hold(construct, "recent", range(100, 106), counts)
    assert counts.correlated >= 8
    assert counts.held_back >= 5
    assert counts.telling >= 2


# What generators seldom draw: two things that must not meet in one correlated operator.
WRITTEN = (
    " A then B within 3 s where A.n = B.n",
    "[recent] A then B within 3 s where A.n = B.n",
    "[first] A then B within 3 s where A.n = B.n",
    "[latest] A then B within 3 s where A.n = B.n",
    "[latest] A then B within 4 s spread 10 m",
    "[chronicle] A and B within 3 s where A.n = B.n",
    "[first] A and B within 3 s spread 10 m",
    "[recent, one] A and B within 3 s consuming B",
    "[first] A as x then A as y within 4 s where x.n = y.n",
    "[chronicle] A as x and A as y within 4 s where x.n = y.n",
    "[recent] A overlaps B within 6 s",
    " A(n = 3 or v > 0) and B(not n = 1) within 3 s",
    " A then B+ then C within 4 s spread 10 m",
    " A then B* then C within 4 s spread 15 m",
    " A then B+ then C within 4 s where Count(B) > 1",
    " A then B* then C within 4 s where B.n >= A.n",
    " A+ then B then C* within 3 s",
    " A* then B then C+ within 4 s",
    "[recent] A then B+ then C within 4 s",
    "[first] A then B+ then C within 4 s",
    "[chronicle] A then B+ within 4 s",
    "[latest] A then B* within 4 s",
    " (A then B+ within 3 s) and C within 4 s",
    " A then nth 2 B within 4 s spread 10 m",
    " A then nth 2 B then C within 4 s",
    " A and nth 2 B within 4 s",
    " distinct(n) A then B within 4 s",
    " A and B{2} within 5 s",
    " (A as y and[..1 s] B or (C and[..5 s] D)) then[..1 s] A as x",
    " (A or B then C within 2 s) and D within 4 s",
    " (A or B) then (C or D) within 3 s",
    " (A and B within 2 s) then[recent] (C and D within 2 s)",
    "[chronicle] (A and[unrestricted] B within 2 s) then C within 5 s",
    " A and (B then[recent] C) within 4 s spread 10 m",
    "[recent] A then B without C within 4 s",
    "[recent] (A without B) then C within 4 s where B.n = C.n",
    " last A and B and C within 4 s where A.n = B.n",
    " first A then[recent] B within 4 s",
    " A and B and C within 3 s from A",
    "[recent] A and B within 3 s from B",
    " A then[1 s..3 s] B then[..2 s] C",
    " (A and B within 3 s) and absent C for 2 s",
)


@pytest.mark.parametrize("detect", WRITTEN)
def test_what_is_written_by_hand_gives_the_same_of_what_travels(detect):
    hold_written(detect, range(3), Counts())


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("detect", WRITTEN)
def test_what_is_written_by_hand_gives_the_same_in_many_traces(detect, record_property):
    counts = Counts()
    hold_written(detect, range(3, 400), counts)
    row = ["written", "by hand", counts.cases, counts.telling]
    record_property("generated", ["fed with what travels (%: held back, with results)", *row])


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_in_many_cases_what_travels_gives_the_results_of_all(construct, context, record_property):
    counts = Counts()
    hold(construct, context, SEEDS_LONG, counts)
    row = [construct, context, counts.cases]
    record_property("generated", ["fed with what travels (%: correlated)", *row, counts.correlated])
    record_property(
        "generated", ["fed with what travels (%: held back, with results)", *row, counts.telling]
    )
