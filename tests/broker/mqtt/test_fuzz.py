"""Whatever bytes a client sends, in whatever pieces: it alone is closed, and told the right reason.

A witness is connected meanwhile and has to hear everything; nothing may be raised out of the hub,
and what the hub keeps stays within its limits.
"""

import asyncio
import logging
import random

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder, TopicNames, encode
from broker.mqtt.codec.reasons import CONNECT_RETURN_CODES, Reason
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.handshake import UNSUPPORTED
from broker.mqtt.storage.rows import (
    MessageRow,
    PacketRow,
    QueueRow,
    RetainedRow,
    SessionRow,
    SubscriptionRow,
)
from tests.broker.mqtt.packet_cases import packets
from tests.broker.mqtt.sockets import RawClient, serving
from tests.broker.mqtt.world import VERSIONS, Disk, World

BOTH = (p.V311, p.V5)

# The reason codes that a server may give in each packet: tables 3-1, 3-13, 3.4.2.1, 3.9.3, 3.11.3.
CONNACK_CODES = {0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F}
DISCONNECT_CODES = {
    *(0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90),
    *range(0x93, 0xA3),
}
PUBACK_CODES = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
SUBACK_CODES = {0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}
UNSUBACK_CODES = {0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}


class Hostile:
    """A client that sends bytes; `replies` is what came back, read in the version it asked for."""

    version = 0

    def __init__(self, world):
        self.world = world
        self.raw = bytearray()
        self.closed = None
        self.reads = self.takes = True
        self.connection = world.hub.opened("hostile:1", None, world.now_ms)
        world.clients[self.connection] = self
        world.perform()

    def send(self, data):
        self.world.hub.received(self.connection, data, self.world.now_ms)
        self.world.perform()

    def leave(self):
        self.world.hub.lost(self.connection, self.world.now_ms)
        self.world.perform()
        del self.world.clients[self.connection]

    def replies(self):
        version = self.connection.version
        if not version:
            assert bytes(self.raw) in {b"", UNSUPPORTED}
            return []
        if self.raw == UNSUPPORTED:
            return []
        limits = MqttLimits()
        decoder = Decoder(limits, TopicNames(limits), version)
        found = decoder.decode(bytes(self.raw))
        assert not decoder.held
        assert not decoder.more
        return found

    def by_kind(self):
        """The packets of each kind in their order; an acknowledgement waits for the application,
        so what else is said before it depends on how much was read at once.
        """
        found = {}
        for packet in self.replies():
            found.setdefault(type(packet).__name__, []).append(packet)
        return found

    def check_replies(self):
        """They are what a server of this version may say, and a refusal comes last."""
        found = self.replies()
        v5 = self.connection.version == p.V5
        for number, packet in enumerate(found):
            last = number == len(found) - 1
            if isinstance(packet, p.Connack):
                assert number == 0
                codes = CONNACK_CODES if v5 else set(CONNECT_RETURN_CODES.values())
                assert packet.code in codes
                assert last or packet.code == 0
            elif isinstance(packet, p.Disconnect):
                assert last
                assert v5
                assert packet.code in DISCONNECT_CODES
            elif isinstance(packet, p.Puback | p.Pubrec):
                assert packet.code in (PUBACK_CODES if v5 else {0})
            elif isinstance(packet, p.Pubrel | p.Pubcomp):
                assert packet.code in ({0, Reason.PACKET_IDENTIFIER_NOT_FOUND} if v5 else {0})
            elif isinstance(packet, p.Suback):
                assert set(packet.codes) <= (SUBACK_CODES if v5 else {0, 1, 2, 0x80})
            elif isinstance(packet, p.Unsuback):
                assert set(packet.codes) <= (UNSUBACK_CODES if v5 else set())
            else:
                assert isinstance(packet, p.Publish | p.Pingresp)
        told = bool(found) and isinstance(found[-1], p.Disconnect)
        opened = bool(found) and isinstance(found[0], p.Connack) and found[0].code == 0
        if self.closed not in {None, "client_disconnected"} and opened:
            assert told == v5, self.closed


class Arena(World):
    """A world with a witness, whose hostile clients may turn their version round."""

    def __init__(self, **options):
        super().__init__(**options)
        self.witness = self.client(p.V5, "witness")
        self.witness.subscribe("witness/#", qos=1)

    def write(self, connection):
        client = self.clients[connection]
        if isinstance(client, Hostile):
            client.raw += connection.flush()
        else:
            super().write(connection)

    def check_witness(self):
        self.publish("witness/x", b"1", qos=1)
        (got,) = self.witness.publishes_of("witness/x")
        self.witness.send(p.Puback(got.packet_id), p.Pingreq())
        assert [x for x in self.witness.take() if isinstance(x, p.Pingresp)]
        assert self.witness.closed is None

    def client(self, version, client_id="c", **fields):
        client = super().client(version, client_id, **fields)
        client.publishes_of = lambda topic: [
            packet
            for packet in client.take()
            if isinstance(packet, p.Publish) and packet.topic == topic
        ]
        return client


def conversation(version):
    """Packets of a client, one of each kind and several with everything on them."""
    v5 = version == p.V5

    def held(**fields):
        return p.Properties(**fields) if v5 else None

    will = p.Will("w/x", b"gone", 1, True, held(will_delay_interval=3, content_type="t"))
    expiry = held(session_expiry_interval=60, receive_maximum=9, user_property=(("k", "v"),))
    sent = [
        p.Connect(version, "fuzz", False, 60, will, "ann", b"secret", expiry),
        p.Subscribe(
            1, (p.Filter("f/+/#", 2), p.Filter("w/#", 0)), held(subscription_identifier=(3,))
        ),
        p.Subscribe(2, (p.Filter("$share/g/f/#", 1), p.Filter("$share/h", 1))),
        p.Publish("f/a/b", b"zero"),
        p.Publish("f/a/c", b"one", 1, packet_id=7),
        p.Publish("f/r/c", b"x" * 130, 1, True, True, 8, held(topic_alias=2, response_topic="r")),
        p.Publish("headwater/events/T/s", b"{}", 1, packet_id=9),
        p.Publish("f/a/d", b"two", 2, packet_id=10),
        p.Publish("f/a/d", b"two", 2, dup=True, packet_id=10),
        p.Pubrel(10),
        p.Puback(1),
        p.Pubrec(3),
        p.Pubcomp(3),
        p.Puback(2, *((0x10, p.Properties(reason_string="ok")) if v5 else ())),
        p.Unsubscribe(5, ("f/+/#", "none")),
        p.Pingreq(),
        p.Pubrel(77),
        p.Disconnect(*((4, p.Properties(session_expiry_interval=5)) if v5 else ())),
    ]
    return [encode(packet, version) for packet in sent]


def attack(world, *chunks):
    """Send these reads; whether the client was closed for what it sent."""
    hostile = Hostile(world)
    for chunk in chunks:
        hostile.send(chunk)
    hostile.check_replies()
    hostile.leave()
    return hostile


@VERSIONS
def test_a_stream_that_breaks_off_at_any_byte_harms_nobody(version):
    world = Arena()
    stream = b"".join(conversation(version))
    for border in range(len(stream)):
        hostile = attack(world, stream[:border])
        assert hostile.closed is None, border
        assert world.hub.counters.partial_bytes == 0
    world.check_witness()


@VERSIONS
def test_the_answers_are_the_same_however_the_stream_is_split(version):
    """At every single border, and in pieces of every small size.

    Without the DISCONNECT: who says it in the same breath as a message hears no answer to that.
    """
    stream = b"".join(conversation(version)[:-1])
    whole = attack(Arena(), stream)
    assert len(whole.by_kind()["Puback"]) == 3
    for border in range(1, len(stream)):
        parted = attack(Arena(), stream[:border], stream[border:])
        assert parted.by_kind() == whole.by_kind(), border
    for size in range(1, 40):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert attack(Arena(), *pieces).by_kind() == whole.by_kind(), size


@VERSIONS
@settings(max_examples=100)
@given(st.data())
def test_any_packets_in_any_pieces_are_answered_alike(version, data):
    """Packets that no sane client sends in that order, too."""
    body = data.draw(st.lists(packets(version), max_size=8))
    begin = data.draw(st.sampled_from([[], conversation(version)[:1]]))
    stream = b"".join([*begin, *(encode(packet, version) for packet in body)])
    borders = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[a:b] for a, b in zip([0, *borders], [*borders, len(stream)], strict=True)]
    whole, parted = Arena(), Arena()
    assert attack(whole, stream).by_kind() == attack(parted, *pieces).by_kind()
    for world in (whole, parted):
        world.check_witness()


def changed(stream, values):
    """The stream with each byte changed, one at a time."""
    for at in range(len(stream)):
        for value in values(stream[at]):
            if value != stream[at]:
                yield stream[:at] + bytes((value,)) + stream[at + 1 :]


def mutate_every_byte(version, values):
    world = Arena(limits={"retained_messages_max": 20})  # else each change leaves one
    closed = 0
    for number, stream in enumerate(changed(b"".join(conversation(version)), values)):
        closed += attack(world, stream).closed != "client_disconnected"
        world.handed()
        if number % 5 == 0:
            world.check_witness()
            world.advance(2 * 86_400_000)  # sessions that are kept would get every message
    world.check_witness()
    assert closed > number / 10


@VERSIONS
def test_a_change_of_any_byte_closes_at_most_that_client(version):
    mutate_every_byte(version, lambda byte: (byte ^ 1, byte ^ 0x80, 0, 0xFF, byte + 1 & 0xFF))


@pytest.mark.long
@pytest.mark.timeout(300)
@VERSIONS
def test_every_change_of_every_byte_closes_at_most_that_client(version):
    mutate_every_byte(version, lambda byte: range(256))


def mangled(chance, pieces):
    """The packets dropped, repeated, cut, swapped and sprinkled with noise."""
    pieces = [piece for piece in pieces if chance.random() < 0.95]
    if pieces and chance.random() < 0.3:
        pieces.insert(chance.randrange(len(pieces)), chance.choice(pieces))
    if len(pieces) > 2 and chance.random() < 0.3:
        at = chance.randrange(1, len(pieces))
        pieces[at:] = chance.sample(pieces[at:], len(pieces) - at)
    stream = bytearray(b"".join(pieces))
    for _ in range(chance.choice([0, 0, 1, 2, 8])):
        at = chance.randrange(len(stream) + 1)
        kind = chance.randrange(3)
        if kind == 0:
            stream[at:at] = chance.randbytes(chance.randrange(6))
        elif kind == 1:
            del stream[at : at + chance.randrange(6)]
        else:
            stream[at : at + 1] = chance.randbytes(1)
    return bytes(stream)


def check_disk(world):
    """What is on disk is what the hub holds, and a broker could go on with it."""
    hub, rows = world.hub, world.disk.tables
    kept = [one for one in hub.sessions.values() if one.outgoing.kept is not None]
    names = {one.client.client_id for one in kept}
    assert names <= {name for (name,) in rows[SessionRow]} <= set(hub.sessions)
    assert len(rows[SubscriptionRow]) == sum(len(one.subscriptions) for one in kept)
    copies = [[*one.outgoing._inflight.values(), *one.outgoing._waiting] for one in kept]
    assert len(rows[QueueRow]) == sum(map(len, copies))
    bodies = {row.message for row in rows[QueueRow].values()}
    assert {number for (number,) in rows[MessageRow]} == bodies
    taken = sum(len(one.unreleased) + len(one.outgoing._releasing) for one in kept)
    assert len(rows[PacketRow]) == taken
    assert len(rows[RetainedRow]) == hub.counters.retained_messages
    another = Disk()
    another.tables = {table: dict(found) for table, found in rows.items()}
    another.wall_ms = world.disk.wall_ms
    again = World(disk=another, limits=hub.limits)
    assert names <= set(again.hub.sessions) | {"witness"}
    assert again.hub.counters.queued_bytes >= sum(one.outgoing.room.held_bytes for one in kept)


def siege(seed, count, disk=None):
    """Many hostile clients at once against small limits; none of them ever gets more than these."""
    chance = random.Random(seed)
    limits = MqttLimits(
        connections_max=20,
        sessions_max=12,
        subscriptions_max=30,
        subscriptions_per_client_max=8,
        retained_messages_max=10,
        retained_bytes_max=4_000,
        queue_messages_max=20,
        queue_bytes_max=6_000,
        queue_bytes_total_max=20_000,
        topics_cached_max=50,
        partial_bytes_max=5_000,
        packet_bytes_max=3_000,
        connect_bytes_max=1_000,
        inflight_max=5,
        receive_max=5,
    )
    world = Arena(limits=limits, disk=disk)
    talks = {version: conversation(version) for version in BOTH}
    live = []
    for number in range(count):
        if len(live) < 15:
            live.append(Hostile(world))
            pieces = list(talks[chance.choice(BOTH)])
            if chance.random() < 0.5:  # else all are the same client
                version = chance.choice(BOTH)
                name = f"fuzz-{chance.randrange(30)}"
                pieces = [encode(p.Connect(version, name), version), *talks[version][1:]]
            live[-1].stream = mangled(chance, pieces)
        hostile = chance.choice(live)
        size = chance.choice([1, 7, 50, 500])
        hostile.send(hostile.stream[:size])
        hostile.stream = hostile.stream[size:]
        if not hostile.stream or hostile.closed or chance.random() < 0.02:
            hostile.check_replies()
            hostile.leave()
            live.remove(hostile)
        world.handed()
        world.witness.send(*(p.Puback(x.packet_id) for x in world.witness.take() if is_firm(x)))
        if number % 50 == 0:
            world.advance(chance.choice([0, 100, 20_000]))
            check_bounds(world, limits)
            if disk is not None and number % 200 == 0:
                check_disk(world)
    for hostile in live:
        hostile.leave()
    world.advance(2 * 86_400_000)
    assert list(world.hub.sessions) == ["witness"]
    world.check_witness()
    return world


def is_firm(packet):
    return isinstance(packet, p.Publish) and packet.qos


def check_bounds(world, limits):
    hub = world.hub
    counters = hub.counters
    assert len(hub.sessions) == counters.sessions <= limits.sessions_max
    assert counters.subscriptions <= limits.subscriptions_max
    assert all(
        len(session.subscriptions) <= limits.subscriptions_per_client_max
        for session in hub.sessions.values()
    )
    assert counters.retained_messages <= limits.retained_messages_max
    assert counters.retained_bytes <= limits.retained_bytes_max
    # One retained message may be in flight to each client that has nothing else there.
    retained_bytes = limits.connections_max * limits.retained_bytes_max
    assert counters.queued_bytes <= limits.queue_bytes_total_max + retained_bytes
    assert all(
        session.outgoing.room.held_bytes <= limits.queue_bytes_max
        for session in hub.sessions.values()
    )
    assert counters.partial_bytes <= limits.partial_bytes_max
    assert counters.connections <= limits.connections_max
    assert len(hub.topics) <= limits.topics_cached_max
    assert len(hub.router.routes) <= limits.topics_cached_max
    assert len(hub.timers._heap) <= 64 + 2 * (
        2 * limits.sessions_max + limits.connections_max + limits.retained_messages_max
    )


@pytest.mark.parametrize("seed", range(3))
def test_many_hostile_clients_at_once_stay_within_the_limits(seed):
    world = siege(seed, 3_000)
    assert len(world.hub.counters.closed) > 5  # for many different reasons


@pytest.mark.parametrize("seed", range(3, 5))
def test_what_they_leave_on_disk_is_what_is_held(seed):
    world = siege(seed, 2_000, Disk())
    assert len(world.hub.counters.ended) >= 3
    assert set(world.disk.count()) <= {"mqtt_retained"}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(110, 115))
def test_what_very_many_leave_on_disk_is_what_is_held(seed):
    siege(seed, 20_000, Disk())


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(100, 110))
def test_very_many_hostile_clients_stay_within_the_limits(seed):
    siege(seed, 50_000)


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from([0, *BOTH]))
def test_noise_is_closed_without_a_word_or_with_a_right_one(chunks, version):
    world = Arena()
    begin = [conversation(version)[0]] if version else []
    attack(world, *begin, *chunks)
    world.check_witness()


def test_noise_can_be_understood():
    """The test above would see nothing if all noise were refused at its first byte."""
    found = find(
        st.binary(max_size=8),
        lambda data: attack(Arena(), conversation(p.V5)[0], data).closed is None and len(data) > 1,
    )
    assert found


def test_sockets_that_send_noise_are_closed_alone(caplog):
    """Through the driver: nothing becomes an internal error, and one line a reason is logged."""
    chance = random.Random(7)

    async def scene():
        async with serving() as server:
            good = await RawClient.open(server.port, client_id="good")
            for number in range(100):
                version = BOTH[number % 2]
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(mangled(chance, conversation(version)) + chance.randbytes(20))
                writer.write_eof()
                async with asyncio.timeout(8):
                    await reader.read()
                writer.close()
            await good.send(p.Pingreq())
            assert await good.next() == p.Pingresp()
            await good.close()
            closed = server.counters()["closed"]
            assert "internal_error" not in closed
            assert closed["malformed_packet"] > 5

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        asyncio.run(scene())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(set(said)) < 20
    assert not any("secret" in line for line in said)
