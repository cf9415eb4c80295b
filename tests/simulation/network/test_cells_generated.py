"""Whatever is detected, tasks that go from broker to broker find what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at six brokers. Cells move and hosts end at any moment, as in `test_cells.py`.
"""

from collections import Counter
from random import Random

import pytest

from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.simulation.network.spread import CellSpread, joined_case, network_case, plain

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
JOINED = 4  # specifications in one text


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


def compare_joined(seed):
    """Of several specifications as one text: (results of both, hosts of its cells in the end)."""
    random = Random(f"joined {seed}")
    drawn = [(random.choice(CONSTRUCTS), random.choice(CONTEXTS_WHOLE)) for _ in range(JOINED)]
    numbered = enumerate(drawn, seed * JOINED)
    case = joined_case([random_case(number, *one) for number, one in numbered])
    if case is None:
        return None
    text, events, expected = case
    run = CellSpread(seed, text, events, 0 if seed % 3 == 0 else 15)
    run.run()
    assert plain(run.results) == expected, text
    books = [place.process.core.network.book for place in run.places]
    cells = [cell for book in books for cell in book.cells.values()]
    assert all(len({name.split("_")[-1] for _, name in cell.keys}) == 1 for cell in cells)
    return len(expected), [cell.serving.broker for cell in cells]


def joined(seeds):
    counts = Counter()
    for seed in seeds:
        found = compare_joined(seed)
        if found is not None:
            results, hosts = found
            counts["found"] += results > 0
            counts["apart"] += len(set(hosts)) > 1
    return counts


@pytest.mark.timeout(300)
def test_each_subscription_of_a_text_may_be_anywhere_and_all_is_as_in_one_engine():
    counts = joined(range(6))
    assert counts["found"] >= 2
    assert counts["apart"] >= 2


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("first", range(100, 900, 40))
def test_each_subscription_may_be_anywhere_in_many_more_runs(first, record_property):
    counts = joined(range(first, first + 40))
    what = "texts of several specifications in cells that move, held to one engine"
    record_property("generated", [what, "all", "all", counts["found"], counts["apart"]])
    assert counts["found"] > 10
    assert counts["apart"] > 10


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
