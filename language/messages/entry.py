"""The form of an entry of the table of errors.

Knows nothing of who finds the errors. Invariant: every example of an entry has exactly the error
of that entry, at the stated place (a test holds that).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CARET = "‸"
"""In an example this stands before the character under which the caret is expected."""

EVENTS = "event A(x: int, t: text)\nevent B(x: int, t: text)\n"
"""Declarations that most examples begin with."""

HEAD = "subscription S from u to a\n"
"""The head of most examples' subscriptions."""


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty text, and the line and column of its caret, both from 1.

    `functions` are the names of the user's own functions that are there, `tables` the texts of the
    tables' files by name.
    """

    text: str
    line: int
    column: int
    functions: tuple[str, ...] = ()
    tables: Mapping[str, str] | None = None

    def read_table(self, name: str) -> str:
        """The text of one of its tables."""
        return (self.tables or {})[name]


@dataclass(frozen=True, slots=True)
class Marked:
    """A faulty text with its caret marked, large ones as a function that writes them."""

    text: str | Callable[[], str]
    functions: tuple[str, ...] = ()
    tables: Mapping[str, str] | None = None

    def example(self) -> Example:
        """The example, its caret counted out."""
        marked = self.text if isinstance(self.text, str) else self.text()
        before, after = marked.split(CARET)
        line = before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        return Example(before + after, line, column, self.functions, self.tables)


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """An error: `message` is a format string, `help` says what would be right."""

    code: str
    title: str
    message: str
    help: str
    marked: tuple[Marked, ...]

    @property
    def examples(self) -> tuple[Example, ...]:
        """At least two faulty texts with this error."""
        return tuple(marked.example() for marked in self.marked)


def bad(
    marked: str | Callable[[], str],
    functions: tuple[str, ...] = (),
    tables: Mapping[str, str] | None = None,
) -> Marked:
    """A text in which the expected caret is marked."""
    return Marked(marked, functions, tables)


def detecting(marked: str) -> Marked:
    """A subscription to A and B with this marked text after its head."""
    return Marked(EVENTS + HEAD + marked)


def defining(marked: str) -> Marked:
    """A marked text after the declarations of A and B."""
    return Marked(EVENTS + marked)
