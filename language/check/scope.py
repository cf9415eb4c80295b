"""What the names of a case stand for.

Owns the binding of aliases and types to the places of a pattern. Must not know expressions.
Invariant: a name stands for one place; where a type is used twice, every use has an alias.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from language import tree
from language.diagnostics import quote
from language.specification import EventType
from language.walk import atoms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from language.check.declarations import Declared
    from language.diagnostics import Collector

Kind = Literal["event", "list", "without", "absent"]
"""Whether a name binds one event, a list, or (beneath `without` or `absent`) none."""


@dataclass(frozen=True)
class Binding:
    """The meaning of a name; the type is None where it is unknown.

    Of a list whose members are `several` events each, only their number is known.
    """

    name: str
    event_type: EventType | None
    kind: Kind
    several: bool = False


@dataclass
class Bindings:
    """The names of a pattern, and the types that only their aliases name."""

    names: dict[str, Binding] = field(default_factory=dict)
    aliased: dict[str, str] = field(default_factory=dict)


class Binder:
    """Finds the bindings of one pattern."""

    def __init__(self, declared: Declared, collector: Collector) -> None:
        self.declared = declared
        self.collector = collector
        self.found = Bindings()
        self.uses: Counter[str] = Counter()

    def bind(self, pattern: tree.Pattern) -> Bindings:
        """The bindings of the whole pattern; unknown and ambiguous names are noted."""
        self.uses.update(atom.type for atom in atoms(pattern))
        self._visit(pattern, "event")
        return self.found

    def _visit(self, node: tree.Pattern, kind: Kind) -> None:
        if isinstance(node, tree.Atom):
            self._atom(node, kind)
        elif isinstance(node, tree.Link):
            self._visit(node.left, kind)
            hides = node.operator == "without" and kind != "absent"
            self._visit(node.right, "without" if hides else kind)
        elif isinstance(node, tree.Absent):
            self._visit(node.operand, "absent")
        elif isinstance(node, tree.Repeat):
            self._repeat(node, "list" if kind == "event" else kind)
        else:
            self._visit(node.operand, kind)

    def _repeat(self, node: tree.Repeat, kind: Kind) -> None:
        if node.alias is None:
            self._visit(node.operand, kind)
            return
        event_type = None
        if isinstance(node.operand, tree.Atom) and node.operand.alias is None:
            event_type = self._type(node.operand)
            self.found.aliased.setdefault(node.operand.type, node.alias)
        else:
            self._visit(node.operand, kind)
            event_type = EventType(node.alias, {})
        first = first_of(node.operand)
        if first is None:
            self.collector.note("HW422", node.place("alias"), name=node.alias)
        several = first is None or not binds_one(node.operand)
        self._name(node.alias, event_type, kind, node.place("alias"), several=several)

    def _atom(self, node: tree.Atom, kind: Kind) -> None:
        event_type = self._type(node)
        if node.alias is not None:
            self.found.aliased.setdefault(node.type, node.alias)
            self._name(node.alias, event_type, kind, node.place("alias"))
        elif self.uses[node.type] > 1:
            hint = f"write {quote(f'{node.type} as …')}, with a name of your choice"
            self.collector.note("HW209", node.span, hint, name=node.type)
        else:
            self._name(node.type, event_type, kind, node.span)

    def _name(
        self,
        name: str,
        event_type: EventType | None,
        kind: Kind,
        span: tree.Span,
        *,
        several: bool = False,
    ) -> None:
        if name in self.found.names:
            self.collector.note("HW208", span, name=name)
        else:
            self.found.names[name] = Binding(name, event_type, kind, several)

    def _type(self, node: tree.Atom) -> EventType | None:
        types = self.declared.event_types
        if node.type not in types and node.type not in self.declared.broken:
            self.collector.misspelt("HW201", node.span, node.type, types)
        return types.get(node.type)


def first_of(pattern: tree.Pattern) -> tree.Atom | None:
    """The first atom of a pattern, where every occurrence has one event of it; else None."""
    while not isinstance(pattern, tree.Atom):
        if isinstance(pattern, tree.Repeat | tree.Absent):
            return None
        if isinstance(pattern, tree.Link):
            if pattern.operator == "or":
                return None
            pattern = pattern.left
        else:
            pattern = pattern.operand
    return pattern


def binds_one(pattern: tree.Pattern) -> bool:
    """Tell whether every occurrence of a pattern is a single event."""
    while isinstance(pattern, tree.Where | tree.Within | tree.Spread | tree.InRegion | tree.Select):
        pattern = pattern.operand
    if isinstance(pattern, tree.Link) and pattern.operator == "without":
        return binds_one(pattern.left)
    return isinstance(pattern, tree.Atom)


@dataclass(frozen=True)
class Seen:
    """A name as it is seen from the pattern that is looked at.

    `beneath`: the `without` and `absent` between the two, from the outermost.
    """

    kind: Kind
    beneath: tuple[tree.Pattern, ...] = ()


def names_within(pattern: tree.Pattern) -> dict[str, Seen]:
    """The names that a pattern binds, as they are seen from a suffix of it."""
    seen: dict[str, Seen] = {}
    _look(pattern, Seen("event"), seen)
    return seen


def _look(node: tree.Pattern, seen: Seen, found: dict[str, Seen]) -> None:
    if isinstance(node, tree.Atom):
        found.setdefault(node.type if node.alias is None else node.alias, seen)
    elif isinstance(node, tree.Link):
        _look(node.left, seen, found)
        _look(node.right, _hidden(node, seen) if node.operator == "without" else seen, found)
    elif isinstance(node, tree.Absent):
        _look(node.operand, _hidden(node, seen), found)
    elif isinstance(node, tree.Repeat):
        member = replace(seen, kind="list") if seen.kind == "event" else seen
        if node.alias is not None:
            found.setdefault(node.alias, member)
        named_alone = isinstance(node.operand, tree.Atom) and node.operand.alias is None
        if node.alias is None or not named_alone:
            _look(node.operand, member, found)
    else:
        _look(node.operand, seen, found)


def _hidden(node: tree.Link | tree.Absent, seen: Seen) -> Seen:
    absent = seen.kind == "absent" or isinstance(node, tree.Absent)
    return Seen("absent" if absent else "without", (*seen.beneath, node))


def never_together(names: Iterable[str], seen: Mapping[str, Seen]) -> tuple[str, str] | None:
    """Two of the names that nothing binds together.

    What a `without` excludes is bound together with what stands beside that `without`, and nothing
    else is.
    """
    bound = [name for name in names if name in seen and seen[name].kind != "absent"]
    if not bound:
        return None
    deepest = max(bound, key=lambda name: len(seen[name].beneath))
    beneath = seen[deepest].beneath
    for name in bound:
        if not any(_same(seen[name].beneath, prefix) for prefix in (beneath, beneath[:-1])):
            return name, deepest
    return None


def _same(left: tuple[tree.Pattern, ...], right: tuple[tree.Pattern, ...]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
