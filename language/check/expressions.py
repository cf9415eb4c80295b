"""The types of expressions, and what may be named where.

Owns how types combine. Must not know patterns. Invariant: an expression in which an error was
noted has the type "any", which fits everywhere, so that one error is noted once.

Types are those of attributes, and "position", "event" (a bound event as such), "list" (the values
of a list) and "any".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from language import tree
from language.check.calls import check_call
from language.check.kinds import NUMBERS, Type, comparable, constant_type, kind_word, member_type
from language.diagnostics import quote
from language.lexicon import COMMON_ATTRIBUTES
from language.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from language.check.declarations import Declared
    from language.check.scope import Bindings, Kind, Seen
    from language.diagnostics import Collector
    from language.specification import EventType

SPAN_NAMES = ("timestamp", "start", "end")
WINDOW_TIMES = ("start", "end")

Place = Literal["condition", "where", "assign", "window", "post"]
"""Where an expression stands: in an atom, a `where`, an `assign`, that of a window, or `post`."""


@dataclass(frozen=True)
class Scope:
    """The surroundings of an expression: all that it may name.

    `atom` is the type around a condition; `names` limits the bindings of a `where` to its pattern;
    `partial` are the attributes of `pre` in a `post`; `inside` tells that an aggregate is around.
    """

    place: Place
    declared: Declared
    collector: Collector
    bindings: Bindings
    atom: EventType | None = None
    names: Mapping[str, Seen] | None = None
    group: Mapping[str, Type] = field(default_factory=dict)
    partial: Mapping[str, Type] = field(default_factory=dict)
    inside: bool = False

    def within_aggregate(self) -> Scope:
        """The scope of an aggregate's argument."""
        return replace(self, inside=True)


def type_of(node: tree.Expression, scope: Scope) -> Type:
    """The type of an expression; errors are noted."""
    return _TYPE_OF[type(node)](node, scope)


def check_condition(node: tree.Expression, scope: Scope) -> None:
    """The expression must be true or false."""
    kind = type_of(node, scope)
    if kind not in {"bool", "any"}:
        scope.collector.note("HW303", node.span, kind=kind_word(kind))


def _constant(node: tree.Constant, _: Scope) -> Type:
    return constant_type(node)


# --- names ------------------------------------------------------------------------------------


def _name(node: tree.Name, scope: Scope) -> Type:
    if scope.place == "condition":
        return attribute_type(scope.atom, node.name, node.span, scope.collector)
    if scope.place == "post":
        return _partial(node, scope)
    if scope.place in {"assign", "window"} and not scope.inside and node.name in SPAN_NAMES:
        return "int"
    visible = _visible(scope)
    if node.name in visible:
        if scope.bindings.names[node.name].several and not scope.inside:
            scope.collector.note("HW441", node.span, None, name=node.name)
        return "event"
    owners = [
        name
        for name, binding in scope.bindings.names.items()
        if binding.event_type and node.name in {*binding.event_type.attributes, *COMMON_ATTRIBUTES}
    ]
    if owners:
        hint = f"write {quote(f'{owners[0]}.{node.name}')}"
        scope.collector.note("HW202", node.span, hint, name=node.name)
    else:
        scope.collector.misspelt("HW202", node.span, node.name, visible)
    return "any"


def _partial(node: tree.Name, scope: Scope) -> Type:
    """A bare name in `post`: an attribute of the partial results, beneath an aggregate only."""
    kind = scope.partial.get(node.name) or COMMON_ATTRIBUTES.get(node.name)
    if kind is None:
        scope.collector.misspelt("HW202", node.span, node.name, scope.partial)
        return "any"
    if not scope.inside:
        hint = f"write {quote(f'group.{node.name}')}" if node.name in scope.group else None
        scope.collector.note("HW418", node.span, hint, name=node.name)
        return "any"
    return kind


def _visible(scope: Scope) -> list[str]:
    return [name for name in scope.bindings.names if scope.names is None or name in scope.names]


def _attribute(node: tree.Attribute, scope: Scope) -> Type:
    if scope.place == "condition":
        hint = f"write {quote(node.name)}, or compare events in a `where`"
        scope.collector.note("HW220", node.span, hint, name=node.base)
        return "any"
    if node.base == "group":
        return _group(node, scope)
    if node.base == "window" and scope.place in {"window", "post"} and not scope.inside:
        return _window(node, scope)
    return _of_event(node, scope)


def _of_event(node: tree.Attribute, scope: Scope) -> Type:
    binding = scope.bindings.names.get(node.base)
    if binding is None or (scope.names is not None and node.base not in scope.names):
        _unknown_base(node, scope)
        return "any"
    kind: Kind = binding.kind if scope.names is None else scope.names[node.base].kind
    if kind == "absent" or (kind == "without" and scope.place != "where"):
        scope.collector.note("HW434", node.span, name=node.base)
        return "any"
    if binding.several:
        scope.collector.note("HW441", node.span, None, name=node.base)
        return "any"
    attribute_kind = attribute_type(binding.event_type, node.name, node.span, scope.collector)
    if scope.place == "window" and not scope.inside:
        hint = f"for example {quote(f'Last({node.base}.{node.name})')}"
        scope.collector.note("HW418", node.span, hint, name=f"{node.base}.{node.name}")
        return "any"
    if binding.kind == "list" and not scope.inside and scope.place == "assign":
        return "list"
    return attribute_kind


def _unknown_base(node: tree.Attribute, scope: Scope) -> None:
    alias = scope.bindings.aliased.get(node.base)
    if node.base in scope.bindings.names:
        hint = "set the `where` after the whole pattern"
        scope.collector.note("HW219", node.span, hint, name=node.base)
    elif alias is not None:
        hint = f"write {quote(f'{alias}.{node.name}')}"
        scope.collector.note("HW202", node.span, hint, name=node.base)
    elif scope.place == "post" and node.base != "window":
        scope.collector.note("HW202", node.span, f"write {quote(node.name)}", name=node.base)
    elif node.base == "window" and scope.inside and node.name in WINDOW_TIMES:
        hint = f"{quote(f'window.{node.name}')} stands outside of aggregates"
        scope.collector.note("HW202", node.span, hint, name=node.base)
    else:
        given = ["group", "window"] if scope.place == "window" else ["group"]
        scope.collector.misspelt("HW202", node.span, node.base, [*_visible(scope), *given])


def _window(node: tree.Attribute, scope: Scope) -> Type:
    if node.name not in WINDOW_TIMES:
        words = {"type": "window"}
        scope.collector.misspelt("HW203", node.span, node.name, WINDOW_TIMES, None, **words)
        return "any"
    return "int"


def _group(node: tree.Attribute, scope: Scope) -> Type:
    if scope.place == "where" and node.name not in scope.group:
        scope.collector.note("HW214", node.span, None, name=node.name)
        return "any"
    if node.name not in scope.group:
        near = nearest(node.name, scope.group)
        hint = f"did you mean {quote(f'group.{near}')}?" if near else None
        scope.collector.note("HW214", node.span, hint, name=node.name)
        return "any"
    return scope.group[node.name]


def attribute_type(
    event_type: EventType | None, name: str, span: tree.Span, collector: Collector
) -> Type:
    """The type of an event's attribute; "any" after an error."""
    if name in COMMON_ATTRIBUTES:
        return COMMON_ATTRIBUTES[name]
    if event_type is None:
        return "any"
    kind = event_type.attributes.get(name)
    if kind is None:
        names = [*event_type.attributes, *COMMON_ATTRIBUTES]
        collector.misspelt("HW203", span, name, names, _declared(event_type), type=event_type.name)
        return "any"
    return kind


def _declared(event_type: EventType) -> str | None:
    """Return in words what an event of the type has."""
    if not event_type.attributes:
        return None
    own, given = ", ".join(event_type.attributes), ", ".join(COMMON_ATTRIBUTES)
    return f"{quote(event_type.name)} has {own}, and as every event {given}"


def _lookup(node: tree.Lookup, scope: Scope) -> Type:
    declared = scope.declared
    if node.table not in declared.tables and node.table not in declared.broken:
        scope.collector.misspelt("HW205", node.span, node.table, declared.tables)
    key_type = type_of(node.key, scope)
    if key_type in {"position", "event", "list", "bytes"}:
        scope.collector.note("HW306", node.key.span, form="Table[key]", kind=kind_word(key_type))
    content = declared.contents.get(node.table)
    if content is None:
        return "any"
    wanted: Type = content.types[content.key]
    if key_type not in {wanted, "any", "list"} and not {key_type, wanted} <= NUMBERS:
        words = {"left": kind_word(wanted), "right": kind_word(key_type)}
        scope.collector.note("HW301", node.key.span, None, **words)
    if node.column not in content.types:
        place = node.place("column")
        scope.collector.misspelt("HW203", place, node.column, content.types, type=node.table)
        return "any"
    return content.types[node.column]


# --- operators --------------------------------------------------------------------------------


def _number(node: tree.Expression, scope: Scope) -> Type:
    """The type of an operand that must be a number."""
    kind = type_of(node, scope)
    if kind in NUMBERS or kind == "any":
        return kind
    hint = "`concat` joins texts" if kind == "text" else None
    scope.collector.note("HW302", node.span, hint, kind=kind_word(kind))
    return "any"


def _arithmetic(node: tree.Arithmetic, scope: Scope) -> Type:
    left, right = _number(node.left, scope), _number(node.right, scope)
    if node.operator == "/":
        return "float"
    if "any" in {left, right}:
        return "any"
    return "float" if "float" in {left, right} else "int"


def _logical(node: tree.Logical, scope: Scope) -> Type:
    for operand in node.operands:
        check_condition(operand, scope)
    return "bool"


def _unary(node: tree.Unary, scope: Scope) -> Type:
    if node.operator == "not":
        check_condition(node.operand, scope)
        return "bool"
    return _number(node.operand, scope)


def _comparison(node: tree.Comparison, scope: Scope) -> Type:
    types = [type_of(operand, scope) for operand in node.operands]
    for index, operator in enumerate(node.operators):
        left, right = types[index], types[index + 1]
        place = node.operands[index + 1].span
        if not comparable(left, right):
            scope.collector.note("HW301", place, None, left=kind_word(left), right=kind_word(right))
            break
        ordered = NUMBERS | {"text", "any"}
        if left in {"position", "event"} or (
            operator not in {"=", "!="} and not {left, right} <= ordered
        ):
            hint = "compare with `position in` a region" if left == "position" else None
            scope.collector.note("HW304", place, hint, kind=kind_word(left), operator=operator)
            break
    return "bool"


def _membership(node: tree.Membership, scope: Scope) -> Type:
    item = type_of(node.item, scope)
    container = node.container
    if isinstance(container, tree.Name):
        declared = scope.declared
        literal = declared.sets.get(container.name) or declared.regions.get(container.name)
        if literal is None:
            if container.name not in declared.broken:
                names = [*declared.sets, *declared.regions]
                scope.collector.misspelt("HW204", container.span, container.name, names)
            return "bool"
        _check_member(item, literal, node.item.span, scope)
    else:
        if isinstance(container, tree.SetLiteral):
            member_type(container, scope.collector)
        _check_member(item, container, node.item.span, scope)
    return "bool"


def _check_member(
    item: Type, container: tree.SetLiteral | tree.RegionLiteral, span: tree.Span, scope: Scope
) -> None:
    if isinstance(container, tree.SetLiteral):
        wanted = member_type(container)
        if not comparable(item, wanted):
            scope.collector.note("HW301", span, None, left=kind_word(wanted), right=kind_word(item))
        return
    wanted, example = (
        ("text", "location") if container.shape == "path" else ("position", "position")
    )
    if item not in {wanted, "any"}:
        hint = f"write `{example} in …`"
        scope.collector.note("HW309", span, hint, shape=container.shape, kind=kind_word(item))


def _call(node: tree.Call, scope: Scope) -> Type:
    return check_call(node, scope, type_of)


_TYPE_OF: dict[type, Callable[[Any, Scope], Type]] = {
    tree.Constant: _constant,
    tree.Name: _name,
    tree.Attribute: _attribute,
    tree.Arithmetic: _arithmetic,
    tree.Comparison: _comparison,
    tree.Membership: _membership,
    tree.Logical: _logical,
    tree.Unary: _unary,
    tree.Call: _call,
    tree.Lookup: _lookup,
}
