"""From tree to specification: whether a text means something, and every reason why not.

Owns names, types and the limits of meaning. Must not know how anything runs. Invariant: an error
in one place does not make others be noted that would vanish with it; unknown types stay silent.

    tree ─▶ declarations (in the order of what needs what) ─▶ scope: names of a case
                                                                 │
    cases ─▶ patterns ─▶ expressions, calls (types by kinds) ─▶ times ─▶ specification, or errors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from language.check.cases import check_definition, check_subscription
from language.check.declarations import Declared, collect, definition_order
from language.specification import Specification
from language.taskgraph import Names, task_graph
from language.tree import Definition, Subscription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from language.diagnostics import Collector
    from language.reading.parser import ParsedText
    from language.tables import ReadTable


def check(
    reading: ParsedText,
    collector: Collector,
    functions: Mapping[str, Any],
    read_table: ReadTable | None = None,
) -> Specification | None:
    """Check what was read; errors go to `collector`, without any the specification is made."""
    declared = collect(reading, collector, functions, read_table)
    order = definition_order(declared, collector)
    for name in order:
        check_definition(declared.definitions[name], declared, collector)
    assigned = {}
    for item in reading.file.items:
        if isinstance(item, Subscription):
            assigned[item.subscriber, item.name] = check_subscription(item, declared, collector)
        elif isinstance(item, Definition) and declared.definitions.get(item.name) is not item:
            check_definition(item, declared, collector)
    if len(collector):
        return None
    return specification(reading, declared, order, assigned)


def specification(
    reading: ParsedText,
    declared: Declared,
    order: list[str],
    assigned: dict[tuple[str, str], dict[str, str]],
) -> Specification:
    """The specification of a text in which no error was found; see there for `assigned`."""
    event_types = {
        name: event_type
        for name, event_type in declared.event_types.items()
        if event_type is not None
    }
    names = Names(
        event_types,
        declared.sets,
        declared.regions,
        declared.tables,
        declared.contents,
        declared.functions,
    )
    return Specification(
        file=reading.file,
        event_types=event_types,
        sets=declared.sets,
        regions=declared.regions,
        tables=declared.tables,
        definitions=declared.definitions,
        subscriptions=declared.subscriptions,
        assigned=assigned,
        graph=task_graph(reading.file, order, names),
    )
