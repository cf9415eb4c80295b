"""The form of an entry of the table of errors.

Knows nothing of who finds the errors. Invariant: every example of an entry has exactly the error
of that entry, at the stated place (a test holds that).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A faulty text, and the line and column of its caret, both from 1."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An error: `message` is a format string, `help` says what to do instead."""

    code: str
    title: str
    message: str
    help: str
    examples: tuple[Example, ...] = ()
