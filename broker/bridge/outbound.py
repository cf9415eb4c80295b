"""What a joined server is still to be given.

Owns the two queues, their bounds and what is under way. Must not know sockets. Invariant: a message
leaves when the server has acknowledged it, or is dropped and counted; they are sent in the order in
which they were put, and again in it after a lost connection.

Results that lie in an outbox bear its offset. They are never dropped here: whoever puts them asks
for `room` and fetches the others later. Of all else the oldest goes where a bound is passed.
"""

from collections import deque
from itertools import chain

from broker.bridge.messages import OutgoingMessage

_Queue = deque[tuple[int, OutgoingMessage]]


class OutboundMessages:
    """Two bounded queues that are sent as one."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self.dropped = 0
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._stored: _Queue = deque()
        self._others: _Queue = deque()
        self._bytes = {True: 0, False: 0}  # by whether it is stored, with what is under way
        self._under_way: dict[int, OutgoingMessage] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._stored) + len(self._others) + len(self._under_way)

    @property
    def queued_bytes(self) -> int:
        """Return how many bytes all of it takes."""
        return sum(self._bytes.values())

    @property
    def under_way(self) -> int:
        """Count the messages that were sent and are not acknowledged yet."""
        return len(self._under_way)

    @property
    def room(self) -> int:
        """For how many messages of the outbox there is room; always for one, if none is here."""
        if self._bytes[True] >= self._bytes_max:
            return 0
        return max(self._messages_max - len(self._stored), 0 if self._stored else 1)

    def oldest_offset(self) -> int | None:
        """The least offset of what is still to be acknowledged."""
        offsets = (message.offset for message in self._under_way.values() if message.stored)
        return min(
            chain(offsets, (message.offset for _, message in self._first_stored())), default=None
        )

    def _first_stored(self) -> list[tuple[int, OutgoingMessage]]:
        return [self._stored[0]] if self._stored else []

    def put(self, message: OutgoingMessage) -> int:
        """Queue a message; how many older ones had to go for it."""
        self._number += 1
        self._bytes[message.stored] += message.size_bytes
        if message.stored:
            self._stored.append((self._number, message))
            return 0
        queue = self._others
        queue.append((self._number, message))
        dropped = 0
        while len(queue) > 1 and (
            len(queue) > self._messages_max or self._bytes[False] > self._bytes_max
        ):
            self._bytes[False] -= queue.popleft()[1].size_bytes
            dropped += 1
        self.dropped += dropped
        return dropped

    def take(self) -> tuple[int, OutgoingMessage] | None:
        """The next to be sent, with a number for `confirmed`; None: none waits."""
        queues = [queue for queue in (self._stored, self._others) if queue]
        if not queues:
            return None
        number, message = min(queues, key=lambda queue: queue[0][0]).popleft()
        self._under_way[number] = message
        return number, message

    def confirmed(self, number: int) -> None:
        """The server has it, or will never take it."""
        message = self._under_way.pop(number, None)
        if message is not None:
            self._bytes[message.stored] -= message.size_bytes

    def rewind(self) -> None:
        """The connection is lost: what was under way is to be sent again, before all else."""
        for number in sorted(self._under_way, reverse=True):
            message = self._under_way[number]
            (self._stored if message.stored else self._others).appendleft((number, message))
        self._under_way.clear()
