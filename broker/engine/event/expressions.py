"""Expressions of the language turned into Python source.

Owns null rules, comparison, membership and calls. Must not know where names live: a scope says
that. Invariant: the generated code never raises on any typed event and treats null as the language
does: arithmetic with null is null, a comparison or `in` with null is false, `not` inverts that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, isfinite, sqrt
from typing import Any, Protocol, runtime_checkable

from broker.engine.event.event import INT64_MAX, INT64_MIN, region_test, slot_of
from broker.engine.event.own import as_mapping
from broker.engine.event.source import Constants, build
from language.lexicon import MIRRORED
from language.tree import (
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Constant,
    Expression,
    Logical,
    Lookup,
    Membership,
    Name,
    RegionLiteral,
    SetLiteral,
    Unary,
)


def _whole(function: Callable[[float], int]) -> Callable[[float], int | None]:
    """The function on finite numbers: an overflow earlier on has no whole number."""
    return lambda x: function(x) if isfinite(x) else None


# The built-in scalar functions of language.functions.SCALARS. Their arguments are checked and not
# null; none raises, and what has no value is None.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": _whole(round),
    "floor": _whole(floor),
    "ceil": _whole(ceil),
    # A negative root has no value, and null is what the language has for that; an error would end
    # the whole condition, a NaN compares false with itself.
    "sqrt": lambda x: sqrt(x) if x >= 0 else None,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "concat": lambda *texts: "".join(texts),
}


# An integer of so many bits is within a float's range; an attribute has 64, a sum of them not many
# more, and the whole number next to a float may have one bit more than that.
FLOAT_BITS = 1_023
ATTRIBUTE_BITS = 64
SUM_BITS = 64
WHOLE = frozenset(("round", "floor", "ceil"))
PYTHON_OPERATORS = {word: {"=": "=="}.get(word, word) for word in MIRRORED}
# `timestamp` is the end: an interval has happened when it is over, and a point's end is its only
# time (paper 001, 2: occurrence and detection meet).
RESERVED_CODE = {
    "timestamp": "{e}.end",
    "start": "{e}.start",
    "end": "{e}.end",
    "duration": "({e}.end - {e}.start)",
    "source": "{e}.source",
    "srcid": "{e}.source",
    "location": "{e}.location",
    "position": "{e}.position",
    "uncertainty": "{e}.uncertainty",
    "id": "{e}.id",
}
NEVER_NULL = frozenset({"timestamp", "start", "end", "duration", "uncertainty", "id"})


class Scope(Protocol):
    """Says where the names of an expression live."""

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """(code, may be null) of a name or an aggregate call; None for a plain function call."""


# Apart from Scope: only functions of the user's own take whole events, so the other scopes need not
# know how to give one.
@runtime_checkable
class EventScope(Protocol):
    """A scope in which a bare name may stand for an event."""

    def event(self, name: str) -> str | None:
        """Code of the event, which may be null; None if the name is none."""


def attribute_code(event: str, attribute: str) -> tuple[str, bool]:
    """The code that reads an attribute of the event in the variable, and whether it may be null."""
    reserved = RESERVED_CODE.get(attribute)
    if reserved is not None:
        return reserved.format(e=event), attribute not in NEVER_NULL
    return f"{event}.{slot_of(attribute)}", True


class AtomScope:
    """The conditions of an atom: bare names are attributes of the one event."""

    def __init__(self, event: str = "e") -> None:
        self._event = event

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Return the code of an attribute and whether it may be null; None for a call."""
        if isinstance(node, Call):
            return None
        return attribute_code(self._event, node.name)


# A function call, although it is slower than `/`: the text has no room for a `try`, and a guard on
# zero alone would still raise at 2**1100 / 1.
def divide(left: float, right: float) -> float | None:
    """`/`: a float; by zero, or beyond a float's range, null."""
    try:
        return left / right
    except (ZeroDivisionError, OverflowError):
        return None


def finite(value: Any) -> Any:
    """The value; null in place of a float that is no number."""
    if value.__class__ is float and not isfinite(value):
        return None
    return value


# Sums and products run beyond 64 bits on the way, as Python's integers do; only what is put into an
# event must fit the wire. So a * b / c has its value where a * b alone would be null.
def held(value: Any) -> Any:
    """The value; null in place of a number that no event holds: beyond 64 bits, or not finite."""
    if value.__class__ is int and not INT64_MIN <= value <= INT64_MAX:
        return None
    return finite(value)


def as_float(value: Any) -> float | None:
    """A number as a finite float; null beyond a float's range."""
    if value is None:
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if isfinite(made) else None


def counted(value: Any) -> Any:
    """The value; null in place of an integer with which no float can be reckoned."""
    if value.__class__ is int and value.bit_length() > FLOAT_BITS:
        return None
    return value


def _bits(node: Expression) -> int:
    """Return how many bits the expression's integer has at most, as far as the expression runs."""
    # Bits are bounded at compile time, so that the check at run time is written only where it may
    # fail: `a + b` of two attributes has 65 bits and needs none, a product of sixteen attributes
    # has 1,024 and does.
    if isinstance(node, Constant):
        return node.value.bit_length() if isinstance(node.value, int) else 0
    if isinstance(node, Unary):
        return _bits(node.operand)
    if isinstance(node, Arithmetic):
        left, right = _bits(node.left), _bits(node.right)
        # A quotient is a float, which has no bits to grow by; a sum of two has one bit more than
        # the longer.
        bits = {"*": left + right, "/": 0}.get(node.operator, max(left, right) + 1)
        return min(bits, FLOAT_BITS + 1)
    if isinstance(node, Call):
        if node.function in WHOLE:
            return FLOAT_BITS + 1
        if node.function in FUNCTIONS:
            return max(map(_bits, node.arguments), default=0) + 1
        return ATTRIBUTE_BITS + SUM_BITS
    return ATTRIBUTE_BITS


class Writer:
    """Writes expressions as Python source against one scope and one table of constants."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        self._scope = scope
        self._constants = constants

    def value(self, node: Expression) -> str:
        """Code that evaluates to the value, or None."""
        # Null is found by guards before anything is reckoned, instead of by a test at each
        # operator: `a + b + c` is two additions behind three `is not None`, and a null stops at the
        # first.
        guards: list[str] = []
        code = self._strict(node, guards)
        if not guards:
            return code
        return f"({code} if {' and '.join(guards)} else None)"

    def condition(self, node: Expression) -> str:
        """Code that evaluates to True or False."""
        # `and` and `or` are Python's own on booleans: no third truth value comes out of a
        # condition, so each part can be asked by itself and the rest be skipped.
        if isinstance(node, Logical):
            joined = f" {node.operator} ".join(self.condition(part) for part in node.operands)
            return f"({joined})"
        if isinstance(node, Unary) and node.operator == "not":
            return f"(not {self.condition(node.operand)})"
        if isinstance(node, Comparison):
            return self._comparison(node)
        if isinstance(node, Membership):
            return self._membership(node)
        # A boolean attribute that is null, and a function's value that is no boolean, do not hold.
        return f"({self.value(node)} is True)"

    def conditions(self, nodes: tuple[Expression, ...]) -> str:
        """Code of the conjunction; "True" of none."""
        return " and ".join(self.condition(node) for node in nodes) or "True"

    def _strict(self, node: Expression, guards: list[str]) -> str:
        """Code valid where all guards hold; a guard fails exactly where the value is null."""
        if isinstance(node, Constant):
            return self._constants.add(node.value)
        if isinstance(node, Arithmetic):
            return self._arithmetic(node, guards)
        if isinstance(node, Unary) and node.operator == "-":
            return f"(-{self._strict(node.operand, guards)})"
        if isinstance(node, Name | Attribute | Call):
            reference = self._scope.reference(node)
            if reference is not None:
                code, nullable = reference
                return self._guarded(code, guards) if nullable else code
            if isinstance(node, Call):
                return self._call(node, guards)
        if isinstance(node, Lookup):
            return self._lookup(node, guards)
        if isinstance(node, Logical | Comparison | Membership | Unary):
            return self.condition(node)
        raise AssertionError(f"not an expression that runs: {node!r}")

    def _lookup(self, node: Lookup, guards: list[str]) -> str:
        if node.values is None:
            raise TypeError("tables are read before compiling")
        values = self._constants.add(node.values)
        return self._guarded(f"{values}.get({self._strict(node.key, guards)})", guards)

    def _guarded(self, code: str, guards: list[str]) -> str:
        # Bound by the guard itself: an attribute that is read twice is read from the event once.
        name = self._constants.temporary()
        guards.append(f"({name} := {code}) is not None")
        return name

    def _arithmetic(self, node: Arithmetic, guards: list[str]) -> str:
        left = self._strict(node.left, guards)
        right = self._strict(node.right, guards)
        if node.operator == "/":
            self._constants.helper("divide", divide)
            return self._guarded(f"divide({left}, {right})", guards)
        code = f"({left} {node.operator} {right})"
        # Nearly all arithmetic ends here, without a further call.
        if _bits(node) <= FLOAT_BITS:
            return code
        self._constants.helper("counted", counted)
        return self._guarded(f"counted{code}", guards)

    def _call(self, node: Call, guards: list[str]) -> str:
        if node.own is not None:
            return self._own(node, guards)
        function = FUNCTIONS[node.function]
        name = self._constants.helper(f"f_{node.function}", function)
        arguments = ", ".join(self._strict(argument, guards) for argument in node.arguments)
        return self._guarded(f"{name}({arguments})", guards)

    def _own(self, node: Call, guards: list[str]) -> str:
        """A function of the user's own; an alias stands for the bound event."""
        codes = []
        for argument in node.arguments:
            event = None
            if isinstance(argument, Name) and isinstance(self._scope, EventScope):
                event = self._scope.event(argument.name)
            if event is None:
                codes.append(self._strict(argument, guards))
            else:
                helper = self._constants.helper("as_mapping", as_mapping)
                codes.append(f"{helper}({self._guarded(event, guards)})")
        return self._guarded(f"{self._constants.add(node.own)}({', '.join(codes)})", guards)

    def _comparison(self, node: Comparison) -> str:
        guards: list[str] = []
        codes = [self._strict(operand, guards) for operand in node.operands]
        # `20 < val < 25` stays one chain: the interest content of paper 003 (3.3.1), val > 20 and
        # val < 25, and `val` is read once.
        chain = codes[0]
        for operator, code in zip(node.operators, codes[1:], strict=True):
            chain += f" {PYTHON_OPERATORS[operator]} {code}"
        return f"({' and '.join([*guards, chain])})"

    def _membership(self, node: Membership) -> str:
        guards: list[str] = []
        item = self._strict(node.item, guards)
        container = node.container
        if isinstance(container, SetLiteral):
            # A frozenset only answers `in`; it is never walked, so its order, which depends on the
            # hash seed, does not show.
            members = self._constants.add(frozenset(member.value for member in container.members))
            test = f"{item} in {members}"
        elif isinstance(container, RegionLiteral):
            test = f"{self._constants.add(region_test(container))}({item})"
        else:
            raise TypeError("names of sets and regions are resolved before compiling")
        return f"({' and '.join([*guards, test])})"


def compile_condition(node: Expression, scope: Scope, arguments: str) -> Callable[..., bool]:
    """A predicate of the given arguments (a comma-separated list of variable names)."""
    constants = Constants()
    code = Writer(scope, constants).condition(node)
    text = f"def predicate({arguments}):\n    return {code}\n"
    return build(text, "predicate", constants)


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly beneath a node."""
    if isinstance(node, Comparison | Logical):
        return node.operands
    if isinstance(node, Arithmetic):
        return (node.left, node.right)
    if isinstance(node, Unary):
        return (node.operand,)
    if isinstance(node, Membership):
        return (node.item,)
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, Lookup):
        return (node.key,)
    return ()


def names_in(node: Expression) -> set[str]:
    """The aliases or types whose attributes the expression reads (bare names of events too)."""
    if isinstance(node, Attribute):
        return {node.base}
    if isinstance(node, Name):
        return {node.name}
    found: set[str] = set()
    for child in children(node):
        found |= names_in(child)
    return found
