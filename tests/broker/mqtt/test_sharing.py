"""Shared subscriptions: who of a group gets a message (MQTT 5, section 4.8.2)."""

import random
from collections import Counter

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from tests.broker.mqtt.world import VERSIONS, World, kept


def group(world, version, *names, filters=("$share/g/a/#",), qos=1):
    clients = [world.client(version, name) for name in names]
    for client in clients:
        assert client.subscribe(*filters, qos=qos) == (qos,) * len(filters)
    return clients


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1])
def test_members_take_turns_and_each_message_goes_to_one(version, qos):
    world = World()
    clients = group(world, version, "x", "y", "z", qos=qos)
    for number in range(30):
        assert world.publish(f"a/{number}", b"%d" % number, qos=qos) == 1
    heard = [client.publishes() for client in clients]
    assert [len(some) for some in heard] == [10, 10, 10]
    assert sorted(int(payload) for some in heard for _, payload in some) == list(range(30))


def test_groups_and_single_subscribers_each_get_their_copy():
    world = World()
    (one,) = group(world, p.V5, "one", filters=("$share/g/a/#", "$share/h/a/+", "a/b"))
    (two,) = group(world, p.V5, "two", filters=("$share/g/+/b",))  # another group: another filter
    assert world.publish("a/b", b"x") == 4
    assert (len(one.take()), len(two.take())) == (3, 1)


def test_a_member_is_told_of_its_own_qos_identifier_and_flag():
    world = World()
    client = world.client(p.V5)
    held = p.Properties(subscription_identifier=(7,))
    client.subscribe("$share/g/a", qos=0, properties=held, retain_as_published=True)
    world.publish("a", b"x", qos=1, retain=True)
    got = client.take_one(p.Publish)
    assert (got.qos, got.retain, got.properties.subscription_identifier) == (0, True, (7,))


@VERSIONS
def test_nothing_that_is_retained_comes_to_a_group(version):
    world = World()
    world.publish("a/b", b"old", retain=True)
    (client,) = group(world, version, "c")
    assert client.take() == []


def test_who_is_away_or_behind_is_passed_over_while_there_are_others():
    world = World()
    here, behind = group(world, p.V5, "here", "behind")
    away = kept(world, p.V5, "away")
    away.subscribe("$share/g/a/#")
    away.lose()
    behind.stall()
    for number in range(10):
        world.publish("a/b", b"%d" % number, qos=1)
    got = here.take()
    assert [packet.payload for packet in got] == [b"%d" % n for n in range(10)]
    here.send(*(p.Puback(packet.packet_id) for packet in got))
    here.disconnect()
    world.publish("a/b", b"to who is behind", qos=1)
    behind.flow()
    got = behind.take_one(p.Publish)
    assert got.payload == b"to who is behind"
    behind.send(p.Puback(got.packet_id))
    behind.disconnect()
    world.publish("a/b", b"to who is away", qos=1)
    assert kept(world, p.V5, "away").publishes() == [("a/b", b"to who is away")]


def test_a_member_whose_queue_is_full_ends_and_the_others_get_what_it_had():
    world = World(limits={"queue_messages_max": 2, "inflight_max": 1})
    (full,) = group(world, p.V5, "x")
    for number in range(3):
        world.publish("a", b"%d" % number, qos=1)
    (other,) = group(world, p.V5, "y")
    assert len(full.take()) == 1
    full.subscribe("b")
    world.publish("b", b"one too many", qos=1)
    assert (full.closed, other.closed) == ("queue_overflow", None)
    heard = []
    while got := other.take():
        heard += [packet.payload for packet in got]
        other.send(*(p.Puback(packet.packet_id) for packet in got))
    assert heard == [b"0", b"1", b"2"]


@VERSIONS
def test_leaving_a_group_leaves_the_others_in_it(version):
    world = World()
    clients = group(world, version, "x", "y")
    assert world.hub.counters.subscriptions == 2
    clients[0].send(p.Unsubscribe(1, ("$share/g/a/#",)))
    if version == p.V5:
        assert clients[0].take_one(p.Unsuback).codes == (0,)
    clients[0].got.clear()
    for _ in range(2):
        world.publish("a/b", b"x", qos=1)
    assert [len(client.take()) for client in clients] == [0, 2]
    clients[1].disconnect()
    assert world.publish("a/b", b"x", qos=1) == 0
    assert world.hub.counters.subscriptions == 0
    assert not world.hub.router._filters._root.children
    assert not world.hub.router._shares


@pytest.mark.parametrize("name", ["$share/g", "$share/g/", "$share//a", "$share/", "$share/+/a"])
def test_a_shared_filter_without_group_or_filter_is_refused(name):
    """MQTT-4.8.2-1, -2."""
    client = World().client(p.V5)
    assert client.subscribe(name, "a") == (Reason.TOPIC_FILTER_INVALID, 1)
    assert World().client(p.V311).subscribe(name, "a") == (0x80, 1)


def test_who_may_not_read_a_topic_may_not_share_it_either():
    def authorize(client, topic, action):
        return topic != "secret/#"

    client = World(authorize=authorize).client(p.V5)
    assert client.subscribe("$share/g/secret/#", "$share/g/a") == (Reason.NOT_AUTHORIZED, 1)


def test_members_count_for_the_limits_of_subscriptions():
    world = World(limits={"subscriptions_max": 2})
    assert [client.closed for client in group(world, p.V5, "x", "y")] == [None, None]
    assert world.client(p.V5, "z").subscribe("$share/g/a/#") == (Reason.QUOTA_EXCEEDED,)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_members_do_each_qos_1_message_is_done_by_exactly_one(seed):
    """They come and go with kept sessions, halt and go on; in the end all come and confirm."""
    chance = random.Random(seed)
    world = World()
    names = ("x", "y", "z")
    clients, done = {}, Counter()

    def hear(name):
        for packet in clients[name].take():
            if isinstance(packet, p.Publish):
                if not packet.dup:
                    done[packet.payload] += 1
                clients[name].send(p.Puback(packet.packet_id))

    for name in names:
        clients[name] = kept(world, p.V5, name)
        clients[name].subscribe("$share/g/a")
    for number in range(300):
        name = chance.choice(names)
        here, kind = name in clients, chance.randrange(5)
        if kind == 0 and here:
            hear(name)
            clients.pop(name).lose()
        elif kind == 0:
            clients[name] = kept(world, p.V5, name)
            hear(name)
        elif kind == 1 and here:
            clients[name].stall()
        elif kind == 2 and here:
            clients[name].flow()
        elif here:
            hear(name)
        world.publish("a", b"%d" % number, qos=1)
    for name in names:
        if name not in clients:
            clients[name] = kept(world, p.V5, name)
        clients[name].flow()
        hear(name)
        hear(name)
    assert done == Counter(b"%d" % number for number in range(300))
    assert world.hub.counters.dropped == {}


@pytest.mark.parametrize("seed", range(5))
def test_what_a_member_leaves_undone_is_done_by_another(seed):
    """Members leave for good in the middle, as long as there is one (section 4.8.2, a SHOULD)."""
    chance = random.Random(seed)
    world = World(limits={"inflight_max": 3})
    clients, done, undone = {}, Counter(), {}

    def enter(name):
        clients[name] = world.client(chance.choice([p.V311, p.V5]), name)
        clients[name].subscribe("$share/g/a")

    def confirm(name, packets):
        for packet in packets:
            done[packet.payload] += 1
            clients[name].send(p.Puback(packet.packet_id))

    enter("first")
    for number in range(400):
        kind = chance.randrange(8)
        name = chance.choice(sorted(clients))
        if kind == 0 and len(clients) > 1:
            clients.pop(name).lose()
        elif kind == 1 and len(clients) < 5:
            enter(f"m{number}")
        else:
            got = [packet for packet in clients[name].take() if isinstance(packet, p.Publish)]
            hesitates = got[:1] if chance.random() < 0.1 else []
            undone.setdefault(name, []).extend(hesitates)
            confirm(name, got[len(hesitates) :])
        world.publish("a", b"%d" % number, qos=1)
    for name in sorted(clients)[1:]:
        clients.pop(name).lose()
    (last,) = clients
    confirm(last, undone.get(last, []))
    while got := [packet for packet in clients[last].take() if isinstance(packet, p.Publish)]:
        confirm(last, got)
    assert set(done) == {b"%d" % number for number in range(400)}
    assert world.hub.counters.dropped.get("passed_on", 0) > 5


def test_with_its_last_member_what_waits_for_a_group_ends_and_is_counted():
    world = World(limits={"inflight_max": 1})
    (only,) = group(world, p.V5, "x")
    for _ in range(3):
        world.publish("a", b"x", qos=1)
    only.disconnect()
    assert world.hub.counters.dropped == {"ended_with_connection": 2}
    assert world.hub.counters.queued_bytes == 0
