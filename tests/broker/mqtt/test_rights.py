"""Clients that meet rights: what they are told, and what becomes of them when rights change."""

import tomllib

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.sessions.rights import judge_again
from broker.rights.current import CurrentRights
from broker.rights.reader import read_rights
from tests.broker.mqtt.world import World


def rights(text: str) -> CurrentRights:
    return CurrentRights(read_rights(tomllib.loads(text)), "headwater")


WATCH = """
[everyone]
roles = ["watch"]
[roles.watch]
plain_publish = ["open"]
plain_subscribe = ["#"]
subscribe = ["#"]
[users.ann]
"""


@pytest.mark.parametrize("qos", [0, 1])
def test_a_publisher_that_may_not_is_told_and_nobody_gets_the_message(qos):
    world = World(authorize=rights(WATCH))
    watcher = world.client(p.V5, "w")
    assert watcher.subscribe("#", "open") == (1, 1)
    client = world.client(p.V5)
    client.publish("closed", b"x", qos=qos, retain=True)
    assert client.take() == ([p.Puback(1, Reason.NOT_AUTHORIZED)] if qos else [])
    assert client.closed is None
    assert watcher.take() == []
    assert world.hub.retained("#") == []
    assert world.hub.counters.refused == {"publish_not_authorized": 1}


def again(world, text, welcome=lambda _client, _certified: True):
    table = rights(text)
    closed = judge_again(world.hub, table or None, welcome, world.now_ms)
    world.perform()
    return closed


def test_who_lost_a_subscription_is_disconnected_with_the_reason_and_others_stay():
    world = World(authorize=rights(WATCH))
    losing, staying = world.client(p.V5, "a"), world.client(p.V5, "b")
    losing.subscribe("house/#")
    staying.subscribe("open")
    closed = again(world, WATCH.replace('plain_subscribe = ["#"]', 'plain_subscribe = ["open"]'))
    assert closed == 1
    assert losing.take()[-1] == p.Disconnect(Reason.NOT_AUTHORIZED)
    assert losing.closed == "rights_changed"
    assert staying.closed is None
    assert world.hub.counters.refused == {"subscription_not_authorized": 1}


def test_who_would_not_be_let_in_is_disconnected_and_its_will_is_not_published():
    """A will is for a client that was lost; this one is sent away."""
    world = World()
    watcher = world.client(p.V5, "w")
    watcher.subscribe("gone")
    client = world.client(p.V5, "a", will=p.Will("gone", b"x", 0, False))
    assert again(world, WATCH, lambda one, _certified: one.client_id == "w") == 1
    assert client.closed == "rights_changed"
    assert watcher.take() == []


def test_publishers_are_asked_from_the_next_message_on_and_no_more_once_all_is_open():
    """Routes are remembered; a remembered one must not go on being plain."""
    world = World()
    client = world.client(p.V5, "a")
    client.publish("closed", b"x", qos=1)
    assert client.take()[-1].code == Reason.NO_MATCHING_SUBSCRIBERS
    again(world, WATCH)
    client.publish("closed", b"x", qos=1)
    assert client.take()[-1].code == Reason.NOT_AUTHORIZED
    again(world, "")
    client.publish("closed", b"x", qos=1)
    assert client.take()[-1].code == Reason.NO_MATCHING_SUBSCRIBERS
