"""A broker that joins an MQTT server: mosquitto, and another broker's own MQTT face."""

import asyncio
import json
import random
import signal
import time

import pytest

from broker.core.messages import Payload
from tests.broker.bridge.scene import (
    TEXT,
    Scene,
    client,
    ids,
    reading,
    section,
    send,
    take,
    until,
)
from tests.broker.bridge.servers import Line, Mosquitto, OwnFace

EITHER = pytest.mark.parametrize("protocol", ["5", "3.1.1"])
SEEDS = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))]
)
PREFIX = "shop"  # on another broker, whose own topics begin otherwise


def now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture
def mosquitto(tmp_path, find_program):
    find_program("mosquitto")
    with Mosquitto(tmp_path) as running:
        yield running


@pytest.fixture(params=["mosquitto", "own"])
def server(request, tmp_path):
    if request.param == "mosquitto":
        yield request.getfixturevalue("mosquitto")
    else:
        with OwnFace() as running:
            yield running


@EITHER
def test_events_come_in_and_results_go_out_as_over_the_own_face(server, protocol):
    async def scene():
        async with (
            Scene(section(server, prefix=PREFIX, protocol=protocol, requests=True)) as site,
            client(server, f"{PREFIX}/results/#", f"{PREFIX}/actors/#") as one,
        ):
            await site.up()
            await one.subscribe(f"{PREFIX}/reply/#", qos=1)
            await one.publish(f"{PREFIX}/submit/me/1", TEXT, qos=1)
            replies = await take(one, lambda found: len(found) == 2)
            assert [topic for topic, _ in replies] == [f"{PREFIX}/reply/me/1"] * 2
            assert [told["state"] for _, told in replies] == ["accepted", "active"]
            await one.publish(f"{PREFIX}/list/me/2", "", qos=1)
            ((topic, told),) = await take(one, len)
            assert topic == f"{PREFIX}/reply/me/2"
            assert [listed["subscription"] for listed in told["subscriptions"]] == ["Hot"]
            await send(one, range(3), now_ms(), PREFIX)
            found = await take(one, lambda found: len(found) == 6)
            for topic in (f"{PREFIX}/results/anna/Hot", f"{PREFIX}/actors/alerts"):
                assert ids(told for where, told in found if where == topic) == ["e0", "e1", "e2"]
            assert ids(site.inside.results) == ["e0", "e1", "e2"]
            await until(lambda: site.join.counts()["acknowledged"] == 5)

    asyncio.run(scene())


@EITHER
def test_what_is_late_or_refused_is_told_there_and_advertisements_are_taken(server, protocol):
    """And not published there once more, which would come back and so on."""

    async def scene():
        topics = [f"{PREFIX}/late/#", f"{PREFIX}/rejected", f"{PREFIX}/sources/#"]
        async with (
            Scene(section(server, prefix=PREFIX, protocol=protocol)) as site,
            client(server, *topics) as one,
        ):
            await site.up()
            site.submit()
            said = json.dumps({"types": ["Temp"], "location": "hall"})
            await one.publish(f"{PREFIX}/sources/t1", said, qos=1, retain=True)
            await send(one, [0], now_ms(), PREFIX)
            await send(one, [-60_000], now_ms(), PREFIX)
            await one.publish(f"{PREFIX}/events/Temp/t1", "no json", qos=1)
            told = dict(await take(one, lambda found: len(found) == 3))
            assert told[f"{PREFIX}/sources/t1"]["location"] == "hall"
            late = told[f"{PREFIX}/late/Temp"]
            assert (late["id"], late["location"]) == ("e-60000", "hall")
            assert told[f"{PREFIX}/rejected"]["reason"] == "not_json"
            await until(lambda: site.join.counts()["acknowledged"] == 4)
            # What is sent: a result to two topics, what is late or refused, and the broker's state.
            await until(lambda: not site.join.counts()["waiting"])
            assert (site.join.counts()["sent"], site.join.counts()["received"]) == (5, 4)

    asyncio.run(scene())


def test_nothing_is_acknowledged_before_the_journal_has_it(server):
    """What was not acknowledged comes again on the next connection, what was does not."""

    async def scene():
        topic = f"{PREFIX}/results/anna/Hot"
        async with (
            Line(server.port) as line,
            client(server, topic) as one,
            Scene(section(line, prefix=PREFIX)) as site,
        ):
            await site.up()
            site.submit()
            begin = now_ms()
            await send(one, range(5), begin, PREFIX)
            await until(lambda: site.join.counts()["acknowledged"] == 5)
            site.slow = True
            await send(one, range(5, 8), begin, PREFIX)
            await until(lambda: site.events.received == 8)
            counts = site.join.counts()
            assert (counts["acknowledged"], counts["unacknowledged"]) == (5, 3)
            # The server has all that was said before the results that it passes on.
            await take(one, lambda found: len(found) == 8)
            line.cut()
            await until(lambda: site.events.received == 11)
            counts = site.join.counts()
            assert (counts["acknowledged"], counts["received_again"]) == (5, 3)
            site.sync()
            await send(one, [8], begin, PREFIX)
            await take(one, lambda found: ids([found[-1][1]]) == ["e8"])
            line.cut()
            await until(lambda: site.join.counts()["connections"] == 3)
            await send(one, [9], begin, PREFIX)
            await until(lambda: site.join.counts()["acknowledged"] == 10)
            assert site.events.received == 13
            assert site.events.dropped == {"repeat": 3}
            assert ids(site.inside.results) == [f"e{number}" for number in range(10)]
            assert site.join.counts()["sessions_lost"] == 0

    asyncio.run(scene())


def test_what_comes_while_the_broker_is_away_waits_for_it(server):
    async def scene():
        begin = now_ms()
        async with client(server) as one:
            async with Scene(section(server, prefix=PREFIX)) as site:
                await site.up()
            await send(one, range(20), begin, PREFIX)
            async with Scene(section(server, prefix=PREFIX)) as site:
                site.submit()
                await until(lambda: site.events.received == 20)
                assert ids(site.inside.results) == [f"e{number}" for number in range(20)]

    asyncio.run(scene())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_restarts_is_found_again_and_nothing_is_lost(mosquitto, number):
    """Killed, mosquitto forgets what it had not written down: then only what it had passed on."""

    async def scene():
        async with Scene(section(mosquitto)) as site:
            site.submit()
            await site.up()
            begin = now_ms()
            async with client(mosquitto) as one:
                await send(one, range(10), begin)
            await until(lambda: site.join.counts()["acknowledged"] == 10)
            await until(lambda: not site.join.counts()["waiting"])
            await asyncio.to_thread(mosquitto.stop, number)
            await until(site.joined.missing)
            (missing,) = site.joined.missing()
            assert missing.startswith(f"the MQTT server j0 at mqtt://127.0.0.1:{mosquitto.port}: ")
            site.runner.add_payload(payload(100, begin))
            site.runner.flush()
            assert site.join.counts()["waiting"] == 2
            await asyncio.to_thread(mosquitto.start)
            async with client(mosquitto, "headwater/results/#") as one:
                await site.up()
                await send(one, range(10, 20), begin)
                found = await take(one, lambda found: "e19" in ids(told for _, told in found))
            assert [one for one in ids(told for _, told in found) if one != "e100"] == [
                f"e{number}" for number in range(10, 20)
            ]
            await until(lambda: not site.join.counts()["waiting"])
            assert len(site.inside.results) == 21
            kept = number == signal.SIGTERM
            assert site.join.counts()["sessions_lost"] == (0 if kept else 1)

    asyncio.run(scene())


def payload(number, at):
    """An event by the broker's own face."""
    return Payload("Temp", "t2", reading(number, at).encode())


@SEEDS
def test_over_a_line_that_is_cut_again_and_again_nothing_is_lost_or_doubled(server, seed):
    """Each event takes part once, and each result comes to the server; there it may come again."""
    draw = random.Random(seed)
    count = 300

    async def scene():
        topic = f"{PREFIX}/results/anna/Hot"
        async with (
            Line(server.port) as line,
            client(server, topic) as one,
            Scene(section(line, prefix=PREFIX, inflight_max=20), seed=seed) as site,
        ):
            site.submit()
            await site.up()
            begin = now_ms()

            async def cutting():
                """What is cut off is less than what each part of the events brings."""
                for part in range(6):
                    line.cut_after(draw.randrange(1, 4_000))
                    await send(one, range(50 * part, 50 * part + 50), begin, PREFIX)
                    await until(lambda part=part: line.cuts > part)
                    await site.up()

            cuts = asyncio.create_task(cutting())
            found = await take(one, lambda found: len({told["id"] for _, told in found}) == count)
            await cuts
            await until(lambda: not site.join.counts()["unacknowledged"])
            assert line.cuts == 6
            assert site.events.out == count
            assert site.events.received == count + site.events.dropped.get("repeat", 0)
            assert ids(site.inside.results) == [f"e{number}" for number in range(count)]
            first = list(dict.fromkeys(ids(told for _, told in found)))
            assert sorted(first) == sorted(f"e{number}" for number in range(count))

    asyncio.run(scene())


def test_a_line_that_falls_silent_is_given_up(server):
    """Nothing tells of it but that nothing comes any more, not even an answer to a ping."""

    async def scene():
        async with (
            Line(server.port) as line,
            Scene(section(line, prefix=PREFIX)) as site,
        ):
            await site.up()
            line.silence(on=True)
            paho = site.join._connection._paho
            paho._keepalive = 1  # seconds: less than what can be configured
            await until(site.joined.missing)
            assert site.join.why == "it fell silent"
            line.silence(on=False)
            await site.up()

    asyncio.run(scene())
