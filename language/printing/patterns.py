"""Patterns and their options as text, with as few parentheses as the meaning allows."""

from __future__ import annotations

from language import tree
from language.printing.expressions import (
    container_text,
    distance_text,
    duration_text,
    expression_text,
    name_text,
)
from language.relations import CONTEXTS

_WHERE, _SUFFIXED, _OR, _AND, _CHAIN, _PREFIXED, _ALIASED, _REPEATED, _ATOM = range(9)
_LEVELS = {"or": _OR, "and": _AND}


def bound_text(bound: tree.Bound) -> str:
    """`1 s..60 s`, either side open."""
    low = "" if bound.low_ms is None else duration_text(bound.low_ms)
    high = "" if bound.high_ms is None else duration_text(bound.high_ms)
    return f"{low}..{high}"


def operator_text(link: tree.Link) -> str:
    """An operator with its options."""
    parts = []
    if link.bound is not None:
        if link.operator == "without":
            parts.append(duration_text(link.bound.high_ms or 0))
        else:
            parts.append(bound_text(link.bound))
    if link.next:
        parts.append("next")
    if link.context is not None and link.operator not in {"or", "without"}:
        parts.append(link.context)
    return link.operator + (f"[{', '.join(parts)}]" if parts else "")


def detect_text(detect: tree.Detect) -> str:
    """The word `detect` with its options."""
    parts: list[str] = []
    if CONTEXTS[detect.context].chooses:
        parts.append(detect.context)
    if detect.maybe_drop:
        parts.append("maybe drop")
    if detect.report != "all":
        parts.append(detect.report)
    return "detect" + (f"[{', '.join(parts)}]" if parts else "")


def pattern_text(node: tree.Pattern) -> str:
    """A pattern on one line."""
    return _write(node, _WHERE)


def pattern_parts(node: tree.Pattern) -> list[tuple[str, int]]:
    """The pattern cut at its outermost operators, each part with its offset in the source.

    Joined by blanks the parts are `pattern_text(node)`.
    """
    if isinstance(node, tree.Where):
        return [
            *_parts(node.operand, _SUFFIXED),
            (f"where {expression_text(node.condition)}", node.condition.span.start),
        ]
    if isinstance(node, tree.Within | tree.Spread | tree.InRegion):
        *front, (text, first) = _parts(node.operand, _SUFFIXED)
        return [*front, (f"{text} {_suffix(node)}", first)]
    if isinstance(node, tree.Link):
        level = _LEVELS.get(node.operator, _CHAIN)
        right = _write(node.right, level + 1)
        return [
            *_parts(node.left, level),
            (f"{operator_text(node)} {right}", node.place("operator").start),
        ]
    return [(pattern_text(node), node.span.start)]


def _parts(node: tree.Pattern, least: int) -> list[tuple[str, int]]:
    level, text = _leveled(node)
    return [(f"({text})", node.span.start)] if level < least else pattern_parts(node)


def _write(node: tree.Pattern, least: int) -> str:
    level, text = _leveled(node)
    return f"({text})" if level < least else text


def _leveled(node: tree.Pattern) -> tuple[int, str]:
    """The text of a node and how tightly it holds together."""
    if isinstance(node, tree.Atom):
        conditions = ", ".join(map(expression_text, node.conditions))
        text = name_text(node.type) + (f"({conditions})" if conditions else "")
        return _aliased(text, node.alias, _ATOM)
    if isinstance(node, tree.Link):
        level = _LEVELS.get(node.operator, _CHAIN)
        left, right = _write(node.left, level), _write(node.right, level + 1)
        return level, f"{left} {operator_text(node)} {right}"
    if isinstance(node, tree.Repeat):
        text = _write(node.operand, _ATOM) + _quantifier(node)
        return _aliased(text, node.alias, _REPEATED)
    if isinstance(node, tree.Select):
        return _PREFIXED, f"{_prefix(node)} {_write(node.operand, _PREFIXED)}"
    if isinstance(node, tree.Absent):
        text = f"absent {_write(node.operand, _PREFIXED)} for {duration_text(node.for_ms)}"
        return _PREFIXED, text
    if isinstance(node, tree.Where):
        text = f"{_write(node.operand, _SUFFIXED)} where {expression_text(node.condition)}"
        return _WHERE, text
    return _SUFFIXED, f"{_write(node.operand, _SUFFIXED)} {_suffix(node)}"


def _aliased(text: str, alias: str | None, level: int) -> tuple[int, str]:
    return (level, text) if alias is None else (_ALIASED, f"{text} as {name_text(alias)}")


def _quantifier(node: tree.Repeat) -> str:
    if node.kind == "count":
        return f"{{{node.count}}}"
    if node.kind == "run":
        gap = node.gap or tree.Bound(None, None)
        return f"+[{bound_text(gap)}]"
    return node.kind


def _prefix(node: tree.Select) -> str:
    if node.kind == "nth":
        return f"nth {node.k}"
    if node.keys:
        return f"{node.kind}({', '.join(map(name_text, node.keys))})"
    return node.kind


def _suffix(node: tree.Within | tree.Spread | tree.InRegion) -> str:
    if isinstance(node, tree.Within):
        anchor = "" if node.anchor is None else f" from {name_text(node.anchor)}"
        return f"within {duration_text(node.within_ms)}{anchor}"
    if isinstance(node, tree.Spread):
        return f"spread {distance_text(node.distance_m)}"
    return f"in {container_text(node.region)}"
