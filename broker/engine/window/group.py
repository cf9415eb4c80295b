"""The events of one group inside of a window that moves, and what is kept of them.

Owns adding the newest event, letting the oldest go, and what of `distinct` counts meanwhile. Must
not know when windows are reported. Invariant: what a group tells depends on the events inside
alone.

Without `distinct` what counts comes and goes in order. With it, an event may begin to count in the
midst of others, when the last one before it with the same keys has gone; what counts is then kept
in order by bisection, and the aggregates of that operand keep all values in order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from broker.engine.event.event import Detected
from broker.engine.window.aggregates_moving import Greatest, Least, SlidingGreatest, SlidingLeast
from broker.engine.window.code import Slide
from broker.engine.window.ids import IDS_MAX, Constituents, Trail
from broker.engine.window.shape import Shape
from broker.engine.window.wait import Entry

Key = Callable[[Any], Any]

_order = attrgetter("order")


class Group:
    """A group without `distinct` (see window_outcome.Summary)."""

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
        event, leaves, _ = entry
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

    def remove_before(self, end: int, removes: Sequence[Slide], adds: Sequence[Slide]) -> int:  # noqa: ARG002
        """Let go of the events that end before a time; how many they were."""
        inside = self.inside
        count = width = 0
        while inside and inside[0][0].end < end:
            event, leaves, _ = inside.popleft()
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


class LoneGroup(Group):
    """As Group, of one operand of primitive events: what most windows are, in fewer steps."""

    __slots__ = ()

    def add(self, entry: Entry, adds: Sequence[Slide]) -> None:
        """See Group."""
        event = entry[0]
        self.inside.append(entry)
        self.trail.push(event)
        adds[0](self.kept, event)
        if event.start != event.end:
            self.starts.add(event.start)
        if event.uncertainty:
            self.uncertainties.add(event.uncertainty)

    def remove_before(self, end: int, removes: Sequence[Slide], adds: Sequence[Slide]) -> int:  # noqa: ARG002
        """See Group."""
        inside, kept, remove = self.inside, self.kept, removes[0]
        count = 0
        while inside and (event := inside[0][0]).end < end:
            inside.popleft()
            count += 1
            remove(kept, event)
            if event.start != event.end:
                self.starts.remove(event.start)
            if event.uncertainty:
                self.uncertainties.remove(event.uncertainty)
        if count:
            self.trail.drop(count)
        return count

    def constituents(self) -> Constituents:
        """See Group."""
        return self.trail.constituents(len(self.inside))

    def summarise(self) -> None:
        """See Group."""
        self.counts[0] = len(self.inside)
        super().summarise()


class DistinctGroup:
    """A group of a window with `distinct` operands (see window_outcome.Summary).

    `alike` has, for each such leaf, the events inside by their keys, oldest first: the first
    counts. `members` are the events that count, in order, once for each leaf.
    """

    __slots__ = (
        "alike", "counts", "end", "gone", "inside", "kept", "keys", "maybes", "members", "start",
        "starts", "uncertainties", "uncertainty",
    )  # fmt: skip

    def __init__(self, shape: Shape) -> None:
        self.keys: list[Key | None] = shape.distinct_keys
        self.inside: deque[Entry] = deque()
        self.alike: list[dict[Any, deque[Any]]] = [{} for _ in shape.leaves]
        self.members: list[Any] = []
        self.gone = 0  # members that have gone but still stand at the beginning
        self.counts = [0 for _ in shape.leaves]
        self.kept = shape.new_sliding()
        self.maybes = 0
        self.starts = Least()  # of what is longer than a point
        self.uncertainties = Greatest()
        self.start = self.end = self.uncertainty = 0

    @property
    def maybe(self) -> bool:
        """Whether an event that counts is of less than full certainty."""
        return self.maybes > 0

    def add(self, entry: Entry, adds: Sequence[Slide]) -> None:
        """Take in the newest event."""
        event, leaves, _ = entry
        self.inside.append(entry)
        for leaf in leaves:
            key_of = self.keys[leaf]
            key = None if key_of is None else key_of(event)
            if key is None:
                self._count(leaf, event, adds)
                continue
            alike = self.alike[leaf].get(key)
            if alike is None:
                self.alike[leaf][key] = deque((event,))
                self._count(leaf, event, adds)
            else:
                alike.append(event)

    def remove_before(self, end: int, removes: Sequence[Slide], adds: Sequence[Slide]) -> int:
        """Let go of the events that end before a time; how many they were."""
        inside = self.inside
        count = 0
        while inside and inside[0][0].end < end:
            event, leaves, _ = inside.popleft()
            count += 1
            for leaf in leaves:
                key_of = self.keys[leaf]
                key = None if key_of is None else key_of(event)
                self._discount(leaf, event, removes)
                if key is None:
                    continue
                alike = self.alike[leaf][key]
                alike.popleft()
                if alike:
                    self._count(leaf, alike[0], adds)
                else:
                    del self.alike[leaf][key]
        return count

    def constituents(self) -> Constituents:
        """The ids of the events that count."""
        return Constituents([self.members[self.gone : self.gone + IDS_MAX]])

    def summarise(self) -> None:
        """Set the span and the rest that a Summary tells."""
        oldest = self.members[self.gone]
        least = self.starts.result()
        self.start = oldest.start if least is None else min(oldest.start, least)
        self.end = self.members[-1].end
        self.uncertainty = self.uncertainties.result() or 0

    def _count(self, leaf: int, event: Any, adds: Sequence[Slide]) -> None:
        members = self.members
        if len(members) == self.gone or members[-1].end < event.end:
            members.append(event)
        else:
            members.insert(bisect_right(members, event.order, self.gone, key=_order), event)
        self.counts[leaf] += 1
        adds[leaf](self.kept, event)
        if event.start != event.end:
            self.starts.add(event.start)
        if event.uncertainty:
            self.uncertainties.add(event.uncertainty)
        if isinstance(event, Detected) and event.certainty != "yes":
            self.maybes += 1

    def _discount(self, leaf: int, event: Any, removes: Sequence[Slide]) -> None:
        """What goes is the oldest inside, and so the oldest that counts."""
        self.gone += 1
        if 2 * self.gone > len(self.members):
            del self.members[: self.gone]
            self.gone = 0
        self.counts[leaf] -= 1
        removes[leaf](self.kept, event)
        if event.start != event.end:
            self.starts.remove(event.start)
        if event.uncertainty:
            self.uncertainties.remove(event.uncertainty)
        if isinstance(event, Detected) and event.certainty != "yes":
            self.maybes -= 1


def group_class(shape: Shape) -> type[Group | DistinctGroup]:
    """What keeps a group of a case."""
    if shape.distinct:
        return DistinctGroup
    return LoneGroup if shape.detected == [False] else Group
