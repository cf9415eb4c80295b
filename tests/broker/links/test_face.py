"""Links on real sockets: meeting, cutting, restarting, waiting."""

import asyncio
import logging
import random
import socket as sockets
from functools import partial

import pytest

from broker.config.links import LinksSection
from broker.links.face import LinkFace
from broker.links.securing import LinkConfigError
from broker.network.session.told import Congested, Down, Refused
from tests.broker.links.faces import PATIENCE_S, QUICK, both_up, cut, face, until
from tests.loops import RUNNERS


@pytest.fixture(params=sorted(RUNNERS))
def run(request):
    """Runs a coroutine function on each of the loops."""
    return lambda course: RUNNERS[request.param](course())


def test_two_brokers_meet_and_messages_go_both_ways(run):
    async def course():
        async with face("a") as a, face("b", [a]) as b:
            await both_up(a, b)
            for n in range(2000):
                a.offer("b", [b"a%d" % n], events=1)
                b.offer("a", [b"b%d" % n], control=True)
            await b.heard.until(lambda: len(b.heard.events) == 2000)
            await a.heard.until(lambda: len(a.heard.control) == 2000)
            assert b.heard.events == [b"a%d" % n for n in range(2000)]
            assert a.heard.control == [b"b%d" % n for n in range(2000)]
            status = b.status()["a"]
            assert (status["state"], status["address"]) == ("up", f"127.0.0.1:{a.port}")

    run(course)


def downs(one, count):
    return sum(isinstance(news, Down) for news in one.heard.news) == count


def test_cuts_under_load_lose_and_double_nothing(run):
    async def course():
        draw = random.Random(5)
        async with face("a") as a, face("b", [a], reconnect_ms_max=200) as b:
            await both_up(a, b)
            many, cuts = 6000, 0
            for n in range(many):
                a.offer("b", [b"%d" % n + b"x" * draw.choice([0, 50, 3000])], events=1)
                b.offer("a", [b"%d" % n], events=1)
                if n % 1000 == 500:
                    await both_up(a, b)
                    cut(draw.choice([a, b]))
                    cuts += 1
                    for one in (a, b):
                        await one.heard.until(partial(downs, one, cuts))
                if n % 50 == 0:
                    await asyncio.sleep(0)
            await b.heard.until(lambda: len(b.heard.events) >= many)
            await a.heard.until(lambda: len(a.heard.events) >= many)
            assert [int(one.rstrip(b"x")) for one in b.heard.events] == list(range(many))
            assert a.heard.events == [b"%d" % n for n in range(many)]
            for one in (a, b):
                assert [up.fresh for up in one.heard.ups()] == [True] + [False] * cuts

    run(course)


def test_of_two_that_dial_each_other_one_connection_stays(run):
    async def course():
        with sockets.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        there = {"a": f"127.0.0.1:{port}"}
        async with face("b", addresses=there) as b, face("a", [b], port=port) as a:
            await both_up(a, b)
            await until(lambda: len(a._sockets) == len(b._sockets) == 1)
            a.offer("b", [b"x"], events=1)
            await b.heard.until(lambda: b.heard.events == [b"x"])
            assert a.links.sessions["b"].turn == b.links.sessions["a"].turn

    run(course)


def test_a_peer_that_is_not_there_yet_is_dialled_until_it_is(run, caplog):
    async def course():
        with sockets.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with face("b", addresses={"a": f"127.0.0.1:{port}"}, reconnect_ms_max=200) as b:
            await until(lambda: b.status()["a"].get("reason") == "nobody listens there")
            async with face("a", port=port) as a:
                await both_up(a, b)
        said = [r.message for r in caplog.records if "no link to a" in r.message]
        assert said == [f"no link to a at 127.0.0.1:{port}: nobody listens there"]

    run(course)


def test_a_neighbour_that_restarts_begins_anew_and_one_that_does_not_goes_on(run):
    async def course():
        async with face("a") as a:
            async with face("b", [a]) as b:
                await both_up(a, b)
                a.offer("b", [b"1"], events=1)
                await b.heard.until(lambda: b.heard.events == [b"1"])
            await a.heard.until(lambda: not a.up("b"))
            a.offer("b", [b"lost with that process"], events=1)
            async with face("b", [a], epoch=2) as again:
                await both_up(a, again)
                assert [(up.fresh, up.epoch) for up in a.heard.ups()] == [(True, 1), (True, 2)]
                a.offer("b", [b"2"], events=1)
                await again.heard.until(lambda: again.heard.events == [b"2"])

    run(course)


def test_a_broker_that_takes_no_events_makes_the_other_wait_and_control_goes_on(run):
    limits = QUICK | {
        "credit_events_max": 100,
        "credit_bytes_max": 100_000,
        "waiting_events_max": 300,
    }

    async def course():
        async with face("a", limits=limits) as a, face("b", [a], limits=limits) as b:
            await both_up(a, b)
            b.hold(on=True)
            for n in range(1000):
                a.offer("b", [b"%d" % n], events=1)
                if n % 10 == 0:
                    await asyncio.sleep(0)
            a.offer("b", [b"control"], control=True)
            await b.heard.until(lambda: b.heard.control == [b"control"])
            assert b.heard.events == []
            refused = sum(e.events for e in a.heard.news if isinstance(e, Refused))
            taken = 1000 - refused
            # What was sent, what waits, and no more; one frame may go beyond the credit.
            assert 400 <= taken <= 300 + 100 + 128
            assert Congested("b", on=True) in a.heard.news
            b.hold(on=False)
            await b.heard.until(lambda: len(b.heard.events) == taken)
            assert b.heard.events == [b"%d" % n for n in range(taken)]
            await a.heard.until(lambda: Congested("b", on=False) in a.heard.news)

    run(course)


def test_what_a_receiver_offers_while_it_is_told_keeps_the_order(run):
    """Two brokers that answer each message with the next, with frames of others in between."""

    async def course():
        async with face("a") as a, face("b", [a]) as b:
            await both_up(a, b)

            def answering(one, other):
                take = one.heard.on_link

                def on_link(news):
                    take(news)
                    for message in getattr(news, "messages", ()):
                        if int(message) < 2000:
                            one.offer(other, [b"%d" % (int(message) + 2)] * 1, events=1)
                            one.offer(other, [b"%d" % 9999] * 3, events=3)

                return on_link

            a._receiver.on_link, b._receiver.on_link = answering(a, "b"), answering(b, "a")
            for n in (1, 2):
                a.offer("b", [b"%d" % n], events=1)
            for one in (a, b):
                await one.heard.until(lambda one=one: one.heard.events.count(b"9999") > 2000)
            for one in (a, b):
                assert [len(one.heard.ups()), one.faults] == [1, 0]

    run(course)


def test_a_connection_that_stands_still_is_cut_and_nothing_is_lost(run):
    """One side reads nothing: the other's socket fills, its session waits, and silence ends it."""
    limits = QUICK | {"silence_ms": 300}

    async def course():
        async with face("a", limits=limits) as a, face("b", [a], limits=limits) as b:
            await both_up(a, b)
            (socket,) = b._sockets.values()
            socket.transport.pause_reading()
            many = 100
            for n in range(many):
                a.offer("b", [b"%d " % n + bytes(100_000)], events=1)
            assert a.links.sessions["b"].loads()["waiting_bytes"] > 0, "the socket takes no more"
            await b.heard.until(lambda: len(b.heard.events) == many)
            assert [int(one.split(b" ")[0]) for one in b.heard.events] == list(range(many))
            assert "it was silent for 300 ms" in [
                news.reason for news in b.heard.news if isinstance(news, Down)
            ]
            first, *others = [up.fresh for up in a.heard.ups()]
            assert first
            assert others
            assert not any(others)

    run(course)


def test_a_receiver_that_fails_stops_no_link(run):
    async def course():
        async with face("a") as a, face("b", [a]) as b:
            await both_up(a, b)
            b.heard.failing = True
            a.offer("b", [b"1"], events=1)
            a.offer("b", [b"2"], events=1)
            await b.heard.until(lambda: b.heard.events == [b"1", b"2"])
            assert b.faults >= 1
            assert b.up("a")

    logging.getLogger("broker.links").setLevel(logging.CRITICAL)
    try:
        run(course)
    finally:
        logging.getLogger("broker.links").setLevel(logging.NOTSET)


def test_a_neighbour_that_is_forgotten_is_closed_and_begins_anew(run):
    async def course():
        async with face("a") as a, face("b", [a]) as b:
            await both_up(a, b)
            a.forget("b")
            await b.heard.until(lambda: any(isinstance(e, Down) for e in b.heard.news))
            await b.heard.until(lambda: len(b.heard.ups()) == 2)
            assert [up.fresh for up in b.heard.ups()] == [True, True]

    run(course)


def test_a_port_that_is_taken_is_told_in_a_sentence(run):
    async def course():
        async with face("a") as a:
            settings = LinksSection(host="127.0.0.1", port=a.port)
            with pytest.raises(
                LinkConfigError, match=r"links: cannot listen on 127\.0\.0\.1:\d+: "
            ):
                await LinkFace("b", 1, settings, a.heard).start()

    run(course)


@pytest.mark.parametrize("steps", range(4))
def test_a_peer_is_left_also_in_the_moment_in_which_its_link_comes_up(run, steps):
    """A cancellation that comes together with what is waited for must not be lost."""

    async def course():
        async with face("a", addresses={"b": "127.0.0.1:1"}) as a:
            dialler = a._diallers["b"]
            await until(lambda: "nobody" in dialler.why)
            await asyncio.sleep(0.01)
            dialler.up()
            for _ in range(steps):
                await asyncio.sleep(0)
            stopping = asyncio.create_task(a.leave("b"))
            done, _ = await asyncio.wait({stopping}, timeout=PATIENCE_S)
            assert done

    run(course)
