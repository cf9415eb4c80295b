"""Events of a program on their way to a broker: MQTT 5 at QoS 1, until all are acknowledged.

Owns the connection, through aiomqtt, and what is not acknowledged yet. Must not know where events
come from. Invariant: an event that was handed over is acknowledged, counted as refused, or named in
an error.
"""

from __future__ import annotations

import asyncio
import math
import random
import ssl
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import aiomqtt

from broker.core import topics
from headwater.cli.mqtt_client import DEFAULT_PREFIX, why
from headwater.cli.reach import EXIT_UNREACHABLE, BrokerAddress
from headwater.connection import PACKET_BYTES_MAX, client_of, hang_up, hush
from headwater.payloads import batches, encoded
from headwater.remote import ClientError

INFLIGHT_MAX = 100  # on their way to the broker at a time; it takes 500 of a client
WAITING_MAX = 10_000  # messages that are not sent; then who publishes has to wait
RECONNECT_S = (1.0, 30.0)  # a lost broker is dialled anew after the one, at last after the other
CLOSE_S = 2.0  # for the farewell; an attempt to connect cannot be broken off and ends by itself
FRAME_BYTES = 10  # of a packet, at most, beside its topic and its payload

_Message = tuple[str, bytes, bool]  # topic, payload, whether it is retained


class _OverError(Exception):
    """The publisher was closed."""


class Publisher:
    """A connection that comes back by itself; what was not acknowledged is sent again then.

    `refused` counts messages of which the broker took nothing; `headwater/rejected` tells why.
    """

    def __init__(
        self, broker: BrokerAddress, client_id: str, patience_s: float | None = None
    ) -> None:
        """`patience_s`: how long to wait for room among the messages that wait; None: for ever."""
        self.refused = 0
        self._patience_s = patience_s
        self._broker = broker
        self._client_id = client_id
        self._prefix = broker.path or DEFAULT_PREFIX
        self._tls = ssl.create_default_context() if broker.encrypted else None
        # Guards what the threads share, which is all up to `_wrong`.
        self._changed = threading.Condition()
        self._waiting: deque[_Message] = deque()
        self._sent: dict[int, _Message] = {}  # given to the connection and not acknowledged
        self._opened = self._ended = False
        self._wrong: Exception | None = None  # why there was no connection to begin with
        self._numbers = count()
        self._inflight_max, self._packet_bytes_max = INFLIGHT_MAX, PACKET_BYTES_MAX
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._more = asyncio.Event()  # there may be something to send
        self._closing = asyncio.Event()

    def open(self) -> None:
        """Connect. Raises ClientError where the broker cannot be reached or refuses."""
        runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = runner.get_loop()
        self._thread = threading.Thread(target=self._run, args=(runner,), daemon=True)
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._opened or self._ended, self._broker.timeout_s)
            if self._opened:
                return
            wrong = self._wrong or TimeoutError("no answer in time")
        self.close()
        error = why(self._broker, wrong)
        raise ClientError(str(error), reached=error.status != EXIT_UNREACHABLE)

    def advertise(self, source: str, stated: Mapping[str, Any] | None) -> None:
        """State what a source sends, or with None withdraw it."""
        data = b"" if stated is None else encoded(dict(stated))
        self._publish(f"{self._prefix}/{topics.source(source)}", data, retain=True)

    def send(self, event_type: str, source: str, events: list[dict[str, Any]]) -> None:
        """Publish events of one type and source; waits where too many wait already."""
        if not event_type or not source:
            raise ClientError("an event that is published needs a type and a source")
        topic = f"{self._prefix}/{topics.events(event_type, source)}"
        for data in batches([encoded(event) for event in events]):
            self._publish(topic, data, retain=False)

    def wait(self, timeout_s: float | None = None) -> None:
        """Until all is acknowledged. Raises ClientError where it is not in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._left(), timeout_s)
            if left := self._left():
                raise ClientError(f"{left} messages were not acknowledged in time")

    def close(self) -> None:
        """End the connection; what is not acknowledged is given up."""
        self._end()
        if self._thread is not None:
            self._set(self._closing)
            self._set(self._more)
            self._thread.join(CLOSE_S)

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _left(self) -> int:
        return len(self._waiting) + len(self._sent)

    def _publish(self, topic: str, data: bytes, *, retain: bool) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or len(self._waiting) < WAITING_MAX, self._patience_s
            )
            if self._ended:
                raise ClientError(f"the connection to {self._broker.url} is closed")
            if len(self._waiting) >= WAITING_MAX:
                raise ClientError(f"{WAITING_MAX} messages wait for {self._broker.url}")
            self._waiting.append((topic, data, retain))
        self._set(self._more)

    def _set(self, event: asyncio.Event) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(event.set)

    # --- what the connection's thread does ----------------------------------------------------

    def _run(self, runner: asyncio.Runner) -> None:
        try:
            with runner:
                runner.run(self._keep_connected())
        finally:
            self._end()

    async def _keep_connected(self) -> None:
        hush(asyncio.get_running_loop())
        delay_s, last_s = RECONNECT_S
        while not self._closing.is_set():
            error = await self._connection()
            if error is not None and not self._opened:
                self._wrong = error
                return
            delay_s = RECONNECT_S[0] if error is None else min(2 * delay_s, last_s / 2)
            # At random, for many that have lost one broker shall not come back in one moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s * random.uniform(1, 2)):
                    await self._closing.wait()

    async def _connection(self) -> Exception | None:
        """One connection until its end; why there was none."""
        client = client_of(self._broker, self._client_id, self._tls, self._granted, self._refuse)
        try:
            async with client:
                with self._changed:
                    self._opened = True
                    self._changed.notify_all()
                await self._send_all(client)
        except (aiomqtt.MqttError, ValueError) as error:
            return error
        finally:
            hang_up(client)
            with self._changed:
                # Before what was not sent yet: else the broker would find it late.
                self._waiting.extendleft(reversed(self._sent.values()))
                self._sent.clear()
        return None

    async def _send_all(self, client: aiomqtt.Client) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._lost(client))
                while not self._closing.is_set():
                    # Tasks begin in the order of their creation, which keeps that of the messages.
                    for number, message in self._next().items():
                        group.create_task(self._deliver(client, number, message))
                    await self._more.wait()
                    self._more.clear()
                raise _OverError
        except* (aiomqtt.MqttError, _OverError):
            pass  # what comes next is the caller's

    async def _lost(self, client: aiomqtt.Client) -> None:
        """Wait for the end of the connection, which is an MqttError."""
        async for _ in client.messages:
            pass  # nothing is subscribed

    def _next(self) -> dict[int, _Message]:
        with self._changed:
            room = self._inflight_max - len(self._sent)
            taken = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            numbered = {next(self._numbers): message for message in taken}
            self._sent |= numbered
            self._changed.notify_all()
        return numbered

    async def _deliver(self, client: aiomqtt.Client, number: int, message: _Message) -> None:
        topic, data, retain = message
        try:
            if len(topic.encode()) + len(data) + FRAME_BYTES > self._packet_bytes_max:
                raise ValueError("the broker would end the connection")
            await client.publish(topic, data, qos=1, retain=retain, timeout=math.inf)
        except ValueError:  # longer than a packet may be
            self._refuse()
        with self._changed:
            del self._sent[number]
            self._changed.notify_all()
        self._more.set()

    def _granted(self, inflight_max: int, packet_bytes_max: int) -> None:
        self._inflight_max = min(inflight_max, INFLIGHT_MAX)
        self._packet_bytes_max = packet_bytes_max

    def _refuse(self) -> None:
        self.refused += 1
