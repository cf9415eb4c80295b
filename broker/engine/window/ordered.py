"""Windows that take their events in order: what all of their kinds share.

Owns the way of an event until it is taken, the limits on what waits, and the door. Must not know
which windows there are. Invariant: events are taken in order, each when the watermark has passed
its end, for then none can still come before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Detected, Event
from broker.engine.event.source import Constants, build
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.code import key_lines
from broker.engine.window.outcome import WindowOutcome
from broker.engine.window.plan import OperandNames
from broker.engine.window.shape import (
    CLOSED,
    EVENTS_OVERFLOW,
    GROUPS_OVERFLOW,
    Shape,
    WindowLimits,
)
from broker.engine.window.wait import Entry, Waiting, arrivals


def compile_key(names: OperandNames) -> Callable[[Any], Any]:
    """A function of an event: its group's key, None where a part is null."""
    lines = [line.replace("continue", "return None") for line in key_lines(names)]
    text = "\n".join(["def key_of(e):", *(f"    {line}" for line in lines), "    return key"])
    return build(text + "\n", "key_of", Constants())


class OrderedWindows:
    """What waits, what was dropped, and how much is held; a kind says what is done with events.

    A kind has `take` (one event, which every later one follows), `settle` (the watermark has
    moved), `least_newest_end`, `least_end`, `due` (of what is open), `inside` (the entries held
    besides those that wait) with `plain` and `renew`.
    """

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        self.shape = shape
        self.outcome = outcome
        self.limits = limits
        self.key_of = compile_key(shape.names)
        self.watermark = WATERMARK_NONE
        self.waiting = Waiting()
        self.inside = 0  # events, or values kept of events, that wait no more
        self.drops = {GROUPS_OVERFLOW: 0, EVENTS_OVERFLOW: 0, CLOSED: 0}
        self._classes = classes

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Take events; the events of the windows that the watermark decides, in no order."""
        if batch:
            self._enter(batch)
        made: list[Detected] = []
        if watermark > self.watermark:
            self.watermark = watermark
            for entry in self.waiting.ready(watermark):
                self.take(entry, made)
            self.settle(made)
        return made

    def next_due(self) -> int | None:
        """The least watermark that takes an event or closes a window."""
        first = self.waiting.first_end()
        due = self.due()
        if first is None or due is None:
            return due if first is None else first
        return min(first, due)

    def held(self) -> int:
        """Events that wait or are inside, and values kept of such."""
        return len(self.waiting) + self.inside

    def least_newest_end(self, watermark: int) -> int:
        """No window yet to be reported has its newest event end before this."""
        first = self.waiting.first_end()
        return watermark + 1 if first is None else min(watermark + 1, first)

    def state(self) -> dict[str, Any]:
        """Plain data."""
        shelf = Shelf(self._classes)
        return {
            "watermark": self.watermark,
            "drops": dict(self.drops),
            "waiting": packed(self.waiting, shelf),
            "windows": self.plain(shelf),
            "events": shelf.packed(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        shelf = Shelf(self._classes, state["events"])
        self.watermark = state["watermark"]
        self.drops.update(state["drops"])
        self.waiting = Waiting()
        for entry in self.unpacked(state["waiting"], shelf):
            self.waiting.put(entry)
        self.inside = 0
        self.renew(state["windows"], shelf)

    def unpacked(self, entries: Sequence[Any], shelf: Shelf) -> Iterator[Entry]:
        """The entries that `packed` gave as plain data."""
        for at, leaves in entries:
            event = shelf.get(at)
            yield event, tuple(leaves), self.key_of(event)

    def _enter(self, batch: Sequence[LeafEvents]) -> None:
        watermark, key_of, waiting = self.watermark, self.key_of, self.waiting
        room = self.limits.events_max - len(waiting) - self.inside
        for event, leaves in arrivals(batch):
            key = key_of(event)
            if key is None:
                continue
            if event.end <= watermark:
                self.drops[CLOSED] += 1
            elif room <= 0:
                self.drops[EVENTS_OVERFLOW] += 1
            else:
                room -= 1
                waiting.put((event, leaves, key))

    # --- of each kind --------------------------------------------------------------------

    def take(self, entry: Entry, made: list[Detected]) -> None:
        """Take the next event in order; add to `made` what became known by it."""
        raise NotImplementedError

    def settle(self, made: list[Detected]) -> None:
        """All up to the watermark has been taken: close what no later event can change."""
        raise NotImplementedError

    def due(self) -> int | None:
        """The least watermark that, without events, could bring a report."""
        raise NotImplementedError

    def least_end(self, watermark: int) -> int:
        """No event ends before this that is in a window yet to be reported."""
        raise NotImplementedError

    def plain(self, shelf: Shelf) -> Any:
        """What is open, as plain data."""
        raise NotImplementedError

    def renew(self, data: Any, shelf: Shelf) -> None:
        """Take up what `plain` gave."""
        raise NotImplementedError


def packed(entries: Any, shelf: Shelf) -> list[list[Any]]:
    """Entries as plain data; their keys are made anew."""
    return [[shelf.put(event), list(leaves)] for event, leaves, _ in entries]
