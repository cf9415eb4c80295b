"""A replay gives what the engine gives for the same recording, however it is cut and sorted.

The engine is held to the reference matcher elsewhere; here the way through files, runs on disk,
small batches and early release must not show, in the order of results either.
"""

import random
from functools import partial

import msgspec
import pytest

import headwater
from headwater.replays import replay
from headwater.replays.readers import JsonLinesReader
from headwater.replays.replay import FileReplay
from headwater.replays.sorter import ExternalSort
from language import check_text
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of

SEEDS_FAST, SEEDS_LONG = range(2), range(2, 60)


def replayed(text, events, draw):
    """Through lines in any order, a few events in memory at a time, released as early as can be."""
    lines = [msgspec.json.encode(event) for event in draw.sample(events, len(events))]
    cut = draw.randint(0, len(lines))
    chunks = [JsonLinesReader("a", 1, lines[:cut]), JsonLinesReader("b", 1, lines[cut:])]
    results = []
    run = FileReplay(check_text(text).demand(), results.extend, skip_bad=False)
    run.sorted(iter(chunks))
    return [result.to_dict() for result in results]


def agree(construct, context, seeds):
    """How many cases there were, and how many had results."""
    counted = with_results = 0
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if not check_text(text).ok:
            continue
        engine = headwater.Engine(text, lateness_ms=None)
        engine.push(events)
        expected = engine.finish()
        assert replayed(text, events, random.Random(seed)) == expected, f"{text}\n{events}"
        counted += 1
        with_results += bool(expected)
    return counted, with_results


@pytest.fixture
def in_small_pieces(monkeypatch):
    monkeypatch.setattr(replay, "BATCH_EVENTS", 2)
    monkeypatch.setattr(replay, "FRONTIER_BATCHES", 1)
    monkeypatch.setattr(replay, "ExternalSort", partial(ExternalSort, items_max=3))


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_replay_gives_what_the_engine_gives(context, in_small_pieces):
    counts = [agree(construct, context, SEEDS_FAST) for construct in CONSTRUCTS]
    assert sum(counted for counted, _ in counts) > len(CONSTRUCTS)
    assert sum(some for _, some in counts) > len(CONSTRUCTS) / 2


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("construct", CONSTRUCTS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_many_replays_give_what_the_engine_gives(construct, context, in_small_pieces):
    agree(construct, context, SEEDS_LONG)
