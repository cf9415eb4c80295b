"""Where the results of a replay go: standard output or a file, as JSON lines.

Owns the file. Must not know how results are found. Invariant: what the file held before goes only
when there is something new to put there, or at the end if nothing went wrong; it is never an input.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from headwater.cli.output import CommandError
from headwater.replays.lines import STANDARD_INPUT

if TYPE_CHECKING:
    from broker.engine.event.agent import Result

FAULTY = 2


class Outlet:
    """Takes results as they leave; `fresh` files are emptied by the first of them."""

    def __init__(self, name: str, stream: IO[bytes], *, fresh: bool) -> None:
        self._name = name
        self._stream = stream
        self.fresh = fresh
        self._encode = msgspec.json.Encoder().encode

    def write(self, results: Sequence[Result]) -> None:
        """The results, one a line. Raises CommandError; a pipe that closed, BrokenPipeError."""
        if results:
            self._put(self._encode(result.to_dict()) + b"\n" for result in results)

    def end(self) -> None:
        """Nothing more comes, and nothing went wrong."""
        self._put(())

    def _put(self, lines: Iterable[bytes]) -> None:
        unwritten = memoryview(b"".join(lines))
        try:
            if self.fresh:
                self.fresh = False
                self._stream.truncate()
            while unwritten:
                unwritten = unwritten[self._stream.write(unwritten) :]
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _unwritable(self._name, error) from None


@contextmanager
def opened(output: str | None, inputs: Sequence[str]) -> Iterator[Outlet]:
    """The outlet; without a name, or with `-`, to standard output. Raises CommandError.

    A file is opened before a long replay begins, so that one that cannot be written is told then.
    """
    if output in {None, "-"}:
        yield Outlet("standard output", sys.stdout.buffer, fresh=False)
        return
    made = not Path(output).exists()
    try:
        number = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _unwritable(output, error) from None
    # Unbuffered: a write that failed is not tried once more when the file is closed.
    with os.fdopen(number, "wb", buffering=0) as stream:
        for name in inputs:
            if _is(number, name):
                raise CommandError(FAULTY, f"--output {output}: {name} is that file, and is read")
        outlet = Outlet(output, stream, fresh=stat.S_ISREG(os.fstat(number).st_mode))
        try:
            yield outlet
        except BaseException:
            if made and outlet.fresh:
                with suppress(OSError):
                    Path(output).unlink()
            raise


def _is(number: int, name: str) -> bool:
    if name == STANDARD_INPUT or not stat.S_ISREG(os.fstat(number).st_mode):
        return False
    try:
        return os.path.samestat(os.fstat(number), Path(name).stat())
    except OSError:
        return False  # the reader will tell


def _unwritable(name: str, error: OSError) -> CommandError:
    reason = (error.strerror or str(error)).lower()
    return CommandError(FAULTY, f"{name}: cannot be written: {reason}")
