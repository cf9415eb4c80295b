"""What a joined server is still to be given.

Owns the queue, its bounds and what is under way. Must not know sockets. Invariant: a message leaves
it when the server has acknowledged it, or is dropped and counted; they are sent in their order, and
sent again in it after a lost connection.
"""

from collections import deque

from broker.joining.messages import Outgoing


class Outbound:
    """A bounded queue; past a bound the oldest that is not under way is dropped."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.queued_bytes = 0
        self.dropped = 0
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._queue: deque[Outgoing] = deque()
        self._under_way: dict[int, Outgoing] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._queue) + len(self._under_way)

    @property
    def under_way(self) -> int:
        """How many were sent and are not acknowledged yet."""
        return len(self._under_way)

    def put(self, message: Outgoing) -> int:
        """Queue a message; how many older ones had to go for it."""
        self._queue.append(message)
        self.queued_bytes += message.size_bytes
        dropped = 0
        while self._over() and len(self._queue) > 1:
            self.queued_bytes -= self._queue.popleft().size_bytes
            dropped += 1
        self.dropped += dropped
        return dropped

    def _over(self) -> bool:
        return len(self) > self._messages_max or self.queued_bytes > self._bytes_max

    def take(self) -> tuple[int, Outgoing] | None:
        """The next to be sent, with a number for `confirmed`; None: none waits."""
        if not self._queue:
            return None
        self._number += 1
        self._under_way[self._number] = message = self._queue.popleft()
        return self._number, message

    def confirmed(self, number: int) -> None:
        """The server has it, or will never take it."""
        message = self._under_way.pop(number, None)
        if message is not None:
            self.queued_bytes -= message.size_bytes

    def rewind(self) -> None:
        """The connection is lost: what was under way is to be sent again, before all else."""
        self._queue.extendleft(reversed(self._under_way.values()))
        self._under_way.clear()
