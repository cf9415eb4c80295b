"""Topic aliases that the broker sets, and the keep-alive that it asks for."""

import random

import pytest

from broker.mqtt.codec import packets as p
from tests.broker.mqtt.world import World, kept


def taker(world, most, name="taker", **fields):
    """A client that takes so many topic aliases."""
    wanted = p.Properties(topic_alias_maximum=most, **fields)
    return world.client(p.V5, name, properties=wanted)


def got_of(client):
    """Topic as it was sent, alias and payload of each message."""
    return [
        (one.topic, one.properties and one.properties.topic_alias, one.payload)
        for one in client.take()
        if isinstance(one, p.Publish)
    ]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_topic_goes_once_and_its_alias_after_that(qos):
    world = World()
    client = taker(world, 5)
    client.subscribe("#", qos=qos)
    for number in range(3):
        world.publish("long/topic", b"%d" % number, qos=qos)
    assert got_of(client) == [("long/topic", 1, b"0"), ("", 1, b"1"), ("", 1, b"2")]


def test_no_more_aliases_are_set_than_the_client_takes():
    world = World()
    client = taker(world, 1)
    client.subscribe("#")
    for topic in ("a", "b", "a", "b"):
        world.publish(topic, b"x")
    assert got_of(client) == [("a", 1, b"x"), ("b", None, b"x"), ("", 1, b"x"), ("b", None, b"x")]


def test_nor_than_the_setting_says():
    world = World(limits={"sent_aliases_max": 0})
    client = taker(world, 10)
    client.subscribe("#")
    world.publish("a", b"x")
    assert got_of(client) == [("a", None, b"x")]


@pytest.mark.parametrize("wanted", [None, p.Properties(topic_alias_maximum=0)])
def test_a_client_that_asks_for_none_gets_none(wanted):
    """MQTT-3.1.2-27."""
    world = World()
    client = world.client(p.V5, properties=wanted)
    client.subscribe("#")
    for _ in range(2):
        world.publish("a", b"x")
    assert got_of(client) == [("a", None, b"x")] * 2


def test_aliases_end_with_the_connection():
    """MQTT-3.3.2-7: what is sent again bears its topic anew."""
    world = World()
    wanted = p.Properties(topic_alias_maximum=3, session_expiry_interval=60)
    client = world.client(p.V5, clean_start=False, properties=wanted)
    client.subscribe("#")
    for number in range(2):
        world.publish("a", b"%d" % number, qos=1)
    client.lose()
    again = world.client(p.V5, clean_start=False, properties=wanted)
    assert got_of(again) == [("a", 1, b"0"), ("", 1, b"1")]
    again.lose()
    without = kept(world, p.V5)
    assert got_of(without) == [("a", None, b"0"), ("a", None, b"1")]


def test_a_message_that_is_too_large_for_the_client_sets_no_alias():
    """It is never sent, so the client would meet an alias that it does not know."""
    world = World()
    client = taker(world, 3, maximum_packet_size=60)
    client.subscribe("#")
    world.publish("a", b"x" * 100)
    world.publish("a", b"y")
    world.publish("a", b"z")
    assert got_of(client) == [("a", 1, b"y"), ("", 1, b"z")]


@pytest.mark.parametrize("seed", range(20))
def test_aliases_change_nothing_of_what_a_client_understands(seed):
    """Beside another client without aliases, with all that a message may have."""
    chance = random.Random(seed)
    world = World()
    plain, client = taker(world, 0, "plain"), taker(world, chance.randrange(1, 6))
    for one in (plain, client):
        one.subscribe("#", qos=2, retain_as_published=True, properties=identifier(chance))
    topics = [f"t/{number}" for number in range(8)]
    for number in range(60):
        properties = p.Properties(content_type="x") if chance.random() < 0.3 else None
        packet = p.Publish(
            chance.choice(topics), b"%d" % number, chance.randrange(3), properties=properties
        )
        world.hub.publish(packet, world.now_ms)
        world.perform()
    known = {}
    understood = []
    for one in client.take():
        alias = one.properties.topic_alias if one.properties is not None else None
        if alias and one.topic:
            known[alias] = one.topic
        understood.append((one.topic or known[alias], one.payload, one.qos))
    assert understood == [(one.topic, one.payload, one.qos) for one in plain.take()]


def identifier(chance):
    """A subscription identifier, or none."""
    return p.Properties(subscription_identifier=(7,)) if chance.random() < 0.5 else None


# --- server keep-alive ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked_s", "given_s"), [(0, 60), (120, 60), (61, 60), (60, None), (5, None)]
)
def test_a_client_is_told_the_keep_alive_where_it_asks_for_none_or_a_longer_one(asked_s, given_s):
    world = World(limits={"keep_alive_s_max": 60})
    client = world.client(p.V5, keep_alive_s=asked_s)
    assert client.welcome.properties.server_keep_alive == given_s
    world.advance(1_500 * (given_s or asked_s) - 1)
    assert client.closed is None
    world.advance(1)
    assert client.closed == "keep_alive_timeout"


def test_a_client_of_3_1_1_cannot_be_told_and_keeps_its_own():
    world = World(limits={"keep_alive_s_max": 60})
    client = world.client(p.V311, keep_alive_s=120)
    world.advance(120_000)
    assert client.closed is None


def test_by_default_a_client_has_the_keep_alive_that_it_asks_for():
    world = World()
    client = world.client(p.V5, keep_alive_s=0)
    assert client.welcome.properties.server_keep_alive is None
    world.advance(100_000_000)
    assert client.closed is None
