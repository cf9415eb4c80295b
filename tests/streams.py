"""Streams for tests: one specification, compiled once, run over arrival after arrival.

Owns how events are delayed, cut into batches and how agents are moved meanwhile. Must not know what
must come out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from broker.core.intake import IntakeOptions
from headwater.engine import Extent, Pipeline
from language import check_text

Events = list[dict[str, Any]]


class Bench:
    """One specification, checked once, over stream after stream."""

    def __init__(self, text: str) -> None:
        self._specification = check_text(text).demand()

    def run(self, events: Events, draw: random.Random, *, moving: bool) -> list[dict[str, Any]]:
        """The results of the events as a stream, in the order in which they became known.

        How long events last at most is foretold, as of a recording: a stream goes by what it has
        seen so far. So is when the first begins, where agents move; else now and then.
        """
        lateness_ms = draw.choice((0, 1_000, 4_000, 30_000))
        options = IntakeOptions(lateness_ms=lateness_ms)
        extent = Extent()
        extent.add(self._made(options).intake.from_mappings(events).events)
        if not moving and len(events) % 2:
            extent.begin = None
        pipeline = self._made(options)
        pipeline.foresee(extent)
        results = []
        for batch in batches(delayed(events, lateness_ms, draw), draw):
            results += pipeline.admit(pipeline.intake.from_mappings(batch).events)
            if moving and draw.random() < 0.4:
                self._move(pipeline, extent)
        results += pipeline.finish()
        return [result.to_dict() for result in results]

    def run_moving(self, events: Events, moved_after: int) -> list[dict[str, Any]]:
        """The results of events in order, one by one, moved once after so many of them."""
        pipeline = self._made(IntakeOptions())
        results = []
        for at, event in enumerate([*events, None]):
            if at == moved_after:
                self._move(pipeline, Extent())
            if event is not None:
                results += pipeline.admit(pipeline.intake.from_mappings([event]).events)
        results += pipeline.finish()
        return [result.to_dict() for result in results]

    def _made(self, options: IntakeOptions) -> Pipeline:
        return Pipeline(self._specification, options)

    def _move(self, pipeline: Pipeline, extent: Extent) -> None:
        """Take the agents' state down as bytes and up again in other agents."""
        packed = msgspec.msgpack.encode(pipeline.matcher.state())
        there = self._made(IntakeOptions())
        there.foresee(extent)
        there.matcher.restore(msgspec.msgpack.decode(packed, strict=False))
        pipeline.matcher = there.matcher


def end_of(event: dict[str, Any]) -> int:
    return event["end"] if "end" in event else event["timestamp"]


def lasted(event: dict[str, Any]) -> int:
    return int(event["end"] - event["start"]) if "start" in event else 0


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
