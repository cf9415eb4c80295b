"""A broker ends, orderly or killed, and comes back: what MQTT clients were promised is there."""

import asyncio
import json
import signal
import time

import pytest

from broker.mqtt.codec import packets as p
from tests.broker.mqtt.sockets import RawClient
from tests.broker.running import CONFIG, RunningBroker, ask, client

KEPT = p.Properties(session_expiry_interval=3600)
# Each start takes its time: of what makes no difference one case is enough every day.
KILL = pytest.param(signal.SIGKILL, id="kill")
ENDS = pytest.mark.parametrize(
    "number", [KILL, pytest.param(signal.SIGTERM, id="term", marks=pytest.mark.long)]
)
HOT = """
event Temp(val: float)
subscription Hot from anna to alerts
detect Temp(val > 30)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a broker on one data directory, again and again."""

    def begin(*flags):
        data = ("--set", f"broker.data_dir={tmp_path}/data")
        return RunningBroker(tmp_path, CONFIG, *data, *flags)

    return begin


def end(broker, number):
    broker.process.send_signal(number)
    broker.ended()


OPEN = []


async def join(broker, name, version=p.V5, **fields):
    properties = fields.pop("properties", KEPT) if version == p.V5 else None
    one = await RawClient.open(
        broker.port(), version, name, clean_start=False, properties=properties, **fields
    )
    OPEN.append(one)
    return one


def run(scene, broker, *given, number=signal.SIGTERM):
    """Run a scene and end the broker, whose clients are still connected then."""

    async def whole():
        try:
            return await scene(broker, *given)
        finally:
            end(broker, number)
            for one in OPEN:
                one.writer.transport.abort()
            OPEN.clear()
            await asyncio.sleep(0)  # so that the transports are closed

    return asyncio.run(whole())


async def publishes(one, count):
    """The next messages; what else comes in between is passed over."""
    found = []
    while len(found) < count:
        packet = await one.next()
        assert packet is not None, found
        if isinstance(packet, p.Publish):
            found.append(packet)
    return found


async def until_silent(one):
    """What comes before the answer to a ping."""
    await one.send(p.Pingreq())
    found = []
    while not isinstance(packet := await one.next(), p.Pingresp):
        assert packet is not None, found
        found.append(packet)
    return found


async def silent(one):
    assert await until_silent(one) == []


@pytest.mark.parametrize(
    ("version", "number"),
    [(p.V311, signal.SIGKILL), (p.V5, signal.SIGTERM)],
    ids=["311-kill", "5-term"],
)
def test_sessions_queues_in_order_and_retained_messages_come_back(start, version, number):
    async def before(broker):
        reader = await join(broker, "reader", version)
        await reader.send(p.Subscribe(1, (p.Filter("q/#", 2),)))
        assert isinstance(await reader.next(), p.Suback)
        await reader.close()
        writer = await join(broker, "writer", version)
        for count in range(1, 201):
            await writer.send(p.Publish(f"q/{count % 3}", b"%d" % count, 1, packet_id=count))
        await writer.send(p.Publish("kept/state", b"on", 1, retain=True, packet_id=999))
        acked = [(await writer.next()).packet_id for _ in range(201)]
        assert acked == [*range(1, 201), 999]
        await writer.close()

    async def after(broker):
        reader = await join(broker, "reader", version)
        assert reader.welcome.session_present
        got = await publishes(reader, 200)
        assert [int(packet.payload) for packet in got] == list(range(1, 201))
        await reader.send(*(p.Puback(packet.packet_id) for packet in got))
        await reader.send(p.Subscribe(2, (p.Filter("kept/+", 1),)))
        (state,) = await publishes(reader, 1)
        assert (state.payload, state.retain) == (b"on", True)
        await reader.send(p.Puback(state.packet_id))
        await silent(reader)
        await reader.close()

    async def last(broker):
        reader = await join(broker, "reader", version)
        await silent(reader)
        await reader.close()

    with start() as broker:
        run(before, broker, number=number)
    with start() as broker:
        run(after, broker)
    with start() as broker:
        run(last, broker)


@ENDS
def test_the_handshakes_of_qos_2_go_on_on_both_sides(start, number):
    async def before(broker):
        reader = await join(broker, "reader")
        await reader.send(p.Subscribe(1, (p.Filter("q", 2),)))
        assert isinstance(await reader.next(), p.Suback)
        writer = await join(broker, "writer")
        for packet_id in (1, 2, 3):
            await writer.send(p.Publish("q", b"%d" % packet_id, 2, packet_id=packet_id))
            assert await writer.next() == p.Pubrec(packet_id)
        await writer.send(p.Pubrel(3))
        assert await writer.next() == p.Pubcomp(3)
        first, second, third = await publishes(reader, 3)
        await reader.send(p.Pubrec(first.packet_id), p.Pubrec(second.packet_id))
        assert await reader.next() == p.Pubrel(first.packet_id)
        assert await reader.next() == p.Pubrel(second.packet_id)
        await reader.send(p.Pubcomp(first.packet_id))
        await silent(reader)
        return second.packet_id, third.packet_id

    async def after(broker, second, third):
        writer = await join(broker, "writer")
        for packet_id in (1, 2):
            await writer.send(p.Publish("q", b"%d" % packet_id, 2, False, True, packet_id))
            assert await writer.next() == p.Pubrec(packet_id)
            await writer.send(p.Pubrel(packet_id))
            assert await writer.next() == p.Pubcomp(packet_id)
        await writer.send(p.Publish("q", b"new", 2, packet_id=3))
        assert await writer.next() == p.Pubrec(3)
        reader = await join(broker, "reader")
        assert reader.welcome.session_present
        got = await until_silent(reader)
        releases = [packet for packet in got if isinstance(packet, p.Pubrel)]
        messages = [packet for packet in got if isinstance(packet, p.Publish)]
        # That the first is over is written without haste, and may be told once more.
        assert p.Pubrel(second) in releases
        assert len(releases) <= 2
        assert [(x.payload, x.dup) for x in messages] == [(b"3", True), (b"new", False)]
        assert messages[0].packet_id == third
        await writer.close()
        await reader.close()

    with start() as broker:
        kept = run(before, broker, number=number)
    with start() as broker:
        run(after, broker, *kept)


def test_a_session_that_is_over_meanwhile_is_gone(start):
    async def before(broker):
        short = await join(broker, "short", properties=p.Properties(session_expiry_interval=1))
        await short.send(p.Subscribe(1, (p.Filter("q", 1),)))
        await short.next()
        await short.close()

    async def after(broker):
        short = await join(broker, "short")
        assert not short.welcome.session_present
        await short.close()

    with start() as broker:
        run(before, broker)
    time.sleep(1.1)  # what is left of a session's time is told by the time of day
    with start() as broker:
        run(after, broker)


def test_wills_of_clients_that_a_killed_broker_lost_are_published(start):
    async def before(broker):
        reader = await join(broker, "reader")
        await reader.send(p.Subscribe(1, (p.Filter("w", 1),)))
        await reader.next()
        mortal = await join(broker, "mortal", will=p.Will("w", b"gone", 1))
        await silent(mortal)

    async def after(broker):
        reader = await join(broker, "reader")
        (will,) = await publishes(reader, 1)
        assert will.payload == b"gone"
        await reader.close()

    with start() as broker:
        run(before, broker, number=signal.SIGKILL)
    with start() as broker:
        run(after, broker)


@ENDS
def test_results_reach_a_session_that_was_away_through_a_restart(start, number):
    """At least once: by their ids every one is there, in order."""

    async def before(broker):
        reader = await join(broker, "reader")
        await reader.send(p.Subscribe(1, (p.Filter("headwater/results/anna/Hot", 1),)))
        await reader.next()
        await reader.close()
        async with client(broker.port()) as one:
            assert (await ask(one, "submit", HOT))["ok"]
            for count in range(40):
                text = json.dumps({"val": 31 + count, "id": f"e{count}"})
                await one.publish("headwater/events/Temp/t1", text, qos=1)

    async def after(broker):
        reader = await join(broker, "reader")
        got, seen = [], set()
        while len(got) < 40:
            (packet,) = await publishes(reader, 1)
            await reader.send(p.Puback(packet.packet_id))
            result = json.loads(packet.payload)
            if result["id"] not in seen:
                seen.add(result["id"])
                got += result["events"]["Temp"]
        assert got == [f"e{count}" for count in range(40)]
        await reader.close()

    with start() as broker:
        run(before, broker, number=number)
    with start() as broker:
        run(after, broker)


def test_without_a_data_directory_nothing_outlasts_the_process(tmp_path):
    async def before(broker):
        one = await join(broker, "reader")
        await one.send(p.Subscribe(1, (p.Filter("q", 1),)))
        await one.next()
        await one.close()
        one = await join(broker, "reader")
        assert one.welcome.session_present
        await one.close()

    async def after(broker):
        one = await join(broker, "reader")
        assert not one.welcome.session_present
        await one.close()

    for scene in (before, after):
        with RunningBroker(tmp_path, CONFIG, "--set", "broker.data_dir=") as broker:
            run(scene, broker)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_many_kills_lose_nothing_that_was_acknowledged(start):
    """A publisher at QoS 1 and a session that is away; ten processes, killed in the middle."""
    acked, number = [], 0

    async def publish(broker):
        nonlocal number
        writer = await join(broker, "writer")
        for _ in range(30):
            number += 1
            packet_id = number % 60_000 + 1
            await writer.send(p.Publish("q", b"%d" % number, 1, packet_id=packet_id))
            packet = await writer.next()
            assert packet.packet_id == packet_id
            acked.append(number)
        for _ in range(20):  # on their way when it is killed
            number += 1
            await writer.send(p.Publish("q", b"%d" % number, 1, packet_id=number % 60_000 + 1))

    async def subscribe(broker):
        reader = await join(broker, "reader")
        await reader.send(p.Subscribe(1, (p.Filter("q", 1),)))
        await reader.next()
        await reader.close()
        await publish(broker)

    async def read(broker):
        reader = await join(broker, "reader")
        got = []
        while not got or got[-1] < acked[-1]:
            (packet,) = await publishes(reader, 1)
            got.append(int(packet.payload))
            await reader.send(p.Puback(packet.packet_id))
        return got

    for turn in range(10):
        with start() as broker:
            run(publish if turn else subscribe, broker, number=signal.SIGKILL)
    with start() as broker:
        got = run(read, broker)
    assert got == sorted(got)
    assert set(acked) <= set(got)
