"""How commands speak: text for people, JSON for programs, files for both.

Owns the reading of a named file and the form of output. Must not know any command. Invariant: what
goes to standard output is the outcome alone; everything else goes to standard error.
"""

import io
import json
import os
import re
import select
import shutil
import stat
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self, TextIO

FILE_BYTES_MAX = 2**24
BAR_WIDTH = 24
REDRAWN_EVERY_S = 0.1
# Control characters but line ends and tabs: what a terminal may take for an order.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CommandError(Exception):
    """A command cannot do what was asked; `status` is the exit status, `messages` say why.

    `errors` are the same for programs; with more than the sentence where a broker gave more.
    """

    def __init__(
        self, status: int, *messages: str, errors: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__("\n".join(messages))
        self.status = status
        self.messages = messages
        self.errors = errors or [{"message": text} for text in messages]


def print_json(value: object, stream: TextIO | None = None) -> None:
    """One JSON document on one line of standard output, or of `stream`.

    In escapes where that is not UTF-8.
    """
    to = stream or sys.stdout
    unicode = (to.encoding or "utf-8").lower().replace("-", "") == "utf8"
    print(json.dumps(value, ensure_ascii=not unicode), file=to)


def harmless(text: str) -> str:
    """The text with control characters as escapes: it may come from strangers."""
    return _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def complain(text: str) -> None:
    """A line on standard error; where nobody reads it, what is wrong is wrong all the same."""
    try:
        print(harmless(text), file=sys.stderr, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def leave_with_reader() -> None:
    """From now on end this process, with status 0, as soon as nobody reads its output any more.

    For a command that waits for what may come: it would notice at its next line only, or never.
    """
    try:
        out = sys.stdout.fileno()
    except (io.UnsupportedOperation, ValueError):  # no stream of the system's
        return
    if stat.S_ISFIFO(os.fstat(out).st_mode) and hasattr(select, "poll"):
        threading.Thread(target=_leave, args=(out,), daemon=True).start()


def _leave(out: int) -> None:
    reader = select.poll()
    reader.register(out, 0)  # that the other end is closed is told unasked
    reader.poll()
    os._exit(0)  # the main thread waits for the network; every line of it has been written


def print_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest entry."""
    texts = [list(heads)]
    texts += [[("" if cell is None else harmless(str(cell))) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in texts) for i in range(len(heads))]
    for row in texts:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


class ProgressLine:
    """A count of what long work has done: one line on a terminal's standard error, else nothing.

    A context manager; leaving it wipes the line. `words` say what is counted. Where results go to
    the same terminal (`beside_output`) nothing is drawn, as both would stand in one line.
    """

    def __init__(self, words: str, *, beside_output: bool = False) -> None:
        self._words = words
        self._side = sys.stderr
        self._draws = self._side.isatty() and not (beside_output and sys.stdout.isatty())
        self._drawn_s = -1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._draws:
            self._side.write("\r\x1b[2K")
            self._side.flush()

    def show(self, done: int, total: int | None = None) -> None:
        """Redraw the line, at most every `REDRAWN_EVERY_S`; without a total there is no bar."""
        if not self._draws:
            return
        now_s = time.monotonic()
        if now_s - self._drawn_s < REDRAWN_EVERY_S and done != total:
            return
        self._drawn_s = now_s
        line = f"{done:,} {self._words}"
        if total is not None:
            filled = BAR_WIDTH * done // max(1, total)
            bar = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"
            line = f"{bar} {done:,} of {total:,}  {self._words}"
        self._side.write("\r\x1b[2K" + line[: max(1, shutil.get_terminal_size().columns - 1)])
        self._side.flush()


def ask_password(prompt: str) -> str:
    """Return what is typed at the terminal, unseen. Raises CommandError where nothing is typed."""
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
        begin = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[begin : error.start].decode("utf-8")) + 1
        raise CommandError(2, f"{name}:{line}:{column}: not UTF-8") from None
