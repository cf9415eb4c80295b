"""The sockets of MQTT clients on asyncio or uvloop: what each gives in a turn, and how it ends.

Owns the bytes' way between the event loop and the driver. Must not know packets or the hub's
decisions. Invariants: in one turn of the loop each socket gives at most one portion, and all of
them together about `TURN_S` of work, so that a flood takes no more than its share; who owes others
work by a quota is not read before they had it; a socket that is closed is read on until its peer
has had a chance to read the last bytes.

libuv reads a socket up to 32 times before it looks at another, with a quarter of a megabyte at a
time. A portion ends that: where it came full, the socket is not read again before the next turn.
"""

import asyncio
import socket as sockets
from time import perf_counter
from typing import TYPE_CHECKING, cast

from broker.rights.work import Wait, WorkLedger

if TYPE_CHECKING:
    from broker.mqtt.driver import MqttDriver
    from broker.mqtt.sessions.connection import Connection

# What a calm client waits for, beside its own message, is a turn at most. Half a millisecond costs
# a flood a tenth of its rate (two calls of the kernel for each portion), a tenth of it a half.
TURN_S = 0.0005
PORTION_BYTES = 16_384  # at first, and never less than the least
PORTION_BYTES_LEAST = 1_024
PORTION_BYTES_MOST = 262_144

SILENCE_S = 60  # so long a peer may say nothing before the kernel asks, see `notice_silence`
PROBE_EVERY_S = 15
PROBES_MAX = 4


class ReadTurns:
    """The sizes of the portions of all sockets of one driver, and the buffer that they share."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(PORTION_BYTES_MOST))
        # Those that had a full portion are read again in the next turn; those that owe work, later.
        self.busy: dict[Socket, None] = {}
        self.work = WorkLedger()

    def next_portion(self, portion_bytes: int, took_s: float) -> int:
        """Return the size of a socket's next portion, given how long the last full one took."""
        # Those that are busy divide the turn; which of them it was makes no difference.
        share_s = TURN_S / (len(self.busy) + 1)
        if took_s > share_s:
            return max(PORTION_BYTES_LEAST, portion_bytes // 2)
        if took_s < share_s / 3:
            return min(PORTION_BYTES_MOST, portion_bytes * 2)
        return portion_bytes


class Socket(asyncio.BufferedProtocol):
    """One socket; passes on what happens to it."""

    __slots__ = (
        "_allowed",
        "_connection",
        "_driver",
        "_ending",
        "_linger_bytes",
        "_portion_bytes",
        "_turns",
        "_wait",
        "transport",
    )

    transport: asyncio.Transport
    _connection: "Connection"

    def __init__(self, driver: "MqttDriver") -> None:
        self._driver = driver
        self._turns = driver.turns
        self._portion_bytes = PORTION_BYTES
        self._wait: Wait | None = None  # for the work that its user owes others
        self._allowed = True  # to read; False: the hub wants no more for now
        self._ending: asyncio.TimerHandle | None = None
        self._linger_bytes = -1  # that may still come after the end; -1: it has not ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self.transport = cast("asyncio.Transport", transport)
        self._connection = self._driver.opened(self)
        self._driver.perform()

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Offer as much room as the socket's portion has."""
        return self._turns.buffer[: self._portion_bytes]

    def buffer_updated(self, size_bytes: int) -> None:
        """Bytes came: pass them on, and have others read first where there may be more."""
        if self._linger_bytes >= 0:
            self._discard(size_bytes)
            return
        driver = self._driver
        began_s = perf_counter()
        data = bytes(self._turns.buffer[:size_bytes])
        try:
            driver.hub.received(self._connection, data, driver.now_ms())
        except Exception:  # noqa: BLE001 - see `MqttDriver.failed`
            driver.failed(self._connection)
        driver.perform()
        took_s = perf_counter() - began_s
        holder = self._connection.holder
        if holder is None or holder.user is None:
            self._turns.work.total_s += took_s
        else:
            percent = driver.hub.quotas.of_user(holder.user).work_percent
            self._wait = self._turns.work.charge(holder.user, percent, took_s)
        full = size_bytes == self._portion_bytes
        if (full or self._wait is not None) and not self.transport.is_closing():
            self._wait_for_turn()
        if full:
            self._portion_bytes = self._turns.next_portion(size_bytes, took_s)

    def _wait_for_turn(self) -> None:
        """Read no further before the other sockets were read."""
        busy = self._turns.busy
        if self._allowed:
            self.transport.pause_reading()
        if self not in busy:
            busy[self] = None
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        if self._wait is not None and self in self._turns.busy and self._wait.goes_on():
            asyncio.get_running_loop().call_soon(self._take_turn)
            return
        self._turns.busy.pop(self, None)
        if self._allowed and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Its buffer is full."""
        self._driver.busy(self._connection)

    def resume_writing(self) -> None:
        """Its buffer has room again."""
        self._driver.writable(self._connection)

    def connection_lost(self, _exc: Exception | None) -> None:
        """The socket is closed, by either side."""
        if self._ending is not None:
            self._ending.cancel()
        self._turns.busy.pop(self, None)
        self._driver.lost(self._connection)

    def read(self, on: bool) -> None:
        """Read on, or pause."""
        self._allowed = on
        if not self.transport.is_closing() and self._linger_bytes < 0:
            if not on:
                self.transport.pause_reading()
            elif self not in self._turns.busy:
                self.transport.resume_reading()

    def close(self, patience_s: float, linger_bytes: int) -> None:
        """Close when all is sent; cut after a while.

        With `linger_bytes` the peer, which may be writing, is heard on until it closes its end, or
        so much has come: a socket that is closed with bytes unread is reset, and then its peer
        never reads why (RFC 9112 has the same of HTTP, section 9.6).
        """
        transport = self.transport
        if transport.is_closing() or self._ending is not None:
            return
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(patience_s, transport.abort)
        # TLS has no half of a connection to close; its shutdown reads what still comes.
        if linger_bytes and transport.can_write_eof():
            self._linger_bytes = linger_bytes
            self._portion_bytes = PORTION_BYTES_MOST
            try:
                transport.write_eof()
                transport.resume_reading()
            except OSError:  # the peer has reset it, and the loop has not heard yet
                transport.abort()
        else:
            transport.close()

    def _discard(self, size_bytes: int) -> None:
        """Throw away what a peer writes that has not seen the end yet."""
        self._linger_bytes -= size_bytes
        if self._linger_bytes <= 0:
            self.transport.abort()
        elif size_bytes == self._portion_bytes:
            self._wait_for_turn()


def notice_silence(transport: asyncio.Transport) -> None:
    """Have the kernel ask whether the peer is still there.

    Else a client without a keep-alive that vanished without a word would keep its place for ever.
    """
    socket = transport.get_extra_info("socket")
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", SILENCE_S),
        ("TCP_KEEPINTVL", PROBE_EVERY_S),
        ("TCP_KEEPCNT", PROBES_MAX),
    ):
        if hasattr(sockets, option):  # not every system has them
            socket.setsockopt(sockets.IPPROTO_TCP, getattr(sockets, option), value)
