"""The task graph: each definition and subscription as a task with a self-contained text.

Owns the resolving of names and the canonical text that makes a task's key. Must not know where
tasks run. Invariant: equal meaning as written gives equal text and so an equal key, whatever the
sets, regions and files around it are called; a key tells everything that its results depend on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from language import tree
from language.printing.expressions import duration_text, name_text
from language.printing.items import item_text
from language.relations import UNRESTRICTED
from language.walk import atoms, bare, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from language.specification import EventType
    from language.tables import Table

KEY_LENGTH = 32
TEXT_VERSION = 1
"""Stands in each text: a new meaning of the same words is another task."""

_N = TypeVar("_N", bound=tree.Node)


@dataclass(frozen=True)
class Task:
    """A definition or subscription to run.

    `node` has sets and regions in place of their names, and every operator's context filled in;
    of places in the text it has its own alone.
    `types` are those of `inputs`, by name as written; `output` is what a definition makes.
    `needs` are the keys of the definitions among the inputs; `place` counts items of the file.
    `wait_ms` is for how long brokers that are away are waited for, here and in all that is needed;
    None: without end. Tasks of different waits have clocks of their own, and so share no state.
    """

    key: str
    kind: Literal["definition", "subscription"]
    name: str
    text: str
    node: tree.Definition | tree.Subscription
    types: dict[str, EventType]
    output: EventType | None
    inputs: tuple[str, ...]
    needs: dict[str, str]
    place: int
    wait_ms: int | None = None


@dataclass(frozen=True)
class TaskGraph:
    """All tasks of a file by key, definitions before their users; roots are the subscriptions."""

    tasks: dict[str, Task]
    roots: tuple[str, ...]

    def active(self, keys: Iterable[str]) -> tuple[str, ...]:
        """The definitions that the tasks `keys` need, directly or through others, in order."""
        wanted: set[str] = set()
        stack = list(keys)
        while stack:
            for need in self.tasks[stack.pop()].needs.values():
                if need not in wanted:
                    wanted.add(need)
                    stack.append(need)
        return tuple(key for key in self.tasks if key in wanted)


@dataclass(frozen=True)
class Names:
    """The declarations of a file, by name."""

    event_types: Mapping[str, EventType]
    sets: Mapping[str, tree.SetLiteral]
    regions: Mapping[str, tree.RegionLiteral]
    tables: Mapping[str, tree.TableDeclaration]
    contents: Mapping[str, Table] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)


def task_graph(file: tree.File, order: Iterable[str], names: Names) -> TaskGraph:
    """The tasks of a checked file; `order` has its definitions after those that they use."""
    places = {id(item): place for place, item in enumerate(file.items)}
    definitions = {item.name: item for item in file.items if isinstance(item, tree.Definition)}
    tasks: dict[str, Task] = {}
    subscriptions = [item for item in file.items if isinstance(item, tree.Subscription)]
    ordered = [definitions[name] for name in order]
    made: dict[int | None, dict[str, str]] = {None: {}}
    for wait_ms in dict.fromkeys([None, *(item.wait_ms for item in subscriptions)]):
        keys = made.setdefault(wait_ms, {})
        users = [item for item in subscriptions if item.wait_ms == wait_ms]
        for item in ordered if wait_ms is None else _needed(ordered, users):
            task = _task(item, places[id(item)], names, keys, wait_ms)
            keys[item.name] = task.key
            tasks.setdefault(task.key, task)
    roots = []
    for root in subscriptions:
        task = _task(root, places[id(root)], names, made[root.wait_ms], root.wait_ms)
        tasks.setdefault(task.key, task)
        roots.append(task.key)
    return TaskGraph(tasks, tuple(roots))


def _needed(
    ordered: list[tree.Definition], users: Iterable[tree.Subscription]
) -> list[tree.Definition]:
    """Return the definitions that `users` need, directly or through others, in their order."""
    wanted = {name for item in users for name in inputs_of(item)}
    for definition in reversed(ordered):
        if definition.name in wanted:
            wanted.update(inputs_of(definition))
    return [definition for definition in ordered if definition.name in wanted]


def inputs_of(item: tree.Definition | tree.Subscription) -> tuple[str, ...]:
    """The types that an item detects, each once, in the order of the text."""
    types: dict[str, None] = {}
    for case in cases_of(item):
        for atom in atoms(case.detect.pattern):
            types[atom.type] = None
    return tuple(types)


def cases_of(item: tree.Definition | tree.Subscription) -> tuple[tree.Case, ...]:
    """The cases of an item."""
    return item.cases if isinstance(item, tree.Definition) else (item.case,)


def _task(
    item: tree.Definition | tree.Subscription,
    place: int,
    names: Names,
    made: Mapping[str, str],
    wait_ms: int | None,
) -> Task:
    inputs = inputs_of(item)
    node = replace(bare(resolved(item, names)), span=item.span)
    types = {name: names.event_types[name] for name in inputs}
    needs = {name: made[name] for name in inputs if name in made}
    lines = [f"# headwater task {TEXT_VERSION}"]
    lines.extend(_declared(types[name], needs.get(name)) for name in sorted(inputs))
    lines.extend(_tables(node, names))
    lines.extend(_functions(node))
    if wait_ms is not None and isinstance(item, tree.Definition):
        lines.append(f"# wait {duration_text(wait_ms)}")
    lines.append(item_text(node))
    text = "\n".join(lines) + "\n"
    defines = isinstance(item, tree.Definition)
    return Task(
        key=sha256(text.encode()).hexdigest()[:KEY_LENGTH],
        kind="definition" if defines else "subscription",
        name=item.name,
        text=text,
        node=node,
        types=types,
        output=names.event_types[item.name] if defines else None,
        inputs=inputs,
        needs=needs,
        place=place,
        wait_ms=wait_ms,
    )


def _declared(event_type: EventType, key: str | None) -> str:
    attributes = ", ".join(
        f"{name_text(name)}: {kind}" for name, kind in sorted(event_type.attributes.items())
    )
    made = "" if key is None else f"  # defined by {key}"
    return f"event {name_text(event_type.name)}({attributes}){made}"


def _tables(node: tree.Node, names: Names) -> list[str]:
    from language.walk import descendants

    used = {part.table for part in descendants(node) if isinstance(part, tree.Lookup)}
    lines = []
    for name in sorted(used):
        content = names.contents.get(name)
        holds = "" if content is None else f"  # {content.digest}"
        lines.append(item_text(names.tables[name]).rstrip("\n") + holds)
    return lines


def _functions(node: tree.Node) -> list[str]:
    """The user's own functions that are called, with their versions."""
    from language.walk import descendants

    called = [part for part in descendants(node) if isinstance(part, tree.Call) and part.own]
    versions = {part.function: getattr(part.own, "version", "") for part in called}
    return [f"function {name_text(name)}  # {versions[name]}" for name in sorted(versions)]


def resolved(
    item: tree.Definition | tree.Subscription, names: Names
) -> tree.Definition | tree.Subscription:
    """The item with sets and regions in place of their names, and contexts filled in.

    A window chooses nothing among its events: its operators have no context to be filled in.
    """
    if isinstance(item, tree.Subscription):
        return replace(item, case=_resolved_case(item.case, names))
    if item.window is not None and item.window.aggregated:
        cases = tuple(_with_values(case, names) for case in item.cases)
    else:
        cases = tuple(_resolved_case(case, names) for case in item.cases)
    post = None if item.post is None else _with_values(item.post, names)
    return replace(item, cases=cases, post=post)


def _resolved_case(case: tree.Case, names: Names) -> tree.Case:
    case = _with_values(case, names)
    pattern = _with_contexts(case.detect.pattern, case.detect.context)
    return replace(case, detect=replace(case.detect, pattern=pattern))


def _with_values(node: _N, names: Names) -> _N:
    """Return `node` with the values of sets and regions, and with what declarations say of times.

    Of a type that `lasts at most T` each atom asks `duration <= T`: what a broker elsewhere, which
    does not have the declaration, takes in is nothing to the task, and neither it nor anybody on
    the way waits longer for its partners.
    """

    def value(part: tree.Node) -> tree.Node:
        if isinstance(part, tree.Membership) and isinstance(part.container, tree.Name):
            name = part.container.name
            literal = names.sets[name] if name in names.sets else names.regions[name]
            return replace(part, container=literal)
        if isinstance(part, tree.Call) and part.function in names.functions:
            return replace(part, own=names.functions[part.function])
        if isinstance(part, tree.Lookup) and part.table in names.contents:
            content = names.contents[part.table]
            return replace(part, values=content.columns[part.column], digest=content.digest)
        if isinstance(part, tree.InRegion) and isinstance(part.region, tree.Name):
            return replace(part, region=names.regions[part.region.name])
        if isinstance(part, tree.Atom):
            lasts_ms = names.event_types[part.type].lasts_ms
            if lasts_ms is not None:
                return replace(part, conditions=(*part.conditions, _lasts_at_most(lasts_ms)))
        return part

    return rewrite(node, value)


def _lasts_at_most(lasts_ms: int) -> tree.Comparison:
    return tree.Comparison((tree.Name("duration"), tree.Constant(lasts_ms, "ms")), ("<=",))


def _with_contexts(pattern: tree.Pattern, context: str) -> tree.Pattern:
    """The pattern with the context of every operator; beneath `without` and `absent` none holds."""
    if isinstance(pattern, tree.Atom):
        return pattern
    if isinstance(pattern, tree.Link):
        own = pattern.context or context
        right_context = context
        if pattern.operator in {"or", "without"}:
            own = UNRESTRICTED.name
        if pattern.operator == "without":
            right_context = UNRESTRICTED.name
        left = _with_contexts(pattern.left, context)
        right = _with_contexts(pattern.right, right_context)
        return replace(pattern, left=left, right=right, context=own)
    if isinstance(pattern, tree.Absent):
        return replace(pattern, operand=_with_contexts(pattern.operand, UNRESTRICTED.name))
    return replace(pattern, operand=_with_contexts(pattern.operand, context))
