"""Connections that ask for nothing, or for nothing sensible, cost no more than a stated while."""

import asyncio
import json
import logging

import pytest
from aiohttp import ClientSession, encode_basic_auth

from broker.credentials import hash_password
from broker.http import HttpOptions, listen, make_app
from broker.rights.quotas import Holder, QuotaLedger
from broker.rights.table import Quota, QuotaTable
from tests.broker.http.fakes import OPEN, FakeBroker, rights_of

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE_S = 10.0  # for what happens at once


def with_listener(scenario, broker=None, **options):
    async def run():
        chosen = HttpOptions(**options)
        app = make_app(broker or FakeBroker(), OPEN, chosen)
        listener = await listen(app, "127.0.0.1", 0, chosen)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(listener.port)
        finally:
            await listener.close()

    asyncio.run(run())


async def said(port: int, *parts: bytes) -> bytes:
    """All that comes back until the other side ends the connection, which this one does not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await reader.read()
    except ConnectionResetError:
        return b"reset"
    finally:
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"G", GET, GET + b"X-Slow: "])
def test_who_does_not_come_to_the_point_is_cut_off(begun):
    """However much of the head has come, as from a client that sends a byte now and then."""

    async def scenario(port):
        assert await said(port, begun) in (b"", b"reset")

    with_listener(scenario, head_wait_s=0.05)


def test_so_they_keep_nobody_out():
    async def scenario(port):
        silent = [asyncio.create_task(said(port)) for _ in range(3)]
        await asyncio.gather(*silent)
        answer = await said(port, GET + b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")

    with_listener(scenario, head_wait_s=0.05, connections_max=3)


def test_hundreds_of_slow_heads_keep_nobody_out_meanwhile():
    """They held all places for `head_wait_s`; the oldest of them makes room at once."""

    async def scenario(port):
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        for _, writer in slow:
            writer.write(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(5):
            answer = await said(port, GET + b"Connection: close\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200")
        for _, writer in slow:
            writer.close()

    with_listener(scenario, head_wait_s=60.0, connections_max=20)


def test_the_address_with_most_slow_heads_makes_room():
    """A client that is slow by itself, from elsewhere, is not the one that goes."""

    async def scenario(port):
        other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        other[1].write(GET + b"Connection: close\r\n\r\n")
        assert (await other[0].read()).startswith(b"HTTP/1.1 200")
        for _, writer in (other, *slow):
            writer.close()

    with_listener(scenario, head_wait_s=60.0, connections_max=10)


def test_who_has_asked_may_take_time_for_the_rest():
    """A body, a stream or a second request has bounds of its own."""

    async def scenario(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/results HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await said(port)  # another one is cut off meanwhile
        assert not reader.at_eof()
        writer.close()

    with_listener(scenario, head_wait_s=0.05)


def many_subscriptions():
    """An answer that no buffer of the system takes in."""
    broker = FakeBroker()
    broker.subscriptions = lambda _user: [{"subscription": "S" * 1000, "state": "active"}] * 20_000
    return broker


def test_who_takes_nothing_of_an_answer_is_cut_off():
    async def scenario(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.read(1)  # then no more, and the reader's buffer is soon full
        await said(port)  # cut off after the same while
        await said(port)
        await said(port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(20_000_000)
        writer.close()

    with_listener(scenario, many_subscriptions(), head_wait_s=0.2, take_wait_s=0.1)


def test_who_takes_an_answer_slowly_gets_all_of_it():
    """As long as something is taken between two looks."""

    async def scenario(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        request = b"GET /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        writer.write(request)
        taken = 0
        while part := await reader.read(1_000_000):
            taken += len(part)
        assert taken > 20_000_000
        writer.close()

    with_listener(scenario, many_subscriptions(), take_wait_s=0.05)


@pytest.mark.parametrize(
    "request_",
    [
        GET + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
        GET + b"Authorization: Basic " + b"c2VjcmV0" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\xff garbage\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
    ],
    ids=["many", "long", "path", "garbage", "version"],
)
def test_what_is_no_request_is_refused_and_not_logged(request_, caplog):
    """A head may hold a password, and whoever sends nonsense could fill the log."""
    caplog.set_level(logging.INFO)

    async def scenario(port):
        answer = await said(port, request_)
        assert answer.startswith(b"HTTP/1.0 400") or answer == b"reset"
        if answer != b"reset":
            head, _, body = answer.partition(b"\r\n\r\n")
            assert b"Server: Headwater\r\n" in head + b"\r\n"
            (error,) = json.loads(body)["errors"]
            assert error["message"].startswith("this is no HTTP request: ")
            assert "c2Vj" not in error["message"]
            assert "yyyy" not in error["message"]
        answer = await said(port, GET + b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")

    with_listener(scenario)
    assert caplog.records == []


@pytest.mark.parametrize("path", [b"/healthz", b"/nowhere"])
def test_an_expectation_that_is_no_text_is_refused_like_any_other(path, caplog):
    """The library would repeat it in its refusal, which it cannot write then."""
    caplog.set_level(logging.INFO)

    async def scenario(port):
        head = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-\xde\r\n\r\n"
        answer = await said(port, head)
        assert answer.startswith(b"HTTP/1.1 417")
        (error,) = json.loads(answer.partition(b"\r\n\r\n")[2])["errors"]
        assert "Expect" in error["message"]

    with_listener(scenario)
    assert caplog.records == []


def test_who_hangs_up_in_the_middle_is_not_logged(caplog):
    caplog.set_level(logging.INFO)
    begun = b"POST /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"

    async def scenario(port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begun + b"Content-Length: 100\r\n\r\nevent")
        await writer.drain()
        await said(port, GET + b"Connection: close\r\n\r\n")  # by then that one is being read
        writer.transport.abort()
        await said(port, GET + b"Connection: close\r\n\r\n")

    with_listener(scenario)
    assert caplog.records == []


def test_bytes_that_are_no_text_are_refused_and_not_our_fault(caplog):
    async def scenario(port):
        head = b"GET /healthz HTTP/1.1\r\nHost: localh\xf6st\r\nConnection: close\r\n\r\n"
        assert (await said(port, head)).startswith(b"HTTP/1.1 403")
        head = GET + b"Origin: http://\xff\r\nConnection: close\r\n\r\n"
        assert (await said(port, head)).startswith(b"HTTP/1.1 403")

    with_listener(scenario)
    assert caplog.records == []


@pytest.mark.parametrize("path", [b"/healthz", b"/nowhere", b"/v1/results"])
def test_an_answer_does_not_tell_what_runs_here(path):
    async def scenario(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert "Server: Headwater\r\n" in head
        assert "ython" not in head
        writer.close()

    with_listener(scenario)


def quotas_of(**quotas):
    ledger = QuotaLedger()
    ledger.replace(QuotaTable(**quotas))
    return ledger


def test_connections_of_a_user_by_http_count_with_those_by_mqtt_and_are_given_back():
    """Refused with 429, its reason and when to come again; probes are answered all the same."""
    rights = rights_of(anna=hash_password("sesame"), bert=hash_password("sesame"))
    ledger = quotas_of(default=Quota(connections=2))
    ledger.add("connections", Holder("anna", "127.0.0.1"))  # by MQTT

    async def scenario():
        app = make_app(FakeBroker(), rights, quotas=ledger)
        listener = await listen(app, "127.0.0.1", 0)

        def session():
            return ClientSession(f"http://127.0.0.1:{listener.port}")

        def login(name):
            return {"Authorization": encode_basic_auth(name, "sesame")}

        try:
            async with session() as first, session() as second:
                for _ in range(3):  # on one connection
                    assert (await first.get("/v1/status", headers=login("anna"))).status == 200
                refused = await second.get("/v1/status", headers=login("anna"))
                assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
                message = (await refused.json())["errors"][0]["message"]
                assert message.startswith("the user 'anna' has 2 connections, and its quota is 2; ")
                assert (await second.get("/healthz", headers=login("anna"))).status == 200
                assert (await second.get("/v1/status", headers=login("bert"))).status == 200
                # The same connection for somebody else is that one's then.
                assert (await first.get("/v1/status", headers=login("bert"))).status == 200
                assert ledger.taken("connections", user="anna") == 1
                assert ledger.taken("connections", user="bert") == 2
        finally:
            await listener.close()
        assert ledger.taken("connections", user="bert") == 0
        assert ledger.taken("connections", user="anna") == 1

    asyncio.run(scenario())


def test_connections_of_an_address_are_counted_where_nobody_has_a_name():
    ledger = quotas_of(address=Quota(connections=1))

    async def scenario():
        listener = await listen(make_app(FakeBroker(), OPEN, quotas=ledger), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.port}/v1/status"
        try:
            async with ClientSession() as first, ClientSession() as second:
                assert (await first.get(url)).status == 200
                refused = await second.get(url)
                assert refused.status == 429
                assert "the address 127.0.0.1 has 1 connections" in await refused.text()
                ledger.replace(QuotaTable(address=Quota(connections=2)))  # as a reload does
                assert (await second.get(url)).status == 200
        finally:
            await listener.close()

    asyncio.run(scenario())
