"""Rows of windows that are split, as bytes.

Owns their form. Must not know windows. Invariant: what is read back is what was written, or it is
refused with a ValueError.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from broker.engine.window.splitting import SOURCE_BYTES, Rows, Sources
from broker.network.placement.compression import pressed, unpressed

PRESSED_MIN = 200  # bytes: shorter ones hardly become less

_Groups = list[tuple[Any, list[Any]]]


class _Plain(Struct, frozen=True):
    rows: list[tuple[str, int, list[tuple[int, _Groups]]]] = []
    sources: dict[int, bytes] = {}  # by pane: digests of sources, joined


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Plain, strict=True).decode


def packed(rows: Rows, sources: Sources) -> bytes:
    """Rows, and by pane whose events they are of, as bytes."""
    plain = {
        "rows": [[*place, panes] for place, panes in rows],
        "sources": {pane: b"".join(sorted(some)) for pane, some in sorted(sources.items())},
    }
    data = _encode(plain)
    if len(data) < PRESSED_MIN:
        return data
    return min(data, pressed(data), key=len)


def unpacked(data: bytes) -> tuple[Rows, Sources]:
    """The same again. Raises ValueError."""
    if not data:
        return [], {}
    try:
        found = _decode(unpressed(data))
    except msgspec.MsgspecError as error:
        raise ValueError(f"rows cannot be read: {error}") from None
    rows: Rows = [
        ((key, case), [[pane, [list(one) for one in groups]] for pane, groups in panes])
        for key, case, panes in found.rows
    ]
    return rows, {pane: _split(some) for pane, some in found.sources.items()}


def _split(joined: bytes) -> set[bytes]:
    if len(joined) % SOURCE_BYTES:
        raise ValueError("digests of sources are cut off")
    return {joined[at : at + SOURCE_BYTES] for at in range(0, len(joined), SOURCE_BYTES)}
