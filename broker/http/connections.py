"""Connections of the HTTP face: how many there may be, and how long one may say nothing.

Owns these bounds and what is logged of requests that are none. Must not know routes. Invariant: a
connection that asks for nothing ends by itself, so that it keeps nobody else out for long.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

IDLE_WAIT_S = 60.0  # between two requests; the command line asks once, Prometheus four times

# Of the library's server: it would log what strangers send with a traceback, headers and all.
log = logging.getLogger("headwater.http.server")
log.addFilter(lambda record: not _is_malformed(record))


def _is_malformed(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return isinstance(error, HttpProcessingError)


class Silence:
    """Connections that have not asked for anything yet; each has `wait_s` for its first request."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._timers: dict[Any, asyncio.TimerHandle] = {}

    def begins(self, protocol: web.RequestHandler) -> None:
        """A connection is made."""
        loop = asyncio.get_running_loop()
        self._timers[protocol] = loop.call_later(self._wait_s, self._end, protocol)

    def _end(self, protocol: web.RequestHandler) -> None:
        del self._timers[protocol]
        if protocol.transport is not None:
            protocol.transport.abort()

    def close(self) -> None:
        """No connection is left."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def ended_by_requests(self) -> Any:
        """The middleware that sees each request, once its head is there."""

        @web.middleware
        async def heard(request: web.Request, handler: Handler) -> web.StreamResponse:
            timer = self._timers.pop(request.protocol, None)
            if timer is not None:
                timer.cancel()
            return await handler(request)

        return heard


class _Refusing(asyncio.Protocol):
    """Ends a connection for which there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def acceptor(
    server: Any, silence: Silence, connections_max: int
) -> Callable[[], asyncio.BaseProtocol]:
    """What makes the protocol of each new connection of an aiohttp server."""

    def protocol() -> asyncio.BaseProtocol:
        if len(server.connections) >= connections_max:
            return _Refusing()
        made: web.RequestHandler = server()
        silence.begins(made)
        return made

    return protocol
