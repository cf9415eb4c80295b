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
choices anew; and one with lists where one type fills two positions or a link asks for more than its
two sides can tell. Runs are of any relation, `and` included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, sort_in_order
from broker.engine.pattern.asked import LeafView
from broker.engine.pattern.base import Site, end_of
from broker.engine.pattern.build import Builder
from broker.engine.pattern.chronicle import LEFT, RIGHT, OldestPairs
from broker.engine.pattern.course import Course, asks_order_alone
from broker.engine.pattern.durations import Foresight, longest_asked
from broker.engine.pattern.fusion import Entry, Fused, FusedPlan, FusedStage
from broker.engine.pattern.joint import JointPlan, asks_further
from broker.engine.pattern.members import FusedLists, ListsPlan, leaf_of
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
        if not self.context.runs:
            return True
        types = {leaf_of(element).event_type for element in self.elements}
        plain = all(each.operator in FOLLOWS and asks_order_alone(each) for each in self.links)
        return plain and len(types) == len(self.elements)


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
    if not links or not all(map(_is_atom, elements)) or not _are_alike(links, gathered):
        return None
    # A list goes by positions: with types all different an event has one.
    types = [leaf.event_type for leaf in layout.leaves]
    once = len(set(types)) == len(types) and not any(map(asks_further, links))
    if gathered is not None and not once:
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


def _are_alike(links: list[Joint], gathered: Gathered | None) -> bool:
    contexts = {link.context for link in links}
    if not all(link.operator in FOLLOWS for link in links) and (
        gathered is not None or not links[0].context.runs or links[0].operator == "or"
    ):
        return False
    if not any(context.spends for context in contexts):
        return True
    if len(contexts) > 1 or len({link.operator for link in links}) > 1:
        return False
    context = links[0].context
    if not context.runs:
        return True
    if any(link.closed for link in links[:-1]):
        return False  # a suffix within the chain ends it: its parts choose each for itself
    if gathered is None:
        return True
    # Under `latest` nothing replaces what a bound has left behind, unless the run goes on with it.
    bound = context.replaces and any(link.bound is not None for link in links)
    return not bound and not any(link.anchors for link in links)


class SequencePlan:
    """A chain compiled; all partitions of an agent share it."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        foresight: Foresight,
        chain: Chain,
        builder: Builder,
    ) -> None:
        """`builder`: compiles the operands of the same layout."""
        self.chain = chain
        self.course = builder.course(chain.links) if chain.context.runs else None
        self.plans: Sequence[JointPlan] = []  # of the links, where these choose
        if self.course is not None:
            self.plans = self.course.plans
        elif chain.context.spends:
            self.plans = [builder.plan(link) for link in chain.links]
        course, plans = self.course, self.plans
        self.shared = any(plan.shared for plan in plans)  # an event may fill two positions
        # Of one event for two elements the later one comes first.
        self.overtakes = self.shared and course is not None and course.in_order
        self.counts = course is not None and course.asks  # `nth` counts what comes
        self.asks = self.shared or any(asks_further(plan.joint) for plan in plans)
        self.budget = layout.budget
        self.lists: ListsPlan | None = None
        if chain.gathered is not None:
            lists = builder.lists_of(chain.gathered)
            self.lists = ListsPlan(chain.gathered, lists, layout.budget)
        self.foresight = foresight
        self.timeless = chain.timeless
        self.number = {leaf_of(part).low: number for number, part in enumerate(chain.elements)}
        self.last = len(chain.links)  # the number of the last element
        self.joins: FusedPlan | None = None
        if not chain.context.spends:
            self.joins = FusedPlan(layout, keys, foresight, ordered=True, consuming=False)
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
            base = FusedRun(self, group, site)
        else:
            base = FusedPairs(self, group, site)
        return base if self.lists is None else FusedLists(self.lists, group, base)

    def begins(self, watermark: int) -> int:
        """Return when events still to come begin at the earliest."""
        return watermark + 1 - self.foresight.most_ms()

    def longest_ms(self, element: int) -> int:
        """Return how long an event of an element that is still to come may last."""
        leaf = leaf_of(self.chain.elements[element])
        asked_ms = least(longest_asked(leaf.conditions), leaf.within_ms)
        longest_ms = self.foresight.longest_ms(leaf.event_type)
        return longest_ms if asked_ms is None else min(longest_ms, asked_ms)


def _state_of_element(element: Operand, watermark: int) -> Any:
    """Return the state of an element's operator, which holds nothing."""
    if isinstance(element, Padded):
        return [watermark, [], [], [[[], watermark, [watermark]]]]
    return [watermark]


class FusedRun(Fused):
    """One run at a time over a chain, under `first` or `latest` (course.py)."""

    __slots__ = ("_course", "_plan")

    def __init__(self, plan: SequencePlan, group: tuple[Any, ...], site: Site) -> None:
        assert plan.course is not None
        self._plan = plan
        self.watermark = WATERMARK_NONE
        self._course = Course(plan.course, group, site)

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        plan, number = self._plan, self._plan.number
        # Nothing that is spent comes again: what comes ends after the last step's watermark.
        found = [(number[place], item) for place, item in entries]
        if plan.overtakes:
            _put_later_first(found)
        if plan.counts:
            for element, item in found:
                self._course.arrived(element, [item])
        return self._course.take(found, watermark, self._ahead)

    def _ahead(self, element: int) -> LeafView:
        """Return what is known of the events that are yet to come for an element."""
        return LeafView(self.watermark, self._plan.longest_ms(element))

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held.

        What no run can begin with any more is let go with the run.
        """
        self.watermark = watermark
        return self._course.held()

    def hold(self) -> int:
        """Return a time such that nothing passed on later ends by then."""
        return WATERMARK_END if self._plan.timeless else self._course.hold()

    def due(self) -> int | None:
        """Return the watermark that decides something by itself."""
        return None if self._plan.timeless else self._course.due(self.watermark, self._ahead)

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min(self.eldest(), self._plan.begins(self.watermark))

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return self._course.kept()[:2]

    def held(self) -> int:
        """Return how many are held."""
        return self._course.held()

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went."""
        return self._course.shed(count)

    def state(self) -> Any:
        """Return what is held as the operators one by one pack it."""
        watermark, elements = self.watermark, self._plan.chain.elements
        beneath = [[[], watermark, _state_of_element(part, watermark)] for part in elements]
        return [watermark, *self._course.state(), beneath]

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark, *course, _ = state
        self._course.restore(course)


def _put_later_first(entries: list[tuple[int, Occurrence]]) -> None:
    """Let of one event that fits two elements the later one come first, so that it advances."""
    begin = 0
    for at in range(1, len(entries) + 1):
        if at == len(entries) or entries[at][1] is not entries[begin][1]:
            entries[begin:at] = reversed(entries[begin:at])
            begin = at


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
            oldest = None if keep is None else watermark + 1 - keep
            items = pairs.items[LEFT]
            # Most steps find nothing to drop, which is seen here without a call.
            if self._plan.asks or (oldest is not None and items and end_of(items[0]) < oldest):
                pairs.expire((oldest, None), begins, watermark)
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
