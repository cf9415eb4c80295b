"""Names in conditions and assignments over several places.

Owns how code reads a bound event, the members of a list and aggregates over them. Must not know
where the places are: whoever uses a scope says that. Invariant: an unbound place reads as null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.engine.event.expressions import Writer, attribute_code, children
from broker.engine.event.source import Constants
from broker.engine.pattern.layout.operands import (
    Count,
    Gathered,
    Joint,
    Leaf,
    Negation,
    Operand,
    Run,
    Silence,
    operands,
)
from broker.engine.window.aggregates import aggregate, is_nullable
from language.functions import is_aggregate, share_of
from language.tree import Attribute, Call, Expression, Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.engine.pattern.layout.pattern import Layout

PlaceCode = Callable[[int], str | None]  # code of what is bound at a place; None: nothing can be


class PlaceScope:
    """Names that stand for places, and `group`."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        code_of: PlaceCode,
        constants: Constants,
        silent: frozenset[int],
    ) -> None:
        """`silent`: the places that bind nothing where the names are used."""
        self._layout = layout
        self._silent = silent
        self._places = layout.places
        self._keys = keys
        self._code_of = code_of
        self._constants = constants
        self._each: dict[int, str] = {}  # place of a list → the variable of one member

    @contextmanager
    def each_of(self, members: Mapping[int, str]) -> Iterator[None]:
        """Within: at these places, those of a list, stands the code of one member."""
        # Repetitions nest, and so do conditions on them: what was meant outside comes back.
        before = dict(self._each)
        self._each.update(members)
        yield
        self._each = before

    def code(self, place: int) -> str | None:
        """Code of what is bound at the place."""
        return self._code_of(place)

    def place(self, name: str) -> int | None:
        """The place that a name stands for."""
        return self._places.get(name)

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Return the code of an attribute or aggregate and whether it may be null; else None."""
        if isinstance(node, Call):
            return self._aggregate(node) if is_aggregate(node) else None
        if isinstance(node, Name):
            return None
        if node.base == "group":
            # The key is never null: an event without one is in no group (LANGUAGE, section 2).
            return f"g[{self._keys.index(node.name)}]", False
        place = self._places[node.base]
        if place in self._each:
            return attribute_code(self._each[place], node.name)
        event = self._code_of(place)
        # A `where` may name it all the same, to say which of these count; elsewhere it is null.
        if event is None or place in self._silent:
            return "None", True
        if place in self._layout.listed:
            member, _ = attribute_code("m", node.name)
            return f"[{member} for m in ({event} or ())]", False
        code, nullable = attribute_code(event, node.name)
        if place in self._layout.optional:
            # Only sides of `or` and lists may be empty: elsewhere the test would be paid for
            # nothing.
            return f"(None if {event} is None else {code})", True
        return code, nullable

    def event(self, name: str) -> str | None:
        """Return the code of an event, which may be null; None if the name is a list or unknown."""
        place = self._places.get(name)
        if place is None or place in self._layout.listed:
            return None
        return self._code_of(place) or "None"

    def listed_outside(self, node: Expression) -> list[int]:
        """The places of lists that are named outside of aggregates, in order."""
        found: set[int] = set()
        # An aggregate has made one value of the list already.
        if isinstance(node, Call) and is_aggregate(node):
            return []
        if isinstance(node, Attribute):
            place = self._places.get(node.base)
            if place is not None and place in self._layout.listed and place not in self._each:
                found.add(place)
        for child in children(node):
            found.update(self.listed_outside(child))
        return sorted(found)

    def beside(self, place: int, others: list[int]) -> list[int]:
        """The place of a list, and those of others whose members belong to members of its own."""
        # `(A as a then B as b){3} where a.v < b.v` compares the A and the B of one pair, not all As
        # with all Bs.
        row = _row(self._layout, place)
        return [one for one in others if one == place or (place in row and one in row)]

    def _aggregate(self, node: Call) -> tuple[str, bool]:
        """An aggregate over a list (or over the one event of a plain place)."""
        value = node.arguments[0]
        place = self._argument_place(value)
        items = "()"
        if place is not None:
            code = self._code_of(place) or "None"
            one = f"({code},) if {code} is not None else ()"
            items = f"({code} or ())" if place in self._layout.listed else f"({one})"
        # `Count(a)` counts events; `Count(a.v)` those whose v is not null, as all other aggregates.
        if isinstance(value, Name):
            return f"len({items})", False
        variable = f"m{self._constants.temporary()}"
        values = f"[{variable} for {variable} in {items}]"
        if place is not None:
            with self.each_of({place: variable}):
                code = Writer(self, self._constants).value(value)
            # Asked and kept in one go: a user's function inside it may be dear.
            held = self._constants.temporary()
            values = f"[{held} for {variable} in {items} if ({held} := {code}) is not None]"
        if node.own is not None:
            return f"{self._constants.add(node.own)}.of({values})", True
        helper = self._constants.helper("aggregate", aggregate)
        arguments = [repr(node.function), values]
        share = share_of(node)
        if share is not None:
            arguments.append(self._constants.add(share))
        return f"{helper}({', '.join(arguments)})", is_nullable(node.function)

    def _argument_place(self, node: Expression) -> int | None:
        if isinstance(node, Name):
            return self._places.get(node.name)
        if isinstance(node, Attribute):
            return self._places.get(node.base)
        found = [self._argument_place(child) for child in children(node)]
        return next((place for place in found if place is not None), None)


def condition_code(node: Expression, scope: PlaceScope, constants: Constants) -> str:
    """Code of a condition; a list that is named outside an aggregate: all its members meet it.

    Names of one repetition are asked together, of one of its members after the other.
    """
    listed = scope.listed_outside(node)
    if not listed:
        return Writer(scope, constants).condition(node)
    places = scope.beside(listed[0], listed)
    members = {place: f"m{constants.temporary()}" for place in places}
    # No members meet everything: an empty `B*` fails no condition of its members.
    lists = [f"({scope.code(place) or '()'} or ())" for place in places]
    items = lists[0] if len(lists) == 1 else f"zip({', '.join(lists)})"
    with scope.each_of(members):
        code = condition_code(node, scope, constants)
    return f"all([{code} for {', '.join(members.values())} in {items}])"


def _row(layout: Layout, place: int) -> frozenset[int]:
    """The places that bind one event each in every member of the repetition of a place's.

    Without the place where it is itself none of them.
    """
    # Those beneath come first, so that the first one around the place is the innermost.
    around = [one for one in operands(layout.root) if isinstance(one, Count | Run)]
    inner = next((one for one in around if one.low <= place < one.high), None)
    return frozenset() if inner is None else _always_one(inner.operand)


def _always_one(operand: Operand) -> frozenset[int]:
    """The places beneath that bind exactly one event in every occurrence."""
    if isinstance(operand, Leaf):
        return frozenset({operand.low})
    if isinstance(operand, Joint) and operand.operator == "or":
        return frozenset()
    # None, or several, in one member: nothing stands beside another one by one.
    if isinstance(operand, Silence | Count | Run):
        return frozenset()
    parts = operand.parts
    if isinstance(operand, Negation):
        parts = (operand.left,)
    elif isinstance(operand, Gathered):
        parts = (operand.base,)
    return frozenset().union(*(_always_one(part) for part in parts))
