"""A `deny` narrows what a wildcard delivers: the filter is granted, its topics are asked for."""

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from tests.broker.mqtt.world import VERSIONS, Disk, World, kept


class Denials:
    """Grants all but what lies at or beneath one topic, to all users but those named."""

    def __init__(self, topic, clients=()):
        self.topic = topic
        self.clients = clients

    def __call__(self, client, topic, action):
        inside = topic == self.topic or topic.startswith(f"{self.topic}/")
        return action == "publish" or not inside or client.client_id in self.clients


@VERSIONS
def test_a_wildcard_is_granted_and_delivers_all_but_what_is_denied(version):
    """One `deny` refused `#` to everybody, so whoever had it listed all topics by name."""
    world = World(authorize=Denials("secret"))
    client, writer = world.client(version), world.client(version, "writer")
    assert client.subscribe("#") == (1,)
    for topic in ("open", "secret", "secret/place", "secrets"):
        writer.publish(topic, b"x", qos=1)
    assert client.publishes() == [("open", b"x"), ("secrets", b"x")]


def test_a_filter_that_is_denied_as_a_whole_is_refused():
    """It would be granted and never deliver anything."""
    world = World(authorize=Denials("secret"))
    assert world.client(p.V5).subscribe("secret/x") == (Reason.NOT_AUTHORIZED,)


def test_each_client_is_asked_for_by_itself():
    """A route is shared by all publishers, and not by those who may hear it."""
    world = World(authorize=Denials("secret", ("chief",)))
    chief, other = world.client(p.V5, "chief"), world.client(p.V5, "other")
    for client in (chief, other):
        client.subscribe("+/x")
    world.publish("secret/x", b"1")
    assert (chief.publishes(), other.publishes()) == ([("secret/x", b"1")], [])


@VERSIONS
def test_what_is_retained_is_narrowed_too(version):
    world = World(authorize=Denials("secret"))
    for topic in ("a", "secret/b", "c"):
        world.publish(topic, b"kept", qos=1, retain=True)
    client = world.client(version)
    client.subscribe("#")
    assert sorted(client.publishes()) == [("a", b"kept"), ("c", b"kept")]


def test_of_a_group_one_who_may_have_it_gets_it():
    world = World(authorize=Denials("secret", ("chief",)))
    clients = [world.client(p.V5, name) for name in ("first", "chief", "last")]
    for client in clients:
        client.subscribe("$share/group/#")
    for number in range(6):
        world.publish("secret/x", b"%d" % number, qos=1)
    assert [len(client.publishes()) for client in clients] == [0, 6, 0]


def test_where_nobody_of_a_group_may_have_it_nobody_gets_it():
    world = World(authorize=Denials("secret"))
    client = world.client(p.V5)
    client.subscribe("$share/group/#")
    world.publish("secret/x", b"x", qos=1)
    assert client.publishes() == []


def test_what_is_denied_is_not_queued_for_a_client_that_is_away():
    world = World(authorize=Denials("secret"), disk=Disk())
    client = kept(world, p.V5)
    client.subscribe("#")
    client.lose()
    world.publish("secret/x", b"x", qos=1)
    world.publish("open", b"y", qos=1)
    assert kept(world, p.V5).publishes() == [("open", b"y")]


def test_a_session_that_outlasted_the_process_is_narrowed_as_before():
    world = World(authorize=Denials("secret"), disk=Disk())
    kept(world, p.V5).subscribe("#")
    world = world.after(orderly=True)
    world.publish("secret/x", b"x", qos=1)
    world.publish("open", b"y", qos=1)
    assert kept(world, p.V5).publishes() == [("open", b"y")]
