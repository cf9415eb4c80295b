"""Whether an event may complete anything: what a group can do without until then.

Owns the test, compiled for each place of a pattern. Must not know stages or agents. Invariant: it
may say yes in vain, but says no only where no combination of events that came so far is completed
by this one, whatever is asked of it besides order and `within`.

Of each operand the latest start is kept that an occurrence of it so far can have. What comes after
a left operand can complete no more than what began with that, and nothing where there is none. So
an event costs a few comparisons, and the stages of its group are left alone until they may report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker.core.event import Event
from broker.core.operands import FOLLOWS, Gathered, Joint, Leaf, Operand, Padded, operands
from broker.core.pattern import Layout
from broker.core.source import Constants, build

NEVER = -(2**63)
Reach = list[int]  # by operand, the latest start of an occurrence so far
# Under other contexts a run may end, and another begin, with an event that completes nothing.
LET_WAIT = frozenset(("unrestricted", "recent", "first", "chronicle"))


@dataclass(frozen=True, slots=True)
class Prospect:
    """The tests of one pattern; events are given to them, each to that of its place.

    `forgets_ms`: what began so long before the watermark, and has completed nothing, matters to
    nobody; None: it may.
    """

    operands: int
    tests: tuple[Callable[[Reach, Event], bool], ...]
    forgets_ms: int | None

    def reach(self) -> Reach:
        """Of a group that has seen nothing."""
        return [NEVER] * self.operands


def prospect_of(layout: Layout, *, in_order: bool) -> Prospect | None:
    """The tests of a pattern; None where silence, or an event of no place, may bring something.

    `in_order`: events are given to them in order.
    """
    root = layout.root
    parts = list(operands(root))
    if layout.named or not all(map(_waits, parts)):
        return None
    writer = _Writer(root, parts, in_order=in_order)
    places = [one for one in parts if isinstance(one, Leaf)]
    places.sort(key=lambda leaf: leaf.low)
    tests = tuple([writer.test(leaf) for leaf in places])
    return Prospect(len(parts), tests, root.within_ms if _forgets(root, parts) else None)


def _waits(operand: Operand) -> bool:
    """Whether what it passes on ends with the event that completes it."""
    if operand.denied:
        return False
    if isinstance(operand, Joint):
        return operand.nth is None and not operand.next and operand.context in LET_WAIT
    if isinstance(operand, Gathered):
        return not operand.trailing and all(isinstance(m.operand, Leaf) for m in operand.members)
    return isinstance(operand, Leaf | Padded)


def _forgets(root: Operand, parts: list[Operand]) -> bool:
    """Whether an event that is in no occurrence changes no other: nothing is spent on its way."""
    joints = [one for one in parts if isinstance(one, Joint)]
    if all(one.context == "unrestricted" for one in joints):
        return True
    alike = all(one.context == "first" and not one.closed for one in joints if one is not root)
    chain = all(isinstance(one.right, Leaf) for one in joints)
    same = len({one.operator for one in joints}) == 1
    first = isinstance(root, Joint) and root.context == "first"
    return first and alike and chain and same and len(joints) * 2 + 1 == len(parts)


class _Writer:
    """Writes the tests; `r` holds the reach, `n` the latest start of what the event completes."""

    def __init__(self, root: Operand, parts: list[Operand], *, in_order: bool) -> None:
        self._root = root
        self._in_order = in_order
        self._number = {id(one): at for at, one in enumerate(parts)}
        self._above: dict[int, Operand] = {id(p): one for one in parts for p in one.parts}

    def test(self, leaf: Leaf) -> Callable[[Reach, Event], bool]:
        """That of one place."""
        constants = Constants()
        listed = self._listed(leaf)
        lines = ["    n = e.start", *self._note(leaf)] if listed is None else listed
        at: Operand = leaf
        while at is not self._root:
            above = self._above[id(at)]
            more = self._step(above, at)
            if more is None:
                lines.append("    return False")
                break
            lines += more
            if above.within_ms is not None:
                lines.append(f"    if e.end - n > {constants.add(above.within_ms)}: return False")
            lines += self._note(above)
            at = above
        else:
            lines.append("    return True")
        text = "\n".join(["def test(r, e):", *lines]) + "\n"
        made: Callable[[Reach, Event], bool] = build(text, "test", constants)
        return made

    def _note(self, operand: Operand) -> list[str]:
        at = self._number[id(operand)]
        return [f"    if n > r[{at}]: r[{at}] = n"]

    def _step(self, above: Operand, at: Operand) -> list[str] | None:
        """From an operand's new occurrence to that of the one above; None: it completes none."""
        if isinstance(above, Gathered):
            if at is not above.base:
                return None
            needed = [one.operand for one in above.members if not one.optional]
            return [line for one in needed for line in self._at_most(one)]
        if not isinstance(above, Joint) or above.operator == "or":
            return []
        if above.operator in FOLLOWS and at is above.left:
            if self._in_order:
                return None
            return [f"    if r[{self._number[id(above.right)]}] < e.end: return False"]
        return self._at_most(above.left if at is above.right else above.right)

    def _at_most(self, other: Operand) -> list[str]:
        number = self._number[id(other)]
        return [
            f"    if (o := r[{number}]) < n: n = o",
            f"    if n == {NEVER}: return False",
        ]

    def _listed(self, leaf: Leaf) -> list[str] | None:
        """What one of a list tells: the latest start that led to it; None of other places."""
        above = self._above.get(id(leaf))
        if not isinstance(above, Gathered):
            return None
        after = next((one.after for one in above.members if one.operand is leaf), None)
        if after is None:
            return None
        before = above.base
        while isinstance(before, Joint) and after.high <= before.left.high:
            before = before.left
        return [f"    r[{self._number[id(leaf)]}] = r[{self._number[id(before)]}]"]
