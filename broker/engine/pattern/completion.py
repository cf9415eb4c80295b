"""The event that completes an occurrence, and from when on it completes no other.

Owns how long an occurrence may go on after the last of its events. Must not know how occurrences
are found. Invariant: never shorter than is possible.

Only an `absent` goes on after all events, as it binds none: `A and absent C for 2 s` is completed
by A, and may end long after it.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.occurrence import Occurrence, bound_events
from broker.engine.pattern.base import end_of
from broker.engine.pattern.operands import (
    Count,
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Negation,
    Operand,
    Padded,
    Run,
    Silence,
    least,
    operands,
)
from broker.engine.pattern.verdicts import Doubt
from language.relations import FOLLOWS
from language.tree import Case


def completing(one: Occurrence) -> Any:
    """The last in order of the events bound; None if none is."""
    return max(bound_events(one), key=lambda event: event.order, default=None)


def spans_of_reported(case: Case, root: Operand) -> int:
    """How many times as long as an occurrence what is reported of the case may be.

    What `collect` joins has one event in common, and may end or begin long before or after it.
    """
    lingers = case.detect.report == "collect" and Completion(root).lingers
    return 2 if lingers else 1


class Completion:
    """What a pattern lets its completing events wait for; `doubt`: where times are weighed."""

    __slots__ = ("_doubt", "_found", "_root", "lingers")

    def __init__(self, root: Operand, doubt: Doubt | None = None) -> None:
        self._root = root
        self._doubt = doubt
        # Whether an occurrence may go on after its last event at all.
        self.lingers = any(isinstance(one, Silence) for one in operands(root))
        self._found: tuple[int, int | None, int | None] | None = None

    def over_at(self, last: Any) -> int:
        """The time by which everything has ended that an event completes.

        An occurrence that binds no event is completed by itself, and nothing else is.
        """
        if not self.lingers or last.__class__ is tuple:
            return int(end_of(last))
        after_ms, within_ms = self._limits()
        ends = [WATERMARK_END]
        if after_ms is not None:
            ends.append(last.end + after_ms)
        if within_ms is not None:
            ends.append(last.start + within_ms)
        return min(ends)

    def after_ms(self) -> int | None:
        """How long an occurrence goes on after its last event ends, at most; None: for ever."""
        return self._limits()[0] if self.lingers else 0

    def _limits(self) -> tuple[int | None, int | None]:
        """That, and how long it may be as a whole."""
        most_ms = -1 if self._doubt is None else self._doubt.most_ms
        if self._found is None or self._found[0] != most_ms:  # doubt may have grown
            tails, within_ms = _Tails(self._doubt), self._root.within_ms
            whole_ms = None if within_ms is None else tails.longer(within_ms)
            self._found = (most_ms, tails.after(self._root), whole_ms)
        return self._found[1], self._found[2]


class _Tails:
    """How long occurrences go on after their last event, operand by operand."""

    def __init__(self, doubt: Doubt | None) -> None:
        self._doubt = doubt

    def longer(self, limit_ms: int) -> int:
        """How far apart nominal times may be where a limit is met."""
        return limit_ms if self._doubt is None else limit_ms + self._doubt.slack_ms(limit_ms)

    def after(self, operand: Operand) -> int | None:
        """Of those of the operand's occurrences that bind an event."""
        return self._within(operand, self._after(operand))

    def _within(self, operand: Operand, found_ms: int | None) -> int | None:
        if operand.within_ms is None:
            return found_ms
        return least(self.longer(operand.within_ms), found_ms)

    def _after(self, operand: Operand) -> int | None:
        if not any(isinstance(one, Silence) for one in operands(operand)):
            return 0
        if isinstance(operand, Negation):
            return self.after(operand.left)
        if isinstance(operand, Kth | Distinct | Padded):
            return self.after(operand.operand)
        if isinstance(operand, Count | Run):  # the last of them may bind nothing
            return None if _may_be_empty(operand.operand) else self.after(operand.operand)
        if isinstance(operand, Gathered):
            lists = [one for member in operand.members for one in operands(member.operand)]
            if any(isinstance(one, Silence) for one in lists) or _may_be_empty(operand.base):
                return None
            return self.after(operand.base)
        return self._after_joint(operand) if isinstance(operand, Joint) else 0

    def _after_joint(self, joint: Joint) -> int | None:
        left, right = joint.left, joint.right
        follows = joint.operator in FOLLOWS
        found = [self.after(one) for one in (left, right) if _may_bind(one)]
        if follows:
            # Where times are uncertain the left side may seem to end after the right one begins.
            found = [0 if self._doubt is None else self._doubt.slack_ms()]
            found += [self.after(right)] if _may_bind(right) else []
        if joint.operator != "or":
            pairs = ((left, right),) if follows else ((left, right), (right, left))
            for some, silent in pairs:
                if _may_bind(some) and _may_be_empty(silent):
                    found.append(_sum(self.after(some), self._gap(joint), self._empty(silent)))
        return _most(found)

    def _gap(self, joint: Joint) -> int | None:
        """How long after the end of one side the other begins at most."""
        if joint.bound is not None and joint.bound.high_ms is not None:
            return self.longer(joint.bound.high_ms)
        if joint.operator == "and" or joint.operator in FOLLOWS:
            return None
        return self.longer(0)  # they share an instant

    def _empty(self, operand: Operand) -> int | None:
        """How long those of the operand's occurrences last that bind no event."""
        return self._within(operand, self._empty_by_itself(operand))

    def _empty_by_itself(self, operand: Operand) -> int | None:
        if isinstance(operand, Silence):
            return operand.for_ms
        if isinstance(operand, Negation):
            return self._empty(operand.left)
        if isinstance(operand, Kth | Distinct | Padded):
            return self._empty(operand.operand)
        if not isinstance(operand, Joint):
            return None
        sides = [self._empty(one) for one in operand.parts if _may_be_empty(one)]
        return _most(sides) if operand.operator == "or" else _sum(self._gap(operand), *sides)


def _may_bind(operand: Operand) -> bool:
    """Whether some occurrence of the operand binds an event."""
    if isinstance(operand, Silence):
        return False
    if isinstance(operand, Negation):
        return _may_bind(operand.left)
    return isinstance(operand, Leaf) or any(map(_may_bind, operand.parts))


def _may_be_empty(operand: Operand) -> bool:
    """Whether some occurrence of the operand binds none."""
    if isinstance(operand, Leaf | Silence):
        return isinstance(operand, Silence)
    if isinstance(operand, Negation):
        return _may_be_empty(operand.left)
    if isinstance(operand, Gathered):
        return _may_be_empty(operand.base)
    sides = map(_may_be_empty, operand.parts)
    return any(sides) if isinstance(operand, Joint) and operand.operator == "or" else all(sides)


def _most(times: list[int | None]) -> int | None:
    known = [time for time in times if time is not None]
    return max(known, default=0) if len(known) == len(times) else None


def _sum(*times: int | None) -> int | None:
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None
