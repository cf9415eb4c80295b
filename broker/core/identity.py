"""Ids of what is detected: digests that any broker computes alike.

Owns the digest. Must not know hosts, epochs or clocks: an id depends on the task's canonical text
(by its key), the case, and what was bound, so that a repeat is recognised everywhere.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

DIGEST_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode


def digest(*parts: Any) -> str:
    """Hex digest of plain values (text, numbers, lists, None)."""
    return blake2b(_encode(parts), digest_size=DIGEST_BYTES).hexdigest()


def bound_id(task: str, case: int, bound: list[tuple[str, list[tuple[str, int]]]]) -> str:
    """The id of an occurrence: task key, case and alias → [(event id, end), …]."""
    return digest("occurrence", task, case, bound)


def window_id(task: str, case: int, window: int | list[str | int], group: tuple[Any, ...]) -> str:
    """The id of a window's event; `window` is its number, or the closing event's [id, end]."""
    return digest("window", task, case, window, list(group))
