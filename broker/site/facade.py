"""The running broker as the HTTP face sees it.

Owns the answers to its questions. Must not know HTTP. Invariant: what it tells is what the core and
the faces have counted, at this moment.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, Any, cast

import msgspec

from broker.core import topics
from broker.core.messages import (
    CancelRequested,
    Done,
    EventsReceived,
    Payload,
    ResumeRequested,
    SpecificationSubmitted,
)
from broker.driver.mqtt_face import EndRequested, PreviewRequested, Request
from broker.driver.requests import Requests
from broker.driver.runner import Runner
from broker.http import Follower, MetricsLedger, RequestReply, ResultFan
from broker.http.events.parts import EventPart
from broker.http.facade import DiagnosticReply
from broker.metrics import Histogram
from broker.remote.states import BrokerState, NetworkStates
from broker.remote.take_over import HomeTakeOver
from broker.rights.judge import Principal
from broker.site.certificates import certificate_ends
from broker.site.reload import Reload, ReloadError
from broker.site.usage import usage

if TYPE_CHECKING:
    from broker.admission.desk import Desk
    from broker.bridge.joined import JoinedServers
    from broker.driver.durability import Durability
    from broker.mqtt.server import MqttServer
    from broker.site.networking import Networking

ERRORS_MAX = 100  # of one request: who sends so many wrong ones learns nothing from more
PUBLISH_WAIT_S = 30.0  # a broker that admits nothing says why in /readyz
PUBLISHING_BYTES_MAX = 8_388_608  # of events by HTTP that wait for the journal


class Facade:
    """Answer HTTP as `broker.http.facade.BrokerFacade` asks for. `missing`: what is not up yet.

    `keeping`: what is kept on disk. `joined`: the other MQTT servers. `networking`: the links to
    other brokers. `reload`: the rights, and who reads them again. `latency_s`: of results,
    once somebody measures it.
    """

    def __init__(
        self,
        runner: Runner,
        requests: Requests,
        server: "MqttServer",
        fan: ResultFan,
        *,
        keeping: "Durability | None" = None,
        joined: "JoinedServers | None" = None,
        networking: "Networking | None" = None,
        reload: Reload,
    ) -> None:
        self.missing: list[str] = ["the MQTT face", "the HTTP face"]
        self.latency_s = Histogram()
        self._runner = runner
        self._core = runner.core
        self._requests = requests
        self.functions = requests.functions
        self._server = server
        self._fan = fan
        self._rights = reload.rights
        self._reload = reload
        self._keeping = keeping
        self._joined = joined
        self._networking = networking
        self._since_ms = runner.now_ms()
        self._states = NetworkStates(self._state)
        self._take_over = HomeTakeOver(runner.core.options.name, runner.put)
        if networking is not None:
            self._states.link(networking.calls, networking.copies)
            self._take_over.link(networking.calls, networking.copies)
        self._publishing_bytes = 0  # of events by HTTP that are not in the journal yet

    def healthy(self) -> bool:
        """Tell whether no fault of the program's own has been met."""
        kept, joined = self._keeping, self._joined
        faults = self._runner.faults + (kept.promises.faults if kept else 0)
        planning = self._networking.planning if self._networking else None
        failed = planning is not None and bool(planning.failed)
        return not faults + failed + (joined.faults if joined else 0)

    def ready(self) -> Sequence[str]:
        """Return what is still missing, or why intake is held."""
        held = self._keeping.gate.reasons() if self._keeping else ()
        begins = self._networking.broker.incarnation.reason() if self._networking else ""
        held = [*held, begins] if begins else held
        return [*self.missing, *held, *(self._joined.missing() if self._joined else ())]

    def ledger(self) -> MetricsLedger:
        """The core's account, and what the faces add."""
        account: dict[str, Any] = self._core.ledger.to_dict()
        stand_ins = self._networking.stand_ins() if self._networking else {}
        return MetricsLedger(
            **account,
            subscriptions=len(self._core.catalogue),
            suspended=self._core.catalogue.suspended,
            mqtt_clients=self._server.counters()["connections"],
            joins=self._joined.up() if self._joined else {},
            join_messages=self._joined.counts() if self._joined else {},
            log_results=self._keeping.log.counts() if self._keeping else {},
            journal_bytes=self._keeping.sizes() if self._keeping else {},
            disk_bytes=self._keeping.disk() if self._keeping else {},
            certificate_ends=certificate_ends(self._reload.config),
            links=self._networking.links_up() if self._networking else {},
            link_events=self._networking.sent() if self._networking else {},
            link_messages=self._networking.sent_by_kind("messages") if self._networking else {},
            link_bytes=self._networking.sent_by_kind("bytes") if self._networking else {},
            network=dict(self._networking.broker.counts) if self._networking else {},
            waited_for=self._networking.waited_for() if self._networking else {},
            stand_in=stand_ins.get("stand_in", {}),
            stand_in_behind=stand_ins.get("stand_in_behind", {}),
            stands_in_for=stand_ins.get("stands_in_for", {}),
            limits_broken=self._networking.limits_broken() if self._networking else {},
            capacity=self._networking.capacity() if self._networking else {},
            intake_held=int(self._keeping.gate.is_shut) if self._keeping else 0,
            clock_jumps=self._runner.clock.status()["jumps"],
            clock_gap_s=self._runner.clock.status()["gap_ms"] / 1000,
            clock_ahead_s=self._runner.clock.status()["ahead_ms"] / 1000,
            detection_s=self.latency_s,
            journal_s=self._keeping.journal.wait_s if self._keeping else Histogram(),
            lag_s=self._networking.lag_s(self._time_of_day_ms()) if self._networking else {},
        )

    def _time_of_day_ms(self) -> int:
        return self._runner.now_ms() + self._runner.clock.ahead_ms

    def subscriptions(self, user: str | None) -> Sequence[Mapping[str, Any]]:
        """In the order of their installation."""
        return self._requests.visible(Principal(user))

    def status(self) -> Mapping[str, Any]:
        """Return what a person wants to know."""
        core = self._core
        return {
            "broker": core.options.name,
            "version": version("headwater"),
            "process": usage(),
            "state": "starting" if self.missing else "ready",
            "healthy": self.healthy(),
            "since": self._since_ms,
            "now": self._runner.now_ms(),
            "time_of_day": self._time_of_day_ms(),
            "detection_s": _quantiles(self.latency_s),
            "events": core.ledger.to_dict(),
            "tasks": {
                "subscriptions": len(core.catalogue),
                "definitions": len(core.catalogue.definitions),
                "shared_definitions": core.catalogue.shared,
                "suspended": core.catalogue.suspended,
                "held": core.held(),
                "dropped": core.dropped(),
            },
            "repeat_memory": core.remembered,
            "clock": self._runner.clock.status(),
            "certificates": certificate_ends(self._reload.config),
            "mqtt": self._server.counters(),
            "http_followers": len(self._fan),
            "joins": self._joined.status() if self._joined else {},
            "journal": self._keeping.counters() if self._keeping else None,
            "functions": self.functions.status(),
            "network": self._networking.status() if self._networking else None,
        }

    async def network_status(self) -> Mapping[str, Any]:
        """Return in short how all brokers are that can be reached, and who cannot."""
        return await self._states.listing()

    def _state(self) -> BrokerState:
        core = self._core
        return BrokerState(
            core.options.name,
            version("headwater"),
            list(self.ready()),
            self._since_ms,
            self._runner.now_ms(),
            len(core.catalogue),
            core.catalogue.suspended,
            core.held(),
            core.ledger.events.received,
            int(usage().get("memory_bytes", 0)) or None,
            self._networking.stand_in_state() if self._networking else None,
        )

    async def publish(
        self, parts: Sequence[EventPart], user: str | None
    ) -> tuple[int, RequestReply]:
        """Publish events as MQTT does, all or, where one may not be published, none."""
        asker, rights = Principal(user), self._rights
        refused = [
            _placed(part, f"`{user}` may not publish to `{topic}`; see `publish` in docs/rights.md")
            for part in parts
            if not rights.judge.may_publish(
                asker, topic := f"{rights.prefix}/{topics.events(part.type_name, part.source)}"
            )
        ]
        if refused:
            return 403, {"ok": False, "accepted": 0, "errors": refused[:ERRORS_MAX]}
        size_bytes = sum(len(part.data) for part in parts)
        if self._publishing_bytes and self._publishing_bytes + size_bytes > PUBLISHING_BYTES_MAX:
            message = "too many events wait for the journal already; publish them again later"
            return 503, {"ok": False, "accepted": 0, "errors": [{"message": message}]}
        answers = [_answer() for _ in parts]
        payloads = tuple(
            Payload(part.type_name, part.source, part.data, answer, explain=True)
            for part, answer in zip(parts, answers, strict=True)
        )
        self._publishing_bytes += size_bytes
        try:
            self._runner.put(EventsReceived(payloads))
            async with asyncio.timeout(PUBLISH_WAIT_S):
                outcomes = await asyncio.gather(*answers)
        except TimeoutError:
            message = "the journal does not have all of them yet; publish them again, ids included"
            return 503, {"ok": False, "accepted": 0, "errors": [{"message": message}]}
        finally:
            self._publishing_bytes -= size_bytes
        refused = [
            _placed(part, outcome) for part, outcome in zip(parts, outcomes, strict=True) if outcome
        ]
        accepted = len(parts) - len(refused)
        if not refused:
            return 200, {"ok": True, "accepted": accepted}
        return 422, {"ok": False, "accepted": accepted, "errors": refused[:ERRORS_MAX]}

    async def submit(self, text: str, client: str, user: str | None) -> RequestReply:
        """Check a specification and install all of it or nothing."""
        future = _future()
        request = SpecificationSubmitted(client, "http", text, future, proven=user is not None)
        return await self._asked(request, future, user)

    async def preview(self, text: str, client: str, user: str | None) -> RequestReply:
        """Tell what `submit` would change, or why it would refuse."""
        future = _future()
        request = SpecificationSubmitted(client, "http", text, future, proven=user is not None)
        return await self._asked(PreviewRequested(request), future, user)

    async def network_subscriptions(self, user: str | None) -> Mapping[str, Any]:
        """Return those of all brokers that can be reached, and who could not."""
        return await self._requests.network.listing(self._rights.judge, Principal(user))

    async def end(
        self, name: str, client: str, user: str | None, done: Done, *, home: str
    ) -> RequestReply:
        """End or resume a subscription at a home, or wherever that is."""
        future = _future()
        request = EndRequested(client, "http", name, future, done=done, home=home)
        return await self._asked(request, future, user)

    async def cancel(self, name: str, client: str, user: str | None) -> RequestReply:
        """End a subscription."""
        future = _future()
        request = CancelRequested(client, "http", name, future, proven=user is not None)
        return await self._asked(request, future, user)

    async def resume(self, name: str, client: str, user: str | None) -> RequestReply:
        """Begin a suspended subscription anew."""
        future = _future()
        request = ResumeRequested(client, "http", name, future, proven=user is not None)
        return await self._asked(request, future, user)

    def forget(self, broker: str) -> bool:
        """Have nobody wait for another broker any more."""
        return self._networking is not None and self._networking.forget(broker)

    async def take_over(self, home: str, client: str, *, is_forced: bool) -> RequestReply:
        """Take over a home of which this broker has a copy."""
        reply = await self._take_over.take_over(home, client, is_forced=is_forced)
        return cast("RequestReply", reply)

    def network(self) -> Mapping[str, Any] | None:
        """Return the network as this broker sees it; None where it has no links."""
        if self._networking is None:
            return None
        return self._networking.view(self._time_of_day_ms())

    def plan(self) -> Mapping[str, Any] | None:
        """Return where tasks run, and why; None without a coordinator."""
        planning = self._networking.planning if self._networking is not None else None
        return None if planning is None else planning.plan()

    def drain(self, *, drained: bool) -> bool:
        """Have all tasks go elsewhere, or let them come again."""
        return self._networking is not None and self._networking.drain(drained=drained)

    async def reload(self) -> Mapping[str, Any]:
        """Take up rights, certificates and secrets as their files say now."""
        try:
            return await self._reload()
        except ReloadError as error:
            return {"ok": False, "errors": [{"message": fault} for fault in error.args]}

    @cached_property
    def _desk(self) -> "Desk":
        from broker.admission.desk import Desk  # few brokers are ever asked to admit others

        links = self._networking
        return Desk(
            self._reload.config,
            lambda: links.port if links is not None else 0,
            lambda: links.broker.topology.known if links is not None else (),
        )

    async def invite(self, address: str, *, trusted: bool) -> tuple[int, Mapping[str, Any]]:
        """Make a code by which a broker may join."""
        return await self._desk.invite(address, trusted=trusted)

    async def join(self, body: bytes) -> tuple[int, Mapping[str, Any]]:
        """Answer a broker that comes with a code."""
        return await self._desk.join(body)

    def backup(self) -> AsyncGenerator[bytes, None] | None:
        """A copy of what is kept on disk; None where nothing is."""
        return None if self._keeping is None else self._keeping.backup.stream()

    def follow(self, subscription: str | None, user: str | None) -> Follower:
        """The results from now on. Raises FollowersFullError."""
        asker, rights = Principal(user), self._rights

        def may_see(subscriber: str, name: str) -> bool:
            # Asked for each result, as the rights may be read again while it follows.
            topic = f"{rights.prefix}/{topics.result(subscriber, name)}"
            return rights.judge.may_receive(asker, topic)

        return self._fan.follow(subscription, may_see)

    async def _asked(
        self, request: Request, future: "asyncio.Future[bytes]", user: str | None
    ) -> RequestReply:
        self._requests.put(request, Principal(user))
        return msgspec.json.decode(await future, type=dict[str, Any])  # type: ignore[return-value]


def _quantiles(histogram: Histogram) -> dict[str, float | None]:
    """Return what half of the values, and 99 of 100, do not exceed; None: none, or beyond all."""
    shares = {"p50": histogram.quantile(0.5), "p99": histogram.quantile(0.99)}
    return {name: None if value == inf else value for name, value in shares.items()}


def _future() -> "asyncio.Future[bytes]":
    return asyncio.get_running_loop().create_future()


def _answer() -> "asyncio.Future[str]":
    return asyncio.get_running_loop().create_future()


def _placed(part: EventPart, message: str) -> DiagnosticReply:
    """Return an error with the place of its event in the body."""
    if part.unit == "line":
        return {"message": message, "line": part.number}
    return {"message": message, "event": part.number}
