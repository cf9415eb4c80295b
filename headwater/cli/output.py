"""How commands speak: text for people, JSON for programs, files for both.

Owns the reading of a named file and the form of output. Must not know any command. Invariant: what
goes to standard output is the outcome alone; everything else goes to standard error.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

FILE_BYTES_MAX = 2**24


class CommandError(Exception):
    """A command cannot do what was asked; `status` is the exit status, `messages` say why."""

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__("\n".join(messages))
        self.status = status
        self.messages = messages


def print_json(value: object) -> None:
    """One JSON document on one line, in escapes where standard output is not UTF-8."""
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not unicode))


def complain(text: str) -> None:
    """A line on standard error."""
    print(text, file=sys.stderr)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest entry."""
    texts = [list(heads), *([("" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(heads))]
    for row in texts:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def ask_password(prompt: str) -> str:
    """What somebody types at the terminal, unseen. Raises CommandError where nothing is typed."""
    from getpass import getpass

    try:
        return getpass(prompt)
    except EOFError:
        raise CommandError(2, "no password was typed") from None


def read_text(name: str) -> str:
    """The text of a file, `-` being standard input. Raises CommandError with status 2."""
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(2, f"{name}: cannot be read: {reason}") from None
    if len(data) > FILE_BYTES_MAX:
        raise CommandError(2, f"{name}: longer than {FILE_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CommandError(2, f"{name}:{line}:1: not UTF-8") from None
