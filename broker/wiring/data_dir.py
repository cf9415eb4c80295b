"""The broker's directory: there, writable, and nobody else's.

Owns the lock in it. Must not know what is kept there. Invariant: while it is claimed, no other
broker on this machine can claim it; the claim ends with the process, however that ends.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.journal.files import Files
from broker.wiring.errors import StartError

LOCK = "broker.lock"


@contextmanager
def claimed(name: str) -> Iterator[Path | None]:
    """Make the directory where it is missing, and hold it; None of an empty name.

    Raises StartError.
    """
    if not name:
        yield None
        return
    path = Path(name)
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
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StartError(
                f"the data directory {path} is in use by another broker; "
                "give each broker one of its own (broker.data_dir)"
            ) from None
        yield path
    finally:
        os.close(lock)
