"""Topics under the prefix: handed up in batches, acknowledged when the application says so."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import ProtocolError, Reason
from tests.broker.mqtt.world import HEADWATER, VERSIONS, World

EVENT = "headwater/events/Temp/s1"


def firm(number, topic=EVENT, payload=b"{}"):
    return p.Publish(topic, payload, 1, packet_id=number)


@VERSIONS
def test_one_read_gives_one_batch_in_order(version):
    world = World()
    client = world.client(version)
    client.send(*(firm(n, payload=b"%d" % n) for n in range(1, 8)), p.Publish("plain", b""))
    client.send(p.Publish(EVENT, b"8"))
    assert [[m.payload for m in batch] for batch in world.batches] == [
        [b"1", b"2", b"3", b"4", b"5", b"6", b"7"],
        [b"8"],
    ]


@VERSIONS
def test_a_publisher_hears_nothing_before_the_application_is_done(version):
    world = World(complete=False)
    client = world.client(version)
    client.send(firm(1))
    assert client.take() == []
    (message,) = world.handed()
    world.complete(message)
    assert client.take() == [p.Puback(1)]
    world.complete(message)
    assert client.take() == []


@VERSIONS
def test_pubacks_leave_in_the_order_of_their_publishes(version):
    """MQTT-4.6.0-2, also past messages that nobody has to complete."""
    world = World(complete=False)
    client = world.client(version)
    client.subscribe("plain", qos=0)
    client.send(firm(1), firm(2, "plain"), firm(3), firm(4, "plain"))
    assert client.take() == [p.Publish("plain", b"{}")] * 2
    first, second = world.handed()
    world.complete(second)
    assert client.take() == []
    world.complete(first)
    assert client.take() == [p.Puback(1), p.Puback(2), p.Puback(3), p.Puback(4)]


@pytest.mark.parametrize("code", [Reason.NOT_AUTHORIZED, Reason.PAYLOAD_FORMAT_INVALID])
def test_a_lasting_refusal_is_told_in_v5_and_acknowledged_in_311(code):
    world = World(complete=False)
    for version, told in ((p.V5, code), (p.V311, 0)):
        client = world.client(version)
        client.send(firm(1))
        world.complete(world.handed()[0], code)
        assert client.take() == [p.Puback(1, told)]
        assert client.closed is None
    assert world.hub.counters.refused == {"by_application": 2}


@pytest.mark.parametrize("code", [Reason.QUOTA_EXCEEDED, Reason.UNSPECIFIED_ERROR])
def test_a_passing_refusal_is_told_in_v5_and_closes_in_311(code):
    """A PUBACK would tell a 3.1.1 client that its message was taken."""
    world = World(complete=False)
    five, old = world.client(p.V5, "five"), world.client(p.V311, "old")
    five.send(firm(1))
    old.send(firm(1))
    for message in world.handed():
        world.complete(message, code)
    assert five.take() == [p.Puback(1, code)]
    assert (old.take(), old.closed) == ([], "refused_by_application")


def test_a_completion_after_the_publisher_has_gone_is_nothing():
    world = World(complete=False)
    client = world.client(p.V311)
    client.send(firm(1))
    client.lose()
    back = world.client(p.V311)
    world.complete(world.handed()[0])
    assert back.take() == []
    assert world.hub.counters.pending_bytes == 0


@VERSIONS
def test_what_the_publisher_said_comes_with_the_message(version):
    world = World()
    client = world.client(version, "sensor-7")
    client.send(p.Publish(EVENT, b"{}", 1, True, True, 9))
    (message,) = world.handed()
    assert (message.topic, message.payload, message.qos) == (EVENT, b"{}", 1)
    assert (message.retain, message.dup) == (True, True)
    assert (message.client.client_id, message.client.version) == ("sensor-7", version)
    assert message.response_topic is message.correlation_data is None


def test_response_topic_and_correlation_data_come_with_the_message():
    world = World()
    client = world.client(p.V5)
    client.publish("headwater/submit/me/1", b"", response_topic="r/me", correlation_data=b"\x07")
    (message,) = world.handed()
    assert (message.response_topic, message.correlation_data) == ("r/me", b"\x07")


@VERSIONS
def test_events_reach_clients_that_subscribe_to_them_and_other_input_does_not(version):
    world = World(complete=False)
    watcher, client = world.client(version, "w"), world.client(version)
    watcher.subscribe("headwater/#")
    client.publish(EVENT, b"{}", qos=1)
    client.publish("headwater/submit/me/1", b"text")
    assert watcher.publishes() == [(EVENT, b"{}")]
    assert len(world.handed()) == 2


@VERSIONS
def test_clients_cannot_retain_or_speak_under_the_prefix_for_the_application(version):
    world = World()
    watcher, client = world.client(version, "w"), world.client(version)
    watcher.subscribe("headwater/#")
    client.publish("headwater/results/me/Frost", b"forged", retain=True)
    client.publish(EVENT, b"{}", retain=True)
    assert watcher.publishes() == [(EVENT, b"{}")]
    assert world.hub.retained("#") == []
    assert len(world.handed()) == 2


@VERSIONS
def test_the_application_publishes_to_subscribers_and_reads_what_it_retained(version):
    world = World()
    client = world.client(version)
    client.subscribe("headwater/results/me/#")
    assert world.publish("headwater/results/me/Frost", b"{}", qos=1) == 1
    assert world.publish("headwater/results/you/Frost", b"{}", qos=1) == 0
    assert client.publishes() == [("headwater/results/me/Frost", b"{}")]
    assert world.hub.retained("headwater/status/+") == []
    world.publish("headwater/status/b1", b"ready", retain=True)
    (kept,) = world.hub.retained("headwater/status/+")
    assert (kept.topic, kept.payload) == ("headwater/status/b1", b"ready")
    assert world.handed() == []


@pytest.mark.parametrize("topic", ["", "a/#", "/" * 100, "x" * 70_000, "a\0", "\ud800"])
def test_the_application_is_told_of_a_topic_that_is_none(topic):
    with pytest.raises(ProtocolError):
        World().publish(topic, b"")


def test_the_application_is_told_of_properties_that_cannot_be_written():
    world = World()
    client = world.client(p.V5)
    client.subscribe("a")
    with pytest.raises(ProtocolError, match="cannot be written"):
        world.publish("a", b"", properties=p.Properties(content_type="x" * 70_000))
    assert client.take() == []


@VERSIONS
def test_a_client_with_too_much_pending_is_not_read_until_it_is_done(version):
    world = World(complete=False, limits={"receive_max": 4})
    client, other = world.client(version), world.client(version, "other")
    client.send(*(firm(n) for n in range(1, 4)))
    assert client.reads
    client.send(firm(4))
    assert (client.reads, other.reads) == (False, True)
    messages = world.handed()
    world.complete(messages[0])
    assert client.reads
    assert client.take() == [p.Puback(1)]


def test_a_v5_client_that_ignores_the_receive_maximum_is_closed():
    """MQTT-3.3.4-7."""
    world = World(complete=False, limits={"receive_max": 4})
    client = world.client(p.V5)
    client.send(*(firm(n) for n in range(1, 6)))
    assert client.closed == "receive_maximum_exceeded"
    assert client.take() == [p.Disconnect(Reason.RECEIVE_MAXIMUM_EXCEEDED)]


def test_a_client_is_held_back_for_pending_bytes_and_all_for_those_of_all():
    world = World(
        complete=False,
        limits={"pending_bytes_per_client_max": 3000, "pending_bytes_max": 5000},
    )
    one, two, idle = (world.client(p.V311, name) for name in ("one", "two", "idle"))
    one.send(firm(1, payload=bytes(3000)))
    assert (one.reads, two.reads) == (False, True)
    two.send(firm(1, payload=bytes(2000)))
    assert (one.reads, two.reads, idle.reads) == (False, False, True)
    first, second = world.handed()
    world.complete(second)
    assert (one.reads, two.reads) == (False, False)
    world.complete(first)
    assert (one.reads, two.reads) == (True, True)


def test_the_loss_of_a_client_with_much_pending_lets_others_go_on():
    world = World(complete=False, limits={"pending_bytes_max": 2000})
    one, two = world.client(p.V311, "one"), world.client(p.V311, "two")
    one.send(firm(1, payload=bytes(3000)))
    two.send(firm(1))
    assert not two.reads
    one.lose()
    assert two.reads


def test_a_held_back_client_does_not_run_into_its_keep_alive():
    world = World(complete=False, limits={"receive_max": 1})
    client = world.client(p.V311, keep_alive_s=1)
    client.send(firm(1))
    world.advance(60_000)
    assert client.closed is None
    world.complete(world.handed()[0])
    world.advance(3_000)
    assert client.closed == "keep_alive_timeout"


def test_the_application_may_hold_the_intake_and_plain_clients_go_on():
    world = World()
    sensor, plain = world.client(p.V311, "sensor"), world.client(p.V311, "plain")
    sensor.publish(EVENT, b"1")
    world.hub.hold_intake(True)
    sensor.publish(EVENT, b"2")
    plain.publish("a", b"")
    assert (sensor.reads, plain.reads) == (False, True)
    world.hub.hold_intake(False)
    world.perform()
    assert sensor.reads


def test_the_prefix_of_the_tests_shows_events_alone():
    assert HEADWATER.shown == ("headwater/events/#",)


def test_counters_are_plain_numbers_and_a_copy():
    world = World()
    client = world.client(p.V311)
    client.publish(EVENT, b"{}")
    before = world.hub.counters.as_dict()
    client.publish("$SYS/x", b"")
    assert (before["messages_in"], before["handed_up"], before["refused"]) == (1, 1, {})
    assert world.hub.counters.as_dict()["messages_in"] == 2
