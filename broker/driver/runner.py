"""Runs the core on the event loop: messages in, effects out, and its waking.

Owns the inbox of messages that wait for the core, the timer, and the time of the core with the time
of day beside it. Must not know what messages mean. Invariant: the core handles one message at a
time, in the order of arrival; payloads that came one after another before a `flush` are one batch;
a later `now_ms` is never less than an earlier one, and no jump of the wall clock moves it.

What makes much work is done in slices, one a turn of the loop: clients get their PINGRESP and
readers their pages in between. Meanwhile intake is held, and nothing else comes to the core.

    idle ──handle──▶ idle                          (nearly always: all is done in the first slice)
    idle ──handle──▶ working ──a turn──▶ working ──a turn──▶ idle

A fault of the core on one message is logged, counted and told to whoever asked; the broker goes on
and says that it is not healthy, so that a supervisor may restart it.

Silence and deadlines are measured by `now_ms`, so that a jump makes no source silent and no event
late. Readings without a time are stamped with the time of day. A wall clock that jumps may jump
back: it is believed once it has stayed where it is for `wait_s`.

         |gap| < STEP_S: followed at once
    settled ------- |gap| ≥ STEP_S: `clock_jumped` ------> jumped
       ^                                                     | back: `clock_came_back`
       +-----------------------------------------------------+ stayed for `wait_s`: `clock_followed`
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from broker import logs
from broker.core import refusals
from broker.core.broker import Broker
from broker.core.effects import Acknowledge, Effect, Emit, Publish, Reply
from broker.core.messages import ClockSet, EventsReceived, Payload, RequestRefused, Woken
from broker.core.recovery.durable import CoreFaultError, DurableBroker
from broker.engine.runtime.budget import Slices
from broker.network.effects import Note

if TYPE_CHECKING:  # a broker without links does without that half of the core, and its memory
    from broker.core.network.network_broker import Message, NetworkBroker

STEP_S = 1.0  # time daemons correct less than that by steps in ordinary work
TELL_MS = 20  # less is not worth a record of the journal
WAIT_S = 60.0
LOOK_S = 1.0

LOOK_AFTER_S = 0.02  # the core is asked for its waking once in so long, not after each batch
LOOK_SHARE = 50  # and not before it has worked so many times as long as the last answer took
SLEEP_S_MAX = 86_400.0  # timers far off are looked at again

logger = logging.getLogger(__name__)

Core: TypeAlias = Broker | DurableBroker


# Seconds since some moment, also while the machine slept, where the system counts these.
steady_s: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class WallClock:
    """The clock that the module describes; `wall` and `steady` underneath are in seconds."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_s,
        wait_s: float = WAIT_S,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._wait_s = wait_s
        self._begin_s = wall() - steady()  # `now_ms` is the steady clock and this
        self._ahead_s = 0.0
        self._jumped: tuple[float, float] | None = None  # (gap, since when by the steady clock)
        self.jumps = 0

    def not_before(self, moment_ms: int) -> None:
        """Continue from `moment_ms`, where the wall clock has not come to it yet."""
        steady = self._steady()
        self._begin_s = max(self._begin_s, moment_ms / 1000 - steady)
        self._ahead_s = self._wall() - steady - self._begin_s

    def now_ms(self) -> int:
        """Return the time by which the core goes."""
        return int((self._steady() + self._begin_s) * 1000)

    @property
    def ahead_ms(self) -> int:
        """The believed distance of the time of day from `now_ms`; negative: it is behind."""
        ahead_ms = round(self._ahead_s * 1000)
        return ahead_ms if abs(ahead_ms) >= TELL_MS else 0

    @property
    def gap_ms(self) -> int:
        """The distance of the wall clock from where it is believed to be; 0 while settled."""
        return 0 if self._jumped is None else round(self._jumped[0] * 1000)

    def status(self) -> dict[str, int]:
        """Return what a person may want to know, in milliseconds, and how many jumps were seen."""
        return {"ahead_ms": self.ahead_ms, "gap_ms": self.gap_ms, "jumps": self.jumps}

    def look(self) -> Note | None:
        """Compare the clocks; what a person should know of it. To be called every second or so."""
        steady = self._steady()
        gap = self._wall() - steady - self._begin_s - self._ahead_s
        if abs(gap) < STEP_S:
            self._ahead_s += gap
            if self._jumped is None:
                return None
            by_ms, self._jumped = self.gap_ms, None
            return Note("warning", "clock_came_back", {"jumped_by_ms": by_ms})
        if self._jumped is None or abs(gap - self._jumped[0]) >= STEP_S:
            self._jumped = (gap, steady)
            self.jumps += 1
            wait_s = round(self._wait_s)
            jump_ms = round(gap * 1000)
            return Note("warning", "clock_jumped", {"by_ms": jump_ms, "followed_in_s": wait_s})
        if steady - self._jumped[1] < self._wait_s:
            return None
        self._ahead_s, self._jumped = self._ahead_s + gap, None
        return Note("warning", "clock_followed", {"by_ms": round(gap * 1000)})


class ClockWatch:
    """Looks at the clock every second, logs what it finds, and tells the core how far it is.

    `put` takes the core's messages. To be made before the core is told anything else.
    """

    def __init__(self, clock: WallClock, put: Callable[[ClockSet], None]) -> None:
        self._clock = clock
        self._put = put
        self._told_ms = 0
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def close(self) -> None:
        """Look no further."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        note = self._clock.look()
        if note is not None:
            logs.write(note)
        ahead_ms = self._clock.ahead_ms
        if abs(ahead_ms - self._told_ms) >= TELL_MS:
            self._told_ms = ahead_ms
            self._put(ClockSet(ahead_ms))
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)


class Outside(Protocol):
    """Whoever carries out effects."""

    def publish(self, effect: Publish) -> None:
        """Publish what concerns nobody in particular."""

    def emit(self, effect: Emit) -> None:
        """Give out results."""

    def reply(self, effect: Reply) -> None:
        """Answer a request."""

    def acknowledge(self, effect: Acknowledge) -> None:
        """Answer publishers."""

    def fail(self, tokens: list[Any]) -> None:
        """Tell publishers that the broker failed on what they sent."""

    def note(self, effect: Note) -> None:
        """Write a log line."""

    def hold(self, *, on: bool) -> None:
        """Read no further from those who publish to the core, or read on."""


class Runner:
    """Between the core and the event loop; all methods belong to the loop's thread.

    `hold` lets messages wait that clients publish. `pause` also stops what the broker would tell
    its core by itself, and requests, whose line asks `running`. `kept` carries out what a core with
    a journal wants besides; `network` is told all instead of the core, where it is around it.
    """

    def __init__(
        self,
        core: Core,
        outside: Outside,
        clock: WallClock | None = None,
        kept: Mapping[type[Any], Callable[[Any], None]] | None = None,
        network: "NetworkBroker | None" = None,
    ) -> None:
        self.core = core
        self._machine: Any = network or core
        self.faults = 0
        self._outside = outside
        self.clock = clock or WallClock()
        self._loop = asyncio.get_running_loop()
        self._inbox: list[Message | list[Payload]] = []
        self._scheduled = False
        self._holders = 0
        self._running = asyncio.Event()  # cleared while paused
        self._running.set()
        self._work: tuple[Message, Slices[list[Effect]]] | None = None  # that is under way
        self._idle = asyncio.Event()
        self._idle.set()
        self._look: asyncio.Handle | None = None
        self._look_after_s = LOOK_AFTER_S
        self._wake: asyncio.TimerHandle | None = None
        self._carry: dict[type[Any], Callable[[Any], None]] = {
            Publish: outside.publish,
            Emit: outside.emit,
            Reply: outside.reply,
            Acknowledge: outside.acknowledge,
            Note: outside.note,
        }
        self._carry.update(kept or {})

    def carry_by(self, kind: type[Any], carry: Callable[[Any], None]) -> None:
        """Have effects of a kind carried out by this."""
        self._carry[kind] = carry

    def now_ms(self) -> int:
        """The time by which the core goes."""
        return self.clock.now_ms()

    def is_advertised(self, source: str) -> bool:
        """Tell whether a source said what it is, and that holds."""
        core = self.core.core if isinstance(self.core, DurableBroker) else self.core
        return core.stated(source) is not None

    def put(self, message: "Message") -> None:
        """Have the core handle a message soon."""
        self.add(message)
        self._schedule()

    def add(self, message: "Message") -> None:
        """Have the core handle a message with the next `flush`."""
        self._inbox.append(message)

    def add_payload(self, payload: Payload) -> None:
        """The same of a payload, with those that come right before and after it."""
        inbox = self._inbox
        if inbox and isinstance(inbox[-1], list):
            inbox[-1].append(payload)
        else:
            inbox.append([payload])

    def flush(self) -> None:
        """Handle all that waits, unless it is held."""
        self._scheduled = False
        if self._holders:
            return
        inbox, self._inbox = self._inbox, []
        for number, item in enumerate(inbox, 1):
            self.handle(EventsReceived(tuple(item)) if isinstance(item, list) else item)
            if not self.at_work:  # by what it just handled: the rest waits, before what comes later
                self._inbox[:0] = inbox[number:]
                return

    def hold(self, *, quietly: bool = False) -> None:
        """Let messages wait until `release`; may be called several times, each with its own.

        `quietly`: nobody can publish yet who would have to be held.
        """
        self._holders += 1
        if not quietly:
            self._outside.hold(on=True)

    def release(self) -> None:
        """One reason less to wait."""
        self._holders -= 1
        if not self._holders:
            self._outside.hold(on=False)
            self._schedule()

    def pause(self) -> None:
        """Hold, and have nothing wake the core either: it could not write down what it is told."""
        self._running.clear()
        self.hold()

    def resume(self) -> None:
        """Go on after `pause`; what became due meanwhile is due now."""
        self._running.set()
        self.release()
        if self._look is None:
            self._look = self._loop.call_soon(self._arm)

    @property
    def at_work(self) -> bool:
        """Tell whether it is neither paused nor held."""
        return self._running.is_set() and not self._holders

    async def running(self) -> None:
        """Return when it is not paused, and no message is under way."""
        while not (self._running.is_set() and self._work is None):
            await self._running.wait()
            await self.idle()

    async def idle(self) -> None:
        """Return when no message is under way."""
        while self._work is not None:
            await self._idle.wait()

    def settle(self) -> None:
        """Handle what waits now, whoever asked to hold it; for the end."""
        self._finish()
        while self._inbox:
            self._holders = 0
            self.flush()
            self._finish()
        self._holders = 0

    def close(self) -> None:
        """No more waking."""
        for timer in (self._look, self._wake):
            if timer is not None:
                timer.cancel()

    def _schedule(self) -> None:
        if self._inbox and not self._scheduled and not self._holders:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def handle(self, message: "Message") -> None:
        """Handle a message before all that waits: at once, but for work that takes many slices."""
        if self._work is not None:
            self._finish()
        self._advance(message, self._machine.work(message, self.clock.now_ms()))

    def _advance(self, message: "Message", work: "Slices[list[Effect]]") -> None:
        """Do a slice of the work for a message."""
        try:
            next(work)
        except StopIteration as end:
            effects: list[Effect] = end.value
        except Exception as error:
            self.faults += 1
            logger.exception("the core failed on %s", type(message).__name__)
            effects = error.effects if isinstance(error, CoreFaultError) else []
            self._outside.fail(_tokens(message))
            effects += self._regret(message)
        else:
            if self._work is None:
                self._work = (message, work)
                self._idle.clear()
                self.hold()
            self._loop.call_soon(self._turn, work)
            return
        self.perform(effects)
        if self._look is None:
            self._look = self._loop.call_later(self._look_after_s, self._arm)
        if self._work is not None:
            self._work = None
            self._idle.set()
            self.release()

    def _turn(self, work: "Slices[list[Effect]]") -> None:
        """Go on with that work, if it is not done by now."""
        if self._work is not None and self._work[1] is work:
            self._advance(*self._work)

    def _finish(self) -> None:
        """Do in one go what is left of the work that is under way."""
        while self._work is not None:
            self._advance(*self._work)

    def _regret(self, message: "Message") -> list[Effect]:
        """The answer to a request on which the core failed."""
        if getattr(message, "reply_to", None) is None or isinstance(message, RequestRefused):
            return []
        request: Any = message
        regret = RequestRefused(request.client, request.request, refusals.DEFECT, request.reply_to)
        try:
            effects: list[Effect] = self._machine.handle(regret, self.clock.now_ms())
        except Exception:  # what waits behind it is not to be lost with it
            self.faults += 1
            logger.exception("the core failed on an answer")
            return []
        return effects

    def perform(self, effects: list[Effect]) -> None:
        """Carry out effects, in order; one that fails stops no other."""
        for effect in effects:
            try:
                self._carry[type(effect)](effect)
            except Exception:
                self.faults += 1
                logger.exception("an effect failed: %s", type(effect).__name__)

    def _arm(self) -> None:
        """Set the timer for the core's next waking."""
        self._look = None
        if self._work is not None:  # asked again at its end
            return
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        began_s = perf_counter()
        due_ms = self._machine.next_wake()
        self._look_after_s = max(LOOK_AFTER_S, LOOK_SHARE * (perf_counter() - began_s))
        if due_ms is not None:
            wait_s = max(0, due_ms - self.clock.now_ms() + 1) / 1000
            self._wake = self._loop.call_later(min(wait_s, SLEEP_S_MAX), self._woken)

    def _woken(self) -> None:
        self._wake = None
        if self._running.is_set() and self._work is None:
            self.handle(Woken())


def _tokens(message: "Message") -> list[Any]:
    if isinstance(message, EventsReceived):
        tokens = [payload.token for payload in message.payloads]
    else:
        tokens = [getattr(message, "token", None)]
    return [token for token in tokens if token is not None]
