"""A chain of `then` over atoms as one operator: runs, spending pairs, and the lists in between.

Owns which chains run so, and what one partition of such a chain holds. Must not know how a pair is
tested (join.py), nor which matches are reported. Invariant: it finds what the operators one by one
would find, and its snapshots are theirs.

Operators one by one cost some ten calls each for a step of one group, whatever it brings: an inbox
to fill and to empty, promises to pass on. In a chain of atoms nothing beneath can hold anything up,
so what comes is walked through once. Compiling the same calls was tried instead and gained nothing;
what costs is their number.

    first, latest   a run: the candidates since its start, and how far they carry it (FusedRun)
    chronicle       for each link the oldest left sides that are not spent (FusedPairs)
    others          the joins of fusion.py, where lists stand in the chain

A chain is left to the operators where a time is uncertain or an event consumed elsewhere may make
choices anew; and a run, or one with lists, where one type fills two positions or a link asks for
more than its two sides can tell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, sort_in_order
from broker.engine.pattern.base import Site, end_of, start_of
from broker.engine.pattern.chronicle import LEFT, RIGHT, OldestPairs
from broker.engine.pattern.durations import Foresight, longest_asked
from broker.engine.pattern.fusion import Entry, Fused, FusedPlan, FusedStage
from broker.engine.pattern.gathered import GatheredPlan
from broker.engine.pattern.joint import JointPlan, asks_further
from broker.engine.pattern.members import FusedLists, ListsPlan, leaf_of, pad_of
from broker.engine.pattern.operands import (
    Gathered,
    Joint,
    Leaf,
    Operand,
    Padded,
    least,
    operands,
)
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.timing import keep_ms
from language.relations import FOLLOWS, OperatorContext

TRIED = 2  # candidates that a run costs for each that it goes over
FITTED = 8  # and for each that it tests

Test = Callable[..., bool]
Pair = Callable[..., Occurrence]


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain that runs as one operator; elements are atoms, or atoms beside lists."""

    elements: tuple[Operand, ...]
    links: tuple[Joint, ...]
    gathered: Gathered | None

    @property
    def context(self) -> OperatorContext:
        """The context of all its links; of plain ones that of the last."""
        return self.links[-1].context

    @property
    def timeless(self) -> bool:
        """Tell if time alone never decides anything.

        Where order and `within` are all that is asked, a run is at least as far as any that began
        later would be: what lets a later one be complete has completed the earlier one, or comes
        after its time. So nothing is found when a run's time is over, only by an event after that.
        """
        return not self.context.runs or not any(
            link.conjuncts or link.bound or link.spread_m is not None for link in self.links
        )


def chain_of_atoms(layout: Layout) -> Chain | None:
    """Return the pattern as such a chain; None where it takes operators one by one."""
    root, parts = layout.root, list(operands(layout.root))
    gathered = root if isinstance(root, Gathered) else None
    # `first` and `last` choose among whole matches.
    if layout.last or layout.first or any(part.denied for part in parts):
        return None
    if gathered is not None and not _lists_are_plain(gathered):
        return None
    elements: list[Operand] = []
    links: list[Joint] = []
    operand = root if gathered is None else gathered.base
    while isinstance(operand, Joint):
        links.insert(0, operand)
        elements.insert(0, operand.right)
        operand = operand.left
    elements.insert(0, operand)
    if not links or not all(map(_is_atom, elements)) or not _are_alike(links):
        return None
    # A run and a list go by positions: with types all different an event has one.
    types = [leaf.event_type for leaf in layout.leaves]
    once = len(set(types)) == len(types) and not any(map(asks_further, links))
    if not once and (gathered is not None or links[0].context.runs):
        return None
    if gathered is None and not links[0].context.spends:
        return None  # joins alone: fusion.py has them, also where they are no chain
    if not links[0].context.spends and root.within_ms is None:
        return None  # the operators know how far apart a list's gaps let two elements be
    return Chain(tuple(elements), tuple(links), gathered)


def _is_atom(operand: Operand) -> bool:
    return isinstance(operand.operand if isinstance(operand, Padded) else operand, Leaf)


def _lists_are_plain(gathered: Gathered) -> bool:
    return not gathered.trailing and all(
        isinstance(member.operand, Leaf) and member.after is not None and member.before is not None
        for member in gathered.members
    )


def _are_alike(links: list[Joint]) -> bool:
    contexts = {link.context for link in links}
    if any(link.operator not in FOLLOWS for link in links):
        return False
    if not any(context.spends for context in contexts):
        return True
    if len(contexts) > 1 or len({link.operator for link in links}) > 1:
        return False
    context = links[0].context
    if not context.runs:
        return True
    if any(link.closed for link in links[:-1]) or any(link.anchors for link in links):
        return False  # a suffix within the chain ends it: its parts choose each for itself
    # Under `latest` nothing replaces what a bound has left behind, unless the run goes on with it.
    return not context.replaces or all(link.bound is None for link in links)


class SequencePlan:
    """A chain compiled; all partitions of an agent share it."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        foresight: Foresight,
        chain: Chain,
        lists: GatheredPlan | None,
        *,
        plans: Sequence[JointPlan],
    ) -> None:
        """`lists`: how those of the chain are filled; `plans`: of its links."""
        self.chain = chain
        self.plans = plans
        self.shared = any(plan.shared for plan in plans)  # an event may fill two positions
        self.budget = layout.budget
        self.lists: ListsPlan | None = None
        if lists is not None and chain.gathered is not None:
            self.lists = ListsPlan(chain.gathered, lists, layout.budget)
        self.foresight = foresight
        self.latest = chain.context.replaces
        self.timeless = chain.timeless
        self.number = {leaf_of(part).low: number for number, part in enumerate(chain.elements)}
        self.last = len(chain.links)  # the number of the last element
        self.joins: FusedPlan | None = None
        # Of each element, with what is filled before it.
        self.tests: list[Test] = [_never, *(plan.test for plan in plans)]
        self.pairs: list[Pair] = [_never, *(plan.pair for plan in plans)]
        if not chain.context.spends:
            self.joins = FusedPlan(layout, keys, foresight, ordered=True, consuming=False)
        self._within_ms = _least_within(chain.links)
        self.endless = chain.context.runs and self.timeless and self._within_ms[0] is None
        self._changes = -1
        self.keeps_ms: list[int | None] = []  # of each link: how long before now a left one ends
        self.look_ahead()

    def look_ahead(self) -> None:
        """Keep for as long as events still to come may reach back."""
        if self.joins is not None:
            self.joins.look_ahead()
            return
        if self._changes != self.foresight.durations.changes:
            self._changes = self.foresight.durations.changes
            most_ms = self.foresight.most_ms()
            self.keeps_ms = [keep_ms(link, most_ms)[0] for link in self.chain.links]

    @property
    def horizon_ms(self) -> int | None:
        """The longest that anything is kept; None if nothing is ever dropped by age."""
        if self.joins is not None:
            return self.joins.horizon_ms
        return max([keep for keep in self.keeps_ms if keep is not None], default=None)

    def open(self, group: tuple[Any, ...], site: Site) -> Fused:
        """Return what runs one partition."""
        base: Fused
        if self.joins is not None:
            base = FusedStage(self.joins, group, site)
        elif self.chain.context.runs:
            base = FusedRun(self, group)
        else:
            base = FusedPairs(self, group, site)
        return base if self.lists is None else FusedLists(self.lists, group, base)

    def begins(self, watermark: int) -> int:
        """Return when events still to come begin at the earliest."""
        return watermark + 1 - self.foresight.most_ms()

    def over_at(self, filled: int, whole: Occurrence) -> int:
        """Return from which watermark on a run with so many elements goes no further."""
        ends = [WATERMARK_END]
        within_ms = self._within_ms[filled - 1]
        if within_ms is not None:
            ends.append(start_of(whole) + within_ms)
        bound = self.chain.links[filled - 1].bound
        if bound is not None and bound.high_ms is not None:
            # The next one begins by then, and may last: before that it may yet be to come.
            leaf = leaf_of(self.chain.elements[filled])
            asked_ms = least(longest_asked(leaf.conditions), leaf.within_ms)
            lasts_ms = self.foresight.longest_ms(leaf.event_type)
            lasts_ms = lasts_ms if asked_ms is None else min(lasts_ms, asked_ms)
            ends.append(end_of(whole) + bound.high_ms + lasts_ms)
        return min(ends)


def _never(*_: Any) -> Any:
    raise AssertionError("the first element joins nothing")


def _least_within(links: Sequence[Joint]) -> list[int | None]:
    """Of each link, the least `within` of those that it and later ones are under."""
    # A run waits for all links that are still open, so the shortest time among these ends it.
    times: list[int | None] = []
    shortest: int | None = None
    for link in reversed(links):
        shortest = least(shortest, link.within_ms)
        times.insert(0, shortest)
    return times


def _state_of_element(element: Operand, watermark: int) -> Any:
    """Return the state of an element's operator, which holds nothing."""
    if isinstance(element, Padded):
        return [watermark, [], [], [[[], watermark, [watermark]]]]
    return [watermark]


class FusedRun(Fused):
    """One run at a time over a chain, under `first` or `latest`."""

    __slots__ = ("_at", "_before", "_entries", "_filled", "_group", "_plan", "_spent", "_whole")

    def __init__(self, plan: SequencePlan, group: tuple[Any, ...]) -> None:
        self._plan = plan
        self._group = group
        self.watermark = WATERMARK_NONE
        self._entries: list[tuple[int, Occurrence]] = []  # element, candidate; the run's first
        self._at = 0  # how many of them the run has seen
        self._filled = 0  # elements; 0: there is no run
        self._whole: Occurrence = None  # what is filled, as a match
        self._before: Occurrence = None  # the same without the last
        self._spent = -WATERMARK_END  # all that ends by then is spent

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        number, held = self._plan.number, self._entries
        # Nothing that is spent comes again: what comes ends after the last step's watermark.
        held += [(number[place], item) for place, item in entries]
        made: list[Occurrence] = []
        while held and self._go_on(made):
            pass
        return made

    def _go_on(self, made: list[Occurrence]) -> bool:
        """Bring the run as far as the candidates go; True if another may begin now."""
        entries = self._entries
        if not self._filled and not self._begin():
            return False
        start = self._walk()
        # One that completes comes first: at the watermark that ends its time a run may be whole.
        if self._filled > self._plan.last:
            self._complete(made)
            return True
        if self.watermark >= self._plan.over_at(self._filled, self._whole):
            # Dropped, it spends nothing but its start: a1 b2 a3 b4 c9 within 6 s gives (a3,b4,c9),
            # so the next run goes over the same candidates again.
            del entries[: start + 1]
            self._filled = 0
            return True
        if self._plan.endless:
            del entries[: self._at]  # when the run is complete, all of these are spent
            self._at = 0
        elif start:
            del entries[:start]  # under `latest`, what a later start has taken the place of
            self._at -= start
        return False

    def _begin(self) -> bool:
        """Begin a run with the first candidate that can; what comes before it is in none."""
        entries = self._entries
        for number, (element, item) in enumerate(entries):
            if element == 0:
                del entries[:number]
                self._filled, self._at = 1, 1
                self._whole, self._before = item, None
                return True
        # No later candidate leads back to these: a chain goes forward from its first element.
        entries.clear()
        return False

    def _walk(self) -> int:
        """Go over the candidates not yet seen; return which of them the run begins with."""
        plan, group, entries = self._plan, self._group, self._entries
        tests, pairs, last = plan.tests, plan.pairs, plan.last
        step, whole, before, seen = self._filled, self._whole, self._before, self._at
        start = fitted = 0
        for element, item in islice(entries, seen, None):
            seen += 1
            # First asked whether it advances: what fits both steps does (LANGUAGE 3, `latest`).
            if element == step:
                fitted += 1
                if tests[step](whole, item, group):
                    before, whole = whole, pairs[step](whole, item)
                    step += 1
                    if step > last:
                        break
            elif plan.latest and element == step - 1:
                # The newest of several in a row stands, if it fits what was there before it.
                if step == 1:
                    whole, start = item, seen - 1
                elif tests[element](before, item, group):
                    whole = pairs[element](before, item)
        plan.budget.spend(TRIED * (seen - self._at) + FITTED * fitted)
        self._filled, self._whole, self._before, self._at = step, whole, before, seen
        return start

    def _complete(self, made: list[Occurrence]) -> None:
        """Pass on a run; with it all is spent that ends by its end."""
        # By end, not by start: what lasts beyond the run is not spent, whenever it began.
        made.append(self._whole)
        self._spent = self._whole[0]
        del self._entries[: bisect_right(self._entries, self._spent, key=_end_of_entry)]
        self._filled = 0

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held.

        What no run can begin with any more is let go with the run.
        """
        self.watermark = watermark
        return self.held()

    def hold(self) -> int:
        """Return a time such that nothing passed on later ends by then.

        A run that is dropped may let the next one end earlier.
        """
        if self._plan.timeless or not self._filled:
            return WATERMARK_END
        ends = [end_of(item) for element, item in islice(self._entries, 1, None) if element == 0]
        return ends[0] - 1 if ends else WATERMARK_END

    def due(self) -> int | None:
        """Return the watermark that decides something by itself.

        When the run's time is over, if another waits behind it.
        """
        if self._plan.timeless or not self._filled or len(self._entries) < 2:
            return None
        over_at = self._plan.over_at(self._filled, self._whole)
        return over_at if self.watermark < over_at < WATERMARK_END else None

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min(self.eldest(), self._plan.begins(self.watermark))

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        run = [self._whole] if self._filled and self._plan.endless else []
        return [[item for _, item in self._entries], run]

    def held(self) -> int:
        """Return how many are held."""
        return len(self._entries) + (self._filled if self._plan.endless else 0)

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went.

        The oldest candidates go, and with them the run that they are of.
        """
        gone = min(count, self.held())
        del self._entries[:gone]
        self._filled = 0
        return gone

    def state(self) -> Any:
        """Return what is held as the operators one by one pack it."""
        plan, watermark = self._plan, self.watermark
        items = _items_of(plan.chain.elements[: self._filled], self._whole)
        filled = [[element, item] for element, item in enumerate(items)]
        # Where nothing but order is asked the run's own candidates are gone: none stands before.
        run = [filled, -1 if plan.endless else 0, self._at] if filled else None
        return [
            watermark,
            watermark,
            self._spent,
            [list(entry) for entry in self._entries],
            run,
            [[] for _ in plan.chain.links],
            [[[], watermark, _state_of_element(part, watermark)] for part in plan.chain.elements],
        ]

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark, _, self._spent, entries, run, *_ = state
        self._entries = [(element, item) for element, item in entries]
        self._filled = 0
        if run is None:
            return
        filled, start, self._at = run
        for element, item in filled:
            self._before = self._whole
            self._whole = item if not element else self._plan.pairs[element](self._before, item)
            self._filled = element + 1
        if start > 0:
            del self._entries[:start]
            self._at -= start


def _items_of(elements: Sequence[Operand], whole: Occurrence) -> list[Occurrence]:
    """Return what fills each of the first elements of a chain, as its operator passes it on."""
    if len(elements) < 2:
        return [whole] * len(elements)
    low, items = elements[0].low, []
    for element in elements:
        event = whole[2 + leaf_of(element).low - low]
        items.append(pad_of(element)(event) if isinstance(element, Padded) else event)
    return items


class FusedPairs(Fused):
    """The links of a chain under `chronicle`, each taking the oldest left side not yet spent."""

    __slots__ = ("_pairs", "_plan")

    def __init__(self, plan: SequencePlan, group: tuple[Any, ...], site: Site) -> None:
        self._plan = plan
        self.watermark = WATERMARK_NONE
        self._pairs = [OldestPairs(each, group, site, alone=not plan.shared) for each in plan.plans]

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        number, pairs, made = self._plan.number, self._pairs, []
        for place, item in entries:
            element = number[place]
            if not element:
                pairs[0].take(LEFT, item)
                continue
            whole = pairs[element - 1].take(RIGHT, item)
            if whole is None:
                continue
            if element == self._plan.last:
                made.append(whole)
            else:
                pairs[element].take(LEFT, whole)
                self._put_in_order(pairs[element].items[LEFT])
        return made

    def _put_in_order(self, items: list[Occurrence]) -> None:
        """Let the last left side stand in order among those of its end."""
        begin = len(items)
        while begin and end_of(items[begin - 1]) == end_of(items[-1]):
            begin -= 1
        if begin < len(items) - 1:
            equal = items[begin:]
            sort_in_order(equal, tied=self._plan.budget.tie)
            items[begin:] = equal

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held."""
        self.watermark = watermark
        begins = self.begins() if self._plan.shared else watermark
        for pairs, keep in zip(self._pairs, self._plan.keeps_ms, strict=True):
            pairs.expire((None if keep is None else watermark + 1 - keep, None), begins, watermark)
        return self.held()

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min(self.eldest(), self._plan.begins(self.watermark))

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [pairs.items[LEFT] for pairs in self._pairs]

    def held(self) -> int:
        """Return how many are held."""
        held = 0
        for pairs in self._pairs:
            held += len(pairs.items[LEFT]) + len(pairs.further.items)
        return held

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went."""
        gone = 0
        for items in sorted(self.kept(), key=len, reverse=True):
            part = min(count - gone, len(items))
            del items[:part]
            gone += part
        return gone

    def state(self) -> Any:
        """Return what is held as the operators one by one pack it."""
        watermark, elements = self.watermark, self._plan.chain.elements
        packed = _state_of_element(elements[0], watermark)
        for pairs, right in zip(self._pairs, elements[1:], strict=True):
            beneath = [packed, _state_of_element(right, watermark)]
            inboxes = [[[], watermark, state] for state in beneath]
            packed = [watermark, pairs.kept(), pairs.facts(), inboxes]
        return packed

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark = state[0]
        for pairs in reversed(self._pairs):
            _, kept, facts, inboxes = state
            waiting, _, state = inboxes[0]
            pairs.keep([[*kept[0], *waiting], *kept[1:]])
            if self._plan.shared:
                pairs.know(facts)


def _end_of_entry(entry: tuple[int, Occurrence]) -> int:
    return end_of(entry[1])
