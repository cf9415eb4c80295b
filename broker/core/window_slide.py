"""Windows `range R`: one at each event of a group, reaching R back from its end.

Owns the order in which events are taken, and the events inside. Must not know what aggregates keep
nor what a window's group becomes. Invariant: a group's events are taken in order, and those inside
are the ones that end at most R before the newest.

Events wait until the watermark has passed their end: then none can still come before them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from broker.core.agent import WATERMARK_NONE, LeafEvents
from broker.core.aggregates import SlidingGreatest, SlidingLeast
from broker.core.event import Detected, Event
from broker.core.shelf import Shelf
from broker.core.source import Constants, build
from broker.core.window_code import Slide, key_lines
from broker.core.window_ids import Constituents, Trail
from broker.core.window_outcome import WindowOutcome
from broker.core.window_plan import OperandNames
from broker.core.window_shape import (
    CLOSED,
    EVENTS_OVERFLOW,
    GROUPS_OVERFLOW,
    Shape,
    WindowLimits,
)

SWEEP_MS_MIN = 1_000  # silent groups are swept at most so often

Leaves = tuple[int, ...]
Entry = tuple[Any, Leaves]  # an event and the leaves that it came to


def compile_key(names: OperandNames) -> Callable[[Any], Any]:
    """A function of an event: its group's key, None where a part is null."""
    lines = [line.replace("continue", "return None") for line in key_lines(names)]
    text = "\n".join(["def key_of(e):", *(f"    {line}" for line in lines), "    return key"])
    return build(text + "\n", "key_of", Constants())


class Group:
    """The events of one group that are inside, and what is kept of them (a Summary)."""

    __slots__ = (
        "counts", "end", "inside", "kept", "maybes", "start", "starts", "trail",
        "uncertainties", "uncertainty", "width",
    )  # fmt: skip

    def __init__(self, shape: Shape) -> None:
        self.inside: deque[Entry] = deque()
        self.trail = Trail()
        self.width = 0  # of the trail: an event of two operands is a constituent twice
        self.counts = [0 for _ in shape.leaves]
        self.kept = shape.new_sliding()
        self.maybes = 0
        # Points start where they end, in order; only others are worth comparing. Likewise for ε.
        self.starts = SlidingLeast()
        self.uncertainties = SlidingGreatest()
        self.start = self.end = self.uncertainty = 0

    @property
    def maybe(self) -> bool:
        """Whether an event inside is of less than full certainty."""
        return self.maybes > 0

    def add(self, entry: Entry, adds: Sequence[Slide]) -> None:
        """Take in the newest event."""
        event, leaves = entry
        self.inside.append(entry)
        for leaf in leaves:
            self.trail.push(event)
            self.counts[leaf] += 1
            adds[leaf](self.kept, event)
        self.width += len(leaves)
        if event.start != event.end:
            self.starts.add(event.start)
        if event.uncertainty:
            self.uncertainties.add(event.uncertainty)
        if isinstance(event, Detected) and event.certainty != "yes":
            self.maybes += 1

    def remove_before(self, end: int, removes: Sequence[Slide]) -> int:
        """Let go of the events that end before a time; how many they were."""
        inside = self.inside
        count = width = 0
        while inside and inside[0][0].end < end:
            event, leaves = inside.popleft()
            count += 1
            width += len(leaves)
            for leaf in leaves:
                self.counts[leaf] -= 1
                removes[leaf](self.kept, event)
            if event.start != event.end:
                self.starts.remove(event.start)
            if event.uncertainty:
                self.uncertainties.remove(event.uncertainty)
            if isinstance(event, Detected) and event.certainty != "yes":
                self.maybes -= 1
        if width:
            self.width -= width
            self.trail.drop(width)
        return count

    def constituents(self) -> Constituents:
        """The ids of the events inside."""
        return self.trail.constituents(self.width)

    def summarise(self) -> None:
        """Set the span and the rest that a Summary tells."""
        oldest = self.inside[0][0]
        least = self.starts.result()
        self.start = oldest.start if least is None else min(oldest.start, least)
        self.end = self.inside[-1][0].end
        self.uncertainty = self.uncertainties.result() or 0


class SlidingWindows:
    """The groups of one case, and the events that wait for the watermark."""

    def __init__(
        self,
        shape: Shape,
        outcome: WindowOutcome,
        range_ms: int,
        limits: WindowLimits,
        classes: Mapping[str, type[Event]],
    ) -> None:
        self._shape = shape
        self._outcome = outcome
        self._range_ms = range_ms
        self._limits = limits
        self._classes = classes
        self._adds = shape.slides("add")
        self._removes = shape.slides("remove")
        self._key_of = compile_key(shape.names)
        self._watermark = WATERMARK_NONE
        self._swept = WATERMARK_NONE
        self._waiting: dict[int, list[Entry]] = {}  # by end
        self._ends: list[int] = []  # a heap of the ends that events wait for
        self._groups: dict[Any, Group] = {}
        self._held = 0
        self.drops = {GROUPS_OVERFLOW: 0, EVENTS_OVERFLOW: 0, CLOSED: 0}

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Detected]:
        """Take events; the events of the windows whose newest event the watermark has passed."""
        for event, leaves in self._entries(batch):
            self._wait(event, leaves)
        self._watermark = max(self._watermark, watermark)
        made: list[Detected] = []
        ends = self._ends
        while ends and ends[0] <= self._watermark:
            ready = self._waiting.pop(heappop(ends))
            if len(ready) > 1:
                ready.sort(key=_entry_order)
            for entry in ready:
                made += self._slide(entry)
        if self._watermark - self._swept >= max(self._range_ms, SWEEP_MS_MIN):
            self._sweep()
        return made

    def next_due(self) -> int | None:
        """The end of the first event that waits."""
        return self._ends[0] if self._ends else None

    def held(self) -> int:
        """Events that wait or are inside."""
        return self._held

    def least_end(self, watermark: int) -> int:
        """No event ends before this that is in a window yet to be reported."""
        return self.least_newest_end(watermark) - self._range_ms

    def least_newest_end(self, watermark: int) -> int:
        """No window yet to be reported has its newest event end before this."""
        least = watermark + 1
        return min(least, self._ends[0]) if self._ends else least

    def state(self) -> dict[str, Any]:
        """Plain data; what aggregates keep is made anew from the events inside."""
        shelf = Shelf(self._classes)
        waiting = [entry for end in sorted(self._ends) for entry in self._waiting[end]]
        groups = [group.inside for group in self._groups.values()]
        return {
            "watermark": self._watermark,
            "swept": self._swept,
            "drops": dict(self.drops),
            "waiting": [[shelf.put(event), list(leaves)] for event, leaves in waiting],
            "groups": [
                [[shelf.put(event), list(leaves)] for event, leaves in inside] for inside in groups
            ],
            "events": shelf.packed(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave."""
        shelf = Shelf(self._classes, state["events"])
        self._watermark, self._swept = state["watermark"], state["swept"]
        self.drops.update(state["drops"])
        self._waiting, self._ends, self._groups, self._held = {}, [], {}, 0
        for at, leaves in state["waiting"]:
            event = shelf.get(at)
            self._waiting.setdefault(event.end, []).append((event, tuple(leaves)))
            self._held += 1
        self._ends = list(self._waiting)
        heapify(self._ends)
        for inside in state["groups"]:
            group = Group(self._shape)
            for at, leaves in inside:
                group.add((shelf.get(at), tuple(leaves)), self._adds)
            self._groups[self._key_of(group.inside[0][0])] = group
            self._held += len(inside)

    # --- taking events -------------------------------------------------------------------

    def _entries(self, batch: Sequence[LeafEvents]) -> list[Entry]:
        """Each event once, with all the leaves that it came to in this batch."""
        if len(batch) == 1:
            leaf, events = batch[0]
            alone = (leaf,)
            return [(event, alone) for event in events]
        found: dict[int, tuple[Any, list[int]]] = {}
        for leaf, events in batch:
            for event in events:
                leaves = found.setdefault(id(event), (event, []))[1]
                if leaf not in leaves:
                    leaves.append(leaf)
        return [(event, tuple(leaves)) for event, leaves in found.values()]

    def _wait(self, event: Any, leaves: Leaves) -> None:
        end = event.end
        if end <= self._watermark:
            self.drops[CLOSED] += 1
        elif self._held >= self._limits.events_max:
            self.drops[EVENTS_OVERFLOW] += 1
        elif self._key_of(event) is not None:
            self._held += 1
            waiting = self._waiting.get(end)
            if waiting is None:
                self._waiting[end] = [(event, leaves)]
                heappush(self._ends, end)
            else:
                waiting.append((event, leaves))

    def _slide(self, entry: Entry) -> list[Detected]:
        event = entry[0]
        key = self._key_of(event)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= self._limits.groups_max:
                self._held -= 1
                self.drops[GROUPS_OVERFLOW] += 1
                return []
            group = self._groups[key] = Group(self._shape)
        self._held -= group.remove_before(event.end - self._range_ms, self._removes)
        group.add(entry, self._adds)
        if not self._shape.stands(group.counts):
            return []
        group.summarise()
        return self._outcome.events(event.id, [(key, group)])

    def _sweep(self) -> None:
        """Let go of what no window still to come reaches back to, in silent groups too."""
        self._swept = self._watermark
        least = self._watermark + 1 - self._range_ms
        for key, group in list(self._groups.items()):
            self._held -= group.remove_before(least, self._removes)
            if not group.inside:
                del self._groups[key]


def _entry_order(entry: Entry) -> tuple[Any, str]:
    """Events go by their order; the id only parts what no order does."""
    return (entry[0].order, entry[0].id)
