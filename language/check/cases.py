"""Definitions and subscriptions: their cases, what they assign, consume and group by.

Owns the making of a definition's event type. Must not know patterns within. Invariant: as for the
package; a definition's type is made even where errors were noted, with what is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from language import tree
from language.check.expressions import Scope, type_of
from language.check.kinds import NUMBERS, comparable, kind_word
from language.check.patterns import PatternChecker
from language.check.scope import Bindings
from language.check.times import certainly_outside, lies_within
from language.lexicon import COMMON_ATTRIBUTES, RESERVED_KEYS
from language.relations import CONTEXTS
from language.specification import EventType
from language.walk import atoms

if TYPE_CHECKING:
    from language.check.declarations import Declared
    from language.diagnostics import Collector

ASSIGNABLE: dict[str, str] = {
    name: COMMON_ATTRIBUTES[name]
    for name in ("location", "source", "position", "timestamp", "start", "end")
}
GIVEN = frozenset(("timestamp", "start", "end"))
"""In a header these need no assignment: the span has them."""

SESSION_ATTRIBUTE = "interval"
NO_KEYS = frozenset(("position", "timestamp", "start", "end", "duration"))


def check_definition(item: tree.Definition, declared: Declared, collector: Collector) -> None:
    """Check a definition and enter its event type."""
    _header(item, collector)
    windowed = item.window is not None and item.window.aggregated
    types: dict[str, str] = {}
    for case in item.cases:
        scope = _case(case, declared, collector, windowed=windowed)
        assigned = _assignments(case.assign, scope)
        if item.post is not None:
            times = {
                assignment.name
                for assignment in case.assign
                if lies_within(assignment.value, scope) or assignment.name in GIVEN
            }
            assigned = _post(item, assigned, times, scope)
            _assigned_to_header(item, item.post.assign, collector)
        else:
            _assigned_to_header(item, case.assign, collector)
            _times(case.assign, scope, item.window if windowed else None)
        _join(item, case, assigned, types, collector)
    _never_assigned(item, collector)
    if declared.definitions.get(item.name) is item:
        declared.event_types[item.name] = _event_type(item, types)


def check_subscription(
    item: tree.Subscription, declared: Declared, collector: Collector
) -> dict[str, str]:
    """Check a subscription; the types of what it assigns."""
    scope = _case(item.case, declared, collector, windowed=False)
    types = _assignments(item.case.assign, scope)
    for assignment in item.case.assign:
        if types[assignment.name] == "event":
            words = {"name": assignment.name, "kind": kind_word("event")}
            collector.note("HW321", assignment.value.span, "name one of its attributes", **words)
    key = item.actor.group_key
    if key is not None and key not in item.case.group_by:
        collector.misspelt("HW214", item.actor.place("group"), key, item.case.group_by)
    return types


# --- one case ---------------------------------------------------------------------------------


def _case(case: tree.Case, declared: Declared, collector: Collector, *, windowed: bool) -> Scope:
    """Check pattern, grouping and consuming; the scope of the assignments."""
    checker = PatternChecker(case.detect, declared, collector, windowed=windowed)
    group = _grouping(case, declared, collector)
    checker.check(group)
    if windowed:
        _no_options(case, collector)
    else:
        _consuming(case, checker.bindings, collector)
    place = "window" if windowed else "assign"
    bindings = checker.bindings
    if case.detect.report == "collect":
        bindings = _collected(bindings)
    return Scope(place, declared, collector, bindings, group=group)  # type: ignore[arg-type]


def _collected(bindings: Bindings) -> Bindings:
    """Return the bindings within what `collect` reports: every event's is a list."""
    names = {
        name: replace(binding, kind="list") if binding.kind == "event" else binding
        for name, binding in bindings.names.items()
    }
    return Bindings(names, bindings.aliased)


def _no_options(case: tree.Case, collector: Collector) -> None:
    """A window chooses nothing: no contexts, nothing consumed, nothing thinned."""
    detect = case.detect
    if CONTEXTS[detect.context].chooses:
        collector.note("HW419", detect.place("context"), None, part="context")
    if detect.report != "all":
        collector.note("HW419", detect.place(detect.report), None, part=f"`{detect.report}`")
    if case.consuming:
        collector.note("HW419", case.place("consuming"), None, part="`consuming`")


def _consuming(case: tree.Case, bindings: Bindings, collector: Collector) -> None:
    for name in case.consuming:
        binding = bindings.names.get(name)
        place = case.place(f"consuming {name}")
        if binding is None:
            alias = bindings.aliased.get(name)
            names = bindings.names if alias is None else [alias]
            if alias is not None:
                collector.note("HW212", place, f"write `{alias}`", name=name)
            else:
                collector.misspelt("HW212", place, name, names)
        elif binding.kind in {"without", "absent"}:
            collector.note("HW434", place, None, name=name)
        elif binding.several:
            collector.note("HW441", place, None, name=name)
    if case.consuming and case.detect.report == "collect":
        collector.note("HW424", case.place("consuming"), None, first="collect", second="consuming")


def _grouping(case: tree.Case, declared: Declared, collector: Collector) -> dict[str, str]:
    """The grouping attributes with their types; every input must have each."""
    group: dict[str, str] = {}
    for name in case.group_by:
        place = case.place(f"group by {name}")
        if name in NO_KEYS:
            collector.note("HW432", place, None, name=name)
            group[name] = "any"
        elif name in COMMON_ATTRIBUTES:
            group[name] = COMMON_ATTRIBUTES[name]
        else:
            group[name] = _key_type(name, case, place, declared, collector)
    return group


def _key_type(
    name: str, case: tree.Case, place: tree.Span, declared: Declared, collector: Collector
) -> str:
    common: str | None = None
    for atom in atoms(case.detect.pattern):
        event_type = declared.event_types.get(atom.type)
        if event_type is None:
            continue
        kind = event_type.attributes.get(name)
        if kind is None:
            choices = _common_keys(case, declared)
            collector.misspelt("HW222", place, name, choices, type=atom.type)
            return "any"
        if common is not None and not comparable(kind, common):
            collector.note(
                "HW311", place, None, name=name, left=kind_word(common), right=kind_word(kind)
            )
            return "any"
        common = kind if common in {None, "any", kind} else _wider(common, kind)
    return common or "any"


def _wider(left: str | None, right: str) -> str:
    """The kind of two that compare and differ."""
    return left or "any" if right == "any" else "float"


def _common_keys(case: tree.Case, declared: Declared) -> list[str]:
    """List what all inputs of a case can be grouped by, as far as their types are known."""
    event_types = [declared.event_types.get(atom.type) for atom in atoms(case.detect.pattern)]
    types = [event_type.attributes for event_type in event_types if event_type is not None]
    common = [name for name in types[0] if all(name in other for other in types)]
    return [*common, "location", "source"]


# --- assignments ------------------------------------------------------------------------------


def _assignments(assigned: tuple[tree.Assignment, ...], scope: Scope) -> dict[str, str]:
    return {assignment.name: type_of(assignment.value, scope) for assignment in assigned}


def _times(
    assigned: tuple[tree.Assignment, ...],
    scope: Scope,
    window: tree.Window | None,
    partial_times: set[str] | None = None,
) -> None:
    """Assigned times must lie within the occurrence or the window, and say one thing."""
    names = {assignment.name for assignment in assigned}
    for assignment in assigned:
        if assignment.name == "timestamp" and names & {"start", "end"}:
            scope.collector.note("HW433", assignment.span)
        elif assignment.name in GIVEN and not lies_within(
            assignment.value, scope, partial_times or (), later=assignment.name == "end"
        ):
            scope.collector.note("HW414", assignment.value.span, None, name=assignment.name)
        elif (
            window is not None
            and assignment.name in GIVEN
            and certainly_outside(assignment.value, window)
        ):
            scope.collector.note("HW443", assignment.value.span, None, name=assignment.name)


def _post(
    item: tree.Definition, partial: dict[str, str], times: set[str], pre: Scope
) -> dict[str, str]:
    """Check how partial results combine; the types of what comes of it."""
    post, collector = item.post, pre.collector
    assert post is not None, "asked where there is one"
    group: dict[str, str] = {}
    for name in post.group_by:
        kind = partial.get(name) or COMMON_ATTRIBUTES.get(name)
        if kind is None:
            collector.misspelt("HW222", post.place(f"group by {name}"), name, partial, type="pre")
        elif name in NO_KEYS:
            collector.note("HW432", post.place(f"group by {name}"), None, name=name)
        group[name] = kind or "any"
    scope = Scope("post", pre.declared, collector, Bindings(), group=group, partial=partial)
    found_types = _assignments(post.assign, scope)
    _times(post.assign, scope, item.window, times)
    return found_types


def _assigned_to_header(
    item: tree.Definition, assigned: tuple[tree.Assignment, ...], collector: Collector
) -> None:
    for assignment in assigned:
        if assignment.name == SESSION_ATTRIBUTE and _of_session(item):
            collector.note("HW442", assignment.span)
        elif assignment.name not in item.attributes and assignment.name not in ASSIGNABLE:
            collector.misspelt(
                "HW225", assignment.span, assignment.name, item.attributes, type=item.name
            )


def _never_assigned(item: tree.Definition, collector: Collector) -> None:
    assigned = {
        assignment.name
        for part in (item.cases if item.post is None else (item.post,))
        for assignment in part.assign
    }
    for name in item.attributes:
        if name == SESSION_ATTRIBUTE and _of_session(item):
            if name not in assigned:
                collector.note("HW442", item.place(f"header {name}"))
        elif name not in assigned and name not in GIVEN:
            collector.note("HW226", item.place(f"header {name}"), None, name=name)


def _join(
    item: tree.Definition,
    case: tree.Case,
    assigned: dict[str, str],
    found: dict[str, str],
    collector: Collector,
) -> None:
    """Join the types that the cases assign to one attribute."""
    places = {assignment.name: assignment.value.span for assignment in (item.post or case).assign}
    for name, kind in assigned.items():
        place = places[name]
        if name in ASSIGNABLE:
            wanted = ASSIGNABLE[name]
            if kind not in {wanted, "any"}:
                words = {"wanted": kind_word(wanted), "kind": kind_word(kind)}
                collector.note("HW320", place, None, name=name, **words)
        elif kind in {"position", "event", "list"}:
            collector.note("HW321", place, None, name=name, kind=kind_word(kind))
        else:
            found[name] = _joined(name, found.get(name, "any"), kind, place, collector)


def _joined(name: str, before: str, kind: str, place: tree.Span, collector: Collector) -> str:
    """The common type of what was assigned before and here."""
    if "any" in {before, kind} or before == kind:
        return kind if before == "any" else before
    if {before, kind} <= NUMBERS:
        return "float"
    words = {"left": kind_word(before), "right": kind_word(kind)}
    collector.note("HW322", place, None, name=name, **words)
    return before


def _header(item: tree.Definition, collector: Collector) -> None:
    for name in item.attributes:
        if name in RESERVED_KEYS and name not in ASSIGNABLE:
            collector.note("HW211", item.place(f"header {name}"), None, name=name)
    windowed = item.window is not None and item.window.aggregated
    if item.post is not None and not windowed:
        collector.note("HW416", item.post.place("post"), None, word="post")
    if item.pre and not windowed:
        collector.note("HW416", item.place("pre"), None, word="pre")
    elif item.pre and item.post is None:
        collector.note("HW420", item.place("pre"), None, word="pre", other="post")
    elif item.post is not None and not item.pre and windowed:
        collector.note("HW420", item.post.place("post"), None, word="post", other="pre")


def _of_session(item: tree.Definition) -> bool:
    return item.window is not None and item.window.session_ms is not None


def _event_type(item: tree.Definition, found: dict[str, str]) -> EventType:
    """The type that a definition makes, with "any" where an attribute's type could not be told."""
    attributes: dict[str, tree.AttributeType] = {}
    for name in item.attributes:
        if name in ASSIGNABLE:
            continue
        attributes[name] = cast("tree.AttributeType", found.get(name, "any"))
    if _of_session(item):
        attributes[SESSION_ATTRIBUTE] = "int"
    return EventType(item.name, attributes, defined=True)
