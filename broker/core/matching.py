"""A pattern compiled: what all partitions of one agent share.

Owns the functions made from the layout, and how one partition takes a step. Must not know
watermarks, pending events or output. Invariant: a step finds each occurrence with a new event once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.core.event import Event
from broker.core.expressions import Writer, attribute_code
from broker.core.geometry import region_test
from broker.core.join import Join, JoinWriter
from broker.core.occurrence import sort_in_order
from broker.core.operands import FOLLOWS, Joint, Leaf, Operand, operands
from broker.core.pattern import Layout
from broker.core.reach import keep_ms
from broker.core.source import Constants, build
from broker.core.store import Store
from broker.core.verdicts import Doubt, spanning
from language.tree import Attribute, Call, Name

SORTED = 4  # candidates that each occurrence costs where they are put in order
Select = Callable[[Sequence[Event]], list[Event]]


class _LeafScope:
    """Names in a condition that one event decides."""

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """See expressions.Scope."""
        return None if isinstance(node, Call) else attribute_code("e", node.name)

    def event(self, name: str) -> str | None:  # noqa: ARG002
        """See expressions.EventScope: there is but one."""
        return "e"


def leaf_select(leaf: Leaf, doubt: Doubt | None = None) -> Select | None:
    """What the suffixes and conjuncts demand of a single event; None if nothing.

    The atom's own conditions are not here: the filterer has tested them. Where times are uncertain,
    an event that may lie `within` passes.
    """
    constants = Constants()
    tests = []
    for region in leaf.regions:
        field = "location" if region.shape == "path" else "position"
        tests.append(f"{constants.add(region_test(region))}(e.{field})")
    if leaf.within_ms is not None and doubt is not None:
        constants.helper("spanning", spanning)
        limit, known = constants.add(leaf.within_ms), constants.add(doubt)
        tests.append(f"spanning((e,), {limit}, {known})")
    elif leaf.within_ms is not None:
        tests.append(f"e.end - e.start <= {constants.add(leaf.within_ms)}")
    if leaf.spread_m is not None:
        tests.append("e.position is not None")
    writer = Writer(_LeafScope(), constants)
    tests += [writer.condition(conjunct) for conjunct in leaf.conjuncts]
    if not tests:
        return None
    text = f"def select(events):\n    return [e for e in events if {' and '.join(tests)}]\n"
    return build(text, "select", constants)


def key_function(keys: Sequence[str]) -> Callable[[Event], Any]:
    """The partition key of an event: None where a part is null, else a tuple."""
    constants = Constants()
    codes = [attribute_code("e", key)[0] for key in keys]
    guards = " and ".join(f"(k{at} := {code}) is not None" for at, code in enumerate(codes))
    parts = "".join(f"k{at}, " for at in range(len(codes)))
    text = f"def key(e):\n    return ({parts}) if {guards} else None\n"
    return build(text, "key", constants)


@dataclass(slots=True)
class JointProgram:
    """One operator, ready to run: where its inputs are and how long it keeps them."""

    joint: Joint
    join: Join
    left: int  # index of the left operand's new occurrences: leaves first, then joints
    right: int
    left_store: int
    right_store: int
    keep_left_ms: int | None
    keep_right_ms: int | None
    right_first: bool  # the right store takes the new ones before the join
    stores_right: bool
    latest_within_ms: int | None  # before so long ago only the latest can still be chosen


class Program:
    """The compiled pattern."""

    def __init__(
        self, layout: Layout, keys: tuple[str, ...], *, ordered: bool, duration_max_ms: int
    ) -> None:
        """Compile; `ordered` says that every step comes in order and none goes back."""
        self.layout = layout
        self.leaf_count = len(layout.leaves)
        self.selects = [leaf_select(leaf) for leaf in layout.leaves]
        self.key = key_function(keys) if keys else None
        self._sorted = ordered
        self.joints: list[JointProgram] = []
        self.store_count = 0
        indexes: dict[int, int] = {id(leaf): leaf.low for leaf in layout.leaves}
        for joint in layout.joints:
            indexes[id(joint)] = self.leaf_count + len(self.joints)
            join = JoinWriter(layout, joint, keys, ordered).build()
            self.joints.append(self._joint(joint, join, indexes, ordered))
        self._latest_only = True
        self.keep(duration_max_ms)

    def keep(self, duration_max_ms: int) -> None:
        """Events that are still to come last no longer than that: what is kept follows from it."""
        for program in self.joints:
            joint = program.joint
            program.keep_left_ms, program.keep_right_ms = keep_ms(joint, duration_max_ms)
            if self._latest_only and _latest_only(joint):
                program.latest_within_ms = duration_max_ms if joint.operator in FOLLOWS else 0
        self._kept = self._keeps()

    def asks_durations(self) -> bool:
        """Whether what is kept depends on how long events may last."""
        return any(
            keep_ms(program.joint, 0) != keep_ms(program.joint, 1) or _latest_only(program.joint)
            for program in self.joints
        )

    def _joint(
        self, joint: Joint, join: Join, indexes: dict[int, int], ordered: bool
    ) -> JointProgram:
        left_store, right_store = self.store_count, self.store_count + 1
        if joint.operator == "or":
            left_store = right_store = -1
        else:
            self.store_count += 2
        recent_either = joint.operator not in FOLLOWS and joint.context == "recent"
        return JointProgram(
            joint,
            join,
            indexes[id(joint.left)],
            indexes[id(joint.right)],
            left_store,
            right_store,
            None,
            None,
            right_first=recent_either,
            stores_right=not (ordered and joint.operator in FOLLOWS),
            latest_within_ms=None,
        )

    def step(self, new: list[Any], stores: list[Store], group: tuple[Any, ...]) -> list[Any]:
        """The occurrences of the whole pattern that the new events complete.

        `new` holds the new events of each leaf (sorted where the agent is ordered).
        """
        found = new
        for program in self.joints:
            left, right = found[program.left], found[program.right]
            if not left and not right:
                found.append(())
                continue
            found.append(self._run(program, left, right, stores, group))
        return list(found[-1])

    def _run(
        self,
        program: JointProgram,
        left: list[Any],
        right: list[Any],
        stores: list[Store],
        group: tuple[Any, ...],
    ) -> list[Any]:
        if program.left_store < 0:
            made = program.join(left, right, None, None, group)
        else:
            left_store, right_store = stores[program.left_store], stores[program.right_store]
            if left:
                _take(left_store, left, composite=program.left >= self.leaf_count)
            if right and program.stores_right and program.right_first:
                _take(right_store, right, composite=program.right >= self.leaf_count)
            made = program.join(left, right, left_store, right_store, group)
            if right and program.stores_right and not program.right_first:
                _take(right_store, right, composite=program.right >= self.leaf_count)
        if self._sorted and len(made) > 1:
            self.layout.budget.spend(SORTED * len(made))
            sort_in_order(made, tied=self.layout.budget.tie)
        return made

    def keeps_latest_only(self, *, allowed: bool) -> None:
        """Say whether older candidates may go where only the latest is ever chosen."""
        self._latest_only = allowed
        if not allowed:
            for program in self.joints:
                program.latest_within_ms = None
            self._kept = self._keeps()

    def horizon_ms(self) -> int | None:
        """How long the store that keeps longest keeps; None if nothing is ever dropped by age."""
        kept = [
            keep
            for program in self.joints
            for keep in (program.keep_left_ms, program.keep_right_ms, program.latest_within_ms)
            if keep is not None
        ]
        return max(kept, default=None)

    def reach_ms(self) -> int | None:
        """How far before the watermark an event may lie and still be in an occurrence to come."""
        within_ms = self.layout.root.within_ms
        if within_ms is not None:
            return within_ms
        reach = 0
        for program in self.joints:
            if program.left_store < 0:
                continue
            if program.keep_left_ms is None or program.keep_right_ms is None:
                return None
            reach += max(program.keep_left_ms, program.keep_right_ms)
        return reach

    def expire(self, stores: list[Store], watermark: int) -> None:
        """Drop what no event after the watermark can join."""
        for at, keep, latest_within_ms in self._kept:
            store = stores[at]
            ends = store.ends
            if not ends:
                continue
            if keep is not None:
                if ends[0] <= watermark - keep:
                    store.expire(watermark + 1 - keep)
            elif latest_within_ms is not None:
                store.keep_latest(watermark + 1 - latest_within_ms)

    def _keeps(self) -> list[tuple[int, int | None, int | None]]:
        """What is kept how long: (store, for so long, or the latest of so long ago)."""
        return [
            (at, keep, program.latest_within_ms)
            for program in self.joints
            for at, keep in (
                (program.left_store, program.keep_left_ms),
                (program.right_store, program.keep_right_ms),
            )
            if at >= 0 and (keep is not None or program.latest_within_ms is not None)
        ]


def _latest_only(joint: Joint) -> bool:
    """Whether a partner's choice never looks past the latest candidate that precedes it."""
    if joint.context != "recent" or joint.operator not in ("and", *FOLLOWS):
        return False
    if joint.operator in FOLLOWS and not isinstance(joint.right, Leaf):
        return False  # what begins long before it ends may have to look further back
    tested = joint.conjuncts or joint.anchors or joint.bound
    limited = joint.spread_m is not None or joint.within_ms is not None
    return not tested and not limited and not _types(joint.left) & _types(joint.right)


def _types(operand: Operand) -> set[str]:
    return {one.event_type for one in operands(operand) if isinstance(one, Leaf)}


def _take(store: Store, new: list[Any], *, composite: bool) -> None:
    if composite:
        store.extend(new)
    else:
        store.extend_leaves(new)
