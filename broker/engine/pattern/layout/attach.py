"""Where each conjunct of a `where` is judged.

Owns the search for the lowest operand that can judge a conjunct. Must not know how it is judged.
Invariant: a conjunct is judged where all its names are bound, and for an `nth` not before the one
that counts is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.engine.event.expressions import children, names_in
from broker.engine.pattern.layout.operands import (
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Negation,
    Operand,
    Padded,
    operands,
)
from language.functions import is_aggregate
from language.tree import (
    Attribute,
    Call,
    Comparison,
    Expression,
    Logical,
    Membership,
    RegionLiteral,
    Unary,
)
from language.walk import conjuncts


def has_aggregate(node: Expression) -> bool:
    """Tell whether an aggregate stands in the expression."""
    if isinstance(node, Call) and is_aggregate(node):
        return True
    return any(has_aggregate(child) for child in children(node))


def places_of(operand: Operand) -> frozenset[int]:
    """The places of the leaves beneath an operand."""
    return frozenset(one.low for one in operands(operand) if isinstance(one, Leaf))


class Attacher:
    """Gives the conjuncts of one layout to its operands."""

    def __init__(
        self, places: Mapping[str, int], listed: frozenset[int], optional: frozenset[int]
    ) -> None:
        self._places = places
        self._listed = listed
        self._optional = optional
        self._deniers: dict[int, Operand] = {}  # by the identity of a `without`: who judges it

    # Conjunct by conjunct: `a.v > 1 and a.v < b.v` asks of every A alone first, so that under
    # `first` or `recent` no A is chosen that the whole would then refuse.
    def attach(self, condition: Expression, operand: Operand) -> None:
        """Attach each conjunct of a condition that stands over the operand."""
        for part in conjuncts(condition):
            bound = {self._places[name] for name in names_in(part) if name in self._places}
            self._attach(part, operand, bound)

    def _attach(self, part: Expression, operand: Operand, bound: set[int]) -> None:
        # A conjunct without names is true of all or of none: it is asked where it was written.
        if not bound:
            _judging(operand).conjuncts.append(part)
            return
        # `Count(b) > 2` is asked of the whole list; `b.v > 2` of each that may be in it.
        whole = has_aggregate(part) and bool(bound & self._listed)
        holder = self._lowest(operand, bound, whole=whole)
        negation = self._denied(holder, bound)
        # A conjunct that names what must not be restricts which of these count; it does not ask
        # that there be one.
        if negation is not None:
            negation.conjuncts.append(part)
            self._deny(negation, holder)
            return
        if isinstance(holder, Gathered) and not whole:
            members = [one for one in holder.members if places_of(one.operand) & bound]
            if len(members) == 1:
                members[0].conjuncts.append(part)
                return
        holder.conjuncts.append(part)
        if isinstance(holder, Negation):
            return  # it restricts what counts, and asks nothing of the occurrence
        asked = _asked(operand, bound)
        if holder is not asked and bound & (self._optional - self._listed):
            # beside the name, where `or` leaves it empty
            _judging(asked).conjuncts.append(part)

    def _deny(self, negation: Negation, holder: Operand) -> None:
        """Have the holder judge it, unless one further out does."""
        before = self._deniers.get(id(negation))
        # Two conjuncts may name different neighbours: it is judged once, where all are bound.
        if before is not None:
            if holder.high - holder.low <= before.high - before.low:
                return
            before.denied.remove(negation)
        negation.further_out = holder.closed = True
        holder.denied.append(negation)
        self._deniers[id(negation)] = holder

    def _denied(self, holder: Operand, bound: set[int]) -> Negation | None:
        """The `without` beneath that a conjunct restricts together with what lies further out."""
        for one in operands(holder):
            if isinstance(one, Negation) and one is not holder and bound & places_of(one.right):
                return None if bound <= places_of(one.right) else one
        return None

    def _lowest(self, operand: Operand, bound: set[int], *, whole: bool) -> Operand:
        """The lowest operand at or beneath which binds all the places.

        `whole`: a list is judged as one, so that its members are not entered.
        """
        while True:
            for part in operand.parts:
                # Names of one part alone: further down fewer candidates are made, of fewer events.
                if bound <= places_of(part) and _may_enter(operand, part):
                    break
            else:
                return operand
            entered = part
            if whole and not (bound & self._listed <= _complete(entered, self._listed)):
                return operand
            operand = entered


def _judging(operand: Operand) -> Operand:
    """The operand that judges what is asked of this one's occurrences."""
    while isinstance(operand, Negation | Distinct | Padded):
        operand = operand.left if isinstance(operand, Negation) else operand.operand
    return operand


def _asked(operand: Operand, bound: set[int]) -> Operand:
    """The whole that a conjunct asks: all of the operand, or what must not be, if it names that."""
    denied = [one.right for one in operands(operand) if isinstance(one, Negation)]
    around = [one for one in denied if bound <= places_of(one)]
    return min(around, key=lambda one: one.high - one.low, default=operand)


def _may_enter(operand: Operand, part: Operand) -> bool:
    # Beneath an `nth` it would change which one is the k-th (LANGUAGE: tested on that one).
    if isinstance(operand, Kth):
        return False
    return not (isinstance(operand, Joint) and operand.nth is not None and part is operand.right)


def _complete(operand: Operand, listed: frozenset[int]) -> frozenset[int]:
    """The places of lists that are whole in an operand's occurrences."""
    found: frozenset[int] = frozenset()
    for one in operands(operand):
        if isinstance(one, Gathered):
            for member in one.members:
                found |= places_of(member.operand)
        elif _is_repeat(one):
            found |= places_of(one)
    return found & listed


def _is_repeat(operand: Operand) -> bool:
    from broker.engine.pattern.layout.operands import Count, Run

    return isinstance(operand, Count | Run)


def lies_in(name: str, region: RegionLiteral) -> Expression:
    """Return the condition that an event lies in a region, if there is an event of the name."""
    place = Attribute(name, "location" if region.shape == "path" else "position")
    # Every event has an end, which equals itself: only a null one does not.
    end = Attribute(name, "end")
    missing = Unary("not", Comparison((end, end), ("=",)))
    return Logical("or", (missing, Membership(place, region)))
