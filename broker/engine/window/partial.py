"""What a pane knows of one group: counts, span, and what is kept for aggregates.

Owns folding events into it and merging two. Must not know which pane it belongs to.
Invariant: a partial is the same however its events were ordered, folded in runs or merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.engine import native
from broker.engine.window.aggregates import plain_value, value_of
from broker.engine.window.code import Fold
from broker.engine.window.ids import NEVER, Constituents, Heads
from broker.engine.window.shape import Shape

PENDING_MAX = 2_048  # events set aside before they are folded: runs fold cheaper than single ones


class Partial:
    """A group's events in one pane, folded but for those pending (see window_outcome.Summary)."""

    __slots__ = (
        "counts", "end", "heads", "kept", "maybe", "pending", "start", "uncertainty",
    )  # fmt: skip

    def __init__(self, shape: Shape) -> None:
        self.counts = [0 for _ in shape.leaves]
        self.pending: list[list[Any]] = [[] for _ in shape.leaves]
        self.kept = shape.new_in_pane()
        self.heads = Heads()
        self.start = NEVER
        self.end = -NEVER
        self.uncertainty = 0
        self.maybe = False

    def fold(
        self,
        shape: Shape,
        folds: Sequence[Fold | None],
        *,
        plain: bool = False,
        in_order: bool = False,
    ) -> None:
        """Take in what is pending.

        `plain` is a promise that they are points, certain of their time; `in_order`, that those of
        each leaf are.
        """
        for leaf, events in enumerate(self.pending):
            if not events:
                continue
            self.counts[leaf] += len(events)
            low = self._take_points(events, in_order) if plain else self._take_spans(events)
            self.heads.take(events, low)
            if shape.detected[leaf]:
                self.maybe = self.maybe or any(event.certainty != "yes" for event in events)
            fold = folds[leaf]
            if fold is not None:
                fold(self.kept, events)
            events.clear()

    def _take_points(self, events: list[Any], in_order: bool) -> int:
        low: int
        high: int
        if in_order:
            low, high = events[0].end, events[-1].end
        elif native.passes is not None and (found := native.passes.spanned(events, 0)):
            low, high = found[:2]
        else:
            ends = [event.end for event in events]
            low, high = min(ends), max(ends)
        self.start = min(self.start, low)
        self.end = max(self.end, high)
        return low

    def _take_spans(self, events: list[Any]) -> int:
        low: int
        if len(events) == 1:
            event = events[0]
            low = high = event.end
            start, uncertainty = event.start, event.uncertainty
        else:
            ends = [event.end for event in events]
            low, high = min(ends), max(ends)
            start = min([event.start for event in events])
            uncertainty = max([event.uncertainty for event in events])
        self.start = min(self.start, start)
        self.end = max(self.end, high)
        self.uncertainty = max(self.uncertainty, uncertainty)
        return low

    def crowd(self, ids: int) -> bool:
        """Keep no more events for the sake of order than so many; whether they were more."""
        if ids >= self.heads.most:
            return False
        self.heads.most = ids
        return True

    def merged(self, others: Sequence[Partial]) -> Partial:
        """This and others together, as a new one; none may have events pending."""
        made: Partial = Partial.__new__(Partial)
        made.pending = []
        counts, start, end = self.counts.copy(), self.start, self.end
        uncertainty, maybe = self.uncertainty, self.maybe
        for other in others:
            for leaf, count in enumerate(other.counts):
                counts[leaf] += count
            start = min(start, other.start)
            end = max(end, other.end)
            uncertainty = max(uncertainty, other.uncertainty)
            maybe = maybe or other.maybe
        made.counts, made.start, made.end = counts, start, end
        made.uncertainty, made.maybe = uncertainty, maybe
        made.kept = [
            kept.merged([other.kept[at] for other in others]) for at, kept in enumerate(self.kept)
        ]
        made.heads = self.heads.merged([other.heads for other in others])
        return made

    def constituents(self) -> Constituents:
        """The ids of the events; no more may come."""
        return self.heads.constituents()

    def plain(self) -> list[Any]:
        """Plain data; no event may be pending."""
        span = [self.start, self.end, self.uncertainty, self.maybe, self.heads.plain()]
        return [list(self.counts), span, [kept.plain() for kept in self.kept]]

    @classmethod
    def of_plain(cls, shape: Shape, data: list[Any]) -> Partial:
        """The partial that `plain` gave as plain data."""
        made = cls(shape)
        made.counts, span, kept = list(data[0]), data[1], data[2]
        made.start, made.end, made.uncertainty, made.maybe = span[:4]
        made.heads.restore(span[4])
        for one, plain in zip(made.kept, kept, strict=True):
            one.restore(plain)
        return made


def plain_key(key: Any) -> Any:
    """A key of a group, of `distinct` or of a window as plain data."""
    if isinstance(key, tuple):
        return [plain_key(part) for part in key]
    return plain_value(key)


def key_of(data: Any) -> Any:
    """The key that `plain_key` gave as plain data."""
    if isinstance(data, list):
        return tuple(key_of(part) for part in data)
    return value_of(data)
