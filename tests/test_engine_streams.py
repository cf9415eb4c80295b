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

import msgspec
import pytest

import headwater
from broker.core.clocks import StreamClock
from broker.core.intake import IntakeOptions
from broker.core.repeats import Repeats
from headwater.engine import Pipeline
from language import check_text
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, primitive_types, random_case
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.oracles.traces import trace

PAIRS = [(construct, context) for construct in CONSTRUCTS for context in CONTEXTS]
SPECIFICATIONS_FAST, TRACES_FAST = range(3), range(20)
SPECIFICATIONS_LONG, TRACES_LONG = range(3, 40), range(20)

Events = list[dict[str, Any]]


class Bench:
    """One specification, compiled once, over stream after stream."""

    def __init__(self, text: str) -> None:
        self._pipeline = Pipeline(check_text(text).demand(), IntakeOptions())
        self._elsewhere = Pipeline(check_text(text).demand(), IntakeOptions())
        self._empty = self._pipeline.matcher.state()

    def run(self, events: Events, draw: random.Random, *, moving: bool) -> list[dict[str, Any]]:
        """The results of the events as a stream, in the order in which they became known."""
        lateness_ms = draw.choice((0, 1_000, 4_000, 30_000))
        pipeline, intake = self._pipeline, self._pipeline.intake
        pipeline.matcher.restore(self._empty)
        intake._clock, intake._repeats = StreamClock(lateness_ms), Repeats(1_000)
        results = []
        for batch in batches(delayed(events, lateness_ms, draw), draw):
            results += pipeline.admit(intake.from_mappings(batch).events)
            if moving and draw.random() < 0.4:
                self._move()
        results += pipeline.finish()
        return [result.to_dict() for result in results]

    def _move(self) -> None:
        """Take the agents' state down as bytes and up again in other agents."""
        packed = msgspec.msgpack.encode(self._pipeline.matcher.state())
        there, here = self._elsewhere.matcher, self._pipeline.matcher
        there.restore(msgspec.msgpack.decode(packed, strict=False))
        self._pipeline.matcher, self._elsewhere.matcher = there, here


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
    profile = CONSTRUCTS[construct].profile
    dense = replace(profile, span_s=max(3, profile.span_s // 3))
    streams = with_results = 0
    for seed, spec in specifications(construct, context, seeds):
        bench = Bench(text_of(spec))
        for number in traces:
            name = f"{construct}/{context}/{seed}/{number}"
            told = dense if number % 2 else profile
            events = trace(SeededDraw(name), primitive_types(spec), told)
            wanted = run(spec, events)
            found = bench.run(events, random.Random(name), moving=number % 3 == 0)
            wrong = [said for said in compare(spec, wanted, found) if not said.endswith("was due")]
            assert wrong == [], f"{name}\n{text_of(spec)}\n{events}"
            streams += 1
            with_results += bool(wanted)
    return streams, with_results


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


@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_neither_the_order_of_a_recording_nor_its_batches_show_in_the_bytes(construct, context):
    for seed, spec in specifications(construct, context, range(3)):
        text, events = text_of(spec), random_case(seed, construct, context)[1]
        wanted = recorded(text, events)
        draw = random.Random(seed)
        engine = headwater.Engine(text, lateness_ms=None)
        early = [engine.push(part) for part in batches(draw.sample(events, len(events)), draw)]
        assert not any(early)
        assert json.dumps(engine.finish()) == json.dumps(wanted)
        streamed = Bench(text).run(events, draw, moving=True)
        assert sorted(map(json.dumps, streamed)) == sorted(map(json.dumps, wanted))
