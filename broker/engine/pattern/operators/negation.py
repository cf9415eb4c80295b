"""`without`: what no other occurrence falls into.

Owns the occurrences that are not decided yet and what may yet fall into one. Must not know how a
pair is tested. The intervals are those of LANGUAGE: within p itself, or after its start for T.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.occurrence import (
    Occurrence,
    end_of,
    events_of,
    flat,
    start_of,
    strangers,
    without,
)
from broker.engine.pattern.layout.operands import Operand
from broker.engine.pattern.stage.asked import Ahead
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage, least, next_of
from broker.engine.pattern.stage.leaf import LeafStage
from broker.engine.pattern.times.timing import Span
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, NO, YES, Maybe
from broker.engine.pattern.uncertainty.verdicts import (
    Doubt,
    certainty_at,
    certainty_of,
    inside,
    spans_of,
)
from broker.engine.runtime.budget import Budget

PUTTING = 2  # candidates that it costs to keep another,
PASSED = 4  # and so many of those that are kept cost one more
FALLING = 4  # candidates that it costs to ask whether one falls into another
DECIDING = 12  # and to look, with each step, whether an open one is decided


@dataclass(frozen=True, slots=True)
class NegationPlan:
    """One `without`; `counts(p, q, g)` says whether a q is one that counts."""

    # None: within p itself (`without Q`); else the time after p's start (`without[T] Q`).
    window_ms: int | None
    counts: Callable[..., bool] | None
    silent_places: int
    span: Span | None
    doubt: Doubt | None = None
    left: Operand | None = None
    # False where p and Q have no type in common: then the identity of events need not be compared,
    # which halves the cost of a pair.
    shared: bool = True  # an event may be in p and be a q
    # A `without` whose conditions name places outside of p is judged over the whole occurrence that
    # binds them; p is then these places of it.
    part: tuple[int, int] | None = None  # the places of p in the occurrence, if these are not all

    def of(self, occurrence: Occurrence) -> Occurrence:
        """The p that must be without q."""
        if self.part is None:
            return occurrence
        low, high = self.part
        members = events_of(occurrence)[low:high]
        # An optional list may have bound nothing; then there is no span of p, and the whole stands
        # for it.
        bound = flat(members)
        if not bound:
            return occurrence
        end = max([member.end for member in bound])
        return (end, min([member.start for member in bound]), *members)

    def is_maybe(self, p: Occurrence) -> bool:
        """Tell whether p itself is not certain."""
        if self.doubt is None or self.left is None:
            return False
        return certainty_at(self.left, p, self.doubt) == MAYBE

    @property
    def slack_ms(self) -> int:
        """By how much what falls inside may nominally lie outside."""
        return 0 if self.doubt is None else self.doubt.slack_ms(self.window_ms or 0)

    def whole(self, p: Occurrence, end: int) -> Occurrence:
        """Return the p, ending so, with the places of Q, which bind nothing."""
        # They stay in the layout, so that positions mean the same for every operator.
        return (end, start_of(p), *events_of(p), *(None,) * self.silent_places)


class DeniedStore:
    """The q of one `without` in one partition, and whether one of them falls into a p."""

    __slots__ = ("_budget", "_group", "_plan", "_starts", "items")

    def __init__(self, plan: NegationPlan, group: tuple[Any, ...], budget: Budget) -> None:
        self._plan = plan
        self._group = group
        self._budget = budget
        self.items: list[Occurrence] = []  # by their beginning
        self._starts: list[int] = []  # theirs

    def hold(self, items: list[Occurrence]) -> None:
        """Hold these in place of its own."""
        # The order is this class's own concern, so that a snapshot is not trusted with it.
        self.items = sorted(items, key=start_of)
        self._starts = list(map(start_of, self.items))

    def put(self, more: list[Occurrence]) -> None:
        """Keep more of them, in their places by when they begin."""
        # Insertion shifts what lies behind, a quarter of a candidate for each: with 100,000 kept q
        # an insertion costs as much as 25,000 tests.
        self._budget.spend(PUTTING * len(more) + len(self.items) // PASSED)
        # Sorting a run that is nearly in order costs about one comparison an element, so one sort
        # is cheaper than a bisection and a shift for each of many.
        if len(more) > 1:
            self.hold(self.items + more)
            return
        for q in more:
            at = bisect_right(self._starts, start_of(q))
            self._starts.insert(at, start_of(q))
            self.items.insert(at, q)

    def sift(self, lefts: list[Occurrence], rights: list[Occurrence]) -> list[Occurrence]:
        """Return of new p, all of whose q have come with the rights, those without any."""
        if rights:
            self.put(list(rights))
        whole = self._plan.whole
        near, verdict = self.near, self.verdict
        return [whole(p, end_of(p)) for p in lefts if not ((qs := near(p)) and verdict(p, qs))]

    def expire(self, oldest: int) -> None:
        """Forget what begins before every p of those held and of those to come."""
        if self._starts and self._starts[0] < oldest:
            dead = bisect_left(self._starts, oldest)
            del self._starts[:dead], self.items[:dead]

    def near(self, occurrence: Occurrence) -> list[Occurrence]:
        """Return those whose nominal beginning may do."""
        plan = self._plan
        p = plan.of(occurrence)
        window_ms = plan.window_ms
        # Nothing that begins later can lie within, whatever its length: so the beginnings are the
        # key to sort by, and the ends are tested one by one.
        last = end_of(p) if window_ms is None else start_of(p) + window_ms
        low = bisect_left(self._starts, start_of(p) - plan.slack_ms)
        return self.items[low : bisect_right(self._starts, last + plan.slack_ms)]

    def verdict(self, p: Occurrence, others: list[Occurrence]) -> int:
        """Return how surely one of the others falls into p."""
        # A pair with a condition, or with identities to compare, costs about twice the plain test.
        plan = self._plan
        falling = FALLING * (2 if plan.shared or plan.counts is not None else 1)
        surest = NO
        for q in others:
            self._budget.spend(falling)
            verdict = self._falls_in(p, q)
            # One certain q is enough, and the occurrence is gone for good.
            if verdict == YES:
                return YES
            surest = max(surest, verdict)
        return surest

    def _falls_in(self, occurrence: Occurrence, q: Occurrence) -> int:
        plan = self._plan
        p = plan.of(occurrence)
        start = start_of(p)
        # The three-valued form of LANGUAGE 3, "Uncertain time": NO if some q is certainly inside,
        # MAYBE if some q may be. A q that is a maybe itself can only make a maybe.
        if plan.doubt is not None:
            verdict = inside(spans_of(p), spans_of(q), plan.window_ms, plan.doubt)
            counts = verdict and self._counts(occurrence, p, q)
            return min(verdict, certainty_of(q)) if counts else NO
        if plan.window_ms is None:
            # `without Q` includes both ends of p (LANGUAGE 3).
            falls = start <= start_of(q) and end_of(q) <= end_of(p)
        else:
            # `without[T] Q` leaves the start out, or p's own instant would break it, and includes
            # its end.
            falls = start < start_of(q) <= start + plan.window_ms
        return YES if falls and self._counts(occurrence, p, q) else NO

    def _counts(self, occurrence: Occurrence, p: Occurrence, q: Occurrence) -> bool:
        # By identity and not by id: the same id may come again with another end, as another event.
        if self._plan.shared and not strangers(p, q):
            return False
        counts = self._plan.counts
        return counts is None or counts(occurrence, q, self._group)


class NegationStage(Over):
    """Passes on each p once no q can fall into it any more."""

    __slots__ = ("_doubtful", "_open", "_others", "_plan")

    def __init__(self, plan: NegationPlan, site: Site, left: Stage, right: Stage) -> None:
        super().__init__(site, (Inbox(left, site.budget), Inbox(right, site.budget)), plan.span)
        self._plan = plan
        self._open: list[Occurrence] = []
        self._others = DeniedStore(plan, site.group, site.budget)
        # A set is safe here: it is only asked for membership and never walked.
        self._doubtful: set[int] = set()  # by identity: the open ones into which a q may fall

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the p that are decided by now: no q certainly falls where none may."""
        self.watermark = watermark
        left, right = self.inboxes
        # Both sides are filled up to this watermark before anything is decided, so that a q never
        # comes too late for its p.
        left.fill(watermark)
        limit = right.fill(watermark)
        new_open, new_others = left.take(WATERMARK_END), right.take(WATERMARK_END)
        if new_others:
            self._others.put(new_others)
            # Old p meet only new q, and new p meet all q that are near: every pair is tested once.
            self._open = [p for p in self._open if not self._broken(p, new_others)]
        self._open += [p for p in new_open if not self._broken(p, self._others.near(p))]
        made: list[Occurrence] = []
        still: list[Occurrence] = []
        # A view sorts what the right side holds once; without one each open p would look through
        # all of it: 700 open p against 700 q would be half a million looks in a step.
        view = self.inboxes[1].view() if self._open and self._plan.window_ms is not None else None
        self.site.budget.spend(DECIDING * len(self._open))
        for p in self._open:
            (made if self._decided(p, limit, view) else still).append(p)
        self._open = still
        self._expire()
        return [self._whole(p) for p in made]

    def _broken(self, p: Occurrence, others: list[Occurrence]) -> bool:
        verdict = self._others.verdict(p, others)
        if verdict == YES:
            self._doubtful.discard(id(p))
        elif verdict == MAYBE:
            # It stays possible: the result will be a maybe, unless a certain q comes.
            self._doubtful.add(id(p))
        return verdict == YES

    def _decided(self, occurrence: Occurrence, limit: int, right: Ahead | None) -> bool:
        p = self._plan.of(occurrence)
        if self._plan.window_ms is None or right is None:
            # Every q that ends by p's end has been passed on, as the right side is filled up to
            # `limit`.
            return end_of(p) + self._plan.slack_ms <= limit
        start = start_of(p)
        until = start + self._plan.window_ms + self._plan.slack_ms
        # Before that another q may begin, whatever is on the right.
        return until <= self.watermark and right.floor(start - self._plan.slack_ms) > until

    def _expire(self) -> None:
        if self._others.items:
            begins = min([self.inboxes[0].begins(), *map(start_of, self._open)])
            self._others.expire(begins - self._plan.slack_ms)

    def _whole(self, p: Occurrence) -> Occurrence:
        end: int = end_of(p)
        if self._plan.is_maybe(p) or id(p) in self._doubtful:
            end = Maybe(end)
            self._doubtful.discard(id(p))
        return self._plan.whole(p, end)

    def hold(self) -> int:
        """Return the time after which later occurrences end, by the left side and the open p."""
        # Only the left side makes occurrences, so the right side does not hold anything back by
        # itself.
        return min([self.inboxes[0].stage.hold(), *(end_of(p) - 1 for p in self._open)])

    def bound(self) -> list[list[Occurrence]]:
        """Return the open p, of which something to come is made."""
        return [self._open]

    def feeding(self) -> tuple[Inbox, ...]:
        """Return the inbox of the left side, which alone makes occurrences."""
        return self.inboxes[:1]

    def begins(self) -> int:
        """Return a time before which nothing begins that is passed on later."""
        return min([self.inboxes[0].begins(), *map(start_of, self._open)])

    def due(self) -> int | None:
        """Return the next watermark that may decide an open p without events; None if none."""
        return least([super().due(), next_of(self._times(), self.watermark)])

    def _times(self) -> Iterable[int]:
        """When those that are open are decided."""
        plan, own = self._plan, [self._plan.of(p) for p in self._open]
        slack_ms = plan.slack_ms
        if plan.window_ms is None:
            return [end_of(p) + slack_ms for p in own]
        starts: Iterable[int] = {start_of(p) for p in own}
        # Single events are clear in the order of their starts, so the first start decides the first
        # time; with composites a later start may be clear earlier, and all have to be asked.
        if isinstance(self.inboxes[1].stage, LeafStage):
            starts = [min(starts)] if starts else []  # which is the first to be decided
        right, until_ms = self.inboxes[1].view(), plan.window_ms + slack_ms
        return [right.clear_at(start - slack_ms, start + until_ms) for start in starts]

    def kept(self) -> list[list[Occurrence]]:
        """Return the open p and the q."""
        return [self._open, self._others.items]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these lists in place of those of `kept`."""
        self._open, others = kept
        self._others.hold(others)

    def facts(self) -> list[Any]:
        """Return which of the open p are doubtful, by index."""
        # Identities do not survive a restart; the index among the open ones does.
        return [at for at, p in enumerate(self._open) if id(p) in self._doubtful]

    def know(self, facts: list[Any]) -> None:
        """Take up such facts again."""
        self._doubtful = {id(self._open[at]) for at in facts}

    def forget(self, gone: set[int]) -> None:
        """Take consumed events out of the left side; what is consumed still counts on the right."""
        # LANGUAGE 2: consumed events still count for `without`, so only the left side forgets.
        self.inboxes[0].forget(gone)
        self._open = without(self._open, gone)
