"""`chronicle`: each completing occurrence with the oldest candidate, both then spent.

Owns the candidates and what is spent. Must not know how a pair is tested. Invariant: an event is in
at most one occurrence that the operator passes on (LANGUAGE: contexts).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, identity
from broker.engine.pattern.operators.joint import Further, JointPlan
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage
from broker.engine.pattern.stage.sides import in_order

LEFT, RIGHT = 0, 1


class OldestPairs:
    """The candidates of one operator in one partition, and what is spent."""

    __slots__ = (
        "_asks",
        "_follows_only",
        "_group",
        "_plan",
        "_remembers",
        "_site",
        "further",
        "items",
        "spent",
    )

    def __init__(self, plan: JointPlan, group: tuple[Any, ...], site: Site, *, alone: bool) -> None:
        """`alone`: an event that is bound leaves the only list that it can be in."""
        self._plan = plan
        self._group = group
        self._site = site
        self._remembers = not alone
        self._follows_only = plan.follows_only
        self.items: tuple[list[Occurrence], list[Occurrence]] = ([], [])
        self.spent: dict[Any, Any] = {}
        self.further = Further(plan.joint, plan.follows, site)
        self._asks = self.further.asked

    def take(self, side: int, item: Occurrence) -> Occurrence | None:
        """Take the next in order; return what it completes, which is spent."""
        plan, budget = self._plan, self._site.budget
        if self._asks and side == RIGHT:
            self.further.arrived([item])
        if self.spent and self._is_spent(item):
            return None
        if side == RIGHT or not self._follows_only:
            # The oldest that fits: candidates stand in order, and one that fails stays for others.
            others = self.items[1 - side]
            for at, other in enumerate(others):
                budget.spend(2)
                pair = (other, item) if side == RIGHT else (item, other)
                if plan.test(*pair, self._group, self.further):
                    whole = plan.pair(*pair)
                    if self._is_past(whole):
                        continue
                    del others[at]
                    if self._remembers:
                        self.spend(whole)
                    return whole
        if side == LEFT or not self._follows_only:
            self.items[side].append(item)
        return None

    def _is_past(self, whole: Occurrence) -> bool:
        memory = self._site.memory
        return memory is not None and memory.is_past(whole)

    def _is_spent(self, item: Occurrence) -> bool:
        if item.__class__ is not tuple:
            return id(item) in self.spent
        return any(identity(member) in self.spent for member in flat(item[2:]))

    def spend(self, occurrence: Occurrence) -> None:
        """Let nothing that the occurrence binds be in another."""
        fresh = {identity(member): member for member in flat(events_of(occurrence))}
        self.spent.update(fresh)
        for side, items in enumerate(self.items):
            # A single event is bound but once, unless both sides are of one type.
            if items and (self._plan.composite[side] or self._plan.shared):
                items[:] = [item for item in items if not self._is_spent(item)]

    def expire(self, kept_from: Sequence[int | None], begins: int, limit: int) -> None:
        """Forget what ends before the times of both sides, and what was spent by then.

        Nothing to come begins before `begins`, or ends by the limit.
        """
        for items, oldest in zip(self.items, kept_from, strict=True):
            # Most steps find nothing to drop, and the eldest tells it without a search.
            if oldest is not None and items and end_of(items[0]) < oldest:
                del items[: bisect_left(items, oldest, key=end_of)]
        if self.spent:
            # What no occurrence to come can bind is no longer remembered.
            old_ms = self._plan.old_ms(self._site)
            oldest = begins if old_ms is None else max(begins, limit + 1 - old_ms)
            for key in [key for key, event in self.spent.items() if event.end < oldest]:
                del self.spent[key]
        if self._asks:
            oldest = min([end_of(items[0]) for items in self.items if items], default=limit)
            self.further.expire(oldest, limit - self._plan.slack_ms)

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [*self.items, self.further.items]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these in place of its own."""
        self.items = (kept[0], kept[1])
        self.further.hold(kept[2])

    def facts(self) -> list[Any]:
        """Return what else is known, for snapshots."""
        return [list(self.spent.values())]

    def know(self, facts: list[Any]) -> None:
        """Take that up again."""
        self.spent = {identity(member): member for member in facts[0]}


class ChronicleStage(Over):
    """One operator under `chronicle`; see the module."""

    __slots__ = ("_before", "_chosen", "_pairs", "_plan")

    def __init__(self, plan: JointPlan, site: Site, left: Stage, right: Stage) -> None:
        super().__init__(site, (Inbox(left, site.budget), Inbox(right, site.budget)), plan.span)
        self._plan = plan
        self._pairs = OldestPairs(plan, site.group, site, alone=False)
        self._chosen: list[Occurrence] | None = None
        self._before: list[Occurrence] = []
        if site.memory is not None:
            before, self._chosen = site.memory.enter()
            self._before = site.memory.still(before)
            for one in before:
                self._pairs.spend(one)

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the pairs that are decided by the watermark and were not passed on before."""
        self.watermark = watermark
        left, right = self.inboxes
        limit = min(left.fill(watermark), right.fill(watermark))
        made, self._before = self._before, []
        taken = (left.take(limit), right.take(limit))
        for side, item in in_order(taken, -1, self.site.budget):
            whole = self._pairs.take(side, item)
            if whole is not None:
                made.append(whole)
                if self._chosen is not None:
                    self._chosen.append(whole)
        kept_from = [
            self._plan.kept_from(limit, side, self.site, self.inboxes[1 - side])
            if self._pairs.items[side]
            else None
            for side in (LEFT, RIGHT)
        ]
        begins = min([inbox.begins() for inbox in self.inboxes]) if self._pairs.spent else limit
        self._pairs.expire(kept_from, begins, limit)
        return made

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of occurrences that its pairing holds, oldest first."""
        return self._pairs.kept()

    def bound(self) -> list[list[Occurrence]]:
        """Return the lists of both sides, of which something to come may be made."""
        return list(self._pairs.items)

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these lists in place of those of `kept`."""
        self._pairs.keep(kept)

    def facts(self) -> list[Any]:
        """Return what else its pairing knows."""
        return self._pairs.facts()

    def know(self, facts: list[Any]) -> None:
        """Take up such facts again."""
        self._pairs.know(facts)
