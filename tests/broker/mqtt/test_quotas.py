"""Quotas of users and addresses: what exceeds one is refused with its reason, nothing else is."""

import random
from collections import Counter
from functools import partial

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.sessions.rights import judge_again
from broker.rights.quotas import Holder
from broker.rights.table import Quota, QuotaTable
from tests.broker.mqtt.world import VERSIONS, Client, Disk, World, kept

ANN = Quota(connections=2, subscriptions=3, retained=2, queue_bytes=2_000)


def world_of(default=None, address=None, **options):
    world = World(users_only=True, **options)
    world.hub.quotas.replace(QuotaTable(default=default or Quota(), address=address or Quota()))
    return world


def come(world, version, user, client_id, address="10.0.0.1:1", **fields):
    """A client of a user, whose CONNACK is in `welcome`."""
    client = Client(world, version, certificate_user=user, address=address)
    fields.setdefault("clean_start", True)
    client.send(p.Connect(version, client_id, **fields))
    client.welcome = client.got.pop(0) if client.got else None
    return client


@VERSIONS
def test_a_user_has_so_many_connections_and_others_have_theirs(version):
    world = world_of(ANN)
    clients = [come(world, version, "ann", f"a{number}") for number in range(3)]
    refused = Reason.QUOTA_EXCEEDED if version == p.V5 else 3
    assert [client.welcome.code for client in clients] == [0, 0, refused]
    assert come(world, version, "ben", "b").welcome.code == 0
    clients[0].disconnect()
    assert come(world, version, "ann", "a3").welcome.code == 0
    assert world.hub.counters.closed["quota_exceeded"] == 1


@VERSIONS
def test_a_client_that_comes_again_takes_its_own_place(version):
    """Its old connection may be dead without the broker knowing."""
    world = world_of(ANN)
    for name in ("a", "b", "a", "b", "a"):
        assert come(world, version, "ann", name).welcome.code == 0
    assert world.hub.quotas.taken("connections", user="ann") == 2


@VERSIONS
def test_an_address_has_so_many_connections_whoever_its_users_are(version):
    world = world_of(address=Quota(connections=2))
    codes = [come(world, version, f"u{n}", f"c{n}", f"10.0.0.1:{n}").welcome.code for n in range(3)]
    assert codes == [0, 0, Reason.QUOTA_EXCEEDED if version == p.V5 else 3]
    assert come(world, version, "u9", "c9", "10.0.0.2:1").welcome.code == 0


@VERSIONS
def test_subscriptions_of_all_sessions_of_a_user_count_together(version):
    world = world_of(ANN)
    first, second = (come(world, version, "ann", name) for name in ("a", "b"))
    refused = Reason.QUOTA_EXCEEDED if version == p.V5 else 0x80
    assert first.subscribe("x", "y") == (1, 1)
    assert second.subscribe("x", "y") == (1, refused)
    assert second.subscribe("x") == (1,)  # the same again is no further one
    first.send(p.Unsubscribe(7, ("y",)))
    first.take()
    assert second.subscribe("y") == (1,)
    first.disconnect()
    assert second.subscribe("z") == (1,)
    assert world.hub.counters.refused == {"subscriptions_full": 1}


def test_retained_messages_count_for_whoever_wrote_them_last():
    world = world_of(ANN)
    ann, ben = come(world, p.V5, "ann", "a"), come(world, p.V5, "ben", "b")
    done = p.Puback(1, Reason.NO_MATCHING_SUBSCRIBERS)
    for topic in ("1", "2", "2"):
        assert ann.publish(topic, b"x", 1, retain=True).take() in ([done], [p.Puback(1)])
    assert ann.publish("3", b"x", 1, retain=True).take() == [p.Puback(1, Reason.QUOTA_EXCEEDED)]
    ben.publish("1", b"y", 1, retain=True)  # it is his now
    assert world.hub.quotas.taken("retained", user="ann") == 1
    ann.publish("3", b"x", 1, retain=True)
    ann.publish("2", b"", 1, retain=True)
    assert world.hub.quotas.taken("retained", user="ann") == 1
    assert sorted(one.topic for one in world.hub.retained("#")) == ["1", "3"]
    assert world.hub.counters.refused == {"retained_quota": 1}


def test_what_expires_is_given_back():
    world = world_of(ANN)
    ann = come(world, p.V5, "ann", "a")
    for number in range(2):
        ann.publish(str(number), b"x", retain=True, message_expiry_interval=5)
    assert world.hub.quotas.taken("retained", user="ann") == 2
    world.advance(6_000)
    assert world.hub.quotas.taken("retained", user="ann") == 0


def test_what_waits_for_all_sessions_of_a_user_counts_together():
    """A further message meets the policy of a full queue: at QoS 1 it ends the session."""
    world = world_of(ANN)
    wanted = p.Properties(session_expiry_interval=60)
    for name in ("a", "b"):
        client = come(world, p.V5, "ann", name, clean_start=False, properties=wanted)
        client.subscribe("#")
        client.lose()
    other = come(world, p.V5, "ben", "c", clean_start=False, properties=wanted)
    other.subscribe("#")
    other.lose()
    for _ in range(3):  # of about 300 bytes each
        world.publish("t", b"x" * 100, qos=1)
    account = world.hub.quotas.account("ann")
    assert 1_800 < account.held_bytes <= 2_000
    world.publish("t", b"x" * 100, qos=1)
    assert world.hub.counters.ended == {"queue_overflow": 2}
    assert list(world.hub.sessions) == ["c"]
    assert account.held_bytes == 0


def test_without_quotas_nothing_is_refused():
    """The default of a broker that has no rights file, or none that names a quota."""
    world = world_of()
    clients = [come(world, p.V5, "ann", f"a{number}") for number in range(30)]
    for client in clients:
        assert client.subscribe("x", "y", "z") == (1, 1, 1)
    assert world.hub.counters.refused == {}


def test_other_quotas_hold_from_the_next_request_on():
    world = world_of()
    ann = come(world, p.V5, "ann", "a")
    assert ann.subscribe("a", "b", "c", "d") == (1, 1, 1, 1)
    world.hub.quotas.replace(QuotaTable(users={"ann": ANN}))
    assert ann.subscribe("e") == (Reason.QUOTA_EXCEEDED,)
    assert world.hub.quotas.account("ann").bytes_max == 2_000


def test_subscriptions_that_a_reload_takes_away_are_given_back():
    """Else a user whose rights change often could subscribe to nothing any more."""
    world = world_of(ANN)
    ann = come(world, p.V5, "ann", "a")
    assert ann.subscribe("x", "y", "z") == (1, 1, 1)
    judge_again(world.hub, lambda _client, topic, _way: topic == "x", lambda *_: True, 0)
    world.perform()
    assert ann.closed == "rights_changed"
    assert world.hub.quotas.taken("subscriptions", user="ann") == 0  # its session ended with it
    again = come(world, p.V5, "ann", "a")
    judge_again(world.hub, None, lambda *_: True, 0)
    assert again.subscribe("x", "y", "z") == (1, 1, 1)


def test_subscriptions_of_sessions_on_disk_count_after_a_restart():
    world = World(disk=Disk())
    kept(world, p.V5).subscribe("a", "b")
    world = world.after(orderly=True)
    session = world.hub.sessions["c"]
    assert session.holder == Holder(None, "")
    kept(world, p.V5).send(p.Unsubscribe(3, ("a", "b")))


@pytest.mark.parametrize("seed", range(15))
def test_what_is_counted_is_what_there_is(seed):
    """After anything that clients do, in any order, the counts are those of a recount."""
    chance = random.Random(seed)
    world = world_of(
        Quota(connections=4, subscriptions=6, retained=3, queue_bytes=1_500),
        Quota(connections=6, subscriptions=9, retained=5),
    )
    live = []
    for _ in range(150):
        live = [client for client in live if client.closed is None]
        act = chance.randrange(7)
        if act == 0 or not live:
            wanted = p.Properties(session_expiry_interval=chance.choice((0, 20)))
            user, name = chance.choice(("ann", "ben")), f"c{chance.randrange(6)}"
            fields = {"clean_start": chance.random() < 0.3, "properties": wanted}
            address = f"10.0.0.{chance.randrange(2)}:1"
            client = come(world, p.V5, user, f"{user}{name}", address, **fields)
            live.append(client)
        elif act == 1:
            chance.choice(live).send(
                p.Subscribe(1, (p.Filter(chance.choice("abcd#"), chance.randrange(3)),))
            )
        elif act == 2:
            chance.choice(live).send(p.Unsubscribe(2, (chance.choice("abcd#"),)))
        elif act == 3:
            payload = chance.choice((b"", b"x" * chance.randrange(200)))
            fields = {"message_expiry_interval": 3} if chance.random() < 0.3 else {}
            chance.choice(live).publish(chance.choice("abcdef"), payload, 1, retain=True, **fields)
        elif act == 4:
            client = live.pop(chance.randrange(len(live)))
            chance.choice((client.lose, client.disconnect))()
        elif act == 5:
            granted = chance.sample("abcdef#", 5)
            judge_again(world.hub, partial(_granted, granted), lambda *_: True, world.now_ms)
            world.perform()
            judge_again(world.hub, None, lambda *_: True, world.now_ms)
        else:
            world.advance(chance.randrange(8_000))
        recount(world)


def _granted(granted, _client, topic, _way):
    return topic in granted


def recount(world):
    hub = world.hub
    connections = Counter(
        session.client.user for session in hub.sessions.values() if session.connection
    )
    subscriptions, queued = Counter(), Counter()
    for session in hub.sessions.values():
        subscriptions[session.client.user] += len(session.subscriptions)
        queued[session.client.user] += session.outgoing.room.held_bytes
    for user in ("ann", "ben"):
        assert hub.quotas.taken("connections", user=user) == connections[user] <= 4
        assert hub.quotas.taken("subscriptions", user=user) == subscriptions[user] <= 6
        # A retained message alone may be larger, else nothing would make it leave.
        assert hub.quotas.account(user).held_bytes == queued[user] <= 1_500 + 6 * 402
    retained = [hub.quotas.taken("retained", user=user) for user in ("ann", "ben")]
    assert sum(retained) == hub.router.retained.size
    assert max(retained) <= 3
