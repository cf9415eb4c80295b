"""What came from a joined server and is not acknowledged there yet.

Owns the order of acknowledgements and the bounds. Must not know sockets or what messages mean.
Invariant: acknowledgements go out in the order in which messages came (MQTT 5.0, 4.6); those of a
connection that has ended never do, as the server sends their messages again.
"""

from collections import deque

from broker.bridge.messages import Arrived, JoinToken


class InboundMessages:
    """The messages of the connection that stands, or of none."""

    def __init__(self, join: object, bytes_max: int) -> None:
        self.connection = 0
        self.pending_bytes = 0
        self.failed = 0
        self._join = join
        self._bytes_max = bytes_max
        self._waiting: deque[JoinToken] = deque()

    def begin(self) -> None:
        """Another connection; what the one before it had not acknowledged will come again."""
        self.connection += 1
        self.pending_bytes = self.failed = 0
        self._waiting.clear()

    @property
    def full(self) -> bool:
        """Tell whether nothing more is to be read for now."""
        return self.pending_bytes > self._bytes_max

    @property
    def eased(self) -> bool:
        """Tell whether so much is done with that reading may go on."""
        return 2 * self.pending_bytes <= self._bytes_max

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message: Arrived) -> JoinToken:
        """The token of a QoS 1 message."""
        token = JoinToken(self._join, self.connection, message.number, message.size_bytes)
        self._waiting.append(token)
        self.pending_bytes += token.size_bytes
        return token

    def taken(self, token: JoinToken) -> list[int]:
        """The message is taken: which packets can be acknowledged now, in order."""
        if not self._done(token):
            return []
        numbers: list[int] = []
        while self._waiting and self._waiting[0].done:
            numbers.append(self._waiting.popleft().number)
        return numbers

    def fail(self, token: JoinToken) -> list[int]:
        """The broker failed on the message: it is not acknowledged, and stands in nobody's way."""
        if token.connection != self.connection or token.done:
            return []
        self.failed += 1
        self._waiting.remove(token)
        token.done = True
        self.pending_bytes -= token.size_bytes
        numbers: list[int] = []
        while self._waiting and self._waiting[0].done:
            numbers.append(self._waiting.popleft().number)
        return numbers

    def _done(self, token: JoinToken) -> bool:
        if token.connection != self.connection or token.done:
            return False
        token.done = True
        self.pending_bytes -= token.size_bytes
        return True
