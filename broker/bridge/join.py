"""One server that is joined: connected, held on to, connected again.

Owns the life of the connection, what is subscribed, and what goes in and out of it. Must not know
what messages mean: they are handed to `JoinReceiver`. Invariant: a message at QoS 1 is acknowledged
to the server only after `taken`; one for the server is kept until the server has acknowledged it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from broker.bridge.backoff import Backoff
from broker.bridge.connection import ConnectionTerms, JoinedConnection, connected
from broker.bridge.inbound import InboundMessages
from broker.bridge.messages import Arrived, JoinError, JoinToken, OutgoingMessage
from broker.bridge.outbound import OutboundMessages

DRAIN_S = 2.0  # at the end the server has so long to take what waits
AGAIN_SHARE = 2  # once 1 / this of what may be under way has failed, it is fetched again

logger = logging.getLogger(__name__)


class JoinReceiver(Protocol):
    """Take what comes."""

    def on_arrived(self, messages: list[tuple[Arrived, JoinToken | None]]) -> None:
        """Take messages, in order; the token of one at QoS 0 is None. Must not block."""


class LogTeller(Protocol):
    """Write log lines."""

    def __call__(self, level: str, event: str, /, **fields: object) -> None:
        """A line."""


class Join:
    """Keep a connection to one joined server.

    `run` is its task; the other methods belong to the loop's thread.
    """

    def __init__(
        self,
        name: str,
        terms: ConnectionTerms,
        filters: Sequence[str],
        backoff: Backoff,
        tell: LogTeller,
    ) -> None:
        settings = terms.settings
        self.name = name
        self.receiver: JoinReceiver
        self.on_room: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None  # until it is connected again
        self.connected_since_s: float | None = None
        self.why = "not connected yet"
        self.faults = 0
        self._terms = terms
        self._filters = tuple(filters)
        self._backoff = backoff
        self._tell = tell
        self._inbound = InboundMessages(self, settings.pending_bytes_max)
        self._outbound = OutboundMessages(settings.queue_messages_max, settings.queue_bytes_max)
        self._connection: JoinedConnection | None = None
        self._held = False
        self._retained: dict[str, OutgoingMessage] = {}
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._much_failed = asyncio.Event()
        self._ending = asyncio.Event()
        self._told = ""
        self._granted_s: int | None = None
        self._overflowed = False
        self._counts = dict.fromkeys(COUNTED, 0)

    # --- what others ask -----------------------------------------------------------------

    @property
    def up(self) -> bool:
        """Tell whether the server is connected and subscribed."""
        return self.connected_since_s is not None

    @property
    def address(self) -> str:
        """Return where the server is, without any secret."""
        settings = self._terms.settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{'mqtts' if settings.tls else 'mqtt'}://{host}:{settings.port}"

    @property
    def missing(self) -> str | None:
        """Return what is not up, in words."""
        return None if self.up else f"the MQTT server {self.name} at {self.address}: {self.why}"

    def counted(self) -> dict[str, int]:
        """Return what was counted since the start, see docs/joining.md."""
        counts = {**self._counts, "dropped": self._outbound.dropped}
        if self._connection is not None:
            counts["refused_there"] += sum(self._connection.not_taken.values())
        return counts

    def counts(self) -> dict[str, int]:
        """The same, and what waits now."""
        now = {"waiting": len(self._outbound), "unacknowledged": len(self._inbound)}
        return {**self.counted(), **now}

    def status(self) -> dict[str, Any]:
        """For people and programs that look."""
        state = {"state": "connected"} if self.up else {"state": "lost", "reason": self.why}
        return {"address": self.address, **state, **self.counts()}

    # --- out -----------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """For how many messages of the outbox there is room."""
        return self._outbound.room

    def oldest_offset(self) -> int | None:
        """The least offset of what the server has not acknowledged yet."""
        return self._outbound.oldest_offset()

    def publish(self, message: OutgoingMessage) -> None:
        """Have the server take a message, now or when it is back."""
        if message.retain:
            # Our will overwrites it whenever the connection is lost, so it is said after each.
            self._retained[message.topic] = message
            if not self.up:
                return
        dropped = self._outbound.put(message)
        if dropped and not self._overflowed:
            self._overflowed = True
            waiting = len(self._outbound)
            self._tell("error", "join_overflow", join=self.name, waiting=waiting, reason=self.why)
        self._more.set()

    async def _send(self, connection: JoinedConnection) -> None:
        """Send what waits, as much at once as may be under way."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._more.clear()
                for task in [task for task in tasks if task.done()]:
                    tasks.discard(task)
                    task.result()
                while len(tasks) < connection.inflight_max:
                    taken = self._outbound.take()
                    if taken is None:
                        break
                    task = asyncio.create_task(self._send_one(connection, *taken))
                    tasks.add(task)
                    task.add_done_callback(lambda _task: self._more.set())
                await self._more.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_one(
        self, connection: JoinedConnection, number: int, message: OutgoingMessage
    ) -> None:
        try:
            await connection.publish(message)
            self._counts["sent"] += 1
        except ValueError as error:  # it can never be sent: not to be tried for ever
            self._counts["unsendable"] += 1
            topic = message.topic[:200]
            self._tell("warning", "unsent", join=self.name, topic=topic, reason=str(error))
        self._outbound.confirmed(number)
        self.on_room()
        self._overflowed = False
        self._note_idle()

    def _note_idle(self) -> None:
        if not len(self._outbound) and not len(self._inbound):
            self._idle.set()

    # --- in ------------------------------------------------------------------------------

    def _arrived(self, connection: JoinedConnection, messages: list[Arrived]) -> None:
        self._connection = connection
        counts = self._counts
        counts["received"] += len(messages)
        counts["received_again"] += sum(message.dup for message in messages)
        taken = [
            (message, self._inbound.add(message) if message.qos else None) for message in messages
        ]
        try:
            self.receiver.on_arrived(taken)
        except Exception:
            self.faults += 1
            logger.exception("messages of the MQTT server %s were not taken", self.name)
            for _, token in taken:
                if token is not None:
                    self.failed(token)
        self._look()

    def taken(self, token: JoinToken) -> None:
        """A message is safe: the server may forget it."""
        numbers = self._inbound.taken(token)
        if numbers and self._connection is not None:
            self._counts["acknowledged"] += len(numbers)
            self._connection.acknowledge(numbers)
        self._note_idle()
        self._look()

    def failed(self, token: JoinToken) -> None:
        """The broker failed on a message: the server is to send it again after a while."""
        numbers = self._inbound.fail(token)
        if self._connection is not None:
            self._connection.acknowledge(numbers)
        self._counts["failed"] += 1
        if AGAIN_SHARE * self._inbound.failed >= self._terms.settings.inflight_max:
            self._much_failed.set()
        self._note_idle()
        self._look()

    def hold(self, *, on: bool) -> None:
        """Read no further from the server, or read on."""
        self._held = on
        self._look()

    def _look(self) -> None:
        """Read on, or not."""
        if self._connection is None:
            return
        if self._held or self._inbound.full:
            self._connection.pause(on=True)
        elif self._inbound.eased:
            self._connection.pause(on=False)

    # --- the connection ------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and again whenever the connection is lost, until `end`."""
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            began_s = loop.time()
            try:
                await self._once()
            except JoinError as error:
                self._lost(str(error))
            except Exception as error:
                self.faults += 1
                logger.exception("the connection to the MQTT server %s failed", self.name)
                self._lost(f"a fault of this program: {error}")
            self._backoff.stood(loop.time() - began_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff.next_s()):
                    await self._ending.wait()

    async def _once(self) -> None:
        self._inbound.begin()
        self._much_failed.clear()
        async with connected(self._terms, self._arrived) as connection:
            self._connection = connection
            lost = asyncio.create_task(connection.lost())
            work = asyncio.create_task(self._work(connection))
            try:
                await asyncio.wait((lost, work), return_when=asyncio.FIRST_COMPLETED)
                for task in (work, lost):
                    if task.done():
                        task.result()
            except Exception as error:
                self.why = connection.why(error)  # whoever asks before all is ended is told
                raise
            finally:
                connection.take_no_more()
                self._connection = None
                self.connected_since_s = None
                for task in (work, lost):
                    task.cancel()
                await asyncio.gather(work, lost, return_exceptions=True)
                self._counts["refused_there"] += sum(connection.not_taken.values())
                self._outbound.rewind()
                self._inbound.begin()
                self.on_lost()

    async def _work(self, connection: JoinedConnection) -> None:
        """Subscribe, send, until the end."""
        self._look()
        if self._filters:
            await connection.subscribe(self._filters)
        self._stands(connection)
        for message in self._retained.values():
            self._outbound.put(message)
        sending = asyncio.create_task(self._send(connection))
        ending = asyncio.create_task(self._ending.wait())
        again = asyncio.create_task(self._fetch_again())
        try:
            done, _ = await asyncio.wait(
                (sending, ending, again), return_when=asyncio.FIRST_COMPLETED
            )
            if ending in done:
                await self._drained()
            for task in done:
                task.result()
        finally:
            for task in (sending, ending, again):
                task.cancel()
            await asyncio.gather(sending, ending, again, return_exceptions=True)

    def _stands(self, connection: JoinedConnection) -> None:
        self.connected_since_s = asyncio.get_running_loop().time()
        self._counts["connections"] += 1
        kept = connection.session_kept
        if not kept and self._counts["connections"] > 1:
            self._counts["sessions_lost"] += 1
        self._told = ""
        self._tell("info", "joined", join=self.name, at=self.address, session_kept=kept)
        wanted = self._terms.settings.session_expiry_s
        granted = connection.expiry_s
        if granted is not None and granted < wanted and granted != self._granted_s:
            self._granted_s = granted
            self._tell("warning", "session_expiry", join=self.name, wanted=wanted, granted=granted)

    def _lost(self, why: str) -> None:
        """Told once for each reason, however often it is tried."""
        self.why = why
        if why != self._told:
            self._told = why
            self._tell("warning", "join_lost", join=self.name, at=self.address, reason=why)

    async def _fetch_again(self) -> None:
        """Ends when so much has failed that it is better sent anew."""
        await self._much_failed.wait()
        raise JoinError("too much of what it sent could not be taken; it is asked to send it again")

    async def _drained(self) -> None:
        """Wait a short while for what is still to be sent or acknowledged."""
        self._idle.clear()
        self._note_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._idle.wait()

    def end(self) -> None:
        """Have `run` take leave of the server and return; it keeps the session."""
        self._ending.set()


COUNTED = (
    "connections",
    "sessions_lost",
    "received",
    "received_again",
    "acknowledged",
    "failed",
    "sent",
    "refused_there",
    "unsendable",
)
