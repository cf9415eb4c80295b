"""Plain operators under `unrestricted` and `recent` as one operator: all of a pattern in one step.

Owns the stores of all operators of one partition, and how long these keep what. Must not know how
partners are found (join.py), nor which occurrences are reported. Invariant: a step finds each
occurrence with a new event once, and what it holds is what the operators one by one would hold.

A tree of stages costs some ten calls an operator for each batch of a group. Operators that wait for
nothing beneath them need none of that: each takes what the one before it has just made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence, events_of, holds_any, sort_in_order
from broker.engine.pattern.base import start_of
from broker.engine.pattern.durations import Foresight
from broker.engine.pattern.join import Join, JoinWriter
from broker.engine.pattern.operands import (
    Gathered,
    Joint,
    Leaf,
    Operand,
    Padded,
    composite,
    operands,
)
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.relations import PARTNER_SEARCHES, takes_newest_only
from broker.engine.pattern.store import Store
from broker.engine.pattern.timing import keep_ms
from language.relations import FOLLOWS

SORTED = 4  # candidates that each occurrence costs where they are put in order
PURGING = 2  # that each costs that is held, where events are taken out of it

Entry = tuple[int, Event]  # the place of its atom, and the event


@dataclass(slots=True)
class FusedJoint:
    """One operator, ready to run: its inputs, by number, and how long it keeps them."""

    joint: Joint
    join: Join
    left: int  # index of the left operand's new occurrences: leaves first, then joints
    right: int
    # Stores are numbered over the whole pattern, so that a partition is one flat list of them.
    left_store: int  # -1 of `or`, which keeps nothing
    right_store: int
    keep_left_ms: int | None
    keep_right_ms: int | None
    right_first: bool  # the right store takes the new ones before the join
    stores_right: bool
    latest_within_ms: int | None  # before so long ago only the latest can still be chosen
    left_composite: bool
    right_composite: bool


class FusedPlan:
    """The operators of one pattern, compiled; all partitions of an agent share it."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        foresight: Foresight,
        *,
        ordered: bool,
        consuming: bool,
    ) -> None:
        """Compile; `ordered` says that every step comes in order and none goes back."""
        self.layout = layout
        self.leaf_count = len(layout.leaves)
        self.joints: list[FusedJoint] = []
        self.store_count = 0
        self._sorted = ordered
        # Where events are consumed an older candidate may come to be the latest.
        self._latest_only = not consuming
        self._foresight = foresight
        self.horizon_ms: int | None = None  # the longest that a store keeps
        self._kept: list[tuple[int, int | None, int | None]] = []
        # Asked again only when a type has begun to last, or lasts longer than it did.
        self._changes = -1  # of durations, when they were asked how long is kept
        # `new` in `step` holds leaves first and then each operator's result, bottom-up: one list
        # stands for the tree, and nothing is walked.
        indexes: dict[int, int] = {id(leaf): leaf.low for leaf in layout.leaves}
        for part in operands(layout.root):
            if isinstance(part, Padded):  # beside a list; what comes there has its empty places
                indexes[id(part)] = part.operand.low
        for joint in layout.joints:
            indexes[id(joint)] = self.leaf_count + len(self.joints)
            join = JoinWriter(layout, joint, keys, ordered).build()
            self.joints.append(self._joint(joint, join, indexes))
        # Where each may choose the latest of the other, instants go one by one.
        self.stepwise = any(fused.right_first for fused in self.joints)
        # With the limit first, as `horizon_ms` must hold whatever comes; `look_ahead` shortens it.
        self._keep(foresight.durations.limit_ms)

    def look_ahead(self) -> None:
        """Keep for as long as events still to come may reach back."""
        if self._changes != self._foresight.durations.changes:
            self._changes = self._foresight.durations.changes
            self._keep(self._foresight.most_ms())

    def _keep(self, duration_max_ms: int) -> None:
        """Keep what events still to come may join that last no longer than that."""
        for fused in self.joints:
            joint = fused.joint
            fused.keep_left_ms, fused.keep_right_ms = keep_ms(joint, duration_max_ms)
            if self._latest_only and _latest_only(joint):
                fused.latest_within_ms = duration_max_ms if joint.operator in FOLLOWS else 0
        self._kept = self._keeps()
        self.horizon_ms = self._horizon_ms()

    def asks_durations(self) -> bool:
        """Return True where what is kept depends on how long events may last."""
        return any(
            # Two durations that give one answer: then no duration matters.
            keep_ms(fused.joint, 0) != keep_ms(fused.joint, 1) or _latest_only(fused.joint)
            for fused in self.joints
        )

    def _joint(self, joint: Joint, join: Join, indexes: dict[int, int]) -> FusedJoint:
        left_store, right_store = self.store_count, self.store_count + 1
        if joint.operator == "or":
            left_store = right_store = -1
        else:
            self.store_count += 2
        return FusedJoint(
            joint,
            join,
            indexes[id(joint.left)],
            indexes[id(joint.right)],
            left_store,
            right_store,
            None,
            None,
            right_first=joint.operator not in (*FOLLOWS, "or")
            and joint.context.name in PARTNER_SEARCHES,
            stores_right=not (self._sorted and joint.operator in FOLLOWS),
            latest_within_ms=None,
            left_composite=composite(joint.left),
            right_composite=composite(joint.right),
        )

    # --- steps ---------------------------------------------------------------------------

    def by_place(self, entries: Sequence[Entry]) -> list[Any]:
        """Return the events of each leaf."""
        # One list a leaf and a step, not a leaf and an event: batches are what keeps this cheap.
        new: list[Any] = [[] for _ in range(self.leaf_count)]
        for place, event in entries:
            new[place].append(event)
        return new

    def step(self, new: list[Any], stores: list[Store], group: tuple[Any, ...]) -> list[Any]:
        """Return the occurrences of the whole pattern that the new events complete.

        `new` holds the new events of each leaf (sorted where steps come in order).
        """
        for fused in self.joints:
            left, right = new[fused.left], new[fused.right]
            if left or right:
                new.append(self._run(fused, left, right, stores, group))
            else:
                # An operator without new input has none for the one above, and its join is not
                # called.
                new.append(())
        return list(new[-1])

    def _run(
        self,
        fused: FusedJoint,
        left: list[Any],
        right: list[Any],
        stores: list[Store],
        group: tuple[Any, ...],
    ) -> list[Any]:
        if fused.left_store < 0:
            made = fused.join(left, right, None, None, group)
        else:
            left_store, right_store = stores[fused.left_store], stores[fused.right_store]
            if left:
                _take(left_store, left, composite=fused.left_composite)
            # Under `recent` both look among all that is there, the newcomers included.
            if right and fused.stores_right and fused.right_first:
                _take(right_store, right, composite=fused.right_composite)
            made = fused.join(left, right, left_store, right_store, group)
            if right and fused.stores_right and not fused.right_first:
                _take(right_store, right, composite=fused.right_composite)
        # Those above rely on order; where results leave at once nobody does, and nothing is sorted.
        if self._sorted and len(made) > 1:
            self.layout.budget.spend(SORTED * len(made))
            sort_in_order(made, tied=self.layout.budget.tie)
        return made

    # --- how long ------------------------------------------------------------------------

    def _horizon_ms(self) -> int | None:
        """The longest that a store keeps; None if nothing is ever dropped by age."""
        kept = [
            keep
            for fused in self.joints
            for keep in (fused.keep_left_ms, fused.keep_right_ms, fused.latest_within_ms)
            if keep is not None
        ]
        return max(kept, default=None)

    def reach_ms(self) -> int | None:
        """Return how far before the watermark an event of an occurrence to come may lie."""
        within_ms = self.layout.root.within_ms
        if within_ms is not None:
            return within_ms
        reach = 0
        for fused in self.joints:
            if fused.left_store < 0:
                continue
            if fused.keep_left_ms is None or fused.keep_right_ms is None:
                return None
            # Nested operators may use up each one's time one after the other.
            reach += max(fused.keep_left_ms, fused.keep_right_ms)
        return reach

    def open(self, group: tuple[Any, ...]) -> Fused:
        """Return what runs one partition."""
        return FusedStage(self, group)

    def begins(self, watermark: int) -> int:
        """Return when events still to come begin at the earliest."""
        return watermark + 1 - self._foresight.most_ms()

    def expire(self, stores: list[Store], watermark: int) -> None:
        """Drop what no event after the watermark can join."""
        for number, keep, latest_within_ms in self._kept:
            store = stores[number]
            ends = store.ends
            if not ends:
                continue
            if keep is not None:
                # Looked at before the call: with each step there are as many stores to ask as
                # operators, and mostly nothing is due.
                if ends[0] <= watermark - keep:
                    store.expire(watermark + 1 - keep)
            elif latest_within_ms is not None:
                store.keep_latest(watermark + 1 - latest_within_ms)

    def _keeps(self) -> list[tuple[int, int | None, int | None]]:
        """The stores that forget: (store, for so long, or the latest of so long ago)."""
        return [
            (number, keep, fused.latest_within_ms)
            for fused in self.joints
            for number, keep in (
                (fused.left_store, fused.keep_left_ms),
                (fused.right_store, fused.keep_right_ms),
            )
            if number >= 0 and (keep is not None or fused.latest_within_ms is not None)
        ]


class Fused:
    """One operator for a whole pattern, in one partition; the agent gives it events in order.

    Nothing beneath it holds anything up, so a step takes all that there is.
    """

    __slots__ = ("watermark",)
    watermark: int

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Return what the events complete, none of which comes after the watermark."""
        raise NotImplementedError

    def expire(self, watermark: int) -> int:
        """Drop what no event after the watermark can join; return how many are held."""
        raise NotImplementedError

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        raise NotImplementedError

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        raise NotImplementedError

    def shed(self, count: int) -> int:
        """Drop up to so many of the oldest; return how many went."""
        raise NotImplementedError

    def state(self) -> Any:
        """Return what is held, in the form of the operators one by one."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Take that up again."""
        raise NotImplementedError

    def hold(self) -> int:
        """Hold back no time: nothing is open (see base.Stage)."""
        return WATERMARK_END

    def due(self) -> int | None:
        """Be due at no watermark: events alone decide."""
        return None

    def eldest(self) -> int:
        """Return when the eldest begins of what is held."""
        starts = [start_of(item) for items in self.kept() for item in items]
        return min(starts, default=WATERMARK_END)

    def origin(self) -> int:
        """Return a time before which nothing that is held, or is yet to come, begins."""
        return self.begins()

    def held(self) -> int:
        """Return how many matches are held."""
        held = 0
        for items in self.kept():  # at each step: a loop is the least of ways
            held += len(items)
        return held

    def idle(self) -> bool:
        """Return True where a new one would know as much."""
        return not self.held()

    def forget(self, gone: set[int]) -> None:  # noqa: ARG002
        """Take consumed events (by identity) out of all that is held."""
        raise AssertionError("consumption goes through the events again")

    def members(self) -> Iterator[Entry]:
        """Yield each event that is held, with its place; as often as it is held."""
        yield from ()


class FusedStage(Fused):
    """All joins of one partition as one."""

    __slots__ = ("_group", "_plan", "_stores")

    def __init__(self, plan: FusedPlan, group: tuple[Any, ...]) -> None:
        self._plan = plan
        self._group = group
        self._stores = [Store() for _ in range(plan.store_count)]
        self.watermark = WATERMARK_NONE

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:  # noqa: ARG002
        """Take what comes and return what it completes."""
        plan, stores, group = self._plan, self._stores, self._group
        # Within one instant the order decides who is the latest, so each instant is a step of its
        # own.
        if plan.stepwise:
            return [
                occurrence
                for instant in _instants(entries)
                for occurrence in plan.step(plan.by_place(instant), stores, group)
            ]
        return plan.step(plan.by_place(entries), stores, group)

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held."""
        self.watermark = watermark
        self._plan.expire(self._stores, watermark)
        return self.held()

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min(self.eldest(), self._plan.begins(self.watermark))

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [store.items for store in self._stores]

    def held(self) -> int:
        """Return how many are held."""
        held = 0
        for store in self._stores:
            held += len(store.ends)
        return held

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went.

        Of the fullest store first the oldest.
        """
        excess = count
        # The fullest first: a limit is mostly broken by one operand that is much more frequent.
        for store in sorted(self._stores, key=lambda store: -len(store.ends)):
            part = min(excess, len(store.ends))
            store.drop_oldest(part)
            excess -= part
        return count - excess

    def forget(self, gone: set[int]) -> None:
        """Take consumed events out."""
        self._plan.layout.budget.spend(PURGING * self.held())
        for store in self._stores:
            # By identity: ids may repeat with another end.
            kept = [item for item in store.items if not holds_any(item, gone)]
            if len(kept) < len(store.items):
                store.hold(kept)

    def members(self) -> Iterator[Entry]:
        """Yield each event that is held, with its place."""
        for fused in self._plan.joints:
            if fused.left_store < 0:
                continue
            sides = (fused.left_store, fused.right_store)
            for side, number in zip(fused.joint.parts, sides, strict=True):
                for item in self._stores[number].items:
                    yield from enumerate(events_of(item), side.low)

    # --- snapshots: what it holds, as the stages of its operators would say it ------------

    def state(self) -> Any:
        """Return what is held, as events, occurrences and plain values in lists."""
        stores = [store.items for store in self._stores]
        return packed_stores(self._plan.layout, stores, self.watermark)

    def restore(self, state: Any) -> None:
        """Take that up again."""
        stores = unpacked_stores(self._plan.layout, state)
        for store, items in zip(self._stores, stores, strict=True):
            store.hold(items)


def packed_stores(layout: Layout, stores: Sequence[list[Any]], watermark: int) -> Any:
    """Return two stores of each operator, bottom-up, in the form of the snapshots of stages.

    So an agent whose operators run one by one takes up the same.
    """
    numbered = iter(stores)
    kept = {
        id(joint): [[], []] if joint.operator == "or" else [next(numbered), next(numbered)]
        for joint in layout.joints
    }

    def packed(operand: Operand) -> Any:
        if isinstance(operand, Padded):
            return [watermark, [], [], [[[], watermark, [watermark]]]]
        if not isinstance(operand, Joint):
            return [watermark]
        # Nothing waits in a fused operator, so the inboxes of the general form are empty.
        inboxes = [[[], watermark, packed(part)] for part in operand.parts]
        return [watermark, [*kept[id(operand)], []], [], inboxes]

    return packed(_joined(layout))


def unpacked_stores(layout: Layout, state: Any) -> list[list[Occurrence]]:
    """Return the stores that `packed_stores` was given."""
    kept: dict[int, list[list[Occurrence]]] = {}

    def unpack(operand: Operand, packed: Any) -> None:
        if isinstance(operand, Joint):
            _, lists, _, inboxes = packed
            kept[id(operand)] = lists[:2]
            for part, (_, _, beneath) in zip(operand.parts, inboxes, strict=True):
                unpack(part, beneath)

    unpack(_joined(layout), state)
    return [items for joint in layout.joints if joint.operator != "or" for items in kept[id(joint)]]


def _joined(layout: Layout) -> Operand:
    """Return what the joins make: all of a pattern but its lists."""
    root = layout.root
    return root.base if isinstance(root, Gathered) else root


def _instants(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return entries in order as runs of one end."""
    runs: list[list[Entry]] = []
    end: int | None = None
    for entry in entries:
        if entry[1].end != end:
            end = entry[1].end
            runs.append([])
        runs[-1].append(entry)
    return runs


def _latest_only(joint: Joint) -> bool:
    """True where a partner's choice never looks past the latest candidate before it."""
    if not takes_newest_only(joint.context) or joint.operator not in ("and", *FOLLOWS):
        return False
    if joint.operator in FOLLOWS and not isinstance(joint.right, Leaf):
        return False  # what begins long before it ends may have to look further back
    tested = joint.conjuncts or joint.anchors or joint.bound
    limited = joint.spread_m is not None or joint.within_ms is not None
    return not tested and not limited and not _types(joint.left) & _types(joint.right)


def _types(operand: Operand) -> set[str]:
    return {leaf.event_type for leaf in operands(operand) if isinstance(leaf, Leaf)}


def _take(store: Store, new: list[Any], *, composite: bool) -> None:
    if composite:
        store.extend(new)
    else:
        store.extend_leaves(new)
