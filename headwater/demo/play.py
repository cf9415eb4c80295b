"""The stations' side: steps published over MQTT at an even pace.

Owns pace and order. Must not know what is detected. Invariant: everything goes out in the order of
the steps, on one connection to each broker, at QoS 1, and no more than a bounded number waits to be
acknowledged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import aiomqtt
import msgspec

from headwater.demo.material import (
    NetworkSettled,
    RecordedReading,
    Sent,
    Station,
    StationAdvertised,
    StationRecording,
    StationWithdrawn,
    Step,
)
from headwater.demo.moments import ResultMoments

IN_FLIGHT_MAX = 64  # unacknowledged messages; more would hide a slow broker in a queue of ours
BEHIND_S_MAX = 0.1  # what a slow broker made us late is not made up for in a burst
TICK_S = 0.002
PREFIX = "headwater"


class Pace:
    """Spaces steps evenly, as the machine allows."""

    def __init__(self, rate: float) -> None:
        """`rate` is in steps a second."""
        self._step_s = 1 / rate
        self._due_s = time.perf_counter()

    async def turn(self) -> None:
        """Return when the next step is due."""
        ahead_s = self._due_s - time.perf_counter()
        if ahead_s > TICK_S:
            await asyncio.sleep(ahead_s)
        elif ahead_s < -BEHIND_S_MAX:
            self._due_s = time.perf_counter()
        self._due_s += self._step_s


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """Access to brokers: `to` returns the connection of a station; `settled` returns when all
    brokers know the stations that have come.
    """

    to: Callable[[Station], aiomqtt.Client]
    settled: Callable[[], Awaitable[None]]


async def play(
    ways: BrokerAccess,
    steps: Iterable[tuple[StationRecording, Step]],
    moments: ResultMoments,
    rate: float,
    note: Callable[[StationRecording, Step], None],
) -> None:
    """Publish every step; `note` hears of each as it goes out. Raises aiomqtt.MqttError."""
    room = asyncio.Semaphore(IN_FLIGHT_MAX)
    pace = Pace(rate)

    async def send(recording: StationRecording, step: Sent) -> None:
        try:
            note(recording, step)
            # what is published here goes to the socket before the first await inside
            await _publish(ways.to(_station(recording, step)), step, moments)
        finally:
            room.release()

    going = iter(steps)
    more = True
    while more:
        more = False
        try:
            async with asyncio.TaskGroup() as sending:
                for recording, step in going:
                    if isinstance(step, NetworkSettled):
                        more = True  # once all is acknowledged
                        break
                    await pace.turn()
                    await room.acquire()
                    sending.create_task(send(recording, step))
        except* aiomqtt.MqttError as errors:
            raise errors.exceptions[0] from None
        if more:
            await ways.settled()


def _station(recording: StationRecording, step: Sent) -> Station:
    return recording.stations[step.source] if isinstance(step, RecordedReading) else step.station


async def _publish(client: aiomqtt.Client, step: Sent, moments: ResultMoments) -> None:
    now_s = time.perf_counter()
    if isinstance(step, RecordedReading):
        moments.published(step.source, step.id, step.time_ms, now_s)
        await client.publish(f"{PREFIX}/events/{step.type}/{step.source}", step.payload, qos=1)
        return
    topic = f"{PREFIX}/sources/{step.station.name}"
    if isinstance(step, StationAdvertised):
        moments.advertised(step.station.name)
        await client.publish(topic, _advertisement(step.station), qos=1, retain=True)
    elif isinstance(step, StationWithdrawn):
        moments.withdrawn(step.station.name, now_s)
        await client.publish(topic, b"", qos=1, retain=True)


def _advertisement(station: Station) -> bytes:
    place = {} if station.position is None else {"position": station.position}
    fields = {"source": station.name, "types": station.types, "location": station.location, **place}
    return msgspec.json.encode(fields)
