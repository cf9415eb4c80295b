"""One broker with all its faces: put together, started, stopped.

Owns the parts of a running broker and the order in which they come and go. Must not know signals or
how the process ends. Invariant: what was started is stopped, in the reverse order, whatever failed.

MQTT comes first, as sensors wait for it; the HTTP face is imported after that, which takes a third
of the time of a start.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from broker import logs
from broker.config import Config, ConfigError
from broker.config.mappings import heard_by, settled
from broker.core.broker import BrokerOptions
from broker.core.messages import Started, Stopped
from broker.core.recovery.durable_state import RestorableBroker
from broker.core.topics import EVENTS
from broker.driver.actor_listeners import ActorListeners
from broker.driver.mqtt_face import Arrivals, Delivery
from broker.driver.mqtt_sessions import go_on
from broker.driver.reference_tables import TablesError, load_tables
from broker.driver.requests import Requests
from broker.driver.runner import ClockWatch, Runner, WallClock
from broker.engine.event.own import Function
from broker.errors import StartError
from broker.mqtt.application import InboundMessage
from broker.mqtt.listeners import Listener, ListenError, Tls
from broker.mqtt.routing.router import Prefix
from broker.mqtt.server import MqttServer
from broker.mqtt.sessions.logins import Logins
from broker.mqtt.storage.rows import KEPT
from broker.network.functions.register import FunctionRegister
from broker.own_functions import FunctionsError, load_functions, load_given
from broker.rights.current import CurrentRights
from broker.site.reload import Reload, read_table
from broker.store import StoreError

if TYPE_CHECKING:
    from broker.bridge.joined import JoinedServers
    from broker.bridge.mapping import Mappings
    from broker.driver.durability import Durability
    from broker.driver.promises import Promises
    from broker.driver.runner import Outside
    from broker.http.app import HttpListener
    from broker.site.networking import Networking

NEEDS_A_FOLDER = (
    "links to other brokers need a data directory, as events are kept there until others have them;"
    " set broker.data_dir, or leave out [links]"
)
NOTHING_KEPT = "without a data directory (broker.data_dir) nothing outlasts this process"

logger = logging.getLogger(__name__)


class _Door:
    """An application whose part is set later: the face is made before what is behind it."""

    on_publish: Callable[[list[InboundMessage]], None]


class Site:
    """The broker of one process. Use `start` once, then `stop`."""

    def __init__(self, config: Config, folder: Path | None = None) -> None:
        """Raises StartError."""
        self._config = config
        self._rights = _rights(config)
        self.reload: Reload
        self._folder = folder
        self._door = door = _Door()
        prefix = config.mqtt.prefix
        self._server = MqttServer(
            door,
            listeners=listeners(config),
            users=self._rights,
            prefix=Prefix(prefix, (f"{prefix}/{EVENTS}/#",), _mapped(config)),
            limits=config.mqtt_limits,
            authorize=self._rights or None,
        )
        self._server.quotas.replace(self._rights.judge.table.quotas)
        self._delivery = Delivery(self._server, prefix)
        self._joined = _joined(config, self._delivery)
        self._options = BrokerOptions(
            name=config.broker.name,
            lateness_ms=config.intake.lateness_ms,
            drift_ppm=config.intake.drift_ppm,
            idle_timeout_ms=config.intake.idle_timeout_ms,
            require_timestamp=config.intake.require_timestamp,
            networked=is_networked(config),
            cells=config.coordinator.enabled or bool(config.links.stand_in),
            split_windows=config.coordinator.split_windows,
            correlate=config.links.correlate,
            tables=_tables(config),
        )
        load = load_given if config.broker.run_given_functions else None
        self._functions = FunctionRegister(_functions(config), load)
        self._mappings = _mappings(config)
        self._runner: Runner
        self._watch: ClockWatch
        self._requests: Requests
        self._listening: ActorListeners
        self._keeping: Durability | None = None
        self._networking: Networking | None = None
        self._serving: asyncio.Task[None] | None = None
        self._http: HttpListener | None = None
        self._started = False

    async def start(self) -> dict[str, str]:
        """Serve clients; where each face is to be reached. Raises StartError."""
        await self._make_core()
        if self._networking is not None:
            await self._networking.settled(self._folder)
        try:
            await self._server.start()
        except ListenError as error:
            if self._keeping is not None:
                await self._keeping.abandon()
            raise _cannot_listen("mqtt", error) from None
        if self._keeping is not None:
            self._keeping.begin(self._runner, self._config)
            self._runner.release()
        self._serving = asyncio.create_task(self._requests.serve(), name="requests")
        self._serving.add_done_callback(self._served)
        names, addresses = faces(self._config), self._server.addresses()
        each = len(addresses) // len(names)  # a host's name may stand for several addresses
        where = dict(zip(names, map(_address, addresses[::each]), strict=True))
        try:
            if self._networking is not None:
                self._delivery.others_are_lost(self._options.name, self._runner.now_ms())
                where["links"] = await self._networking.start(self._folder)
            if self._config.http.enabled:
                where["http"] = await self._start_http()
        except BaseException:
            await self.stop()
            raise
        self._started = True
        self._runner.handle(Started())
        self._listening.look()
        await self.reload.stop_refused()  # the rights may be others than when it stopped
        if self._joined is not None:
            outbox = None if self._keeping is None else self._keeping.log
            self._joined.start(outbox, self._runner.now_ms)
        return where

    async def _make_core(self) -> None:
        """The core as it was left, or a new one where nothing is kept. Raises StartError."""
        clock = WallClock(wait_s=self._config.intake.clock_wait_ms / 1000)
        outside: Outside = self._joined or self._delivery
        if self._folder is None:
            if self._options.networked:
                raise StartError(NEEDS_A_FOLDER)
            logs.tell("warning", "nothing_kept", reason=NOTHING_KEPT)
            core = RestorableBroker(self._options, self._config.limits)
            core.given = self._functions
            core.know(core.given.in_force)
            runner = Runner(core, outside, clock)
        else:
            from broker.driver.durability import Durability

            keeping = await Durability.open(
                self._folder, self._config, self._options, clock.now_ms, (KEPT,), self._functions
            )
            self._keeping = keeping
            clock.not_before(keeping.core.now)
            await self._go_on(keeping)
            promises = keeping.join(outside, clock.now_ms)
            runner = self._make_runner(keeping, promises, clock)
            runner.hold(quietly=True)  # until what is left over from before has its place
        self._runner = runner
        self._watch = ClockWatch(clock, runner.put)
        prefix, name = self._config.mqtt.prefix, self._options.name
        self._listening = ActorListeners(self._server, runner, prefix, name)
        self._server.on_subscriptions(self._listening.changed)
        self._requests = Requests(runner, self._config.limits, self._rights, self._server.quotas)
        if self._networking is not None:
            links = self._networking
            self._requests.link(links.calls, links.copies, links.stand_in_state)
        self.reload = Reload(self._config, self._rights, self._server, self._delivery)
        self.reload.attach(runner, self._networking)
        arrivals = Arrivals(
            self._config.mqtt.prefix,
            runner.add_payload,
            runner.add,
            self._requests.put,
            runner.flush,
        )
        arrivals.may_hear = self._rights.may_hear
        if self._mappings is not None:
            arrivals.mappings = self._mappings
            self._mappings.advertised = runner.is_advertised
            self._mappings.publish = self._delivery.send
        self._door.on_publish = arrivals.on_publish
        if self._joined is not None:
            self._joined.attach(runner, self._requests.put)

    def _make_runner(self, keeping: "Durability", promises: "Promises", clock: WallClock) -> Runner:
        """The runner of a core with a journal, and with its links if it has any."""
        if not self._options.networked:
            return Runner(keeping.core, promises, clock, promises.kept)
        from broker.site.networking import Networking

        networking = self._networking = Networking(
            self._config, keeping.core, clock.now_ms(), keeping.log
        )
        runner = Runner(keeping.core, promises, clock, promises.kept, networking.broker)
        promises.hold = networking.holding(promises.hold)
        promises.on_durable = networking.durable
        promises.send, promises.delivered = networking.send, networking.delivered
        promises.stand_in = lambda: networking.broker.stand_ins.feed.stand_in
        networking.attach(runner, promises.commits)
        return runner

    async def _go_on(self, keeping: "Durability") -> None:
        """Have MQTT sessions go on. Raises StartError."""
        try:
            await go_on(self._server, self._delivery, keeping.store, keeping.log)
        except StoreError as error:
            await keeping.abandon()
            raise StartError(f"{error}; the data directory is {self._folder}") from None

    def _served(self, task: "asyncio.Task[None]") -> None:
        """Requests are served to the end; if not, that is a fault to be seen."""
        if not task.cancelled() and task.exception() is not None:
            self._runner.faults += 1
            logger.error("requests are served no more", exc_info=task.exception())

    async def _start_http(self) -> str:
        from broker import http
        from broker.site.facade import Facade

        config, limits = self._config, self._config.http_limits
        fan = self._delivery.fan = http.ResultFan(limits.streams_max, limits.stream_queue_max)
        facade = Facade(
            self._runner,
            self._requests,
            self._server,
            fan,
            keeping=self._keeping,
            joined=self._joined,
            networking=self._networking,
            reload=self.reload,
        )
        facade.latency_s = self._delivery.latency_s
        options = http.HttpOptions(
            text_bytes_max=config.limits.specification_bytes_max,
            events_bytes_max=config.limits.payload_bytes_max,
            events_max=config.limits.batch_events_max,
            connections_max=limits.connections_max,
        )
        keeping = self._keeping
        logins, quotas = Logins(config.mqtt_limits), self._server.quotas
        app = http.make_app(
            facade,
            self._rights,
            options,
            logins,
            log=None if keeping is None else keeping.log,
            quotas=quotas,
            types=None if keeping is None else self._requests.value_types(keeping.store).of,
        )
        try:
            self._http = await http.listen(app, config.http.host, config.http.port, options)
        except http.HttpListenError as error:
            raise _cannot_listen("http", error) from None
        facade.missing.clear()
        return _address((config.http.host, self._http.port))

    async def stop(self) -> None:
        """Say that the broker ends, where it has begun, and close everything."""
        self._runner.settle()
        if self._started:
            self._runner.handle(Stopped(self._config.links.back_within_ms))
        self._runner.close()
        self._listening.close()
        self._watch.close()
        if self._serving is not None:
            self._serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
        if self._networking is not None:
            await self._networking.stop()
        if self._keeping is not None:
            await self._keeping.settle()  # so that who waits for an answer gets it
        self._delivery.flush()
        if self._joined is not None:
            await self._joined.stop()
        if self._delivery.fan is not None:
            self._delivery.fan.close()
        if self._http is not None:
            await self._http.close()
        await self._server.stop()
        if self._keeping is not None:
            await self._keeping.close()


def listeners(config: Config) -> list[Listener]:
    """The MQTT listeners that a configuration asks for, in the order of `faces`."""
    mqtt = config.mqtt
    plain_and_tls = [Listener(mqtt.host, mqtt.port)] if mqtt.plain else []
    if mqtt.tls_cert:
        required = mqtt.tls_client_certificates == "required"
        tls = Tls(mqtt.tls_cert, mqtt.tls_key, mqtt.tls_client_ca, required)
        plain_and_tls.append(Listener(mqtt.host, mqtt.tls_port, tls))
    return plain_and_tls


def is_networked(config: Config) -> bool:
    """Tell whether there are to be links to other brokers."""
    return config.links.linked


def faces(config: Config) -> list[str]:
    """Return the names of the MQTT listeners."""
    return [*(["mqtt"] if config.mqtt.plain else []), *(["mqtts"] if config.mqtt.tls_cert else [])]


def _mapped(config: Config) -> tuple[str, ...]:
    """The filters of the foreign topics that are mapped to events."""
    return tuple(heard_by(settled(section)) for section in config.mappings.values())


def _mappings(config: Config) -> "Mappings | None":
    """Make the mappings to events; None where there are none. Raises StartError."""
    if not config.mappings:
        return None
    from broker.bridge.mapping import Mappings

    return Mappings(config.mappings, config.limits)


def _joined(config: Config, delivery: Delivery) -> "JoinedServers | None":
    """The servers to be joined, whose library takes its time to import. Raises StartError."""
    if not config.joins:
        return None
    from broker.bridge.joined import JoinedServers

    return JoinedServers(config, delivery)


def _tables(config: Config) -> dict[str, str]:
    """The tables that specifications may name. Raises StartError."""
    try:
        return load_tables(config.broker.tables)
    except TablesError as error:
        raise StartError(f"{error}; see `tables` under [broker]") from None


def _functions(config: Config) -> dict[str, Function]:
    """The functions of one's own that specifications may call. Raises StartError."""
    try:
        return load_functions(config.broker.functions)
    except FunctionsError as error:
        raise StartError(f"{error}; see `functions` under [broker]") from None


def _rights(config: Config) -> CurrentRights:
    """Read the rights. Raises StartError."""
    try:
        return CurrentRights(read_table(config), config.mqtt.prefix)
    except ConfigError as error:
        raise StartError(f"{error}\nsee `rights` under [broker]") from None


def _cannot_listen(section: str, error: Exception) -> StartError:
    taken = "already in use" in str(error)  # the most frequent reason by far
    way_out = f"; choose another port under [{section}], or end what listens there" if taken else ""
    return StartError(f"{error}{way_out}")


def _address(where: tuple[str, int]) -> str:
    host, port = where
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
