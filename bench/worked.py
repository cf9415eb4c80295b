"""CPU time of this process and of all that Spark has begun, and what of it Java's compilers took.

Owns the looking. Must not know what is measured. Invariant: what a process or a thread has used
stays counted once it has ended; a log in a process of its own is not counted.
"""

import os
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
COMPILERS = ("C1 Compiler", "C2 Compiler")  # as Java names their threads


class Spent(NamedTuple):
    """CPU seconds: all, and those in which Java compiled."""

    all_s: float
    compiling_s: float

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.all_s - other.all_s, self.compiling_s - other.compiling_s)

    def each_us(self, count: int) -> tuple[float, float]:
        """Return the same, in microseconds, for each of so many."""
        return self.all_s / count * 1e6, self.compiling_s / count * 1e6


class Worked:
    """What was spent so far.

    Looked at all the time, as what a Python of Spark's has used is told nowhere once it has ended.
    """

    def __init__(self) -> None:
        self._used: dict[int, float] = {}
        self._threads: dict[Path, bool] = {}  # of Java, and whether they compile
        self._compiling: dict[Path, float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._look, daemon=True).start()

    def __call__(self) -> Spent:
        """Return that of all processes that there are and were."""
        parents: dict[int, int] = {}
        used: dict[int, float] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                with suppress(OSError):
                    fields = _fields(folder)
                    parents[int(folder.name)] = int(fields[1])
                    used[int(folder.name)] = _seconds(fields)
        own = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in own} - own:
            own |= {pid for pid in more if not _serves(pid)}
            for pid in more - own:
                del parents[pid]
        with self._lock:
            self._used |= {pid: used[pid] for pid in own if pid in used}
            for pid in own:
                self._look_at_threads(pid)
            return Spent(sum(self._used.values()), sum(self._compiling.values()))

    def _look_at_threads(self, pid: int) -> None:
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8") != "java\n":
                return
            for thread in Path(f"/proc/{pid}/task").iterdir():
                if thread not in self._threads:
                    name = (thread / "comm").read_text(encoding="utf-8")
                    if name == "java\n":  # it has not got its own yet
                        continue
                    self._threads[thread] = name.startswith(COMPILERS)
                if self._threads[thread]:
                    self._compiling[thread] = _seconds(_fields(thread))

    def _look(self) -> None:
        while True:
            self()
            time.sleep(0.5)


def _fields(folder: Path) -> list[str]:
    """Return what Linux tells of a process or a thread, behind its name."""
    return (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _seconds(fields: list[str]) -> float:
    return sum(map(int, fields[11:13])) / TICKS


def _serves(pid: int) -> bool:
    """Tell whether a process that Spark or we have begun is a log."""
    try:
        return b"--serve" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@cache
def worked() -> Worked:
    """Return the one that looks."""
    return Worked()
