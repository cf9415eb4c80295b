"""What the parts of a networked broker want done outside: a frame to be sent, a line to be logged.

Owns these two effects. Must not know who carries them out, nor what a broker does besides
(`broker.core.effects` has the whole union). Invariant: an effect is a value; it says all that its
doing needs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["debug", "info", "warning", "error"]


class SendFrame(Struct, frozen=True):
    """Bring a message to a neighbour: control, or of the class events with so many of them.

    `parts` are the kinds of what it holds, with their bytes (`broker.network.overlay.kinds`).
    """

    link: str
    data: bytes
    control: bool = True
    events: int = 0
    after: int = 0
    parts: tuple[tuple[str, int], ...] = ()


class Note(Struct, frozen=True):
    """Write one line into the log: what happened, and particulars by name."""

    level: Level
    event: str
    fields: dict[str, str | int]
