"""Carries out on asyncio or uvloop what the hub decides: sockets, time, password checks.

Owns the sockets of one MQTT face, and the bytes' way between them and the hub. Must not decide
anything of the protocol. Invariants: whatever one socket, one login or one call of the application
does, the others go on; in one turn of the loop each socket gives at most one portion, and all of
them together about `TURN_S` of work, so that a flood takes no more than its share; who owes others
work by a quota is not read before they had it; a socket that is closed is read on until its peer
has had a chance to read the last bytes.

libuv reads a socket up to 32 times before it looks at another, with a quarter of a megabyte at a
time. A portion ends that: where it came full, the socket is not read again before the next turn.
"""

import asyncio
import logging
import socket as sockets
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import cast

from broker.mqtt.application import Application, Credentials, InboundMessage
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.effects import CheckPassword, CloseConnection, ReadConnection
from broker.mqtt.hub import Hub
from broker.mqtt.listeners import common_name
from broker.mqtt.sessions.connection import Connection
from broker.mqtt.storage.writer import Writing
from broker.rights.work import Wait, WorkLedger
from broker.store import Store

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
    _connection: Connection

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


TOLD_MAX = 1000  # kinds of lines: clients choose their names

logger = logging.getLogger(__name__)


class MqttDriver:
    """Between a hub and the event loop; all methods belong to the loop's thread."""

    def __init__(
        self,
        hub: Hub,
        application: Application,
        users: Credentials | None,
        store: Store | None = None,
    ) -> None:
        self.hub = hub
        self.writing: Writing | None = None
        if store is not None and hub.keeping is not None:
            self.writing = Writing(hub.keeping, store, self._durable)
        self._application = application
        self._users = users
        self._loop = asyncio.get_running_loop()
        self.time = self._loop.time
        self._sockets: dict[Connection, Socket] = {}
        self.turns = ReadTurns()
        self._checks: dict[Connection, asyncio.Future[bool]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._wake: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._performing = False
        self._scheduled = False
        self._stopping = False
        self._told: set[str] = set()

    def now_ms(self) -> int:
        """The loop's clock."""
        return int(self.time() * 1000)

    def soon(self) -> None:
        """Carry out what was decided outside of a socket's call, once per turn of the loop."""
        if not self._performing and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.perform)

    async def stop(self) -> None:
        """Close all connections, which have a short while to take the last bytes."""
        self._stopping = True
        self.hub.shut_down(self.now_ms())
        for connection in list(self._sockets):  # those that have not said who they are
            self.hub.close(connection, "server_shutting_down", self.now_ms())
        self.perform()
        if self._sockets:
            self._empty.clear()
            await self._empty.wait()  # `Socket.close` cuts whoever takes too long
        if self.writing is not None:
            self.writing.look()
            await self.writing.drain(self.hub.limits.close_timeout_ms / 1000)
        if self._wake is not None:
            self._wake.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    # --- what sockets tell --------------------------------------------------------------------

    def opened(self, socket: Socket) -> Connection:
        """A socket is there, its TLS handshake done."""
        transport = socket.transport
        transport.set_write_buffer_limits(high=self.hub.limits.unsent_bytes_max)
        notice_silence(transport)
        name = transport.get_extra_info("peername") or ("", 0)
        user = common_name(transport.get_extra_info("peercert"))
        connection = self.hub.opened(f"{name[0]}:{name[1]}", user, self.now_ms())
        self._sockets[connection] = socket
        return connection

    def failed(self, connection: Connection) -> None:
        """A fault of ours on what a connection sent: it costs this connection alone."""
        self._tell("internal_error", "the MQTT face failed on a packet", traceback=True)
        self.hub.close(connection, "internal_error", self.now_ms())

    def lost(self, connection: Connection) -> None:
        """The socket is gone."""
        check = self._checks.pop(connection, None)
        if check is not None:
            check.cancel()
        del self._sockets[connection]
        self.hub.lost(connection, self.now_ms())
        self.perform()
        if not self._sockets:
            self._empty.set()

    def busy(self, connection: Connection) -> None:
        """The socket takes no more."""
        self.hub.busy(connection)

    def writable(self, connection: Connection) -> None:
        """The socket takes more."""
        self.hub.writable(connection, self.now_ms())
        self.perform()

    # --- carrying out -------------------------------------------------------------------------

    def perform(self) -> None:
        """Carry out until nothing is left to do."""
        if self._performing:
            return
        self._performing = True
        self._scheduled = False
        hub = self.hub
        try:
            while hub.dirty or hub.messages or hub.effects:
                if hub.messages:
                    self._hand_up()
                for connection in hub.dirty:  # which may grow meanwhile
                    socket = self._sockets.get(connection)
                    data = connection.flush()
                    if socket is not None:
                        socket.transport.write(data)
                        if connection.more and not connection.paused:
                            # In the next turn of the loop, so that others have theirs.
                            self._loop.call_soon(self._go_on, connection)
                hub.dirty.clear()
                if hub.effects:
                    self._carry_out()
        finally:
            self._performing = False
        if hub.given_up:
            self._tell_of_given_up()
        keeping = hub.keeping
        if keeping is not None and (keeping.batch.rows or keeping.awaited >= keeping.number):
            self._write()
        if hub.timers.sooner:
            self._arm()

    def _write(self) -> None:
        if self.writing is not None:
            self.writing.look()

    def _durable(self, number: int) -> None:
        """Let go what waited for the disk."""
        self.hub.durable(number)
        self.perform()

    def _go_on(self, connection: Connection) -> None:
        """There was more for a connection than it may have at once."""
        if connection.more and not connection.paused and connection in self._sockets:
            self.writable(connection)

    def _carry_out(self) -> None:
        for effect in self.hub.take_effects():
            socket = self._sockets.get(effect.connection)
            if socket is None:
                continue
            if isinstance(effect, CloseConnection):
                self._close(socket, effect)
            elif isinstance(effect, ReadConnection):
                socket.read(effect.on)
            else:
                self._check(effect)

    def _hand_up(self) -> None:
        messages, self.hub.messages = self.hub.messages, []
        try:
            self._application.on_publish(messages)
        except Exception:  # noqa: BLE001 - see `Application.on_publish`
            self._tell("application", "the application failed on a message", traceback=True)
            self._refuse(messages)

    def _refuse(self, messages: list[InboundMessage]) -> None:
        for message in messages:
            self.hub.complete(message.token, Reason.UNSPECIFIED_ERROR, self.now_ms())

    def _close(self, socket: Socket, effect: CloseConnection) -> None:
        if effect.fault:
            who = effect.connection.client.client_id or effect.connection.address
            self._tell(effect.reason, f"closed the MQTT client {who!r}: {effect.fault}")
        limits = self.hub.limits
        # Who said DISCONNECT, or nothing yet, has nothing more to read. At the end of the process
        # nobody is waited for who goes on writing.
        linger = effect.connection.version and effect.reason != "client_disconnected"
        linger_bytes = limits.linger_bytes_max if linger and not self._stopping else 0
        socket.close(limits.close_timeout_ms / 1000, linger_bytes)

    def _check(self, effect: CheckPassword) -> None:
        """Check a password, in a thread unless it is known."""
        users, connection = self._users, effect.connection
        assert users is not None
        password = effect.password.decode("utf-8", "surrogateescape")
        if users.remembered(effect.username, password):
            self.hub.checked(connection, good=True, now_ms=self.now_ms())
            return
        if effect.barred:
            self.hub.barred(connection, self.now_ms())
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(
                self.hub.limits.password_checks_max, thread_name_prefix="mqtt-login"
            )
        check = self._loop.run_in_executor(self._threads, users.login, effect.username, password)
        self._checks[connection] = check
        check.add_done_callback(lambda done: self._checked(connection, done))

    def _checked(self, connection: Connection, check: "asyncio.Future[bool]") -> None:
        if self._checks.pop(connection, None) is None or check.cancelled():
            return
        if check.exception() is not None:
            self._tell("login", f"a login could not be checked: {check.exception()!r}")
        good = check.exception() is None and check.result()
        self.hub.checked(connection, good=good, now_ms=self.now_ms())
        if not good:
            self._bar()
        self.perform()

    def _bar(self) -> None:
        """Look no further at the logins that wait, of addresses where too many failed meanwhile."""
        now_ms = self.now_ms()
        for connection, check in list(self._checks.items()):
            if self.hub.logins.barred(connection.address, now_ms):
                del self._checks[connection]
                check.cancel()
                self.hub.barred(connection, now_ms)

    def _tell(self, kind: str, text: str, *, traceback: bool = False) -> None:
        """One line however often; the counters have the number."""
        if kind not in self._told:
            self._told.add(kind)
            logger.warning("%s (further ones are counted only)", text, exc_info=traceback)

    def _tell_of_given_up(self) -> None:
        """One line for each client, of so many."""
        lost, self.hub.given_up = self.hub.given_up, {}
        for client_id, count in lost.items():
            if len(self._told) < TOLD_MAX:
                text = f"the session of the MQTT client {client_id!r} ended, as its queue was full"
                self._tell(f"lost {client_id}", f"{text}: {count} messages that waited are lost")

    def _arm(self) -> None:
        """Wake when the hub wants it."""
        self.hub.timers.sooner = False
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        due_ms = self.hub.next_wake()
        if due_ms is not None:
            self._wake = self._loop.call_at((due_ms + 1) / 1000, self._woken)

    def _woken(self) -> None:
        try:
            self.hub.wake(self.now_ms())
        except Exception:  # noqa: BLE001 - the other timers have to go on
            self._tell("timer", "the MQTT face failed on what was due", traceback=True)
        self.hub.timers.sooner = True
        self.perform()
