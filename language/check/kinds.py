"""The kinds of values: how they are called, which compare with which.

Owns types apart from expressions. Must not know names. Invariant: "any" fits everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from language import tree
    from language.diagnostics import Collector

Type = str
"""A type of attributes, or "position", "event" (a bound event as such), "list", "any"."""

NUMBERS = frozenset(("int", "float"))

_WORDS = {
    "int": "a number",
    "float": "a number",
    "text": "a text",
    "bool": "a truth value",
    "bytes": "bytes",
    "position": "a position",
    "event": "an event",
    "list": "a list",
}


def kind_word(found: Type) -> str:
    """A type in words."""
    return _WORDS.get(found, found)


def constant_type(node: tree.Constant) -> Type:
    """The type of a constant."""
    if isinstance(node.value, bool):
        return "bool"
    if isinstance(node.value, str):
        return "text"
    return "int" if isinstance(node.value, int) else "float"


def comparable(left: Type, right: Type) -> bool:
    """Tell whether values of the two types can be compared."""
    return left == right or "any" in {left, right} or {left, right} <= NUMBERS


def member_type(node: tree.SetLiteral, collector: Collector | None = None) -> Type:
    """The common type of a set's members; a member of another type is noted."""
    common: Type = "any"
    for member in node.members:
        kind = constant_type(member)
        if not comparable(common, kind):
            if collector is not None:
                words = {"kind": kind_word(kind), "common": kind_word(common)}
                collector.note("HW305", member.span, None, **words)
            return "any"
        common = kind if common == "any" else common
    return common
