"""Connections of the HTTP face: how many there may be, and how long one may say nothing.

Owns these bounds and what is logged of requests that are none. Must not know routes. Invariant: a
connection that asks for nothing, or takes nothing of what it asked for, ends by itself, so that it
keeps nobody else out for long.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from broker.http.guard import problem

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SERVER = "Headwater"  # a stranger need not learn which versions of what run here
FOUND_CHARS_MAX = 100  # of what the library found wrong, which may repeat what was sent
IDLE_WAIT_S = 60.0  # between two requests; the command line asks once, Prometheus four times

# Of the library's server: it would log what strangers send with a traceback, headers and all, and
# that somebody hung up.
log = logging.getLogger("headwater.http.server")
log.addFilter(lambda record: not _is_the_clients_doing(record))


def _is_the_clients_doing(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return isinstance(error, HttpProcessingError | ConnectionError)


class RequestPatience:
    """Bound how long a connection may take to ask for something, and to take what it has asked for.

    `head_wait_s` is for the head of its first request; `take_wait_s` for taking anything at all of
    an answer. What streams has a bound of its own.
    """

    def __init__(self, head_wait_s: float, take_wait_s: float) -> None:
        self._head_wait_s = head_wait_s
        self._take_wait_s = take_wait_s
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        self._taking: dict[web.RequestHandler, asyncio.TimerHandle] = {}

    def begins(self, protocol: web.RequestHandler) -> None:
        """A connection is made."""
        loop = asyncio.get_running_loop()
        self._silent[protocol] = loop.call_later(self._head_wait_s, self._end, protocol)

    def _end(self, protocol: web.RequestHandler) -> None:
        del self._silent[protocol]
        if protocol.transport is not None:
            protocol.transport.abort()

    def make_room(self) -> bool:
        """End the oldest connection that has asked for nothing yet; return if there was one.

        It is of the address that has most of these: hundreds that never end their first head keep
        out nobody else, and a client that is slow by itself is not the one that goes.
        """
        counts = Counter(_address(protocol) for protocol in self._silent)
        crowd = max(counts, key=counts.__getitem__, default=None)
        for protocol, timer in self._silent.items():
            if _address(protocol) == crowd and protocol.transport is not None:
                timer.cancel()
                self._end(protocol)
                return True
        return False

    def close(self) -> None:
        """No connection is left."""
        for timers in (self._silent, self._taking):
            for timer in timers.values():
                timer.cancel()
            timers.clear()

    def middleware(self) -> Any:
        """Make the middleware that sees each request's head, and its answer before that is sent."""

        @web.middleware
        async def heard(request: web.Request, handler: Handler) -> web.StreamResponse:
            protocol = request.protocol
            timer = self._silent.pop(protocol, None)
            if timer is not None:
                timer.cancel()
            response = await handler(request)
            if isinstance(response, web.Response) and protocol not in self._taking:
                self._look_later(protocol, None)
            return response

        return heard

    def _look_later(self, protocol: web.RequestHandler, waiting: int | None) -> None:
        loop = asyncio.get_running_loop()
        self._taking[protocol] = loop.call_later(self._take_wait_s, self._look, protocol, waiting)

    def _look(self, protocol: web.RequestHandler, waiting_before: int | None) -> None:
        """Abort a connection that took nothing of what waits since the last look."""
        del self._taking[protocol]
        transport: Any = protocol.transport
        if transport is None:
            return
        waiting = transport.get_write_buffer_size()
        if waiting_before is not None and waiting >= waiting_before:
            transport.abort()
        elif waiting:
            self._look_later(protocol, waiting)


def _address(protocol: web.RequestHandler) -> str:
    """Return whence a connection comes; empty while it is being made or once it is gone."""
    transport = protocol.transport
    peer = None if transport is None else transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


class _Plain(web.RequestHandler):
    """The library's, but that what is no request is answered as every refusal is."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer, after which the connection ends; the library says only what it logs."""
        if isinstance(exc, UnicodeEncodeError) and "Expect" in request.headers:
            # It repeats in its refusal what it cannot write.
            message = "an unknown Expect"
            status, exc = 417, HttpProcessingError(code=417, message=message)
        super().handle_error(request, status, exc, message)
        reason = (message or "").partition("\n")[0].partition(" when reading:")[0]
        reason = reason.rstrip(": ")[:FOUND_CHARS_MAX]
        sentence = f"this is no HTTP request: {reason[:1].lower()}{reason[1:]}"
        answer = problem(status, sentence if status < 500 else "the broker failed to answer")
        answer.headers["Server"] = SERVER
        answer.force_close()
        return answer


class _Refusing(asyncio.Protocol):
    """Ends a connection for which there is no room."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def acceptor(
    server: Any,
    patience: RequestPatience,
    connections_max: int,
    gone: Callable[[web.RequestHandler], None],
) -> Callable[[], asyncio.BaseProtocol]:
    """Return a factory of protocols for an aiohttp server; `gone` is called at each one's end."""

    class Counted(_Plain):
        """Tells when it ends, for which the library has no place."""

        __slots__ = ()

        def connection_lost(self, exc: BaseException | None) -> None:
            super().connection_lost(exc)
            gone(self)

    def protocol() -> asyncio.BaseProtocol:
        if len(server.connections) >= connections_max and not patience.make_room():
            return _Refusing()
        made: web.RequestHandler = server()
        made.__class__ = Counted  # the library has no place where it could be told which to make
        patience.begins(made)
        return made

    return protocol
