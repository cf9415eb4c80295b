"""Contents that the value of one term tells apart, with nothing left to test.

Owns the question whether a content's ranges say all that its conditions do, and the cells over
such contents. Must not know groups, hashes or who wants a content. Invariant: of the contents in an
event's cell the conditions hold, and of no others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from broker.engine import native
from broker.engine.event.source import Constants, shared
from broker.engine.filter.cells import Ranges
from broker.engine.filter.conditions import EXACT_FLOAT_MAX, Term, constant_of, slot_read
from language.tree import Attribute, Comparison, Expression, Name
from language.walk import conjuncts

RANGED = frozenset(("<", "<=", ">", ">="))
Cells = list[tuple[Any, ...]]


def says_all(conditions: tuple[Expression, ...]) -> bool:
    """Tell whether the one alternative of the conditions holds exactly where they do."""
    return all(_plain(part) for condition in conditions for part in conjuncts(condition))


def _plain(part: Expression) -> bool:
    """Tell whether a part compares an attribute with constants of which the range is exact."""
    if not isinstance(part, Comparison):
        return False
    pairs = zip(part.operands, part.operators, part.operands[1:], strict=False)
    return all(_exact(left, operator, right) for left, operator, right in pairs)


def _exact(left: Expression, operator: str, right: Expression) -> bool:
    if not isinstance(left, Name | Attribute):
        left, right = right, left
    if not isinstance(left, Name | Attribute):
        return False
    value = constant_of(right)
    if isinstance(value, str):
        return operator == "=" or operator in RANGED
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return operator in RANGED and -EXACT_FLOAT_MAX < value < EXACT_FLOAT_MAX


class Scale:
    """Contents in the cells of one term's values; without a term all are wanted always."""

    __slots__ = ("cells", "compiled", "edges", "read")

    def __init__(self, rows: Sequence[tuple[Ranges, Any]], term: Term | None) -> None:
        ends = {end for ranges, _ in rows for end in ranges[1:] if end is not None}
        edges: list[Any] = sorted(ends)
        self.edges = edges
        cells: list[list[Any]] = [[] for _ in range(len(edges) + 2)]  # the last: of null
        for ranges, content in rows:
            _, low, high = ranges or (None, None, None)
            first = 0 if low is None else bisect_right(edges, low)
            last = len(edges) if high is None else bisect_left(edges, high)
            for at in range(first, last + 1):
                cells[at].append(content)
            if not ranges:
                cells[-1].append(content)
        self.cells: Cells = [tuple(cell) for cell in cells]
        self.read = _nothing if term is None else reader_of(term)
        self.compiled = _compiled(self.edges, self.cells, term)

    def contents(self, event: Any) -> tuple[Any, ...]:
        """Those whose conditions hold of an event."""
        value = self.read(event)
        return self.cells[-1 if value is None else bisect_right(self.edges, value)]


def scale_of(rows: Sequence[tuple[Ranges, Any]], terms: dict[str, Term]) -> Scale | None:
    """The cells of contents that say all; None where they have ranges of several terms."""
    keys = {key for ranges, _ in rows for key in ranges[::3]}
    if len(keys) > 1 or any(len(ranges) > 3 for ranges, _ in rows):
        return None
    return Scale(rows, terms[keys.pop()] if keys else None)


def _compiled(edges: list[Any], cells: Cells, term: Term | None) -> Any:
    """The same for the compiled pass; None where there is none, or no bare number is read."""
    slot = None if term is None else slot_read(term.node)
    number = all(edge.__class__ is float or edge.__class__ is int for edge in edges)
    if native.passes is None or not number or (term is not None and slot is None):
        return None
    return native.passes.Scale(slot, list(map(float, edges)), tuple(cells))


def _nothing(_: Any) -> None:
    """The value of no term."""


def reader_of(term: Term) -> Callable[[Any], Any]:
    """Return a function that reads the term off an event."""
    code = term.code(Constants())
    slot = code.removeprefix("e.")
    if slot.isidentifier():
        return attrgetter(slot)
    return shared(f"def read(e):\n    return {code}\n", "read", Constants())
