"""A stream gives the results of its recording: however it is cut, delayed or moved.

Owns what must not show in results: the order of arrival within the lateness, the size of batches,
repeats, and that an agent's state was taken down and up again somewhere else. Each specification is
run over many traces, so that rare meetings of times are met; what must come out is the reference's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import headwater
from language import check_text
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import (
    CONSTRUCTS_WHOLE,
    CONTEXTS_WHOLE,
    primitive_types,
    random_case,
)
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.oracles.traces import trace
from tests.streams import Bench, Events, batches

CONSTRUCTS = [name for name in CONSTRUCTS_WHOLE if name != "tables"]  # a Bench has no files
PAIRS = [(construct, context) for construct in CONSTRUCTS for context in CONTEXTS_WHOLE]
SPECIFICATIONS_FAST, TRACES_FAST = range(1), range(3)
SPECIFICATIONS_LONG, TRACES_LONG = range(1, 12), range(12)


def specifications(
    construct: str, context: s.Context, seeds: range
) -> Iterator[tuple[int, s.Spec]]:
    """Those of the seeds that run; what does not run yet test_engine.py counts."""
    for seed in seeds:
        spec, _ = random_case(seed, construct, context)
        if check_text(text_of(spec)).ok:
            yield seed, spec


def agree(construct: str, context: s.Context, seeds: range, traces: range) -> tuple[int, int]:
    """How many streams gave what the reference finds, and how many of them had results."""
    profile = CONSTRUCTS_WHOLE[construct].profile
    dense = replace(profile, span_s=max(3, profile.span_s // 3))
    streams = with_results = 0
    for seed, spec in specifications(construct, context, seeds):
        bench = Bench(text_of(spec))
        for number in traces:
            name = f"{construct}/{context}/{seed}/{number}"
            told = dense if number % 2 else profile
            events = trace(SeededDraw(name), primitive_types(spec), told)
            wanted = run(spec, events)
            moving = number % 3 == 0
            found = bench.run(events, random.Random(name), moving=moving)
            wrong = [said for said in compare(spec, wanted, found) if not said.endswith("was due")]
            assert wrong == [], f"{name}\n{text_of(spec)}\n{events}"
            streams += 1
            with_results += bool(wanted)
    return streams, with_results


# In one of these traces the reference doubts a result that the engine is sure of.
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_neither_arrival_nor_batches_nor_a_move_show_in_results(construct, context):
    agree(construct, context, SPECIFICATIONS_FAST, TRACES_FAST)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_in_many_streams_neither_arrival_nor_batches_nor_a_move_show(
    construct, context, record_property
):
    counts = agree(construct, context, SPECIFICATIONS_LONG, TRACES_LONG)
    what = "streams held to the reference matcher"
    record_property("generated", [what, construct, context, *counts])


def recorded(text: str, events: Events) -> list[dict[str, Any]]:
    """The results of the whole input at once."""
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


@pytest.mark.parametrize("context", ["recent", "first"])
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_neither_the_order_of_a_recording_nor_its_batches_show_in_the_bytes(construct, context):
    for seed, spec in specifications(construct, context, range(1)):
        text, events = text_of(spec), random_case(seed, construct, context)[1]
        wanted = recorded(text, events)
        draw = random.Random(seed)
        engine = headwater.Engine(text, lateness_ms=None)
        early = [engine.push(part) for part in batches(draw.sample(events, len(events)), draw)]
        assert not any(early)
        assert json.dumps(engine.finish()) == json.dumps(wanted)
        streamed = Bench(text).run(events, draw, moving=True)
        assert sorted(map(json.dumps, streamed)) == sorted(map(json.dumps, wanted))
