"""How each route is answered.

Owns the translation between HTTP and the facade. Must not know the broker behind it. Invariant: a
handler reads no more than its bound and never waits for a slow client without one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import msgspec
from aiohttp import web

from broker.admission.messages import REQUEST_BYTES_MAX
from broker.backup.manifest import BackupError
from broker.core.messages import Done
from broker.core.refusals import NO_COPY, SEVERAL_HOMES, UNCONFIRMED, UNREACHED
from broker.http.events.parts import MEDIA, PartError, split_events
from broker.http.facade import BrokerFacade, RequestReply
from broker.http.fan import FollowersFullError
from broker.http.guard import USER, Handler, log, problem
from broker.http.openapi import document
from broker.network.functions.files import FILE_BYTES_MAX
from broker.rights.current import CurrentRights

BODY_WAIT_S = 30.0  # a body of the allowed size needs less even over a bad line
WRITE_WAIT_S = 30.0  # a client that takes nothing for so long is gone
ALIVE_EVERY_S = 15.0  # proxies and clients take longer silence for a dead connection
CLIENT_LENGTH_MAX = 128
ANONYMOUS = "http"
STATUSES = {
    SEVERAL_HOMES: 409,
    UNREACHED: 504,
    UNCONFIRMED: 504,
    NO_COPY: 404,
}  # of refused requests
UNLINKED = "this broker has no links: set links.host, links.peers, links.seeds or links.discover"
UNCOORDINATED = "tasks stay where they were submitted: coordinator.enabled is false here"


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body), status=status, content_type="application/json"
    )


class Handlers:
    """One coroutine for each row of the table of routes, under the row's name."""

    def __init__(
        self,
        facade: BrokerFacade,
        rights: CurrentRights,
        *,
        text_bytes_max: int,
        events_bytes_max: int,
        events_max: int,
    ) -> None:
        self._facade = facade
        self._rights = rights
        self._text_bytes_max = text_bytes_max
        self._events_bytes_max = events_bytes_max
        self._events_max = events_max
        self._exposition: tuple[Callable[[], bytes], str] | None = None

    def by_name(self, name: str) -> Handler:
        """The handler of a route."""
        handler: Handler = getattr(self, name)
        return handler

    async def healthz(self, _request: web.Request) -> web.Response:
        """Alive or not."""
        healthy = self._facade.healthy()
        return _json({"healthy": healthy}, 200 if healthy else 503)

    async def readyz(self, _request: web.Request) -> web.Response:
        """Ready, or what is missing."""
        missing = list(self._facade.ready())
        return _json({"ready": not missing, "missing": missing}, 503 if missing else 200)

    async def metrics(self, _request: web.Request) -> web.Response:
        """The ledger for Prometheus; the library is loaded at the first scrape."""
        if self._exposition is None:
            from broker.metrics.exposition import exposition

            self._exposition = exposition(self._facade.ledger, version("headwater"))
        render, content_type = self._exposition
        return web.Response(body=render(), headers={"Content-Type": content_type})

    async def status(self, request: web.Request) -> web.Response:
        """Answer what the broker says of itself, or in short all brokers of the network."""
        if _of_network(request):
            return _json(await self._facade.network_status())
        return _json(self._facade.status())

    async def list_subscriptions(self, request: web.Request) -> web.Response:
        """The subscriptions."""
        if _of_network(request):
            return _json(await self._facade.network_subscriptions(USER.get()))
        return _json({"subscriptions": list(self._facade.subscriptions(USER.get()))})

    async def publish(self, request: web.Request) -> web.Response:
        """Events in; an answer once the journal has them."""
        media = request.content_type
        if media not in MEDIA:
            return problem(415, f"send events as Content-Type: {' or '.join(MEDIA)}")
        limit = ("body", self._events_bytes_max, "payload_bytes_max")
        body = await _body(request, *limit)
        if isinstance(body, web.Response):
            return body
        names = request.query.get("type", ""), request.query.get("source", "")
        try:
            parts = split_events(body, media, *names, self._events_max)
        except PartError as error:
            place = {"message": f"{error}; nothing was published", error.unit: error.number}
            return _json({"ok": False, "accepted": 0, "errors": [place]}, 422)
        status, reply = await self._facade.publish(parts, USER.get())
        return _json(reply, status)

    async def submit(self, request: web.Request) -> web.Response:
        """A specification in, a reply out."""
        return await self._of_text(request, self._facade.submit)

    async def preview(self, request: web.Request) -> web.Response:
        """A specification in, what it would change out."""
        return await self._of_text(request, self._facade.preview)

    async def _of_text(
        self, request: web.Request, ask: Callable[[str, str, str | None], Awaitable[RequestReply]]
    ) -> web.Response:
        if request.content_type != "text/plain":
            return problem(415, "send the specification as Content-Type: text/plain")
        limit = ("specification", self._text_bytes_max, "specification_bytes_max")
        body = await _body(request, *limit)
        if isinstance(body, web.Response):
            return body
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError:
            return problem(422, "the specification is not UTF-8")
        client = _client(request)
        if client is None:
            return problem(400, f"`client` is longer than {CLIENT_LENGTH_MAX} characters")
        reply = await ask(text, client, USER.get())
        return _json(reply, 200 if reply["ok"] else 422)

    async def cancel(self, request: web.Request) -> web.Response:
        """The end of a subscription."""
        return await self._of_named(request, self._facade.cancel, "cancelled")

    async def resume(self, request: web.Request) -> web.Response:
        """A new beginning of a suspended subscription."""
        return await self._of_named(request, self._facade.resume, "resumed")

    async def _of_named(
        self,
        request: web.Request,
        ask: Callable[[str, str, str | None], Awaitable[RequestReply]],
        done: Done,
    ) -> web.Response:
        client = _client(request)
        if client is None:
            return problem(400, f"`client` is longer than {CLIENT_LENGTH_MAX} characters")
        name, home = request.match_info["name"], request.query.get("home", "")
        if not home and not _of_network(request):
            reply = await ask(name, client, USER.get())
        else:
            reply = await self._facade.end(name, client, USER.get(), done, home=home)
        codes = [error.get("code", "") for error in reply.get("errors", ())]
        return _json(reply, 200 if reply["ok"] else STATUSES.get(codes[0], 404))

    async def forget(self, request: web.Request) -> web.Response:
        """The end of waiting for another broker."""
        name = request.match_info["name"]
        if not self._facade.forget(name):
            return problem(404, f"no other broker `{name[:CLIENT_LENGTH_MAX]}` is known")
        return _json({"ok": True})

    async def take_over(self, request: web.Request) -> web.Response:
        """The subscriptions of a lost home, which go on here."""
        client = _client(request)
        if client is None:
            return problem(400, f"`client` is longer than {CLIENT_LENGTH_MAX} characters")
        name, is_forced = request.match_info["name"], request.query.get("force") == "1"
        reply = await self._facade.take_over(name, client, is_forced=is_forced)
        codes = [error.get("code", "") for error in reply.get("errors", ())]
        return _json(reply, 200 if reply["ok"] else STATUSES.get(codes[0], 409))

    async def network(self, _request: web.Request) -> web.Response:
        """The network, and what goes over this broker's links."""
        view = self._facade.network()
        return problem(409, UNLINKED) if view is None else _json(view)

    async def plan(self, _request: web.Request) -> web.Response:
        """Answer where tasks run, and why."""
        plan = self._facade.plan()
        return problem(409, UNCOORDINATED) if plan is None else _json(plan)

    async def drain(self, _request: web.Request) -> web.Response:
        """Have the tasks that run here go elsewhere."""
        return _drained(done=self._facade.drain(drained=True))

    async def undrain(self, _request: web.Request) -> web.Response:
        """Let tasks come again."""
        return _drained(done=self._facade.drain(drained=False))

    async def reload(self, _request: web.Request) -> web.Response:
        """Have rights, certificates and secrets taken up."""
        outcome = await self._facade.reload()
        return _json(outcome, 200 if outcome["ok"] else 422)

    async def invite(self, request: web.Request) -> web.Response:
        """A code by which one broker may join the network."""
        address = request.query.get("address") or f"http://{request.headers.get('Host', '')}"
        status, reply = await self._facade.invite(address, trusted="trusted" in request.query)
        return _json(reply, status)

    async def join(self, request: web.Request) -> web.Response:
        """All that a new broker needs, sealed for who holds the code."""
        body = await _body(request, "request", REQUEST_BYTES_MAX)
        if isinstance(body, web.Response):
            return body
        status, reply = await self._facade.join(body)
        return _json(reply, status)

    async def list_functions(self, _request: web.Request) -> web.Response:
        """The user functions of the network."""
        return _json(await self._facade.functions.listing())

    async def give_functions(self, request: web.Request) -> web.Response:
        """A file of user functions in, an answer once the journal has it."""
        body = await _body(request, "file of functions", FILE_BYTES_MAX)
        if isinstance(body, web.Response):
            return body
        name, giver = request.match_info["name"], USER.get() or ""
        status, reply = await self._facade.functions.give(name, body, giver)
        return _json(reply, status)

    async def remove_functions(self, request: web.Request) -> web.Response:
        """The end of a file of user functions, everywhere."""
        name, giver = request.match_info["name"], USER.get() or ""
        status, reply = await self._facade.functions.remove(name, giver)
        return _json(reply, status)

    async def backup(self, request: web.Request) -> web.StreamResponse:
        """A copy of the data directory; one that fails half-way is cut off before its manifest."""
        pieces = self._facade.backup()
        if pieces is None:
            return problem(409, "there is no data directory here, so nothing to copy")
        try:
            first = await anext(pieces)
        except (BackupError, OSError) as error:
            return problem(409, f"no backup can be taken: {error}")
        response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
        try:
            await response.prepare(request)
            await _write(response, first)
            async for piece in pieces:
                await _write(response, piece)
        except (ConnectionError, TimeoutError, BackupError, OSError) as error:
            log.warning("a backup was cut off: %s", str(error) or type(error).__name__)
            if request.transport is not None:
                request.transport.abort()
        finally:
            await pieces.aclose()
        return response

    async def dashboard(self, _request: web.Request) -> web.Response:
        """The page for people; it is loaded at the first look."""
        from broker.http.dashboard import PAGE, POLICY

        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return web.Response(text=PAGE, content_type="text/html", headers=headers)

    async def openapi(self, _request: web.Request) -> web.Response:
        """The description of all this."""
        return _json(document(version("headwater"), with_users=bool(self._rights)))

    async def results(self, request: web.Request) -> web.StreamResponse:
        """Results as they come, until either side has had enough."""
        try:
            follower = self._facade.follow(request.query.get("subscription"), USER.get())
        except FollowersFullError as full:
            return problem(503, str(full))
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        try:
            await response.prepare(request)
            while True:
                try:
                    async with asyncio.timeout(ALIVE_EVERY_S):
                        lines = await follower.take()
                except TimeoutError:
                    lines = [b""]
                if not lines:
                    break
                await _write(response, b"\n".join(lines) + b"\n")
            if follower.overflowed:
                errors: dict[str, Any] = {"errors": [{"message": "cut off: too slow to follow"}]}
                await _write(response, msgspec.json.encode({"ok": False, **errors}) + b"\n")
        except ConnectionError:
            pass  # the client went away; its queue goes with it
        except TimeoutError:  # it takes nothing: an orderly end would wait for it as well
            if request.transport is not None:
                request.transport.abort()
        finally:
            follower.close()
        return response


def _client(request: web.Request) -> str | None:
    """Return the asker: the user, else what the request says; nothing where that is too long."""
    user = USER.get()
    if user is not None:
        return user
    named = request.query.get("client") or ANONYMOUS
    return named if len(named) <= CLIENT_LENGTH_MAX else None


def _drained(*, done: bool) -> web.Response:
    return _json({"ok": True}) if done else problem(409, UNCOORDINATED)


def _of_network(request: web.Request) -> bool:
    """Return if all brokers are asked about, and not this one alone."""
    return request.query.get("network", "0") not in {"0", "false"}


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_WAIT_S):
        await response.write(data)


async def _body(
    request: web.Request, what: str, bytes_max: int, limit: str = ""
) -> bytes | web.Response:
    """Read a body of at most `bytes_max`, or return the refusal, which names a `limit`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        return problem(415, f"send the {what} as it is, without Content-Encoding")
    body = None
    try:
        async with asyncio.timeout(BODY_WAIT_S):
            body = await request.read()
    except TimeoutError:
        return problem(408, "the body did not arrive in time")
    except web.HTTPRequestEntityTooLarge:
        pass
    except RuntimeError as error:
        if request.protocol.connected:
            raise
        raise ConnectionResetError("closed before its body was read") from error
    if body is None or len(body) > bytes_max:
        aside = f" (limits.{limit})" if limit else ""
        return problem(413, f"the {what} is longer than {bytes_max} bytes{aside}")
    return body
