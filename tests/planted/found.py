"""By which test each planted fault was found last: the one to be asked first.

Owns the list in `found.txt`. Invariant: the list spares time and decides nothing: where its test
passes, or is no longer there, all the fault's tests are run.

`python -m tests.planted.found` finds the faults that are not listed, with `--stale` those too that
their listed test no longer finds, or all again with `--all`, and writes the list anew after each.
Where there are several it first records which tests reach them (`reaching.py`) and asks those, the
shortest first; all others where none of these finds it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from tests.planted.copies import Copy, nearest_first
from tests.planted.tables import FAULTS

FILE = Path(__file__).with_name("found.txt")
RECORDED_FROM = 4  # faults to look for: for fewer all their tests are run sooner than recorded


def read() -> dict[str, str]:
    """The test that is to be asked first, by the fault's name."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.is_file() else []
    return dict(line.split(" ", 1) for line in lines)


def write(found: dict[str, str]) -> None:
    """Write the list."""
    lines = [f"{name} {test}\n" for name, test in sorted(found.items())]
    FILE.write_text("".join(lines), encoding="utf-8")


def _likely(copy: Copy, names: list[str], processes: int) -> dict[str, list[str]]:
    """By fault the tests that reach its place, those that take least time first."""
    faults = [fault for fault in FAULTS if fault.name in names]
    files = {fault.name: set(nearest_first(fault.tests, fault.module)) for fault in faults}
    likely: dict[str, list[str]] = {name: [] for name in files}
    reached = copy.reached(sorted(set().union(*files.values())), processes)
    for test, (_, these) in sorted(reached.items(), key=lambda item: item[1][0]):
        for name in these:
            if test.partition("::")[0] in files.get(name, ()):
                likely[name].append(test)
    return likely


def _search(folder: str, job: tuple[str, list[str]]) -> tuple[str, str | None]:
    name, likely = job
    (fault,) = [one for one in FAULTS if one.name == name]
    return name, _copy(Path(folder) / str(os.getpid())).run(fault.tests, fault, likely).failed


@cache
def _copy(folder: Path) -> Copy:
    """That of this process."""
    return Copy(folder)


def _searched(missing: list[str], processes: int) -> Iterator[tuple[str, str | None]]:
    """Each of them with the test that finds it, if one does, as they come."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(processes) as pool:
        likely = {}
        if len(missing) >= RECORDED_FROM:
            likely = _likely(Copy(Path(folder) / "recording"), missing, processes)
        jobs = [(name, likely.get(name, [])) for name in missing]
        yield from pool.imap_unordered(partial(_search, folder), jobs)


def _ask(folder: str, job: tuple[str, str]) -> tuple[str, str | None]:
    """The listed test, by its name of now, if it still finds the fault."""
    name, test = job
    (fault,) = [one for one in FAULTS if one.name == name]
    copy = _copy(Path(folder) / str(os.getpid()))
    return name, copy.run(fault.tests, fault, [test], only=True).failed


def _still(found: dict[str, str], processes: int) -> dict[str, str]:
    """The list without those that their test finds no longer; each of these is said as it comes."""
    still = {}
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(processes) as pool:
        asked = pool.imap_unordered(partial(_ask, folder), found.items())
        for number, (name, test) in enumerate(asked, 1):
            if test is None:
                _say(f"{number} of {len(found)}  {name}: no longer by {found[name]}")
            else:
                still[name] = test
    return still


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """Find them, as many at once as there are to be processes."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.found", description=__doc__)
    parser.add_argument("--all", action="store_true", help="those that are listed too")
    parser.add_argument("--stale", action="store_true", help="those whose listed test passes, too")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    asked = parser.parse_args(words)
    names = [fault.name for fault in FAULTS]
    found = {name: test for name, test in read().items() if name in names}
    if asked.stale:
        found = _still(found, asked.processes)
        write(found)
    missing = [name for name in names if asked.all or name not in found]
    survived = []
    for number, (name, test) in enumerate(_searched(missing, asked.processes), 1):
        if test is None:
            survived.append(name)
            found.pop(name, None)
        else:
            found[name] = test
        write(found)
        _say(f"{number} of {len(missing)}  {name}: {test or 'not found'}")
    _say(f"{len(found)} of {len(names)} found; not found: {', '.join(survived) or 'none'}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
