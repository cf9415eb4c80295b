"""Files that several commands are given: JSON documents, specifications, and what is written.

Owns the sentences about files that cannot be read, checked or written. Must not know any command.
Invariant: whatever is wrong with a file is a CommandError with status 2 that names it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from headwater.cli.output import CommandError, complain, read_text
from headwater.replays.reference_tables import tables_beside
from language import ReadTable, Specification, check_text

FAULTY = 2


def read_json(name: str) -> object:
    """The document in a file, `-` being standard input. Raises CommandError."""
    text = read_text(name)
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_each_once)
    except _TwiceError as error:
        raise CommandError(FAULTY, f"{name}: {error}") from None
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise CommandError(FAULTY, f"{where}: not JSON: {error.msg.lower()}") from None
    except (ValueError, RecursionError):
        reason = "not JSON that can be read: too deep or too long"
        raise CommandError(FAULTY, f"{name}: {reason}") from None


class _TwiceError(ValueError):
    """An object tells one key twice; which of the two is meant nobody knows."""


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key in counts if counts[key] > 1)
        raise _TwiceError(f"an object has the key {json.dumps(twice)} twice")
    return document


def functions_of(path: str) -> Mapping[str, object]:
    """The functions of one's own in a Python file; none of an empty path. Raises CommandError."""
    if not path:
        return {}
    from broker.own_functions import FunctionsError, load_functions

    try:
        return load_functions(path)
    except FunctionsError as error:
        raise CommandError(FAULTY, str(error)) from None


def checked_text(
    name: str, *, as_json: bool = False, tables: ReadTable | None = None, functions: str = ""
) -> tuple[str, Specification]:
    """A specification's text, and what it says; `tables` reads in place of the usual way.

    `functions` is the file of one's own (`functions_of`).
    Raises CommandError: for people the errors are shown with line and caret, for programs they are
    its messages.
    """
    text = read_text(name)
    checked = check_text(
        text,
        file=name,
        functions=functions_of(functions),
        tables=tables or tables_beside(name),
    )
    if checked.specification is not None:
        return text, checked.specification
    if as_json:
        raise CommandError(
            FAULTY, *[_sentence(name, diagnostic.to_dict()) for diagnostic in checked.diagnostics]
        )
    complain(checked.report().rstrip("\n"))
    count = len(checked.diagnostics)
    raise CommandError(FAULTY, f"{name}: {count} error{'s' if count > 1 else ''}")


def _sentence(name: str, one: Mapping[str, object]) -> str:
    return f"{name}:{one['line']}:{one['column']}: {one['code']}: {one['message']}"


def write_text(name: str, text: str) -> None:
    """Write a file. Raises CommandError."""
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(FAULTY, f"{name}: cannot be written: {reason}") from None
