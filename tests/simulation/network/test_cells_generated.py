"""Whatever is detected, tasks that go from broker to broker find what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at six brokers. Cells move and hosts end at any moment, as in `test_cells.py`.
"""

import json
from collections import Counter

import pytest

import headwater
from language import check_text
from simulation.network.cells import CellRun
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.server.spread import Spread, moved

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
WHOLE_MS = 2**45
# Counted from when the tasks begin, which is the first event of a recording.
FROM_THE_BEGINNING = {"absent", "for"}


class CellSpread(CellRun, Spread):
    """One run of both kinds."""

    def __init__(self, seed, text, events, faults):
        self.moves = 0
        Spread.__init__(self, seed, text, events, faults)


def plain(results):
    return sorted(json.dumps(one, sort_keys=True) for one in results)


def detected(text, events):
    """What an engine finds that has all events; None if the end of all time decides some of it."""
    engine = headwater.Engine(text, lateness_ms=WHOLE_MS)
    found = engine.push(events) + engine.advance(WHOLE_MS)
    return None if engine.finish() else plain(found)


def compare(construct, context, seed, faults):
    """How many results both have; None where the case is none for a network."""
    spec, events = random_case(seed, construct, context)
    text, events = text_of(spec), moved(events)
    if not events or files_of(spec) or FROM_THE_BEGINNING & set(text.split()):
        return None
    if not check_text(text).ok:
        return None
    expected = detected(text, events)
    if expected is None:
        return None
    run = CellSpread(seed, text, events, faults)
    run.run()
    assert run.came_to().terms > 1
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
    record_property("generated", [what, "all", "all", counts.total(), counts["found"]])
    assert counts["found"] > len(CONSTRUCTS) / 3
