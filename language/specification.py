"""What checking gives: event types, the specification, the task graph's raw material.

Owns the result types alone. Invariant: a Specification exists only of a text without errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from language import tree
    from language.taskgraph import TaskGraph


@dataclass(frozen=True)
class EventType:
    """A type of events: its attributes in order, and whether a definition makes it.

    What every event has (`location`, `timestamp`, …) is not among the attributes. A defined type
    has "any" in place of an attribute's type where that comes from a table or a user's function.
    `lasts_ms`: its events last no longer, as it is declared; None: nothing is said of that.
    """

    name: str
    attributes: dict[str, tree.AttributeType] = field(default_factory=dict)
    defined: bool = False
    lasts_ms: int | None = None


@dataclass(frozen=True)
class Specification:
    """A text that means something; the dicts are in the order of the text.

    Definitions are by name, subscriptions by (subscriber, name). `assigned` are, by subscription,
    the types of what it assigns, as `language.check.kinds` has them.
    """

    file: tree.File
    event_types: dict[str, EventType]
    sets: dict[str, tree.SetLiteral]
    regions: dict[str, tree.RegionLiteral]
    tables: dict[str, tree.TableDeclaration]
    definitions: dict[str, tree.Definition]
    subscriptions: dict[tuple[str, str], tree.Subscription]
    assigned: dict[tuple[str, str], dict[str, str]]
    graph: TaskGraph

    @property
    def program(self) -> Program:
        """Return the part of it that runs."""
        return Program(self.event_types, self.graph)


@dataclass(frozen=True)
class Program:
    """Types and tasks without the text's tree, which is as large as both and which errors need."""

    event_types: dict[str, EventType]
    graph: TaskGraph
