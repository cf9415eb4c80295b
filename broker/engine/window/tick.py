"""The agent of a definition `every T` without `aggr`: what is detected is told of at each tick.

Owns when events leave. Must not know how they are detected. Invariant: the events are those of the
definition without its `every`, each with its own span; the tick only says when.

Ticks are the multiples of T (the midnights of a zone): an occurrence that ends in [kT, (k+1)T)
leaves when the watermark has passed the last instant before (k+1)T. One that is known later leaves
at the next tick after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

from broker.engine.event.agent import WATERMARK_NONE, Agent, LeafEvents
from broker.engine.event.event import Event
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.days import DayGrid
from broker.engine.window.grid import Grid

HELD_MAX = 1_000_000  # events that wait for a tick: some 500 MB
EARLY = "tick_full"  # beyond, they leave at once: the tick says when, not whether

STATE_VERSION = 1

_order = attrgetter("order")


class Outcome(Protocol):
    """Makes events of occurrences (see staged_groups.Outcome)."""

    dropped_inverted: int

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> Any:
        """An event; None if the occurrence gives none."""


class TickOutcome:
    """Stands between an agent and its outcome, and notes when what it made was complete."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self.made: list[tuple[int, Event]] = []  # ends of occurrences, and their events

    @property
    def dropped_inverted(self) -> int:
        """See Outcome."""
        return self._outcome.dropped_inverted

    @dropped_inverted.setter
    def dropped_inverted(self, count: int) -> None:
        self._outcome.dropped_inverted = count

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> Any:
        """See Outcome."""
        event = self._outcome.make(occurrence, group)
        if event is not None:
            end = occurrence[0] if occurrence.__class__ is tuple else occurrence.end
            self.made.append((end, event))
        return event


class TickAgent:
    """An agent whose events wait for ticks (see agent.Agent).

    `inner` makes its events through `outcome`; `classes` are those of the events made.
    """

    waits = True

    def __init__(
        self,
        inner: Agent,
        outcome: TickOutcome,
        ticks: Grid | DayGrid,
        classes: Mapping[str, type[Event]],
        held_max: int = HELD_MAX,
    ) -> None:
        self._inner = inner
        self._outcome = outcome
        self._ticks = ticks
        self._classes = classes
        self._held_max = held_max
        self._watermark = WATERMARK_NONE
        self._waiting: dict[int, list[Event]] = {}  # by the watermark that lets them go
        self._least: dict[int, int] = {}  # their least end, likewise
        self._held = 0
        self._early = 0

    @property
    def inner(self) -> Agent:
        """The agent that detects."""
        return self._inner

    @inner.setter
    def inner(self, agent: Agent) -> None:
        self._inner = agent

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        self._inner.feed(batch, watermark)
        leaving: list[Any] = []
        for end, event in self._outcome.made:
            # The tick after its end; where that has passed before it was known, the next one.
            known = max(end, self._watermark + 1)
            due = self._ticks.closes_at(self._ticks.pane_of(known))
            if due <= watermark:
                leaving.append(event)
            elif self._held >= self._held_max:
                self._early += 1
                leaving.append(event)
            else:
                self._wait(due, event)
        self._outcome.made.clear()
        self._watermark = max(self._watermark, watermark)
        for due in [due for due in self._waiting if due <= self._watermark]:
            events = self._waiting.pop(due)
            del self._least[due]
            self._held -= len(events)
            leaving += events
        if len(leaving) > 1:
            leaving.sort(key=_order)
        return leaving

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        out = self._inner.watermark_out(watermark)
        return min([out, *(end - 1 for end in self._least.values())])

    def next_due(self) -> int | None:
        """See agent.Agent."""
        inner = self._inner.next_due()
        return min([*self._waiting, *(() if inner is None else (inner,))], default=None)

    def held(self) -> int:
        """See agent.Agent."""
        return self._inner.held() + self._held

    def dropped(self) -> dict[str, int]:
        """See agent.Agent: nothing is lost for want of room, but what left early is counted."""
        return {**self._inner.dropped(), EARLY: self._early}

    def state(self) -> Any:
        """See agent.Agent."""
        shelf = Shelf(self._classes)
        waiting = [
            [due, [shelf.put(event) for event in events]] for due, events in self._waiting.items()
        ]
        return {
            "version": STATE_VERSION,
            "inner": self._inner.state(),
            "watermark": self._watermark,
            "early": self._early,
            "waiting": waiting,
            "events": shelf.packed(),
        }

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        if state["version"] != STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        self._inner.restore(state["inner"])
        shelf = Shelf(self._classes, state["events"])
        self._watermark, self._early = state["watermark"], state["early"]
        self._waiting, self._least, self._held = {}, {}, 0
        for due, events in state["waiting"]:
            for at in events:
                self._wait(due, shelf.get(at))

    def _wait(self, due: int, event: Event) -> None:
        end: int = event.end
        self._waiting.setdefault(due, []).append(event)
        self._least[due] = min(end, self._least.get(due, end))
        self._held += 1
