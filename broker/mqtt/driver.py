"""Carries out on asyncio or uvloop what the hub decides: sockets, time, password checks.

Owns the sockets of one MQTT face. Must not decide anything of the protocol. Invariant: whatever one
socket, one login or one call of the application does, the others go on.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from broker.mqtt.application import Application, Credentials, InboundMessage
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.effects import CheckPassword, CloseConnection, ReadConnection
from broker.mqtt.hub import Hub
from broker.mqtt.listeners import common_name
from broker.mqtt.sessions.connection import Connection
from broker.mqtt.sockets import ReadTurns, Socket, notice_silence
from broker.mqtt.storage.writer import Writing
from broker.store import Store

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
