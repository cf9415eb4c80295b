"""Every limit of the face by itself: what is at the limit passes, what is beyond meets its policy.

The table below has to name every limit, so that none can be added without being held.
"""

from dataclasses import fields

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.logins import Logins
from tests.broker.mqtt.world import Client, Disk, World, kept

MiB = 2**20
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def closed(client):
    """The reason for which a client was closed, and what it was told in MQTT 5."""
    told = [packet.code for packet in client.take() if isinstance(packet, p.Disconnect)]
    return (client.closed, *told)


@case
def connections_max():
    world = World(limits={"connections_max": 2})
    clients = [Client(world, p.V5) for _ in range(3)]
    assert [client.closed for client in clients] == [None, None, "connections_max"]
    assert world.hub.counters.closed == {"connections_max": 1}
    clients[0].lose()
    clients[2].lose()
    assert Client(world, p.V5).closed is None


@case
def connect_timeout_ms():
    world = World(limits={"connect_timeout_ms": 100})
    silent, halting = Client(world, p.V5), Client(world, p.V5)
    halting.send_bytes(b"\x10\x20\x00")
    world.advance(99)
    assert silent.closed is None
    world.advance(1)
    assert silent.closed == halting.closed == "connect_timeout"


@case
def connect_bytes_max():
    world = World(limits={"connect_bytes_max": 100})
    fits = p.Connect(p.V311, "c", username="u" * 80)
    assert world.client(p.V311, sent=fits).welcome.code == 0
    large = Client(world, p.V311)
    large.send(p.Connect(p.V311, "d", username="u" * 90))
    assert large.closed == "packet_too_large"


@case
def packet_bytes_max():
    world = World(limits={"packet_bytes_max": 100})
    client = world.client(p.V5)
    client.publish("a", bytes(94))
    assert client.closed is None
    client.publish("a", bytes(95))
    assert closed(client) == ("packet_too_large", Reason.PACKET_TOO_LARGE)


@case
def partial_bytes_max():
    world = World(limits={"partial_bytes_max": 150})
    start = b"\x30\xbe\x01\x00\x01a" + bytes(84)
    clients = [world.client(p.V5, name).send_bytes(start) for name in "ab"]
    assert [client.closed for client in clients] == [None, "quota_exceeded"]


@case
def topic_bytes_max():
    world = World(limits={"topic_bytes_max": 10})
    client = world.client(p.V5)
    client.publish("t" * 10)
    assert client.closed is None
    client.publish("t" * 11)
    assert closed(client) == ("topic_name_invalid", Reason.TOPIC_NAME_INVALID)
    other = world.client(p.V5, "other")
    assert other.subscribe("t" * 10) == (1,)
    other.send(p.Subscribe(1, (p.Filter("t" * 11),)))
    assert closed(other) == ("topic_filter_invalid", Reason.TOPIC_FILTER_INVALID)


@case
def topic_levels_max():
    world = World(limits={"topic_levels_max": 3})
    client = world.client(p.V5)
    client.publish("a/b/c")
    assert client.closed is None
    client.publish("a/b/c/d")
    assert closed(client) == ("topic_name_invalid", Reason.TOPIC_NAME_INVALID)
    other = world.client(p.V5, "other")
    other.send(p.Subscribe(1, (p.Filter("a/+/c/#"),)))
    assert closed(other) == ("topic_filter_invalid", Reason.TOPIC_FILTER_INVALID)
    with pytest.raises(ProtocolError, match="levels"):
        world.publish("a/b/c/d", b"")


@case
def client_id_bytes_max():
    world = World(limits={"client_id_bytes_max": 4})
    assert world.client(p.V5, "üü").welcome.code == 0
    assert world.client(p.V5, "üüx").welcome.code == Reason.CLIENT_IDENTIFIER_NOT_VALID
    assert world.client(p.V311, "12345").welcome.code == 2


@case
def user_properties_max():
    world = World(limits={"user_properties_max": 2})
    client = world.client(p.V5)
    client.publish("a", user_property=(("k", "v"),) * 2)
    assert client.closed is None
    client.publish("a", user_property=(("k", "v"),) * 3)
    assert closed(client) == ("packet_too_large", Reason.PACKET_TOO_LARGE)


@case
def filters_per_packet_max():
    world = World(limits={"filters_per_packet_max": 3})
    client = world.client(p.V5)
    assert client.subscribe("a", "b", "c") == (1, 1, 1)
    client.send(p.Subscribe(1, tuple(map(p.Filter, "abcd"))))
    assert closed(client) == ("packet_too_large", Reason.PACKET_TOO_LARGE)
    other = world.client(p.V5, "other")
    other.send(p.Unsubscribe(1, tuple("abcd")))
    assert closed(other) == ("packet_too_large", Reason.PACKET_TOO_LARGE)


@case
def subscriptions_per_client_max():
    world = World(limits={"subscriptions_per_client_max": 2})
    client = world.client(p.V5)
    assert client.subscribe("a", "b", "c") == (1, 1, Reason.QUOTA_EXCEEDED)
    assert client.subscribe("a") == (1,)  # it replaces one
    assert world.hub.counters.refused == {"subscriptions_full": 1}


@case
def subscriptions_max():
    world = World(limits={"subscriptions_max": 3})
    assert world.client(p.V5, "one").subscribe("a", "b") == (1, 1)
    assert world.client(p.V5, "two").subscribe("a", "b") == (1, Reason.QUOTA_EXCEEDED)
    assert world.client(p.V311, "old").subscribe("a") == (0x80,)
    assert world.hub.counters.refused == {"subscriptions_full": 2}


@case
def sessions_max():
    world = World(limits={"sessions_max": 2})
    kept(world, p.V5, "absent").lose()
    kept(world, p.V5, "there")
    kept(world, p.V5, "new")
    assert sorted(world.hub.sessions) == ["new", "there"]
    assert world.hub.counters.ended == {"sessions_full": 1}
    assert kept(world, p.V5, "more").welcome.code == Reason.QUOTA_EXCEEDED
    assert kept(world, p.V311, "old").welcome.code == 3


@case
def session_expiry_s_max():
    world = World(limits={"session_expiry_s_max": 10})
    client = kept(world, p.V5)
    assert client.welcome.properties.session_expiry_interval == 10
    for version in (p.V5, p.V311):
        kept(world, version).lose()
        world.advance(9_999)
        assert world.hub.counters.sessions == 1
        world.advance(1)
        assert world.hub.counters.sessions == 0


@case
def will_delay_s_max():
    world = World(limits={"will_delay_s_max": 10})
    watcher = world.client(p.V5, "watcher")
    watcher.subscribe("w")
    late = p.Will("w", b"gone", properties=p.Properties(will_delay_interval=1000))
    kept(world, p.V5, will=late).lose()
    world.advance(9_999)
    assert watcher.take() == []
    world.advance(1)
    assert watcher.publishes() == [("w", b"gone")]


@case
def receive_max():
    world = World(complete=False, limits={"receive_max": 2})
    client = world.client(p.V5)
    assert client.welcome.properties.receive_maximum == 2
    for packet_id in (1, 2):
        client.publish("headwater/x", qos=1, packet_id=packet_id)
    assert (client.closed, client.reads) == (None, False)
    client.publish("headwater/x", qos=1, packet_id=3)
    assert closed(client) == ("receive_maximum_exceeded", Reason.RECEIVE_MAXIMUM_EXCEEDED)


@case
def pending_bytes_per_client_max():
    world = World(complete=False, limits={"pending_bytes_per_client_max": 100})
    client, other = world.client(p.V5), world.client(p.V5, "other")
    client.publish("headwater/x", bytes(99), qos=1, packet_id=1)
    assert client.reads
    client.publish("headwater/x", bytes(1), qos=1, packet_id=2)
    other.publish("headwater/x", bytes(1), qos=1)
    assert (client.reads, other.reads) == (False, True)
    world.complete(world.handed()[0])
    assert client.reads


@case
def pending_bytes_max():
    world = World(complete=False, limits={"pending_bytes_max": 100})
    clients = [world.client(p.V5, name) for name in "ab"]
    for client in clients:
        client.publish("headwater/x", bytes(60), qos=1)
    assert [client.reads for client in clients] == [True, False]
    for message in world.handed():
        world.complete(message)
    assert clients[1].reads


@case
def inflight_max():
    world = World(limits={"inflight_max": 2})
    client = world.client(p.V5, properties=p.Properties(receive_maximum=10))
    client.subscribe("a")
    for number in range(3):
        world.publish("a", b"%d" % number, qos=1)
    first, second = client.take()
    client.send(p.Puback(first.packet_id))
    assert client.publishes() == [("a", b"2")]
    assert second.payload == b"1"


@case
def queue_messages_max():
    world = World(limits={"queue_messages_max": 2})
    loose, firm = world.client(p.V5, "loose"), world.client(p.V5, "firm")
    loose.subscribe("a", qos=0)
    firm.subscribe("a", qos=1)
    for client in (loose, firm):
        client.stall()
    for _ in range(2):
        world.publish("a", b"x", qos=1)
    assert (loose.closed, firm.closed, world.hub.counters.dropped) == (None, None, {})
    world.publish("a", b"x", qos=1)
    assert world.hub.counters.dropped == {"queue_full": 1, "queue_overflow": 3}
    assert loose.closed is None
    assert (firm.closed, world.hub.counters.ended) == ("queue_overflow", {"queue_overflow": 1})


@case
def queue_bytes_max():
    world = World(limits={"queue_bytes_max": 3_000})
    client = world.client(p.V5)
    client.subscribe("a")
    for _ in range(2):
        world.publish("a", bytes(1000), qos=1)
    assert client.closed is None
    world.publish("a", bytes(1000), qos=1)
    assert client.closed == "queue_overflow"


@case
def queue_bytes_total_max():
    world = World(limits={"queue_bytes_total_max": 3_000})
    clients = [world.client(p.V5, name) for name in "abc"]
    for client in clients:
        client.subscribe("a")
    world.publish("a", bytes(1000), qos=1)
    assert [client.closed for client in clients] == [None, None, "queue_overflow"]


@case
def unsent_bytes_max():
    world = World(limits={"unsent_bytes_max": 1_000})
    client = world.client(p.V5)
    for number in range(10):
        world.publish(f"r/{number}", bytes(300), retain=True)
    client.takes = False  # its socket asks for no more after the first piece
    client.send(p.Subscribe(1, (p.Filter("r/#"),)))
    assert client.bytes_got < 1_000 + 400
    client.flow()
    assert len(client.publishes()) == 10


@case
def retained_messages_max():
    world = World(limits={"retained_messages_max": 1})
    client = world.client(p.V5)
    client.publish("a", b"x", qos=1, retain=True)
    client.publish("b", b"x", qos=1, retain=True)
    assert [packet.code for packet in client.take()] == [0x10, Reason.QUOTA_EXCEEDED]
    assert world.hub.counters.refused == {"retained_full": 1}


@case
def retained_bytes_max():
    world = World(limits={"retained_bytes_max": 1_500})
    client = world.client(p.V5)
    for topic in "ab":
        client.publish(topic, bytes(1000), qos=1, retain=True)
    assert [packet.code for packet in client.take()] == [0x10, Reason.QUOTA_EXCEEDED]
    assert world.hub.counters.retained_bytes <= 1_500


@case
def topic_alias_max():
    world = World(limits={"topic_alias_max": 2})
    client = world.client(p.V5)
    assert client.welcome.properties.topic_alias_maximum == 2
    client.publish("a", topic_alias=2)
    assert client.closed is None
    client.publish("a", topic_alias=3)
    assert closed(client) == ("topic_alias_invalid", Reason.TOPIC_ALIAS_INVALID)


@case
def topics_cached_max():
    world = World(limits={"topics_cached_max": 3})
    client = world.client(p.V311)
    client.subscribe("#", qos=0)
    for number in range(20):
        client.publish(f"t/{number}", b"x")
        assert len(world.hub.topics) <= 3
        assert len(world.hub.router.routes) <= 3
    assert len(client.publishes()) == 20


@case
def password_checks_max():
    """How many run at once is the driver's: see test_server."""
    assert MqttLimits().password_checks_max == 2
    with pytest.raises(ValueError, match="password_checks_max"):
        MqttLimits(password_checks_max=0)


@case
def login_failures_max():
    logins = Logins(MqttLimits(login_failures_max=2))
    logins.failed("10.0.0.1:1", 0)
    assert not logins.barred("10.0.0.1:2", 0)
    logins.failed("10.0.0.1:3", 0)
    assert logins.barred("10.0.0.1:4", 0)
    assert not logins.barred("10.0.0.2:4", 0)


@case
def login_window_ms():
    logins = Logins(MqttLimits(login_failures_max=1, login_window_ms=100))
    logins.failed("[::1]:1", 0)
    assert [logins.barred("[::1]:2", now_ms) for now_ms in (0, 99, 100)] == [True, True, False]


@case
def login_addresses_max():
    logins = Logins(MqttLimits(login_failures_max=1, login_addresses_max=2))
    for number in range(3):
        logins.failed(f"10.0.0.{number}:1", 0)
    assert [logins.barred(f"10.0.0.{n}:1", 0) for n in range(3)] == [False, True, True]


@case
def keep_alive_s_max():
    """By default a client has the one that it asks for; see test_aliases for the rest."""
    assert MqttLimits().keep_alive_s_max == 0


@case
def sent_aliases_max():
    """See test_aliases."""
    world = World(limits={"sent_aliases_max": 1})
    client = world.client(p.V5, properties=p.Properties(topic_alias_maximum=9))
    client.subscribe("#")
    for topic in ("a", "b"):
        world.publish(topic, b"x")
    assert [one.properties.topic_alias if one.properties else 0 for one in client.take()] == [1, 0]


@case
def linger_bytes_max():
    """What is read after the end is the socket's business: see test_turns."""
    assert MqttLimits().linger_bytes_max > MqttLimits().unsent_bytes_max


@case
def close_timeout_ms():
    """How long it takes is the driver's: see test_server."""
    assert 0 < MqttLimits().close_timeout_ms <= 10_000


@case
def slow_publisher_ms():
    """From half of a queue of eight on; who reads no further for a while reads on after it."""
    world = World(limits={"queue_messages_max": 8, "slow_publisher_ms": 1000})
    reader = world.client(p.V5, "reader", properties=p.Properties(receive_maximum=1))
    reader.subscribe("a", qos=1)
    writer, other = world.client(p.V5, "writer"), world.client(p.V5, "other")
    for number in range(1, 6):
        writer.publish("a", b"x", qos=1, packet_id=number)
    assert writer.reads is True
    writer.publish("a", b"x", qos=1, packet_id=6)
    assert (writer.reads, other.reads) == (False, True)
    world.advance(999)
    assert writer.reads is False
    world.advance(20)
    assert writer.reads is True
    writer.publish("a", b"x", qos=1, packet_id=7)
    assert writer.reads is True  # it was in vain
    assert world.hub.counters.slowed == 1


@case
def unkept_bytes_max():
    """Who publishes is read no further; what was read is taken. 1,000 is less than all of it."""
    for most, reads in ((100_000, True), (1000, False)):
        world = World(disk=Disk(), limits={"unkept_bytes_max": most})
        kept(world, p.V5, "w").subscribe("a", qos=1)
        client = world.client(p.V5)
        world.syncs = False
        client.send(*(p.Publish("a", b"x" * 900, 1, packet_id=number) for number in range(1, 9)))
        assert client.reads is reads
        world.sync()
        assert client.reads is True
        assert len(client.take()) == 8


@pytest.mark.parametrize("name", CASES)
def test_what_is_at_the_limit_passes_and_what_is_beyond_meets_its_policy(name):
    CASES[name]()


def test_no_limit_is_without_its_case():
    assert set(CASES) == {item.name for item in fields(MqttLimits)}


def test_the_defaults_together_fit_on_a_small_machine():
    """All that clients can make the broker keep, at once: less than a Raspberry Pi has."""
    limits = MqttLimits()
    kept_bytes = (
        limits.partial_bytes_max
        + limits.pending_bytes_max
        + 2 * limits.unkept_bytes_max  # what gathers, and what is being written
        + limits.queue_bytes_total_max
        + limits.retained_bytes_max
        + limits.connections_max * limits.unsent_bytes_max
        + limits.password_checks_max * 16 * MiB
        + limits.subscriptions_max * 600
        + limits.topics_cached_max * (limits.topic_bytes_max + 300)
        + limits.login_addresses_max * 300
    )
    assert kept_bytes < 600 * MiB
