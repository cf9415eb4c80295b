"""How much one session's queues hold, and whether they may hold more.

Owns the session's part of the account of queued bytes. Must not know messages or connections.
Invariant: the sum over all sessions is what the counters tell as queued now.
"""

from broker.mqtt.counters import Counters
from broker.mqtt.limits import Limits


class Room:
    """Of one session."""

    __slots__ = ("_counters", "_limits", "given_up", "held_bytes")

    def __init__(self, limits: Limits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self.held_bytes = 0
        self.given_up = False  # publishers were slowed for it long enough

    def charge(self, size_bytes: int) -> None:
        """So much more is held; or less."""
        self.held_bytes += size_bytes
        self._counters.queued_bytes += size_bytes

    def takes(self, size_bytes: int, waiting: int) -> bool:
        """Whether one more message at QoS 0 may wait behind so many."""
        limits = self._limits
        return (
            waiting < limits.queue_messages_max
            and self.held_bytes + size_bytes <= limits.queue_bytes_max
            and self._counters.queued_bytes + size_bytes <= limits.queue_bytes_total_max
        )

    def admit(self, size_bytes: int, waiting: int) -> bool:
        """Charge one at QoS 1 or 2 unless it is too much; whether it was taken.

        By itself it may be as large as it likes. `waiting` is -1 for one that need not wait.
        """
        limits, counters = self._limits, self._counters
        held_bytes = self.held_bytes + size_bytes
        total_bytes = counters.queued_bytes + size_bytes
        if (
            total_bytes > limits.queue_bytes_total_max
            or waiting >= limits.queue_messages_max
            or (self.held_bytes and held_bytes > limits.queue_bytes_max)
        ):
            return False
        self.held_bytes = held_bytes
        counters.queued_bytes = total_bytes
        return True

    def takes_retained(self, size_bytes: int) -> bool:
        """Whether a retained message may be under way too, or has to wait until others are not.

        It may where nothing else is, else nothing would make it leave.
        """
        return not self.held_bytes or self.takes(size_bytes, -1)

    def crowded(self, waiting: int) -> bool:
        """Whether who publishes should be slowed: from half of what it holds down to a quarter.

        Not again, once that was in vain, until it has been at a quarter.
        """
        limits = self._limits
        part = max(
            4 * waiting / max(1, limits.queue_messages_max),
            4 * self.held_bytes / max(1, limits.queue_bytes_max),
        )
        if part <= 1:
            self.given_up = False
        return part > 2 and not self.given_up

    def eased(self, waiting: int) -> bool:
        """Whether it is down to a quarter."""
        limits = self._limits
        return (
            4 * waiting <= limits.queue_messages_max
            and 4 * self.held_bytes <= limits.queue_bytes_max
        )
