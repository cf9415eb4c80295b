"""Ids of what is detected: digests that any broker computes alike.

Owns the digest. Must not know hosts, epochs or clocks: an id depends on the task's canonical text
(by its key), the case, and what was bound, so that a repeat is recognised everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

# 128 bits: among 10**12 results two share an id with a chance of about 10**-15, and a result
# carries 32 characters instead of 64.
DIGEST_BYTES = 16
ENCODE = msgspec.msgpack.Encoder().encode


def digest(*parts: Any) -> str:
    """Hex digest of plain values (text, numbers, lists, None)."""
    return blake2b(ENCODE(parts), digest_size=DIGEST_BYTES).hexdigest()


def digests(messages: Sequence[bytes]) -> list[str]:
    """Return the digest of each encoded message."""
    return [blake2b(message, digest_size=DIGEST_BYTES).hexdigest() for message in messages]


Bound = Sequence[tuple[str, Sequence[tuple[str, int]]]]


def beginning_of(task: str, case: int) -> bytes:
    """Encode what is digested of a case's occurrence before what is bound."""
    # The last element is encoded as nil and cut off again: what is bound follows in its place, so
    # that the digest is that of the whole tuple although only its end varies.
    return ENCODE(("occurrence", task, case, None))[:-1]


def begun_of(task: str, case: int) -> blake2b:
    """The digest of a case's occurrence, begun: what is bound is missing, encoded."""
    return blake2b(beginning_of(task, case), digest_size=DIGEST_BYTES)


# A window has no occurrence that would name it, and what is in it may come from several brokers in
# parts; its number and group are the same wherever it closes.
def said_of_window(
    task: str, case: int, window: int | list[str | int], group: tuple[Any, ...]
) -> bytes:
    """Encode what the id of a window's event is the digest of.

    `window` is its number, or the closing event's [id, end].
    """
    return ENCODE(("window", task, case, window, group))
