"""What a file declares, and the order of its definitions.

Owns duplicate names and circular definitions. Must not know expressions. Invariant: the first
declaration of a name stands, a second is noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from language import tree
from language.check.kinds import member_type
from language.specification import EventType
from language.tables import Table, TableError, parse
from language.taskgraph import inputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from language.diagnostics import Collector
    from language.reading.parser import ParsedText
    from language.tables import ReadTable


@dataclass
class Declared:
    """The names of a file; an event type is None where its attributes could not be told."""

    event_types: dict[str, EventType | None] = field(default_factory=dict)
    definitions: dict[str, tree.Definition] = field(default_factory=dict)
    sets: dict[str, tree.SetLiteral] = field(default_factory=dict)
    regions: dict[str, tree.RegionLiteral] = field(default_factory=dict)
    tables: dict[str, tree.TableDeclaration] = field(default_factory=dict)
    contents: dict[str, Table] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], tree.Subscription] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()


def collect(
    reading: ParsedText,
    collector: Collector,
    functions: Mapping[str, Any],
    read_table: ReadTable | None = None,
) -> Declared:
    """All names of the file; duplicates are noted."""
    declared = Declared(functions=functions, broken=reading.broken)
    values: set[str] = set()
    for item in reading.file.items:
        if isinstance(item, tree.Subscription):
            key = (item.subscriber, item.name)
            if key in declared.subscriptions:
                _twice(item, f"a subscription of {item.subscriber}", collector)
            else:
                declared.subscriptions[key] = item
        elif isinstance(item, tree.EventDeclaration | tree.Definition):
            if item.name in declared.event_types:
                _twice(item, "an event type", collector)
            elif isinstance(item, tree.Definition):
                declared.definitions[item.name] = item
                declared.event_types[item.name] = None
            else:
                event_type = EventType(item.name, dict(item.attributes), lasts_ms=item.lasts_ms)
                declared.event_types[item.name] = event_type
        elif item.name in values:
            _twice(item, "a set, region or table", collector)
        else:
            values.add(item.name)
            _value(item, declared, collector)
            if isinstance(item, tree.TableDeclaration) and read_table is not None:
                _content(item, declared, collector, read_table)
    return declared


def _value(
    item: tree.SetDeclaration | tree.RegionDeclaration | tree.TableDeclaration,
    declared: Declared,
    collector: Collector,
) -> None:
    if isinstance(item, tree.SetDeclaration):
        member_type(item.members, collector)
        declared.sets[item.name] = item.members
    elif isinstance(item, tree.RegionDeclaration):
        declared.regions[item.name] = item.region
    else:
        declared.tables[item.name] = item


def _content(
    item: tree.TableDeclaration, declared: Declared, collector: Collector, read_table: ReadTable
) -> None:
    """Read what a table holds; where that cannot be, nothing more is said of its columns."""
    try:
        declared.contents[item.name] = parse(read_table(item.file), item.key)
    except TableError as error:
        collector.note("HW227", item.place("file"), name=item.file, why=str(error))


def _twice(item: tree.Item, what: str, collector: Collector) -> None:
    collector.note("HW207", item.place("name"), name=item.name, what=what)


def definition_order(declared: Declared, collector: Collector) -> list[str]:
    """The definitions, each after those that it uses; circles are noted, each once."""
    uses = {
        name: [type_name for type_name in inputs_of(item) if type_name in declared.definitions]
        for name, item in declared.definitions.items()
    }
    order: list[str] = []
    done: set[str] = set()
    for root in uses:
        path: list[str] = []
        stack = [iter([root])]
        while stack:
            name = next(stack[-1], None)
            if name is None:
                stack.pop()
                if path:
                    done.add(path[-1])
                    order.append(path.pop())
            elif name in path:
                _circle(path[path.index(name) :], declared, collector)
            elif name not in done:
                path.append(name)
                stack.append(iter(uses[name]))
    return order


def _circle(names: list[str], declared: Declared, collector: Collector) -> None:
    first = min(names, key=list(declared.definitions).index)
    turn = names.index(first)
    circle = " → ".join([*names[turn:], *names[:turn], first])
    item = declared.definitions[first]
    collector.note("HW401", item.place("name"), name=first, circle=circle)
