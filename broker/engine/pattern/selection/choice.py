"""What of the occurrences found is reported: choices, consumption and thinning.

Owns the occurrences of one partition that wait for their turn. Must not know how they are found.
Invariant: occurrences have their turn in order, each once nothing before it can still come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Order
from broker.engine.event.occurrence import (
    Occurrence,
    end_of,
    events_of,
    flat,
    follows,
    order_of,
    sort_in_order,
    span_of,
    start_of,
)
from broker.engine.pattern.selection.collecting import Groups, as_reported, by_end, decide, ripe
from broker.engine.pattern.selection.collecting import times as times_of
from broker.engine.pattern.selection.selection import Decided, Selection
from broker.engine.pattern.stage.base import next_of
from broker.engine.pattern.times.completion import Completion, completing
from broker.engine.pattern.uncertainty.uncertainty import MAYBE
from broker.engine.pattern.uncertainty.verdicts import certainty_of
from broker.engine.runtime.budget import Budget

# Choices of `first` and `last`, and events answered by `one`, that are remembered in one partition;
# the oldest go first.
DECIDED_MAX = 100_000
DECIDED_MIN = 64
WAITING = 12  # candidates that each costs that waits, in each step,
CHOOSING = 48  # and besides, where `first` or `last` chooses among them


@dataclass(frozen=True, slots=True)
class Manner:
    """Describe how a case chooses among its occurrences; the same for all partitions.

    `consuming` holds places. `at_most`: (count, per ms). `as_decided`: what `last` has chosen is
    reported once no other can come before it there, whatever else waits.
    """

    selection: Selection | None
    consuming: tuple[int, ...]
    report: str
    at_most: tuple[int, int] | None
    completion: Completion
    maybe_drop: bool = False
    as_decided: bool = False
    budget: Budget = field(default_factory=Budget, compare=False)

    @property
    def in_turn(self) -> bool:
        """Tell whether occurrences wait for their turn."""
        return (
            self.selection is not None
            or bool(self.consuming)
            or self.report != "all"
            or self.at_most is not None
        )


@dataclass(slots=True)
class Waiting:
    """The occurrences of one partition that were found and not reported."""

    found: list[Occurrence] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups)  # of these what has its place, for `collect`
    last: Occurrence | None = None  # the one that had its turn last, since there was a snapshot
    taken_before: Order | None = None  # the order of the last one before that
    answered: dict[int, Any] = field(default_factory=dict)  # by identity: completing events
    decided: Decided = field(default_factory=dict)  # what had its turn, where choices compete
    reported: deque[int] = field(default_factory=deque)  # ends, for `at most`
    suppressed: int = 0
    decided_full: int = DECIDED_MIN  # with so many it is asked which of them still matter
    answered_full: int = DECIDED_MIN  # likewise

    @property
    def taken(self) -> Order | None:
        """The order of the one that had its turn last."""
        # Made where it is asked for: the span nearly always says enough.
        return self.taken_before if self.last is None else order_of(self.last)

    def all_found(self) -> list[Occurrence]:
        """All that wait, whether a group has them or not."""
        return self.found + self.groups.members()

    def count(self) -> int:
        """Count those that wait."""
        return len(self.found) + self.groups.count


Refind = Callable[[Occurrence, set[int]], list[Occurrence]]


def take(
    waiting: Waiting, manner: Manner, limit: int, refind: Refind, begins: Callable[[], int]
) -> list[Occurrence]:
    """Take what is reported now, if no other occurrence that ends by the limit will come.

    `refind(reported, gone)` finds all occurrences anew without the consumed events. No occurrence
    that is still to be found begins before `begins()`.
    """
    # Paid before any of it is looked at: a step is bounded in candidates, whatever waits.
    manner.budget.spend(WAITING * waiting.count())
    if manner.as_decided and manner.selection is not None:
        return _decided(waiting, manner.selection, manner.budget, limit)
    if manner.report == "collect":
        chosen = _collected(waiting, manner, limit, begins)
    else:
        chosen = _in_turn(waiting, manner, limit, refind)
    _forget(waiting, manner, limit, begins)
    # Thinning comes last: what is left out has consumed all the same (LANGUAGE, section 2).
    if manner.at_most is None:
        return chosen
    return [one for one in chosen if _passes(waiting, manner.at_most, one)]


def _in_turn(waiting: Waiting, manner: Manner, limit: int, refind: Refind) -> list[Occurrence]:
    reported: list[Occurrence] = []
    if not _ready(waiting, manner, limit):
        return reported
    sort_in_order(waiting.found, tied=manner.budget.tie)
    turns = _Turns(waiting, manner, limit)
    while True:
        first = turns.next()
        if first is None:
            break
        if manner.maybe_drop and certainty_of(first) == MAYBE:
            continue
        # After `maybe drop`: what is dropped answers for no event (LANGUAGE, contexts).
        if manner.report == "one" and not _answers(waiting, first):
            continue
        reported.append(first)
        if manner.consuming and (gone := _consumed(manner, first)):
            manner.budget.spend(len(waiting.found))
            # Rejected: to strike out what holds a consumed event. Under contexts others would have
            # been chosen in its place, so all is found again, of what is kept.
            again = refind(first, gone)
            manner.budget.spend(WAITING * len(again))
            _find_anew(waiting, manner, again, first)
            waiting.last = first
            turns = _Turns(waiting, manner, limit)
    turns.end()
    return reported


def _decided(
    waiting: Waiting, selection: Selection, budget: Budget, limit: int
) -> list[Occurrence]:
    """Report what is chosen for good, out of turn; the rest goes on waiting."""
    budget.spend(CHOOSING * len(waiting.found))
    chosen, waiting.found = decide(waiting.found, selection, {}, limit)
    return chosen


def _ready(waiting: Waiting, manner: Manner, limit: int) -> bool:
    """Tell whether one may have its turn."""
    if manner.selection is not None:
        return bool(waiting.found)
    return any(end_of(one) <= limit for one in waiting.found)


def _find_anew(waiting: Waiting, manner: Manner, found: list[Occurrence], last: Occurrence) -> None:
    """Go on with what was found without the consumed events, after the one reported last."""
    waiting.found = [one for one in found if follows(one, last)]
    sort_in_order(waiting.found, tied=manner.budget.tie)
    if manner.selection is not None:
        waiting.decided = {}
        for one in found:
            if not follows(one, last):
                manner.selection.decide(one, waiting.decided)


class _Turns:
    """Goes through what was found, in order, up to what is not known yet."""

    def __init__(self, waiting: Waiting, manner: Manner, limit: int) -> None:
        self._waiting = waiting
        self._selection = manner.selection
        self._budget = manner.budget
        self._limit = limit
        self._at = 0
        self._before: tuple[int, int] | None = None  # the span of the one that had its turn last
        if waiting.last is not None:
            self._before = span_of(waiting.last)
        elif waiting.taken_before is not None:
            self._before = waiting.taken_before[:2]
        self._chosen: set[int] | None = None

    def next(self) -> Occurrence | None:
        """The next in turn; None while it is not known."""
        found = self._waiting.found
        selection = self._selection
        while self._at < len(found):
            one = found[self._at]
            span = span_of(one)
            closes = span[0] if selection is None else selection.closes_at(one)
            if closes > self._limit:
                return None
            # What had its turn may be found again.
            before = self._before
            if before is not None and span <= before and not self._is_later(one, span):
                self._at += 1
                continue
            if selection is not None:
                if self._chosen is None:
                    # Who has his turn is decided, and competes on: the choice stays what it is.
                    self._budget.spend(CHOOSING * len(found))
                    chosen = selection.chosen(found, self._waiting.decided)
                    self._chosen = {id(other) for other in chosen}
                selection.decide(one, self._waiting.decided)
            self._at += 1
            if self._chosen is None or id(one) in self._chosen:
                self._waiting.last, self._before = one, span
                return one
        return None

    def _is_later(self, one: Occurrence, span: tuple[int, int]) -> bool:
        """Tell whether one of no later span follows the last that had its turn."""
        taken = self._waiting.taken if span == self._before else None
        return taken is not None and order_of(one) > taken

    def end(self) -> None:
        """Forget what had its turn."""
        del self._waiting.found[: self._at]


def _answers(waiting: Waiting, one: Occurrence) -> bool:
    """Tell whether it is the first that its last event completes, and remember that event."""
    last = completing(one)
    if last is None:
        return True
    if id(last) in waiting.answered:
        return False
    waiting.answered[id(last)] = last
    return True


def _consumed(manner: Manner, one: Occurrence) -> set[int]:
    members = events_of(one)
    gone = flat([members[place] for place in manner.consuming])
    return {id(event) for event in gone}


def _forget(waiting: Waiting, manner: Manner, limit: int, begins: Callable[[], int]) -> None:
    if waiting.answered:
        _forget_answered(waiting, manner, limit, begins)
    decided = waiting.decided
    if manner.selection is not None and len(decided) >= waiting.decided_full:
        for key in manner.selection.settled(decided, begins()):
            del decided[key]
        waiting.decided_full = max(DECIDED_MIN, 2 * len(decided))
    while len(decided) > DECIDED_MAX:
        del decided[next(iter(decided))]


def _forget_answered(
    waiting: Waiting, manner: Manner, limit: int, begins: Callable[[], int]
) -> None:
    """Forget those that complete nothing to come: nothing found, nor what is yet to be found."""
    answered, completion = waiting.answered, manner.completion
    if completion.lingers and len(answered) < waiting.answered_full:
        return
    begun = begins() if completion.lingers else WATERMARK_NONE
    may_wait = completion.lingers or manner.selection is not None
    waited_for = {id(completing(one)) for one in waiting.found} if may_wait else set()
    gone = [
        key
        for key, event in answered.items()
        if key not in waited_for and (completion.over_at(event) <= limit or event.start < begun)
    ]
    for key in gone:
        del answered[key]
    waiting.answered_full = max(DECIDED_MIN, 2 * len(answered))
    while len(answered) > DECIDED_MAX:
        del answered[next(iter(answered))]


# --- collect ----------------------------------------------------------------------------------


def _collected(
    waiting: Waiting, manner: Manner, limit: int, begins: Callable[[], int]
) -> list[Occurrence]:
    chosen, selection = waiting.found, manner.selection
    waiting.found = []
    if selection is None and not manner.completion.lingers:
        whole, waiting.found = by_end(chosen, limit, drop_maybe=manner.maybe_drop)
        return whole
    if selection is not None and chosen:
        chosen, waiting.found = decide(chosen, selection, waiting.decided, limit)
    for one in chosen:
        if not (manner.maybe_drop and certainty_of(one) == MAYBE):
            waiting.groups.add(one, manner.completion)
    in_order = manner.at_most is not None  # it goes by what was reported before
    whole = ripe(waiting.groups, waiting.found, manner.completion, limit, begins, in_order=in_order)
    return as_reported(whole)


# --- at most ----------------------------------------------------------------------------------


def _passes(waiting: Waiting, at_most: tuple[int, int], one: Occurrence) -> bool:
    count, per_ms = at_most
    end = end_of(one)
    while waiting.reported and end - waiting.reported[0] >= per_ms:
        waiting.reported.popleft()
    if len(waiting.reported) >= count:
        waiting.suppressed += 1
        return False
    waiting.reported.append(end)
    return True


def due(waiting: Waiting, manner: Manner, watermark: int) -> int | None:
    """The next watermark at which one may have its turn, if all before it are here."""
    found, selection = waiting.found, manner.selection
    if not (found or waiting.groups.count):
        return None
    if manner.report == "collect":
        in_order = manner.at_most is not None
        known = times_of(
            waiting.groups, found, selection, manner.completion, watermark, in_order=in_order
        )
        return next_of(known, watermark)
    if selection is not None:
        turns = found if manner.as_decided else found[:1]  # the others are in order, and take turns
        times = [selection.closes_at(each) for each in turns]
    else:
        times = [end_of(one) for one in found]
    return next_of(times, watermark)


def hold(waiting: Waiting) -> int:
    """Nothing that is reported later ends at or before this."""
    ends = map(end_of, waiting.found)
    return min([*ends, *(group.end for group in waiting.groups)], default=WATERMARK_END + 1) - 1


def eldest_of(waiting: Waiting) -> int:
    """When the eldest of what waits begins."""
    starts = map(start_of, waiting.found)
    return min([*starts, *(group.start for group in waiting.groups)], default=WATERMARK_END)
