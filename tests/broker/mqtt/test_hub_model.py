"""Clients come, go, subscribe and publish in any order; each gets what `hub_model` says."""

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.routing import router
from broker.mqtt.routing.message import QueuedMessage
from broker.mqtt.routing.router import TopicRouter
from broker.mqtt.sessions import client_queue as outgoing
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.connection import Connection
from broker.mqtt.sessions.session import Session
from broker.mqtt.storage.rows import (
    MessageRow,
    PacketRow,
    QueueRow,
    RetainedRow,
    SessionRow,
    SubscriptionRow,
)
from tests.broker.mqtt.hub_model import EXPIRY_311_MS, Heard, Model, Said, Wanted, Will
from tests.broker.mqtt.world import Disk, World

ALL = ("ann", "bob", "cid")
NAMES = st.sampled_from(ALL)
CONNECTED = st.runner().flatmap(lambda machine: st.sampled_from(sorted(machine.clients)))
UNCONFIRMED = st.runner().flatmap(lambda machine: st.sampled_from(sorted(machine.unconfirmed)))
TOPICS = st.sampled_from(["t", "t/x", "t/y", "u", "t/x/y", "headwater/events/E/s", "headwater/x"])
FILTERS = st.sampled_from(
    ["t", "t/x", "t/+", "t/#", "+", "#", "+/x", "+/+/#", "u", "$SYS/#", "headwater/#"]
)
QOS = st.integers(0, 2)
WILLS = st.none() | st.tuples(TOPICS, QOS, st.booleans(), st.sampled_from([0, 0, 2, 5]))
EXPIRIES = st.sampled_from([None, None, None, 1, 3])  # seconds
MESSAGES = st.tuples(TOPICS, st.integers(0, 2), st.booleans(), st.booleans(), EXPIRIES)


class Hub(RuleBasedStateMachine):
    """Each step is done to the hub and to the model, and what came of it is compared."""

    disk = None  # makes one, for hubs that keep what they promise

    def __init__(self):
        super().__init__()
        self.world = World(disk=self.disk and self.disk())
        self.model = Model(self.world.now_ms)
        self.clients = {}
        self.unconfirmed = {}  # by client: QoS by packet identifier
        self.releasing = {}  # by client: the packet identifiers of PUBRELs not answered yet
        self.number = 0

    def payload(self):
        self.number += 1
        return b"%d" % self.number

    def depart(self, name):
        self.unconfirmed.pop(name, None)
        return self.clients.pop(name)

    def compare(self):
        """What came to each client, and nothing came to others."""
        expected = self.model.take()
        for name, client in self.clients.items():
            got = [self.heard(name, x) for x in client.take() if isinstance(x, p.Publish)]
            wanted = expected.pop(name, [])
            assert self.ordered(got) == self.ordered(wanted), name
        assert not expected

    def ordered(self, heard):
        """As it came, where that is the only order."""
        return heard

    def heard(self, name, packet):
        if packet.qos:
            self.unconfirmed.setdefault(name, {})[packet.packet_id] = packet.qos
        properties = packet.properties or p.Properties()
        return Heard(
            *(packet.topic, packet.payload, packet.qos, packet.retain),
            tuple(sorted(properties.subscription_identifier)),
            properties.message_expiry_interval,
            packet.dup,
        )

    @initialize(
        v5=st.lists(st.booleans(), min_size=3, max_size=3),
        filters=st.lists(FILTERS, min_size=3, max_size=3),
        qos=st.lists(QOS, min_size=3, max_size=3),
        no_local=st.booleans(),
    )
    def begin(self, v5, filters, qos, no_local):
        """Three clients with kept sessions and overlapping subscriptions, so that much happens."""
        for name, speaks_v5, other, granted in zip(ALL, v5, filters, qos, strict=True):
            self.connect(name, speaks_v5, False, 60, None)
            both = list(dict.fromkeys(("t/#", other)))
            self.subscribe(name, both, [granted, 2 - granted], no_local, False, 1, 0)

    # --- connections ----------------------------------------------------------------------------

    @rule(
        name=NAMES,
        v5=st.booleans(),
        clean=st.booleans(),
        expiry_s=st.sampled_from([0, 3, 60]),
        will=WILLS,
    )
    def connect(self, name, v5, clean, expiry_s, will):
        packet = p.Connect(p.V5 if v5 else p.V311, name, clean)
        expiry_ms = 0 if clean else EXPIRY_311_MS
        if v5:
            expiry_ms = expiry_s * 1000
            properties = p.Properties(session_expiry_interval=expiry_s)
            packet = replace(packet, properties=properties)
        after = None
        if will is not None:
            topic, qos, retain, delay_s = will
            payload, delay_s = self.payload(), delay_s if v5 else 0
            after = Will(Said(topic, payload, qos, retain, name), delay_s * 1000)
            held = p.Properties(will_delay_interval=delay_s) if v5 else None
            packet = replace(packet, will=p.Will(topic, payload, qos, retain, held))
        old = self.clients.get(name)
        present = self.model.connect(name, v5, clean, expiry_ms, after)
        self.clients[name] = client = self.world.client(packet.version, sent=packet)
        self.unconfirmed.pop(name, None)
        assert client.welcome.code == 0
        assert client.welcome.session_present == present
        released = [x.packet_id for x in client.got if isinstance(x, p.Pubrel)]
        assert released == (self.releasing.setdefault(name, []) if present else [])
        self.releasing[name] = released
        if old is not None:
            assert old.closed == "session_taken_over"
            assert not any(isinstance(x, p.Publish) for x in old.take())
            old.lose()
        self.compare()

    @precondition(lambda self: self.clients)
    @rule(name=CONNECTED, breaks=st.booleans())
    def lose(self, name, breaks):
        """The network breaks, or the client breaks the protocol: it is lost either way."""
        client = self.depart(name)
        if breaks:
            client.send_bytes(b"\x00\x00")
            assert client.closed == "malformed_packet"
        client.lose()
        self.model.lose(name)
        self.compare()

    @precondition(lambda self: self.clients)
    @rule(
        name=CONNECTED,
        code=st.sampled_from([0, 0, 4, 0x80]),
        expiry_s=st.none() | st.sampled_from([0, 1, 9]),
    )
    def leave(self, name, code, expiry_s):
        client = self.depart(name)
        session = self.model.sessions[name]
        if client.version == p.V311:
            client.disconnect()
            self.model.leave(name)
        else:
            if expiry_s is None or not session.expiry_ms:
                client.disconnect(code)
            else:
                client.disconnect(code, session_expiry_interval=expiry_s)
                session.expiry_ms = expiry_s * 1000
            self.model.leave(name, with_will=code != 0)
        assert client.closed == "client_disconnected"
        self.compare()

    @rule(half_seconds=st.sampled_from([1, 2, 4, 9, 130]))
    def wait(self, half_seconds):
        self.model.advance(500 * half_seconds)
        self.world.advance(500 * half_seconds)
        self.compare()

    # --- messages -------------------------------------------------------------------------------

    @precondition(lambda self: self.clients)
    @rule(name=CONNECTED, messages=st.lists(MESSAGES, min_size=1, max_size=4))
    def publish(self, name, messages):
        for message in messages:
            self.publish_one(name, self.clients[name], *message)

    def publish_one(self, name, client, topic, qos, retain, empty, expiry_s):
        payload = b"" if retain and empty else self.payload()
        properties = {}
        expires_ms = None
        if client.version == p.V5 and expiry_s is not None:
            properties["message_expiry_interval"] = expiry_s
            expires_ms = self.model.now_ms + 1000 * expiry_s
        taken = len(self.model.handed_up)
        count = self.model.publish(Said(topic, payload, qos, retain, name, expires_ms))
        client.publish(topic, payload, qos, retain, 7, **properties)
        answers = [x for x in client.got if isinstance(x, p.Puback | p.Pubrec)]
        code = 0
        if client.version == p.V5 and not count and len(self.model.handed_up) == taken:
            code = Reason.NO_MATCHING_SUBSCRIBERS
        assert answers == [[], [p.Puback(7, code)], [p.Pubrec(7, code)]][qos]
        if qos == 2:
            client.send(p.Pubrel(7))
            assert client.got.pop() == p.Pubcomp(7)
        self.compare()

    @rule(topic=TOPICS | st.just("$SYS/x"), qos=QOS, retain=st.booleans(), empty=st.booleans())
    def application_publishes(self, topic, qos, retain, empty):
        payload = b"" if retain and empty else self.payload()
        count = self.model.publish(Said(topic, payload, qos, retain, ""))
        assert self.world.publish(topic, payload, qos, retain) == count
        self.compare()

    @precondition(lambda self: self.unconfirmed)
    @rule(name=UNCONFIRMED, complete=st.booleans())
    def confirm(self, name, complete):
        """At QoS 2 the client's answer is itself answered, and that once more or not."""
        client = self.clients[name]
        given = self.unconfirmed.pop(name, {})
        client.send(*((p.Puback, p.Pubrec)[qos - 1](number) for number, qos in given.items()))
        received = [packet_id for packet_id, qos in given.items() if qos == 2]
        released = [packet for packet in client.got if isinstance(packet, p.Pubrel)]
        assert released == [p.Pubrel(packet_id) for packet_id in received]
        releasing = self.releasing.setdefault(name, [])
        releasing += received
        if complete:
            client.send(*map(p.Pubcomp, releasing))
            releasing.clear()
        self.model.acknowledge(name)
        self.compare()

    # --- subscriptions --------------------------------------------------------------------------

    @precondition(lambda self: self.clients)
    @rule(
        name=CONNECTED,
        filters=st.lists(FILTERS, min_size=1, max_size=2, unique=True),
        qos=st.lists(QOS, min_size=2, max_size=2),
        no_local=st.booleans(),
        as_published=st.booleans(),
        identifier=st.sampled_from([0, 1, 2]),
        handling=st.integers(0, 2),
    )
    def subscribe(self, name, filters, qos, no_local, as_published, identifier, handling):
        client = self.clients[name]
        if client.version == p.V311:
            no_local = as_published = False
            identifier = handling = 0
        options = (no_local, as_published)
        wanted = {f: Wanted(q, *options, identifier) for f, q in zip(filters, qos, strict=False)}
        items = tuple(p.Filter(f, w.qos, *options, handling) for f, w in wanted.items())
        held = p.Properties(subscription_identifier=(identifier,)) if identifier else None
        client.send(p.Subscribe(9, items, held))
        assert client.got[0] == p.Suback(9, tuple(w.qos for w in wanted.values()))
        heard = [packet.topic for packet in client.got if isinstance(packet, p.Publish)]
        self.model.subscribe(name, wanted, handling, heard)
        self.compare()

    @precondition(lambda self: self.clients)
    @rule(name=CONNECTED, topic_filter=FILTERS)
    def unsubscribe(self, name, topic_filter):
        client = self.clients[name]
        there = self.model.unsubscribe(name, topic_filter)
        client.send(p.Unsubscribe(9, (topic_filter,)))
        (answer,) = client.take()
        if client.version == p.V5:
            assert answer.codes == (0 if there else Reason.NO_SUBSCRIPTION_EXISTED,)

    # --- always ---------------------------------------------------------------------------------

    @invariant()
    def the_application_has_what_was_meant_for_it(self):
        handed = [(m.topic, m.payload, m.qos, m.retain) for m in self.world.handed()]
        expected, self.model.handed_up = self.model.handed_up, []
        assert handed == [(m.topic, m.payload, m.qos, m.retain) for m in expected]

    @invariant()
    def what_is_kept_is_what_the_model_keeps(self):
        hub, model = self.world.hub, self.model
        assert set(hub.sessions) == set(model.sessions)
        live = {t: m for t, m in model.retained.items() if m.live(model.now_ms)}
        assert {m.topic: m.payload for m in hub.retained("#")} == {
            topic: said.payload for topic, said in live.items() if topic[0] != "$"
        }
        assert hub.counters.subscriptions == sum(
            len(session.subscriptions) for session in model.sessions.values()
        )
        for name, session in model.sessions.items():
            outgoing = hub.sessions[name].outgoing
            assert len(outgoing._inflight) + outgoing.held_messages == len(session.owed)


TestHub = pytest.mark.timeout(60)(Hub.TestCase)
TestHub.settings = settings(max_examples=120, stateful_step_count=40)


class KeptHub(Hub):
    """The same with a disk, and with ends of the process in between."""

    disk = Disk

    def ordered(self, heard):
        """There is an order at each QoS (MQTT-4.6.0-5): a crash tells more of QoS 2 than of 1."""
        return sorted(heard, key=lambda one: one.qos)

    @rule(orderly=st.booleans())
    def restart(self, orderly):
        self.model.restart(orderly)
        self.world = self.world.after(orderly=orderly)
        self.clients.clear()
        self.unconfirmed.clear()
        self.compare()

    @invariant()
    def nothing_is_left_on_disk_that_nobody_needs(self):
        hub, rows = self.world.hub, self.world.disk.tables
        kept = {name for name, one in self.model.sessions.items() if one.expiry_ms}
        willed = {name for name, one in self.model.sessions.items() if one.will is not None}
        assert {key[0] for key in rows[SessionRow]} == kept | willed
        assert {key[0] for key in rows[SubscriptionRow]} <= kept
        assert len(rows[QueueRow]) == sum(len(self.model.sessions[name].owed) for name in kept)
        assert {key[0] for key in rows[MessageRow]} == {
            row.message for row in rows[QueueRow].values()
        }
        assert len(rows[PacketRow]) <= sum(map(len, self.releasing.values()))
        assert {key[0] for key in rows[RetainedRow]} == {
            message.topic
            for message in hub.retained("#")
            if hub.router.retained.get(message.topic).sender
        }


TestKeptHub = pytest.mark.timeout(120)(KeptHub.TestCase)
TestKeptHub.settings = settings(max_examples=120, stateful_step_count=40)


@pytest.mark.long
@pytest.mark.timeout(300)
class TestKeptHubLong(KeptHub.TestCase):
    settings = settings(max_examples=2000, stateful_step_count=60)


@pytest.mark.long
@pytest.mark.timeout(300)
class TestHubLong(Hub.TestCase):
    settings = settings(max_examples=2000, stateful_step_count=60)


# --- the model finds what is wrong ----------------------------------------------------------------


def forgets_what_was_sent(monkeypatch):
    monkeypatch.setattr(ClientQueue, "attach", lambda self, pipe: setattr(self, "pipe", pipe))


def lets_a_will_come_though_its_client_is_back(monkeypatch):
    monkeypatch.setattr(Session, "still_timers", lambda self: None)


def takes_the_first_qos(monkeypatch):
    def worst(subscriptions, merge=router._delivery):
        return replace(merge(subscriptions), qos=subscriptions[0].filter.qos)

    monkeypatch.setattr(router, "_delivery", worst)


def leaves_routes_as_they_were(monkeypatch):
    def unsubscribe(self, client_id, topic_filter):
        there = self._filters.remove(topic_filter, client_id)
        self._counters.subscriptions = self._filters.size
        return there

    monkeypatch.setattr(TopicRouter, "unsubscribe", unsubscribe)


def keeps_the_retain_flag(monkeypatch):
    def held_for(message, delivery):
        return QueuedMessage(message, message.retain, delivery.identifiers)

    monkeypatch.setattr(outgoing, "held_for", held_for)


def hears_itself(monkeypatch):
    monkeypatch.setattr(router, "_merge", router._delivery)


def keeps_a_will_after_disconnect(monkeypatch):
    def disconnect(self, _packet, now_ms):
        self.hub.close(self, "client_disconnected", now_ms)

    monkeypatch.setattr(Connection, "_disconnect", disconnect)


def expires_nothing(monkeypatch):
    monkeypatch.setattr(TopicRouter, "_expire", lambda self, topic: None)


def drops_qos_1_for_the_absent(monkeypatch):
    def offer(self, message, delivery, now_ms, send=ClientQueue.offer):
        if self.pipe is None:
            return True
        return send(self, message, delivery, now_ms)

    monkeypatch.setattr(ClientQueue, "offer", offer)


def forgets_identifiers(monkeypatch):
    def subscribe(self, subscription, put=TopicRouter.subscribe):
        return put(self, replace(subscription, identifier=0))

    monkeypatch.setattr(TopicRouter, "subscribe", subscribe)


FAULTS = (
    forgets_what_was_sent,
    lets_a_will_come_though_its_client_is_back,
    takes_the_first_qos,
    leaves_routes_as_they_were,
    keeps_the_retain_flag,
    hears_itself,
    keeps_a_will_after_disconnect,
    expires_nothing,
    drops_qos_1_for_the_absent,
    forgets_identifiers,
)


@pytest.mark.long
@pytest.mark.timeout(60)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    fault(monkeypatch)
    some = settings(
        max_examples=1_000, stateful_step_count=40, phases=[Phase.generate], derandomize=True
    )
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(Hub, settings=some)
