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
from typing import Any, Literal

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, end_of, sort_in_order
from broker.engine.pattern.fused.fusion import Entry, Fused, FusedPlan, FusedStage
from broker.engine.pattern.fused.join_snapshot import packed_operators, unpacked_operators
from broker.engine.pattern.fused.members import FusedLists, ListsPlan, leaf_of
from broker.engine.pattern.layout.operands import (
    Gathered,
    Joint,
    Leaf,
    Operand,
    atom_of,
    composite,
    least,
    operands,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.operators.chronicle import LEFT, RIGHT, OldestPairs
from broker.engine.pattern.operators.course import ChainRun, asks_order_alone
from broker.engine.pattern.operators.joint import JointPlan, asks_further
from broker.engine.pattern.stage.asked import LeafView
from broker.engine.pattern.stage.base import Site
from broker.engine.pattern.times.durations import Foresight, longest_asked
from broker.engine.pattern.times.timing import keep_ms
from language.relations import FOLLOWS, OperatorContext


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain that runs as one operator; elements are atoms, atoms beside lists, or run so."""

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
        parts = [part for element in self.elements for part in operands(element)]
        types = [part.event_type for part in parts if isinstance(part, Leaf)]
        plain = all(each.operator in FOLLOWS and asks_order_alone(each) for each in self.links)
        return plain and len(set(types)) == len(types)

    @property
    def composites(self) -> list[Operand]:
        """The elements that are operators themselves."""
        return [element for element in self.elements if atom_of(element) is None]


def chain_of(layout: Layout, operand: Operand, gathered: Gathered | None = None) -> Chain | None:
    """Return an operand as a chain that runs as one operator; None where it is none.

    `gathered`: the lists around it.
    """
    if not isinstance(operand, Joint) or operand.operator == "or":
        return None
    links: list[Joint] = [operand]
    while isinstance(links[0].left, Joint) and _goes_on(links[0].left, operand, gathered):
        links.insert(0, links[0].left)
    chain = Chain((links[0].left, *(link.right for link in links)), tuple(links), gathered)
    if gathered is not None:
        return chain if _lists_are_plain(layout, chain, gathered) else None
    if not operand.context.spends:
        return None  # joins alone: fusion.py has them, also where they are no chain
    if operand.context.runs:
        # A composite that is yet to come may begin at any time; where that matters, stages ask it.
        plain = all(each.operator in FOLLOWS and not each.bound for each in links)
        plain = plain and not any(each.anchors or each.next for each in links)
        return chain if plain or not chain.composites else None
    follows = len(links) == 1 or all(each.operator in FOLLOWS for each in links)
    alone = not any(each.next and composite(each.right) for each in links)
    return chain if follows and alone else None


def _goes_on(left: Joint, joint: Joint, gathered: Gathered | None) -> bool:
    """Return True where two links belong to one chain."""
    if gathered is not None and not (left.context.spends or joint.context.spends):
        return True  # joins, whatever their contexts
    if left.operator != joint.operator or left.context != joint.context:
        return False
    # A suffix within a run ends it: its parts choose each for itself.
    if joint.context.runs:
        return not left.closed
    return joint.operator in FOLLOWS


def _lists_are_plain(layout: Layout, chain: Chain, gathered: Gathered) -> bool:
    """Return True where lists stand between atoms of different types that follow each other."""
    if gathered.trailing or chain.composites:
        return False
    if not all(
        isinstance(member.operand, Leaf) and member.after is not None and member.before is not None
        for member in gathered.members
    ):
        return False
    types = [leaf.event_type for leaf in layout.leaves]
    if len(set(types)) < len(types) or any(map(asks_further, chain.links)):
        return False
    if not all(link.operator in FOLLOWS for link in chain.links):
        return False
    context = chain.context
    if not context.spends:  # the operators know how far apart a list's gaps let two elements be
        return layout.root.within_ms is not None
    # Under `latest` nothing replaces what a bound has left behind, unless the run goes on with it.
    bound = context.replaces and any(link.bound is not None for link in chain.links)
    return not bound and not (context.runs and any(link.anchors for link in chain.links))


class SequencePlan:
    """A chain compiled; all partitions of an agent share it."""

    def __init__(self, builder: Builder, foresight: Foresight, chain: Chain) -> None:
        """`builder`: compiles the operands of the chain's layout."""
        self.chain = chain
        self.course = builder.course(chain.links) if chain.context.runs else None
        self.plans: Sequence[JointPlan] = []  # of the links, where these choose
        if self.course is not None:
            self.plans = self.course.plans
        elif chain.context.spends:
            self.plans = [builder.plan(link) for link in chain.links]
        course, plans = self.course, self.plans
        # An event may fill two positions, or be in two candidates for one.
        self.shared = any(plan.shared for plan in plans) or bool(chain.composites)
        # Of one event for two elements the later one comes first.
        sign = course.sign if course is not None else -1 if chain.context.spends else 1
        self.sign: Literal[-1, 1] = sign
        self.overtakes = sign < 0 and any(plan.shared for plan in plans) and not chain.composites
        self.counts = course is not None and course.asks  # `nth` counts what comes
        self.asks = self.shared or any(asks_further(plan.joint) for plan in plans)
        self.budget = builder.layout.budget
        self.lists: ListsPlan | None = None
        if chain.gathered is not None:
            lists = builder.lists_of(chain.gathered)
            self.lists = ListsPlan(chain.gathered, lists, self.budget)
        self.foresight = foresight
        self.timeless = chain.timeless
        places = [(atom_of(each) or each).low for each in chain.elements]
        self.number = {place: number for number, place in enumerate(places)}
        self.last = len(chain.links)  # the number of the last element
        self.joins: FusedPlan | None = None
        if not chain.context.spends:
            root = chain.links[-1]
            self.joins = FusedPlan(builder, foresight, ordered=True, consuming=False, root=root)
        self._changes = -1
        # Of each link: how long before now a left one ends, and a right one.
        self.keeps_ms: list[tuple[int | None, int | None]] = []
        self.look_ahead()

    def look_ahead(self) -> None:
        """Keep for as long as events still to come may reach back."""
        if self.joins is not None:
            self.joins.look_ahead()
            return
        if self._changes != self.foresight.durations.changes:
            self._changes = self.foresight.durations.changes
            most_ms = self.foresight.most_ms()
            self.keeps_ms = [keep_ms(link, most_ms) for link in self.chain.links]

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

    def longest_ms(self, element: int) -> int:
        """Return how long an event of an element that is still to come may last."""
        leaf = leaf_of(self.chain.elements[element])
        asked_ms = least(longest_asked(leaf.conditions), leaf.within_ms)
        longest_ms = self.foresight.longest_ms(leaf.event_type)
        return longest_ms if asked_ms is None else min(longest_ms, asked_ms)


class FusedRun(Fused):
    """One run at a time over a chain, under `first` or `latest` (course.py)."""

    __slots__ = ("_course", "_plan")

    def __init__(self, plan: SequencePlan, group: tuple[Any, ...], site: Site) -> None:
        assert plan.course is not None
        self._plan = plan
        self.watermark, self.beneath = WATERMARK_NONE, {}
        self._course = ChainRun(plan.course, group, site)

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        plan, number = self._plan, self._plan.number
        # Nothing that is spent comes again: what comes ends after the last step's watermark.
        candidates = [(number[place], item) for place, item in entries]
        if plan.overtakes:
            _put_later_first(candidates)
        if plan.counts:
            for element, item in candidates:
                self._course.arrived(element, [item])
        if (
            plan.chain.composites
        ):  # though it comes after the run, it may be made of what came before
            candidates = [each for each in candidates if not self._course.is_spent(each[1])]
        return self._course.take(candidates, watermark, self._ahead)

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
        return min(self.eldest(), self._plan.foresight.begins(self.watermark))

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
        states = [packed_operators(part, {}, watermark, self.beneath) for part in elements]
        return [watermark, *self._course.state(), [[[], watermark, state] for state in states]]

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark, *course, inboxes = state
        self._course.restore(course)
        for element, (_, _, beneath) in zip(self._plan.chain.elements, inboxes, strict=True):
            unpacked_operators(element, beneath, self.beneath)


def _put_later_first(entries: list[tuple[int, Occurrence]]) -> None:
    """Let of one event that fits two elements the later one come first, so that it advances."""
    begin = 0
    for stop in range(1, len(entries) + 1):
        if stop == len(entries) or entries[stop][1] is not entries[begin][1]:
            entries[begin:stop] = reversed(entries[begin:stop])
            begin = stop


class FusedPairs(Fused):
    """The links of a chain under `chronicle`, each taking the oldest left side not yet spent."""

    __slots__ = ("_pairs", "_plan")

    def __init__(self, plan: SequencePlan, group: tuple[Any, ...], site: Site) -> None:
        self._plan = plan
        self.watermark, self.beneath = WATERMARK_NONE, {}
        self._pairs = [OldestPairs(each, group, site, alone=not plan.shared) for each in plan.plans]

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        plan, pairs, made = self._plan, self._pairs, []
        number, last = plan.number, plan.last
        candidates = [(number[place], item) for place, item in entries]
        if plan.overtakes:
            _put_later_first(candidates)
        for element, item in candidates:
            link, side = (element - 1, RIGHT) if element else (0, LEFT)
            whole = pairs[link].take(side, item)
            while whole is not None:
                link += 1
                if link == last:
                    made.append(whole)
                    break
                whole = pairs[link].take(LEFT, whole)
                self._put_in_order(pairs[link].items[LEFT])
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
        for pairs, keeps_ms in zip(self._pairs, self._plan.keeps_ms, strict=True):
            oldest = [None if keep is None else watermark + 1 - keep for keep in keeps_ms]
            # Most steps find nothing to drop, which is seen here without a call.
            if self._plan.asks or any(
                items and end is not None and end_of(items[0]) < end
                for items, end in zip(pairs.items, oldest, strict=True)
            ):
                pairs.expire(oldest, begins, watermark)
        return self.held()

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        beneath = [each.begins() for each in self.beneath.values()]
        return min([self.eldest(), self._plan.foresight.begins(self.watermark), *beneath])

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [items for pairs in self._pairs for items in pairs.items]

    def held(self) -> int:
        """Return how many are held."""
        held = 0
        for pairs in self._pairs:
            left, right = pairs.items
            held += len(left) + len(right) + len(pairs.further.items)
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
        packed = packed_operators(elements[0], {}, watermark, self.beneath)
        for pairs, right in zip(self._pairs, elements[1:], strict=True):
            beneath = [packed, packed_operators(right, {}, watermark, self.beneath)]
            inboxes = [[[], watermark, state] for state in beneath]
            packed = [watermark, pairs.kept(), pairs.facts(), inboxes]
        return packed

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark = state[0]
        elements = self._plan.chain.elements
        for pairs, right in zip(reversed(self._pairs), reversed(elements), strict=False):
            _, kept, facts, inboxes = state
            waiting, _, state = inboxes[0]
            pairs.keep([[*kept[0], *waiting], *kept[1:]])
            if self._plan.shared:
                pairs.know(facts)
            unpacked_operators(right, inboxes[1][2], self.beneath)
        unpacked_operators(elements[0], state, self.beneath)
