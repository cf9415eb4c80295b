"""The machine on which a broker is installed, or a folder that holds the root of another.

Owns files, their owners, users and what is run. Must not know what they are for. Invariant: nothing
outside the root is touched, but by the programs that `run` is given.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

RUN_S = 120.0


class InstallError(Exception):
    """Something could not be done; the sentence says what, and why."""


class InstallRoot:
    """The machine whose root is `root`; `execute` runs a program there and returns its status."""

    def __init__(
        self, root: Path = Path("/"), execute: Callable[[Sequence[str]], int] | None = None
    ) -> None:
        self._root = root
        self._execute = execute or _executed

    @property
    def is_own(self) -> bool:
        """Return if this runs on it, and it is not one that is being prepared."""
        return self._root == Path("/")

    def has_systemd(self) -> bool:
        """Return if systemd runs here and now."""
        return self.is_own and Path("/run/systemd/system").is_dir()

    def at(self, path: PurePath) -> Path:
        """Return where a path of the machine is."""
        return self._root / path.relative_to("/")

    def text(self, path: PurePath) -> str | None:
        """Return what a file holds; None where there is none."""
        place = self.at(path)
        try:
            return place.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise InstallError(f"{path} cannot be read: {_reason(error)}") from None

    def ids_of(self, user: str) -> tuple[int, int] | None:
        """Return the ids of a user and its group; None where there is none of that name."""
        for line in (self.text(PurePath("/etc/passwd")) or "").splitlines():
            fields = line.split(":")
            if fields[0] == user and len(fields) > 3:
                return int(fields[2]), int(fields[3])
        return None

    def write(self, path: PurePath, text: str, mode: int, owner: str) -> None:
        """Write a file whole, or not at all."""
        place = self.at(path)
        draft = place.with_name(f".{place.name}.new")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(text, encoding="utf-8")
            draft.chmod(mode)
            self._own(draft, owner)
            draft.replace(place)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise InstallError(f"{path} cannot be written: {_reason(error)}") from None

    def make(self, path: PurePath, mode: int, owner: str) -> None:
        """Make a folder, or give one that is there its owner and mode."""
        place = self.at(path)
        try:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(mode)
            self._own(place, owner)
        except OSError as error:
            raise InstallError(f"{path} cannot be made: {_reason(error)}") from None

    def remove(self, path: PurePath) -> None:
        """Remove a file, or a folder with all that is in it."""
        place = self.at(path)
        try:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            raise InstallError(f"{path} cannot be removed: {_reason(error)}") from None

    def run(self, *words: str) -> None:
        """Run a program. Raises InstallError where it fails."""
        if (status := self._execute(words)) != 0:
            raise InstallError(f"`{' '.join(words)}` failed with status {status}")

    def useradd_words(self) -> list[str]:
        """Return the words by which programs for users are told of this root."""
        return [] if self.is_own else ["--root", str(self._root)]

    def _own(self, place: Path, owner: str) -> None:
        user, _, group = owner.partition(":")
        ids = self.ids_of(user), self.ids_of(group)
        if os.geteuid() == 0 and ids[0] is not None and ids[1] is not None:
            os.chown(place, ids[0][0], ids[1][1])


def _executed(words: Sequence[str]) -> int:
    try:
        # The words are those of steps, of which none comes from outside.
        return subprocess.run(words, check=False, timeout=RUN_S).returncode  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"`{' '.join(words)}` cannot be run: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
