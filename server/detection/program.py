"""The text of a specification as it travels to where it runs, and what it may be parted by.

Owns the checking on the driver. Must not know Spark. Invariant: what is sent was checked with the
tables that are sent along, and runs nowhere else otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.replays.reference_tables import tables_beside
from language import Specification, Task, check_text
from language.printing.items import item_text
from language.tree import Case, Definition
from language.tree_expressions import Attribute
from server.errors import JobsError


@dataclass(frozen=True)
class DetectionProgram:
    """A checked specification and how to run it; plain data, so that it can be sent anywhere.

    `longest_ms` bounds how long an event may last; `types` names the event types of subscriptions;
    `declared` are the attributes of each type of event that the text declares.
    """

    text: str
    tables: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    longest_ms: int = 0
    raw: bool = False  # its input is events, not results
    declared: Mapping[str, frozenset[str]] | None = None  # None: nobody has looked

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key by which two programs are the same."""
        pairs = (tuple(sorted(mapping.items())) for mapping in (self.tables, self.types))
        return (self.text, *pairs, self.longest_ms, self.raw)


def checked(path: Path, **more: object) -> DetectionProgram:
    """The program of a file. Raises JobsError with every fault of the text."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else "it is no UTF-8"
        raise JobsError(f"{path}: cannot be read: {reason}") from None
    tables: dict[str, str] = {}
    beside = tables_beside(str(path))

    def remembered(name: str) -> str:
        tables[name] = beside(name)
        return tables[name]

    result = check_text(text, file=str(path), tables=remembered)
    if result.specification is None:
        raise JobsError(result.report().rstrip("\n"))
    declared = {
        kind.name: frozenset(kind.attributes)
        for kind in result.specification.event_types.values()
        if not kind.defined
    }
    return DetectionProgram(text, tables, declared=declared, **more)  # type: ignore[arg-type]


def specification_of(program: DetectionProgram) -> Specification:
    """Checked anew, from nothing but the program."""
    return check_text(program.text, tables=program.tables.__getitem__).demand()


def canonical_of(program: DetectionProgram) -> str:
    """Return the text as it is written canonically: no comment and no blank is in it."""
    return "\n".join(item_text(item) for item in specification_of(program).file.items)


def needs_one_place(specification: Specification) -> str | None:
    """Why events of different locations must meet in one place; None: they need not.

    Everything is per partition where it is grouped by location, but a detected event carries its
    partition on only if the definition assigns it.
    """
    graph = specification.graph
    used = {key for task in graph.tasks.values() for key in task.needs.values()}
    for key in (*graph.active(graph.roots), *graph.roots):
        task = graph.tasks[key]
        for case in _cases(task):
            if "location" not in case.group_by:
                return f"{task.name} is not grouped by location"
            if key in used and not _keeps_location(task, case):
                return f"{task.name} does not assign location = group.location"
    return None


def _cases(task: Task) -> tuple[Case, ...]:
    node = task.node
    return node.cases if isinstance(node, Definition) else (node.case,)


def _keeps_location(task: Task, case: Case) -> bool:
    node = task.node
    post = node.post if isinstance(node, Definition) else None
    assigned = {
        assignment.name: assignment.value
        for assignment in (case.assign if post is None else post.assign)
    }
    value = assigned.get("location")
    return isinstance(value, Attribute) and (value.base, value.name) == ("group", "location")
