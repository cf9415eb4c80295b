"""A joined server that refuses, is slow or strange, and a broker that is."""

import asyncio
import time

import pytest

from broker.bridge.messages import OutgoingMessage
from tests.broker.bridge.scene import TEXT, Scene, client, ids, section, send, take, until
from tests.broker.bridge.servers import Line, Mosquitto, OwnFace
from tests.broker.bridge.test_join import payload
from tests.loops import FACTORIES

LOOPS = pytest.mark.parametrize("loop", FACTORIES.values(), ids=FACTORIES)


def now_ms():
    return time.time_ns() // 1_000_000


def run(coroutine, loop=None):
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(coroutine)


@pytest.fixture
def started(tmp_path, find_program):
    """A mosquitto with these lines of configuration."""
    find_program("mosquitto")
    running = []

    def start(*lines):
        server = Mosquitto(tmp_path, "allow_anonymous true", *lines)
        server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


# --- a broker that is slow ----------------------------------------------------------------------


@LOOPS
def test_past_the_bound_of_bytes_the_server_has_to_wait_and_nothing_is_lost(started, loop):
    """What is not read fills the sockets and then waits in the server."""
    server = started()
    large = {"padding": "x" * 20_000}

    async def scene():
        bounded = section(server, pending_bytes_max=100_000)
        async with Scene(bounded) as site, client(server) as one:
            await site.up()
            site.submit()
            site.slow = True
            await send(one, range(100), now_ms(), **large)
            await until(lambda: site.join._inbound.full)
            held = site.events.received
            assert held <= 9
            assert site.join._inbound.pending_bytes <= 100_000 + 65_536 + 25_000
            while site.events.received < 100:
                site.sync()
                site.slow = True
                before = site.events.received
                await until(lambda before=before: site.events.received > before)
                assert site.join._inbound.pending_bytes <= 100_000 + 65_536 + 25_000
            site.sync()
            await until(lambda: site.join.counts()["acknowledged"] == 100)
            assert ids(site.inside.results) == [f"e{number}" for number in range(100)]
            assert site.join.counts()["connections"] == 1

    run(scene(), loop)


@LOOPS
def test_what_is_held_is_not_read(started, loop):
    """Also of messages at QoS 0, of which the server may send any number."""
    server = started()

    async def scene():
        async with Scene(section(server)) as site, client(server, "mark") as one:
            await site.up()
            site.submit()
            site.runner.hold()
            begin = now_ms()
            for number in range(20):
                await send(one, [number], begin, qos=0)
            await one.publish("mark", b"{}", qos=1)
            await take(one, len)
            assert site.join.counts()["received"] == 0
            site.runner.release()
            await until(lambda: len(site.inside.results) == 20)

    run(scene(), loop)


def test_what_the_broker_fails_on_comes_again_and_keeps_nothing_up(started):
    """Once half of what may be under way stands so, the connection is made anew for it."""
    server = started()
    failing = {b'"e1"', b'"e4"'}

    async def scene():
        async with Scene(section(server, inflight_max=4)) as site, client(server) as one:
            await site.up()
            site.submit()
            work = site.runner.core.work

            def fails(message, now):
                for payload in getattr(message, "payloads", ()):
                    for name in [name for name in failing if name in payload.data]:
                        failing.discard(name)
                        raise RuntimeError("planted")
                return (yield from work(message, now))

            site.runner.core.work = fails
            begin = now_ms()
            for number in range(4):
                await send(one, [number], begin)
                await until(lambda number=number: site.join.counts()["received"] > number)
            assert ids(site.inside.results) == ["e0", "e2", "e3"]
            counts = site.join.counts()
            assert (counts["failed"], counts["acknowledged"], counts["unacknowledged"]) == (1, 3, 0)
            assert counts["connections"] == 1
            await send(one, [4], begin)
            await until(lambda: len(site.inside.results) == 5)
            assert sorted(ids(site.inside.results)) == ["e0", "e1", "e2", "e3", "e4"]
            await until(lambda: site.join.counts()["acknowledged"] == 5)
            await until(lambda: site.join.counts()["connections"] == 2)
            assert site.runner.faults == 2

    run(scene())


# --- a server that refuses ----------------------------------------------------------------------


def test_a_subscription_that_is_refused_is_told_and_tried_again():
    allowed = []

    async def scene(server):
        async with Scene(section(server, prefix="shop")) as site:
            why = "it does not let this client subscribe to shop/events/#"
            await until(lambda: site.join.why == why)
            assert not site.join.up
            allowed.append("shop/events/#")
            await until(lambda: site.join.why.endswith("shop/sources/#"))
            allowed.append("shop/sources/#")
            await site.up()

    def authorize(_client, topic, action):
        return action == "publish" or topic in allowed

    with OwnFace(authorize=authorize) as server:
        run(scene(server))


def test_a_server_without_qos_1_is_not_relied_on(started):
    server = started("max_qos 0")

    async def scene():
        async with Scene(section(server, results=False)) as site:
            await until(lambda: "QoS 0 alone" in site.join.why)
            assert not site.join.up

    run(scene())


def test_results_that_the_server_refuses_are_counted_and_the_next_goes_out(started, tmp_path):
    rights = tmp_path / "rights"
    rights.write_text("topic readwrite headwater/#\ntopic deny headwater/actors/#\n")
    server = started(f"acl_file {rights}")

    async def scene():
        async with (
            Scene(section(server)) as site,
            client(server, "headwater/results/#") as one,
        ):
            await site.up()
            site.submit()
            await send(one, range(3), now_ms())
            found = await take(one, lambda found: len(found) == 3)
            assert ids(told for _, told in found) == ["e0", "e1", "e2"]
            await until(lambda: site.join.counts()["refused_there"] == 3)
            assert site.join.counts()["connections"] == 1

    run(scene())


def test_what_mqtt_cannot_carry_stops_nothing(started):
    server = started()

    async def scene():
        async with Scene(section(server)) as site, client(server, "good/#") as one:
            await site.up()
            for topic in ("x" * 70_000, "a/+/b", "good/one"):
                site.join.publish(OutgoingMessage(topic, b"{}"))
            assert [topic for topic, _ in await take(one, len)] == ["good/one"]
            await until(lambda: site.join.counts()["waiting"] == 0)  # its acknowledgement is late
            assert site.join.counts()["unsendable"] == 2

    run(scene())


def test_two_of_one_name_are_told_of_each_other_and_do_not_storm():
    async def scene(server):
        both = section(server, prefix="shop")
        async with Scene(both, wait_s=0.5) as first:
            await first.up()
            async with Scene(both, wait_s=0.5):
                await until(lambda: first.join.why == "it said: session taken over")
                began_s = time.monotonic()
                await until(lambda: first.join.counts()["connections"] == 3)
                # Each has to wait for its turn: not less than half of the first two steps.
                assert time.monotonic() - began_s > 0.5

    with OwnFace() as server:
        run(scene(server))


# --- what is not wanted -------------------------------------------------------------------------


def test_requests_are_not_taken_unless_they_are_asked_for(started):
    server = started()

    async def scene():
        async with Scene(section(server)) as site, client(server) as one:
            await site.up()
            await one.publish("headwater/submit/me/1", TEXT, qos=1)
            await send(one, [0], now_ms())
            await until(lambda: site.join.counts()["acknowledged"] == 1)
            assert len(site.runner.core.catalogue) == 0
            assert site.join.counts()["received"] == 1

    run(scene())


def test_without_results_nothing_is_published_there_and_nobody_is_its_consumer(started):
    server = started()

    async def scene():
        async with (
            Scene(section(server, results=False)) as site,
            client(
                server, "headwater/results/#", "headwater/status/#", "headwater/events/#"
            ) as one,
        ):
            await site.up()
            site.submit()
            await send(one, range(3), now_ms())
            await until(lambda: len(site.inside.results) == 3)
            await one.publish("headwater/results/mark", b"{}", qos=1)
            assert len(await take(one, len)) == 1
            assert site.join.counts()["sent"] == site.join.counts()["waiting"] == 0
            assert site.joined.servers[0].supply is None

    run(scene())


def test_without_an_outbox_the_oldest_results_go_and_are_counted(started):
    server = started()

    async def scene():
        async with Line(server.port) as line, client(server, "headwater/results/#") as one:
            small = section(line, queue_messages_max=10, inflight_max=2)
            async with Scene(small) as site:
                await site.up()
                site.submit()
                await until(lambda: site.join.counts()["waiting"] == 0)  # its own status
                line.silence(on=True)
                begin = now_ms()
                for number in range(20):
                    site.runner.add_payload(payload(number, begin))
                    site.runner.flush()
                dropped = site.join.counts()["dropped"]
                assert 40 - 10 - 4 <= dropped <= 40 - 10
                line.silence(on=False)
                found = await take(one, lambda found: "e19" in ids(told for _, told in found))
                assert ids(told for _, told in found)[-5:] == [f"e{n}" for n in range(15, 20)]

    run(scene())
