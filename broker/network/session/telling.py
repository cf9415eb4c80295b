"""What a session wants done, gathered until it is handed out.

Owns the bytes for the connection in use and the effects, in their order. Must not know why anything
is said. Invariant: bytes are written once for all that was said together, before a close.
"""

from __future__ import annotations

from broker.network.session.frames import Bye, Data, Frame, encode
from broker.network.session.told import Close, Delivered, Effect, Write


class Telling:
    """Gather what a session wants done, until it is handed out.

    `connection` is the one in use, None if there is none.
    """

    __slots__ = ("_effects", "_peer", "connection", "pieces", "said_ms")

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self.pieces: list[bytes] = []  # about to be written
        self._effects: list[Effect] = []
        self.connection: int | None = None
        self.said_ms = 0  # when anything was said last

    def say(self, frame: Frame) -> None:
        """Say a frame on the connection in use."""
        self.pieces.append(encode(frame))

    def say_all(self, frames: list[bytes]) -> None:
        """The same of frames that are encoded already."""
        self.pieces += frames

    def close(self, connection: int, reason: str, *, fault: bool = False) -> None:
        """Close a connection and tell the other why."""
        self._effects.append(Write(connection, encode(Bye(reason))))
        self._effects.append(Close(connection, reason, fault, self._peer))

    def add(self, effect: Effect) -> None:
        """Any other effect."""
        self._effects.append(effect)

    def deliver(self, frame: Data) -> None:
        """Hand up what a frame holds, with that of the one before if it is of the same class."""
        last = self._effects[-1] if self._effects else None
        messages, events = frame.messages, frame.events
        if isinstance(last, Delivered) and last.control == frame.control:
            last.messages.extend(messages)
            messages, events = last.messages, last.events + events
            self._effects.pop()
        self._effects.append(Delivered(self._peer, messages, frame.control, events))

    def write(self) -> None:
        """Send out what was said, before all effects that come after."""
        if self.pieces and self.connection is not None:
            self._effects.append(Write(self.connection, b"".join(self.pieces)))
        self.pieces.clear()

    def taken(self, now_ms: int | None = None) -> list[Effect]:
        """All that is to be done."""
        if self.pieces:
            if now_ms is not None:
                self.said_ms = now_ms
            self.write()
        effects, self._effects = self._effects, []
        return effects
