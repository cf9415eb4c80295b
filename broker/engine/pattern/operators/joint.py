"""Operators under `unrestricted` and `recent`: compiled joins over what both sides have passed on.

Owns the two stores of an operator in one partition. Must not know how partners are found (join.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, end_of, start_of
from broker.engine.pattern.layout.operands import Joint
from broker.engine.pattern.operators.join import Join
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage
from broker.engine.pattern.stage.store import Store
from broker.engine.pattern.times.timing import Between, Span
from broker.engine.pattern.uncertainty.relations import PARTNER_SEARCHES, takes_newest_only
from broker.engine.pattern.uncertainty.verdicts import Doubt
from language.relations import FOLLOWS


@dataclass(frozen=True, slots=True)
class JointPlan:
    """One operator, compiled; see timing.py for what is kept how long."""

    joint: Joint
    join: Join
    test: Callable[..., bool]
    pair: Callable[..., Occurrence]
    follows: Callable[..., bool]
    composite: tuple[bool, bool]
    reaches_ms: tuple[tuple[int | None, int | None], tuple[int | None, int | None]]
    span: Span
    beneath: tuple[Span, ...]  # of the composite sides
    doubt: Doubt | None = None  # where times are uncertain
    at_once: bool = False  # the left one may be the later one to come
    shared: bool = False  # an event may be on both sides
    between: Between | None = None  # a list that must not be empty

    @property
    def follows_only(self) -> bool:
        """Tell whether the right one is surely the later one, also by nominal times."""
        # Reported at once, events come as they arrive, and a left one may follow its right one into
        # the partition.
        ordered = self.doubt is None and not self.at_once
        return ordered and self.joint.operator in FOLLOWS

    @property
    def chooses_either(self) -> bool:
        """Tell whether each side seeks the latest of the other, so that instants go one by one."""
        # "The latest that precedes x in order" changes within one batch: so pairs of one instant
        # are made before the next instant is looked at.
        return not self.follows_only and self.joint.context.name in PARTNER_SEARCHES

    @property
    def slack_ms(self) -> int:
        """By how much what follows may nominally come before."""
        return 0 if self.doubt is None else self.doubt.slack_ms()

    def old_ms(self, site: Site) -> int | None:
        """Return how long before an occurrence beneath ends its events may end; None: any time."""
        # One side of unknown length is enough to know nothing.
        spans = [span.most_ms(site.durations) for span in self.beneath]
        known = [span for span in spans if span is not None]
        return max(known, default=0) if len(known) == len(spans) else None

    def kept_from(self, limit: int, side: int, site: Site, partner: Inbox) -> int | None:
        """The least end that may still matter on a side; None: any.

        Partners still to come end after the limit, and begin no earlier than they say themselves.
        """
        # Two roads to the same question: how far back from a partner's end, and how far back from
        # its start. `A then[..5 s] B` gives the second, `A and B within 5 s` the first; the later
        # bound forgets more.
        end_ms, start_ms = self.reaches_ms[side]
        if side == 0 and self.between is not None:
            # `A then[..5 s] B+ then[..5 s] C` keeps an A for both gaps and for as long as a B
            # lasts.
            member_ms = site.durations.reach_ms(self.between.event_type)
            start_ms = self.between.gap_ms(member_ms)
            if self.doubt is not None:  # either gap may be missed; one of them is allowed for below
                start_ms += self.doubt.slack_ms()
        # What is to come ends after the limit, so at limit + 1 at the earliest.
        oldest = None if end_ms is None else limit + 1 - self._reach_ms(end_ms)
        if start_ms is None:
            return oldest
        from_start = partner.begins() - self._reach_ms(start_ms)
        return from_start if oldest is None or from_start > oldest else oldest

    def _reach_ms(self, limit_ms: int) -> int:
        if self.doubt is None:
            return limit_ms
        # Both ends may be off by the greatest uncertainty, and T stands for T(1 + drift).
        return limit_ms + self.doubt.reach_slack_ms(self.joint, limit_ms)

    @property
    def latest_dominates(self) -> bool:
        """Tell whether of candidates that precede all to come, only the latest can be chosen.

        That is so where all that may be asked of a pair is that it is not too far apart. Where
        times are uncertain an older one may be near enough, too, when the latest is not.
        """
        joint = self.joint
        # The latest may be too near for certain, and the one before it near enough: both are
        # needed.
        if self.doubt is not None and (joint.bound is not None or joint.within_ms is not None):
            return False
        bound_low = joint.bound is not None and joint.bound.low_ms is not None
        # Each of these may refuse the latest and take an older one.
        asks = joint.conjuncts or joint.anchors or joint.spread_m is not None or bound_low
        if not takes_newest_only(joint.context) or joint.operator not in ("and", *FOLLOWS):
            return False
        return not (asks or joint.next or joint.nth is not None or self.shared)


def asks_further(joint: Joint) -> bool:
    """Return True where other events than those of a pair have a say in it."""
    return joint.next or joint.nth is not None


class Further:
    """Answer what `nth` and `next` ask of a pair beyond the pair itself."""

    __slots__ = ("_follows", "_joint", "_site", "ends", "items")

    def __init__(self, joint: Joint, follows: Callable[..., bool], site: Site) -> None:
        """`follows(l, r)`: the relation alone."""
        self._joint = joint
        self._follows = follows
        self._site = site
        self.items: list[Occurrence] = []  # for `nth`: all right ones, in order
        self.ends: list[int] = []  # theirs

    def __call__(self, left: Occurrence, right: Occurrence) -> bool:
        """Tell whether the pair belongs together."""
        joint = self._joint
        # Cheaper than the count of `nth`, which walks what came after the left one.
        if joint.next:
            low, high = end_of(left), start_of(right)
            if joint.operator not in FOLLOWS and low >= high:
                low, high = end_of(right), start_of(left)
            if self.between(low, high):
                return False
        return joint.nth is None or self._number(left, right) == joint.nth

    def between(self, low: int, high: int) -> bool:
        """Tell whether an event of the types named lies wholly and strictly between two times."""
        named = self._site.named
        # Backwards from the later side: the nearest events are the likeliest to lie between, and
        # the walk ends at the first that ended before.
        at = bisect_left(self._site.named_ends, high)
        while at:
            at -= 1
            event = named[at]
            if event.end <= low:
                return False
            if event.start > low:
                return True
        return False

    def _number(self, left: Occurrence, right: Occurrence) -> int:
        """The so-manieth after the left one that the right one is."""
        follows, rights, nth = self._follows, self.items, self._joint.nth
        number = looked = 0
        for other in islice(rights, bisect_left(self.ends, end_of(left)), None):
            looked += 1
            if follows(left, other):
                number += 1
            if other is right:
                break
            if number == nth:
                # Beyond the k-th nothing is asked; 0 never equals an nth, which counts from 1.
                number = 0  # that was the one
                break
        else:
            number = 0
        # Charged behind the walk, as its length is not known before; it is bounded by what is kept.
        self._site.budget.spend(looked)
        return number

    def arrived(self, rights: list[Occurrence]) -> None:
        """Right ones in order, none of them later than what is tested next."""
        if self._joint.nth is not None:
            # All of them, also those that fail every condition: `nth k` counts before it tests
            # (LANGUAGE 3).
            self.items += rights
            self.ends += map(end_of, rights)

    def hold(self, items: list[Occurrence]) -> None:
        """Hold these in place of its own."""
        self.items = items
        self.ends = list(map(end_of, items))

    @property
    def asked(self) -> bool:
        """Tell whether it keeps anything."""
        return asks_further(self._joint)

    def expire(self, oldest: int, floor: int) -> None:
        """Nothing before the left ones that are left, or are to come, is asked for any more.

        `oldest` is the least end of those left.
        """
        oldest = min(oldest, floor)
        if self.ends and self.ends[0] < oldest:
            dead = bisect_left(self.ends, oldest)
            del self.ends[:dead], self.items[:dead]
        if self._joint.next:
            self._site.needs[id(self)] = oldest

    def shut(self, left: Occurrence, floor: int) -> bool:
        """Tell whether nothing that begins at the floor or later can be next to the left one."""
        return end_of(left) < self.shut_before(floor)

    def shut_before(self, floor: int) -> int:
        """Return a time such that left ones which end before it are shut from the floor on.

        By that they are cut off at one place: there may be as many as come in an hour.
        """
        at = bisect_left(self._site.named_ends, floor)
        # Four are enough to find one in practice; where they are not, the left one is kept longer
        # than need be, which costs memory and no result.
        nearest = self._site.named[max(0, at - 4) : at]
        return max([event.start for event in nearest], default=WATERMARK_NONE)


class JointStage(Over):
    """Run the compiled join of a binary operator over what both sides have passed on."""

    __slots__ = ("_further", "_latest_only", "_left", "_plan", "_right")

    def __init__(self, plan: JointPlan, site: Site, left: Stage, right: Stage) -> None:
        super().__init__(site, (Inbox(left, site.budget), Inbox(right, site.budget)), plan.span)
        self._plan = plan
        self._left = Store()
        self._right = Store()
        self._further = Further(plan.joint, plan.follows, site)
        # Where events are consumed an older one may come to be the latest.
        # With this, `A then[recent] B` over a day of A keeps one of them instead of all.
        latest = plan.latest_dominates and site.memory is None
        # What is nominally too early on the right may follow, and of two the older one alone.
        either = plan.doubt is None or plan.joint.operator not in FOLLOWS
        self._latest_only = (latest, latest and either)

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the pairs that are decided by now and were not passed on before."""
        self.watermark = watermark
        left, right = self.inboxes
        limit = min(left.fill(watermark), right.fill(watermark))
        # An unrestricted join may take things in any order: each pair is made when the later one
        # comes.
        until = WATERMARK_END if self.site.at_once else limit
        lefts, rights = left.take(until), right.take(until)
        # Time alone makes no pair here, but it still drops what has expired.
        if not lefts and not rights:
            self._expire(limit)
            return []
        if self._plan.chooses_either:
            made = []
            for these, those in instants(lefts, rights):
                made += self._step(these, those)
        else:
            made = self._step(lefts, rights)
        self._expire(limit)
        return made

    def _step(self, lefts: list[Occurrence], rights: list[Occurrence]) -> list[Occurrence]:
        plan = self._plan
        self._further.arrived(rights)
        if plan.joint.operator == "or":
            made = plan.join(lefts, rights, None, None, self.site.group)
        else:
            self._left.put(lefts, composite=plan.composite[0])
            # Under `recent` either side may be the new one, so both are stored before the join
            # looks.
            if plan.chooses_either:
                self._right.put(rights, composite=plan.composite[1])
            made = plan.join(lefts, rights, self._left, self._right, self.site.group, self._further)
            # Where the right one surely comes later no left one looks for it, so it is never
            # stored: half of the memory of `A then B`.
            if not plan.chooses_either and not plan.follows_only:
                self._right.put(rights, composite=plan.composite[1])
        return made

    def _expire(self, limit: int) -> None:
        plan = self._plan
        stores = (self._left, self._right)
        for side, store in enumerate(stores):
            if not store.ends:
                continue
            # What is kept on one side is for partners that are still to come on the other.
            partner = self.inboxes[1 - side]
            oldest = plan.kept_from(limit, side, self.site, partner)
            if oldest is not None:
                store.expire(oldest)
            if self._latest_only[side] and len(store.ends) > 1:
                self._keep_latest(store, limit + 1, partner)
        if not self._further.asked:
            return
        if plan.joint.next and plan.follows_only:
            self._left.drop_before(self._further.shut_before(self.inboxes[1].floor()))
        oldest = min([store.ends[0] for store in stores if store.ends], default=limit)
        self._further.expire(oldest, limit - plan.slack_ms)

    def _keep_latest(self, store: Store, before: int, partner: Inbox) -> None:
        """Of what precedes all that is to come, only the latest can be chosen."""
        if self._plan.joint.operator in FOLLOWS:
            # A follower must begin after the left one ends, so it is beginnings that count.
            before = partner.begins()
        # The last one before that time is the latest that precedes all to come; those before it go.
        dead = bisect_left(store.ends, before) - 1
        if dead < 1:
            return
        if self._plan.joint.within_ms is not None:
            start = start_of(store.items[dead])
            if any(start_of(one) > start for one in store.items[:dead]):
                return  # an older one may be the shorter one
        store.drop_oldest(dead)

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of the left side, of the right side and of what `nth` asks."""
        return [self._left.items, self._right.items, self._further.items]

    def bound(self) -> list[list[Occurrence]]:
        """Return the lists of both sides, of which something to come may be made."""
        return self.kept()[:2]

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these lists in place of those of `kept`."""
        for store, items in zip((self._left, self._right), kept, strict=False):
            store.hold(items)
        self._further.hold(kept[2])


def instants(
    lefts: list[Occurrence], rights: list[Occurrence]
) -> list[tuple[list[Occurrence], list[Occurrence]]]:
    """Both in runs of one end, in order."""
    runs: dict[int, tuple[list[Occurrence], list[Occurrence]]] = {}
    for side, items in enumerate((lefts, rights)):
        for item in items:
            runs.setdefault(end_of(item), ([], []))[side].append(item)
    return [runs[end] for end in sorted(runs)]
