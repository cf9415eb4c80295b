"""The application and its listener.

Owns the putting together of routes, guards and handlers, and the socket. Must not know what is
asked. Invariant: a listener that was started is closed with everything that it began.
"""

import asyncio
import os
from typing import Any

import msgspec
from aiohttp import web

from broker.http.connections import IDLE_WAIT_S, SERVER, RequestPatience, acceptor, log
from broker.http.facade import BrokerFacade
from broker.http.guard import foreign_pages_kept_out, rights_kept, told_as_json
from broker.http.handlers import Handlers
from broker.http.log_facade import ResultLog
from broker.http.log_handlers import LogHandlers, ValueTypes
from broker.http.log_routes import LOG_ROUTES
from broker.http.routes import ROUTES
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.logins import Logins
from broker.rights.current import CurrentRights
from broker.rights.quotas import DoorCount, QuotaLedger

ENDLESS = frozenset(("results", "backup"))  # streams, which HEAD would have made in vain
SHUTDOWN_WAIT_S = 2.0  # followers are told before; whoever still hangs on is cut off

_PATIENCE = web.AppKey("patience", RequestPatience)
_COUNT = web.AppKey("count", DoorCount)


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a specification and of events (`limits`), and of connections (`http_limits`).

    `head_wait_s` is how long a new connection has for the head of its first request, and
    `take_wait_s` how long a client may take nothing of an answer.
    """

    text_bytes_max: int = 262_144
    events_bytes_max: int = 1_048_576
    events_max: int = 10_000
    connections_max: int = 500
    head_wait_s: float = 10.0
    take_wait_s: float = 30.0


class HttpListenError(OSError):
    """An address cannot be listened on; the message says which and why."""


def make_app(
    facade: BrokerFacade,
    rights: CurrentRights,
    options: HttpOptions | None = None,
    failures: Logins | None = None,
    *,
    log: ResultLog | None = None,
    quotas: QuotaLedger | None = None,
    types: ValueTypes | None = None,
) -> web.Application:
    """Return the application for a broker. Where `rights` are open nobody is asked for a name.

    `failures` remembers failed logins; `log` is where the broker keeps results, if it does;
    `quotas` counts what MQTT clients have, too; `types` tells those of a subscription's values.
    """
    count = DoorCount(quotas or QuotaLedger())
    options = options or HttpOptions()
    patience = RequestPatience(options.head_wait_s, options.take_wait_s)
    middlewares: list[Any] = [
        patience.middleware(),
        told_as_json,
        foreign_pages_kept_out(rights),
        rights_kept(rights, failures or Logins(MqttLimits()), count),
    ]
    longest = max(options.text_bytes_max, options.events_bytes_max)
    app = web.Application(middlewares=middlewares, client_max_size=longest)
    app[_PATIENCE], app[_COUNT] = patience, count
    app.on_response_prepare.append(_say_no_more_than_needed)
    handlers = Handlers(
        facade,
        rights,
        text_bytes_max=options.text_bytes_max,
        events_bytes_max=options.events_bytes_max,
        events_max=options.events_max,
    )
    log_handlers = LogHandlers(log, lambda: str(facade.status()["broker"]), types)
    app.on_shutdown.append(log_handlers.shutdown)
    for route in ROUTES:
        owner = log_handlers if route in LOG_ROUTES else handlers
        path = route.path.replace("{name}", "{name:.+}")  # names of subscriptions may hold `/`
        handler = owner.by_name(route.name)
        app.router.add_route(route.method, path, handler)
        if route.method == "GET" and route.name not in ENDLESS:  # probes and `curl -I` ask so
            app.router.add_route("HEAD", path, handler)
    return app


async def _say_no_more_than_needed(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER
    response.headers["X-Content-Type-Options"] = "nosniff"


class HttpListener:
    """A running server; `port` is the one it got."""

    def __init__(
        self, runner: web.AppRunner, server: asyncio.Server, patience: RequestPatience
    ) -> None:
        self.port = int(server.sockets[0].getsockname()[1])
        self._runner = runner
        self._server = server
        self._patience = patience

    async def close(self) -> None:
        """Stops listening and ends what is open. End the followers of results before."""
        self._server.close()
        await self._runner.cleanup()
        self._patience.close()


async def listen(
    app: web.Application, host: str, port: int, options: HttpOptions | None = None
) -> HttpListener:
    """Serves the application; port 0 takes any free one. Raises HttpListenError."""
    connections_max = (options or HttpOptions()).connections_max
    runner = web.AppRunner(
        app,
        access_log=None,
        auto_decompress=False,  # nobody packs what is asked here, and half of a pack is half a text
        handle_signals=False,
        keepalive_timeout=IDLE_WAIT_S,
        logger=log,
        shutdown_timeout=SHUTDOWN_WAIT_S,
    )
    await runner.setup()
    patience = app[_PATIENCE]
    protocol = acceptor(runner.server, patience, connections_max, app[_COUNT].gone)
    try:
        sockets = await asyncio.get_running_loop().create_server(protocol, host, port)
    except OSError as error:
        await runner.cleanup()
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise HttpListenError(f"cannot listen for HTTP on {host}:{port}: {reason}") from None
    return HttpListener(runner, sockets, patience)
