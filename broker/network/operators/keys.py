"""From a place of a pattern to a key: what its events must meet.

Owns how conditions become ranges, equalities, a source, a location and a region. Must not know what
travels correlated. Invariant: every event that the place takes passes the key; a key without a
condition lets pass exactly what its fields say.

What a home alone can judge (a table, a function of the user's own) is left out: such a key lets
pass more, and the home's filterer judges again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nextafter
from typing import Any

from broker.engine.event.expressions import RESERVED_CODE
from broker.engine.pattern.layout.operands import Leaf
from broker.network.operators.conditions import members_of, read_condition, text_of, travels
from broker.network.routing.advertisement.operator import Key, Range, Region
from language.lexicon import MIRRORED
from language.printing.expressions import expression_text
from language.tree import (
    Attribute,
    Comparison,
    Constant,
    Expression,
    Membership,
    Name,
    Node,
    RegionLiteral,
)
from language.walk import conjuncts, rewrite

NUMBERS = frozenset(("int", "float"))  # what a range can be of
EQUALS = frozenset(("text", "bool"))  # what only equals
_SOURCE = frozenset(("source", "srcid"))  # both names that the language knows


def key_of(leaf: Leaf, kinds: Mapping[str, str], *, alone: bool = True) -> Key:
    """The key of a place; it is named by its type. `kinds` are the types of its attributes.

    Not `alone`: in a window nothing but the atom's own conditions is asked of an event.
    """
    asked = list(leaf.conditions)
    if alone:
        asked += [_within(region) for region in leaf.regions] + leaf.conjuncts
    parts = [part for condition in asked for part in conjuncts(rewrite(condition, _bare))]
    gathered = _Said(kinds)
    # In one order, so that a key does not depend on how its conditions were written down.
    conditions = sorted((part for part in parts if travels(part)), key=expression_text)
    for part in conditions:
        gathered.take(part)
    return Key(
        name=leaf.event_type,
        type_name=leaf.event_type,
        source=gathered.source,
        location=gathered.location,
        region=gathered.region,
        ranges=tuple(gathered.ranges[name] for name in sorted(gathered.ranges)),
        equals=tuple(sorted(gathered.equals.items())),
        condition=_readable(text_of(conditions)) if gathered.more else "",
    )


def _readable(text: str) -> str:
    """The text, if others can read it; what is too long for them is left to the home as well."""
    try:
        read_condition(text)
    except ValueError:
        return ""
    return text


def _within(region: RegionLiteral) -> Expression:
    return Membership(Name("location" if region.shape == "path" else "position"), region)


def _bare(node: Node) -> Node:
    """A name after a dot is that of the one event's attribute: an alias says nothing here."""
    return Name(node.name) if isinstance(node, Attribute) else node


@dataclass(slots=True)
class _Said:
    """Gather what conditions say of one event; `more`: they say more than the fields can."""

    kinds: Mapping[str, str]  # of attributes, as declared
    source: str | None = None  # what the conditions before said
    location: str | None = None
    region: Region | None = None
    ranges: dict[str, Range] = field(default_factory=dict)
    equals: dict[str, Any] = field(default_factory=dict)
    more: bool = False

    def take(self, part: Expression) -> None:
        """Take one condition."""
        exact = False
        if isinstance(part, Comparison):
            exact = self._compared(part)
        elif isinstance(part, Membership):
            exact = self._contained(part)
        elif isinstance(part, Name):
            exact = self._equal(part.name, value=True)
        self.more |= not exact

    # Each of the following tells whether the fields say all of it now.

    def _compared(self, node: Comparison) -> bool:
        exact = True
        for left, operator, right in zip(
            node.operands, node.operators, node.operands[1:], strict=False
        ):
            if isinstance(left, Name) and isinstance(right, Constant):
                exact &= self._against(left.name, operator, right.value)
            elif isinstance(left, Constant) and isinstance(right, Name):
                exact &= self._against(right.name, MIRRORED[operator], left.value)
            else:
                exact = False
        return exact

    def _against(self, name: str, operator: str, value: Any) -> bool:
        if operator == "=":
            return self._equal(name, value)
        if operator == "!=" or name in RESERVED_CODE or self.kinds.get(name) not in NUMBERS:
            return False
        if isinstance(value, bool | str):
            return False
        if operator in (">", ">="):
            return self._range(name, value, None, is_open=operator == ">")
        return self._range(name, None, value, is_open=operator == "<")

    def _equal(self, name: str, value: Any) -> bool:
        if name in _SOURCE:
            if isinstance(value, str) and self.source in (None, value):
                self.source = value
                return True
            return False
        if name == "location" and isinstance(value, str):
            self._beneath(value)
            return False
        if name in RESERVED_CODE:
            return False
        kind = self.kinds.get(name)
        if kind in EQUALS and isinstance(value, bool if kind == "bool" else str):
            return bool(self.equals.setdefault(name, value) == value)
        if kind in NUMBERS and not isinstance(value, bool | str):
            return self._range(name, value, value)
        return False

    def _range(self, name: str, low: Any, high: Any, *, is_open: bool = False) -> bool:
        before = self.ranges.get(name, Range(name))
        below, above = _float_below(low), _float_above(high)
        # An open end is greater than a closed one at the same number, or lesser if it is the high.
        lows = [(before.low, before.low_open), (below, is_open and low is not None)]
        highs = [(before.high, before.high_open), (above, is_open and high is not None)]
        least = max((end for end in lows if end[0] is not None), default=(None, False))
        greatest = min(
            (end for end in highs if end[0] is not None),
            key=lambda end: (end[0], not end[1]),
            default=(None, False),
        )
        self.ranges[name] = Range(name, least[0], greatest[0], least[1], greatest[1])
        return (low is None or below == low) and (high is None or above == high)

    def _contained(self, node: Membership) -> bool:
        if not isinstance(node.item, Name):
            return False
        name, container = node.item.name, node.container
        if isinstance(container, RegionLiteral):
            return self._inside(name, container)
        values = members_of(container)
        if len(values) == 1:
            return self._equal(name, values[0])
        if name not in RESERVED_CODE and self.kinds.get(name) in NUMBERS and _numbers(values):
            self._range(name, min(values), max(values))
        return False

    def _inside(self, name: str, region: RegionLiteral) -> bool:
        if region.shape == "path":
            return name == "location" and self._beneath(region.path.rstrip("/"))
        inner = Region(region.shape, tuple(region.numbers), region.metric)
        if name != "position" or self.region not in (None, inner):
            return False
        self.region = inner
        return True

    def _beneath(self, path: str) -> bool:
        """Of two places the lower one stands; two that hold nothing in common are said in words."""
        if not path:
            return False
        if self.location is None or path.startswith(self.location + "/"):
            self.location = path
            return True
        return self.location == path or self.location.startswith(path + "/")


def _numbers(values: Sequence[Any]) -> bool:
    return bool(values) and not any(isinstance(value, bool | str) for value in values)


def _float_below(value: Any) -> float | None:
    """The greatest float that is not more, as near as the fields of a key can say."""
    if value is None:
        return None
    near = float(value)
    return nextafter(near, -inf) if near > value and isfinite(near) else near


def _float_above(value: Any) -> float | None:
    if value is None:
        return None
    near = float(value)
    return nextafter(near, inf) if near < value and isfinite(near) else near
