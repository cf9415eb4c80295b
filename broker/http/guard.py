"""Who may ask, and what becomes of a request that goes wrong.

Owns the check of users, tokens and foreign web pages, and the form of errors. Must not know what a
route does, nor what it needs: `broker.rights` does. Invariant: where there are users, no route is
reached without what the table of requests says that it needs; where there are none, a web page
cannot reach the broker through its visitor's browser.
"""

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from broker.config import is_loopback
from broker.mqtt.sessions.logins import Logins
from broker.rights.current import CurrentRights
from broker.rights.judge import Principal
from broker.rights.quotas import DoorCount, Holder
from broker.rights.requests import BY_ROUTE, RequestEntry

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]

LOGINS_AT_A_TIME = 4  # each takes 16 MiB and a thread for tens of milliseconds
USER: ContextVar[str | None] = ContextVar("user", default=None)  # whose request this task serves
NEEDED = "a user's name and password, or a token, are needed"
UNKNOWN_OR_OVER = "the token is unknown or over; `headwater token add` makes another"
FEWER = "end one of them, or have `connections` raised under [quotas] of the rights file"
RETRY_AFTER_S = 10
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


def foreign_pages_kept_out(rights: CurrentRights) -> Middleware:
    """Refuses what a web page of another site makes a visitor's browser ask.

    Where no users are configured a name that an attacker made to mean 127.0.0.1 is refused too.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")  # `request.host` would ask the resolver without it
        origin = request.headers.get("Origin")
        if origin is not None and _netloc(origin) != host.lower():
            return problem(403, f"a page of {origin[:100]} may not ask this broker")
        if host and not rights and not is_loopback(_hostname(host)):
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


def rights_kept(rights: CurrentRights, failures: Logins, count: DoorCount) -> Middleware:
    """Let those in who may do what they ask for, as the table of requests and `rights` say.

    `count` judges their connections by the quotas; probes are answered whatever these say. An
    address from which too many logins failed of late is let in by those known to be good alone.
    """
    gate = asyncio.Semaphore(LOGINS_AT_A_TIME)

    async def good(name: str, password: str) -> bool:
        async with gate:
            return await asyncio.to_thread(rights.login, name, password)

    async def user_of(request: web.Request) -> str | web.Response:
        """The name that the request proves, or the refusal."""
        header, address = request.headers.get("Authorization", ""), f"{request.remote}:"
        token, login = _token(header), _credentials(header)
        if token is None and login is None:
            return problem(401, NEEDED, CHALLENGE)
        if login is not None and rights.remembered(*login):
            return login[0]
        if token is not None:
            # Before the bar: a token is quick to check and not to be guessed.
            name = rights.judge.user_of_token(token, time.time_ns() // 1_000_000)
            if name is not None:
                return name
        if failures.barred(address, _now_ms()):
            return problem(429, "too many logins from this address failed; wait a while")
        if login is not None and await good(*login):
            return login[0]
        failures.failed(address, _now_ms())
        return problem(401, NEEDED if token is None else UNKNOWN_OR_OVER, CHALLENGE)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        wanted = entry_of(request)
        if wanted is not None and wanted.need == "nothing":
            return await handler(request)
        user = await user_of(request) if rights else None
        if isinstance(user, web.Response):
            return user
        sentence = count.admit(request.protocol, Holder(user, request.remote or ""))
        if sentence is not None:
            answer = problem(429, f"{sentence}; {FEWER}", {"Retry-After": str(RETRY_AFTER_S)})
            answer.force_close()
            return answer
        if user is None:
            return await handler(request)
        if wanted is not None and not rights.judge.allows(Principal(user), wanted.need):
            return problem(403, refusal(user, wanted))
        USER.set(user)
        return await handler(request)

    return check


def entry_of(request: web.Request) -> RequestEntry | None:
    """Return what the table says of a request; None where no such thing is served."""
    resource = request.match_info.route.resource
    if resource is None:
        return None
    method = "GET" if request.method == "HEAD" else request.method
    return BY_ROUTE[f"{method} {resource.canonical}"]


def refusal(user: str, wanted: RequestEntry) -> str:
    """Return the sentence for `user`, who may not ask for what is `wanted`."""
    return f"`{user}` may not ask for this: it needs the right `{wanted.need}`, see docs/rights.md"


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


def _token(header: str) -> str | None:
    """The token of a Bearer authorization; nothing where there is none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


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
