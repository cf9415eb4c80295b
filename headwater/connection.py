"""A client of MQTT 5 for one connection that publishes: aiomqtt, and the client of paho beneath it.

Owns what is asked of these libraries, also what aiomqtt does not pass on: what the broker grants
and refuses. Must not know what is published. Invariant: nothing is told on standard error.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any

import aiomqtt

from headwater.cli.reach import BrokerAddress

INFLIGHT_MAX = 65_535  # of MQTT itself
PACKET_BYTES_MAX = 268_435_460

# What the libraries tell ends in an error, or is over when the broker is dialled anew.
_theirs = logging.getLogger(f"{__name__}.library")
_theirs.setLevel(logging.CRITICAL + 1)


def client_of(
    broker: BrokerAddress,
    client_id: str,
    tls: ssl.SSLContext | None,
    granted: Callable[[int, int], None],
    refused: Callable[[], None],
) -> aiomqtt.Client:
    """A client that is to be entered; belongs to the loop that runs.

    `granted` is told how many messages may be under way and how many bytes a packet may have,
    `refused` is called for a message of which the broker took nothing, before `publish` returns.
    """
    client = aiomqtt.Client(
        broker.host,
        broker.port,
        username=broker.user,
        password=broker.password,
        identifier=client_id,
        protocol=aiomqtt.ProtocolVersion.V5,
        timeout=broker.timeout_s,
        max_inflight_messages=INFLIGHT_MAX,
        tls_context=tls,
        logger=_theirs,
    )
    # aiomqtt has no words for these; paho's own interface, which is public, has.
    paho: Any = client._client  # noqa: SLF001
    on_connect, on_publish = paho.on_connect, paho.on_publish
    loop = asyncio.get_running_loop()

    def connected(one: Any, data: Any, flags: Any, code: Any, said: Any) -> None:
        inflight_max = getattr(said, "ReceiveMaximum", INFLIGHT_MAX)
        granted(inflight_max, getattr(said, "MaximumPacketSize", PACKET_BYTES_MAX))
        on_connect(one, data, flags, code, said)

    def published(one: Any, data: Any, mid: int, code: Any, said: Any) -> None:
        if code.is_failure:
            refused()
        on_publish(one, data, mid, code, said)

    def watch(sock: Any) -> None:
        if sock.fileno() >= 0:
            loop.add_writer(sock.fileno(), paho.loop_write)

    def writing(_one: Any, _data: Any, sock: Any) -> None:
        # aiomqtt would watch the number of a socket that may be closed by then, or another's.
        loop.call_soon_threadsafe(watch, sock)

    paho.on_connect, paho.on_publish = connected, published
    paho.on_socket_register_write = writing
    return client


def hush(loop: asyncio.AbstractEventLoop) -> None:
    """Keep to itself what aiomqtt forgets to look at, in a loop that is for its clients alone."""
    loop.set_exception_handler(lambda _, context: _theirs.error("%s", context["message"]))


def hang_up(client: aiomqtt.Client) -> None:
    """Close the socket where aiomqtt left it open, as of a broker that did not answer."""
    client._client._sock_close()  # noqa: SLF001  nothing public closes one that is stuck
