"""`first` and `latest`: one run at a time over a whole chain of like links.

Owns the run, the candidates that a later run may need, what is spent, and when a run is over. Must
not know how a pair is tested, nor where candidates come from: a stage takes them from those beneath
it (CourseStage), a chain of atoms from its agent (sequence.py). Invariant: after a run is complete
nothing that binds an event ending by its end is used again; a run that can no longer be complete
spends nothing, and the next start begins (LANGUAGE: contexts; paper 000's FIRST and RECENT).

Candidates stand in order; of one event that fits two elements of a chain of `then`, the later
element comes first, so that it advances the run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Literal

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, start_of
from broker.engine.pattern.layout.operands import Joint, Operand, atom_of
from broker.engine.pattern.operators.joint import Further, JointPlan, asks_further
from broker.engine.pattern.stage.asked import Ahead
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage, least, next_of
from broker.engine.pattern.stage.sides import Entry, in_order
from broker.engine.pattern.uncertainty.judge import Judge
from language.relations import FOLLOWS, IN_ORDER

TRYING = 2  # candidates that it costs to look whether one is for a run,
FITTING = 8  # and besides, to ask whether it fits,
JUDGING = 2  # with as many for each link where elements may come in any order

Filled = dict[int, Occurrence]  # by element
AheadOf = Callable[[int], Ahead]  # of an element, what is yet to come
# Elements of which one must begin by a time for the run to be complete, and that time.
Start = tuple[tuple[int, ...], int]


class CoursePlan:
    """A chain of like links compiled; `plans[i]` joins elements 0..i with element i + 1."""

    def __init__(self, plans: Sequence[JointPlan], judge: Judge) -> None:
        links = [plan.joint for plan in plans]
        self.plans = plans
        self.judge = judge
        self.doubt = plans[0].doubt
        self.elements: list[Operand] = [links[0].left, *(link.right for link in links)]
        self.count = len(self.elements)
        self.in_order = links[0].operator in IN_ORDER
        self.sign: Literal[-1, 1] = -1 if self.in_order else 1
        self.latest = links[0].context.replaces
        self.asks = any(map(asks_further, links))
        self.nothing: list[Further | None] = [None] * len(links)
        self.contiguous = any(link.next for link in links)
        self.has_composites = any(atom_of(each) is None for each in self.elements)
        # Of each element, with what is filled before it.
        self.tests: list[Callable[..., Any]] = [_never, *(plan.test for plan in plans)]
        self.pairs: list[Callable[..., Occurrence]] = [_never, *(plan.pair for plan in plans)]
        self.highs_ms = [_high_ms(link) for link in links]
        self._gaps = [(at, high) for at, high in enumerate(self.highs_ms) if high is not None]
        # Of candidates it is known how long they last where one that is late may be in time.
        self.measures = self.latest and any(high is not None for high in self.highs_ms)
        self._within_ms = _least_within(links)
        # Of each link, the anchors that it and later ones have.
        self._anchors = [
            [one for link in links[at:] for one in link.anchors] for at, _ in enumerate(links)
        ]
        self.endless = self._is_endless(links)

    def _is_endless(self, links: Sequence[Joint]) -> bool:
        """Return True where no later start can be complete if the run cannot.

        That is so in a chain of `then`, or of `and`, over different types that asks for nothing
        else.
        """
        types = {leaf.event_type for leaf in map(atom_of, self.elements) if leaf is not None}
        asks = any(link.within_ms is not None or not asks_order_alone(link) for link in links)
        return self.doubt is None and len(types) == self.count and not asks

    # --- when a run is over --------------------------------------------------------------

    def last_ms(self, filled: Filled) -> int | None:
        """Return the last end that the next element can have, by `within` and anchors."""
        at = self._first_open(filled)
        within_ms = self._within_ms[at]
        ends: list[int | None] = []
        if within_ms is not None:
            ends.append(min(map(start_of, filled.values())) + self.longer(within_ms))
        for place, anchored_ms in self._anchors[at]:
            anchor = self._bound_at(filled, place)
            if anchor is not None:
                ends.append(anchor.end + self.longer(anchored_ms))
        return least(ends)

    def starts(self, filled: Filled) -> list[Start]:
        """Return which elements must begin by when for the run to be complete."""
        starts: list[Start] = []
        # What is anchored to an event that is yet to come begins after that has ended.
        for place, _ in self._anchors[self._first_open(filled)]:
            element = self._element_of(place)
            if element is not None and element not in filled:
                starts.append(((element,), min(map(start_of, filled.values())) + self.longer(0)))
        for at, high_ms in self._gaps:
            lefts = range(at + 1)
            present = [element for element in lefts if element in filled]
            if len(present) == at + 1 and at + 1 not in filled:
                end = max([end_of(filled[element]) for element in present])
                starts.append(((at + 1,), end + self.longer(high_ms)))
            elif not present and at + 1 in filled:
                starts.append((tuple(lefts), end_of(filled[at + 1]) + self.longer(high_ms)))
        return starts

    def _first_open(self, filled: Filled) -> int:
        """Return the first link that is not complete, with all that is filled beneath it."""
        missing = 0
        while missing in filled:
            missing += 1
        return max(missing, *filled, 1) - 1

    def longer(self, limit_ms: int) -> int:
        """Return a limit by nominal times, so long that what is past it is surely past."""
        return limit_ms if self.doubt is None else limit_ms + self.doubt.slack_ms(limit_ms)

    def _element_of(self, place: int) -> int | None:
        for element, operand in enumerate(self.elements):
            if operand.low <= place < operand.high:
                return element
        return None

    def _bound_at(self, filled: Filled, place: int) -> Any:
        element = self._element_of(place)
        if element is None or element not in filled:
            return None
        item = filled[element]
        if item.__class__ is not tuple:
            return item
        return item[2 + place - self.elements[element].low]


def asks_order_alone(joint: Joint) -> bool:
    """Return True where a link asks for order, or for both sides, and how long they last alone."""
    return (joint.operator in FOLLOWS or joint.operator == "and") and not (
        joint.conjuncts
        or joint.anchors
        or joint.bound
        or asks_further(joint)
        or joint.spread_m is not None
    )


def _never(*_: Any) -> Any:
    raise AssertionError("the first element joins nothing")


def _high_ms(joint: Joint) -> int | None:
    """Return the greatest gap between both sides of an operator; None: any."""
    if joint.operator != "and" and joint.operator not in FOLLOWS:
        return 0  # the intervals share an instant
    return None if joint.bound is None else joint.bound.high_ms


def _least_within(links: Sequence[Joint]) -> list[int | None]:
    """Return of each link the least `within` of those that it and later ones are under."""
    # A run waits for all links that are still open, so the shortest time among these ends it.
    times: list[int | None] = []
    shortest: int | None = None
    for link in reversed(links):
        shortest = least([shortest, link.within_ms])
        times.insert(0, shortest)
    return times


class ChainRun:
    """The candidates of one partition, and the run over them."""

    __slots__ = (
        "_at",
        "_before",
        "_chosen",
        "_entries",
        "_filled",
        "_further",
        "_group",
        "_limit",
        "_longest_ms",
        "_plan",
        "_site",
        "_spent",
        "_start",
        "_whole",
    )

    def __init__(self, plan: CoursePlan, group: tuple[Any, ...], site: Site) -> None:
        self._plan = plan
        self._group = group
        self._site = site
        # What `nth` and `next` ask, by link.
        self._further: list[Further | None] = (
            [Further(each.joint, each.follows, site) for each in plan.plans]
            if plan.asks
            else plan.nothing
        )
        self._entries: list[Entry] = []
        self._at = 0  # how many of them the run has seen
        self._start = 0  # which of them began it; -1: one that is there no more
        self._filled: Filled = {}  # nothing: there is no run
        self._whole: Occurrence = None  # in order, what is filled, as one
        self._before: Occurrence = None  # the same without the last
        self._spent = -WATERMARK_END  # all that binds an event ending by then is spent
        self._limit = -WATERMARK_END
        self._longest_ms = 0  # of all candidates, where runs ask for it
        self._chosen: list[Occurrence] | None = None

    def enter(self) -> list[Occurrence]:
        """Take up the choices that stand where events were consumed; return them."""
        if self._site.memory is None:
            return []
        before, self._chosen = self._site.memory.enter()
        self._spent = max(map(end_of, before), default=self._spent)
        return self._site.memory.still(before)

    def arrived(self, element: int, items: list[Occurrence]) -> None:
        """Note what comes for an element, in order, whether it is spent or not."""
        further = self._further[element - 1] if element else None
        if further is not None:
            further.arrived(items)

    def take(self, entries: list[Entry], limit: int, ahead: AheadOf) -> list[Occurrence]:
        """Take all candidates up to the limit, in order; return the runs that they complete."""
        self._limit = limit
        if self._plan.measures:
            self._measure(entries)
        self._entries += entries
        made: list[Occurrence] = []
        while (self._filled or self._entries) and self._go_on(made, ahead):
            pass
        if self._plan.asks:
            self._expire()
        return made

    def is_spent(self, item: Occurrence) -> bool:
        """Return True where an event that is bound belongs to a run that is complete."""
        if item.__class__ is not tuple:
            spent: bool = item.end <= self._spent
            return spent
        return any(member.end <= self._spent for member in flat(events_of(item)))

    # --- runs ----------------------------------------------------------------------------

    def _go_on(self, made: list[Occurrence], ahead: AheadOf) -> bool:
        """Bring the run as far as the candidates go; whether another may begin now."""
        plan, entries = self._plan, self._entries
        if not self._filled and not self._begin():
            return False
        waits = self._walk() if plan.in_order else self._fill()
        # One that completes comes first: at the watermark that ends its time a run may be whole.
        if len(self._filled) == plan.count:
            self._complete(made)
            return True
        if self._is_over(ahead):
            # Dropped, it spends nothing but its start: a1 b2 a3 b4 c9 within 6 s gives (a3,b4,c9),
            # so the next run goes over the same candidates again.
            del entries[: self._start + 1]
            self._filled = {}
            return True
        if waits:
            return False
        if plan.endless:
            del entries[: self._at]  # when the run is complete, all of these are spent
            self._start, self._at = -1, 0
        elif self._start > 0:
            del entries[: self._start]  # under `latest`, what a later start has replaced
            self._start, self._at = 0, self._at - self._start
        return False

    def _begin(self) -> bool:
        """Begin a run with the first candidate that can; what comes before it is in none."""
        entries = self._entries
        for number, (element, item) in enumerate(entries):
            if element == 0 or not self._plan.in_order:
                del entries[:number]
                self._filled = {element: item}
                self._whole, self._before = item, None
                self._start, self._at = 0, 1
                return True
        # No later candidate leads back to these: a chain goes forward from its first element.
        entries.clear()
        return False

    def _walk(self) -> bool:
        """Go over the candidates not yet seen, each for the next element or for the last one.

        Return True where one must be waited for that may yet be in time.
        """
        plan, group, filled, further = self._plan, self._group, self._filled, self._further
        tests, pairs, latest, step = plan.tests, plan.pairs, plan.latest, len(self._filled)
        whole, before, seen, fitted, waits = self._whole, self._before, self._at, 0, False
        began = seen
        for element, item in islice(self._entries, seen, None):
            if plan.measures and self._is_late(step, item):
                self._whole, self._at = whole, seen
                if not self._advances_later(step):
                    waits = True
                    break
            seen += 1
            # First asked whether it advances: what fits both steps does (LANGUAGE 3, `latest`).
            if element == step:
                fitted += 1
                if tests[step](whole, item, group, further[step - 1]):
                    longer = pairs[step](whole, item)
                    if step + 1 == plan.count and self._is_past(longer):
                        continue
                    filled[step] = item
                    before, whole = whole, longer
                    step += 1
                    if step == plan.count:
                        break
            elif latest and element == step - 1:
                # The newest of several in a row stands, if it fits what was there before it.
                if not element:
                    whole, self._start, filled[0] = item, seen - 1, item
                elif tests[element](before, item, group, further[element - 1]):
                    whole, filled[element] = pairs[element](before, item), item
        self._site.budget.spend(TRYING * (seen - began) + FITTING * fitted)
        self._whole, self._before, self._at = whole, before, seen
        return waits

    def _is_late(self, step: int, item: Occurrence) -> bool:
        """Return True where the time for the next element was over, nominally, when this came.

        Then nothing replaces the last one any more, unless the run goes on: what began in time and
        lasts is in time, whenever it ends, and what is past by nominal times alone may be in time.
        """
        high_ms = self._plan.highs_ms[step - 1]
        return high_ms is not None and end_of(item) > end_of(self._filled[step - 1]) + high_ms

    def _advances_later(self, step: int) -> bool:
        """Return True where one of the candidates still to be seen advances the run as it is."""
        plan, whole = self._plan, self._whole
        start = end_of(self._filled[step - 1]) + plan.longer(plan.highs_ms[step - 1] or 0)
        for element, item in islice(self._entries, self._at, None):
            if end_of(item) > start + self._longest_ms:
                return False
            if element != step or start_of(item) > start:
                continue
            self._site.budget.spend(FITTING)
            if plan.tests[step](whole, item, self._group, self._further[step - 1]):
                complete = step + 1 == plan.count
                if not complete or not self._is_past(plan.pairs[step](whole, item)):
                    return True
        return False

    def _fill(self) -> bool:
        """Go over the candidates not yet seen, which may fill any element that is open."""
        plan, filled, tried = self._plan, self._filled, 0
        for element, item in islice(self._entries, self._at, None):
            self._at += 1
            tried += 1
            if element not in filled and self._fits(element, item):
                filled[element] = item
                if len(filled) == plan.count:
                    break
        self._site.budget.spend(TRYING * tried)
        return False

    def _fits(self, element: int, item: Occurrence) -> bool:
        """Return True where the element goes with what is filled, as far as that can be judged."""
        plan, group = self._plan, self._group
        self._site.budget.spend(FITTING + JUDGING * len(plan.plans))
        together = {**self._filled, element: item}
        whole = together.get(0)
        for at, link in enumerate(plan.plans):
            other = together.get(at + 1)
            if whole is None or other is None:
                return plan.judge(together, group)
            if element <= at + 1 and not link.test(whole, other, group, self._further[at]):
                return False
            whole = link.pair(whole, other)
            if len(together) == at + 2:
                break
        return len(together) < plan.count or not self._is_past(whole)

    def _is_past(self, whole: Occurrence) -> bool:
        memory = self._site.memory
        return memory is not None and memory.is_past(whole)

    def _complete(self, made: list[Occurrence]) -> None:
        """Pass on a run; with it all is spent that ends by its end."""
        whole = self._filled_whole()
        made.append(whole)
        if self._chosen is not None:
            self._chosen.append(whole)
        # By end, not by start: what lasts beyond the run is not spent, whenever it began.
        self._spent = end_of(whole)
        del self._entries[: bisect_right(self._entries, self._spent, key=_end_of_entry)]
        if self._plan.has_composites:
            self._site.budget.spend(len(self._entries))
            self._entries = [entry for entry in self._entries if not self.is_spent(entry[1])]
        self._filled = {}

    def _filled_whole(self) -> Occurrence:
        """Return what is filled of the first elements, as one."""
        if self._plan.in_order:
            return self._whole
        whole = self._filled[0]
        for at in range(1, len(self._filled)):
            whole = self._plan.pairs[at](whole, self._filled[at])
        return whole

    # --- ends ----------------------------------------------------------------------------

    def _is_over(self, ahead: AheadOf) -> bool:
        """Return True where nothing that is still to come can advance the run."""
        plan, filled = self._plan, self._filled
        if self._limit >= WATERMARK_END:
            return True
        last = plan.last_ms(filled)
        if last is not None and self._limit >= last:
            return True
        for elements, start in plan.starts(filled):
            if min([ahead(one).floor(WATERMARK_NONE) for one in elements]) > start:
                return True
        return plan.contiguous and self._is_shut(ahead)

    def _is_shut(self, ahead: AheadOf) -> bool:
        """Return True where another event came between and the next element must be `next`."""
        step = len(self._filled)
        if any(element not in self._filled for element in range(step)):
            return False  # what is there is not what the next operator joins
        further = self._further[step - 1]
        if further is None or not self._plan.plans[step - 1].joint.next:
            return False
        return further.shut(self._filled_whole(), ahead(step).floor(WATERMARK_NONE))

    def _expire(self) -> None:
        ends = [end_of(item) for _, item in self._entries[:1]]
        oldest = min([*ends, *map(end_of, self._filled.values())], default=self._limit)
        for further in self._further:
            if further is not None and further.asked:
                further.expire(oldest, self._limit - self._plan.plans[0].slack_ms)

    def hold(self) -> int:
        """Return a time such that no run that is complete later ends by then.

        A run that is dropped may let the next one end earlier.
        """
        if not self._filled:
            return WATERMARK_END
        hold = WATERMARK_END
        if self._at < len(self._entries):  # it waits before that one
            hold = end_of(self._entries[self._at][1]) - 1
        for element, item in islice(self._entries, self._start + 1, None):
            if element == 0 or not self._plan.in_order:
                return min(hold, end_of(item) - 1)
        return hold

    def due(self, watermark: int, ahead: AheadOf) -> int | None:
        """Return the next watermark that ends the run's time, if another waits behind it."""
        if not self._filled or len(self._entries) <= self._start + 1:
            return None
        last = self._plan.last_ms(self._filled)
        times = [] if last is None else [last]
        for elements, start in self._plan.starts(self._filled):
            times.append(max([ahead(one).clear_at(WATERMARK_NONE, start) for one in elements]))
        return next_of(times, watermark)

    # --- what it holds -------------------------------------------------------------------

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held; `nth` asks about the last one alone."""
        filled = list(self._filled.values()) if self._start < 0 else []
        rights = [item for items in self._rights() for item in items]
        return [[item for _, item in self._entries], filled, rights]

    def held(self) -> int:
        """Return how many are held."""
        held = len(self._entries) + (len(self._filled) if self._start < 0 else 0)
        return held + sum(map(len, self._rights())) if self._plan.asks else held

    def _rights(self) -> list[list[Occurrence]]:
        """Return by link what `nth` counts."""
        return [[] if further is None else further.items for further in self._further]

    def shed(self, count: int) -> int:
        """Drop up to so many candidates, the oldest first, and the run that they are of."""
        gone = min(count, self.held())
        del self._entries[:gone]
        self._filled = {}
        return gone

    def state(self) -> list[Any]:
        """Return what is held, as occurrences and plain values in lists."""
        filled = [list(one) for one in self._filled.items()]
        return [
            self._limit,
            self._spent,
            [list(entry) for entry in self._entries],
            [filled, self._start, self._at] if filled else None,
            self._rights(),
        ]

    def restore(self, state: Sequence[Any]) -> None:
        """Take that up again."""
        self._limit, self._spent, entries, run, rights = state
        self._entries = [(element, item) for element, item in entries]
        self._filled = {}
        self._measure(self._entries)
        for further, items in zip(self._further, rights, strict=True):
            if further is not None:
                further.hold(items)
        if run is None:
            return
        filled, self._start, self._at = run
        self._filled = dict(map(tuple, filled))
        if self._plan.in_order:
            self._whole, self._before = self._filled[0], None
            for element in range(1, len(self._filled)):
                self._before = self._whole
                self._whole = self._plan.pairs[element](self._whole, self._filled[element])

    def _measure(self, entries: Sequence[Entry]) -> None:
        """Know how long any candidate lasts."""
        spans = [end_of(item) - start_of(item) for _, item in entries]
        self._longest_ms = max([self._longest_ms, *spans])


class CourseStage(Over):
    """A chain of like links over stages of its elements."""

    __slots__ = ("_before", "_course", "_plan")

    def __init__(self, plan: CoursePlan, site: Site, elements: Sequence[Stage]) -> None:
        inboxes = tuple([Inbox(element, site.budget) for element in elements])
        super().__init__(site, inboxes, plan.plans[-1].span)
        self._plan = plan
        self._course = ChainRun(plan, site.group, site)
        self._before = self._course.enter()

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the occurrences of the chain that are decided and were not passed on before."""
        self.watermark = watermark
        limit = min([inbox.fill(watermark) for inbox in self.inboxes])
        taken = [inbox.take(limit) for inbox in self.inboxes]
        course = self._course
        if self._plan.asks:
            for element, items in enumerate(taken):
                course.arrived(element, items)
        made, self._before = self._before, []
        entries = in_order(taken, self._plan.sign, self.site.budget, course.is_spent)
        return made + course.take(entries, limit, self.inboxes.__getitem__)

    def hold(self) -> int:
        """Return the least hold of the stages beneath and of what the chain has open."""
        return min(super().hold(), self._course.hold())

    def due(self) -> int | None:
        """Return the next watermark that may decide something without events; None if none."""
        due = self._course.due(self.watermark, self.inboxes.__getitem__)
        return least([super().due(), due])

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of occurrences that the chain holds."""
        return self._course.kept()

    def bound(self) -> list[list[Occurrence]]:
        """Return the first two lists of `kept`, of which something to come may be made."""
        return self._course.kept()[:2]

    def shed(self, count: int) -> int:
        """Drop up to so many of what the chain holds; return how many were dropped."""
        return self._course.shed(count)

    def forget(self, gone: set[int]) -> None:  # noqa: ARG002
        """Refuse, as consumption goes through the events again."""
        raise AssertionError("consumption goes through the events again")

    def state(self) -> Any:
        """Return what the chain and the stages beneath hold, with the watermark."""
        return [self.watermark, *self._course.state(), [inbox.state() for inbox in self.inboxes]]

    def restore(self, state: Any) -> None:
        """Take up such a state again."""
        self.watermark, *course, inboxes = state
        self._course.restore(course)
        for inbox, part in zip(self.inboxes, inboxes, strict=True):
            inbox.restore(part)


def _end_of_entry(entry: Entry) -> int:
    return end_of(entry[1])
