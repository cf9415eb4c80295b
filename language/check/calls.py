"""Calls: scalar functions, aggregates, and the user's own functions.

Owns the number and types of arguments, and where an aggregate may stand. Must not know how
functions compute. Invariant: an aggregate takes its values from the events of one operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from language import tree
from language.check.kinds import NUMBERS, Type, kind_word
from language.functions import AGGREGATES, SCALARS, AggregateFunction, Function
from language.walk import descendants

if TYPE_CHECKING:
    from collections.abc import Callable

    from language.check.expressions import Scope

FITS = {
    "number": NUMBERS,
    "text": frozenset(("text",)),
    "ordered": NUMBERS | {"text"},
    "any": NUMBERS | {"text", "bool", "bytes", "position"},
}


def check_call(
    node: tree.Call, scope: Scope, type_of: Callable[[tree.Expression, Scope], Type]
) -> Type:
    """The type of a call's result; errors are noted."""
    own = scope.declared.functions.get(node.function)
    if node.function in AGGREGATES:
        return _aggregate(node, AGGREGATES[node.function], scope, type_of)
    if getattr(own, "aggregate", False):
        form = Function(node.function, ("any",), getattr(own, "result", "float"), "")
        return _aggregate(node, form, scope, type_of)
    if node.function in SCALARS:
        function = SCALARS[node.function]
        types = [type_of(argument, scope) for argument in node.arguments]
        if not _counted(node, function, scope):
            return _result(function, ["any"])
        return _result(function, _fit(node, function, types, scope))
    if node.function not in scope.declared.functions:
        names = [*SCALARS, *AGGREGATES, *scope.declared.functions]
        scope.collector.misspelt("HW206", node.span, node.function, names)
    for argument in node.arguments:
        type_of(argument, scope)
    return cast("Type", getattr(own, "result", "any"))


def _counted(node: tree.Call, function: Function, scope: Scope) -> bool:
    given, wanted = len(node.arguments), len(function.arguments)
    if given == wanted or (function.repeats and given > wanted):
        return True
    scope.collector.note("HW307", node.span, None, form=function.form, count=given)
    return False


def _fit(node: tree.Call, function: Function, types: list[Type], scope: Scope) -> list[Type]:
    """The types of the arguments; "any" in place of one that does not fit, which is noted."""
    fitting = list(types)
    for index, (argument, actual) in enumerate(zip(node.arguments, types, strict=True)):
        wanted = function.arguments[min(index, len(function.arguments) - 1)]
        if actual != "any" and actual not in FITS[wanted]:
            scope.collector.note(
                "HW306", argument.span, None, form=function.form, kind=kind_word(actual)
            )
            fitting[index] = "any"
    return fitting


def _result(function: Function, types: list[Type]) -> Type:
    if function.result != "same":
        return function.result
    if "any" in types:
        return "any"
    if set(types) <= NUMBERS:
        return "float" if "float" in types else "int"
    return types[0]


def _aggregate(
    node: tree.Call,
    function: Function,
    scope: Scope,
    type_of: Callable[[tree.Expression, Scope], Type],
) -> Type:
    fallback = "any" if function.result == "same" else function.result
    if scope.inside or scope.place == "condition":
        scope.collector.note("HW402", node.span, None, name=node.function)
        return fallback
    if not _counted(node, function, scope):
        return fallback
    if not _has_many(node, scope):
        scope.collector.note("HW402", node.span, _scalar_hint(node), name=node.function)
        return fallback
    value, *others = node.arguments
    inside = scope.within_aggregate()
    value_type = type_of(value, inside)
    types = [value_type, *(type_of(argument, inside) for argument in others)]
    if value_type == "event":
        if not (isinstance(function, AggregateFunction) and function.of_events):
            hint = f"name an attribute: {node.function}(x.attribute)"
            scope.collector.note("HW310", value.span, hint, name=node.function)
            return fallback
        return "int"
    _one_operand(node, value, scope)
    types = _fit(node, function, types, scope)
    if isinstance(function, AggregateFunction) and function.takes_share:
        _quantile(node, scope)
    return _result(function, types[:1])


def _has_many(node: tree.Call, scope: Scope) -> bool:
    """Tell whether there is anything to aggregate: a window, partial results, or a list."""
    if scope.place in {"window", "post"}:
        return True
    kinds = {name: binding.kind for name, binding in scope.bindings.names.items()}
    if scope.names is not None:  # beneath `without` and `absent`, too, there are lists
        kinds |= {name: seen.kind for name, seen in scope.names.items()}
    bound_kinds = [kinds[name] for name in _bases(node) if name in kinds]
    return not bound_kinds or "list" in bound_kinds


def _scalar_hint(node: tree.Call) -> str | None:
    scalar = node.function.lower()
    return f"`{scalar}` takes the values of one event" if scalar in SCALARS else None


def _bases(node: tree.Node) -> list[str]:
    """The names that an expression speaks of, each once, in the order of the text."""
    names: dict[str, None] = {}
    for part in descendants(node):
        if isinstance(part, tree.Attribute):
            names[part.base] = None
        elif isinstance(part, tree.Name):
            names[part.name] = None
    return list(names)


def _one_operand(node: tree.Call, value: tree.Expression, scope: Scope) -> None:
    """The argument must speak of the events of one operand (in `post`, of partial results)."""
    if scope.place == "post":
        if not _bases(value):
            scope.collector.note("HW430", value.span, None, name=node.function)
        return
    bases = [base for base in _bases(value) if base != "group"]
    if len(bases) != 1:
        scope.collector.note("HW430", value.span, None, name=node.function)


def _quantile(node: tree.Call, scope: Scope) -> None:
    share = node.arguments[1]
    if (
        not isinstance(share, tree.Constant)
        or isinstance(share.value, str | bool)
        or not 0 <= share.value <= 1
    ):
        scope.collector.note("HW308", share.span)
