"""Walking trees: the nodes beneath a node, and how deep they lie.

Knows the shape of nodes from their fields alone. Invariant: no recursion, so any depth will do.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar, cast

from language.tree import (
    NO_SPAN,
    Atom,
    Call,
    Constant,
    Expression,
    Logical,
    Lookup,
    Name,
    Node,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMES_MAX = 65_536  # nodes of names that trees share

_N = TypeVar("_N", bound=Node)
_PLAIN = frozenset(
    (
        "span",
        "name",
        "alias",
        "operator",
        "operators",
        "base",
        "context",
        "type",
        "marks",
        "values",
        "own",
    )
)


_FIELDS: dict[type[Node], tuple[str, ...]] = {}
_NAMED: dict[type[Node], tuple[str, ...]] = {}


def _named(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a class that say something."""
    names = _NAMED.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind) if field.name not in {"span", "marks"})
        _NAMED[kind] = names
    return names


def _fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a class that can hold nodes."""
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind) if field.name not in _PLAIN)
        _FIELDS[kind] = names
    return names


def children(node: Node) -> Iterator[Node]:
    """The nodes directly beneath `node`, in the order of the text."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                if isinstance(part, Node):
                    yield part


def descendants(node: Node) -> Iterator[Node]:
    """`node` and all beneath it, in the order of the text."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if type(node) is not Constant:
            stack.extend(reversed(list(children(node))))


def bindings(node: Node) -> tuple[tuple[str, str], ...]:
    """Return the tables and the user's functions in `node`, each with the version that is bound."""
    # Nodes that name another version of either are equal: what is bound is no part of the text.
    bound: list[tuple[str, str]] = []
    for part in descendants(node):
        if isinstance(part, Lookup):
            bound.append((part.table, part.digest))
        elif isinstance(part, Call) and part.own is not None:
            bound.append((part.function, getattr(part.own, "version", "")))
    return tuple(bound)


def conjuncts(node: Expression) -> list[Expression]:
    """The parts of a condition that must all hold."""
    if isinstance(node, Logical) and node.operator == "and":
        return [part for operand in node.operands for part in conjuncts(operand)]
    return [node]


def beyond(node: Node, levels: int) -> Node | None:
    """The first node that lies more than `levels` beneath `node`, if there is one."""
    layer = [node]
    for _ in range(levels + 1):
        layer = [part for upper in layer if type(upper) is not Constant for part in children(upper)]
        if not layer:
            return None
    return layer[0]


def atoms(pattern: Node) -> Iterator[Atom]:
    """The atoms of a pattern in the order of the text."""
    stack = [pattern]
    while stack:
        node = stack.pop()
        if isinstance(node, Atom):
            yield node  # its conditions hold no atoms, and are most of the tree
        elif not isinstance(node, Expression):
            stack.extend(reversed(list(children(node))))


def bare(node: _N) -> _N:
    """`node` without the places in the text, of itself and of all beneath it.

    They are more than half of a tree's size. Recursive: for trees within NESTING_MAX.
    """
    kind = type(node)
    if kind is Name:
        return cast("_N", _bare_name(cast("Name", node).name))
    copy = object.__new__(kind)
    put = object.__setattr__  # the copy is nobody else's yet
    put(copy, "span", NO_SPAN)
    put(copy, "marks", ())
    for name in _named(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            value = bare(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            value = tuple([bare(part) for part in value])
        put(copy, name, value)
    return copy


@lru_cache(maxsize=NAMES_MAX)
def _bare_name(name: str) -> Name:
    """The one node of a name: the conditions of thousands of texts name the same attributes."""
    return Name(intern(name))


def rewrite(node: _N, change: Callable[[Node], Node]) -> _N:
    """`node` with `change` made to each node beneath it and to itself, bottom-up.

    Recursive: for trees within NESTING_MAX.
    """
    changes: dict[str, Any] = {}
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = value if type(value) is Constant else rewrite(value, change)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            parts = tuple(rewrite(part, change) for part in value)
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                changes[name] = parts
    changed = replace(node, **changes) if changes else node
    return cast("_N", change(changed))
