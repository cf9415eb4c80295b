"""The first of those rows that agree in some keys, in event time.

Owns which row is a repeat of which. Must not know Spark. Invariant: what comes out depends on the
rows and the watermarks alone, not on which rows came together.

Spark's own `dropDuplicatesWithinWatermark` keeps what it meets first, in whatever order rows of
several logs come, and knows it until a batch has passed it, which may be hours later where a job
catches up: good for rows that are equal, and for no others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from server.detection.course import WaitingEvents, parted
from server.detection.times import end_of

STATE_VERSION: Final = 1
KEY: Final = "_by"  # what rows agree in, as a text; it is no part of what comes out


@dataclass(frozen=True)
class Firsts:
    """The settings of a search for firsts; plain data, so that it can be sent anywhere."""

    within_ms: int
    raw: bool = True  # rows are taken as they are
    types: Mapping[str, str] = field(default_factory=dict)
    declared: None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key by which two of them are the same."""
        return ("firsts", self.within_ms)

    @property
    def text(self) -> str:
        """As checkpoints remember what was done."""
        return f"the first in event time, version {STATE_VERSION}"

    def course(self) -> "FirstsCourse":
        """Return the object that runs it."""
        return FirstsCourse(self.within_ms)


class _Known(msgspec.Struct):
    """When the row that was let out last ended, by key; all rows that end until then are in."""

    version: int = STATE_VERSION
    until_ms: int | None = None
    ends_ms: dict[str, int] = {}


class FirstsCourse:
    """Lets a row out unless one with its key was let out that ended at most `within_ms` before."""

    def __init__(self, within_ms: int) -> None:
        self._within_ms = within_ms

    def run(
        self, _key: object, state: bytes | None, waiting: WaitingEvents, watermark_ms: int
    ) -> tuple[bytes | None, list[dict[str, Any]]]:
        """Take what the watermark has passed; the new state, where it changed, and what is let out.

        `waiting` keeps the rest, and when there is something to do again. A row that comes when the
        watermark has passed it already is late, and left out.
        """
        due, waiting.timer_ms = parted(waiting, watermark_ms)
        if not due:
            return None, []
        seen = _Known() if state is None else msgspec.msgpack.decode(state, type=_Known)
        if seen.version != STATE_VERSION:
            raise ValueError(f"found rows known in version {seen.version}: begin a new checkpoint")
        firsts = []
        for row in due:
            end_ms, by = end_of(row), row[KEY]
            if seen.until_ms is not None and end_ms <= seen.until_ms:
                continue
            before_ms = seen.ends_ms.get(by)
            if before_ms is None or end_ms - before_ms > self._within_ms:
                seen.ends_ms[by] = end_ms
                firsts.append({name: value for name, value in row.items() if name != KEY})
        oldest_ms = watermark_ms - self._within_ms  # what comes ends after the watermark
        ends_ms = {by: end_ms for by, end_ms in seen.ends_ms.items() if end_ms > oldest_ms}
        return msgspec.msgpack.encode(_Known(until_ms=watermark_ms, ends_ms=ends_ms)), firsts
