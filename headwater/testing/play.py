"""A test played on a virtual clock: what was reported, and after which line.

Owns the order of events and the moment at which each result became known. Must not compare.
Invariant: the clock is the events' own; nothing here waits or reads another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from broker.core.intake import IntakeOptions
from broker.engine.event.agent import Result
from broker.engine.event.event import Event
from broker.engine.runtime.subscribed import OccurrenceResult
from headwater.engine import Extent, Pipeline
from headwater.testing.script import Script, SendStep, Test

RESULTS_MAX = 10_000  # of one test; who looks for more has a recording and not a test


@dataclass(frozen=True, slots=True)
class Reported:
    """A result; it was known once `steps` steps of the test had been taken."""

    result: OccurrenceResult
    steps: int


@dataclass(slots=True)
class Played:
    """All that a test gave, in the order in which it became known."""

    reported: list[Reported]
    passed_over: dict[int, str]  # step -> reason, of events that the engine did not take
    cut: bool = False  # more was reported than is kept


def play(script: Script, test: Test) -> Played:
    """Play a test from its first line to its last; the input ends with its last event."""
    pipeline = Pipeline(script.specification, IntakeOptions(lateness_ms=test.lateness_ms))
    sent: dict[int, Event] = {}
    for number, step in enumerate(test.steps):
        if isinstance(step, SendStep):
            decoded = pipeline.intake.from_mapping(step.fields)
            sent[number] = decoded.events[0]  # it was judged when it was read
    whole = Extent()
    whole.add(sent.values())
    pipeline.foresee(whole)
    played = Played([], {})
    for number, event in sent.items():
        before = dict(pipeline.ledger.events.dropped)
        results = pipeline.admit([event])
        for reason, count in pipeline.ledger.events.dropped.items():
            if count > before.get(reason, 0):
                played.passed_over[number] = reason
        _keep(played, results, number + 1)
        if played.cut:
            return played
    _keep(played, pipeline.finish(), len(test.steps) + 1)
    return played


def _keep(played: Played, results: list[Result], steps: int) -> None:
    room = RESULTS_MAX - len(played.reported)
    played.cut = played.cut or len(results) > room
    kept = cast("list[OccurrenceResult]", results[:room])
    played.reported += [Reported(result, steps) for result in kept]
