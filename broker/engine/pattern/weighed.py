"""Operators over two sides while times are uncertain.

Owns how certain a pair is. Must not know stores' keeping. Invariant: partners are chosen by nominal
order among all that is not NO; a pair's test is its certainty, which is false where it is NO.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from broker.engine.event.occurrence import Occurrence, events_of, flat, order_of
from broker.engine.pattern.base import end_of, start_of
from broker.engine.pattern.operands import Joint, Operand, silent_places
from broker.engine.pattern.relations import PARTNER_SEARCHES
from broker.engine.pattern.store import Store
from broker.engine.pattern.timing import left_cut_ms, right_cut_ms
from broker.engine.pattern.uncertainty import MAYBE, NO, Maybe
from broker.engine.pattern.verdicts import (
    Doubt,
    anchored,
    bounded,
    certainty_at,
    related,
    spanning,
    spans_of,
)
from broker.engine.runtime.budget import PLACE_BYTES, Budget
from language.relations import FOLLOWS

# Against a compiled test of two pairs of numbers: each relation is asked for its ways to hold and
# to fail (relations.py), at both ends of every interval.
WEIGHING = 24  # candidates that a pair costs whose times are weighed


def anchored_parts(
    operand: Operand, occurrence: Occurrence, places: Sequence[int], doubt: Doubt
) -> list[int]:
    """Of each `within T from A` around an operand and each other event: how certainly it holds."""
    members = events_of(occurrence)
    parts = []
    for anchor, within_ms in operand.anchors:
        if not operand.low <= anchor < operand.high:
            continue
        origins = flat([members[anchor - operand.low]])
        # The anchor is an optional list that bound nothing: no event can be within T from it.
        if not origins:
            return [NO]
        others = flat([members[place - operand.low] for place in places if place != anchor])
        parts += [anchored(a, x, within_ms, doubt) for a in origins for x in others]
    return parts


def marked(occurrence: Occurrence, certainty: int) -> Occurrence | None:
    """The occurrence with its certainty; None of NO."""
    if certainty == NO:
        return None
    if certainty == MAYBE and occurrence.__class__ is tuple:
        # A bare event carries its certainty itself; only what is made of several is marked here.
        return (Maybe(occurrence[0]), *occurrence[1:])
    return occurrence


class Weighed:
    """One operator's test, pairs and join; `timeless` asks all that does not ask about times.

    Of `or`, `timeless` is the join itself.
    """

    def __init__(
        self, joint: Joint, timeless: Callable[..., Any], doubt: Doubt, budget: Budget
    ) -> None:
        self._budget = budget
        self._joint = joint
        self._search = PARTNER_SEARCHES.get(joint.context.name)
        self._timeless = timeless
        self._doubt = doubt
        self._cuts = (left_cut_ms(joint), right_cut_ms(joint))
        silent = silent_places(joint)
        self._places = [at for at in range(joint.low, joint.high) if at not in silent]

    def test(self, left: Occurrence, right: Occurrence, group: Any, x: Any = None) -> int:
        """Judge how certainly the two belong together."""
        # Conditions first: they are compiled and exact, and most pairs fail them.
        if not self._timeless(left, right, group, x):
            return NO
        return self._weigh(left, right)

    def pair(self, left: Occurrence, right: Occurrence) -> Occurrence:
        """The occurrence of both, marked where it is not certain."""
        return self._paired(left, right, self._weigh(left, right))

    def _paired(self, left: Occurrence, right: Occurrence, verdict: int) -> Occurrence:
        whole = self._whole(left, right)
        parts = (
            verdict,
            certainty_at(self._joint.left, left, self._doubt),
            certainty_at(self._joint.right, right, self._doubt),
        )
        # NO cannot be here any more: what is NO was discarded as a candidate.
        if min(parts) == MAYBE:
            return (Maybe(whole[0]), *whole[1:])
        return whole

    def _whole(self, left: Occurrence, right: Occurrence) -> Occurrence:
        end = max(int(end_of(left)), int(end_of(right)))
        start = min(start_of(left), start_of(right))
        return (end, start, *events_of(left), *events_of(right))

    def _weigh(self, left: Occurrence, right: Occurrence) -> int:
        joint, doubt = self._joint, self._doubt
        p, q = spans_of(left), spans_of(right)
        verdict = related(joint.operator, p, q)
        if verdict and joint.bound is not None:
            verdict = min(verdict, bounded(joint.operator, joint.bound, p, q, doubt))
        if verdict and joint.within_ms is not None:
            verdict = min(verdict, spanning([*p, *q], joint.within_ms, doubt))
        if verdict and joint.anchors:
            whole = self._whole(left, right)
            verdict = min([verdict, *anchored_parts(joint, whole, self._places, doubt)])
        return verdict

    def join(  # noqa: PLR0917  # as the compiled ones are called
        self,
        lefts: list[Occurrence],
        rights: list[Occurrence],
        left_store: Any,
        right_store: Any,
        group: Any,
        x: Any = None,
    ) -> list[Occurrence]:
        """Join as `join.JoinWriter` does; if a partner is chosen both stores hold the new ones."""
        if self._joint.operator == "or":
            # `or` asks for no partner, so only the certainty of the one side counts.
            return self._either(lefts, rights, group)
        made: list[Occurrence] = []
        if self._search is not None:
            choose = self._search.choose
            for right in rights:
                made += choose(self._candidates(right, left_store, group, x, flip=False))
            for left in lefts:
                made += choose(self._candidates(left, right_store, group, x, flip=True))
            return made
        for right in rights:
            for left in self._in_reach(right, left_store, flip=False):
                made += self._tested(left, right, group, x)
        if right_store.items:
            for left in lefts:
                for right in self._in_reach(left, right_store, flip=True):
                    made += self._tested(left, right, group, x)
        return made

    def _tested(self, left: Occurrence, right: Occurrence, group: Any, x: Any) -> list[Occurrence]:
        verdict = self.test(left, right, group, x)
        if verdict == NO:
            return []
        self._budget.keep(1, len(self._places))
        return [self._paired(left, right, verdict)]

    def _in_reach(self, new: Occurrence, store: Store, *, flip: bool) -> list[Occurrence]:
        """Of the partners, those whose nominal times may do; `flip`: the new one is a left one."""
        low, high = 0, len(store.ends)
        cut = self._cuts[flip]
        if cut is not None:
            # The cut is where an older partner certainly fails; the slack of uncertain ends is
            # taken off, so that a maybe is still looked at.
            edge = start_of(new) if cut[0] == "start" else end_of(new)
            low = bisect_left(
                store.ends, edge - cut[1] - self._doubt.reach_slack_ms(self._joint, cut[1])
            )
        # A left one must end before the right one begins, give or take the uncertainty of both.
        if self._joint.operator in FOLLOWS and not flip:
            high = bisect_right(store.ends, start_of(new) + self._doubt.slack_ms())
        elif self._joint.within_ms is not None:
            limit_ms = self._joint.within_ms
            latest = start_of(new) + limit_ms + self._doubt.slack_ms(limit_ms)
            high = bisect_right(store.ends, latest)
        self._budget.spend(WEIGHING * (high - low), PLACE_BYTES * (high - low))
        return store.items[low:high]

    def _candidates(
        self, new: Occurrence, store: Store, group: Any, x: Any, *, flip: bool
    ) -> Iterator[Occurrence]:
        """Yield the new one with each that precedes it, from the latest to the oldest."""
        others = self._in_reach(new, store, flip=flip)
        end = end_of(new)
        # Contexts choose by nominal order among all that is not NO (LANGUAGE 3, "Uncertain time").
        others = others[: bisect_right(others, end, key=end_of)]
        while others:
            # Those of one end are looked through in order, from the last one on.
            at = bisect_left(others, end_of(others[-1]), key=end_of)
            alike = others[at:]
            del others[at:]
            if len(alike) > 1:
                alike.sort(key=order_of)
            for one in reversed(alike):
                # Of one instant only those that stand before the new one in order precede it.
                if end_of(one) == end and order_of(one) >= order_of(new):
                    continue
                left, right = (new, one) if flip else (one, new)
                yield from self._tested(left, right, group, x)

    def _either(
        self, lefts: list[Occurrence], rights: list[Occurrence], group: Any
    ) -> list[Occurrence]:
        made: list[Occurrence] = []
        for side, items in ((self._joint.left, lefts), (self._joint.right, rights)):
            for item in items:
                pair = ([item], []) if side is self._joint.left else ([], [item])
                certainty = certainty_at(side, item, self._doubt)
                found = self._timeless(*pair, None, None, group)
                if certainty == MAYBE:
                    found = [(Maybe(one[0]), *one[1:]) for one in found]
                made += found
        return made
