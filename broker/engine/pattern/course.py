"""`first` and `latest`: one run at a time over a whole chain of like links.

Owns the run, the candidates that a later run may need, and what is spent. Must not know how a pair
is tested. Invariant: after a run is complete nothing that binds an event ending by its end is used
again; a run that can no longer be complete spends nothing, and the next start begins (LANGUAGE:
contexts; paper 000's FIRST and RECENT).

Candidates stand in order; of one event that fits two elements of a chain of `then`, the later
element comes first, so that it advances the run.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, events_of, flat
from broker.engine.pattern.base import (
    Inbox,
    Over,
    Site,
    Stage,
    end_of,
    least,
    next_of,
    start_of,
)
from broker.engine.pattern.ends import Ends, longer
from broker.engine.pattern.joint import Further, JointPlan
from broker.engine.pattern.judge import Judge
from broker.engine.pattern.operands import Joint, Leaf, composite
from broker.engine.pattern.sides import Entry, in_order
from language.relations import FOLLOWS, IN_ORDER

TRYING = 2  # candidates that it costs to look whether one is for a run,
FITTING = 8  # and besides, to ask whether it fits,
JUDGING = 2  # with as many for each element


@dataclass(slots=True)
class Run:
    """What one run has: `filled` occurrences by element, `at` how far the candidates were seen."""

    filled: dict[int, Occurrence]
    start: int  # which candidate began it
    at: int


class CourseStage(Over):
    """A chain of like links; `plans[i]` joins elements 0..i with element i + 1."""

    __slots__ = (
        "_before",
        "_chosen",
        "_elements",
        "_endless",
        "_ends",
        "_entries",
        "_further",
        "_has_composites",
        "_judge",
        "_latest",
        "_limit",
        "_longest_ms",
        "_measures",
        "_plans",
        "_run",
        "_sign",
        "_spent",
    )

    def __init__(
        self, plans: list[JointPlan], judge: Judge, site: Site, elements: list[Stage]
    ) -> None:
        inboxes = tuple([Inbox(element, site.budget) for element in elements])
        super().__init__(site, inboxes, plans[-1].span)
        self._plans = plans
        self._judge = judge
        self._latest = plans[0].joint.context.replaces
        self._sign: Literal[-1, 1] = -1 if plans[0].joint.operator in IN_ORDER else 1
        self._elements = [plans[0].joint.left, *(plan.joint.right for plan in plans)]
        self._ends = Ends(plans)
        self._endless = self._is_endless()
        self._has_composites = any(map(composite, self._elements))
        self._further = [Further(plan.joint, plan.follows, site) for plan in plans]
        self._entries: list[Entry] = []
        self._run: Run | None = None
        self._spent = -WATERMARK_END  # all that binds an event ending by then is spent
        self._limit = -WATERMARK_END
        self._longest_ms = 0  # of all candidates, where runs ask for it
        self._measures = self._latest and any(_high_ms(plan) is not None for plan in plans)
        self._chosen: list[Occurrence] | None = None
        self._before: list[Occurrence] = []
        if site.memory is not None:
            before, self._chosen = site.memory.enter()
            self._before = site.memory.still(before)
            self._spent = max(map(end_of, before), default=self._spent)

    def advance(self, watermark: int) -> list[Occurrence]:
        """See base.Stage."""
        self.watermark = watermark
        self._limit = limit = min([inbox.fill(watermark) for inbox in self.inboxes])
        taken = [inbox.take(limit) for inbox in self.inboxes]
        for further, items in zip(self._further, taken[1:], strict=True):
            further.arrived(items)
        entries = in_order(taken, self._sign, self.site.budget, self._is_spent)
        if self._measures:
            self._measure(entries)
        self._entries += entries
        made, self._before = self._before, []
        while self._go_on(made):
            pass
        self._expire()
        return made

    def _measure(self, entries: list[Entry]) -> None:
        """Know how long any candidate lasts."""
        spans = [end_of(item) - start_of(item) for _, item in entries]
        self._longest_ms = max([self._longest_ms, *spans])

    def _is_spent(self, item: Occurrence) -> bool:
        if item.__class__ is not tuple:
            spent: bool = item.end <= self._spent
            return spent
        return any(member.end <= self._spent for member in flat(events_of(item)))

    # --- runs ----------------------------------------------------------------------------

    def _go_on(self, made: list[Occurrence]) -> bool:
        """Bring the run as far as the candidates go; whether another may begin now."""
        run = self._run = self._run or self._next_run()
        if run is None:
            return False
        entries = self._entries
        while run.at < len(entries):
            element, item = entries[run.at]
            if self._latest and self._is_late(run, item) and not self._advances_later(run):
                # Where one may yet come that began in time, that has to be waited for.
                return self._drop(run) if self._is_over(run) else False
            run.at += 1
            self._try(run, element, item, run.at - 1)
            if len(run.filled) == len(self.inboxes):
                self._complete(run, made)
                return True
        if self._is_over(run):
            return self._drop(run)
        if self._endless:
            del entries[: run.at]  # when the run is complete, all of these are spent
            run.start, run.at = -1, 0
        elif run.start > 0:
            del entries[: run.start]  # under `latest`, what a later start has taken the place of
            run.start, run.at = 0, run.at - run.start
        return False

    def _drop(self, run: Run) -> bool:
        del self._entries[: run.start + 1]
        self._run = None
        return True

    def _is_late(self, run: Run, item: Occurrence) -> bool:
        """Whether the time for the next element was over, by nominal times, when this came.

        Then nothing replaces the last one any more, unless the run goes on: what began in time and
        lasts is in time, whenever it ends, and what is past by nominal times alone may be in time.
        """
        step = len(run.filled)
        high_ms = _high_ms(self._plans[step - 1])
        return high_ms is not None and end_of(item) > end_of(run.filled[step - 1]) + high_ms

    def _advances_later(self, run: Run) -> bool:
        """Whether one of the candidates that are still to be seen advances the run as it is."""
        step = len(run.filled)
        plan = self._plans[step - 1]
        start = end_of(run.filled[step - 1]) + longer(plan, _high_ms(plan) or 0)
        for element, item in islice(self._entries, run.at, None):
            if end_of(item) > start + self._longest_ms:
                return False
            in_time = element == step and start_of(item) <= start
            if in_time and self._fits(run.filled, element, item):
                return True
        return False

    def _next_run(self) -> Run | None:
        for at, (element, item) in enumerate(self._entries):
            if element == 0 or self._sign > 0:
                del self._entries[:at]
                return Run({element: item}, 0, 1)
        if self._sign < 0:
            self._entries.clear()  # nothing advances what has not begun
        return None

    def _try(self, run: Run, element: int, item: Occurrence, at: int) -> None:
        self.site.budget.spend(TRYING)
        if self._sign > 0:
            if element not in run.filled and self._fits(run.filled, element, item):
                run.filled[element] = item
            return
        step = len(run.filled)
        if element == step and self._fits(run.filled, element, item):
            run.filled[element] = item
        elif self._latest and element == step - 1:
            before = {e: one for e, one in run.filled.items() if e < element}
            if element == 0:
                run.start = at
                run.filled[0] = item
            elif self._fits(before, element, item):
                run.filled[element] = item

    def _fits(self, filled: dict[int, Occurrence], element: int, item: Occurrence) -> bool:
        """Whether the element goes with what is filled, as far as that can be judged now."""
        self.site.budget.spend(FITTING + JUDGING * len(self._plans))
        together = {**filled, element: item}
        whole = together.get(0)
        group = self.site.group
        for at, plan in enumerate(self._plans):
            other = together.get(at + 1)
            if whole is None or other is None:
                return self._judge(together, group)
            if element <= at + 1 and not plan.test(whole, other, group, self._further[at]):
                return False
            whole = plan.pair(whole, other)
            if len(together) == at + 2:
                break
        memory = self.site.memory
        complete = len(together) == len(self.inboxes)
        return not (complete and memory is not None and memory.is_past(whole))

    def _complete(self, run: Run, made: list[Occurrence]) -> None:
        whole = run.filled[0]
        for at, plan in enumerate(self._plans):
            whole = plan.pair(whole, run.filled[at + 1])
        made.append(whole)
        if self._chosen is not None:
            self._chosen.append(whole)
        self._spent = end_of(whole)
        count = bisect_right(self._entries, self._spent, key=_end_of_entry)
        del self._entries[:count]
        if self._has_composites:
            self.site.budget.spend(len(self._entries))
            self._entries = [entry for entry in self._entries if not self._is_spent(entry[1])]
        self._run = None

    # --- ends ----------------------------------------------------------------------------

    def _is_endless(self) -> bool:
        """Whether no later start can be complete where the run cannot.

        That is so in a chain of `then`, or of `and`, over different types that asks for nothing
        else.
        """
        if self._plans[0].doubt is not None:
            return False
        types = [operand.event_type for operand in self._elements if isinstance(operand, Leaf)]
        return len(set(types)) == len(self.inboxes) and all(
            _asks_nothing(plan.joint) for plan in self._plans
        )

    def _is_over(self, run: Run) -> bool:
        """Whether nothing that is still to come can advance the run."""
        if self._limit >= WATERMARK_END:
            return True
        last = self._ends.last_ms(run.filled)
        if last is not None and self._limit >= last:
            return True
        for elements, start in self._ends.starts(run.filled):
            if min([self.inboxes[one].floor() for one in elements]) > start:
                return True
        return self._is_shut(run)

    def _is_shut(self, run: Run) -> bool:
        """Whether another event came between where the next element must be `next`."""
        step = len(run.filled)
        if any(element not in run.filled for element in range(step)):
            return False  # what is there is not what the next operator joins
        if not self._plans[step - 1].joint.next:
            return False
        whole = self._filled_whole(run)
        return self._further[step - 1].shut(whole, self.inboxes[step].floor())

    def _filled_whole(self, run: Run) -> Occurrence:
        whole = run.filled[0]
        for at in range(len(run.filled) - 1):
            whole = self._plans[at].pair(whole, run.filled[at + 1])
        return whole

    def _expire(self) -> None:
        asked = [further for further in self._further if further.asked]
        if not asked:
            return
        ends = [end_of(item) for _, item in self._entries[:1]]
        if self._run is not None:
            ends += map(end_of, self._run.filled.values())
        oldest = min(ends, default=self._limit)
        for further in asked:
            further.expire(oldest, self._limit - self._plans[0].slack_ms)

    # --- as a stage ----------------------------------------------------------------------

    def hold(self) -> int:
        """See base.Stage: a run that is dropped may let the next one end earlier."""
        hold = super().hold()
        run = self._run
        if run is None:
            return hold
        if run.at < len(self._entries):  # it waits before that one
            hold = min(hold, end_of(self._entries[run.at][1]) - 1)
        starts = (
            end_of(item)
            for element, item in islice(self._entries, run.start + 1, None)
            if element == 0 or self._sign > 0
        )
        return min(hold, next(starts, WATERMARK_END + 1) - 1)

    def due(self) -> int | None:
        """See base.Stage."""
        times: list[int] = []
        run = self._run
        if run is not None and len(self._entries) > run.start + 1:
            last = self._ends.last_ms(run.filled)
            times += [] if last is None else [last]
            for elements, start in self._ends.starts(run.filled):
                wanted = [self.inboxes[one] for one in elements]
                times.append(max([one.clear_at(WATERMARK_NONE, start) for one in wanted]))
        return least([super().due(), next_of(times, self.watermark)])

    def kept(self) -> list[list[Occurrence]]:
        """See base.Over."""
        filled = [] if self._run is None else list(self._run.filled.values())
        rights = [item for further in self._further for item in further.items]
        return [[item for _, item in self._entries], filled, rights]

    def bound(self) -> list[list[Occurrence]]:
        """See base.Over."""
        return self.kept()[:2]

    def shed(self, count: int) -> int:
        """See base.Stage: the oldest candidates go, and with them the run that they are of."""
        entries = self._entries[:count]
        if entries:
            del self._entries[: len(entries)]
            self._run = None
        return len(entries)

    def forget(self, gone: set[int]) -> None:  # noqa: ARG002
        """See base.Stage."""
        raise AssertionError("consumption goes through the events again")

    def state(self) -> Any:
        """See base.Stage."""
        run = self._run
        return [
            self.watermark,
            self._limit,
            self._spent,
            [list(entry) for entry in self._entries],
            None if run is None else [[list(one) for one in run.filled.items()], run.start, run.at],
            [further.items for further in self._further],
            [inbox.state() for inbox in self.inboxes],
        ]

    def restore(self, state: Any) -> None:
        """See base.Stage."""
        self.watermark, self._limit, self._spent, entries, run, rights, inboxes = state
        self._entries = [(element, item) for element, item in entries]
        self._measure(self._entries)
        self._run = None if run is None else Run(dict(map(tuple, run[0])), run[1], run[2])
        for further, items in zip(self._further, rights, strict=True):
            further.hold(items)
        for inbox, part in zip(self.inboxes, inboxes, strict=True):
            inbox.restore(part)


def _high_ms(plan: JointPlan) -> int | None:
    """The greatest gap that a bound allows; None: any."""
    return None if plan.joint.bound is None else plan.joint.bound.high_ms


def _end_of_entry(entry: Entry) -> int:
    return end_of(entry[1])


def _asks_nothing(joint: Joint) -> bool:
    return (joint.operator in FOLLOWS or joint.operator == "and") and not (
        joint.conjuncts
        or joint.anchors
        or joint.bound
        or joint.next
        or joint.nth
        or joint.within_ms is not None
        or joint.spread_m is not None
    )
