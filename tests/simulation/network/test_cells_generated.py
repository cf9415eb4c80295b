"""Whatever is detected, tasks that go from broker to broker find what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at six brokers. Cells move and hosts end at any moment, as in `test_cells.py`.
"""

from collections import Counter

import pytest

from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.simulation.network.spread import CellSpread, network_case, plain

CONSTRUCTS = list(CONSTRUCTS_WHOLE)


def compare(construct, context, seed, faults):
    """How many results both have; None where the case is none for a network."""
    case = network_case(*random_case(seed, construct, context))
    if case is None:
        return None
    text, events, expected = case
    run = CellSpread(seed, text, events, faults)
    run.run()
    known = [one for place in run.places for one in place.process.core.subscriptions]
    assert run.came_to().terms > 1 or all(one.state == "ended" for one in known)
    assert plain(run.results) == expected, text
    return len(expected)


def some(seeds, each=1):
    """Every construct, in another context with each seed."""
    counts = Counter()
    for seed in seeds:
        for number, construct in enumerate(CONSTRUCTS[::each]):
            context = CONTEXTS_WHOLE[(number + seed) % len(CONTEXTS_WHOLE)]
            found = compare(construct, context, seed, 0 if number % 3 == 0 else 15)
            counts["none" if found is None else "found" if found else "empty"] += 1
    return counts


@pytest.mark.timeout(60)
def test_cells_that_move_find_what_one_engine_finds():
    counts = some([0], each=7)
    assert counts["found"] > 2


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(1, 25))
def test_cells_that_move_find_what_one_engine_finds_in_many_more_runs(seed, record_property):
    counts = some([seed])
    what = "specifications in cells that move, held to one engine"
    runs = counts["found"] + counts["empty"]
    record_property("generated", [what, "all", "all", runs, counts["found"]])
    assert counts["found"] > len(CONSTRUCTS) / 3
