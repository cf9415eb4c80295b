"""The detection of one key: events wait until the watermark has passed them, then the engine runs.

Owns the order in which the engine gets events, and the state between two calls as bytes. Must not
know Spark. Invariant: what comes out depends on the events and the watermarks alone; an event is
handed to the engine once, when every one that may still come ends after it.
"""

from typing import Any, Final

import msgspec

from headwater.engine import Engine
from server.detection.program import DetectionProgram
from server.detection.times import end_of, order_of

WAITING_VERSION: Final = 1
PART: Final = 1_000  # events handed over at once: where two aliases take the same, cost grows by it


class WaitingEvents(msgspec.Struct):
    """Events that the watermark has not passed, by end; and what to be woken at."""

    version: int = WAITING_VERSION
    timer_ms: int | None = None
    events: list[dict[str, Any]] = []

    def pack(self) -> bytes:
        """As bytes."""
        return msgspec.msgpack.encode(self)


def waiting_of(state: bytes | None) -> WaitingEvents:
    """Decode what `pack` made; nothing waits where there is no state."""
    if state is None:
        return WaitingEvents()
    waiting = msgspec.msgpack.decode(state, type=WaitingEvents, strict=False)
    if waiting.version != WAITING_VERSION:
        raise ValueError(
            f"found events waiting in version {waiting.version}: begin a new checkpoint"
        )
    return waiting


def parted(waiting: WaitingEvents, watermark_ms: int) -> tuple[list[dict[str, Any]], int | None]:
    """Take out what the watermark has passed, in order; and the earliest end of what then waits."""
    ends_ms = list(map(end_of, waiting.events))
    if max(ends_ms, default=watermark_ms) <= watermark_ms:
        due, earliest_ms = waiting.events, None
        waiting.events = []
    else:
        pairs = list(zip(ends_ms, waiting.events, strict=True))
        due = [event for end_ms, event in pairs if end_ms <= watermark_ms]
        waiting.events = [event for end_ms, event in pairs if end_ms > watermark_ms]
        earliest_ms = min(end_ms for end_ms in ends_ms if end_ms > watermark_ms)
    due.sort(key=order_of)
    return due, earliest_ms


def earlier(first_ms: int | None, second_ms: int | None) -> int | None:
    """Return the earlier of two times, of which each may be missing."""
    return min((ms for ms in (first_ms, second_ms) if ms is not None), default=None)


class DetectionCourse:
    """Runs one program for many keys, one at a time, in one process."""

    def __init__(self, program: DetectionProgram) -> None:
        self.program = program
        self._engine = Engine(
            program.text, longest_ms=program.longest_ms, tables=dict(program.tables)
        )
        self._fresh = self._engine.state()
        self._loaded: tuple[Any, bytes] | None = None  # whose state the engine holds

    def run(
        self, key: object, state: bytes | None, waiting: WaitingEvents, watermark_ms: int
    ) -> tuple[bytes | None, list[dict[str, Any]]]:
        """Hand over what the watermark has passed; the new state, where it changed, and results.

        `waiting` keeps the rest, and when there is something to do again.
        """
        due, earliest_ms = parted(waiting, watermark_ms)
        if not due and (waiting.timer_ms is None or waiting.timer_ms > watermark_ms):
            waiting.timer_ms = earlier(earliest_ms, waiting.timer_ms)
            return None, []
        engine = self._load(key, state)
        results: list[dict[str, Any]] = []
        for begin in range(0, len(due), PART):
            results += engine.push(due[begin : begin + PART], skip_bad=True)
        results += engine.advance(watermark_ms)
        next_due = engine.next_due()
        report_ms = None if next_due is None else max(next_due, watermark_ms + 1)
        waiting.timer_ms = earlier(earliest_ms, report_ms)
        packed = engine.state()
        self._loaded = (key, packed)
        return packed, results

    def _load(self, key: object, state: bytes | None) -> Engine:
        wanted = (key, self._fresh if state is None else state)
        if self._loaded != wanted:
            self._engine.restore(wanted[1])
        # Until it has run: an error on the way must not leave a half-used engine for the next.
        self._loaded = None
        return self._engine
