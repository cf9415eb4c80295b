"""A stream gives the results of its recording: however it is cut, delayed or moved.

Owns what must not show in results: the order of arrival within the lateness, the size of batches,
repeats, and that an agent's state was taken down and up again somewhere else. What the results
themselves must be is for test_engine.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import headwater
from broker.core.intake import IntakeOptions
from headwater.engine import Pipeline
from language import check_text
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of

SEEDS_FAST = range(12)
SEEDS_LONG = range(12, 150)
PAIRS = [(construct, context) for construct in CONSTRUCTS for context in CONTEXTS]

Events = list[dict[str, Any]]


def recorded(text: str, events: Events) -> Events:
    """The results of the whole input at once."""
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


def end_of(event: dict[str, Any]) -> int:
    return event["end"] if "end" in event else event["timestamp"]


def delayed(events: Events, lateness_ms: int, draw: random.Random) -> Events:
    """The events as they would arrive, none of them so late that it is not taken."""
    at = [(end_of(event) + draw.randint(0, lateness_ms), draw.random()) for event in events]
    return [event for _, event in sorted(zip(at, events, strict=True), key=lambda pair: pair[0])]


def batches(events: Events, draw: random.Random) -> Iterator[Events]:
    rest = list(events)
    while rest:
        count = draw.choice((1, 1, 1, 2, 3, 5, len(rest)))
        yield rest[:count]
        del rest[:count]


def moved(pipeline: Pipeline, text: str) -> None:
    """Take the agents' state down as bytes and up again in agents made anew."""
    packed = msgspec.msgpack.encode(pipeline.matcher.state())
    fresh = Pipeline(check_text(text).demand(), IntakeOptions()).matcher
    fresh.restore(msgspec.msgpack.decode(packed, strict=False))
    pipeline.matcher = fresh


def streamed(text: str, events: Events, seed: str, *, moving: bool) -> Events:
    """The results of the events as a stream that the seed draws, in the order of results."""
    draw = random.Random(seed)
    lateness_ms = draw.choice((0, 1_000, 4_000, 30_000))
    options = IntakeOptions(lateness_ms=lateness_ms)
    pipeline = Pipeline(check_text(text).demand(), options)
    results = []
    for batch in batches(delayed(events, lateness_ms, draw), draw):
        results += pipeline.admit(pipeline.intake.from_mappings(batch).events)
        if moving and draw.random() < 0.4:
            moved(pipeline, text)
    results += pipeline.finish()
    if not moving:  # agents made anew have an account of their own
        pipeline.ledger.check()
    assert "late" not in pipeline.ledger.events.dropped
    return [result.to_dict() for result in results]


def same(found: Events, wanted: Events) -> bool:
    """Results become known in another order in a stream; in themselves they are the same."""
    return sorted(map(json.dumps, found)) == sorted(map(json.dumps, wanted))


def agree(construct: str, context: Any, seeds: range) -> tuple[int, int]:
    """How many streams agreed with their recordings, and how many of them had results."""
    with_results = cases = 0
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if not check_text(text).ok:
            continue  # what does not run yet; test_engine.py counts it
        wanted = recorded(text, events)
        for moving in (False, True):
            name = f"{construct}/{context}/{seed}/{moving}"
            found = streamed(text, events, name, moving=moving)
            assert same(found, wanted), f"{name}\n{text}\n{events}\n{found}\n{wanted}"
            with_results += bool(found)
            cases += 1
    return cases, with_results


@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_neither_arrival_nor_batches_nor_a_move_show_in_results(construct, context):
    agree(construct, context, SEEDS_FAST)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_in_many_streams_neither_arrival_nor_batches_nor_a_move_show(
    construct, context, record_property
):
    counts = agree(construct, context, SEEDS_LONG)
    record_property("generated", ["as a stream the same as at once", construct, context, *counts])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_neither_the_order_of_a_recording_nor_its_batches_show_in_the_bytes(construct, context):
    for seed in range(3):
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if not check_text(text).ok:
            continue
        wanted = json.dumps(recorded(text, events))
        draw = random.Random(seed)
        engine = headwater.Engine(text, lateness_ms=None)
        early = [engine.push(part) for part in batches(draw.sample(events, len(events)), draw)]
        assert not any(early)
        assert json.dumps(engine.finish()) == wanted
