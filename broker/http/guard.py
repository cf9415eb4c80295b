"""Who may ask, and what becomes of a request that goes wrong.

Owns the check of users, of foreign web pages and the form of errors. Must not know what a route
does. Invariant: no route but an open one is reached without a user, where there are users; and
where there are none, a web page cannot reach the broker through its visitor's browser.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from broker.config import is_loopback
from broker.credentials import Users
from broker.mqtt.logins import Logins

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]

LOGINS_AT_A_TIME = 4  # each takes 16 MiB and a thread for tens of milliseconds
USER: ContextVar[str | None] = ContextVar("user", default=None)  # whose request this task serves
NEEDED = "a user's name and password are needed"
CHALLENGE = {"WWW-Authenticate": 'Basic realm="headwater", charset="UTF-8"'}

log = logging.getLogger("headwater.http")


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal in the form that every refusal has."""
    # What a client sent may stand in it, and bytes of a head need not be text.
    text = message.encode("utf-8", "replace").decode()
    body = {"ok": False, "errors": [{"message": text}]}
    return web.Response(
        status=status,
        body=msgspec.json.encode(body),
        content_type="application/json",
        headers=headers,
    )


@web.middleware
async def told_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong is answered as JSON; what nobody foresaw is logged and is a 500."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        kept = {k: v for k, v in error.headers.items() if k in {"Allow", "WWW-Authenticate"}}
        return problem(error.status, _sentence(request, error), kept)
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception:
        log.exception("a request failed", extra={"method": request.method, "path": request.path})
        return problem(500, "the broker failed to answer; its log says more")


def _sentence(request: web.Request, error: web.HTTPException) -> str:
    if error.status == 404:
        return f"there is no {request.path} here; /openapi.json lists what there is"
    if error.status == 405:
        return f"{request.path} does not take {request.method}"
    return (error.text or error.reason).strip()


def foreign_pages_kept_out(*, with_users: bool) -> Middleware:
    """Refuses what a web page of another site makes a visitor's browser ask.

    Where no users are configured a name that an attacker made to mean 127.0.0.1 is refused too.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")  # `request.host` would ask the resolver without it
        origin = request.headers.get("Origin")
        if origin is not None and _netloc(origin) != host.lower():
            return problem(403, f"a page of {origin[:100]} may not ask this broker")
        if host and not with_users and not is_loopback(_hostname(host)):
            return problem(403, f"this broker answers to loopback names, not {host[:100]}")
        return await handler(request)

    return check


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def users_only(users: Users, open_paths: frozenset[str], failures: Logins) -> Middleware:
    """Lets in whom `users` knows, and anybody to the open paths.

    An address from which too many logins failed of late is let in by those known to be good alone.
    """
    gate = asyncio.Semaphore(LOGINS_AT_A_TIME)

    async def known(name: str, password: str) -> bool:
        async with gate:
            return await asyncio.to_thread(users.login, name, password)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in open_paths:
            return await handler(request)
        login = _credentials(request.headers.get("Authorization", ""))
        if login is None:
            return problem(401, NEEDED, CHALLENGE)
        if not users.remembered(*login):
            address = f"{request.remote}:"
            if failures.barred(address, _now_ms()):
                return problem(429, "too many logins from this address failed; wait a while")
            if not await known(*login):
                failures.failed(address, _now_ms())
                return problem(401, NEEDED, CHALLENGE)
        USER.set(login[0])
        return await handler(request)

    return check


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


def _credentials(header: str) -> tuple[str, str] | None:
    """Name and password of a Basic authorization; nothing where there is none that can be read."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    name, _, password = text.partition(":")
    return name, password
