"""Publish and subscribe between clients: QoS, retained messages, options, wills."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import ProtocolError, Reason
from tests.broker.mqtt.world import VERSIONS, World, kept

# --- QoS --------------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize(("published", "granted"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_a_message_arrives_at_the_lesser_qos(version, published, granted):
    """MQTT-3.8.4-8 (3.8.4-6 of 3.1.1)."""
    world = World()
    client, publisher = world.client(version, "s"), world.client(version, "p")
    assert client.subscribe("a/+", qos=granted) == (granted,)
    publisher.publish("a/b", b"x", qos=published)
    got = client.take_one(p.Publish)
    assert (got.topic, got.payload, got.qos) == ("a/b", b"x", min(published, granted))
    assert (got.retain, got.dup, got.packet_id != 0) == (False, False, bool(got.qos))
    assert publisher.take() == ([p.Puback(1)] if published else [])


@pytest.mark.parametrize("speaks", [p.V311, p.V5])
@pytest.mark.parametrize("hears", [p.V311, p.V5])
def test_clients_of_both_versions_hear_each_other(speaks, hears):
    world = World()
    client, publisher = world.client(hears, "s"), world.client(speaks, "p")
    client.subscribe("a")
    for qos in (0, 1):
        publisher.publish("a", b"x" * 3000, qos=qos)
    assert client.publishes() == [("a", b"x" * 3000)] * 2


@VERSIONS
@pytest.mark.parametrize("topic", ["a", "headwater/events/T/s"])
def test_a_message_at_qos_2_is_taken_once_however_often_it_comes(topic, version):
    """MQTT-4.3.3-2 (4.3.3-10): a repetition before its PUBREL is not taken again."""
    world = World()
    watcher = world.client(p.V5, "watcher")
    assert watcher.subscribe(topic, qos=2) == (2,)
    client = kept(world, version)
    client.publish(topic, b"x", qos=2, packet_id=7)
    assert client.take() == [p.Pubrec(7)]
    client.send(p.Publish(topic, b"x", 2, dup=True, packet_id=7))
    assert client.take() == [p.Pubrec(7)]
    client.lose()
    client = kept(world, version)
    client.send(p.Publish(topic, b"x", 2, dup=True, packet_id=7))
    assert client.take() == [p.Pubrec(7)]
    got = watcher.take_one(p.Publish)
    assert (got.payload, got.qos) == (b"x", 2)
    client.send(p.Pubrel(7))
    assert client.take() == [p.Pubcomp(7)]
    client.publish(topic, b"y", qos=2, packet_id=7)
    assert client.take() == [p.Pubrec(7)]
    assert watcher.take_one(p.Publish).payload == b"y"
    assert [m.qos for m in world.handed()] == ([2, 2] if topic != "a" else [])


@VERSIONS
def test_a_subscriber_gets_a_message_at_qos_2_once_and_hears_it_is_over(version):
    """MQTT-4.3.3-1 to -8, 4.4.0-1: the same identifier, and after PUBREC never the message."""
    world = World()
    client = kept(world, version)
    client.subscribe("a", qos=2)
    world.publish("a", b"x", qos=2)
    sent = client.take_one(p.Publish)
    assert (sent.qos, sent.dup) == (2, False)
    client.lose()
    client = kept(world, version)
    again = client.take_one(p.Publish)
    assert (again.packet_id, again.dup, again.qos) == (sent.packet_id, True, 2)
    client.send(p.Pubrec(sent.packet_id))
    assert client.take() == [p.Pubrel(sent.packet_id)]
    client.send(p.Pubrec(sent.packet_id))
    assert client.take() == [p.Pubrel(sent.packet_id)]
    client.lose()
    client = kept(world, version)
    assert client.take() == [p.Pubrel(sent.packet_id)]
    client.send(p.Pubcomp(sent.packet_id))
    client.lose()
    assert kept(world, version).take() == []
    assert world.hub.counters.confirmed == 1


def test_an_identifier_is_free_again_only_after_pubcomp():
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a", qos=2)
    client.connection.session.outgoing._last_id = 0xFFFE
    world.publish("a", b"1", qos=2)
    client.send(p.Pubrec(0xFFFF))
    client.connection.session.outgoing._last_id = 0xFFFE
    world.publish("a", b"2", qos=2)
    ids = [x.packet_id for x in client.take() if isinstance(x, p.Publish)]
    assert ids == [0xFFFF, 1]


def test_what_is_being_released_counts_towards_the_receive_maximum():
    """MQTT 5, section 4.9: the quota comes back with PUBCOMP."""
    world = World()
    client = world.client(p.V5, properties=p.Properties(receive_maximum=2))
    client.subscribe("a", qos=2)
    for payload in (b"1", b"2", b"3", b"4"):
        world.publish("a", payload, qos=2)
    assert client.publishes() == [("a", b"1"), ("a", b"2")]
    client.send(p.Pubrec(1), p.Pubrec(2))
    assert client.take() == [p.Pubrel(1), p.Pubrel(2)]
    client.send(p.Pubcomp(1))
    assert client.publishes() == [("a", b"3")]
    client.send(p.Pubrec(2, Reason.QUOTA_EXCEEDED))
    client.send(p.Pubcomp(2))
    assert client.publishes()[-1] == ("a", b"4")


def test_a_message_at_qos_2_that_the_client_refuses_is_done_with():
    """MQTT-4.3.3-4: after a PUBREC of failure there is no PUBREL."""
    world = World()
    client = world.client(p.V5)
    client.subscribe("a", qos=2)
    world.publish("a", b"x", qos=2)
    packet_id = client.take_one(p.Publish).packet_id
    client.send(p.Pubrec(packet_id, Reason.NOT_AUTHORIZED))
    assert client.take() == []
    assert world.hub.counters.refused == {"by_client": 1}


@VERSIONS
def test_a_pubrec_of_a_message_that_nobody_knows_is_answered(version):
    """MQTT 5, section 3.6.2.1: identifier not found; 3.1.1 lets it go."""
    client = World().client(version)
    client.send(p.Pubrec(9), p.Pubcomp(9), p.Puback(9))
    code = Reason.PACKET_IDENTIFIER_NOT_FOUND if version == p.V5 else 0
    assert client.take() == [p.Pubrel(9, code)]
    assert client.closed is None


def test_a_puback_does_not_end_a_message_at_qos_2():
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a", qos=2)
    world.publish("a", b"x", qos=2)
    packet_id = client.take_one(p.Publish).packet_id
    client.send(p.Puback(packet_id))
    assert world.hub.counters.confirmed == 0
    client.lose()
    assert kept(world, p.V5).take_one(p.Publish).payload == b"x"


def test_a_message_at_qos_2_that_was_begun_does_not_expire():
    """Its identifier is in the client's memory until the PUBREL: it must be brought to its end."""
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a", qos=2)
    late = p.Properties(message_expiry_interval=1)
    world.publish("a", b"x", qos=2, properties=late)
    client.lose()
    world.advance(5000)
    again = kept(world, p.V5).take_one(p.Publish)
    assert again.dup
    assert again.properties.message_expiry_interval == 0


def test_what_was_sent_at_qos_2_goes_to_no_other_of_a_group():
    """MQTT-4.8.2-5; what was not sent yet does."""
    world = World()
    one = world.client(p.V5, "one", properties=p.Properties(receive_maximum=1))
    one.subscribe("$share/g/a", qos=2)
    world.publish("a", b"sent", qos=2)
    world.publish("a", b"waits", qos=2)
    assert one.publishes() == [("a", b"sent")]
    two = world.client(p.V5, "two")
    two.subscribe("$share/g/a", qos=2)
    one.lose()
    assert two.publishes() == [("a", b"waits")]


@VERSIONS
def test_a_message_that_the_application_still_has_is_not_handed_up_again(version):
    """The connection broke meanwhile; the new one hears what became of it."""
    world = World(complete=False)
    client = kept(world, version)
    client.publish("headwater/x", b"1", qos=2, packet_id=5)
    client.lose()
    client = kept(world, version)
    client.send(p.Publish("headwater/x", b"1", 2, dup=True, packet_id=5))
    client.send(p.Publish("headwater/x", b"1", 2, dup=True, packet_id=5))
    (message,) = world.handed()
    assert client.take() == []
    world.complete(message)
    assert client.take() == [p.Pubrec(5)]
    client.send(p.Publish("headwater/x", b"1", 2, dup=True, packet_id=5))
    assert client.take() == [p.Pubrec(5)]
    assert world.handed() == []


def test_a_message_that_was_completed_for_a_client_that_is_gone_is_not_taken_again():
    world = World(complete=False)
    client = kept(world, p.V5)
    client.publish("headwater/x", b"1", qos=2, packet_id=5)
    client.lose()
    (message,) = world.handed()
    world.complete(message)
    client = kept(world, p.V5)
    client.send(p.Publish("headwater/x", b"1", 2, dup=True, packet_id=5))
    assert client.take() == [p.Pubrec(5)]
    assert world.handed() == []


def test_a_refusal_at_qos_2_has_its_reason_and_frees_the_identifier():
    """MQTT-4.3.3-9: a PUBREC of 128 or more ends it."""
    world = World(complete=False)
    client = kept(world, p.V5)
    for payload in (b"1", b"2"):
        client.publish("headwater/x", payload, qos=2, packet_id=5)
        (message,) = world.handed()
        assert message.payload == payload
        world.complete(message, Reason.PAYLOAD_FORMAT_INVALID)
        assert client.take() == [p.Pubrec(5, Reason.PAYLOAD_FORMAT_INVALID)]
    client.publish("$SYS/x", b"3", qos=2, packet_id=6)
    assert client.take() == [p.Pubrec(6, Reason.NOT_AUTHORIZED)]


def test_a_qos_2_message_waits_for_the_application_and_one_refused_may_come_again():
    world = World(complete=False)
    client = kept(world, p.V311)
    client.publish("headwater/x", b"1", qos=2, packet_id=1)
    client.publish("a", b"2", qos=2, packet_id=2)
    assert client.take() == []
    (message,) = world.handed()
    world.complete(message)
    assert client.take() == [p.Pubrec(1), p.Pubrec(2)]
    client.publish("headwater/x", b"3", qos=2, packet_id=3)
    (message,) = world.handed()
    world.complete(message, Reason.SERVER_BUSY)
    assert client.closed == "refused_by_application"
    client = kept(world, p.V311)
    client.send(p.Publish("headwater/x", b"3", 2, dup=True, packet_id=3))
    assert [message.payload for message in world.handed()] == [b"3"]


def test_qos_2_messages_that_are_never_released_are_bounded():
    world = World(limits={"receive_max": 5})
    client = world.client(p.V311)
    for packet_id in range(1, 6):
        client.publish("a", qos=2, packet_id=packet_id)
    assert (len(client.take()), client.closed) == (5, None)
    client.publish("a", qos=2, packet_id=6)
    assert client.closed == "receive_maximum_exceeded"


def test_a_v5_publisher_hears_that_nobody_listened():
    client = World().client(p.V5)
    client.publish("a", b"x", qos=1)
    assert client.take() == [p.Puback(1, Reason.NO_MATCHING_SUBSCRIBERS)]


@VERSIONS
def test_messages_of_one_publisher_arrive_in_order(version):
    """MQTT-4.6.0-6."""
    world = World()
    client, publisher = world.client(version, "s"), world.client(version, "p")
    client.subscribe("#")
    sent = [("a", b"%d" % number) for number in range(50)]
    publisher.send(*(p.Publish(t, x, 1, packet_id=n + 1) for n, (t, x) in enumerate(sent)))
    got = client.take()
    assert [(x.topic, x.payload) for x in got] == sent
    assert len({x.packet_id for x in got}) == 50
    assert [x.packet_id for x in publisher.take()] == list(range(1, 51))


@VERSIONS
def test_what_was_not_acknowledged_is_sent_again_first_and_marked(version):
    """MQTT-4.4.0-1, 3.3.1-1, 4.6.0-1."""
    world = World()
    client = kept(world, version)
    client.subscribe("a")
    for payload in (b"1", b"2", b"3"):
        world.publish("a", payload, qos=1)
    ids = [packet.packet_id for packet in client.take()]
    client.send(p.Puback(ids[1]))
    client.lose()
    world.publish("a", b"4", qos=1)
    back = kept(world, version)
    got = back.take()
    assert [(x.payload, x.dup) for x in got] == [(b"1", True), (b"3", True), (b"4", False)]
    assert [x.packet_id for x in got[:2]] == [ids[0], ids[2]]
    back.send(*(p.Puback(x.packet_id) for x in got))
    back.lose()
    assert kept(world, version).take() == []
    counters = world.hub.counters
    assert (counters.sent, counters.resent, counters.confirmed) == (4, 2, 4)


def test_a_session_may_be_taken_up_in_the_other_version():
    world = World()
    client = kept(world, p.V311)
    client.subscribe("a")
    world.publish("a", b"1", qos=1)
    client.lose()
    back = kept(world, p.V5)
    assert back.welcome.session_present
    assert back.take_one(p.Publish).dup


def test_no_more_is_in_flight_than_the_client_allows():
    """MQTT-3.3.4-9 and 4.9.0-2."""
    world = World()
    client = world.client(p.V5, properties=p.Properties(receive_maximum=3))
    client.subscribe("a")
    for number in range(8):
        world.publish("a", b"%d" % number, qos=1)
    assert world.publish("a", b"free", qos=0) == 1
    got = client.take()
    assert [x.payload for x in got] == [b"0", b"1", b"2", b"free"]
    seen = [b"0", b"1", b"2"]
    waiting = [x for x in got if x.qos]
    while waiting:
        client.send(p.Puback(waiting.pop(0).packet_id))
        fresh = client.take()
        seen += [x.payload for x in fresh]
        waiting += fresh
        assert len(waiting) <= 3
    assert seen == [b"%d" % number for number in range(8)]


def test_packet_identifiers_in_use_are_passed_over():
    """MQTT-2.2.1-4."""
    world = World(limits={"inflight_max": 65_535, "queue_messages_max": 70_000})
    client = world.client(p.V311)
    client.subscribe("a")
    first = []
    for _ in range(10):
        world.publish("a", b"", qos=1)
        first.append(client.take_one(p.Publish).packet_id)
    for packet_id in first[:3]:
        client.send(p.Puback(packet_id))
    session = world.hub.sessions["c"].outgoing
    session._last_id = 65_534
    ids = []
    for _ in range(5):
        world.publish("a", b"", qos=1)
        ids.append(client.take_one(p.Publish).packet_id)
    assert ids == [65_535, 1, 2, 3, 11]


@VERSIONS
def test_a_puback_for_nothing_is_ignored(version):
    world = World()
    client = world.client(version)
    client.send(p.Puback(77))
    assert client.closed is None
    assert world.hub.counters.confirmed == 0


def test_a_message_that_the_client_refuses_is_done_with_and_counted():
    """MQTT 5, section 4.9: a PUBACK with a failure ends the delivery too."""
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a")
    world.publish("a", b"x", qos=1)
    packet_id = client.take_one(p.Publish).packet_id
    client.send(p.Puback(packet_id, Reason.PAYLOAD_FORMAT_INVALID))
    assert world.hub.counters.refused == {"by_client": 1}
    assert world.hub.counters.confirmed == 1
    client.lose()
    assert kept(world, p.V5).take() == []


def test_clients_may_not_publish_to_topics_of_the_server():
    """MQTT-4.7.2-1; 3.1.1 has no words for it, and allows an acknowledgement (MQTT-3.3.5-2).

    To close the connection instead cost a session for what concerns nobody.
    """
    world = World()
    for version in (p.V311, p.V5):
        client = world.client(version)
        client.publish("$SYS/x", b"1", qos=1)
        if version == p.V5:
            assert client.take() == [p.Puback(1, Reason.NOT_AUTHORIZED)]
        else:
            assert client.take() == [p.Puback(1)]
        assert client.closed is None
    assert world.hub.counters.refused == {"publish_not_authorized": 2}


# --- subscriptions ----------------------------------------------------------------------------


@VERSIONS
def test_overlapping_subscriptions_give_one_copy_at_the_best_qos(version):
    """MQTT-3.3.5-1 (3.3.4-2)."""
    world = World()
    client = world.client(version)
    client.subscribe("a/#", qos=0)
    client.subscribe("a/b", qos=1)
    world.publish("a/b", b"x", qos=1)
    assert client.take_one(p.Publish).qos == 1


def test_every_matching_subscription_identifier_is_told():
    """MQTT-3.3.4-3, -4, -5."""
    world = World()
    client = world.client(p.V5)
    client.subscribe("a/#", properties=p.Properties(subscription_identifier=(7,)))
    client.subscribe("a/b", properties=p.Properties(subscription_identifier=(300_000,)))
    client.subscribe("+/b")
    for qos in (0, 1):
        world.publish("a/b", b"x", qos=qos)
        told = client.take_one(p.Publish).properties.subscription_identifier
        assert sorted(told) == [7, 300_000]


@VERSIONS
def test_subscribing_again_replaces_and_repeats_what_is_retained(version):
    """MQTT-3.8.4-3, -4."""
    world = World()
    world.publish("a", b"kept", retain=True)
    client = world.client(version)
    for qos in (1, 0):
        assert client.subscribe("a", qos=qos) == (qos,)
        assert client.publishes() == [("a", b"kept")]
    world.publish("a", b"x", qos=1)
    assert client.take_one(p.Publish).qos == 0
    assert world.hub.counters.subscriptions == 1


@VERSIONS
def test_unsubscribing_ends_delivery_and_is_always_answered(version):
    """MQTT-3.10.4-1 to -5."""
    world = World()
    client = world.client(version)
    client.subscribe("a")
    client.send(p.Unsubscribe(9, ("a", "never")))
    codes = (0, Reason.NO_SUBSCRIPTION_EXISTED) if version == p.V5 else ()
    assert client.take() == [p.Unsuback(9, codes)]
    assert world.publish("a", b"x") == 0


@VERSIONS
def test_more_subscriptions_than_allowed_are_refused_with_a_code(version):
    world = World(limits={"subscriptions_per_client_max": 2, "subscriptions_max": 3})
    refused = Reason.QUOTA_EXCEEDED if version == p.V5 else 0x80
    client = world.client(version)
    assert client.subscribe("a", "b", "c", "a") == (1, 1, refused, 1)
    assert world.client(version, "other").subscribe("a", "b") == (1, refused)
    assert world.hub.counters.refused == {"subscriptions_full": 2}


def test_no_local_keeps_a_clients_own_messages_from_it():
    """MQTT-3.8.3-3; another subscription of the same client still gets them."""
    world = World()
    client, other = world.client(p.V5), world.client(p.V5, "other")
    client.subscribe("a/#", no_local=True)
    client.publish("a/b", b"mine")
    other.publish("a/b", b"theirs")
    assert client.publishes() == [("a/b", b"theirs")]
    client.subscribe("a/b")
    client.publish("a/b", b"mine")
    assert client.publishes() == [("a/b", b"mine")]
    client.publish("a/c", b"mine")
    assert client.publishes() == []


@VERSIONS
def test_authorization_is_asked_for_publishes_subscriptions_and_wills(version):
    """MQTT-3.3.5-2 of 3.1.1: the connection ends; MQTT 5 has the reason."""
    asked = []

    def authorize(client, topic, action):
        asked.append((client.client_id, topic, action))
        return topic != "secret"

    world = World(authorize=authorize)
    client = world.client(version)
    v5 = version == p.V5
    refused = Reason.NOT_AUTHORIZED if v5 else 0x80
    assert client.subscribe("secret", "open") == (refused, 1)
    client.publish("secret", b"x", qos=1)
    assert client.take() == ([p.Puback(1, Reason.NOT_AUTHORIZED)] if v5 else [])
    if not v5:
        assert client.closed == "not_authorized"
        client = world.client(version)
        client.subscribe("open")
        asked.pop()
    client.publish("open", b"x")
    assert client.publishes() == [("open", b"x")]
    assert asked.count(("c", "open", "receive")) == 1  # as long as no subscription changes
    assert [question for question in asked if question[2] != "receive"] == [
        ("c", "secret", "subscribe"),
        ("c", "open", "subscribe"),
        ("c", "secret", "publish"),
        ("c", "open", "publish"),
    ]
    mourned = world.client(version, "d", will=p.Will("secret", b""))
    assert mourned.welcome.code == (Reason.NOT_AUTHORIZED if v5 else 5)


# --- properties of MQTT 5 ---------------------------------------------------------------------


def test_a_message_keeps_its_properties_and_loses_those_of_the_hop():
    """MQTT-3.3.2-4, -15 to -20."""
    world = World()
    client, old, publisher = (
        world.client(p.V5, "s"),
        world.client(p.V311, "o"),
        world.client(p.V5, "p"),
    )
    client.subscribe("a")
    old.subscribe("a")
    said = {
        "payload_format_indicator": 1,
        "content_type": "application/json",
        "response_topic": "answer/here",
        "correlation_data": b"\x00\x01",
        "user_property": (("k", "1"), ("k", "2"), ("", "")),
    }
    for qos in (0, 1):
        publisher.publish("a", b"{}", qos=qos, topic_alias=3, **said)
        assert client.take_one(p.Publish).properties == p.Properties(**said)
        assert old.take_one(p.Publish).properties is None


def test_a_message_that_waited_tells_what_is_left_of_its_expiry():
    """MQTT-3.3.2-6."""
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a")
    client.lose()
    publisher = world.client(p.V5, "p")
    publisher.publish("a", b"short", qos=1, message_expiry_interval=10)
    publisher.publish("a", b"long", qos=1, message_expiry_interval=100)
    world.advance(10_000)
    back = kept(world, p.V5)
    got = back.take_one(p.Publish)
    assert (got.payload, got.properties.message_expiry_interval) == (b"long", 90)
    assert world.hub.counters.dropped == {"expired": 1}


def test_topic_aliases_stand_for_topics_within_their_connection():
    """MQTT-3.3.2-7 to -12."""
    world = World(limits={"topic_alias_max": 2})
    client, publisher = world.client(p.V5, "s"), world.client(p.V5, "p")
    client.subscribe("#")
    publisher.publish("a", b"1", topic_alias=1)
    publisher.publish("", b"2", topic_alias=1)
    publisher.publish("b", b"3", topic_alias=1)
    publisher.publish("", b"4", topic_alias=1, qos=1)
    assert client.publishes() == [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4")]
    for topic, alias, reason in (("", 2, "protocol_error"), ("a", 3, "topic_alias_invalid")):
        fresh = world.client(p.V5, "p")
        fresh.publish(topic, b"", topic_alias=alias)
        assert fresh.closed == reason


def test_a_clients_publish_with_a_subscription_identifier_is_a_protocol_error():
    """MQTT-3.3.4-6."""
    client = World().client(p.V5)
    client.publish("a", subscription_identifier=(1,))
    assert client.closed == "protocol_error"


def test_a_message_larger_than_the_client_takes_is_dropped_for_it_alone():
    """MQTT-3.1.2-24, -25."""
    world = World()
    small = world.client(p.V5, "small", properties=p.Properties(maximum_packet_size=50))
    large = world.client(p.V5, "large")
    for client in (small, large):
        client.subscribe("a")
    for qos in (0, 1):
        world.publish("a", bytes(60), qos=qos)
    assert (len(small.take()), len(large.take())) == (0, 2)
    assert world.hub.counters.dropped == {"too_large_for_client": 2}
    world.publish("a", b"fits", qos=1)
    assert small.publishes() == [("a", b"fits")]


def test_an_answer_larger_than_the_client_takes_is_not_sent():
    """MQTT-3.1.2-24: not even a SUBACK."""
    small = World().client(p.V5, properties=p.Properties(maximum_packet_size=30))
    assert len(small.subscribe(*map(str, range(24)))) == 24
    small.send(p.Subscribe(1, tuple(p.Filter(str(number)) for number in range(26))))
    assert small.take() == [p.Disconnect(Reason.PACKET_TOO_LARGE)]


def test_who_takes_not_even_a_connack_is_refused_in_a_shorter_one():
    world = World()
    tiny = world.client(p.V5, properties=p.Properties(maximum_packet_size=10))
    assert tiny.welcome == p.Connack(False, Reason.PACKET_TOO_LARGE)
    assert world.hub.sessions == {}


# --- retained messages ------------------------------------------------------------------------


@VERSIONS
def test_the_last_retained_message_waits_for_subscribers_and_is_marked(version):
    """MQTT-3.3.1-5 to -8."""
    world = World()
    publisher = world.client(version, "p")
    publisher.publish("a/b", b"old", retain=True)
    publisher.publish("a/b", b"new", qos=1, retain=True)
    client = world.client(version)
    client.subscribe("a/#")
    got = client.take_one(p.Publish)
    assert (got.payload, got.retain, got.qos) == (b"new", True, 1)
    publisher.publish("a/b", b"live", retain=True)
    assert client.take_one(p.Publish).retain is False


@VERSIONS
def test_an_empty_payload_deletes_what_is_retained_and_is_itself_delivered(version):
    """MQTT-3.3.1-6, -7, -11 of 3.1.1."""
    world = World()
    client = world.client(version)
    client.publish("a", b"x", retain=True)
    client.subscribe("a")
    client.take()
    client.publish("a", b"", retain=True)
    assert client.publishes() == [("a", b"")]
    assert client.subscribe("a") == (1,)
    assert client.take() == []
    assert world.hub.counters.retained_messages == world.hub.counters.retained_bytes == 0


@VERSIONS
def test_a_message_without_the_flag_leaves_what_is_retained(version):
    """MQTT-3.3.1-8 (3.3.1-12 of 3.1.1)."""
    world = World()
    client = world.client(version)
    client.publish("a", b"kept", retain=True)
    client.publish("a", b"passing")
    client.subscribe("a")
    assert client.publishes() == [("a", b"kept")]


def test_retain_handling_says_when_retained_messages_come():
    """MQTT-3.3.1-9 to -11."""
    world = World()
    world.publish("a", b"kept", retain=True)
    never, once = world.client(p.V5, "never"), world.client(p.V5, "once")
    for _ in range(2):
        never.subscribe("a", retain_handling=2)
    assert never.take() == []
    once.subscribe("a", retain_handling=1)
    assert once.publishes() == [("a", b"kept")]
    once.subscribe("a", retain_handling=1)
    assert once.take() == []


def test_no_local_holds_for_retained_messages_too():
    """MQTT-3.8.3-3: no message goes to the client that published it."""
    world = World()
    mine, other = world.client(p.V5, "mine"), world.client(p.V5, "other")
    mine.publish("a", b"x", retain=True)
    for client in (mine, other):
        client.subscribe("#", no_local=True)
    assert (mine.publishes(), other.publishes()) == ([], [("a", b"x")])


@VERSIONS
def test_overlapping_subscriptions_each_bring_the_retained_message_at_their_qos(version):
    """MQTT-3.3.4-2: the best of them is respected, further copies are allowed."""
    world = World()
    world.publish("a/b", b"x", qos=1, retain=True)
    client = world.client(version)
    client.send(p.Subscribe(1, (p.Filter("a/+", 1), p.Filter("a/b", 0))))
    _, *got = client.take()
    assert [(one.topic, one.qos, one.retain) for one in got] == [("a/b", 1, True), ("a/b", 0, True)]


def test_what_a_client_that_does_not_read_asks_for_again_and_again_stays_small():
    world = World()
    world.publish("a", b"x", retain=True)
    client = world.client(p.V5)
    client.stall()
    for number in range(1, 200):
        properties = p.Properties(subscription_identifier=(number,))
        client.send(p.Subscribe(1, (p.Filter("a"),), properties))
    client.got.clear()
    client.flow()
    (got,) = [packet for packet in client.take() if isinstance(packet, p.Publish)]
    assert got.properties.subscription_identifier == (199,)


def test_retain_as_published_keeps_the_flag():
    """MQTT-3.3.1-12, -13."""
    world = World()
    keeps, clears = world.client(p.V5, "k"), world.client(p.V5, "c")
    keeps.subscribe("a", retain_as_published=True)
    clears.subscribe("a")
    for qos in (0, 1):
        world.publish("a", b"x", qos=qos, retain=True)
        assert keeps.take_one(p.Publish).retain is True
        assert clears.take_one(p.Publish).retain is False


def test_retained_messages_expire():
    """MQTT-3.3.2-5."""
    world = World()
    world.client(p.V5, "p").publish("a", b"x", retain=True, message_expiry_interval=10)
    world.advance(4000)
    early = world.client(p.V5, "early")
    early.subscribe("a")
    assert early.take_one(p.Publish).properties.message_expiry_interval == 6
    world.advance(6000)
    late = world.client(p.V5, "late")
    late.subscribe("a")
    assert late.take() == []
    assert world.hub.counters.retained_messages == world.hub.counters.retained_bytes == 0


def test_a_retained_message_that_replaces_one_with_expiry_stays():
    world = World()
    client = world.client(p.V5)
    client.publish("a", b"x", retain=True, message_expiry_interval=10)
    client.publish("a", b"y", retain=True)
    world.advance(20_000)
    client.subscribe("a")
    assert client.publishes() == [("a", b"y")]


@pytest.mark.parametrize(
    "limits", [{"retained_messages_max": 2}, {"retained_bytes_max": 500}], ids=["number", "bytes"]
)
def test_past_its_bounds_nothing_more_is_retained_and_the_publisher_is_told(limits):
    world = World(limits=limits)
    client = world.client(p.V5)
    for topic in "abc":
        client.publish(topic, b"x", qos=1, retain=True)
    codes = [packet.code for packet in client.take()]
    assert codes == [Reason.NO_MATCHING_SUBSCRIBERS] * 2 + [Reason.QUOTA_EXCEEDED]
    assert [message.topic for message in world.hub.retained("#")] == ["a", "b"]
    assert world.hub.counters.refused == {"retained_full": 1}
    client.publish("a", b"y", qos=1, retain=True)
    assert client.take()[0].code == Reason.NO_MATCHING_SUBSCRIBERS
    with pytest.raises(ProtocolError, match="no room"):
        world.publish("d", b"x", retain=True)


def test_retained_messages_beyond_the_receive_maximum_follow_the_acknowledgements():
    world = World()
    for number in range(20):
        world.publish(f"r/{number:02}", b"x", qos=1, retain=True)
    client = world.client(p.V5, properties=p.Properties(receive_maximum=4))
    client.subscribe("r/#")
    topics, waiting = [], client.take()
    while waiting:
        topics += [packet.topic for packet in waiting]
        client.send(*(p.Puback(packet.packet_id) for packet in waiting))
        waiting = client.take()
    assert topics == [f"r/{number:02}" for number in range(20)]


# --- wills ------------------------------------------------------------------------------------


def mourner(world, version, **fields):
    watcher = world.client(p.V5, "watcher")
    watcher.subscribe("w", retain_as_published=True)
    return watcher, world.client(version, will=p.Will("w", b"gone", 1, **fields))


@VERSIONS
def test_a_will_is_published_when_the_connection_breaks(version):
    """MQTT-3.1.2-8."""
    world = World()
    watcher, client = mourner(world, version)
    client.lose()
    got = watcher.take_one(p.Publish)
    assert (got.topic, got.payload, got.qos, got.retain) == ("w", b"gone", 1, False)


@VERSIONS
def test_a_will_is_published_when_the_client_breaks_the_protocol_or_falls_silent(version):
    """MQTT-3.1.2-8: also where the server closes."""
    world = World()
    watcher, client = mourner(world, version)
    client.send_bytes(b"\x00\x00")
    assert watcher.publishes() == [("w", b"gone")]
    world.client(version, will=p.Will("w", b"silent"), keep_alive_s=1)
    world.advance(1500)
    assert watcher.publishes() == [("w", b"silent")]


@VERSIONS
def test_no_will_after_disconnect(version):
    """MQTT-3.1.2-10, 3.14.4-3."""
    world = World()
    watcher, client = mourner(world, version)
    client.disconnect()
    assert client.closed == "client_disconnected"
    assert watcher.take() == []


@pytest.mark.parametrize("code", [0x04, 0x80, 0x81, 0x99])
def test_disconnect_for_another_reason_than_leaving_publishes_the_will(code):
    """MQTT-3.1.2-8, 3.14.4-3: only reason 0 takes it away."""
    world = World()
    watcher, client = mourner(world, p.V5)
    client.disconnect(code)
    assert client.closed == "client_disconnected"
    assert watcher.publishes() == [("w", b"gone")]


@pytest.mark.parametrize("code", [0x01, 0x8B, 0x8E, 0xFF])
def test_disconnect_with_a_reason_that_is_no_clients_breaks_the_protocol(code):
    """MQTT-3.14.2-1."""
    world = World()
    watcher, client = mourner(world, p.V5)
    client.send(p.Disconnect(code))
    assert client.take() == [p.Disconnect(Reason.PROTOCOL_ERROR)]
    assert watcher.publishes() == [("w", b"gone")]


@VERSIONS
def test_a_will_may_be_retained(version):
    """MQTT-3.1.2-14, -15 (-16, -17 of 3.1.1)."""
    world = World()
    watcher, client = mourner(world, version, retain=True)
    client.lose()
    assert watcher.take_one(p.Publish).retain is True
    assert [m.payload for m in world.hub.retained("w")] == [b"gone"]


@VERSIONS
def test_a_will_is_published_when_the_session_is_taken_over(version):
    world = World()
    watcher, _client = mourner(world, version)
    world.client(version)
    assert watcher.publishes() == [("w", b"gone")]


@VERSIONS
def test_a_will_at_qos_2_comes_at_qos_2(version):
    world = World()
    watcher = world.client(p.V311, "watcher")
    watcher.subscribe("w", qos=2)
    world.client(version, will=p.Will("w", b"gone", 2)).lose()
    assert watcher.take_one(p.Publish).qos == 2


def delayed(world, seconds, expiry_s=3600):
    return world.client(
        p.V5,
        clean_start=False,
        properties=p.Properties(session_expiry_interval=expiry_s),
        will=p.Will("w", b"gone", properties=p.Properties(will_delay_interval=seconds)),
    )


def test_a_delayed_will_waits_and_a_return_of_the_client_prevents_it():
    """MQTT-3.1.3-9."""
    world = World()
    watcher = world.client(p.V5, "watcher")
    watcher.subscribe("w")
    delayed(world, 10).lose()
    world.advance(9_999)
    assert watcher.take() == []
    client = delayed(world, 10)
    world.advance(60_000)
    assert watcher.take() == []
    client.lose()
    world.advance(10_000)
    assert watcher.publishes() == [("w", b"gone")]
    world.advance(10 * 3_600_000)
    assert watcher.take() == []


def test_a_delayed_will_comes_when_its_session_ends_before():
    """MQTT-3.1.2-8: the delay or the end of the session, whichever is first."""
    world = World()
    watcher = world.client(p.V5, "watcher")
    watcher.subscribe("w")
    delayed(world, 100, expiry_s=5).lose()
    world.advance(5_000)
    assert watcher.publishes() == [("w", b"gone")]
    delayed(world, 100).lose()
    world.client(p.V5)
    assert watcher.publishes() == [("w", b"gone")]


@VERSIONS
def test_a_will_under_the_prefix_goes_to_the_application(version):
    world = World()
    world.client(version, will=p.Will("headwater/status/b2", b"lost", 1, retain=True)).lose()
    (message,) = world.handed()
    assert (message.topic, message.payload, message.retain) == (
        "headwater/status/b2",
        b"lost",
        True,
    )
    assert message.token is None
    assert message.client.client_id == "c"
