"""Topics that the application wants as well: for clients they are as plain as before."""

from broker.mqtt.codec import packets as p
from broker.mqtt.routing.router import Prefix
from tests.broker.mqtt.world import VERSIONS, Disk, World, kept

MAPPED = Prefix("headwater", (), ("home/+", "headwater/#"))


@VERSIONS
def test_a_mapped_message_goes_to_subscribers_at_once_and_is_acknowledged_when_it_is_taken(version):
    world = World(complete=False, prefix=MAPPED)
    one, other = world.client(version, "one"), world.client(version, "other")
    other.subscribe("home/#")
    one.publish("home/lamp", b"1", qos=1, packet_id=7)
    assert other.publishes() == [("home/lamp", b"1")]
    assert one.take() == []
    (message,) = world.handed()
    assert (message.topic, message.payload) == ("home/lamp", b"1")
    world.complete(message)
    assert one.take_one(p.Puback).packet_id == 7


@VERSIONS
def test_it_is_acknowledged_when_it_is_on_disk_for_the_sessions_that_are_kept(version):
    world = World(complete=False, prefix=MAPPED, disk=Disk())
    one, other = world.client(version, "one"), kept(world, version, "other")
    other.subscribe("home/#")
    other.lose()
    world.syncs = False
    one.publish("home/lamp", b"1", qos=1, packet_id=7)
    world.complete(*world.handed())
    assert one.take() == []
    world.sync()
    assert one.take_one(p.Puback).packet_id == 7


@VERSIONS
def test_what_is_retained_stays_retained(version):
    world = World(prefix=MAPPED)
    one, late = world.client(version, "one"), world.client(version, "late")
    one.publish("home/lamp", b"1", retain=True)
    late.subscribe("home/lamp")
    world.advance(1)
    assert late.publishes() == [("home/lamp", b"1")]
    assert [one.topic for one in world.handed()] == ["home/lamp"]


@VERSIONS
def test_what_finds_no_room_to_be_retained_is_refused_and_not_handed_up(version):
    world = World(prefix=MAPPED, limits={"retained_messages_max": 1})
    one = world.client(version, "one")
    one.publish("other", b"1", retain=True)
    one.publish("home/lamp", b"1", retain=True)
    assert world.handed() == []
    assert world.hub.counters.refused["retained_full"] == 1


@VERSIONS
def test_other_topics_and_the_applications_own_are_no_different(version):
    world = World(prefix=MAPPED)
    one, other = world.client(version, "one"), world.client(version, "other")
    other.subscribe("#")
    one.publish("home/lamp/set", b"1")
    one.publish("headwater/events/T/s", b"1")
    assert other.publishes() == [("home/lamp/set", b"1")]
    assert [one.topic for one in world.handed()] == ["headwater/events/T/s"]
