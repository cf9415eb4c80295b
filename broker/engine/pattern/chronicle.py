"""`chronicle`: each completing occurrence with the oldest candidate, both then spent.

Owns the candidates and what is spent. Must not know how a pair is tested. Invariant: an event is in
at most one occurrence that the operator passes on (LANGUAGE: contexts).
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.occurrence import Occurrence, events_of, flat, identity
from broker.engine.pattern.base import Inbox, Over, Site, Stage, end_of
from broker.engine.pattern.joint import Further, JointPlan
from broker.engine.pattern.sides import in_order

LEFT, RIGHT = 0, 1


class ChronicleStage(Over):
    """One operator under `chronicle`; see the module."""

    __slots__ = ("_before", "_chosen", "_further", "_items", "_plan", "_spent")

    def __init__(self, plan: JointPlan, site: Site, left: Stage, right: Stage) -> None:
        super().__init__(site, (Inbox(left, site.budget), Inbox(right, site.budget)), plan.span)
        self._plan = plan
        self._items: tuple[list[Occurrence], list[Occurrence]] = ([], [])
        self._spent: dict[Any, Any] = {}
        self._further = Further(plan, site)
        self._chosen: list[Occurrence] | None = None
        self._before: list[Occurrence] = []
        if site.memory is not None:
            before, self._chosen = site.memory.enter()
            self._before = site.memory.still(before)
            for one in before:
                self._spend(one)

    def advance(self, watermark: int) -> list[Occurrence]:
        """See base.Stage."""
        self.watermark = watermark
        left, right = self.inboxes
        limit = min(left.fill(watermark), right.fill(watermark))
        made, self._before = self._before, []
        taken = (left.take(limit), right.take(limit))
        for side, item in in_order(taken, -1, self.site.budget):
            if side == RIGHT:
                self._further.arrived([item])
            self._take(side, item, made)
        self._expire(limit)
        return made

    def _take(self, side: int, item: Occurrence, made: list[Occurrence]) -> None:
        completes = side == RIGHT or not self._plan.follows_only
        if self._is_spent(item):
            return
        if completes:
            others = self._items[1 - side]
            budget = self.site.budget
            for at, other in enumerate(others):
                budget.spend(2)
                pair = (other, item) if side == RIGHT else (item, other)
                if self._plan.test(*pair, self.site.group, self._further):
                    whole = self._plan.pair(*pair)
                    if self._is_past(whole):
                        continue
                    del others[at]
                    made.append(whole)
                    self._spend(whole)
                    if self._chosen is not None:
                        self._chosen.append(whole)
                    return
        if side == LEFT or not self._plan.follows_only:
            self._items[side].append(item)

    def _is_past(self, whole: Occurrence) -> bool:
        memory = self.site.memory
        return memory is not None and memory.is_past(whole)

    def _is_spent(self, item: Occurrence) -> bool:
        spent = self._spent
        if not spent:
            return False
        if item.__class__ is not tuple:
            return id(item) in spent
        return any(identity(member) in spent for member in flat(item[2:]))

    def _spend(self, occurrence: Occurrence) -> None:
        fresh = {identity(member): member for member in flat(events_of(occurrence))}
        self._spent.update(fresh)
        for side, items in enumerate(self._items):
            # A single event is bound but once, unless both sides are of one type.
            if items and (self._plan.composite[side] or self._plan.shared):
                items[:] = [item for item in items if not self._is_spent(item)]

    def _expire(self, limit: int) -> None:
        for side, items in enumerate(self._items):
            if not items:
                continue
            oldest = self._plan.kept_from(limit, side, self.site, self.inboxes[1 - side])
            if oldest is None:
                continue
            count = 0
            while count < len(items) and end_of(items[count]) < oldest:
                count += 1
            del items[:count]
        if self._spent:
            self._expire_spent(limit)
        if self._further.asked:
            oldest = min([end_of(items[0]) for items in self._items if items], default=limit)
            self._further.expire(oldest, limit - self._plan.slack_ms)

    def _expire_spent(self, limit: int) -> None:
        """What no occurrence to come can bind is no longer remembered."""
        oldest = min([inbox.begins() for inbox in self.inboxes])
        old_ms = self._plan.old_ms(self.site)
        if old_ms is not None:
            oldest = max(oldest, limit + 1 - old_ms)
        gone = [key for key, event in self._spent.items() if event.end < oldest]
        for key in gone:
            del self._spent[key]

    def kept(self) -> list[list[Occurrence]]:
        """See base.Over."""
        return [self._items[LEFT], self._items[RIGHT], self._further.rights]

    def bound(self) -> list[list[Occurrence]]:
        """See base.Over."""
        return self.kept()[:2]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """See base.Over."""
        self._items = (kept[0], kept[1])
        self._further.keep(kept[2])

    def facts(self) -> list[Any]:
        """See base.Over."""
        return [list(self._spent.values())]

    def know(self, facts: list[Any]) -> None:
        """See base.Over."""
        self._spent = {identity(member): member for member in facts[0]}
