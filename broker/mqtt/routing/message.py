"""One message on its way to clients: how it is kept, and its bytes in either version.

Owns the PUBLISH packets that the broker sends. Must not know queues or connections. Invariant: what
all get alike is encoded once.
"""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from broker.mqtt.codec.packets import V5, Properties
from broker.mqtt.codec.properties import encode_fields
from broker.mqtt.codec.wire import u32, varint

if TYPE_CHECKING:
    from broker.mqtt.routing.shared_groups import Share

OVERHEAD_BYTES = 200  # what a waiting message takes beside its topic and payload
_FIRST = tuple(bytes((0x30 | bits,)) for bits in range(16))
_LENGTHS = tuple(varint(length) for length in range(2048))


class Message(Struct):
    """One message to be routed, the same object for all who get it.

    `head` is the topic with its length; `size_bytes` is what it takes to keep it; `sender` is the
    publisher's client identifier, empty for the application; `expires_ms` 0 is never. `number` is
    its own on disk while `keepers` queues there hold it. The last three are made when first needed.
    """

    topic: str
    head: bytes
    payload: bytes
    qos: int
    retain: bool
    size_bytes: int
    sender: str
    properties: Properties | None = None
    expires_ms: int = 0
    number: int = 0
    keepers: int = 0
    fields: bytes | None = None
    plain_311: bytes = b""
    plain_5: bytes = b""


class Pipe(Protocol):
    """The connection, as the queue sees it."""

    version: int
    room: int  # bytes it takes before something has to wait; at most 0: none
    receive_max: int
    packet_bytes_max: int
    sent_aliases: "SentAliases | None"  # None: the client takes none

    def send(self, data: bytes) -> None:
        """Hand bytes over; there was room."""

    def spend(self, size_bytes: int) -> None:
        """Take room for work that may not end in bytes."""

    def hold_back(self, number: int) -> None:
        """Let what was handed over since the last read wait until that batch is durable."""


class Taker(Protocol):
    """Whoever takes messages for a client: its queues, or those of one of a group."""

    client_id: str

    def offer(self, message: Message, delivery: "MessageDelivery", now_ms: int) -> bool:
        """Take a message; False, once: it found the queue full and the session has to end."""


class MessageDelivery(Struct, frozen=True):
    """Say how one client gets the messages of a topic, all its matching subscriptions together.

    Where it asked not to hear itself, `no_local` is set, and `own` is how it gets what it published
    itself: by its other subscriptions, or not at all.
    """

    outgoing: Taker
    qos: int
    retain_as_published: bool
    identifiers: tuple[int, ...]
    plain: bool  # QoS 0 messages go to it as they came: not retained, without identifiers
    no_local: bool = False
    own: "MessageDelivery | None" = None
    share: "Share | None" = None  # of whose members this client is the one chosen


class QueuedMessage(Struct):
    """A message in a queue, as this client is to get it.

    `place` is its own on disk, 0 where it is not kept; `known`: it may have been sent before.
    """

    message: Message
    retain: bool
    identifiers: tuple[int, ...]
    share: "Share | None" = None  # whose other members get it if this client never does
    qos: int = 1
    place: int = 0
    known: bool = False


class Replay(Struct, frozen=True):
    """Say how a new subscription is to get what is retained."""

    qos: int
    identifiers: tuple[int, ...]
    no_local: bool


class SentAliases:
    """The topic aliases of one connection that the broker has set (section 3.3.2.3.4).

    They go to the first topics that are sent: a device is sent few, again and again. To replace
    some by others would cost a look at each message, and spare bytes of few clients alone.
    """

    __slots__ = ("_by_topic", "_count_max")

    def __init__(self, count_max: int) -> None:
        self._by_topic: dict[str, int] = {}
        self._count_max = count_max

    def of(self, topic: str) -> tuple[int, bool]:
        """Return the alias of a topic, 0 where it has none, and whether the client knows it."""
        alias = self._by_topic.get(topic)
        if alias is not None:
            return alias, True
        return (len(self._by_topic) + 1 if len(self._by_topic) < self._count_max else 0), False

    def keep(self, topic: str, alias: int) -> None:
        """Note that a message was sent that sets this alias."""
        self._by_topic[topic] = alias


def encode_plain(message: Message, version: int, packet_id: int, qos: int) -> bytes:
    """At QoS 1 or 2, not retained, without properties."""
    middle = packet_id.to_bytes(2, "big")
    if version == V5:
        middle += b"\0"
    length = len(message.head) + len(middle) + len(message.payload)
    lead = _LENGTHS[length] if length < 2048 else varint(length)
    return b"".join((_FIRST[qos << 1], lead, message.head, middle, message.payload))


def encode_message(
    held: QueuedMessage, version: int, qos_bits: int, packet_id: int, now_ms: int
) -> bytes:
    """The PUBLISH packet; `qos_bits` are the bits of QoS and DUP of its first byte."""
    message = held.message
    middle = packet_id.to_bytes(2, "big") if qos_bits else b""
    if version == V5:
        if message.properties is None and not held.identifiers:
            middle += b"\0"
        else:
            middle += _fields(held, now_ms)
    length = len(message.head) + len(middle) + len(message.payload)
    lead = _LENGTHS[length] if length < 2048 else varint(length)
    first = _FIRST[qos_bits | held.known << 3 | held.retain]
    return b"".join((first, lead, message.head, middle, message.payload))


def encode_aliased(
    held: QueuedMessage,
    aliases: SentAliases,
    qos_bits: int,
    packet_id: int,
    now_ms: int,
    *,
    size_max: int,
) -> bytes:
    """Encode a PUBLISH for a client that takes topic aliases, and note the one that it sets.

    One that is longer than `size_max` is not sent, so that it sets none.
    """
    message = held.message
    alias, is_set = aliases.of(message.topic)
    if not alias:
        return encode_message(held, V5, qos_bits, packet_id, now_ms)
    head = b"\0\0" if is_set else message.head
    middle = packet_id.to_bytes(2, "big") if qos_bits else b""
    middle += _fields(held, now_ms, b"\x23" + alias.to_bytes(2, "big"))
    lead = varint(len(head) + len(middle) + len(message.payload))
    first = _FIRST[qos_bits | held.known << 3 | held.retain]
    data = b"".join((first, lead, head, middle, message.payload))
    if not is_set and len(data) <= size_max:
        aliases.keep(message.topic, alias)
    return data


def _fields(held: QueuedMessage, now_ms: int, alias: bytes = b"") -> bytes:
    message = held.message
    if message.fields is None:
        properties = message.properties
        message.fields = b"" if properties is None else encode_fields(properties)
    fields = alias + message.fields
    if message.expires_ms:
        fields += b"\x02" + u32(max(0, -((now_ms - message.expires_ms) // 1000)))
    for identifier in held.identifiers:
        fields += b"\x0b" + varint(identifier)
    return varint(len(fields)) + fields


def held_for(message: Message, delivery: MessageDelivery) -> QueuedMessage:
    """The message as this delivery wants it."""
    retain = message.retain and delivery.retain_as_published
    qos = min(message.qos, delivery.qos)
    return QueuedMessage(message, retain, delivery.identifiers, delivery.share, qos)


def plain_311(message: Message) -> bytes:
    """At QoS 0, not retained, in 3.1.1; kept in the message."""
    length = len(message.head) + len(message.payload)
    lead = _LENGTHS[length] if length < 2048 else varint(length)
    data = message.plain_311 = b"".join((b"0", lead, message.head, message.payload))
    return data


def plain_5(message: Message) -> bytes:
    """The same in MQTT 5, without properties."""
    length = len(message.head) + 1 + len(message.payload)
    lead = _LENGTHS[length] if length < 2048 else varint(length)
    data = message.plain_5 = b"".join((b"0", lead, message.head, b"\0", message.payload))
    return data
