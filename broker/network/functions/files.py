"""One file of user functions as it travels.

Owns its fields, its limits and which of two files is the later. Must not know what a file does.
Invariant: the digest is that of the contents, so that equal digests mean equal functions.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

FILE_BYTES_MAX: Final = 262_144  # a quarter of what a link takes as one message
FILES_MAX: Final = 64  # in force at a time; a broker runs each of them
# Names that a broker remembers, removed ones among them. Gives at several brokers at once may
# exceed FILES_MAX, and the files must be the same everywhere in the end.
NAMES_MAX: Final = 1_000
COUNTER_MAX: Final = 2**53  # as JSON's numbers keep it
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
NAME_SAYS: Final = "a letter, then up to 63 letters, digits, `_` and `-`"


class FunctionFile(Struct, array_like=True, frozen=True):
    """The contents of a file under a name, or, where `data` is empty, its removal.

    `counter` and `broker` order the files of one name; `giver` is the user, "" where nobody logs
    in; `since` is when it was given, in ms.
    """

    name: str
    counter: int
    broker: str
    giver: str
    since: int
    data: bytes = b""

    @property
    def rank(self) -> tuple[int, str]:
        """Return what orders files of one name."""
        return self.counter, self.broker

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the contents; "" of a removal."""
        return digest_of(self.data) if self.data else ""


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a file's contents, in hexadecimal digits."""
    return sha256(data).hexdigest()


def check_file(file: FunctionFile) -> None:
    """Raise ValueError where a neighbour's file exceeds what any broker accepts."""
    proper = NAME.fullmatch(file.name) is not None and 0 < file.counter <= COUNTER_MAX
    if not proper or len(file.data) > FILE_BYTES_MAX:
        raise ValueError("a file of functions has no proper name, or is too long")
