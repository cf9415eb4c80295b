"""The receiving side of one session: what came, what may be delivered, and what may come.

Owns the sequence of what is received, credit given, and what is held. Must not know connections or
time. Invariant: each frame counts once and in order; what is held stays within the credit given and
one frame.
"""

from __future__ import annotations

from collections import deque

from broker.network.session.frames import Ack, Data, LinkError
from broker.network.session.limits import LinkLimits

ACKED_PART = 8  # of the credit: after so small a part the other is told
KEPT_BYTES = 262_144  # that the other keeps, after which it is told
FRAME_BYTES = 64  # of a frame that is kept, beside its messages


class Inbound:
    """Keep the receiving side of one session.

    A `restart` begins a stream: all that was there is gone.
    """

    __slots__ = (
        "_acked",
        "_bytes_granted",
        "_bytes_seen",
        "_bytes_used",
        "_events_granted",
        "_events_seen",
        "_events_used",
        "_kept_bytes",
        "_limits",
        "held",
        "received",
        "repeated",
        "waiting",
    )

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self.held = False
        self.repeated = 0  # frames that came again after a reconnection
        self._kept_bytes = 0  # at the other, of what came since it was told last
        self.restart()

    def restart(self) -> None:
        """Nothing came yet. Whether all is held stays."""
        self.received = 0
        self.waiting: deque[Data] = deque()  # held
        self._events_seen = self._bytes_seen = 0
        self._events_used = self._bytes_used = 0  # of these, delivered
        self._events_granted = self._bytes_granted = 0
        self._acked = -1
        self._kept_bytes = 0

    def take(self, frame: Data) -> Data | None:
        """A frame came: what is to be delivered now. Raises LinkError."""
        # A connection that goes on sends all again that was not acknowledged; what had come in
        # spite of that is known by its number, and nothing else has to be remembered of it.
        if frame.seq <= self.received:
            self.repeated += 1
            return None
        if frame.seq != self.received + 1:
            raise LinkError(f"frame {frame.seq} came after frame {self.received}")
        if len(frame.messages) > self._limits.messages_max or frame.events < 0:
            raise LinkError("a frame of it cannot be understood")
        # Control has no credit: it is little, and what it says (operators, link state) may be
        # what lets events flow again. Its bound is `control_bytes_max` at the sender.
        if not frame.control:
            if self._events_seen >= self._events_granted or self._bytes_seen >= self._bytes_granted:
                raise LinkError("it sends more events than it has credit for")
            self._events_seen += frame.events
            self._bytes_seen += sum(map(len, frame.messages))
        self.received = frame.seq
        self._kept_bytes += FRAME_BYTES + sum(map(len, frame.messages))
        if frame.control:
            return frame
        # What is held uses up credit, so that the other stops before memory does; control passes,
        # as it must not wait for a journal that is behind.
        if self.held:
            self.waiting.append(frame)
            return None
        self._use(frame)
        return frame

    def release(self) -> Data | None:
        """The next frame that was held and may be delivered."""
        if self.held or not self.waiting:
            return None
        frame = self.waiting.popleft()
        self._use(frame)
        return frame

    def _use(self, frame: Data) -> None:
        self._events_used += frame.events
        self._bytes_used += sum(map(len, frame.messages))

    @property
    def is_ack_due(self) -> bool:
        """Return if the other is to be told now: it keeps much, or may run out of credit.

        It loses nothing by keeping what it sent for longer, and a frame of its own for each frame
        that comes would cost as much as control does. So an acknowledgement else goes with what is
        said anyway, a sign of life at the latest.
        """
        limits, part = self._limits, ACKED_PART
        events = self._events_used + limits.credit_events_max - self._events_granted
        size_bytes = self._bytes_used + limits.credit_bytes_max - self._bytes_granted
        return (
            self._acked < 0
            or part * events >= limits.credit_events_max
            or part * size_bytes >= limits.credit_bytes_max
            or self._kept_bytes >= KEPT_BYTES
            or part * self._kept_bytes >= min(limits.unacked_bytes_max, limits.control_bytes_max)
        )

    def ack(self) -> Ack | None:
        """Return what to tell the other, if anything is new since it was told last."""
        limits = self._limits
        events = self._events_used + limits.credit_events_max
        size_bytes = self._bytes_used + limits.credit_bytes_max
        told = (self._acked, self._events_granted, self._bytes_granted)
        if told == (self.received, events, size_bytes):
            return None
        self._acked, self._kept_bytes = self.received, 0
        self._events_granted, self._bytes_granted = events, size_bytes
        return Ack(self.received, events, size_bytes)

    def tell_again(self) -> None:
        """The connection is another one: whatever was told may not have come."""
        self._acked = -1
