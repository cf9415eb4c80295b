"""Definitions that run in another engine than what needs them.

Owns the stand-in for an agent that is elsewhere, and two engines side by side of which the second
has such stand-ins. Must not know what is compared. A match goes from one to the other as bytes, in
the form that it has in snapshots, and with it how far the agent promises that there are no more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, Agent, Result
from broker.engine.event.event import Event
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher, WatermarkOf
from broker.engine.runtime.shelf import Shelf
from headwater.engine import Extent
from language import Specification
from tests.oracles.generate import CONSTRUCTS_WHOLE, random_case
from tests.oracles.render import text_of

# Of the generated texts those that define something.
DEFINING = [
    name
    for name in CONSTRUCTS_WHOLE
    if name != "tables" and "define " in text_of(random_case(0, name, "unrestricted")[0])
]

Classes = Mapping[str, type[Event]]


class Telling:
    """An agent whose matches are written down as it finds them, and what it promised last."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.matches: list[Any] = []
        self.promised = WATERMARK_NONE

    def __getattr__(self, name: str) -> Any:
        return getattr(self.agent, name)

    def feed(self, batch: Sequence[Any], watermark: int) -> list[Any]:
        made = self.agent.feed(batch, watermark)
        self.matches += made
        return made

    def watermark_out(self, watermark: int) -> int:
        self.promised = max(self.promised, self.agent.watermark_out(watermark))
        return self.agent.watermark_out(watermark)

    def take(self, classes: Classes) -> tuple[bytes, int]:
        shelf = Shelf(classes)
        for match in self.matches:
            shelf.put(match)
        self.matches = []
        return msgspec.msgpack.encode(shelf.packed()), self.promised


class StandIn:
    """Has the place of a definition's agent that is elsewhere."""

    waits = True

    def __init__(self) -> None:
        self.matches: list[Any] = []
        self.promised = WATERMARK_NONE
        self.came = 0

    def tell(self, packed: bytes, promised: int, classes: Classes) -> None:
        rows = msgspec.msgpack.decode(packed, strict=False)
        shelf = Shelf(classes, rows)
        matches = [shelf.get(number) for number in range(len(rows))]
        assert all(match.end > self.promised for match in matches), "a promise is broken"
        self.matches += matches
        self.came += len(matches)
        self.promised = promised

    def feed(self, _batch: Sequence[Any], _watermark: int) -> list[Any]:
        matches, self.matches = self.matches, []
        return matches

    def watermark_out(self, _watermark: int) -> int:
        return self.promised

    def next_due(self) -> int | None:
        return WATERMARK_NONE if self.matches else None


class Apart:
    """Two engines over one stream: one has all tasks, the other stand-ins for some of them.

    `roots`: the subscriptions that the other has; without, all.
    """

    def __init__(
        self,
        specification: Specification,
        elsewhere: set[str],
        lateness_ms: int,
        roots: Sequence[str] = (),
    ) -> None:
        self.intake = Intake(IntakeOptions(lateness_ms=lateness_ms), Limits())
        declared = [kind for kind in specification.event_types.values() if not kind.defined]
        self.intake.declare(declared)
        self.whole, self.rest = Matcher(Limits()), Matcher(Limits())
        self.pairs: list[tuple[Telling, StandIn, Any]] = []
        graph = specification.graph
        keys = (*graph.active(graph.roots), *(roots or graph.roots))
        self.elsewhere = [key for key in keys if key in elsewhere]
        here = [graph.tasks[key] for key in keys if key not in elsewhere]
        self.types = {name for task in here for name in task.types if name not in task.needs}
        for matcher in (self.whole, self.rest):
            matcher.begins_from(WATERMARK_NONE)
            for key in keys:
                matcher.install(graph.tasks[key])

    def foresee(self, extent: Extent) -> None:
        """Tell both what is known of a recording."""
        for matcher in (self.whole, self.rest):
            matcher.durations.foresee(extent.longest_ms, extent.extent_ms)
            matcher.begin(extent.begin or 0)
            matcher.begins_from(WATERMARK_END)
            if extent.uncertainty_ms:
                matcher.doubt(most_ms=extent.uncertainty_ms)

    def part(self) -> None:
        """Have stand-ins in one from now on."""
        for key in self.elsewhere:
            seats = zip(self.whole.seats_of(key), self.rest.seats_of(key), strict=True)
            for there, here in seats:
                telling, stand_in = Telling(there.agent), StandIn()
                there.agent, here.agent = telling, stand_in  # type: ignore[assignment]
                self.pairs.append((telling, stand_in, here))

    def push(self, events: list[Any]) -> tuple[list[Result], list[Result]]:
        """Return the results of both."""
        watermark = self.intake.watermark
        whole = in_one_go(self.whole.push(events, watermark))
        return whole, self.follow(self.take(), events, watermark)

    def take(self) -> list[tuple[bytes, int]]:
        """Take what is to be told of each agent that is elsewhere."""
        return [telling.take(self.whole.classes) for telling, _, _ in self.pairs]

    def follow(
        self, told: Sequence[tuple[bytes, int]], events: list[Any], watermark: WatermarkOf
    ) -> list[Result]:
        """Push into the one with stand-ins what was told, and of the events those that it needs."""
        for (packed, promised), (_, stand_in, seat) in zip(told, self.pairs, strict=True):
            stand_in.tell(packed, promised, self.rest.classes)
            self.rest.schedule(seat)
        own = [event for event in events if event.event_type in self.types]
        return in_one_go(self.rest.push(own, watermark))


def said(results: Sequence[Result]) -> list[str]:
    """The results as other programs meet them, ids and order included."""
    return [json.dumps(result.to_dict()) for result in results]
