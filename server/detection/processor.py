"""The stateful operator of Spark around a course of detection.

Owns the two states of a key and its one timer. Must not know what is detected. Invariant: between
two calls everything is in Spark's state, so that it does not matter in which process the next runs.

The engine's state and the events that wait are kept apart: most batches bring events and decide
nothing, and then the larger of the two is not written again.

What rows bring along of the batch's mark counts before Spark's watermark, which is behind it.
"""

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import Row

from server.detection.course import DetectionCourse, WaitingEvents, waiting_of
from server.detection.event_batches import unpacked
from server.detection.firsts import Firsts, FirstsCourse
from server.detection.program import DetectionProgram
from server.detection.result_batches import packed_results, packed_rows
from server.detection.shards import Shards
from server.source.garbage import look_seldom

OUTPUT: Final = "results binary"
_COURSES: Final[
    dict[tuple[object, ...], DetectionCourse | FirstsCourse]
] = {}  # compiled once a process
COURSES_MAX: Final = 16  # of programs in one process; then all are compiled anew


class Detector(StatefulProcessor):
    """Takes rows with packed `events`; gives many results in one row."""

    def __init__(self, program: DetectionProgram | Firsts | Shards) -> None:
        self._program = program

    # Spark passes arguments by name: the names of these methods and arguments are its own.

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called before anything else, in the process that runs it."""
        look_seldom()
        self._handle = handle
        self._engine = handle.getValueState("engine", "state binary")
        self._waiting = handle.getValueState("waiting", "state binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        """Rows of a key, in any order."""
        held, waiting = self._held()
        passed_ms = mark_ms = timerValues.getCurrentWatermarkInMs()
        for row in rows:
            waiting.events += unpacked(row["events"])
            if row["mark_ms"] is not None:
                mark_ms = max(mark_ms, row["mark_ms"])
        yield from self._run(key, held, waiting, (passed_ms, mark_ms))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803, ARG002
    ) -> Iterator[Row]:
        """The watermark has come to where something waits."""
        passed_ms = timerValues.getCurrentWatermarkInMs()
        yield from self._run(key, *self._held(), (passed_ms, passed_ms))

    def close(self) -> None:
        """Nothing is open."""

    def _held(self) -> tuple[bytes | None, WaitingEvents]:
        held = _bytes(self._waiting.get())
        return held, waiting_of(held)

    def _run(
        self, key: Any, held: bytes | None, waiting: WaitingEvents, until_ms: tuple[int, int]
    ) -> Iterator[Row]:
        """Run up to the mark, the second of two times; Spark takes away timers up to the first.

        `held` are the bytes of what waits as they are in the state.
        """
        passed_ms, mark_ms = until_ms
        before = waiting.timer_ms
        program = self._program
        if isinstance(program, Shards):
            program = program.program_of(str(key[0]))
        state, results = _course(program).run(
            tuple(key), _bytes(self._engine.get()), waiting, mark_ms
        )
        if state is not None:
            self._engine.update((state,))
        if waiting.timer_ms != before:
            if before is not None and before > passed_ms:
                self._handle.deleteTimer(before)
            if waiting.timer_ms is not None:
                self._handle.registerTimer(waiting.timer_ms)
        packed = waiting.pack()
        if packed != held:
            self._waiting.update((packed,))
        pack = packed_rows if isinstance(program, Firsts) else packed_results
        for columns in pack(results):
            yield Row(results=columns)


def _course(program: DetectionProgram | Firsts) -> DetectionCourse | FirstsCourse:
    key = program.key
    course = _COURSES.get(key)
    if course is None:
        if len(_COURSES) >= COURSES_MAX:
            _COURSES.clear()
        course = program.course() if isinstance(program, Firsts) else DetectionCourse(program)
        _COURSES[key] = course
    return course


def _bytes(held: Any) -> bytes | None:
    return None if held is None else bytes(held[0])
