"""Who publishes faster than a subscriber takes it is slowed, and told where that did not help."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from tests.broker.mqtt.world import VERSIONS, World, kept


def reader_of(world, name="reader", topic="a", at_once=1):
    reader = world.client(p.V5, name, properties=p.Properties(receive_maximum=at_once))
    reader.subscribe(topic, qos=1)
    return reader


def fill(world, writer, count, topic="a"):
    for number in range(1, count + 1):
        writer.publish(topic, b"%d" % number, qos=1, packet_id=number)


def take_one(reader):
    (got,) = [packet for packet in reader.take() if isinstance(packet, p.Publish)]
    reader.send(p.Puback(got.packet_id))


@pytest.fixture
def world():
    return World(limits={"queue_messages_max": 20})


def test_a_publisher_goes_on_when_the_subscriber_has_got_on(world):
    reader, writer = reader_of(world), world.client(p.V5, "writer")
    fill(world, writer, 12)
    assert writer.reads is False
    for waiting in range(10, 5, -1):
        assert (writer.reads, waiting) == (False, waiting)
        take_one(reader)
        world.advance(20)
    take_one(reader)
    world.advance(20)
    assert writer.reads is True
    fill(world, writer, 10)
    assert writer.reads is False  # it is worth while again
    assert world.hub.counters.slowed == 2
    assert world.hub.counters.ended == {}


def test_who_publishes_elsewhere_is_not_slowed(world):
    reader_of(world)
    writer, other = world.client(p.V5, "writer"), world.client(p.V5, "other")
    reader_of(world, "another", "b")
    fill(world, writer, 12)
    fill(world, other, 8, "b")
    assert (writer.reads, other.reads) == (False, True)


def test_nobody_is_slowed_for_a_client_that_is_away_or_for_qos_0_or_for_itself(world):
    away = kept(world, p.V5, "away")
    away.subscribe("away", qos=1)
    away.lose()
    writer = world.client(p.V5, "writer")
    fill(world, writer, 15, "away")
    assert writer.reads is True
    reader_of(world)
    for _ in range(100):
        writer.publish("a", b"x")
    assert writer.reads is True
    alone = world.client(p.V5, "alone", properties=p.Properties(receive_maximum=1))
    alone.subscribe("alone", qos=1)
    fill(world, alone, 15, "alone")
    assert alone.reads is True


def test_of_a_group_one_that_keeps_up_is_enough(world):
    slow = reader_of(world, "slow", "$share/g/a")
    quick = world.client(p.V5, "quick")
    quick.subscribe("$share/g/a", qos=1)
    writer = world.client(p.V5, "writer")
    fill(world, writer, 40)
    assert writer.reads is True
    quick.send(*(p.Puback(number) for number in range(1, 40)))
    quick.lose()
    fill(world, writer, 12)
    assert writer.reads is False
    assert slow.closed is None


def test_of_a_group_one_that_is_far_behind_slows_nobody_while_another_is_not(world):
    slow = reader_of(world, "slow", "$share/g/a")
    slow.subscribe("b", qos=1)
    quick = world.client(p.V5, "quick")
    quick.subscribe("$share/g/a", qos=1)
    writer, other = world.client(p.V5, "writer"), world.client(p.V5, "other")
    fill(world, other, 12, "b")
    assert other.reads is False
    fill(world, writer, 12)
    assert writer.reads is True


def test_a_publisher_that_leaves_meanwhile_leaves_nothing_behind(world):
    reader_of(world)
    writer = world.client(p.V5, "writer")
    fill(world, writer, 12)
    writer.lose()
    world.advance(10_000)
    assert world.hub.slowing._slowed == {}
    assert world.hub.next_wake() is None


def test_a_subscriber_that_leaves_lets_its_publishers_go_on(world):
    reader, writer = reader_of(world), world.client(p.V5, "writer")
    fill(world, writer, 12)
    reader.lose()
    world.advance(20)
    assert writer.reads is True


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_a_publisher_is_told_of_the_message_for_which_a_session_ended(version, qos):
    world = World(limits={"queue_messages_max": 2})
    for name in ("full", "well"):
        one = kept(world, p.V5, name)
        one.subscribe("a", qos=2)
        if name == "full":
            one.lose()
    writer = world.client(version, "writer")
    for packet_id in (1, 2, 3, 4):
        writer.publish("a", b"%d" % packet_id, qos=qos, packet_id=packet_id)
    told = Reason.QUOTA_EXCEEDED if version == p.V5 else 0
    assert [packet.code for packet in writer.take()] == [0, 0, told, 0]
    assert [payload for _, payload in one.publishes()] == [b"1", b"2", b"3", b"4"]
    assert world.hub.counters.ended == {"queue_overflow": 1}
    assert world.hub.counters.dropped == {"queue_overflow": 3}
    assert not kept(world, p.V5, "full").welcome.session_present
