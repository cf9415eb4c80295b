"""aiomqtt and paho against a broker process: what mosquitto's programs cannot ask for."""

import asyncio
import socket
import time

import aiomqtt
import pytest
from aiomqtt.client import ProtocolVersion
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.broker.running import CONFIG, RunningBroker

PATIENCE_S = 10.0
V311, V5 = ProtocolVersion.V311, ProtocolVersion.V5
EVERY_VERSION = pytest.mark.parametrize("version", [V311, V5])


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broker")
    with RunningBroker(folder, CONFIG, "--set", f"broker.data_dir={folder}/data") as running:
        yield running
        assert running.process.poll() is None


def client(broker, identifier, version=V5, **options):
    # Else the library's small writes wait for each other's acknowledgement by TCP, 40 ms each.
    at_once = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    return aiomqtt.Client(
        *("127.0.0.1", broker.port()),
        identifier=identifier,
        protocol=version,
        socket_options=at_once,
        **options,
    )


def properties(kind, **values):
    held = Properties(kind)
    for name, value in values.items():
        setattr(held, name, value)
    return held


def staying(**values):
    return {
        "clean_start": False,
        "properties": properties(PacketTypes.CONNECT, SessionExpiryInterval=60, **values),
    }


async def take(one, count):
    found = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in one.messages:
            found.append(message)
            if len(found) == count:
                break
    return found


async def hear(one, count):
    return [(str(m.topic), m.payload.decode(), m.qos, m.retain) for m in await take(one, count)]


class Paho:
    """paho's client, driven by hand: what it was told on connecting and at the end."""

    def __init__(self, broker, identifier, will=None):
        self.welcome = self.farewell = None
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, identifier, protocol=V5)
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected
        if will is not None:
            self.client.will_set(*will)
        self.client.connect("127.0.0.1", broker.port())
        self.until(lambda: self.welcome is not None)

    def _connected(self, _client, _data, _flags, code, held):
        self.welcome = (code.value, held)

    def _disconnected(self, _client, _data, _flags, code, _held):
        self.farewell = code.value

    def until(self, condition):
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s
            self.client.loop(timeout=0.1)


def test_the_connack_tells_what_there_is(broker):
    one = Paho(broker, "paho-1")
    code, held = one.welcome
    assert code == 0
    assert (held.ReceiveMaximum, held.TopicAliasMaximum) == (500, 32)
    assert not hasattr(held, "MaximumQoS")  # it is 2, if nothing is said
    assert held.MaximumPacketSize == 4_194_304
    assert not hasattr(held, "SharedSubscriptionAvailable")  # it is, if nothing is said
    one.client.disconnect()
    one.until(lambda: one.farewell is not None)


def test_a_taken_over_client_is_told_so(broker):
    first, second = Paho(broker, "twin"), Paho(broker, "twin")
    first.until(lambda: first.farewell is not None)
    assert first.farewell == 0x8E
    second.client.disconnect()
    second.until(lambda: second.farewell is not None)


@EVERY_VERSION
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_come_whole_and_in_order(broker, version, qos):
    name = f"all-{version}-{qos}"

    async def scene():
        async with client(broker, name, version) as one:
            await one.subscribe(f"{name}/#", qos=2)
            for number in range(100):
                await one.publish(f"{name}/x", f"{number}", qos=qos)
            expected = [(f"{name}/x", f"{n}", qos, False) for n in range(100)]
            assert await hear(one, 100) == expected

    asyncio.run(scene())


def test_retain_handling_says_when_retained_messages_come(broker):
    async def scene():
        async with client(broker, "handling") as one:
            await one.publish("rh/a", "kept", qos=1, retain=True)
            for handling, count in ((2, 0), (2, 0), (1, 0), (0, 1), (0, 1)):
                options = SubscribeOptions(qos=1, retainHandling=handling)
                await one.subscribe("rh/a", options=options)
                await one.publish("rh/a", "live", qos=1)
                expected = [("rh/a", "kept", 1, True)] * count + [("rh/a", "live", 1, False)]
                assert await hear(one, count + 1) == expected, handling
            await one.unsubscribe("rh/a")
            options = SubscribeOptions(qos=1, retainHandling=1)
            await one.subscribe("rh/a", options=options)
            assert await hear(one, 1) == [("rh/a", "kept", 1, True)]

    asyncio.run(scene())


def test_no_local_keeps_a_clients_own_messages_from_it(broker):
    async def scene():
        async with client(broker, "nl-1") as one, client(broker, "nl-2") as two:
            for each in (one, two):
                await each.subscribe("nl/#", options=SubscribeOptions(qos=1, noLocal=True))
            await one.publish("nl/a", "of one", qos=1)
            await two.publish("nl/a", "of two", qos=1)
            assert await hear(one, 1) == [("nl/a", "of two", 1, False)]
            assert await hear(two, 1) == [("nl/a", "of one", 1, False)]

    asyncio.run(scene())


def test_every_matching_subscription_identifier_is_told(broker):
    async def scene():
        async with client(broker, "ids") as one:
            for number, topic_filter in enumerate(("si/#", "si/+", "other"), 1):
                held = properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=number)
                await one.subscribe(topic_filter, qos=1, properties=held)
            await one.publish("si/a", "x", qos=1)
            (message,) = await take(one, 1)
            assert sorted(message.properties.SubscriptionIdentifier) == [1, 2]

    asyncio.run(scene())


def test_members_of_a_group_share_the_messages(broker):
    async def scene():
        async with client(broker, "shared-1") as one, client(broker, "shared-2") as two:
            for each in (one, two):
                codes = await each.subscribe("$share/g/sh/#", qos=1)
                assert [code.value for code in codes] == [1]
            for number in range(20):
                await one.publish("sh/a", f"{number}", qos=1)
            heard = [await hear(each, 10) for each in (one, two)]
            texts = sorted(int(text) for some in heard for _, text, *_ in some)
            assert texts == list(range(20))

    asyncio.run(scene())


@EVERY_VERSION
def test_a_kept_session_hears_what_it_missed_and_what_it_did_not_confirm(broker, version):
    name = f"missed-{version}"
    options = staying() if version == V5 else {"clean_session": False}

    async def scene():
        async with client(broker, name, version, **options) as one:
            await one.subscribe(f"{name}/a", qos=1)
        async with client(broker, f"{name}-2") as other:
            for number in range(50):
                await other.publish(f"{name}/a", f"{number}", qos=1)
        async with client(broker, name, version, **options) as one:
            heard = await hear(one, 50)
            assert heard == [(f"{name}/a", f"{number}", 1, False) for number in range(50)]

    asyncio.run(scene())


def test_a_request_finds_its_answer_by_correlation(broker):
    async def scene():
        async with client(broker, "server") as server, client(broker, "asker") as asker:
            await server.subscribe("ask/+", qos=1)
            await asker.subscribe("answers/asker", qos=1)
            for number in (b"7", b"8"):
                held = properties(
                    PacketTypes.PUBLISH, ResponseTopic="answers/asker", CorrelationData=number
                )
                await asker.publish("ask/it", b"", qos=1, properties=held)
            for question in reversed(await take(server, 2)):
                data = question.properties.CorrelationData
                held = properties(PacketTypes.PUBLISH, CorrelationData=data)
                await server.publish(question.properties.ResponseTopic, data, 1, properties=held)
            answers = await take(asker, 2)
            assert [m.properties.CorrelationData for m in answers] == [b"8", b"7"]

    asyncio.run(scene())


def test_a_will_says_who_was_lost(broker):
    async def scene():
        async with client(broker, "watcher") as watcher:
            await watcher.subscribe("lost/+", qos=1)
            lost = Paho(broker, "lost", will=("lost/one", b"gone", 1, True))
            lost.client.socket().shutdown(socket.SHUT_RDWR)
            assert await hear(watcher, 1) == [("lost/one", "gone", 1, False)]
            lost.until(lambda: lost.farewell is not None)
        async with client(broker, "late") as late:
            await late.subscribe("lost/+", qos=1)
            assert await hear(late, 1) == [("lost/one", "gone", 1, True)]

    asyncio.run(scene())
