"""Requests that went wrong somewhere: none of them is a fault of the broker's."""

import asyncio
import logging
import random
from pathlib import Path

import pytest

from broker.http import HttpOptions, listen, make_app
from broker.store import RESULTS, Outbox, Store
from tests.broker.http.fakes import OPEN, FakeBroker

TEXT = b"Host: localhost\r\nContent-Type: text/plain\r\n"
REQUESTS = [
    b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/subscriptions?client=a HTTP/1.1\r\n%bContent-Length: 5\r\n\r\nFrost" % TEXT,
    (
        b"POST /v1/events?type=T HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 24\r\n\r\n[{"source":"t7","val":1}]'
    ),
    (
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b'Content-Length: 26\r\n\r\n{"type":"T","source":"t7"}'
    ),
    b"POST /v1/subscriptions HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n" % TEXT
    + b"5\r\nFrost\r\n0\r\n\r\n",
    b"DELETE /v1/subscriptions/Frost HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/results?subscription=Frost HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/log?from=0&to=2&format=json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/log/offsets?after=0&wait=0.1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/log/ack?consumer=a&offset=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n",
]
PIECES = [
    *(b"\r\n", b"\0", b"\xff", b" ", b"%", b"%00", b"%ff", b"/..", b"?", b"&", b"chunked", b";"),
    *(b"Content-Length: -1\r\n", b"Expect: 100-continue\r\n", b"Content-Encoding: deflate\r\n"),
    *(b"Content-Encoding: br\r\n", b"Origin: \r\n", b"Host: [\r\n", b"; charset=x", b"HTTP/2.0"),
    *(
        b"9" * 30,
        b"Authorization: Basic \xff\r\n",
        b"Upgrade: h2c\r\n",
        b"Transfer-Encoding: x\r\n",
    ),
]
COUNT, AT_A_TIME = 400, 100
WAIT_S = 1.0  # for an answer; there is none to a request that has not ended yet


def spoilt(draw: random.Random) -> bytes:
    request = bytearray(draw.choice(REQUESTS))
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(request) + 1)
        kind = draw.random()
        if kind < 0.5:
            request[at:at] = draw.choice(PIECES)
        elif kind < 0.7:
            del request[at : at + draw.randrange(1, 10)]
        elif at:
            request[at - 1] = draw.randrange(256)
    return bytes(request)


async def status_of(port: int, request: bytes) -> int | None:
    """The status of the answer; nothing where none comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(WAIT_S):
            line = await reader.readline()
    except (ConnectionError, TimeoutError):
        return None
    finally:
        writer.close()
    return int(line.split()[1]) if line else None


def brought(seed: int, count: int, folder: Path) -> dict[int | None, int]:
    """Bring so many spoilt requests to a face; how many were answered by which status."""
    draw = random.Random(seed)
    found: dict[int | None, int] = {}

    async def scenario():
        options = HttpOptions(head_wait_s=0.2)
        broker = FakeBroker(followers_max=count)
        store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
        log = await Outbox.open(store)
        app = make_app(broker, OPEN, options, log=log)
        listener = await listen(app, "127.0.0.1", 0, options)
        try:
            for _ in range(count // AT_A_TIME):
                requests = [status_of(listener.port, spoilt(draw)) for _ in range(AT_A_TIME)]
                for status in await asyncio.gather(*requests):
                    found[status] = found.get(status, 0) + 1
        finally:
            await listener.close()
            await store.close()

    asyncio.run(scenario())
    assert sum(found.values()) == count
    assert not [status for status in found if status is not None and status >= 500]
    return found


def test_no_request_is_a_fault_of_the_broker(caplog, tmp_path):
    caplog.set_level(logging.INFO)
    found = brought(20, COUNT, tmp_path)
    assert {200, 400, 403, 404} <= found.keys()  # faults of every depth were met
    assert found[200] >= COUNT / 100  # and where nothing that matters was spoilt, it served
    assert caplog.records == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 150))
def test_none_of_many_requests_is_a_fault_of_the_broker(seed, caplog, tmp_path):
    """Fifty times 4,000."""
    assert brought(seed, 4_000, tmp_path)[200]
    assert caplog.records == []
