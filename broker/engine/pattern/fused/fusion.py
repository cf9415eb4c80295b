"""Plain operators under `unrestricted` and `recent` as one operator: all of a pattern in one step.

Owns the stores of all operators of one partition, and how long these keep what. Must not know how
partners are found (join.py), nor which occurrences are reported. Invariant: a step finds each
occurrence with a new event once, and what it holds is what the operators one by one would hold.

`P without Q` within P itself is one of them: all that may fall into a P has come when that has.

A tree of stages costs some ten calls an operator for each batch of a group. Operators that wait for
nothing beneath them need none of that: each takes what the one before it has just made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import (
    Occurrence,
    end_of,
    events_of,
    holds_any,
    sort_in_order,
    start_of,
)
from broker.engine.event.source import Constants, build
from broker.engine.pattern.fused.join_snapshot import packed_operators, unpacked_operators
from broker.engine.pattern.layout.operands import (
    Joint,
    Leaf,
    Negation,
    Operand,
    Padded,
    composite,
    operands,
    types_of,
)
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.operators.join import Join, JoinWriter
from broker.engine.pattern.operators.joint import Further, asks_further
from broker.engine.pattern.operators.negation import DeniedStore, NegationPlan
from broker.engine.pattern.stage.base import SWEEP_MS, Site
from broker.engine.pattern.stage.store import Store
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.times.timing import keep_ms
from broker.engine.pattern.uncertainty.relations import PARTNER_SEARCHES, takes_newest_only
from broker.engine.pattern.uncertainty.verdicts import Doubt
from broker.engine.runtime.budget import Budget
from language.relations import FOLLOWS

SORTED = 4  # candidates that each occurrence costs where they are put in order
PURGING = 2  # that each costs that is held, where events are taken out of it
OTHERS_MIN = 32  # with so many q of a `without` it is asked which of them still matter

Entry = tuple[int, Any]  # the place of its atom, and the event; or of all beneath, and a match


@dataclass(slots=True)
class FusedJoint:
    """One operator, ready to run: its inputs, by number, and how long it keeps them."""

    joint: Joint
    join: Join
    follows: Callable[..., bool] | None  # where `nth` or `next` is asked
    left: int  # index of the left operand's new occurrences: leaves first, then operators
    right: int
    # Stores are numbered over the whole pattern, so that a partition is one flat list of them.
    left_store: int  # -1 of `or`, which keeps nothing
    right_store: int
    keep_left_ms: int | None
    keep_right_ms: int | None
    right_first: bool  # the right store takes the new ones before the join
    stores_right: bool
    latest_within_ms: int | None  # before so long ago only the latest can still be chosen


@dataclass(frozen=True, slots=True)
class FusedNegation:
    """One `without`, ready to run: its inputs, by number."""

    negation: Negation
    plan: NegationPlan
    left: int
    right: int


def decides_at_once(operand: Operand, doubt: Doubt | None = None) -> bool:
    """Return True for a join, or a `without` in P itself, that waits for what is beneath alone.

    Where times are uncertain, what falls into a P, or lies between, may come after it.
    """
    if doubt is not None and (not isinstance(operand, Joint) or asks_further(operand)):
        return False
    if isinstance(operand, Joint):
        # What shuts a left one off is told by the events of an atom (see _expire_asked).
        alone = not operand.next or isinstance(operand.right, Leaf)
        return alone and (operand.operator == "or" or not operand.context.spends)
    if isinstance(operand, Negation):
        return operand.window_ms is None and not operand.further_out
    return False


class FusedPlan:
    """The operators of one pattern, compiled; all partitions of an agent share it."""

    def __init__(
        self,
        builder: Builder,
        foresight: Foresight,
        *,
        ordered: bool,
        consuming: bool,
        root: Operand | None = None,
        beneath: Sequence[Operand] = (),
    ) -> None:
        """Compile; `ordered` says that every step comes in order and none goes back.

        `builder`: compiles operands of the same layout. `root`: the operand that is compiled; None:
        all of the layout. `beneath`: those that run by themselves, and whose occurrences come as if
        each were the event of its first place.
        """
        self.layout = layout = builder.layout
        self.root = root or layout.root
        self.leaf_count = len(layout.leaves)
        self.nodes: list[FusedJoint | FusedNegation] = []
        self.joints: list[FusedJoint] = []  # of these
        self.store_count = 0
        self.ordered = ordered
        # Where events are consumed an older candidate may come to be the latest.
        self._latest_only = not consuming
        self.foresight, self._doubt = foresight, builder.doubt
        self.sweep_ms = WATERMARK_END  # how often silent groups forget what has expired
        self.expire = self._compiled_expiry()
        self._begins = (WATERMARK_NONE, 0, 0)  # of which watermark and durations, and the time
        # Asked again only when a type has begun to last, or lasts longer than it did.
        self._changes = (-1, 0)  # of durations and doubts, when it was asked how long is kept
        # `new` in `step` holds leaves first and then each operator's result, bottom-up: one list
        # stands for the tree, and nothing is walked.
        indexes: dict[int, int] = {id(leaf): leaf.low for leaf in layout.leaves}
        indexes |= {id(part): part.low for part in beneath}
        for part in operands(self.root):
            if id(part) in indexes or any(map(part.lies_in, beneath)):
                continue
            if isinstance(part, Padded):  # beside a list; what comes there has its empty places
                indexes[id(part)] = part.operand.low
            elif isinstance(part, Joint):
                indexes[id(part)] = self.leaf_count + len(self.nodes)
                self.joints.append(self._joint(part, indexes, builder))
                self.nodes.append(self.joints[-1])
            elif isinstance(part, Negation):
                indexes[id(part)] = self.leaf_count + len(self.nodes)
                sides = indexes[id(part.left)], indexes[id(part.right)]
                self.nodes.append(FusedNegation(part, builder.denial(part), *sides))
        self.run = self._compiled()
        # Of whom `nth`, `next` or `without` ask about what no match is made of; with two of these
        # their stores, and whether the left one is cut off by what came.
        self.further = [
            (number, node.left_store, node.right_store, node.joint.next and not node.stores_right)
            for number, node in enumerate(self.nodes)
            if isinstance(node, FusedJoint) and node.follows is not None
        ]
        nodes = enumerate(self.nodes)
        self.denials = [number for number, node in nodes if isinstance(node, FusedNegation)]
        self.asks = bool(self.further or self.denials)
        # Where each may choose the latest of the other, instants go one by one.
        self.stepwise = any(fused.right_first for fused in self.joints)
        # With the limit first, as `sweep_ms` must hold whatever comes; `look_ahead` shortens it.
        self._keep(foresight.durations.limit_ms)

    def look_ahead(self) -> None:
        """Keep for as long as events still to come may reach back."""
        doubt_ms = 0 if self._doubt is None else self._doubt.most_ms
        if self._changes != (changes := (self.foresight.durations.changes, doubt_ms)):
            self._changes = changes
            self._keep(self.foresight.most_ms())

    def _keep(self, duration_max_ms: int) -> None:
        """Keep what events still to come may join that last no longer than that."""
        for fused in self.joints:
            joint = fused.joint
            keeps_ms = keep_ms(joint, duration_max_ms, self._doubt)
            fused.keep_left_ms, fused.keep_right_ms = keeps_ms
            if self._latest_only and _latest_only(joint):
                fused.latest_within_ms = duration_max_ms if joint.operator in FOLLOWS else 0
        self.expire = self._compiled_expiry()
        horizon_ms = self._horizon_ms()
        self.sweep_ms = WATERMARK_END if horizon_ms is None else max(SWEEP_MS, horizon_ms)

    def asks_durations(self) -> bool:
        """Return True where what is kept depends on how long events may last."""
        return any(
            # Two durations that give one answer: then no duration matters.
            keep_ms(fused.joint, 0) != keep_ms(fused.joint, 1) or _latest_only(fused.joint)
            for fused in self.joints
        )

    def _joint(self, joint: Joint, indexes: Mapping[int, int], builder: Builder) -> FusedJoint:
        def writer() -> JoinWriter:
            return builder.writer(joint, ordered=self.ordered)

        # By nominal times what follows may come before.
        follows = joint.operator in FOLLOWS and self._doubt is None

        left_store, right_store = self.store_count, self.store_count + 1
        if joint.operator == "or":
            left_store = right_store = -1
        else:
            self.store_count += 2
        return FusedJoint(
            joint,
            writer().build(),
            builder.writer(joint, ordered=self.ordered).build_follows()
            if asks_further(joint)
            else None,
            indexes[id(joint.left)],
            indexes[id(joint.right)],
            left_store,
            right_store,
            None,
            None,
            right_first=not follows
            and joint.operator != "or"
            and joint.context.name in PARTNER_SEARCHES,
            stores_right=not (self.ordered and follows),
            latest_within_ms=None,
        )

    # --- steps ---------------------------------------------------------------------------

    def _compiled(self) -> Callable[..., list[Any]]:
        """`run(entries, stores, asked, g)`: what the entries complete, all operators in turn.

        Written out once: a loop over operators and what each of them is asks the same again with
        every step of every partition.
        """
        constants, count = Constants(), self.leaf_count
        # One list a leaf and a step, not a leaf and an event: batches are what keeps this cheap.
        names = ", ".join([f"n{place}" for place in range(count)])
        lines = ["def run(entries, stores, asked, g):", f"    new = [{'[], ' * count}]"]
        lines += ["    for place, event in entries: new[place].append(event)"]
        lines += [f"    {names}, = new"]
        for number, node in enumerate(self.nodes):
            made, left, right = f"n{count + number}", f"n{node.left}", f"n{node.right}"
            # An operator without new input has none for the one above, and its join is not called.
            lines += [f"    {made} = []", f"    if {left} or {right}:"]
            if isinstance(node, FusedNegation):
                lines += [f"        {made} = asked[{number}].sift({left}, {right})"]
                continue
            lines += [f"        {line}" for line in _join_lines(node, number, made, constants)]
            # Those above rely on order, and what all partitions report is put in order as one.
            if self.ordered and node.joint is not self.root:
                order = constants.helper("put_in_order", partial(_put_in_order, self.layout.budget))
                lines += [f"        if len({made}) > 1: {order}({made})"]
        text = "\n".join([*lines, f"    return n{count + len(self.nodes) - 1}\n"])
        return build(text, "run", constants)

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

    def open(self, group: tuple[Any, ...], site: Site) -> FusedStage:
        """Return what runs one partition."""
        return FusedStage(self, group, site)

    def ask(
        self, node: FusedJoint | FusedNegation, group: tuple[Any, ...], site: Site
    ) -> Further | DeniedStore | None:
        """Return what is only asked about an operator, in one partition; None: nothing."""
        if isinstance(node, FusedNegation):
            return DeniedStore(node.plan, group, site.budget)
        return None if node.follows is None else Further(node.joint, node.follows, site)

    def _compiled_expiry(self) -> Callable[[list[Store], int], int]:
        """`expire(stores, watermark)`: drop what no later event can join; how many are held.

        Written out: each step asks two stores an operator, and mostly nothing is due.
        """
        constants, lines, counts = Constants(), ["def expire(stores, watermark):"], ["0"]
        for number, (kept_ms, latest_within_ms) in enumerate(self._keeps()):
            store, ends = f"stores[{number}]", f"e{number}"
            lines.append(f"    {ends} = {store}.ends")
            counts.append(f"len({ends})")
            if kept_ms is not None:
                keep = constants.add(kept_ms)
                lines.append(f"    if {ends} and {ends}[0] <= watermark - {keep}:")
                lines.append(f"        {store}.expire(watermark + 1 - {keep})")
            elif latest_within_ms is not None:
                since = f"watermark + 1 - {constants.add(latest_within_ms)}"
                lines.append(f"    if len({ends}) > 1: {store}.keep_latest({since})")
        text = "\n".join([*lines, f"    return {' + '.join(counts[1:] or counts)}\n"])
        return build(text, "expire", constants)

    def begins(self, watermark: int) -> int:
        """Return when events still to come begin at the earliest; all groups ask it in a step."""
        asked, version, begins = self._begins
        if asked != watermark or version != self.foresight.durations.version:
            begins = self.foresight.begins(watermark)
            self._begins = (watermark, self.foresight.durations.version, begins)
        return begins

    def _keeps(self) -> list[tuple[int | None, int | None]]:
        """Return of each store for how long it keeps, or from how long ago the latest alone."""
        return [
            (kept_ms, fused.latest_within_ms)
            for fused in self.joints
            if fused.left_store >= 0
            for kept_ms in (fused.keep_left_ms, fused.keep_right_ms)
        ]


class Fused:
    """One operator for a whole pattern, in one partition; the agent gives it events in order.

    Nothing beneath it holds anything up, so a step takes all that there is.
    """

    __slots__ = ("beneath", "watermark")
    watermark: int
    beneath: Mapping[int, Fused]  # by the identity of its operand, what runs by itself beneath it

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


class FusedStage(Fused):
    """All joins of one partition as one."""

    __slots__ = ("_asked", "_group", "_plan", "_site", "_stores", "asked_max")

    def __init__(self, plan: FusedPlan, group: tuple[Any, ...], site: Site) -> None:
        self._plan = plan
        self._group = group
        self._site = site
        self._stores = [Store() for _ in range(plan.store_count)]
        # By operator, what is only asked about it: no match is made of that.
        self._asked: list[Further | DeniedStore | None] = [
            plan.ask(node, group, site) for node in plan.nodes
        ]
        self.asked_max = OTHERS_MIN  # with so many it is asked which of them still matter
        self.watermark, self.beneath = WATERMARK_NONE, {}

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:  # noqa: ARG002
        """Take what comes and return what it completes."""
        plan = self._plan
        # Within one instant the order decides who is the latest, so each instant is a step of its
        # own.
        run, stores, asked, group = plan.run, self._stores, self._asked, self._group
        if plan.stepwise:
            return [
                occurrence
                for instant in _instants(entries)
                for occurrence in run(instant, stores, asked, group)
            ]
        return run(entries, stores, asked, group)

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held."""
        self.watermark = watermark
        held = self._plan.expire(self._stores, watermark)
        return self._expire_asked(watermark) if self._plan.asks else held

    def _expire_asked(self, watermark: int) -> int:
        """Forget what `nth`, `next` and `without` ask of no more; return how many are held."""
        plan, stores = self._plan, self._stores
        for number, left, right, cuts in plan.further:
            asked: Any = self._asked[number]
            ends, others = stores[left].ends, stores[right].ends
            if cuts and ends:
                stores[left].drop_before(asked.shut_before(plan.begins(watermark)))
            oldest = ends[0] if ends else watermark
            asked.expire(min(oldest, others[0]) if others else oldest, watermark)
        denied: list[Any] = [self._asked[number] for number in plan.denials]
        if denied and sum([len(each.items) for each in denied]) >= self.asked_max:
            begins = self.begins()
            for each in denied:
                each.expire(begins)
            self.asked_max = max(OTHERS_MIN, 2 * sum([len(each.items) for each in denied]))
        if self._site.named:
            self._site.forget_named()
        held = sum([len(store.ends) for store in stores])
        return held + sum([len(each.items) for each in self._asked if each is not None])

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        beneath = [each.begins() for each in self.beneath.values()]
        return min([self.eldest(), self._plan.begins(self.watermark), *beneath])

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        asked = [each.items for each in self._asked if each is not None] if self._plan.asks else []
        return [*(store.items for store in self._stores), *asked]

    def eldest(self) -> int:
        """Return when the eldest begins of what matches may be made of."""
        starts = [start_of(item) for store in self._stores for item in store.items]
        return min(starts, default=WATERMARK_END)

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
        for asked in self._asked:
            if excess and asked is not None:
                part = min(excess, len(asked.items))
                asked.hold(asked.items[part:])
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
        kept = {}
        for node, asked in zip(self._plan.nodes, self._asked, strict=True):
            items = [] if asked is None else asked.items
            if isinstance(node, FusedNegation):
                kept[id(node.negation)] = [[], items]
                continue
            numbers = () if node.left_store < 0 else (node.left_store, node.right_store)
            sides = [self._stores[number].items for number in numbers] or [[], []]
            kept[id(node.joint)] = [*sides, items]
        return packed_operators(self._plan.root, kept, self.watermark, self.beneath)

    def restore(self, state: Any) -> None:
        """Take that up again."""
        self.watermark = state[0]
        kept = unpacked_operators(self._plan.root, state, self.beneath)
        for node, asked in zip(self._plan.nodes, self._asked, strict=True):
            operand = node.negation if isinstance(node, FusedNegation) else node.joint
            *sides, items = kept[id(operand)]
            if asked is not None:
                asked.hold(items)
            if isinstance(node, FusedJoint) and node.left_store >= 0:
                for number, side in zip((node.left_store, node.right_store), sides, strict=True):
                    self._stores[number].hold(side)


def _join_lines(fused: FusedJoint, number: int, made: str, constants: Constants) -> list[str]:
    """Source lines that run one operator: what it makes of its new inputs and of its stores."""
    left, right = f"n{fused.left}", f"n{fused.right}"
    join = constants.helper(f"join{number}", fused.join)
    if fused.left_store < 0:
        return [f"{made} = {join}({left}, {right}, None, None, g)"]
    joint, lines, further = fused.joint, [], "None"
    if fused.follows is not None:
        further = f"asked[{number}]"
        lines += [f"{further}.arrived({right})"]
    lines += [f"left, right = stores[{fused.left_store}], stores[{fused.right_store}]"]
    lines += [f"if {left}: left.{_taking(joint.left)}({left})"]
    join_line = f"{made} = {join}({left}, {right}, left, right, g, {further})"
    if not fused.stores_right:
        return [*lines, join_line]
    store_line = f"if {right}: right.{_taking(joint.right)}({right})"
    # Under `recent` both look among all that is there, the newcomers included.
    both = [store_line, join_line] if fused.right_first else [join_line, store_line]
    return [*lines, *both]


def _taking(operand: Operand) -> str:
    """Return what a store takes an operand's occurrences with."""
    return "extend" if composite(operand) else "extend_leaves"


def _put_in_order(budget: Budget, made: list[Occurrence]) -> None:
    budget.spend(SORTED * len(made))
    sort_in_order(made, tied=budget.tie)


def stages_in(fused: Fused) -> Iterator[FusedStage]:
    """Yield all joins that run as one, in an order that the plan alone decides."""
    if isinstance(fused, FusedStage):
        yield fused
    for each in fused.beneath.values():
        yield from stages_in(each)


def _instants(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return entries in order as runs of one end."""
    return [list(run) for _, run in groupby(entries, lambda entry: end_of(entry[1]))]


def _latest_only(joint: Joint) -> bool:
    """True where a partner's choice never looks past the latest candidate before it."""
    if not takes_newest_only(joint.context) or joint.operator not in ("and", *FOLLOWS):
        return False
    if joint.operator in FOLLOWS and not isinstance(joint.right, Leaf):
        return False  # what begins long before it ends may have to look further back
    tested = joint.conjuncts or joint.anchors or joint.bound or asks_further(joint)
    limited = joint.spread_m is not None or joint.within_ms is not None
    return not tested and not limited and not types_of(joint.left) & types_of(joint.right)
