"""The MQTT face without sockets: connections, sessions, wills and time, as one state machine.

Owns all connections and sessions of one face. Must not know sockets, a clock or randomness: bytes,
`now_ms` (integers that never go back) and identifiers come in, effects go out. Invariant: what one
client does wrong closes that client's connection alone.
"""

from collections.abc import Callable

from broker.mqtt.application import (
    Authorize,
    InboundMessage,
    RetainedMessage,
    Token,
)
from broker.mqtt.codec.decoder import TopicNames
from broker.mqtt.codec.encoder import encode
from broker.mqtt.codec.packets import V5, V311, Connect, Disconnect, Puback, Publish
from broker.mqtt.codec.reasons import CONNACK_ONLY, TRANSIENT, ProtocolError, Reason
from broker.mqtt.counters import Counters
from broker.mqtt.effects import CloseConnection, Effect
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.router import Prefix, TopicRouter, publish, receive
from broker.mqtt.sessions import handshake
from broker.mqtt.sessions.connection import Connection, PublisherHold, Slowing
from broker.mqtt.sessions.departures import end_overflowed, shut
from broker.mqtt.sessions.logins import Logins
from broker.mqtt.sessions.session import Session
from broker.mqtt.sessions.timers import Timers
from broker.mqtt.storage.batches import HubStorage
from broker.rights.quotas import QuotaLedger

CONNACK = b"\x20"  # how it begins, and no other packet


class Hub:
    """All MQTT clients of one broker.

    With a keeping, whoever drives the hub also takes its batches and calls `durable`.

    After every call the caller takes `messages` for the application, writes what the connections in
    `dirty` have to send, and then carries out `take_effects()`, until nothing is left.
    `users_only`: nobody comes in without a login or a client certificate.
    """

    def __init__(
        self,
        *,
        limits: MqttLimits | None = None,
        prefix: Prefix | None = None,
        users_only: bool = False,
        authorize: Authorize | None = None,
        new_client_id: Callable[[], str],
    ) -> None:
        self.limits = limits or MqttLimits()
        self.users_only = users_only
        self.authorize = authorize
        self.new_client_id = new_client_id
        self.counters = Counters()
        self.timers = Timers()
        self.topics = TopicNames(self.limits)
        self.router = TopicRouter(
            self.limits,
            self.counters,
            self.timers,
            prefix or Prefix(),
            authorized=authorize is not None,
        )
        self.logins = Logins(self.limits)
        self.quotas = QuotaLedger()
        self.router.expired = self.quotas.unretain
        self.sessions: dict[str, Session] = {}
        self.messages: list[InboundMessage] = []  # to be handed to the application
        self.effects: list[Effect] = []
        self.given_up: dict[str, int] = {}  # messages of sessions that ended full; for the log
        self.dirty: list[Connection] = []  # with bytes to be sent
        self.holding = PublisherHold(self.limits, self.counters, self.effects)
        self.keeping: HubStorage | None = None  # what outlasts the process, if anything does
        self.slowing = Slowing(self)
        self._read: Connection | None = None  # the one whose packets are being looked at
        self._promises_before = self._held_before = 0

    def keep(self, keeping: HubStorage) -> None:
        """Let what is promised outlast the process; before the first client comes."""
        self.keeping = self.router.keeping = keeping

    # --- what happens to connections ----------------------------------------------------------

    def opened(self, address: str, certificate_user: str | None, now_ms: int) -> Connection:
        """A new connection; it is closed at once where there are too many."""
        connection = Connection(self, address, certificate_user)
        self.counters.connections += 1
        self.counters.connections_total += 1
        connection.heard_ms = now_ms
        allowed = self.limits.connections_max
        if self.counters.connections > allowed:
            fault = f"there are {allowed} connections already (mqtt_limits.connections_max)"
            self.close(connection, "connections_max", now_ms, fault)
        else:
            connection.timer = self.timers.at(
                now_ms + self.limits.connect_timeout_ms,
                lambda now: self.close(connection, "connect_timeout", now),
            )
        return connection

    def received(self, connection: Connection, data: bytes, now_ms: int) -> None:
        """Bytes from a connection."""
        if connection.closed:
            return
        counters = self.counters
        counters.bytes_in += len(data)
        connection.heard_ms = now_ms
        self._begin(connection)
        try:
            if connection.session is not None:
                for packet in connection.decoder.decode(data):
                    if type(packet) is Publish:
                        receive(connection, packet, now_ms)
                    elif type(packet) is Puback:
                        connection.puback(packet, now_ms)
                    elif not connection.handle(packet, now_ms):
                        break
            else:
                self._greet(connection, data, now_ms)
            if connection.decoder.more:
                self._follow(connection, now_ms)
            if connection.decoder.held or connection.partial_bytes:
                self._count_partial(connection)
        except ProtocolError as error:
            self._fail(connection, error, now_ms)
        if self.keeping is not None and self.keeping.promises != self._promises_before:
            self._end(connection)
        self._read = None
        if connection.handing_up or connection.waits:
            self.holding.look(connection)
        if self.router.overflowed:
            end_overflowed(self, now_ms)

    def _begin(self, connection: Connection) -> None:
        """From here on it is looked at whether its packets led to something that promises."""
        if self.keeping is not None:
            self._read, self._promises_before = connection, self.keeping.promises
            self._held_before = len(connection.held_back)

    def _end(self, connection: Connection) -> None:
        """Hold answers back until what was promised is on disk."""
        keeping = self.keeping
        if keeping is not None and not connection.closed:
            connection.hold_back(keeping.number, self._held_before)
            self.counters.unkept_bytes = keeping.batch.size_bytes
            if keeping.batch.size_bytes > self.limits.unkept_bytes_max:
                self.holding.behind(True)

    def promised(self, connection: Connection) -> bool:
        """Tell whether what came from it just now led to something that promises."""
        keeping = self.keeping
        return (
            keeping is not None
            and self._read is connection
            and keeping.promises != self._promises_before
        )

    def durable(self, number: int) -> None:
        """All batches of the keeping up to this one are on disk."""
        if self.keeping is None:
            return
        for connection in self.keeping.done(number):
            self.holding.eased(connection)
        self.counters.unkept_bytes = self.keeping.batch.size_bytes
        self.holding.behind(self.keeping.batch.size_bytes > self.limits.unkept_bytes_max)

    def _count_partial(self, connection: Connection) -> None:
        """Keep account of the bytes that wait for the rest of their packet."""
        held_bytes = 0 if connection.closed else len(connection.decoder.held)
        self.counters.partial_bytes += held_bytes - connection.partial_bytes
        connection.partial_bytes = held_bytes
        total_bytes = self.counters.partial_bytes
        if total_bytes > max(self.limits.partial_bytes_max, held_bytes):
            raise ProtocolError(Reason.QUOTA_EXCEEDED, "too many packets are not whole yet")

    def _greet(self, connection: Connection, data: bytes, now_ms: int) -> None:
        """Bytes of a connection that is not open: a CONNECT, or what comes while it is checked."""
        decoder = connection.decoder
        if connection.connect is not None:
            decoder.hold(data)
            return
        for packet in decoder.decode(data):
            if isinstance(packet, Connect):
                handshake.begin(self, connection, packet, now_ms)

    def _follow(self, connection: Connection, now_ms: int) -> None:
        """Handle what follows a CONNECT, or the fault that follows good packets."""
        decoder = connection.decoder
        while decoder.more and connection.connect is None and not connection.closed:
            for packet in decoder.decode():
                if not connection.handle(packet, now_ms):
                    return

    def checked(self, connection: Connection, *, good: bool, now_ms: int) -> None:
        """A login was checked."""
        connect = connection.connect
        if connection.closed or connect is None:
            return
        connection.connect = None
        self._begin(connection)
        try:
            if not good:
                self.logins.failed(connection.address, now_ms)
                raise ProtocolError(
                    Reason.BAD_USER_NAME_OR_PASSWORD, "a user name or password is wrong"
                )
            handshake.open_connection(self, connection, connect, connect.username, now_ms)
        except ProtocolError as error:
            self._fail(connection, error, now_ms)
            return
        if self.promised(connection):
            self._end(connection)
        self.received(connection, b"", now_ms)

    def barred(self, connection: Connection, now_ms: int) -> None:
        """A login was not looked at, as too many of its address failed."""
        if not connection.closed:
            text = "too many logins from its address failed"
            self._fail(connection, ProtocolError(Reason.CONNECTION_RATE_EXCEEDED, text), now_ms)

    def busy(self, connection: Connection) -> None:
        """The socket takes no more bytes."""
        connection.paused = True
        connection.room = 0

    def writable(self, connection: Connection, now_ms: int) -> None:
        """The socket takes bytes again."""
        connection.paused = connection.more = False
        if connection.closed:
            return
        connection.room = self.limits.unsent_bytes_max - sum(map(len, connection.out))
        if connection.session is not None:
            connection.session.outgoing.pump(now_ms)

    def lost(self, connection: Connection, now_ms: int) -> None:
        """The network connection is gone."""
        self.counters.connections -= 1
        if not connection.closed:
            shut(self, connection, "connection_lost", now_ms)
            end_overflowed(self, now_ms)

    def wake(self, now_ms: int) -> None:
        """Do what time has made due."""
        self.timers.fire(now_ms)
        end_overflowed(self, now_ms)

    def next_wake(self) -> int | None:
        """The moment at which `wake` is due, if nothing happens before."""
        return self.timers.next_wake()

    def take_effects(self) -> list[Effect]:
        """Return what is to be done now beside writing what connections have to send, in order."""
        effects = self.effects.copy()
        self.effects.clear()
        return effects

    # --- the application ----------------------------------------------------------------------

    def publish(self, packet: Publish, now_ms: int) -> int:
        """Publish for the application; how many clients it goes to.

        ProtocolError: it is no topic name, or there is no room to retain it.
        """
        count = publish(self, packet, now_ms)
        end_overflowed(self, now_ms)
        return count

    def complete(self, token: Token | None, reason_code: int, now_ms: int) -> None:
        """The application is done with a message: answer its publisher.

        A second completion and one for a connection that is gone are nothing. A 3.1.1 client cannot
        be told of a refusal: it gets its PUBACK, or, where the reason is one that passes (busy,
        quota, error), is closed, so that it sends the message again.
        """
        if token is None or token.outcome >= 0:
            return
        token.outcome = reason_code
        connection: Connection = token.connection
        refused = reason_code >= Reason.UNSPECIFIED_ERROR
        if refused:
            self.counters.refuse("by_application")
        if token.qos == 2 and connection.session is not None:
            # Its client may be gone, and ask again when it is back.
            connection.session.arriving.pop(token.packet_id, None)
            if not refused:
                connection.session.take(token.packet_id)
                kept = connection.session.outgoing.kept
                if kept is not None and not connection.closed:
                    connection.hold_back(kept.number)
        if connection.closed:
            return
        if reason_code in TRANSIENT and connection.version == V311:
            self.close(connection, "refused_by_application", now_ms)
            end_overflowed(self, now_ms)
            return
        connection.settle()
        self.holding.eased(connection)

    def retained(self, topic_filter: str) -> list[RetainedMessage]:
        """The retained messages that a filter matches."""
        return [
            RetainedMessage(topic, message.payload, message.qos)
            for topic, message in self.router.retained.match(topic_filter)
        ]

    def hold_intake(self, hold: bool) -> None:
        """While held, a client that publishes to the application is not read any further."""
        self.holding.hold(hold)

    # --- the end of connections and sessions --------------------------------------------------

    def close(self, connection: Connection, reason: str, now_ms: int, fault: str = "") -> None:
        """Close a connection; `reason` is counted, `fault` says what is worth telling a person."""
        if not connection.closed:
            self.effects.append(CloseConnection(connection, reason, fault))
            shut(self, connection, reason, now_ms)

    def dismiss(
        self, connection: Connection, code: Reason, reason: str, now_ms: int, fault: str = ""
    ) -> None:
        """Close an open connection and, in MQTT 5, tell it why."""
        unsent = connection.out[:1] or [data for _, data in list(connection.held_back)[:1]]
        unwelcomed = bool(unsent) and unsent[0].startswith(CONNACK)
        # In this order, as the end takes along what waits for the disk.
        self.close(connection, reason, now_ms, fault)
        if unwelcomed and not connection.out:
            return  # its CONNACK was taken along: a DISCONNECT must not come first (MQTT-3.14.0-1)
        if connection.version == V5 and connection.session is not None:
            connection.send(encode(Disconnect(code), V5))

    def shut_down(self, now_ms: int) -> None:
        """Close all connections; no will is published, as nobody was lost."""
        for session in list(self.sessions.values()):
            if session.connection is not None:
                session.will = None
                code = Reason.SERVER_SHUTTING_DOWN
                self.dismiss(session.connection, code, "server_shutting_down", now_ms)

    def take_over(self, connection: Connection, now_ms: int) -> None:
        """Another connection came with the same client identifier (MQTT-3.1.4-3)."""
        self.dismiss(connection, Reason.SESSION_TAKEN_OVER, "session_taken_over", now_ms)

    def watch(self, connection: Connection, keep_alive_s: int, now_ms: int) -> None:
        """Close the connection where it is silent for one and a half times its keep-alive."""
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None
        if not keep_alive_s:
            return
        patience_ms = keep_alive_s * 1500

        def look(now_ms: int) -> None:
            # A connection that is not read may well have something to say.
            heard_ms = connection.heard_ms if connection.reading else now_ms
            due_ms = heard_ms + patience_ms
            if due_ms > now_ms:
                connection.timer = self.timers.at(due_ms, look)
            else:
                code = Reason.KEEP_ALIVE_TIMEOUT
                self.dismiss(connection, code, "keep_alive_timeout", now_ms)

        connection.timer = self.timers.at(now_ms + patience_ms, look)

    def _fail(self, connection: Connection, error: ProtocolError, now_ms: int) -> None:
        """A client broke the standard: close it alone, and tell it where there are words."""
        if connection.closed:
            return
        code = error.reason
        if connection.session is None:
            # A CONNECT that is faulty itself has still said in which version to answer.
            connection.version = connection.version or connection.decoder.version
            self.close(connection, code.name.lower(), now_ms, error.text)
            handshake.refuse(connection, error)
        else:
            code = Reason.PROTOCOL_ERROR if code in CONNACK_ONLY else code
            self.dismiss(connection, code, code.name.lower(), now_ms, error.text)
