"""A cell's state as it travels to its home and is kept there: pressed.

Owns that form. Must not know what is in a state. Invariant: what is unpressed is what was pressed,
or it is refused; nobody can be made to hold more than `STATE_BYTES_MAX` by it. A state that was
kept before states were pressed is taken as it is.
"""

from __future__ import annotations

import zlib

from broker.network.placement.parcels import MESSAGE_BYTES_MAX

STATE_BYTES_MAX = MESSAGE_BYTES_MAX  # as long as what is not pressed may be
HARD_BYTES = 256 * 1024  # a longer one is pressed less hard: the broker's loop waits for it
_HARD, _LIGHT = 6, 1
_PLAIN = range(0x80, 0x90)  # a map of MessagePack begins so, and what zlib makes never does


def pressed(state: bytes) -> bytes:
    """A snapshot's bytes, smaller; one that is too long to travel stays as it is."""
    if len(state) > STATE_BYTES_MAX:
        return state
    return zlib.compress(state, _HARD if len(state) <= HARD_BYTES else _LIGHT)


def unpressed(data: bytes) -> bytes:
    """The bytes that were pressed. Raises ValueError."""
    if data and data[0] in _PLAIN:
        return data
    # An object, as `zlib.decompress` has no bound on what a few bytes may become.
    reader = zlib.decompressobj()
    try:
        state = reader.decompress(data, STATE_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"this is no state of a cell: {error}") from None
    if not reader.eof or reader.unused_data:
        raise ValueError("this is a part of a cell's state, or more than may be")
    return state
