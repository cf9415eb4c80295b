"""Another name for a broker that keeps its data directory.

Owns the steps of renaming, and the names under which others know the broker from before. Must not
know what is kept under a name. Invariant: either the broker has the new name, or nothing changed;
others wait for the old one until all that was kept under it is stored where it is wanted.

    stopped   `rename`        the old name goes into `broker.former`, then the new one is written
    starting  `settled`       who is renamed a moment ago waits until others know the old name away
    running   `FormerNames`   once all of it is stored there, others are told to forget the old name
"""

import asyncio
import os
import re
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from broker import logs
from broker.config import Loaded
from broker.errors import StartError
from broker.journal.files import Files, put
from broker.rights.names import NAME_PATTERN, NAME_SAYS
from broker.site.data_dir import ANY, NAME, claimed, name_of

FORMER = "broker.former"
LOOK_S = 1.0
NOTICED_S = 1.0  # for a link that ended to be noticed, before others begin to wait for it


class RenameError(Exception):
    """A broker cannot be renamed; the text is a sentence with the way out."""


def rename(loaded: Loaded, new: str) -> str:
    """Give a stopped broker another name, and return its old one. Raises RenameError."""
    place = loaded.config.broker.data_dir
    if not re.fullmatch(NAME_PATTERN, new):
        raise RenameError(f'"{new[:64]}" is no name of a broker: it {NAME_SAYS}')
    if not place:
        raise RenameError("a broker without a data directory keeps nothing: start it anew as that")
    if Path(place).name == ANY:
        raise RenameError(f"{place} is of several brokers; name the one with --set broker.data_dir")
    if not Path(place).is_dir():
        raise RenameError(f"there is no {place}: the broker never ran with this configuration")
    try:
        with claimed(place) as folder:
            assert folder is not None
            return _written(loaded, folder, new)
    except StartError as error:
        raise RenameError(f"{error}; a broker is stopped before it is renamed") from None
    except OSError as error:
        raise RenameError(f"{error.filename}: {(error.strerror or str(error)).lower()}") from None


def _written(loaded: Loaded, folder: Path, new: str) -> str:
    """Write the old name, which counts for nothing yet, and then the new one."""
    given = loaded.config.broker.name
    if not given and not (folder / NAME).exists():
        raise RenameError(f"{folder} has no name yet: the broker never ran")
    old = name_of(given, folder)
    if old == new:
        raise RenameError(f"the broker is called {new} already")
    file, text = _renamed(loaded, new) if given else (folder / NAME, f"{new}\n")
    names = [name for name in former_names(folder) if name not in {old, new}]
    _put_names(folder, [*names, old])
    before = file.stat()
    put(Files(), file, text.encode())
    file.chmod(before.st_mode & 0o777)
    with suppress(PermissionError):
        os.chown(file, before.st_uid, before.st_gid)
    return old


def _renamed(loaded: Loaded, new: str) -> tuple[Path, str]:
    """Return the file of the configuration that has the name, and its text with the new one."""
    origin = loaded.origins["broker.name"]
    if origin.kind != "file":
        raise RenameError(f"the name comes from {origin.place}: give the new one there")
    name, line, _ = origin.place.rsplit(":", 2)
    file = Path(name)
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    old = re.escape(loaded.config.broker.name)
    row = int(line) - 1
    lines[row] = re.sub(
        rf"""(name["']?\s*=\s*)(["']){old}\2""", rf"\g<1>\g<2>{new}\g<2>", lines[row]
    )
    changed = "".join(lines)
    wanted = tomllib.loads(text)
    wanted["broker"]["name"] = new
    if tomllib.loads(changed) != wanted:
        raise RenameError(f"{origin.place}: write the new name there yourself")
    return file, changed


def former_names(folder: Path) -> list[str]:
    """Return the names under which others may still know the broker, the oldest first."""
    try:
        words = (folder / FORMER).read_text(encoding="utf-8", errors="replace").split()
    except FileNotFoundError:
        return []
    return [word for word in words if re.fullmatch(NAME_PATTERN, word)]


async def settled(folder: Path, down_after_ms: int) -> None:
    """Wait until a name that was given up a moment ago is away for all others.

    Until then they tell of it as of a broker that runs, and this one would take it for the original
    of a copied disk, to which it yields. `down_after_ms` is how long others wait for who is cut.
    """
    if former_names(folder):
        passed_s = time.time() - (folder / FORMER).stat().st_mtime
        patience_s = NOTICED_S + down_after_ms / 1000
        wait_s = min(max(patience_s - passed_s, 0.0), patience_s)  # a clock may have gone back
        if wait_s:
            logs.tell("info", "renamed", waits_s=round(wait_s, 1))
            await asyncio.sleep(wait_s)


def _put_names(folder: Path, names: list[str]) -> None:
    put(Files(), folder / FORMER, "".join(f"{name}\n" for name in names).encode())


class Renamed(Protocol):
    """The links of a broker that may have had other names."""

    def forget(self, broker: str) -> bool:
        """Have nobody wait for a broker any more; False where it is not known."""

    def standing(self, broker: str) -> str:
        """Return how a broker is: `reachable`, `away`, `unknown`, or empty while nobody is."""

    def status(self) -> Mapping[str, Any]:
        """Return what is known.

        `position` is that of the last event, `retained` are the events that are kept for others,
        and `hosts` the positions up to which each of these has them.
        """


class FormerNames:
    """Have the old names of a broker forgotten, each once nothing waits to be handed over."""

    def __init__(self, folder: Path, links: Renamed) -> None:
        self._folder = folder
        self._links = links
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, where there are any."""
        if former_names(self._folder):
            self._task = asyncio.get_running_loop().create_task(self._run(), name="former names")

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        names = former_names(self._folder)
        # What comes under the new name is nothing to the old one, and something is kept of it most
        # of the time, as hosts say seldom what they have.
        last: int = self._links.status()["position"]
        while names:
            await asyncio.sleep(LOOK_S)
            before = list(names)
            for name in before:
                standing = self._links.standing(name)
                if standing in {"reachable", "unknown"}:  # another's by now, or nobody's
                    names.remove(name)
                elif standing == "away" and _is_handed_over(self._links.status(), last):
                    self._links.forget(name)
            if names != before:
                _put_names(self._folder, names)


def _is_handed_over(status: Mapping[str, Any], last: int) -> bool:
    """Return if all events up to a position are where they are needed."""
    return not status["retained"] or min(status["hosts"].values(), default=last) >= last
