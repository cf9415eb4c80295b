"""The plan of a windowed detect: its operands, its groups, and what to keep for its aggregates.

Owns the reading of the checked tree. Must not know events at run time, nor how windows move.
Invariant: equal arguments are kept once, however many aggregates ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.engine.event.expressions import Scope, attribute_code, children
from broker.engine.window.aggregates import COMPUTATIONS, is_nullable
from language.functions import AGGREGATES, SCALARS, is_aggregate, share_of
from language.lexicon import COMMON_ATTRIBUTES
from language.tree import (
    Arithmetic,
    Assignment,
    Atom,
    Attribute,
    Call,
    Case,
    Constant,
    Expression,
    Link,
    Lookup,
    Name,
    Pattern,
    Select,
    Unary,
)
from language.walk import bindings

CONSTANT_KINDS = {bool: "bool", int: "int", float: "float", str: "text"}

KindOf = Callable[[Name | Attribute], str]


class HasAttributes(Protocol):
    """An event type as the task describes it."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attribute → type."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An atom of the windowed detect; its leaf is its place in the list of them.

    `distinct` are the keys of which only the first event in a window counts; None if all count.
    """

    name: str
    event_type: str
    outer: bool
    distinct: tuple[str, ...] | None = None
    conditions: tuple[Expression, ...] = ()


@dataclass(slots=True)
class Argument:
    """Return what aggregates run over: an expression of one leaf's events, and what is kept of it.

    `kept` maps what is kept ("moments", "bag", …) to its index among all that is kept.
    """

    leaf: int
    value: Expression
    kind: str
    kept: dict[str, int] = field(default_factory=dict)


def subject_of(argument: Argument) -> tuple[Any, ...]:
    """Return what tells an argument from others, also of another version of its window."""
    return (argument.leaf, repr(argument.value), argument.kind, bindings(argument.value))


@dataclass(frozen=True, slots=True)
class Keeping:
    """One thing to keep: what, whether of integers alone, and whether values come in any order.

    So they do in a window that moves where its operand is `distinct`.
    """

    what: str
    whole: bool
    scattered: bool


@dataclass(frozen=True, slots=True)
class Result:
    """Code of an aggregate's result over `k` (what is kept) and `n` (events of each leaf)."""

    code: str
    nullable: bool
    constants: tuple[tuple[str, Any], ...] = ()


def read_operands(pattern: Pattern) -> list[Operand]:
    """The atoms joined by `and`, in the order of the text."""
    if isinstance(pattern, Link) and pattern.operator == "and":
        return read_operands(pattern.left) + read_operands(pattern.right)
    outer = False
    keys: list[str] = []  # of several `distinct` each drops on its own
    distinct = False
    while isinstance(pattern, Select) and pattern.kind in ("outer", "distinct"):
        outer = outer or pattern.kind == "outer"
        if pattern.kind == "distinct":
            if distinct:
                raise ValueError("an operand of a window is `distinct` once")
            distinct = True
            keys += pattern.keys or ("end",)
        pattern = pattern.operand
    if isinstance(pattern, Atom):
        name = pattern.alias or pattern.type
        asked = tuple(keys) if distinct else None
        return [Operand(name, pattern.type, outer, asked, pattern.conditions)]
    raise ValueError(f"an operand of a window is an atom, not {type(pattern).__name__}")


def calls_in(node: Expression) -> Iterator[Call]:
    """The aggregates of an expression, in the order of the text."""
    if isinstance(node, Call) and is_aggregate(node):
        yield node
        return
    for child in children(node):
        yield from calls_in(child)


def kind_of(node: Expression, reference: KindOf) -> str:
    """The type of an expression's values: a type of the language, or "position"."""
    if isinstance(node, Constant):
        return CONSTANT_KINDS[type(node.value)]
    if isinstance(node, Name | Attribute):
        return reference(node)
    if isinstance(node, Arithmetic):
        kinds = {kind_of(node.left, reference), kind_of(node.right, reference)}
        return "float" if node.operator == "/" or "float" in kinds else "int"
    if isinstance(node, Unary) and node.operator == "-":
        return kind_of(node.operand, reference)
    if isinstance(node, Lookup):
        return _kind_of_column(node)
    return _kind_of_call(node, reference) if isinstance(node, Call) else "bool"


def _kind_of_call(node: Call, reference: KindOf) -> str:
    if node.own is not None:
        result: str = node.own.result
        return result
    function = AGGREGATES.get(node.function) or SCALARS[node.function]
    if function.result != "same":
        return function.result
    kinds_of = [kind_of(argument, reference) for argument in node.arguments]
    return "float" if "float" in kinds_of else kinds_of[0]


def _kind_of_column(node: Lookup) -> str:
    """All values of a column are of one type; of an empty one nothing is ever found."""
    value = next(iter((node.values or {}).values()), "")
    return CONSTANT_KINDS[type(value)]


class Aggregation:
    """The aggregates of one list of assignments: arguments, what is kept, and results."""

    def __init__(self, assignments: tuple[Assignment, ...], names: Names) -> None:
        self.arguments: list[Argument] = []
        self.keepings: list[Keeping] = []
        self._names = names
        self._by_text: dict[tuple[int, str], Argument] = {}
        self._results: dict[str, Result] = {}
        self.needs: dict[str, tuple[Argument, str]] = {}  # of each call: what it has to be kept of
        calls = [call for item in assignments for call in calls_in(item.value)]
        for call in calls:
            self._collect(call)
        for argument in self.arguments:
            self._settle(argument)
        for call in calls:
            self._results.setdefault(repr(call), self._result(call))

    @property
    def calls(self) -> tuple[str, ...]:
        """The aggregates that are asked for, each once."""
        return tuple(self._results)

    def result(self, call: Call) -> Result | None:
        """The result of an aggregate; None if the call is of a plain function."""
        return self._results.get(repr(call))

    def _collect(self, call: Call) -> None:
        if self._operand(call) is not None:
            return
        value = call.arguments[0]
        leaf = self._names.leaf_of_argument(value)
        argument = self._by_text.get((leaf, repr(value)))
        if argument is None:
            kind = kind_of(value, self._names.kind)
            argument = self._by_text[leaf, repr(value)] = Argument(leaf, value, kind)
            self.arguments.append(argument)
        what = "ordered" if call.own else COMPUTATIONS[call.function].kept
        argument.kept.setdefault(what, -1)
        self.needs[repr(call)] = (argument, what)

    def _settle(self, argument: Argument) -> None:
        """One of tally, moments and squares does for all three."""
        for stronger, weaker in (
            ("squares", "moments"),
            ("squares", "tally"),
            ("moments", "tally"),
        ):
            if stronger in argument.kept:
                argument.kept.pop(weaker, None)
        for what in argument.kept:
            argument.kept[what] = len(self.keepings)
            scattered = self._names.scattered(argument.leaf)
            self.keepings.append(Keeping(what, argument.kind == "int", scattered))

    def _result(self, call: Call) -> Result:
        operand = self._operand(call)
        if operand is not None:
            return Result(f"n[{operand}]", nullable=False)
        value = call.arguments[0]
        argument = self._by_text[self._names.leaf_of_argument(value), repr(value)]
        if call.own is not None:
            kept = f"k[{argument.kept['ordered']}]"
            return Result(
                f"{{own}}.of({kept}.values)", nullable=True, constants=(("own", call.own),)
            )
        computed = COMPUTATIONS[call.function]
        does = (computed.kept, "moments", "squares")
        kept = f"k[{next(argument.kept[what] for what in does if what in argument.kept)}]"
        if computed.of_whole is not None and argument.kind == "int":
            return Result(computed.of_whole.replace("{kept}", kept), nullable=False)
        share = share_of(call)
        constants: tuple[tuple[str, Any], ...] = ()
        if share is not None:
            constants = (("over", share.numerator), ("under", share.denominator))
        code = computed.result.replace("{kept}", kept)
        return Result(code, is_nullable(call.function), constants)

    def _operand(self, call: Call) -> int | None:
        first = call.arguments[0]
        if isinstance(first, Name) and call.own is None and AGGREGATES[call.function].of_events:
            return self._names.leaf_of_operand(first.name)
        return None


class Names(Protocol):
    """Return what names mean in the aggregates of one list of assignments."""

    def leaf_of_operand(self, name: str) -> int | None:
        """The leaf that `Count(name)` counts; None if the name is no operand."""

    def leaf_of_argument(self, value: Expression) -> int:
        """The leaf whose events the argument is of."""

    def kind(self, node: Name | Attribute) -> str:
        """The type of a name's values."""

    def argument_scope(self) -> Scope:
        """Return the scope of an argument's names, with the event in `e`."""

    def scattered(self, leaf: int) -> bool:
        """Return True if the leaf's events may begin to count in any order."""


def bases_in(node: Expression) -> list[str]:
    """Return what stands for operands in an expression, in the order of the text.

    So does a bare name where a function of the user's own takes the event as a whole.
    """
    if isinstance(node, Attribute):
        return [node.base]
    if isinstance(node, Name):
        return [node.name]
    return [base for child in children(node) for base in bases_in(child)]


class OperandNames:
    """The names of a detect's operands (see Names)."""

    def __init__(self, case: Case, types: Mapping[str, HasAttributes]) -> None:
        self.operands = read_operands(case.detect.pattern)
        self.keys = case.group_by
        self._types = types
        self._leaves: dict[str, int] = {}
        for leaf, operand in enumerate(self.operands):
            self._leaves[operand.name] = leaf
        for leaf, operand in enumerate(self.operands):
            self._leaves.setdefault(operand.event_type, leaf)

    def leaf_of_operand(self, name: str) -> int | None:
        """Implement Names."""
        return self._leaves.get(name)

    def leaf_of_argument(self, value: Expression) -> int:
        """Implement Names."""
        bases = list(dict.fromkeys(base for base in bases_in(value) if base in self._leaves))
        if len(bases) != 1:
            raise ValueError("an aggregate's argument is of one operand's attributes")
        return self._leaves[bases[0]]

    def kind(self, node: Name | Attribute) -> str:
        """Implement Names."""
        if isinstance(node, Attribute) and node.base in self._leaves:
            return self._kind(self._leaves[node.base], node.name)
        if isinstance(node, Attribute) and node.base == "group":
            return self.key_kind(self.keys.index(node.name))
        return "int"  # timestamp, start, end, duration of the span; start and end of the window

    def key_kind(self, at: int) -> str:
        """The type of the key's part at the place; float where any operand's is."""
        kinds = [self._kind(leaf, self.keys[at]) for leaf in range(len(self.operands))]
        return "float" if "float" in kinds else kinds[0]

    def argument_scope(self) -> Scope:
        """Implement Names."""
        return ArgumentScope(frozenset(self._leaves))

    def scattered(self, leaf: int) -> bool:
        """Implement Names."""
        return self.operands[leaf].distinct is not None

    def _kind(self, leaf: int, attribute: str) -> str:
        if attribute in COMMON_ATTRIBUTES:
            return COMMON_ATTRIBUTES[attribute]
        return self._types[self.operands[leaf].event_type].attributes.get(attribute, "int")


class ArgumentScope:
    """An argument's names are attributes of the one event in `e`; so is a part of its key."""

    def __init__(self, operands: frozenset[str]) -> None:
        self._operands = operands

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Implement expressions.Scope."""
        return None if isinstance(node, Call) else attribute_code("e", node.name)

    def event(self, name: str) -> str | None:
        """Implement expressions.EventScope."""
        return "e" if name in self._operands else None
