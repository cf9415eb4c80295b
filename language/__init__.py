"""Text to a checked specification and its task graph.

Owns the language: grammar, tree, checking, canonical text, diagnostics. Must not know brokers,
files, clocks or how anything runs; imports nothing else of the project. Invariant: `check_text`
never raises, finds every error, and gives a specification only where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from language.diagnostics import Collector, Diagnostic, report
from language.errors import HeadwaterError, LanguageError
from language.specification import EventType, Program, Specification
from language.tables import ReadTable, TableError
from language.taskgraph import Task, TaskGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Checked",
    "Diagnostic",
    "EventType",
    "HeadwaterError",
    "LanguageError",
    "Program",
    "ReadTable",
    "Specification",
    "TableError",
    "Task",
    "TaskGraph",
    "check_text",
    "format_text",
]


@dataclass(frozen=True)
class Checked:
    """The result of checking a text: every error, or the specification."""

    text: str
    file: str
    diagnostics: tuple[Diagnostic, ...]
    specification: Specification | None

    @property
    def ok(self) -> bool:
        """Tell whether no error was found."""
        return not self.diagnostics

    def report(self, *, color: bool = False, code: str | None = None) -> str:
        """All errors (or those of one code) for people, with source lines and carets."""
        selected = [
            diagnostic for diagnostic in self.diagnostics if code in {None, diagnostic.code}
        ]
        return report(self.text, selected, file=self.file, color=color)

    def demand(self) -> Specification:
        """The specification; raises LanguageError with the report where there are errors."""
        if self.specification is None:
            raise LanguageError(self.report(), self.diagnostics)
        return self.specification


def check_text(
    text: str,
    *,
    file: str = "<text>",
    functions: Mapping[str, Any] | None = None,
    tables: ReadTable | None = None,
) -> Checked:
    """Read and check a text; never raises.

    `functions` are the user's own, by name. `tables` gives the text of a table's file, by the name
    that the specification writes, or raises TableError; without it tables are not looked into, and
    what uses them cannot run.
    """
    from language.check import check
    from language.reading.parser import read

    collector = Collector()
    reading = read(text, collector)
    specification = check(reading, collector, functions or {}, tables)
    diagnostics = collector.found()
    return Checked(text, file, diagnostics, None if diagnostics else specification)


def format_text(text: str) -> str:
    """The text laid out canonically, comments kept; raises LanguageError where it cannot be read.

    Meaning is not asked for: what reads is formatted. Formatting twice changes nothing more.
    """
    from language.printing.formatter import format_items
    from language.reading.parser import read

    collector = Collector()
    reading = read(text, collector)
    diagnostics = collector.found()
    if diagnostics:
        raise LanguageError(report(text, diagnostics), diagnostics)
    return format_items(text, reading.file.items)
