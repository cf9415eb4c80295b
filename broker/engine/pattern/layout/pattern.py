"""A detect pattern laid out for matching: its operands by place, and what each must test.

Owns the reading of a checked pattern tree. Must not know stores or events at run time.
Invariant: every suffix and every `where` conjunct is attached to the lowest operand that can judge
it, so what fails there is no candidate above (LANGUAGE: contexts compose bottom-up).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from broker.engine.pattern.layout.attach import Attacher, lies_in
from broker.engine.pattern.layout.operands import (
    Count,
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Member,
    Negation,
    Operand,
    Padded,
    Run,
    Silence,
    least,
    operands,
)
from broker.engine.runtime.budget import Budget
from language.relations import CONTEXTS, UNRESTRICTED
from language.tree import (
    Absent,
    Atom,
    Bound,
    Case,
    Expression,
    InRegion,
    Link,
    Pattern,
    RegionLiteral,
    Repeat,
    Select,
    Spread,
    Where,
    Within,
)

_NOWHERE: frozenset[int] = frozenset()  # one for all patterns: an empty set takes 216 bytes


@dataclass(slots=True)
class Layout:
    """A whole pattern: the root operand, its leaves by place, and its joints bottom-up."""

    root: Operand
    leaves: list[Leaf]
    joints: list[Joint]
    optional: frozenset[int]  # places that stay empty in some occurrences
    last: tuple[tuple[int, int], ...]  # place ranges of the operands of `last`
    first: tuple[tuple[int, int], ...]  # and of those of `first`
    listed: frozenset[int]  # places of lists
    gathered: frozenset[int]  # those of them that are filled once the other places are
    silent: frozenset[int]  # places that bind nothing: beneath `absent`, or right of `without`
    names: dict[str, int]  # further names of lists → their place, or the first of several
    budget: Budget = field(default_factory=Budget, compare=False)  # of those that look for it

    @property
    def named(self) -> tuple[str, ...]:
        """The types of which every event counts, whatever its values.

        `next` looks at them all, and the first in a partition is where a silence may begin.
        """
        if not any(
            isinstance(one, Silence) or (isinstance(one, Joint) and one.next)
            for one in operands(self.root)
        ):
            return ()
        return tuple(dict.fromkeys(leaf.event_type for leaf in self.leaves))

    @property
    def places(self) -> dict[str, int]:
        """Alias, or type without an alias → place."""
        return {**{leaf.name: leaf.low for leaf in self.leaves}, **self.names}


@dataclass(frozen=True, slots=True)
class _Above:
    """Collect the demands of the suffixes around an operand; `timed_ms` is the nearest `within`."""

    within_ms: int | None = None
    spread_m: float | None = None
    regions: tuple[RegionLiteral, ...] = ()
    anchors: tuple[tuple[str, int], ...] = ()
    timed_ms: int = 0


class _Reader:
    def __init__(self, *, disjoint: bool) -> None:
        self.disjoint = disjoint
        self.leaves: list[Leaf] = []
        self.selects: dict[str, list[tuple[int, int]]] = {"last": [], "first": []}
        self.optional: set[int] = set()
        self.listed: set[int] = set()
        self.gathered: set[int] = set()
        self.silent: set[int] = set()
        self.names: dict[str, int] = {}
        self.conditions: list[tuple[Expression, Operand]] = []
        self.anchored: list[tuple[Operand, str, int]] = []

    def read(self, node: Pattern, above: _Above) -> Operand:
        read: Callable[[Any, _Above], Operand] = _READERS[type(node)]
        return read(self, node, above)  # type: ignore[call-arg,arg-type]

    # --- suffixes ------------------------------------------------------------------------

    def within(self, node: Within, above: _Above) -> Operand:
        if node.anchor is None:
            # The inner one may be longer than the outer one; what counts is the least.
            within_ms = least(above.within_ms, node.within_ms)
            above = replace(above, within_ms=within_ms, timed_ms=node.within_ms)
            return self._suffixed(node.operand, above)
        anchors = (*above.anchors, (node.anchor, node.within_ms))
        above = replace(above, anchors=anchors, timed_ms=node.within_ms)
        return self._suffixed(node.operand, above)

    def _suffixed(self, node: Pattern, above: _Above) -> Operand:
        operand = self.read(node, above)
        # A suffix ends a chain of like links: `(A then B within 5 s) then C` is no chain of three.
        operand.closed = True
        return operand

    def spread(self, node: Spread, above: _Above) -> Operand:
        spread_m = node.distance_m
        if above.spread_m is not None:
            spread_m = min(spread_m, above.spread_m)
        return self._suffixed(node.operand, replace(above, spread_m=spread_m))

    def region(self, node: InRegion, above: _Above) -> Operand:
        if not isinstance(node.region, RegionLiteral):
            raise TypeError("region names are resolved before matching")
        return self._suffixed(node.operand, replace(above, regions=(*above.regions, node.region)))

    def where(self, node: Where, above: _Above) -> Operand:
        operand = self._suffixed(node.operand, above)
        self.conditions.append((node.condition, operand))
        return operand

    # --- operands ------------------------------------------------------------------------

    def atom(self, node: Atom, above: _Above) -> Leaf:
        # Places are numbered in the order of the text, which snapshots and ids of results lean on.
        place = len(self.leaves)
        leaf = Leaf(place, place + 1, above.within_ms, above.spread_m)
        leaf.event_type = node.type
        leaf.name = node.alias or node.type
        leaf.conditions = node.conditions
        leaf.regions = list(above.regions)
        self.leaves.append(leaf)
        return leaf

    def select(self, node: Select, above: _Above) -> Operand:
        if node.kind == "nth":
            return self._kth(node, above)
        operand = self.read(node.operand, above)
        if node.kind in self.selects:
            operand.closed = True
            self.selects[node.kind].append((operand.low, operand.high))
        if node.kind == "distinct":
            made = Distinct(operand.low, operand.high, operand=operand, keys=node.keys)
            made.window_ms = above.timed_ms
            return made
        return operand  # windows alone ask who may be missing

    def absent(self, node: Absent, above: _Above) -> Operand:
        operand = self._denied(node.operand)
        made = Silence(operand.low, operand.high, above.within_ms, operand=operand)
        made.for_ms = node.for_ms
        return made

    def _denied(self, node: Pattern) -> Operand:
        """Read what must not be: inside, the context is unrestricted, so runs of `{n}` slide."""
        # LANGUAGE: inside `without` and `absent` the context is unrestricted, and so nothing that
        # stands around is asked there.
        disjoint, self.disjoint = self.disjoint, False
        operand = self.read(node, _Above())
        self.disjoint = disjoint
        self.silent.update(range(operand.low, operand.high))
        return operand

    def repeat(self, node: Repeat, above: _Above) -> Operand:
        if node.kind in {"+", "*"}:
            return self._chain([node], [], above)
        # An anchor is one event: members come after it as the row does, as a whole.
        operand = self._listed(node, replace(above, anchors=()))
        low, high = operand.low, operand.high
        made: Count | Run
        if node.kind == "count":
            made = Count(low, high, above.within_ms, above.spread_m, operand=operand)
            made.count = node.count or 1
            made.disjoint = self.disjoint
        else:
            made = Run(low, high, above.within_ms, above.spread_m, operand=operand)
            if node.gap is not None:
                made.gap_low_ms, made.gap_high_ms = node.gap.low_ms, node.gap.high_ms
        self._around(made, above)
        return made

    def _listed(self, node: Repeat, above: _Above) -> Operand:
        operand = self.read(node.operand, above)
        self.listed.update(range(operand.low, operand.high))
        if node.alias is not None:
            if isinstance(operand, Leaf):
                if not isinstance(node.operand, Atom) or node.operand.alias is not None:
                    self.names[operand.name] = operand.low  # which goes on standing for it
                operand.name = node.alias
            else:
                self.names[node.alias] = operand.low
        return operand

    def _kth(self, node: Select, above: _Above) -> Operand:
        return self._kth_of(self._judged_later(node, above), node.k or 1, above)

    def _kth_of(self, operand: Operand, k: int, above: _Above) -> Kth:
        made = Kth(operand.low, operand.high, above.within_ms, above.spread_m, operand=operand)
        made.k = k
        self._lie_in(above.regions, operand, made)
        return made

    def _judged_later(self, node: Select, above: _Above) -> Operand:
        """The operand of `nth`: what stands around is asked of the chosen one alone."""
        return self.read(node.operand, _Above(timed_ms=above.timed_ms))

    def _lie_in(self, regions: Iterable[RegionLiteral], chosen: Operand, asked: Operand) -> None:
        """Have the operand ask that what `nth` chose lies in the regions, as a `where` would."""
        for leaf in operands(chosen):
            if not isinstance(leaf, Leaf) or leaf.low in self.silent:
                continue
            if leaf.low in self.listed:
                leaf.regions += regions  # of a list each member is asked
            else:
                self.conditions += [(lies_in(leaf.name, one), asked) for one in regions]

    def _around(self, operand: Operand, above: _Above) -> None:
        self.anchored += [(operand, name, within_ms) for name, within_ms in above.anchors]

    # --- links ---------------------------------------------------------------------------

    def link(self, node: Link, above: _Above) -> Operand:
        if node.operator == "without":
            left = self.read(node.left, above)
            right = self._denied(node.right)
            window_ms = None if node.bound is None else node.bound.high_ms
            return Negation(left.low, right.high, left=left, right=right, window_ms=window_ms)
        # Lists turn a chain of `then` into one operand; other relations have none.
        if node.operator == "then":
            elements, links = chain_of(node)
            if any(list_in(element) is not None for element in elements):
                return self._chain(elements, links, above)
        left = self.read(node.left, above)
        return self._joint(node, left, self._right(node.right, above), above)

    def _right(self, node: Pattern, above: _Above) -> tuple[Operand, int | None]:
        """The right operand, and its number where it is an `nth` in a chain."""
        if isinstance(node, Select) and node.kind == "nth":
            return self._judged_later(node, above), node.k
        if isinstance(node, Select) and node.kind in self.selects:
            operand, k = self._right(node.operand, above)
            operand.closed = True
            self.selects[node.kind].append((operand.low, operand.high))
            return operand, k
        return self.read(node, above), None

    def _joint(
        self,
        node: Link,
        left: Operand,
        right: tuple[Operand, int | None],
        above: _Above,
        *,
        direct: bool = True,
    ) -> Joint:
        """The operator over both; not `direct`: lists stand between them, which have the bounds."""
        operand, k = right
        joint = Joint(left.low, operand.high, above.within_ms, above.spread_m)
        joint.operator = node.operator
        joint.left, joint.right = left, operand
        joint.context = UNRESTRICTED if node.context is None else CONTEXTS[node.context]
        if node.operator in {"then", "before"}:
            joint.nth = k
            if k is not None:
                self._lie_in(above.regions, operand, joint)
        elif k is not None:
            joint.right = self._kth_of(operand, k, above)
        if direct:
            joint.bound, joint.next = node.bound, node.next
        self._around(joint, above)
        if node.operator == "or":
            self.optional.update(range(joint.low, joint.high))
        return joint

    def _chain(self, elements: list[Pattern], links: list[Link], above: _Above) -> Gathered:
        """A chain of `then` in which lists stand."""
        read: list[tuple[Operand, int | None]] = []
        lists: dict[int, Repeat] = {}
        inside = replace(above, spread_m=None, anchors=())
        for at, element in enumerate(elements):
            found = list_in(element)
            if found is None:
                read.append(
                    self._right(element, above) if at else (self.read(element, above), None)
                )
                continue
            lists[at] = found
            read.append((self._member(element, inside), None))
        base_at = [at for at in range(len(elements)) if at not in lists]
        if not base_at:
            raise AssertionError("a list alone has no occurrence to belong to")
        base = self._base(read, links, base_at, above)
        gathered = Gathered(base.low, base.high, above.within_ms, above.spread_m, base=base)
        # Then nothing that comes ends the list, and time has to (see build.Builder).
        gathered.trailing = len(elements) - 1 in lists
        for at, node in lists.items():
            gathered.members.append(member_of(read, links, base_at, at, optional=node.kind == "*"))
        self._around(gathered, above)
        return gathered

    def _member(self, element: Pattern, above: _Above) -> Operand:
        """A list's operand; what stands around the list in brackets of its own asks each member."""
        if isinstance(element, Repeat):
            operand = self._listed(element, above)
            self.gathered.update(range(operand.low, operand.high))
            self.optional.update(range(operand.low, operand.high))
            return operand
        if isinstance(element, Where):
            operand = self._member(element.operand, above)
            self.conditions.append((element.condition, operand))
            return operand
        if isinstance(element, InRegion) and isinstance(element.region, RegionLiteral):
            regions = (*above.regions, element.region)
            return self._member(element.operand, replace(above, regions=regions))
        raise AssertionError(f"no list: {type(element).__name__}")

    def _base(
        self,
        read: list[tuple[Operand, int | None]],
        links: list[Link],
        base_at: list[int],
        above: _Above,
    ) -> Operand:
        """The elements that are no lists, joined as if each list were a plain `then`."""
        made: Operand | None = None
        for number, at in enumerate(base_at):
            operand, k = read[at]
            # With lists alone before it there is no left neighbour to count from.
            if made is None and k is not None:  # no neighbour but lists: of the partition
                operand = self._kth_of(operand, k, above)
            before = base_at[number - 1] if number else -1
            low = read[before + 1][0].low if before + 1 < at else operand.low
            high = read[-1][0].high if at == base_at[-1] else operand.high
            if (low, high) != (operand.low, operand.high):
                operand = Padded(low, high, operand=operand)
            if made is None:
                made = operand
            else:
                link = links[at - 1]
                made = self._joint(link, made, (operand, k), above, direct=before == at - 1)
        assert made is not None
        return made


_READERS: dict[type[Any], Callable[..., Operand]] = {
    Atom: _Reader.atom,
    Link: _Reader.link,
    Absent: _Reader.absent,
    Repeat: _Reader.repeat,
    Select: _Reader.select,
    Within: _Reader.within,
    Spread: _Reader.spread,
    InRegion: _Reader.region,
    Where: _Reader.where,
}


def lay_out(case: Case) -> Layout:
    """The layout of a case's detect pattern."""
    reader = _Reader(disjoint=CONTEXTS[case.detect.context].disjoint)
    root = reader.read(case.detect.pattern, _Above())
    layout = Layout(
        root,
        reader.leaves,
        [one for one in operands(root) if isinstance(one, Joint)],
        frozenset(reader.optional) or _NOWHERE,
        tuple(reader.selects["last"]),
        tuple(reader.selects["first"]),
        frozenset(reader.listed) or _NOWHERE,
        frozenset(reader.gathered) or _NOWHERE,
        frozenset(reader.silent) or _NOWHERE,
        reader.names,
    )
    places = layout.places
    attacher = Attacher(places, layout.listed, layout.optional)
    for condition, operand in reader.conditions:
        attacher.attach(condition, operand)
    for operand, name, within_ms in reader.anchored:
        operand.anchors.append((places[name], within_ms))
    return layout


# --- chains of `then` in which lists stand ---------------------------------------------------


def chain_of(node: Link) -> tuple[list[Pattern], list[Link]]:
    """The elements of a chain of `then`, and the links between them."""
    elements: list[Pattern] = []
    links: list[Link] = []
    left: Pattern = node
    while isinstance(left, Link) and left.operator == "then":
        elements.insert(0, left.right)
        links.insert(0, left)
        left = left.left
    return [left, *elements], links


def list_in(element: Pattern) -> Repeat | None:
    """The list that an element of a chain is, perhaps in brackets with a suffix of its own."""
    while isinstance(element, Where | InRegion):
        element = element.operand
    return element if isinstance(element, Repeat) and element.kind in {"+", "*"} else None


def member_of(
    read: list[tuple[Operand, int | None]],
    links: list[Link],
    base_at: list[int],
    number: int,
    *,
    optional: bool,
) -> Member:
    """Return the list at one place of a chain, between the nearest elements that are no lists."""
    after = max((other for other in base_at if other < number), default=None)
    before = min((other for other in base_at if other > number), default=None)
    after_bound: Bound | None = links[number - 1].bound if after == number - 1 and number else None
    before_bound: Bound | None = links[number].bound if before == number + 1 else None
    return Member(
        read[number][0],
        optional,
        None if after is None else read[after][0],
        None if before is None else read[before][0],
        after_bound,
        before_bound,
    )
