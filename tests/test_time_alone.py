"""What time alone decides is decided when it is certain, and nobody is woken for nothing.

Owns generated streams in which time goes from one moment that the engine names to the next, until
it has passed every bound of the text: the end of the input then brings nothing more. What the
results are is held to the reference elsewhere (test_engine_streams.py).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest

import headwater
from language.lexicon import UNITS_MS
from tests.oracles import spec as s
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.openness import stays_open
from tests.oracles.render import text_of
from tests.streams import Events, end_of, lasted

CONSTRUCTS = [name for name in CONSTRUCTS_WHOLE if name != "tables"]
WAKES_EACH = 5  # for each event: that it came, and each of the bounds that it began
WHOLE_MS = 2**45
DURATION = re.compile(r"\b(\d+) (ms|s|mins?|h|days?)\b")


def bounds_ms(text: str, events: Events) -> int:
    """More than all bounds of a text together, by what its events' times may be wrong."""
    named = [int(n) * UNITS_MS[unit] for n, unit in DURATION.findall(text)]
    return 3 * (sum(named) + max(map(lasted, events)) + unsure_ms(events)) + 1_000


def unsure_ms(events: Events) -> int:
    """By how much their times may be wrong at most."""
    return max(int(one.get("uncertainty", 0)) for one in events)


class Walk:
    """A stream whose time goes on from due to due."""

    def __init__(self, text: str, events: Events, moves: float = 0, *, told: bool = False) -> None:
        """`moves`: how likely it is at each event that another engine goes on.

        `told`: by how much times may be wrong is known beforehand, as how long events last is.
        """
        self.events = sorted(events, key=end_of)
        self.text, self.moves, self.draw = text, moves, random.Random(text)
        self.longest_ms = max(map(lasted, events))
        self.unsure_ms = unsure_ms(events) if told else 0
        self.engine = self.new_engine()
        self.at = end_of(self.events[0]) - 1
        self.bounds_ms = bounds_ms(text, events)
        self.wakes = self.results = self.left = 0
        self.waits = False

    def new_engine(self) -> headwater.Engine:
        """One that knows no events, and how long they last at most."""
        engine = headwater.Engine(self.text, longest_ms=self.longest_ms)
        if self.unsure_ms:
            engine._pipeline.matcher.doubt(most_ms=self.unsure_ms)
        return engine

    def run(self) -> None:
        """All events, and then all that time decides after them."""
        for event in self.events:
            self.wait(end_of(event))
            self.results += len(self.engine.push([event]))
            self.at = max(self.at, end_of(event) - 1)
        self.engine.advance(self.at)
        self.wait(end_of(self.events[-1]) + self.bounds_ms)
        self.waits = self.engine.next_due() is not None
        self.left = len(self.engine.advance(WHOLE_MS) + self.engine.finish())

    def wait(self, until: int) -> None:
        """Go on to before a time, in another engine now and then."""
        if self.draw.random() < self.moves:
            there = self.new_engine()
            there.restore(self.engine.state())
            assert self.is_due_alike(there), "a move changes what is due"
            self.engine = there
        while (due := self.engine.next_due()) is not None and due < until:
            assert due > self.at, "what is past would be due"
            assert self.engine.advance(due - 1) == [], "it was decided before it was due"
            self.results += len(self.engine.advance(due))
            self.at = due
            self.wakes += 1
            assert self.wakes <= WAKES_EACH * len(self.events), "it is woken for nothing"
        assert self.engine.advance(until - 1) == [], "it was decided before it was due"

    def is_due_alike(self, there: headwater.Engine) -> bool:
        """Whether another engine of this state is due when this one is.

        What was found to be due before times turned out to be less certain, is asked for too early.
        """
        here_ms, there_ms = self.engine.next_due(), there.next_due()
        if here_ms == there_ms or None in (here_ms, there_ms):
            return here_ms == there_ms
        return here_ms < there_ms and unsure_ms(self.events) > self.unsure_ms


def by_events_alone(walk: Walk) -> int:
    """How many results there are where nobody asks what is due."""
    engine = walk.new_engine()
    return sum(len(engine.push([event])) for event in walk.events) + len(engine.finish())


def walked(construct: str, context: s.Context, seeds: range) -> Counter[str]:
    """Walk through the cases of the seeds."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        spec, events = random_case(seed, construct, context)
        if not events:
            continue
        walk, moved = Walk(text_of(spec), events), Walk(text_of(spec), events, moves=0.5)
        walk.run()
        moved.run()
        assert (moved.results, moved.left) == (walk.results, walk.left), "a move shows"
        told = walk
        if unsure_ms(events):  # what is decided before that is known, stands
            told = Walk(text_of(spec), events, told=True)
            told.run()
        assert told.results + told.left == by_events_alone(told), "asking what is due shows"
        closed = not stays_open(spec)
        if closed:
            assert not walk.left, f"{construct}/{context}/{seed}: left to the end"
            assert not walk.waits, f"{construct}/{context}/{seed}: due when all bounds have passed"
        counts += Counter(runs=1, results=bool(walk.results), closed=closed)
    return counts


def test_in_generated_streams_time_decides_when_it_is_due() -> None:
    counts: Counter[str] = Counter()
    for number, construct in enumerate(CONSTRUCTS):
        context = CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)]
        counts += walked(construct, context, range(1))
    assert counts["results"] > counts["runs"] / 2
    assert counts["closed"] > counts["runs"] / 2


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_in_many_generated_streams_time_decides_when_it_is_due(
    construct: str, context: s.Context, record_property: Any
) -> None:
    counts = walked(construct, context, range(1, 30))
    what = "streams in which time goes from due to due"
    record_property("generated", [what, construct, context, counts["runs"], counts["results"]])


@pytest.mark.parametrize(
    ("seed", "construct", "context"),
    [
        (3, "mixed", "recent"),  # over a definition that holds an event back for ever
        (3, "uncertain-without", "latest"),  # `without` a pair that never ends
        (4, "during", "first"),  # where an event that lasts may still come
        (1, "uncertain-list", "recent"),  # a list is full later than its end, as far as is known
        (1, "last", "latest"),  # turns wait for turns
        (3, "parallel", "first"),  # what the end decides is known of, whoever asks before
        (2, "uncertain-list", "unrestricted"),  # what waits when times become uncertain, moves
        (3, "last", "first"),  # what is anchored to an event that can come no more is over
        (5, "last", "latest"),  # what ends after a bound may have begun in time
        (0, "last-beside-or", "recent"),  # what is on the other side of `or` competes with nobody
        (0, "every", "recent"),  # what is of a window that is open waits for it
    ],
)
def test_what_time_decides_is_due_once_and_when_it_is_certain(
    seed: int, construct: str, context: s.Context
) -> None:
    walked(construct, context, range(seed, seed + 1))
