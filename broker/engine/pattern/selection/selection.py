"""`last` and `first`: of the occurrences that agree in every other place, one.

Owns the choice among complete occurrences and when it is final. Must not know how they were found.
Invariant: a choice is made only when no occurrence still to come could change it.

Two or more `last` in one pattern choose independently: an occurrence stays if it is the latest for
each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Event
from broker.engine.event.occurrence import end_of, events_of, flat, identity, order_of
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.operands import (
    Joint,
    Operand,
    operands,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.times.timing import gap_max_ms, span_max_ms
from broker.engine.pattern.uncertainty.verdicts import Doubt
from language.relations import FOLLOWS

Closes = Callable[[Any], int]
Keys = list[tuple[Any, Any, bool]]  # what is shared, the rank, whether the latest one counts
Decided = dict[Any, tuple[Any, Any]]  # what competitors share → the best rank and its occurrence


class Selection:
    """All `last` and `first` of one pattern."""

    def __init__(
        self,
        layout: Layout,
        duration_max_ms: int,
        foresight: Foresight | None = None,
        doubt: Doubt | None = None,
    ) -> None:
        """`doubt`: that of times, where they are weighed; it may grow."""
        self._doubt = doubt
        self._longest_ms = max(_limits_of(layout), default=0)
        self._ranges = [(low, high, True) for low, high in layout.last]
        self._closes = [
            closing(layout, low, high, duration_max_ms, foresight) for low, high in layout.last
        ]
        # No time is needed for `first`: a later occurrence never is an earlier one.
        self._ranges += [(low, high, False) for low, high in layout.first]
        self._keys = self._compiled(len(layout.leaves)) if _is_plain(layout) else self._keys_of

    def _compiled(self, places: int) -> Callable[[Any], Keys]:
        """Return `_keys_of` written out, for occurrences that bind one event in each place."""
        keys = []
        for low, high, latest in self._ranges:
            agreed = [place for place in range(places) if place < low or place >= high]
            others = [f"id(o[{2 + place}])" for place in agreed]
            rank = f"o[{2 + low}].order" if high - low == 1 else f"rank(o[{2 + low}:{2 + high}])"
            keys.append(f"(({low}, {', '.join(others)}), {rank}, {latest})")
        constants = Constants()
        constants.helper("rank", _rank)
        return build(f"def keys(o):\n    return [{', '.join(keys)}]\n", "keys", constants)

    def closes_at(self, occurrence: Any) -> int:
        """The watermark from which on the choices that involve the occurrence are final."""
        close = int(occurrence[0] if occurrence.__class__ is tuple else occurrence.end)
        for closes in self._closes:
            close = max(close, closes(occurrence))
        if self._doubt is None or not self._closes:
            return close
        # One that seems to come too late may yet count.
        return min(close + self._doubt.slack_ms(self._longest_ms), WATERMARK_END)

    def chosen(self, occurrences: Sequence[Any], decided: Decided | None = None) -> list[Any]:
        """The occurrences that each `last` and `first` chooses, in the order given.

        `decided` are the best of those that had their turn: the others compete with them too.
        """
        best: Decided = dict(decided or {})
        # Twice through: a loser may come before its better one, and each word chooses by itself.
        all_keys = [self._keys(occurrence) for occurrence in occurrences]
        for occurrence, keys in zip(occurrences, all_keys, strict=True):
            _decide(occurrence, keys, best)
        return [
            occurrence
            for occurrence, keys in zip(occurrences, all_keys, strict=True)
            if all(best[key][0] == rank for key, rank, _ in keys)
        ]

    def decide(self, occurrence: Any, best: Decided) -> None:
        """Count the occurrence in among the best."""
        _decide(occurrence, self._keys(occurrence), best)

    def settled(self, decided: Decided, begins: int) -> list[Any]:
        """The keys of choices for which nobody competes any more.

        What is to come begins at `begins` or later, so it cannot share an event that ended before.
        """
        found = []
        for key, (_, occurrence) in decided.items():
            events = events_of(occurrence)
            low, others = key[0], len(key) - 1
            high = low + len(events) - others
            # An event that has ended is shared by nothing that is still to begin: one suffices.
            if any(event.end < begins for event in flat(events[:low] + events[high:])):
                found.append(key)
        return found

    def _keys_of(self, occurrence: Any) -> Keys:
        """For each word: what the occurrence shares with those it competes with, and its rank."""
        events = events_of(occurrence)
        return [
            ((low, *_identities(events, low, high)), _rank(events[low:high]), latest)
            for low, high, latest in self._ranges
        ]


def _is_plain(layout: Layout) -> bool:
    """Tell whether occurrences bind one event in each of several places."""
    others = layout.listed or layout.silent or layout.optional
    return len(layout.leaves) > 1 and not others


def _limits_of(layout: Layout) -> list[int]:
    """All durations that a drift may lengthen."""
    found = [high_ms for joint in layout.joints for high_ms in _bound(joint)]
    for one in operands(layout.root):
        found += [within_ms for _, within_ms in one.anchors]
        if one.within_ms is not None:
            found.append(one.within_ms)
    return found


def _bound(joint: Joint) -> list[int]:
    high_ms = None if joint.bound is None else joint.bound.high_ms
    return [] if high_ms is None else [high_ms]


def _decide(occurrence: Any, keys: Keys, best: Decided) -> None:
    for key, rank, latest in keys:
        known = best.get(key)
        if known is None or (rank > known[0] if latest else rank < known[0]):
            best[key] = (rank, occurrence)


def _identities(events: Sequence[Any], low: int, high: int) -> tuple[Any, ...]:
    """Return what is bound at all places but low..high-1."""
    return tuple([_identity(member) for member in (*events[:low], *events[high:])])


def _identity(member: Any) -> Any:
    if member.__class__ is tuple:
        return tuple([id(event) for event in member])
    return identity(member)


def _rank(events: Sequence[Any]) -> tuple[Any, ...]:
    """The order of the part of an occurrence that `last` compares."""
    if len(events) == 1 and isinstance(events[0], Event):
        return events[0].order
    bound = flat(events)
    if not bound:
        return ()
    ends, starts = [event.end for event in bound], [event.start for event in bound]
    return order_of((max(ends), min(starts), *events))


def closing(
    layout: Layout, low: int, high: int, duration_max_ms: int, foresight: Foresight | None = None
) -> Closes:
    """When no later occurrence of the operand at low..high-1 can join the same others."""
    above = [
        joint
        for joint in operands(layout.root)
        if isinstance(joint, Joint) and joint.low <= low and high <= joint.high
    ]
    # From the inside out: the first operator that settles it is enough.
    for joint in above:
        before = joint.operator in FOLLOWS and high <= joint.left.high
        anchored = any(low <= anchor < high for anchor, _ in joint.anchors)
        # What comes before something else that is bound cannot become later any more; an anchor
        # ended before all others began.
        if before or (anchored and high - low == 1):
            return lambda occurrence: int(occurrence[0])  # it ends before something else begins
    limits = [
        limit for joint in above for limit in _limits(joint, low, high, duration_max_ms, foresight)
    ]
    # With `or` another occurrence may have nothing in that place.
    others_bind = any(joint.operator == "or" for joint in above)

    def close(occurrence: Any) -> int:
        events = events_of(occurrence)
        if others_bind and not flat(events[low:high]):
            return int(end_of(occurrence))  # who agrees with this side of an `or` is on it, too
        return min([limit(events) for limit in limits], default=WATERMARK_END)

    return close


def _limits(
    joint: Joint, low: int, high: int, duration_max_ms: int, foresight: Foresight | None
) -> list[Callable[[Sequence[Any]], int]]:
    """Upper bounds, from the other places alone, of the end that the operand can have."""
    found: list[Callable[[Sequence[Any]], int]] = []
    others = [place for place in range(joint.low, joint.high) if not low <= place < high]
    if joint.within_ms is not None:
        within_ms = joint.within_ms
        # The others alone: the operand's own start may be later in another occurrence.
        found.append(lambda events: _least_start(events, others) + within_ms)
    for anchor, anchor_ms in joint.anchors:
        if not low <= anchor < high:
            found.append(_after_anchor(anchor, anchor_ms))
    gap_ms = gap_max_ms(joint)
    is_left, is_right = high <= joint.left.high, low >= joint.right.low  # else it is beneath
    if gap_ms is not None and (is_left or is_right):
        own, other = (joint.left, joint.right) if is_left else (joint.right, joint.left)
        found += _after_other(own, other, gap_ms, duration_max_ms, foresight)
    return found


def _after_other(
    own: Operand,
    other: Operand,
    gap_ms: int,
    duration_max_ms: int,
    foresight: Foresight | None,
) -> list[Callable[[Sequence[Any]], int]]:
    """A side begins so long after the other one ends at most, and then lasts for its span."""
    places = range(other.low, other.high)
    span = span_max_ms(own, duration_max_ms)
    if span is None:
        return []
    after_ms = gap_ms + span
    # By the limit alone what closes is said once; by what has been seen of durations it grows.
    if foresight is None:
        return [lambda events: _greatest_end(events, places) + after_ms]

    def limit(events: Sequence[Any]) -> int:
        span_ms = span_max_ms(own, foresight.longest_ms)
        return _greatest_end(events, places) + gap_ms + (span_ms or 0)

    return [limit]


def _after_anchor(anchor: int, within_ms: int) -> Callable[[Sequence[Any]], int]:
    def limit(events: Sequence[Any]) -> int:
        ends = [event.end for event in flat([events[anchor]])]
        return max(ends) + within_ms if ends else WATERMARK_END

    return limit


def _least_start(events: Sequence[Any], places: Sequence[int]) -> int:
    starts = [event.start for event in flat([events[place] for place in places])]
    # Half of it, as something is added to that: where the others bind nothing there is no limit.
    return min(starts, default=WATERMARK_END // 2)


def _greatest_end(events: Sequence[Any], places: Sequence[int]) -> int:
    ends = [event.end for event in flat([events[place] for place in places])]
    return max(ends, default=WATERMARK_END // 2)
