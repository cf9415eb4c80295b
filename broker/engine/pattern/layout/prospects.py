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

from broker.engine.event.event import Event
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.operands import (
    Gathered,
    Joint,
    Leaf,
    Negation,
    Operand,
    Padded,
    operands,
)
from broker.engine.pattern.layout.pattern import Layout
from language.relations import FOLLOWS

NEVER = -(2**63)
Reach = list[int]  # by operand, the latest start of an occurrence so far
Step = tuple[int, int, int]  # what is done, and with what: places of the reach, or a time

# What a test does in turn, by its number for the compiled pass. `r` holds the reach, `n` the latest
# start of what the event completes, at first its own.
NOTE, AT_MOST, WITHIN, AFTER, SET, STOP, HOPE = range(7)
_CODE = {
    NOTE: "    if n > r[{0}]: r[{0}] = n\n",
    AT_MOST: f"    if (o := r[{{0}}]) < n: n = o\n    if n == {NEVER}: return False\n",
    WITHIN: "    if e.end - n > {0}: return False\n",
    AFTER: "    if r[{0}] < e.end: return False\n",
    SET: "    r[{0}] = r[{1}]\n",
    STOP: "    return False\n",
    HOPE: "    return True\n",
}


@dataclass(frozen=True, slots=True)
class Prospect:
    """The tests of one pattern; events are given to them, each to that of its place.

    `steps` are those of each test. Of one event a test may be asked twice.
    `forgets_ms`: what began so long before the watermark, and has completed nothing, matters to
    nobody; None: it may.
    """

    operands: int
    tests: tuple[Callable[[Reach, Event], bool], ...]
    forgets_ms: int | None
    steps: tuple[tuple[Step, ...], ...]

    def reach(self) -> Reach:
        """Of a group that has seen nothing."""
        return [NEVER] * self.operands


def prospect_of(layout: Layout, *, in_order: bool) -> Prospect | None:
    """The tests of a pattern; None where silence, or time alone, may bring something.

    `in_order`: events are given to them in order.
    """
    root = layout.root
    parts = list(operands(root))
    if not all(map(_waits, parts)):
        return None
    writer = _Writer(root, parts, in_order=in_order)
    places = [one for one in parts if isinstance(one, Leaf)]
    places.sort(key=lambda leaf: leaf.low)
    steps = tuple([tuple(writer.steps(leaf)) for leaf in places])
    # Of events that `next` looks at, whatever place they have: they complete nothing.
    steps += (((STOP, 0, 0),),) * len(layout.named)
    forgets_ms = root.within_ms if _forgets(root, parts) else None
    return Prospect(len(parts), tuple(map(_test, steps)), forgets_ms, steps)


def _test(steps: tuple[Step, ...]) -> Callable[[Reach, Event], bool]:
    """The steps as a function."""
    constants = Constants()
    text = "def test(r, e):\n    n = e.start\n"
    for what, first, second in steps:
        text += _CODE[what].format(constants.add(first) if what == WITHIN else first, second)
    made: Callable[[Reach, Event], bool] = build(text, "test", constants)
    return made


def _waits(operand: Operand) -> bool:
    """Tell whether what it passes on ends with the event that completes it."""
    if operand.denied:
        return False
    if isinstance(operand, Joint):
        # Under `latest` an event that completes nothing may replace another. It waits all the same,
        # as what waits is given in order; but past a bound it may end a run, and begin the next.
        # So may an event between two that must be `next` to each other.
        ends_runs = operand.context.replaces and operand.bound is not None
        return not ends_runs and not (operand.next and operand.context.runs)
    if isinstance(operand, Negation):
        # What falls into P itself has come when P has; but for what lasts, it is decided by time.
        within = operand.window_ms is None and not operand.further_out
        return within and isinstance(operand.right, Leaf)
    if isinstance(operand, Gathered):
        return not operand.trailing and all(isinstance(m.operand, Leaf) for m in operand.members)
    return isinstance(operand, Leaf | Padded)


def _forgets(root: Operand, parts: list[Operand]) -> bool:
    """Tell whether an event in no occurrence changes no other: nothing is spent on its way."""
    joints = [one for one in parts if isinstance(one, Joint)]
    if not any(one.context.chooses for one in joints):
        return True
    top = root.base if isinstance(root, Gathered) else root
    if any(joint.closed for joint in joints if joint is not top):
        return False
    alike = len({(joint.operator, joint.context) for joint in joints}) == 1
    chain = all(isinstance(part, Joint | Gathered | Leaf | Padded) for part in parts)
    atoms = all(isinstance(joint.right, Leaf | Padded) for joint in joints)
    # A run whose time is over is dropped and spends nothing, as if its events had never come.
    return alike and chain and atoms and joints[0].context.runs


class _Writer:
    """Writes the steps of tests."""

    def __init__(self, root: Operand, parts: list[Operand], *, in_order: bool) -> None:
        self._root = root
        self._in_order = in_order
        self._number = {id(one): at for at, one in enumerate(parts)}
        self._above: dict[int, Operand] = {id(p): one for one in parts for p in one.parts}

    def steps(self, leaf: Leaf) -> list[Step]:
        """Those of one place."""
        listed = self._listed(leaf)
        steps = [self._note(leaf)] if listed is None else [listed]
        at: Operand = leaf
        while at is not self._root:
            above = self._above[id(at)]
            more = self._step(above, at)
            if more is None:
                return [*steps, (STOP, 0, 0)]
            steps += more
            if above.within_ms is not None:
                steps.append((WITHIN, above.within_ms, 0))
            steps.append(self._note(above))
            at = above
        return [*steps, (HOPE, 0, 0)]

    def _note(self, operand: Operand) -> Step:
        return NOTE, self._number[id(operand)], 0

    def _step(self, above: Operand, at: Operand) -> list[Step] | None:
        """From an operand's new occurrence to that of the one above; None: it completes none."""
        if isinstance(above, Gathered):
            if at is not above.base:
                return None
            needed = [one.operand for one in above.members if not one.optional]
            return [self._at_most(one) for one in needed]
        if isinstance(above, Negation):
            return [] if at is above.left else None
        if not isinstance(above, Joint) or above.operator == "or":
            return []
        if above.operator in FOLLOWS and at is above.left:
            if self._in_order:
                return None
            return [(AFTER, self._number[id(above.right)], 0)]
        return [self._at_most(above.left if at is above.right else above.right)]

    def _at_most(self, other: Operand) -> Step:
        return AT_MOST, self._number[id(other)], 0

    def _listed(self, leaf: Leaf) -> Step | None:
        """Return what one of a list tells: the latest start that led to it; None elsewhere."""
        above = self._above.get(id(leaf))
        if not isinstance(above, Gathered):
            return None
        after = next((one.after for one in above.members if one.operand is leaf), None)
        if after is None:
            return None
        before = above.base
        while isinstance(before, Joint) and after.high <= before.left.high:
            before = before.left
        return SET, self._number[id(leaf)], self._number[id(before)]
