"""The demonstration from the brokers' start to the summary.

Owns the course of things and what counts as success. Must not know how anything is done. Invariant:
whatever ends it, the brokers are ended too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiomqtt
import msgspec

from broker.engine.ingest.reasons import UNDECLARED_TYPE
from headwater.cli import mqtt_client
from headwater.cli.frame import UNREACHABLE
from headwater.cli.output import CommandError
from headwater.cli.reach import BrokerAddress
from headwater.demo import layout, summary
from headwater.demo.material import (
    DemoMaterial,
    RecordedReading,
    Station,
    StationAdvertised,
    StationRecording,
    StationWithdrawn,
    Step,
    steps,
)
from headwater.demo.moments import ResultMoments, windows_ms
from headwater.demo.play import IN_FLIGHT_MAX, PREFIX, BrokerAccess, play
from headwater.demo.process import HOST, BrokerFailedError, RunningBroker, running_network
from headwater.demo.screen import Screen
from headwater.demo.tally import ResultTally

ANSWER_S_MAX = 30.0  # a broker that takes longer over one message has stopped working
QUIET_S_MAX = 10.0  # after everything was sent: how long the next result may take
SURPLUS_S = 0.3  # after the last result that is expected: whether more come
CHECKED_EVERY_S = 0.02

SETTLED_S_MAX = 30.0  # how long news may take to all brokers

_SAMPLE = re.compile(r'^(\w+?)(?:_total)?(?:\{(?:reason|peer)="([^"]*)"\})? (\S+)$', re.MULTILINE)

# What the MQTT client logs when a connection breaks is raised too, and told in a sentence.
_UNHEARD = logging.getLogger("headwater.demo.mqtt")
_UNHEARD.addHandler(logging.NullHandler())
_UNHEARD.propagate = False


async def show(material: DemoMaterial, screen: Screen, rate: float) -> int:
    """Runs it all; 0 if everything came that had to.

    `rate` is in readings a second. Raises BrokerFailedError, CommandError.
    """
    began_s = time.perf_counter()
    asyncio.get_running_loop().set_exception_handler(_hear_of)
    screen.say(f"starting {len(layout.NAMES)} brokers in a tree")
    async with running_network(layout.PARENTS) as brokers:
        ready_s = time.perf_counter() - began_s
        screen.say(f"ready after {ready_s:.1f} s: {', '.join(map(_address, brokers.items()))}")
        course = _Course(material, screen, brokers)
        try:
            played_s = await course.run(rate)
        except (aiomqtt.MqttError, OSError) as error:
            raise await _lost(brokers, str(error)) from None
        except CommandError as error:
            if error.status == UNREACHABLE:
                raise await _lost(brokers, str(error)) from None
            raise
        finally:
            screen.end_progress()
        account = await course.account()
    tally = course.tally
    _judge(material, tally, account)
    figures = summary.figures(material, tally, account, played_s, began_s)
    figures["links"] = [summary.link(link) for link in course.links()]
    screen.summary(figures, summary.lines(figures, screen.left_out))
    for complaint in tally.complaints:
        screen.complain(complaint)
    return 1 if tally.complaints else 0


def _address(named: tuple[str, RunningBroker]) -> str:
    return f"{named[0]} mqtt://{HOST}:{named[1].mqtt_port}"


class _Course:
    """One run against one network: subscribers at their homes, stations at their origins."""

    def __init__(
        self, material: DemoMaterial, screen: Screen, brokers: Mapping[str, RunningBroker]
    ) -> None:
        self._material = material
        self._screen = screen
        self._brokers = brokers
        self._texts = layout.texts_by_home(material.text, material.expected)
        self._moments = ResultMoments(windows_ms(material.specification))
        self.tally = ResultTally(material.expected, self._moments)
        self._playing: StationRecording | None = None
        self._done = 0
        self._began_s = 0.0
        self._there: dict[str, str] = {}  # stations that have come and not gone -> origin
        self._readings: Counter[str] = Counter()  # by origin
        self._sent: dict[tuple[str, str], int] = {}  # events over links, by (from, to)

    async def run(self, rate: float) -> float:
        """Listens and plays until all results are there; how long playing took, in seconds."""
        async with contextlib.AsyncExitStack() as stack:
            listening = []
            for home in self._texts:
                client = await stack.enter_async_context(self._client(home, "results"))
                for topic in (f"{PREFIX}/results/#", f"{PREFIX}/late/#", f"{PREFIX}/rejected"):
                    await client.subscribe(topic, qos=1)
                listening.append(asyncio.create_task(self._listen(client)))
            playing = asyncio.create_task(self._submit_and_play(rate))
            try:
                # listening ends by an error alone
                await asyncio.wait({*listening, playing}, return_when=asyncio.FIRST_COMPLETED)
                for listener in listening:
                    if listener.done():
                        listener.result()
                return playing.result()
            finally:
                for task in (*listening, playing):
                    task.cancel()
                await asyncio.gather(*listening, playing, return_exceptions=True)

    async def account(self) -> dict[str, int]:
        """The brokers' own counts of events: received, filtered, …, and dropped by reason."""
        account: Counter[str] = Counter()
        for broker_name, broker in self._brokers.items():
            try:
                _, text = await broker.get("/metrics")
            except OSError as error:
                self.tally.complain(f"{broker_name} does not tell its counts: {error}")
                continue
            for name, word, value in _SAMPLE.findall(text):
                count = int(float(value))
                if name.startswith("headwater_events_"):
                    key = name.removeprefix("headwater_events_")
                    account[f"{key} {word}" if word else key] += count
                elif name == "headwater_link_events":
                    self._sent[broker_name, word] = count
        return dict(account)

    def links(self) -> list[layout.LinkLoad]:
        """Return what went over each link, after `account`."""
        results: Counter[str] = Counter()
        for name, count in self.tally.counts.items():
            results[layout.home_of(name)] += count
        return layout.links(self._sent, self._readings, results)

    def _client(self, broker: str, name: str) -> aiomqtt.Client:
        client = aiomqtt.Client(
            HOST,
            self._brokers[broker].mqtt_port,
            identifier=f"demo-{name}-{broker}",
            protocol=aiomqtt.ProtocolVersion.V5,
            timeout=ANSWER_S_MAX,
            max_inflight_messages=IN_FLIGHT_MAX,
            logger=_UNHEARD,
        )
        client.pending_calls_threshold = IN_FLIGHT_MAX  # so many are meant, and no warning is due
        return client

    async def _listen(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            now_s = time.perf_counter()
            payload = bytes(message.payload)
            if message.topic.matches(f"{PREFIX}/results/#"):
                result = self.tally.take(payload, now_s)
                if result is not None:
                    self._screen.result(result, now_s)
            else:
                text = payload[:200].decode(errors="replace")
                self.tally.complain(f"{message.topic}: {text}")

    async def _submit_and_play(self, rate: float) -> float:
        for home, text in self._texts.items():
            await self._submit(home, text)
        self._began_s = time.perf_counter()
        async with contextlib.AsyncExitStack() as stack:
            clients = {
                name: await stack.enter_async_context(self._client(name, "stations"))
                for name in self._origins()
            }

            def to(station: Station) -> aiomqtt.Client:
                return clients[layout.origin_of(station.location)]

            ways = BrokerAccess(to, self._settled)
            await play(ways, steps(self._material.recordings), self._moments, rate, self._note)
        played_s = time.perf_counter() - self._began_s
        await self._last_results()
        return played_s

    def _origins(self) -> list[str]:
        """The brokers to which stations send."""
        stations = [
            station
            for recording in self._material.recordings
            for station in recording.stations.values()
        ]
        return sorted({layout.origin_of(station.location) for station in stations})

    async def _submit(self, home: str, text: str) -> None:
        port = self._brokers[home].mqtt_port
        to = BrokerAddress("mqtt", HOST, port, "", None, None, "demo", ANSWER_S_MAX)
        reply = await mqtt_client.ask(to, "submit", text)
        if not reply.get("ok"):
            messages = [str(error.get("message")) for error in reply.get("errors", [])]
            raise CommandError(1, f"{home} refused the specification", *messages)
        names = ", ".join(reply.get("subscriptions", []))
        self._screen.say(f"submitted at {home} over MQTT: {names}")

    async def _settled(self) -> None:
        """Return when every home has asked all brokers at which there are stations."""
        origins = set(self._there.values())
        deadline_s = time.perf_counter() + SETTLED_S_MAX
        for home in self._texts:
            while not await self._has_asked(home, origins - {home}):
                if time.perf_counter() > deadline_s:
                    raise CommandError(1, f"{home} does not hear of all stations")
                await asyncio.sleep(CHECKED_EVERY_S)

    async def _has_asked(self, home: str, origins: set[str]) -> bool:
        _, text = await self._brokers[home].get("/v1/status")
        network = msgspec.json.decode(text)["network"]
        known_origins = network["origins"]
        return not network["inactive"] and all(
            name in known_origins and known_origins[name]["answered"] for name in origins
        )

    def _note(self, recording: StationRecording, step: Step) -> None:
        if isinstance(step, StationAdvertised):
            self._there[step.station.name] = layout.origin_of(step.station.location)
        elif isinstance(step, StationWithdrawn):
            del self._there[step.station.name]
        if not isinstance(step, RecordedReading):
            return
        self._readings[layout.origin_of(recording.stations[step.source].location)] += 1
        if recording is not self._playing:
            self._playing = recording
            count = f"{len(recording.stations)} stations, {len(recording.readings):,} readings"
            self._screen.say(f"{recording.title}: {count}")
        self._done += 1
        moment = datetime.fromtimestamp(step.time_ms // 1000, UTC)
        speed = self._done / max(time.perf_counter() - self._began_s, 0.001)
        words = f"{moment:%Y-%m-%d %H:%M} UTC  {speed:,.0f} events/s  {self.tally.total} results"
        self._screen.progress(self._done, self._material.readings_count, words)

    async def _last_results(self) -> None:
        quiet_since_s = time.perf_counter()
        while not self.tally.complete:
            if time.perf_counter() - max(quiet_since_s, self.tally.last_s) > QUIET_S_MAX:
                return
            await asyncio.sleep(CHECKED_EVERY_S)
        await asyncio.sleep(SURPLUS_S)


def _hear_of(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The MQTT client trips over a connection that has just gone, and raises that as well."""
    if not isinstance(context.get("exception"), OSError | aiomqtt.MqttError):
        loop.default_exception_handler(context)


async def _lost(brokers: Mapping[str, RunningBroker], reason: str) -> BrokerFailedError:
    await asyncio.sleep(0.1)  # a process that has just died is told of a moment later
    for name, broker in brokers.items():
        if broker.process.returncode is not None:
            what = f"the broker {name} ended before its time"
            return BrokerFailedError(f"{what}; what it said last: {broker.last_words()}")
    last_words = next(iter(brokers.values())).last_words()
    return BrokerFailedError(
        f"the connection to a broker is lost: {reason}; what the first said last: {last_words}"
    )


def _judge(material: DemoMaterial, tally: ResultTally, account: dict[str, int]) -> None:
    tally.judge()
    received = account.get("received", 0)
    if received < material.readings_count:
        tally.complain(f"{material.readings_count} readings were sent, {received} have come in")
    for key, count in account.items():
        reason = key.removeprefix("dropped ")
        # Where nobody asks for a type, a broker does not even know it.
        if key != reason and count and reason != UNDECLARED_TYPE:
            tally.complain(f"{count} events were dropped: {reason}")
