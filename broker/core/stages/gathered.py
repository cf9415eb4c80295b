"""Chains with lists: the other elements are found first, then each list is filled.

Owns the chains whose lists are not complete and the candidates of the lists. Must not know how a
candidate is tested. Invariant: a list holds every candidate that fits its place singly (LANGUAGE:
lists), in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker.core.agent import WATERMARK_END
from broker.core.occurrence import Occurrence, events_of, flat, sort_in_order
from broker.core.stages.base import Inbox, Over, Site, Stage, end_of, least, start_of, weakest_end
from broker.core.stages.repeats import Passes
from broker.core.verdicts import Doubt


@dataclass(frozen=True, slots=True)
class ListPlan:
    """One list: places low..high-1 of the chain, counted from its first place.

    `fits(o, m, g)`: whether the candidate m fits into the list for the chain's occurrence o.
    `ends`: upper bounds of the ends (or, `starts`, of the starts) that members can have.
    """

    low: int
    high: int
    optional: bool
    fits: Callable[..., bool]
    ends: tuple[Callable[[Occurrence], int], ...]
    starts: tuple[Callable[[Occurrence], int], ...]
    trailing: bool
    keep_ms: int | None  # how long before the chain's start a candidate may end; None: any time


@dataclass(frozen=True, slots=True)
class GatheredPlan:
    """A chain with lists."""

    lists: tuple[ListPlan, ...]
    passes: Passes
    span_ms: int | None
    doubt: Doubt | None = None

    @property
    def slack_ms(self) -> int:
        """By how much what follows may nominally come before."""
        return 0 if self.doubt is None else self.doubt.slack_ms()


class GatheredStage(Over):
    """See the module."""

    __slots__ = ("_candidates", "_open", "_plan")

    def __init__(self, plan: GatheredPlan, site: Site, base: Stage, lists: list[Stage]) -> None:
        super().__init__(site, (Inbox(base), *map(Inbox, lists)), plan.span_ms)
        self._plan = plan
        self._open: list[Occurrence] = []
        self._candidates: list[list[Occurrence]] = [[] for _ in lists]

    def advance(self, watermark: int) -> list[Occurrence]:
        """See base.Stage."""
        self.watermark = watermark
        base, *lists = self.inboxes
        base.fill(watermark)
        for inbox, candidates in zip(lists, self._candidates, strict=True):
            candidates.extend(inbox.take(inbox.fill(watermark)))
        self._open += base.take(WATERMARK_END)
        made, still = [], []
        for one in self._open:
            if all(self._complete(one, at) for at in range(len(lists))):
                whole = self._gather(one)
                if whole is not None:
                    made.append(whole)
            else:
                still.append(one)
        self._open = still
        self._expire()
        return made

    def _complete(self, one: Occurrence, at: int) -> bool:
        """Whether every member of the list is here."""
        plan, inbox = self._plan.lists[at], self.inboxes[at + 1]
        if inbox.limit >= WATERMARK_END:
            return True
        if not plan.trailing:
            return inbox.limit >= end_of(one) + self._plan.slack_ms
        if any(inbox.limit >= end(one) for end in plan.ends):
            return True
        return bool(plan.starts) and any(inbox.floor() > start(one) for start in plan.starts)

    def _gather(self, one: Occurrence) -> Occurrence | None:
        members = list(events_of(one))
        end, start = end_of(one), start_of(one)
        group = self.site.group
        parts = [one]
        for plan, candidates in zip(self._plan.lists, self._candidates, strict=True):
            fitting = [m for m in candidates if plan.fits(one, m, group)]
            if not fitting:
                if not plan.optional:
                    return None
                members[plan.low : plan.high] = [()] * (plan.high - plan.low)
                continue
            sort_in_order(fitting)
            parts += fitting
            columns = zip(*map(events_of, fitting), strict=True)
            members[plan.low : plan.high] = [tuple(flat(column)) for column in columns]
            end = max([end, *map(end_of, fitting)])
            start = min([start, *map(start_of, fitting)])
        return self._plan.passes((weakest_end(parts, end), start, *members), group)

    def _expire(self) -> None:
        oldest = min([self.inboxes[0].begins(), *map(start_of, self._open)]) - self._plan.slack_ms
        for at, plan in enumerate(self._plan.lists):
            candidates = self._candidates[at]
            if plan.keep_ms is None or not candidates:
                continue
            limit = oldest - plan.keep_ms
            if end_of(candidates[0]) < limit:
                self._candidates[at] = [m for m in candidates if end_of(m) >= limit]

    def hold(self) -> int:
        """See base.Stage."""
        return min([self.inboxes[0].stage.hold(), *(end_of(one) - 1 for one in self._open)])

    def due(self) -> int | None:
        """See base.Stage."""
        times = [super().due()]
        for one in self._open:
            for plan, inbox in zip(self._plan.lists, self.inboxes[1:], strict=True):
                if not plan.trailing:
                    times.append(end_of(one))
                times += [end(one) for end in plan.ends if plan.trailing]
                times += [inbox.stage.floor_after(start(one)) for start in plan.starts]
        return least(times)

    def kept(self) -> list[list[Occurrence]]:
        """See base.Over."""
        return [self._open, *self._candidates]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """See base.Over."""
        self._open, *self._candidates = kept
