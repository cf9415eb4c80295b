"""What may travel correlated: the decision, case by case.

Owns which places of a pattern may hold back each other's events. Must not know how keys and
operators look. Invariant: an event in an occurrence of a part travels if that part chooses among
them, and all events of a place travel wherever it matters that they are there, in none or not.

An occurrence of an unrestricted operator needs its operands near each other, and nothing else about
other events matters to it. A pair chooses under `recent`, `chronicle` and `first` among pairs that
could be chosen, and there an event of no such pair is as good as none. All else counts events
(`nth`, lists, windows), denies them (`without`, `absent`), or lets one that comes to nothing take
the place of another (`latest`, longer chains under a context): their events travel one by one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import product
from math import inf, nextafter

from broker.engine.pattern.layout.operands import (
    Gathered,
    Joint,
    Leaf,
    Negation,
    Operand,
    Padded,
    Silence,
    operands,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.times.timing import Timing
from broker.network.operators import reasons
from broker.network.operators.times import Times

WAYS_MAX = 8  # of a pattern in which each place may stay empty: one operator each


@dataclass(frozen=True, slots=True)
class Group:
    """Places whose events travel if they are near those of the other places, and `why`.

    Distances are less than `delta_t_ms` and `delta_l` (None: any), see routing.operator.Operator.
    """

    mandatory: tuple[Leaf, ...]  # all of these have to be there
    optional: tuple[Leaf, ...]  # these may be
    delta_t_ms: int  # of the whole group
    delta_l: float | None  # None: wherever
    why: str  # for people


@dataclass(slots=True)
class Travel:
    """All that travels for one case.

    `alone`: places of which all events travel, each with why they do; `whole`: types of which all
    do, whatever they say, because of what `why_whole` tells.
    """

    groups: list[Group] = field(default_factory=list)  # each asks for its events together
    alone: list[tuple[Leaf, str]] = field(default_factory=list)  # with the reason
    whole: tuple[str, ...] = ()  # types of which every event counts
    why_whole: str = ""  # one reason for all of them


def decide(
    layout: Layout,
    times: Times,
    here: Collection[str],
    made: Collection[str],
    *,
    partitioned: bool,
) -> Travel:
    """Return what travels for a pattern.

    Of the types that definitions make at the home (`here`) the events are there already; how long
    the events of those `made` anywhere last nobody knows.
    `partitioned`: with `group by` a silence begins in each partition with its first event.
    """
    parts = list(operands(layout.root))
    contiguous = any(isinstance(part, Joint) and part.next for part in parts)
    if contiguous or (partitioned and any(isinstance(part, Silence) for part in parts)):
        named = (leaf.event_type for leaf in layout.leaves)
        whole = tuple(dict.fromkeys(name for name in named if name not in here))
        return Travel(whole=whole, why_whole=reasons.NEXT if contiguous else reasons.BEGINS)
    decider = _Decider(layout, times, here, made)
    decider.place(layout.root, reasons.ALL_ALONE, root=True)
    return decider.travel


@dataclass(slots=True)
class _Members:
    """The places beneath an unrestricted operator, and what is to be decided by itself.

    `apart`: operands whose occurrences must be what they are; `single`: those whose events must,
    and why.
    """

    mandatory: list[Leaf] = field(default_factory=list)  # of a group that is being made
    optional: list[Leaf] = field(default_factory=list)
    apart: list[Operand] = field(default_factory=list)
    single: list[tuple[Operand, str]] = field(default_factory=list)


class _Decider:
    def __init__(
        self, layout: Layout, times: Times, here: Collection[str], made: Collection[str]
    ) -> None:
        self.travel = Travel()
        self._here = here
        self._delta_t_ms_max = times.delta_t_ms_max
        self._timing = Timing(times.known(made))  # how far apart the operands' events may be
        self._chain = _plain_chain(layout)

    # --- operands whose occurrences must be what they are -----------------------------------

    def place(self, operand: Operand, why: str, *, root: bool = False) -> None:
        """Decide what travels for an operand of which all occurrences are needed.

        `why` its events travel one by one, if it is an event.
        """
        if isinstance(operand, Leaf):
            self._alone(operand, why)
        elif isinstance(operand, Negation):
            self._all_alone(operand.right, reasons.WITHOUT)
            self.place(operand.left, why, root=root)
        elif isinstance(operand, Padded):
            self.place(operand.operand, why)
        elif isinstance(operand, Joint):
            self._joint(operand, root=root)
        elif isinstance(operand, Gathered):
            if not self._together(operand):
                self.place(operand.base, reasons.LISTED)
                for member in operand.members:
                    self._all_alone(member.operand, reasons.LISTED)
        else:
            self._all_alone(operand, reasons.ABSENT if _silent(operand) else reasons.COUNTED)

    def _joint(self, joint: Joint, *, root: bool) -> None:
        if joint.operator == "or":
            self.place(joint.left, reasons.SIDE)
            self.place(joint.right, reasons.SIDE)
        elif joint.context.chooses:
            self._chosen(joint, root=root)
        elif not self._together(joint):
            self._apart(joint, self._why_apart(joint))

    def _apart(self, joint: Joint, why: str) -> None:
        self.place(joint.left, why)
        if joint.nth is None:
            self.place(joint.right, why)
        else:
            self._all_alone(joint.right, reasons.COUNTED)

    def _why_apart(self, operand: Operand) -> str:
        """Return why what is beneath an unrestricted operator may not travel correlated."""
        if self._timing.span_ms(operand) is None:
            return reasons.UNBOUNDED
        return reasons.MANY_WAYS if self._span(operand) is not None else reasons.LONG

    def _chosen(self, joint: Joint, *, root: bool) -> None:
        """An operator with a context: only a whole pattern of two places travels correlated."""
        span_ms = self._span(joint)
        pair = (joint.left, joint.right)
        if root and joint.context.pairwise and joint.nth is None and span_ms is not None:
            leaves = [leaf for leaf in pair if isinstance(leaf, Leaf) and self._comes(leaf)]
            if len(leaves) == len(pair):
                self._group(joint, leaves, [], span_ms, reasons.PAIR.format(joint.context.name))
                return
        why = reasons.CHOSEN.format(joint.context.name)
        if root and joint.context.pairwise and span_ms is None:
            why = self._why_apart(joint)
        if joint.context.runs:
            self._all_alone(joint, why)
        else:  # it chooses among what its operands report
            self._apart(joint, why)

    def _together(self, operand: Joint | Gathered) -> bool:
        """Let what is beneath an unrestricted operator travel correlated; False: it may not."""
        span_ms = self._span(operand)
        if span_ms is None:
            return False
        members = self._members(operand)
        ways = [(members.mandatory, members.optional)]
        if not members.mandatory:
            ways = [(sides, []) for sides in self._ways(operand)]
        if len(ways) > WAYS_MAX or (operand is self._chain and not members.mandatory):
            return False
        for mandatory, optional in ways:
            if len(mandatory) + len(optional) > 1:
                self._group(operand, mandatory, optional, span_ms, reasons.UNRESTRICTED)
            else:
                for leaf in mandatory:
                    self._alone(leaf, reasons.NO_PARTNER)
        for operand_apart in members.apart:
            self.place(operand_apart, reasons.ALL_ALONE)
        for single, why in members.single:
            self._all_alone(single, why)
        return True

    # --- beneath unrestricted operators -------------------------------------------------------

    def _members(self, operand: Operand) -> _Members:
        members = _Members()
        self._gather(operand, members, members.mandatory)
        return members

    def _gather(self, operand: Operand, members: _Members, into: list[Leaf]) -> None:
        """Add the places beneath; `into` is the list of those that are mandatory, or not."""
        if isinstance(operand, Leaf):
            if self._comes(operand):
                into.append(operand)
        elif isinstance(operand, Negation):
            members.single.append((operand.right, reasons.WITHOUT))
            self._gather(operand.left, members, into)
        elif isinstance(operand, Padded):
            self._gather(operand.operand, members, into)
        elif isinstance(operand, Gathered):
            self._gather(operand.base, members, into)
            for member in operand.members:
                if operand is self._chain:
                    sides = members.optional if member.optional else into
                    self._gather(member.operand, members, sides)
                else:
                    members.single.append((member.operand, reasons.LISTED))
        elif isinstance(operand, Joint) and not operand.context.chooses:
            sides = members.optional if operand.operator == "or" else into
            self._gather(operand.left, members, sides)
            if operand.nth is None:
                self._gather(operand.right, members, sides)
            else:
                members.single.append((operand.right, reasons.COUNTED))
        elif isinstance(operand, Joint):
            members.apart.append(operand)
        else:
            why = reasons.ABSENT if _silent(operand) else reasons.COUNTED
            members.single.append((operand, why))

    def _ways(self, operand: Operand) -> list[list[Leaf]]:
        """The places of each way to choose sides of every `or`; more than WAYS_MAX are not told."""
        if isinstance(operand, Leaf):
            return [[operand] if self._comes(operand) else []]
        if isinstance(operand, Negation):
            return self._ways(operand.left)
        if isinstance(operand, Padded):
            return self._ways(operand.operand)
        if not isinstance(operand, Joint) or operand.context.chooses:
            return [[]] if not isinstance(operand, Gathered) else self._ways(operand.base)
        left, right = self._ways(operand.left), self._ways(operand.right)
        if operand.nth is not None:
            return left
        if operand.operator == "or":
            return (left + right)[: WAYS_MAX + 1]
        return [a + b for a, b in product(left, right)][: WAYS_MAX + 1]

    # --- what comes out -----------------------------------------------------------------------

    def _span(self, operand: Operand) -> int | None:
        span_ms = self._timing.span_ms(operand)
        return None if span_ms is None or span_ms > self._delta_t_ms_max else span_ms

    def _group(
        self, operand: Operand, mandatory: list[Leaf], optional: list[Leaf], span_ms: int, why: str
    ) -> None:
        """The ends of `within` and `spread` belong to them; those of δt and δl do not."""
        delta_l = None if operand.spread_m is None else nextafter(operand.spread_m, inf)
        group = Group(tuple(mandatory), tuple(optional), span_ms + 1, delta_l, why)
        self.travel.groups.append(group)

    def _comes(self, leaf: Leaf) -> bool:
        """Return whether its events come from other brokers at all."""
        return leaf.event_type not in self._here

    def _alone(self, leaf: Leaf, why: str) -> None:
        if self._comes(leaf):
            self.travel.alone.append((leaf, why))

    def _all_alone(self, operand: Operand, why: str) -> None:
        for part in operands(operand):
            if isinstance(part, Leaf):
                self._alone(part, why)


def _silent(operand: Operand) -> bool:
    return any(isinstance(part, Silence) for part in operands(operand))


def _plain_chain(layout: Layout) -> Gathered | None:
    """The chain whose one list may travel correlated: the whole pattern, and nothing chooses.

    Suffixes further out, and other lists, judge the list as a whole, so does `spread`: then a
    member counts that is in no occurrence.
    """
    root = layout.root
    while isinstance(root, Negation):
        root = root.left
    if not isinstance(root, Gathered) or root.spread_m is not None or len(root.members) > 1:
        return None
    chosen = any(joint.context.chooses for joint in layout.joints)
    return None if chosen or not isinstance(root.members[0].operand, Leaf) else root
