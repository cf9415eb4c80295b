"""One network connection after its bytes were read: what each packet of an open client does.

Owns the protocol of an open connection, the order of PUBACKs, what waits for the application, and
which connections are not read for a while. Must not know sockets or a clock. Invariants: PUBACKs
leave in the order of their PUBLISHes (MQTT-4.6.0-2); a connection that was closed does nothing
more; one is held back only while it, or all together, have more pending than the limits allow, or
the application asked for it; no publisher is slowed for a client that is away, nor for longer than
`slow_publisher_ms` for one that does not get on: then its session may end, and not stop others.
"""

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from broker.mqtt.application import ClientInfo, Token
from broker.mqtt.codec.decoder import Decoder, encode
from broker.mqtt.codec.encoder import PINGRESP
from broker.mqtt.codec.packets import (
    V5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Properties,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from broker.mqtt.codec.reasons import CLIENT_DISCONNECT_CODES, ProtocolError, Reason, violation
from broker.mqtt.counters import Counters
from broker.mqtt.effects import Effect, ReadConnection
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.message import OVERHEAD_BYTES, SentAliases, Taker
from broker.mqtt.routing.router import receive
from broker.mqtt.routing.shared_groups import Share
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.subscriptions import subscribe, unsubscribe

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.routing.router import TopicRoute
    from broker.mqtt.sessions.session import Session
    from broker.mqtt.sessions.timers import Timer
    from broker.rights.quotas import Holder


class Connection:
    """One connection; `session` and `client` are its own from an accepted CONNECT on."""

    __slots__ = (
        "address",
        "aliases",
        "certificate_user",
        "client",
        "closed",
        "connect",
        "decoder",
        "handing_up",
        "heard_ms",
        "held_back",
        "held_back_bytes",
        "holder",
        "hub",
        "more",
        "out",
        "packet_bytes_max",
        "partial_bytes",
        "paused",
        "pending",
        "pending_bytes",
        "reading",
        "receive_max",
        "room",
        "room_max",
        "sent_aliases",
        "session",
        "timer",
        "version",
        "waits",
    )

    def __init__(self, hub: "Hub", address: str, certificate_user: str | None) -> None:
        self.hub = hub
        self.address = address
        self.certificate_user = certificate_user
        self.decoder = Decoder(hub.limits, hub.topics)
        self.version = 0
        # Of its CONNECT; nothing looks at it before there is one.
        self.client = ClientInfo("", None, address, 0)
        self.connect: Connect | None = None  # while its login is being checked
        self.session: Session | None = None
        self.holder: Holder | None = None  # against whose quotas it counts
        self.closed = False
        self.timer: Timer | None = None  # the CONNECT that is due, later the keep-alive
        self.heard_ms = 0
        self.partial_bytes = 0  # of a packet that is not whole yet, as counted
        self.out: list[bytes] = []
        self.waits = 0  # bytes wait for this batch to be durable; 0: they do not
        self.held_back: deque[tuple[int, bytes]] = deque()  # with the batch for which they wait
        self.held_back_bytes = 0
        self.room = self.room_max = hub.limits.unsent_bytes_max
        self.more = False  # something waits for room, see `flush`
        self.paused = False  # the socket takes no more bytes
        self.reading = True
        self.receive_max = hub.limits.inflight_max
        self.packet_bytes_max = 0xFFFFFFFF
        self.pending: deque[Token] = deque()  # QoS 1 publishes not acknowledged yet
        self.pending_bytes = 0
        self.handing_up = False  # it has published to the application
        self.aliases: dict[int, str] = {}  # that the client has set
        self.sent_aliases: SentAliases | None = None  # that it takes

    def send(self, data: bytes) -> None:
        """Queue bytes for the socket."""
        if self.waits:
            self.held_back.append((self.waits, data))
            self.held_back_bytes += len(data)
            self.room -= len(data)
            return
        if not self.out:
            self.hub.dirty.append(self)
        self.out.append(data)
        self.room -= len(data)

    def spend(self, size_bytes: int) -> None:
        """Take room for work that may not end in bytes; past it, the work goes on after `flush`."""
        self.room -= size_bytes
        if self.room <= 0 and not self.out:
            self.hub.dirty.append(self)

    def hold_back(self, number: int, since: int = -1) -> None:
        """Keep what was sent last, and all after it, until that batch is durable.

        It may promise what is not on disk yet. Where something is held back already, `since` is how
        much that was before; by default all but the last.
        """
        held_back = self.held_back
        if self.waits:
            # What is in `out` was let go before, and stays in front.
            first = since if since >= 0 else max(0, len(held_back) - 1)
            for index in range(first, len(held_back)):
                held_back[index] = (number, held_back[index][1])
        elif self.out:
            data = b"".join(self.out)
            self.out.clear()
            held_back.append((number, data))
            self.held_back_bytes += len(data)
        self.waits = number
        keeping = self.hub.keeping
        if keeping is not None:
            keeping.waiting[self] = None
            keeping.awaited = number

    def let_go(self, number: int) -> None:
        """All batches up to this one are durable."""
        if self.waits <= number:
            self.waits = 0
        freed = []
        while self.held_back and self.held_back[0][0] <= number:
            freed.append(self.held_back.popleft()[1])
        if not freed:
            return
        if not self.out:
            self.hub.dirty.append(self)
        self.out[:0] = freed
        self.held_back_bytes -= sum(map(len, freed))

    def forget_waiting(self) -> None:
        """Discard what waits for the disk, or was to be sent after it."""
        self.out.clear()
        self.held_back.clear()
        self.held_back_bytes = self.waits = 0
        if self.hub.keeping is not None:
            self.hub.keeping.waiting.pop(self, None)

    def fitting(self, packet: Connack | Suback | Unsuback) -> bytes:
        """The bytes of an answer; ProtocolError where the client takes none so long."""
        data = encode(packet, self.version)
        if len(data) > self.packet_bytes_max:
            raise ProtocolError(
                Reason.PACKET_TOO_LARGE,
                f"the answer to it has more than {self.packet_bytes_max} bytes",
            )
        return data

    def flush(self) -> bytes:
        """The bytes for the socket. Where `more` is set then, `Hub.writable` is to be told after.

        If the socket took too much (`Hub.busy`), that is when it has room again, else at once.
        """
        out = self.out
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self.hub.counters.bytes_out += len(data)
        if self.room > 0:
            if not self.paused:
                self.room = self.room_max - self.held_back_bytes
        else:
            self._look_for_more()
        return data

    def _look_for_more(self) -> None:
        self.more = not self.closed and self.session is not None and self.session.outgoing.behind()
        if not (self.more or self.paused):
            self.room = self.room_max - self.held_back_bytes

    def handle(self, packet: Packet, now_ms: int) -> bool:
        """Do what the packet asks for; whether the connection is still open.

        ProtocolError: it must be closed.
        """
        if isinstance(packet, Puback):
            self.puback(packet, now_ms)
        elif isinstance(packet, Publish):
            receive(self, packet, now_ms)
        elif isinstance(packet, Pingreq):
            self.send(PINGRESP)
        elif isinstance(packet, Subscribe):
            subscribe(self, packet, now_ms)
        elif isinstance(packet, Unsubscribe):
            unsubscribe(self, packet)
        elif isinstance(packet, Disconnect):
            self._disconnect(packet, now_ms)
        elif isinstance(packet, Pubrel):
            self._release(packet)
        elif isinstance(packet, Pubrec):
            self._received(packet, now_ms)
        elif isinstance(packet, Pubcomp):
            if self.session is not None:
                self.session.outgoing.completed(packet.packet_id, now_ms)
        else:
            raise violation(f"a client must not send {type(packet).__name__.upper()} here")
        return not self.closed

    def admit(self, packet: Publish) -> Publish | None:
        """Check a PUBLISH that has a QoS or properties, and resolve its topic alias.

        None: it was taken before, and its client is told so again.
        """
        if packet.qos:
            if packet.qos == 2 and self._repeated(packet):
                return None
            if len(self.pending) >= self.hub.limits.receive_max and self.version == V5:
                raise ProtocolError(
                    Reason.RECEIVE_MAXIMUM_EXCEEDED,
                    f"more than {self.hub.limits.receive_max} publishes wait for their PUBACK",
                )
        if packet.properties is not None:
            return self._resolve(packet, packet.properties)
        return packet

    def _repeated(self, packet: Publish) -> bool:
        """Tell whether a QoS 2 message was taken before and is not released yet (MQTT-4.3.3-2)."""
        assert self.session is not None
        unreleased, arriving = self.session.unreleased, self.session.arriving
        if packet.packet_id in unreleased:
            self.acknowledge(packet, 0)
            return True
        token = arriving.get(packet.packet_id)
        if token is not None:
            # The application has it, of a connection that may be gone: this one hears the outcome.
            if token.connection is not self:
                token.connection = self
                self.wait_for(token)
            return True
        others = sum(token.qos == 1 for token in self.pending)
        if len(unreleased) + len(arriving) + others >= self.hub.limits.receive_max:
            raise ProtocolError(
                Reason.RECEIVE_MAXIMUM_EXCEEDED,
                f"more than {self.hub.limits.receive_max} QoS 2 messages are not released",
            )
        return False

    def _release(self, packet: Pubrel) -> None:
        """A QoS 2 message is done with; one that nobody knows is let go, too."""
        assert self.session is not None
        released = self.session.release(packet.packet_id)
        code = Reason.SUCCESS
        if self.version == V5 and not released:
            code = Reason.PACKET_IDENTIFIER_NOT_FOUND
        self.send(encode(Pubcomp(packet.packet_id, code), self.version))

    def _resolve(self, packet: Publish, properties: Properties) -> Publish:
        """Set or use a topic alias and drop it from the properties (section 3.3.2.3.4)."""
        if properties.subscription_identifier:
            raise violation("a client's PUBLISH holds a subscription identifier")
        alias = properties.topic_alias
        if alias is None:
            return packet
        if alias > self.hub.limits.topic_alias_max:
            raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, f"topic alias {alias} is too large")
        topic = packet.topic or self.aliases.get(alias)
        if topic is None:
            raise violation(f"topic alias {alias} is not set")
        self.aliases[alias] = topic
        return replace(packet, topic=topic, properties=replace(properties, topic_alias=None))

    def wait_for(self, token: Token) -> None:
        """A QoS 1 publish went to the application: acknowledge it when that says so."""
        self.pending.append(token)
        self.pending_bytes += token.size_bytes
        self.hub.counters.pending_bytes += token.size_bytes

    def settle(self) -> None:
        """Acknowledge what was completed, in the order in which it came."""
        pending = self.pending
        while pending and pending[0].outcome >= 0:
            token = pending.popleft()
            self.pending_bytes -= token.size_bytes
            self.hub.counters.pending_bytes -= token.size_bytes
            self._answer(token.packet_id, token.outcome, token.qos)

    def acknowledge(self, packet: Publish, code: int) -> None:
        """Answer a message that nobody else has to complete, when its turn comes."""
        if packet.qos == 2 and code < Reason.UNSPECIFIED_ERROR and self.session is not None:
            self.session.take(packet.packet_id)
        if self.pending:
            self.pending.append(Token(self, packet.packet_id, 0, code, packet.qos))
        else:
            self._answer(packet.packet_id, code, packet.qos)

    def _answer(self, packet_id: int, code: int, qos: int) -> None:
        """PUBREC or PUBACK."""
        first = b"\x50" if qos == 2 else b"\x40"
        if code and self.version == V5:
            self.send(first + b"\x03" + packet_id.to_bytes(2, "big") + bytes((code,)))
        else:
            self.send(first + b"\x02" + packet_id.to_bytes(2, "big"))

    def overloaded(self) -> bool:
        """Tell whether so much waits for the application that no more should be read."""
        limits = self.hub.limits
        return (
            len(self.pending) >= limits.receive_max
            or self.pending_bytes >= limits.pending_bytes_per_client_max
        )

    def puback(self, packet: Puback, now_ms: int) -> None:
        """The client has a QoS 1 message; there may be room for another."""
        if self.session is not None and self.session.outgoing.confirm(packet.packet_id, now_ms):
            self.hub.counters.confirmed += 1
            if packet.code >= Reason.UNSPECIFIED_ERROR:
                self.hub.counters.refuse("by_client")

    def _received(self, packet: Pubrec, now_ms: int) -> None:
        """The client has a QoS 2 message, or refuses it; it is told that no more of it comes."""
        if self.session is None:
            return
        good = packet.code < Reason.UNSPECIFIED_ERROR
        expected = self.session.outgoing.received(packet.packet_id, good=good, now_ms=now_ms)
        if expected:
            if not good:
                self.hub.counters.refuse("by_client")
        elif good:
            code = Reason.PACKET_IDENTIFIER_NOT_FOUND if self.version == V5 else Reason.SUCCESS
            self.send(encode(Pubrel(packet.packet_id, code), self.version))

    def _disconnect(self, packet: Disconnect, now_ms: int) -> None:
        session = self.session
        assert session is not None
        if packet.code not in CLIENT_DISCONNECT_CODES:
            raise violation(f"DISCONNECT has reason code {packet.code:#04x}")
        expiry_s = None
        if packet.properties is not None:
            expiry_s = packet.properties.session_expiry_interval
        if expiry_s is not None:
            if expiry_s and not session.expiry_ms:
                raise violation("DISCONNECT prolongs a session that was to end with its connection")
            session.expiry_ms = min(expiry_s, self.hub.limits.session_expiry_s_max) * 1000
        if packet.code == Reason.SUCCESS:  # else it is lost, or says that it wants its will
            session.will = None
        self.hub.close(self, "client_disconnected", now_ms)


LOOK_EVERY_MS = 10


class PublisherHold:
    """Holds back the publishers to the application; ordinary MQTT traffic goes on."""

    def __init__(self, limits: MqttLimits, counters: Counters, effects: list[Effect]) -> None:
        self._limits = limits
        self._counters = counters
        self._effects = effects
        self._held: dict[Connection, None] = {}
        self._slow: dict[Connection, None] = {}  # of these, those that publish too fast
        self._asked = False
        self._full = False  # all together have too much pending
        self._behind = False  # too much is to be written to disk
        self._stopped = False  # one of these three

    def hold(self, hold: bool) -> None:
        """Hold all publishers to the application, or let them go on."""
        self._asked = hold
        self._release_all()

    def behind(self, behind: bool) -> None:
        """Note that the disk is too far behind for more to be taken, or no longer."""
        if behind != self._behind:
            self._behind = behind
            self._release_all()

    def slow(self, connection: "Connection") -> None:
        """Read no further from one who publishes too fast."""
        self._slow[connection] = None
        self.look(connection)

    def hasten(self, connection: "Connection") -> None:
        """It may go on."""
        self._slow.pop(connection, None)
        self.eased(connection)

    def look(self, connection: "Connection") -> None:
        """After a read that handed something up: may this connection be read further?"""
        if self._counters.pending_bytes >= self._limits.pending_bytes_max:
            self._full = self._stopped = True
        if connection.reading and (self._stopped or self._has_to_wait(connection)):
            connection.reading = False
            self._held[connection] = None
            self._effects.append(ReadConnection(connection, on=False))

    def eased(self, connection: "Connection") -> None:
        """Less of this connection is pending."""
        if self._full and self._counters.pending_bytes < self._limits.pending_bytes_max // 2:
            self._full = False
            self._release_all()
        elif connection in self._held and not self._stopped:
            self._release(connection)

    def _has_to_wait(self, connection: "Connection") -> bool:
        return connection in self._slow or connection.overloaded()

    def gone(self, connection: "Connection") -> None:
        """The connection is closed."""
        self._held.pop(connection, None)
        self._slow.pop(connection, None)
        self.eased(connection)

    def _release_all(self) -> None:
        self._stopped = self._asked or self._full or self._behind
        if not self._stopped:
            for connection in list(self._held):
                self._release(connection)

    def _release(self, connection: "Connection") -> None:
        if not self._has_to_wait(connection):
            del self._held[connection]
            connection.reading = True
            self._effects.append(ReadConnection(connection, on=True))


class _Slowed(Struct):
    crowded: list[ClientQueue]
    until_ms: int


class Slowing:
    """Of one hub."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        limits = hub.limits
        # As long as all queues together hold less, none of them can be crowded.
        self.from_bytes = min(
            limits.queue_bytes_max // 2, limits.queue_messages_max * OVERHEAD_BYTES // 2
        )
        self._slowed: dict[Connection, _Slowed] = {}
        self._watched = False

    def look(self, connection: "Connection", route: "TopicRoute", now_ms: int) -> None:
        """A message of this connection went this way."""
        if connection in self._slowed or connection.closed:
            return
        own = connection.session.outgoing if connection.session is not None else None
        crowded = [
            queue
            for delivery in route.deliveries
            for queue in _crowded(delivery.outgoing)
            if queue is not own  # it could not confirm what nobody reads
        ]
        if crowded:
            until_ms = now_ms + self._hub.limits.slow_publisher_ms
            self._slowed[connection] = _Slowed(crowded, until_ms)
            self._hub.counters.slowed += 1
            self._hub.holding.slow(connection)
            self._watch(now_ms)

    def _watch(self, now_ms: int) -> None:
        if not self._watched:
            self._watched = True
            self._hub.timers.at(now_ms + LOOK_EVERY_MS, self._go_on)

    def _go_on(self, now_ms: int) -> None:
        """Let those go on whose subscribers have got on, or never will."""
        self._watched = False
        for connection, slowed in list(self._slowed.items()):
            behind = [queue for queue in slowed.crowded if queue.pipe and not _eased(queue)]
            if behind and now_ms < slowed.until_ms and not connection.closed:
                continue
            for queue in behind:
                queue.room.given_up = now_ms >= slowed.until_ms
            del self._slowed[connection]
            if not connection.closed:
                self._hub.holding.hasten(connection)
        if self._slowed:
            self._watch(now_ms)


def _crowded(taker: Taker) -> list[ClientQueue]:
    """Those on whom a message waits; of a group where it waits on every member."""
    if isinstance(taker, Share):
        queues = [_crowded(member) for member in taker.members()]
        return [queue for crowded in queues for queue in crowded] if all(queues) else []
    if isinstance(taker, ClientQueue) and taker.pipe is not None:
        return [taker] if taker.room.crowded(taker.held_messages) else []
    return []


def _eased(outgoing: ClientQueue) -> bool:
    return outgoing.room.eased(outgoing.held_messages)
