"""The broker's directory: there, writable, nobody else's, and the broker's name in it.

Owns the lock in it and the name that was made of the host's. Must not know what else is kept there.
Invariant: while it is claimed, no other broker on this machine can claim it; the claim ends with
the process, however that ends. A broker that was not given a name has one for good.
"""

import fcntl
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.errors import StartError
from broker.journal.files import Files, put
from broker.rights.names import NAME_PATTERN

LOCK = "broker.lock"
NAME = "broker.name"
ANY = "*"
SHARING_MAX = 1_000  # brokers that share a directory; each has one of its own there


@contextmanager
def claimed(name: str) -> Iterator[Path | None]:
    """Make the directory where it is missing, and hold it; None of an empty name.

    Of one that ends with `*` it is the first that is free. Raises StartError.
    """
    if not name:
        yield None
        return
    path = Path(name)
    if path.name == ANY:
        path, lock = _free(path.parent)
    else:
        lock = _own(path)
    try:
        yield path
    finally:
        os.close(lock)


def name_of(given: str, folder: Path | None) -> str:
    """Return the broker's name: the one given, or that of the first start, or that of the host.

    The last is written to `folder` for later starts. Raises StartError.
    """
    if given:
        return given
    kept = None if folder is None else folder / NAME
    try:
        if kept is not None and kept.exists():
            name = kept.read_text(encoding="utf-8", errors="replace").strip()
            if re.fullmatch(NAME_PATTERN, name):
                return name
            raise StartError(f"{kept} holds no name of a broker; set broker.name to its name")
        name = _host_name(socket.gethostname())
        if folder is not None:
            put(Files(), folder / NAME, f"{name}\n".encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"{kept}: {reason}; set broker.name to this broker's name") from None
    return name


def _host_name(host: str) -> str:
    """Return the name of a broker on a host. Raises StartError."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", host).lstrip("._-")[:64]
    if not name or name == "localhost":
        raise StartError(
            f'the host\'s name, "{host}", tells brokers apart from none; '
            "set broker.name to a name of its own"
        )
    return name


def _free(path: Path) -> tuple[Path, int]:
    """Return the first directory in `path` that no other broker holds, and its lock."""
    for number in range(1, SHARING_MAX + 1):
        if (lock := _lock(path / str(number))) is not None:
            return path / str(number), lock
    raise StartError(f"all {SHARING_MAX} directories in {path} are in use by other brokers")


def _own(path: Path) -> int:
    """Return the lock of a directory that is to be this broker's alone. Raises StartError."""
    if (lock := _lock(path)) is None:
        raise StartError(
            f"the data directory {path} is in use by another broker; "
            "give each broker one of its own (broker.data_dir)"
        )
    return lock


def _lock(path: Path) -> int | None:
    """Make the directory where it is missing, and lock it; None: another broker has it."""
    try:
        Files().make_folder(path)
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(
            f"the data directory {path} cannot be written: {reason}; "
            "name another one as broker.data_dir, or none to keep nothing"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
