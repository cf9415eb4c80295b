"""The demonstration from the broker's start to the summary.

Owns the course of things and what counts as success. Must not know how anything is done. Invariant:
whatever ends it, the broker is ended too.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any

import aiomqtt

from headwater.cli import mqtt_client
from headwater.cli.frame import UNREACHABLE
from headwater.cli.output import CommandError
from headwater.cli.reach import Broker
from headwater.demo import summary
from headwater.demo.material import Material, Reading, Recording, Step, steps
from headwater.demo.moments import Moments, windows_ms
from headwater.demo.play import IN_FLIGHT_MAX, PREFIX, play
from headwater.demo.process import HOST, BrokerFailedError, RunningBroker, running_broker
from headwater.demo.screen import Screen
from headwater.demo.tally import Tally

ANSWER_S_MAX = 30.0  # a broker that takes longer over one message has stopped working
QUIET_S_MAX = 10.0  # after everything was sent: how long the next result may take
SURPLUS_S = 0.3  # after the last result that is expected: whether more come
CHECKED_EVERY_S = 0.02

_SAMPLE = re.compile(r'^(\w+?)(?:_total)?(?:\{reason="([^"]*)"\})? (\S+)$', re.MULTILINE)

# What the MQTT client logs when a connection breaks is raised too, and told in a sentence.
_UNHEARD = logging.getLogger("headwater.demo.mqtt")
_UNHEARD.addHandler(logging.NullHandler())
_UNHEARD.propagate = False


async def show(material: Material, screen: Screen, rate: float) -> int:
    """Runs it all; 0 if everything came that had to.

    `rate` is in readings a second. Raises BrokerFailedError, CommandError.
    """
    began_s = time.perf_counter()
    asyncio.get_running_loop().set_exception_handler(_hear_of)
    screen.say("starting a broker")
    async with running_broker() as broker:
        ready_s = time.perf_counter() - began_s
        screen.say(f"ready after {ready_s:.1f} s: mqtt://{HOST}:{broker.mqtt_port}")
        course = _Course(material, screen, broker)
        try:
            played_s = await course.run(rate)
        except (aiomqtt.MqttError, OSError) as error:
            raise await _lost(broker, str(error)) from None
        except CommandError as error:
            if error.status == UNREACHABLE:
                raise await _lost(broker, str(error)) from None
            raise
        finally:
            screen.end_progress()
        account = await course.account()
    tally = course.tally
    _judge(material, tally, account)
    figures = summary.figures(material, tally, account, played_s, began_s)
    screen.summary(figures, summary.lines(figures, screen.left_out))
    for complaint in tally.complaints:
        screen.complain(complaint)
    return 1 if tally.complaints else 0


class _Course:
    """One run against one broker: the subscriber on one connection, the stations on another."""

    def __init__(self, material: Material, screen: Screen, broker: RunningBroker) -> None:
        self._material = material
        self._screen = screen
        self._broker = broker
        self._moments = Moments(windows_ms(material.specification))
        self.tally = Tally(material.expected, self._moments)
        self._playing: Recording | None = None
        self._done = 0
        self._began_s = 0.0

    async def run(self, rate: float) -> float:
        """Listens and plays until all results are there; how long playing took, in seconds."""
        async with self._client("results") as client:
            for topic in (f"{PREFIX}/results/#", f"{PREFIX}/late/#", f"{PREFIX}/rejected"):
                await client.subscribe(topic, qos=1)
            listening = asyncio.create_task(self._listen(client))
            playing = asyncio.create_task(self._submit_and_play(rate))
            try:
                # listening ends by an error alone
                await asyncio.wait({listening, playing}, return_when=asyncio.FIRST_COMPLETED)
                if listening.done():
                    listening.result()
                return playing.result()
            finally:
                listening.cancel()
                playing.cancel()
                await asyncio.gather(listening, playing, return_exceptions=True)

    async def account(self) -> dict[str, int]:
        """The broker's own counts of events: received, filtered, …, and dropped by reason."""
        try:
            _, text = await self._broker.get("/metrics")
        except OSError as error:
            self.tally.complain(f"the broker does not tell its counts: {error}")
            return {}
        account: dict[str, int] = {}
        for name, reason, value in _SAMPLE.findall(text):
            if name.startswith("headwater_events_"):
                key = name.removeprefix("headwater_events_")
                account[f"{key} {reason}" if reason else key] = int(float(value))
        return account

    def _client(self, name: str) -> aiomqtt.Client:
        client = aiomqtt.Client(
            HOST,
            self._broker.mqtt_port,
            identifier=f"demo-{name}",
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
                told = payload[:200].decode(errors="replace")
                self.tally.complain(f"{message.topic}: {told}")

    async def _submit_and_play(self, rate: float) -> float:
        await self._submit()
        self._began_s = time.perf_counter()
        async with self._client("stations") as client:
            await play(client, steps(self._material.recordings), self._moments, rate, self._note)
        played_s = time.perf_counter() - self._began_s
        await self._last_results()
        return played_s

    async def _submit(self) -> None:
        to = Broker("mqtt", HOST, self._broker.mqtt_port, "", None, None, "demo", ANSWER_S_MAX)
        reply = await mqtt_client.ask(to, "submit", self._material.text)
        if not reply.get("ok"):
            told = [str(error.get("message")) for error in reply.get("errors", [])]
            raise CommandError(1, "the broker refused the specification", *told)
        names = ", ".join(reply.get("subscriptions", []))
        self._screen.say(f"submitted weather.hw over MQTT; subscriptions: {names}")

    def _note(self, recording: Recording, step: Step) -> None:
        if not isinstance(step, Reading):
            return
        if recording is not self._playing:
            self._playing = recording
            count = f"{len(recording.stations)} stations, {len(recording.readings):,} readings"
            self._screen.say(f"{recording.title}: {count}")
        self._done += 1
        at = datetime.fromtimestamp(step.time_ms // 1000, UTC)
        speed = self._done / max(time.perf_counter() - self._began_s, 0.001)
        words = f"{at:%Y-%m-%d %H:%M} UTC  {speed:,.0f} events/s  {self.tally.total} results"
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


async def _lost(broker: RunningBroker, reason: str) -> BrokerFailedError:
    await asyncio.sleep(0.1)  # a process that has just died is told of a moment later
    if broker.process.returncode is None:
        what = f"the connection to the broker is lost: {reason}"
    else:
        what = "the broker ended before its time"
    return BrokerFailedError(f"{what}; what it said last: {broker.last_words()}")


def _judge(material: Material, tally: Tally, account: dict[str, int]) -> None:
    tally.judge()
    received = account.get("received", 0)
    if received < material.readings_count:
        tally.complain(f"{material.readings_count} readings were sent, {received} have come in")
    for key, count in account.items():
        if key.startswith("dropped") and count:
            tally.complain(f"{count} events were dropped: {key.removeprefix('dropped ')}")
