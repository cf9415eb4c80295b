"""Operators over operators that all decide at once: groups of them as one, in one step for all.

Owns which patterns run so, and how events and matches go from those beneath to those above. Must
not know how an operator finds its matches (fusion.py, sequence.py), or lists their members
(members.py). Invariant: it finds what the operators one by one would find, no later than they
would, and its snapshots are theirs.

Joins and `without` next to each other are one operator, and so is a chain of like links whose
choices spend. What one of them finds comes to the next as if it were an event of its first place:

    (A then[recent] B) then[first] C then[first] (D or E)

is a run over three elements: a join, an atom and a join. Only the one on top may have to wait for
time: beneath, all that is found ends with the event that completes it, so that what is above gets
everything in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, sort_in_order
from broker.engine.pattern.fused.fusion import Entry, Fused, FusedPlan, decides_at_once
from broker.engine.pattern.fused.sequence import Chain, SequencePlan, chain_of
from broker.engine.pattern.layout.operands import Gathered, Leaf, Operand, operands
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.stage.base import Site
from broker.engine.pattern.stage.sides import in_order
from broker.engine.pattern.times.durations import Foresight
from broker.engine.runtime.budget import Budget

Part = tuple[Operand, "Plan"]  # what runs by itself


class TreePlan:
    """An operator, and those beneath it that run by themselves; all partitions share it."""

    def __init__(
        self,
        top: FusedPlan | SequencePlan,
        root: Operand,
        parts: Sequence[Part],
        budget: Budget,
    ) -> None:
        self.top = top
        self.parts = parts
        self.budget = budget
        self.timeless = isinstance(top, FusedPlan) or top.timeless
        self.sign: Literal[-1, 1] = 1 if isinstance(top, FusedPlan) else top.sign
        # Sides in the order of the text: atoms of the top one, and what runs beneath it.
        lows = {operand.low: number for number, (operand, _) in enumerate(parts)}
        leaves = [part for part in operands(root) if isinstance(part, Leaf)]
        inner = {leaf.low for leaf in leaves if any(leaf.lies_in(each) for each, _ in parts)}
        self.lows = sorted([*lows, *(leaf.low for leaf in leaves if leaf.low not in inner)])
        self.side_of = {low: side for side, low in enumerate(self.lows)}
        self.owner = {leaf.low: self._part_of(leaf) for leaf in leaves if leaf.low in inner}

    def _part_of(self, leaf: Leaf) -> int:
        owners = [leaf.lies_in(operand) for operand, _ in self.parts]
        return owners.index(True)

    def look_ahead(self) -> None:
        """Keep for as long as events still to come may reach back."""
        self.top.look_ahead()
        for _, plan in self.parts:
            plan.look_ahead()

    def open(self, group: tuple[Any, ...], site: Site) -> Fused:
        """Return what runs one partition."""
        return FusedTree(self, group, site)


Plan: TypeAlias = FusedPlan | SequencePlan | TreePlan


class FusedTree(Fused):
    """The operators of one partition."""

    __slots__ = ("_parts", "_plan", "_top")

    def __init__(self, plan: TreePlan, group: tuple[Any, ...], site: Site) -> None:
        self._plan = plan
        self.watermark, self.beneath = WATERMARK_NONE, {}
        self._top = plan.top.open(group, site)
        self._parts: list[Fused] = [each.open(group, site) for _, each in plan.parts]
        # By identity: operands of one text may be equal, and are different places.
        operands_of = [id(operand) for operand, _ in plan.parts]
        self._top.beneath = dict(zip(operands_of, self._parts, strict=True))
        self.beneath = {id(plan.top): self._top}  # all that is beneath the top it reaches by itself

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        plan, owner, side_of = self._plan, self._plan.owner, self._plan.side_of
        sides: list[list[Occurrence]] = [[] for _ in plan.lows]
        given: dict[int, list[Entry]] = {}
        for entry in entries:
            number = owner.get(entry[0])
            if number is None:  # an input of the top itself, which has no part beneath it
                sides[side_of[entry[0]]].append(entry[1])
            else:
                given.setdefault(number, []).append(entry)
        for number, inner in given.items():
            matches = self._parts[number].step(inner, watermark)
            # A part passes on in order of ends; those of one end come as their last event finds
            # them, and those above choose by the whole order.
            sort_in_order(matches, tied=plan.budget.tie)
            sides[side_of[plan.parts[number][0].low]] = matches
        # Mostly one side has something, and nothing is merged.
        merged = in_order(sides, plan.sign, plan.budget)
        if not merged and plan.timeless:
            return []
        lows = plan.lows
        return self._top.step([(lows[side], item) for side, item in merged], watermark)

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held."""
        self.watermark = watermark
        held = 0
        for part in self._parts:
            held += part.expire(watermark)
        return held + self._top.expire(watermark)

    def hold(self) -> int:
        """Return a time such that nothing passed on later ends by then."""
        return self._top.hold()

    def due(self) -> int | None:
        """Return the watermark that decides something by itself."""
        return self._top.due()

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min([self._top.begins(), *(part.begins() for part in self._parts)])

    def eldest(self) -> int:
        """Return when the eldest begins of what is held."""
        return min([self._top.eldest(), *(part.eldest() for part in self._parts)])

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [items for each in (self._top, *self._parts) for items in each.kept()]

    def held(self) -> int:
        """Return how many are held."""
        return self._top.held() + sum([part.held() for part in self._parts])

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went."""
        gone = 0
        for each in (self._top, *self._parts):
            gone += each.shed(count - gone) if gone < count else 0
        return gone

    def state(self) -> Any:
        """Return what is held as the operators one by one pack it."""
        # The top reaches its parts by `beneath`, so a snapshot has one form for both ways to run.
        return self._top.state()

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self._top.restore(state)


class Fusing:
    """Puts the operators of one layout together."""

    def __init__(self, builder: Builder, foresight: Foresight) -> None:
        self._layout, self._doubt = builder.layout, builder.doubt
        self._builder, self._foresight = builder, foresight

    def plan(self, *, ordered: bool) -> Plan | None:
        """Return what runs all of the pattern; None where it takes operators one by one.

        `ordered`: every step comes in order and none goes back.
        """
        root = self._layout.root
        if any(part.denied for part in operands(root)):
            return None
        if not isinstance(root, Gathered):
            return self._plan(root, ordered=ordered)
        if self._layout.last or self._layout.first or self._doubt:  # whole matches are chosen among
            return None
        chain = chain_of(self._layout, root.base, root)
        return None if chain is None else self._sequence(chain)

    def _plan(self, operand: Operand, *, ordered: bool, nested: bool = False) -> Plan | None:
        if decides_at_once(operand, self._doubt):
            inputs = list(self._inputs(operand))
            # One that stages must run takes all to stages: what they pass on may come late.
            parts = self._parts(inputs)
            if parts is None:
                return None
            top: FusedPlan | SequencePlan = FusedPlan(
                self._builder,
                self._foresight,
                ordered=ordered or bool(parts),
                consuming=False,
                root=operand,
                beneath=[each for each, _ in parts],
            )
        else:
            chain = None if self._doubt else chain_of(self._layout, operand)
            if chain is None or (nested and not chain.timeless):
                return None
            if self._layout.last or self._layout.first:
                return None
            parts = self._parts(chain.composites)
            if parts is None:
                return None
            top = self._sequence(chain)
        return TreePlan(top, operand, parts, self._layout.budget) if parts else top

    def _parts(self, inputs: Sequence[Operand]) -> list[Part] | None:
        """Return what runs by itself of the inputs of an operator; None: they cannot."""
        parts: list[Part] = []
        for each in inputs:
            if isinstance(each, Leaf):
                continue
            plan = self._plan(each, ordered=True, nested=True)
            if plan is None:
                return None
            parts.append((each, plan))
        return parts

    def _sequence(self, chain: Chain) -> SequencePlan:
        return SequencePlan(self._builder, self._foresight, chain)

    def _inputs(self, operand: Operand) -> Sequence[Operand]:
        """Return what lies directly beneath all joins that are one operator with this one."""
        if not decides_at_once(operand, self._doubt):
            return [operand]
        return [each for part in operand.parts for each in self._inputs(part)]
