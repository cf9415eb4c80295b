"""Chains with lists: the other elements are found first, then each list is filled.

Owns the chains whose lists are not complete and the candidates of the lists. Must not know how a
candidate is tested. Invariant: a list holds every candidate that fits its place singly (LANGUAGE:
lists), in order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, start_of
from broker.engine.pattern.operators.repeats import Passes
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage, least, next_of, weakest_end
from broker.engine.pattern.stage.store import Store
from broker.engine.pattern.times.timing import Span
from broker.engine.pattern.uncertainty.verdicts import Doubt
from broker.engine.pattern.uncertainty.whole import place_end, place_start
from broker.engine.runtime.budget import PLACE_BYTES, Budget

# Measured against a pair of a join, which is the unit: a call of generated code and a slot in a
# list.
ASKED = 8  # candidates that a member costs of which it is asked whether it fits
SLICED = 16  # members that cost as much as one that is asked, where nothing is asked of them
Places = tuple[int, int]  # low..high-1, counted from the first place of the chain


@dataclass(frozen=True, slots=True)
class ListPlan:
    """One list: places low..high-1 of the chain, counted from its first place.

    `fits(o, m, g)`: whether the candidate m fits into the list for the chain's occurrence o.
    `ends`: upper bounds of the ends (or, `starts`, of the starts) that members can have.
    `after` and `before`: the elements between which members lie. `plain`: nothing else is asked of
    a member, which is one event.
    """

    low: int
    high: int
    optional: bool
    fits: Callable[..., bool]
    ends: tuple[Callable[[Occurrence], int], ...]
    starts: tuple[Callable[[Occurrence], int], ...]
    after: Places | None
    before: Places | None
    # One place, so a member is an event and no tuple of them.
    single: bool
    plain: bool
    # Found by the analysis of time from the bounds between the list and the chain's first element.
    keep_ms: int | None  # how long before the chain's start a candidate may end; None: any time

    @property
    def trailing(self) -> bool:
        """Tell whether nothing follows."""
        return self.before is None


@dataclass(frozen=True, slots=True)
class GatheredPlan:
    """A chain with lists."""

    lists: tuple[ListPlan, ...]
    passes: Passes
    span: Span | None
    doubt: Doubt | None = None

    @property
    def slack_ms(self) -> int:
        """By how much what follows may nominally come before."""
        # Nominal order decides which list a member is in; the slack only says how long to wait for
        # it.
        return 0 if self.doubt is None else self.doubt.slack_ms()


class Candidates(Store):
    """Keep what may be in a list, in order; `lasting`: how many of them are not readings."""

    __slots__ = ("lasting",)

    def __init__(self, items: list[Occurrence] | None = None) -> None:
        super().__init__()
        # Readings have start = end, so a slice by ends is a slice by starts as well. One event that
        # lasts takes that away, so they are counted rather than looked for.
        self.lasting = 0
        self.take(items or [])

    def take(self, items: list[Occurrence]) -> None:
        """More of them, none of which comes before one that is here."""
        self.items += items
        ends = list(map(end_of, items))
        self.ends += ends
        self.lasting += sum([start_of(m) != end for m, end in zip(items, ends, strict=True)])

    def drop(self, before: int) -> None:
        """Forget what ends before the time."""
        self.drop_first(bisect_left(self.ends, before))

    def drop_first(self, count: int) -> None:
        """Forget so many of the oldest."""
        # Only where any lasts at all: most lists are of readings, and then nothing is looked
        # through.
        if count and self.lasting:
            self.lasting -= sum([start_of(one) != end_of(one) for one in self.items[:count]])
        self.drop_oldest(count)

    def fitting(
        self, plan: ListPlan, one: Occurrence, group: tuple[object, ...], budget: Budget
    ) -> list[Occurrence]:
        """Those that are in the list for a chain's occurrence, in order."""
        ends, items, fits = self.ends, self.items, plan.fits
        # A bisection on both sides first: of a day's readings a list between two events takes a
        # few.
        low, high = 0, len(ends)
        after = before = None
        if plan.after is not None:
            after = place_end(one, *plan.after)
            low = bisect_left(ends, after)
        if plan.before is not None:
            before = place_start(one, *plan.before)
            high = bisect_right(ends, before)
        # A trailing list ends with the first of its upper bounds.
        elif plan.ends:
            high = bisect_right(ends, min([end(one) for end in plan.ends]))
        members = max(0, high - low)
        # The general way asks each. The way below slices, where order alone decides: it gives the
        # same list, as what touches a neighbour is still asked.
        if after is None or not plan.plain or self.lasting:
            budget.spend(ASKED * members, PLACE_BYTES * members)
            return [m for m in items[low:high] if fits(one, m, group)]
        # Readings strictly between the two, or after the one and before all that bounds a list at
        # the end, are members; whether those that touch are, is asked.
        budget.spend(members // SLICED, PLACE_BYTES * members)
        # Those at the very instant of a neighbour touch it: `then` has a rule of its own for them.
        inner = bisect_right(ends, after, low)
        outer = high if before is None else max(inner, bisect_left(ends, before, low))
        return [
            *[m for m in items[low : min(inner, high)] if fits(one, m, group)],
            *items[inner:outer],
            *[m for m in items[outer:high] if fits(one, m, group)],
        ]


def gather(
    plan: GatheredPlan,
    lists: Sequence[Candidates],
    chain: Occurrence,
    group: tuple[Any, ...],
    budget: Budget,
) -> Occurrence | None:
    """Return the chain's match with its lists filled; None if one must not be empty and is."""
    members = list(events_of(chain))
    end, start = end_of(chain), start_of(chain)
    parts = [chain]
    for wanted, candidates in zip(plan.lists, lists, strict=True):
        fitting = candidates.fitting(wanted, chain, group, budget)
        if not fitting:
            if not wanted.optional:
                return None
            members[wanted.low : wanted.high] = [()] * (wanted.high - wanted.low)
            continue
        # Certain matches need no list of their parts, which is most of them.
        if plan.doubt is not None:
            parts += fitting
        if wanted.single:
            members[wanted.low] = tuple(fitting)
        else:
            columns = zip(*map(events_of, fitting), strict=True)
            members[wanted.low : wanted.high] = [tuple(flat(column)) for column in columns]
        end = max(end, end_of(fitting[-1]))
        # In order of ends the first reading also begins first; with events that last any may.
        few = fitting if candidates.lasting else fitting[:1]
        start = min(start, *map(start_of, few))
    whole_end = int(end) if plan.doubt is None else weakest_end(parts, end)
    return plan.passes((whole_end, start, *members), group)


class GatheredStage(Over):
    """Find the other elements of a chain with lists first, then fill each list."""

    __slots__ = (
        "_candidates", "_due", "_first_start", "_fixed", "_open", "_plan", "_ready_at",
    )  # fmt: skip

    def __init__(self, plan: GatheredPlan, site: Site, base: Stage, lists: list[Stage]) -> None:
        super().__init__(
            site, tuple([Inbox(stage, site.budget) for stage in (base, *lists)]), plan.span
        )
        self._plan = plan
        # One store for each list, though two lists may be of one type: their bounds, and so what
        # may be forgotten, differ.
        self._candidates = [Candidates() for _ in lists]
        # By starts it depends on what is beneath when a list is complete, which is asked each time.
        self._fixed = not any(each.starts for each in plan.lists)
        self._open: list[Occurrence] = []
        self._due: int | None = None
        self._leave_open([], anew=True)

    def _leave_open(self, still: list[Occurrence], *, anew: bool) -> None:
        """Leave these open: `anew` in place of the others, of which else nothing is asked again."""
        # Three answers that are asked for with every step, and change only when the open ones do.
        if anew:
            self._open, self._due = [], None
            self._first_start = self._ready_at = WATERMARK_END
        self._open += still
        self._first_start = min([self._first_start, *map(start_of, still)])
        self._ready_at = min([self._ready_at, *map(self._may_be_ready, still)])
        if not self._fixed or (self._due is not None and self._due <= self.watermark):
            self._due = self._due_of(self._open, None)
        else:
            self._due = self._due_of(still, self._due)

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the chains whose lists are complete by now, filled."""
        self.watermark = watermark
        base, *lists = self.inboxes
        base.fill(watermark)
        for inbox, candidates in zip(lists, self._candidates, strict=True):
            taken = inbox.take(inbox.fill(watermark))
            if taken:
                candidates.take(taken)
        new = base.take(WATERMARK_END)
        made: list[Occurrence] = []
        # Most steps complete nothing: the earliest time at which one may be complete spares the
        # look.
        is_ready = bool(self._open) and watermark >= self._ready_at
        if new or is_ready:
            still = []
            is_ready = is_ready or not self._fixed
            asked = self._open + new if is_ready else new
            self.site.budget.spend(len(asked))
            for one in asked:
                if all(self._complete(one, at) for at in range(len(lists))):
                    whole = gather(
                        self._plan, self._candidates, one, self.site.group, self.site.budget
                    )
                    # A `+` list that is empty: no occurrence, and no older partner is tried
                    # (LANGUAGE 3, Lists).
                    if whole is not None:
                        made.append(whole)
                else:
                    still.append(one)
            if still or is_ready:
                self._leave_open(still, anew=is_ready)
        self._expire()
        return made

    def _may_be_ready(self, one: Occurrence) -> int:
        """Before the watermark is there, not every list is complete."""
        # A lower bound only: a list may wait longer for what lasts, never shorter.
        needed = WATERMARK_NONE
        for plan in self._plan.lists:
            if not plan.trailing:
                needed = max(needed, end_of(one))
                continue
            edges = [edge(one) for edge in (*plan.ends, *plan.starts)]
            needed = max(needed, min(edges, default=WATERMARK_END))
        return needed

    def _complete(self, one: Occurrence, at: int) -> bool:
        """Tell whether every member of the list is here."""
        plan, inbox = self._plan.lists[at], self.inboxes[at + 1]
        if inbox.limit >= WATERMARK_END:
            return True
        if not plan.trailing:
            # A member lies before the next element, so it has ended by the end of the chain.
            return inbox.limit >= end_of(one) + self._plan.slack_ms
        if any(inbox.limit >= end(one) for end in plan.ends):
            return True
        # By starts where only those are bounded: a member that lasts may end long after the bound.
        return bool(plan.starts) and any(inbox.floor() > start(one) for start in plan.starts)

    def _expire(self) -> None:
        oldest: int | None = None
        for plan, candidates in zip(self._plan.lists, self._candidates, strict=True):
            if plan.keep_ms is None or not candidates.ends:
                continue
            # Worked out once, and only where any list has a limit at all.
            if oldest is None:
                oldest = min(self.inboxes[0].begins(), self._first_start) - self._plan.slack_ms
            if candidates.ends[0] < oldest - plan.keep_ms:
                candidates.drop(oldest - plan.keep_ms)

    def hold(self) -> int:
        """Return the time after which later occurrences end, by the chains that are open."""
        return min([self.inboxes[0].stage.hold(), *[end_of(one) - 1 for one in self._open]])

    def due(self) -> int | None:
        """Return the next watermark that may complete a list without events; None if none."""
        if self._due is not None and self._due <= self.watermark:
            self._due = self._due_of(self._open, None)
        beneath = super().due()
        return self._due if beneath is None else least([beneath, self._due])

    def _due_of(self, several: list[Occurrence], other: int | None) -> int | None:
        """Return the next watermark that completes one of several, or the other."""
        times: list[int] = [] if other is None else [other]
        for one in several:
            for plan, inbox in zip(self._plan.lists, self.inboxes[1:], strict=True):
                if not plan.trailing:
                    times.append(end_of(one) + self._plan.slack_ms)
                    continue
                times += [end(one) for end in plan.ends]
                times += [inbox.clear_at(WATERMARK_NONE, start(one)) for start in plan.starts]
        return next_of(times, self.watermark)

    def kept(self) -> list[list[Occurrence]]:
        """Return the open chains and the candidates of each list."""
        return [self._open, *[candidates.items for candidates in self._candidates]]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these lists in place of those of `kept`."""
        still, *candidates = kept
        self._candidates = [Candidates(items) for items in candidates]
        self._leave_open(still, anew=True)


class PaddedStage(Over):
    """Puts empty places before and after."""

    __slots__ = ("_after", "_before")

    def __init__(self, before: int, after: int, site: Site, beneath: Stage) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), None)
        # Made once: the same two tuples are spliced into every occurrence.
        self._before = (None,) * before
        self._after = (None,) * after

    def advance(self, watermark: int) -> list[Occurrence]:
        """Pass on what comes, with the empty places."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        return [
            (
                # The mark of a maybe stands on the end, and would be lost if the end were read as a
                # number.
                weakest_end([item], end_of(item)),
                start_of(item),
                *self._before,
                *events_of(item),
                *self._after,
            )
            for item in inbox.take(inbox.fill(watermark))
        ]
