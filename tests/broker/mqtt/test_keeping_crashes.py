"""What was acknowledged comes, and at QoS 2 once, wherever the process ends."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.hub import Hub
from broker.mqtt.sessions.connection import Connection
from broker.mqtt.storage.batches import HubStorage
from tests.broker.mqtt.world import Disk, World, kept

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "say", "hear", "hear", "hear", "sync", "sync", "end", "kill", "lose"]
        ),
        st.booleans(),  # whether the disk is quick from here on
        st.integers(0, 5),
    ),
    min_size=5,
    max_size=80,
)


class Publisher:
    """Publishes in order and repeats what it does not know to be taken, as clients do."""

    def __init__(self):
        self.client = None
        self.unacked = {}
        self.releasing = {}
        self.acked = {"q1": [], "q2": []}
        self.number = 0

    def say(self, qos):
        free = (n for n in range(1, 999) if n not in self.unacked and n not in self.releasing)
        packet_id = next(free)
        self.number += 1
        said = p.Publish(f"q{qos}", b"%d" % self.number, qos, packet_id=packet_id)
        self.unacked[packet_id] = said
        self.client.send(said)

    def join(self, world, version):
        self.client = kept(world, version, "pub")
        self.client.send(*map(p.Pubrel, self.releasing))
        for said in self.unacked.values():
            rest = (said.topic, said.payload, said.qos, False, True, said.packet_id)
            self.client.send(p.Publish(*rest))

    def hear(self):
        for packet in self.client.take():
            if isinstance(packet, p.Puback | p.Pubrec) and packet.packet_id in self.unacked:
                said = self.unacked.pop(packet.packet_id)
                self.acked[said.topic].append(int(said.payload))
            if isinstance(packet, p.Pubrec):
                self.releasing[packet.packet_id] = None
                self.client.send(p.Pubrel(packet.packet_id))
            elif isinstance(packet, p.Pubcomp):
                self.releasing.pop(packet.packet_id, None)


class Subscriber:
    """Confirms what it gets; at QoS 2 it knows what it has by the packet identifier."""

    def __init__(self):
        self.client = None
        self.known = {}
        self.got = {"q1": [], "q2": []}

    def join(self, world, version):
        self.client = kept(world, version, "sub")

    def hear(self):
        for packet in self.client.take():
            if isinstance(packet, p.Publish):
                if packet.qos == 1 or packet.packet_id not in self.known:
                    self.got[packet.topic].append(int(packet.payload))
                if packet.qos == 2:
                    self.known[packet.packet_id] = None
                answer = p.Puback if packet.qos == 1 else p.Pubrec
                self.client.send(answer(packet.packet_id))
            elif isinstance(packet, p.Pubrel):
                self.known.pop(packet.packet_id, None)
                self.client.send(p.Pubcomp(packet.packet_id))


class Scene:
    def __init__(self, version):
        self.version = version
        self.world = World(disk=Disk())
        kept(self.world, version, "sub").subscribe("q1", "q2", qos=2)
        self.publisher, self.subscriber = Publisher(), Subscriber()
        self.both = (self.publisher, self.subscriber)

    def restart(self, orderly, commits):
        for one in self.both:
            one.client = None
        commits = min(commits, len(self.world.commits))
        self.world = self.world.after(orderly=orderly, commits=commits)

    def step(self, verb, quick, number):
        self.world.syncs = quick
        one = self.publisher if verb == "say" else self.both[number % 2]
        if one.client is None and verb in {"say", "hear"}:
            one.join(self.world, self.version)
        if verb == "say":
            self.publisher.say(1 + number % 2)
        elif verb == "hear":
            one.hear()
        elif verb == "sync":
            self.world.sync(1 + number)
        elif verb in {"end", "kill"}:
            self.restart(verb == "end", number // 2)
        elif verb == "lose" and one.client is not None:
            one.client.lose()
            one.client = None

    def finish(self):
        """All clients come back and hear all there is."""
        self.world.syncs = True
        self.world.sync()
        self.restart(False, 0)
        for one in self.both:
            one.join(self.world, self.version)
        while any(one.client.got for one in self.both):
            for one in self.both:
                one.hear()


def check(steps, version):
    scene = Scene(version)
    for step in steps:
        scene.step(*step)
    scene.finish()
    publisher, got = scene.publisher, scene.subscriber.got
    assert not publisher.unacked
    everything = {"q1": [], "q2": []}
    for topic, numbers in publisher.acked.items():
        everything[topic] = sorted(numbers)
    assert sorted(set(got["q1"])) == everything["q1"]
    first = list(dict.fromkeys(got["q1"]))
    assert first == sorted(first)
    assert got["q2"] == everything["q2"]
    assert scene.world.disk.count() == {"mqtt_sessions": 2, "mqtt_subscriptions": 2}


@settings(max_examples=200)
@given(steps=STEPS, version=st.sampled_from([p.V311, p.V5]))
def test_what_was_acknowledged_comes_and_at_qos_2_once(steps, version):
    """The process ends at any moment, with any number of its commits done; so do connections."""
    check(steps, version)


@pytest.mark.long
@pytest.mark.timeout(300)
@settings(max_examples=10_000)
@given(steps=STEPS, version=st.sampled_from([p.V311, p.V5]))
def test_what_was_acknowledged_comes_and_at_qos_2_once_long(steps, version):
    check(steps, version)


# --- the test finds what is wrong -----------------------------------------------------------------


def answers_before_the_disk_has_it(monkeypatch):
    monkeypatch.setattr(Hub, "_end", lambda self, connection: None)


def lets_everything_leave_at_once(monkeypatch):
    monkeypatch.setattr(Connection, "hold_back", lambda self, number, since=-1: None)


def forgets_what_was_taken(monkeypatch):
    monkeypatch.setattr(HubStorage, "received", lambda self, client_id, packet_id: None)


def forgets_what_was_released(monkeypatch):
    monkeypatch.setattr(HubStorage, "released", lambda self, client_id, packet_id: None)


def forgets_what_the_client_has(monkeypatch):
    monkeypatch.setattr(HubStorage, "releasing", lambda self, client_id, packet_id: None)


FAULTS = (
    answers_before_the_disk_has_it,
    lets_everything_leave_at_once,
    forgets_what_was_taken,
    forgets_what_was_released,
    forgets_what_the_client_has,
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    fault(monkeypatch)
    some = settings(max_examples=1500, phases=[Phase.generate], database=None)
    versions = st.sampled_from([p.V311, p.V5])
    with pytest.raises((AssertionError, KeyError)):
        some(given(STEPS, versions)(check))()
