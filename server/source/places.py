"""How far each broker's log was read: the offset of the source, as Spark keeps it.

Owns that form. Must not know brokers' addresses. Invariant: it is keyed by the broker's name, so
that addresses and the order of brokers may change; a broker that is no more stays in it, so that it
goes on where it was when it comes back.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_FORM = re.compile(r"([^:]*):(\d{1,18})(?::(-?\d{1,18})?(?::(-?\d{1,18}))?)?")


class LogPlace(NamedTuple):
    """In the log of an epoch, the next offset; and the event time reached before it, in ms.

    `mark_ms` is where the watermark stood, for all brokers, behind the batch that ended here.
    """

    epoch: str
    next: int
    reached_ms: int | None = None
    mark_ms: int | None = None

    def text(self) -> str:
        """As it stands in the checkpoint."""
        times = ["" if ts is None else str(ts) for ts in (self.reached_ms, self.mark_ms)]
        return ":".join((self.epoch, str(self.next), *times)).rstrip(":")


def places_of(offset: Mapping[str, object]) -> dict[str, LogPlace]:
    """The places by broker. Raises ValueError where this is no offset of this source."""
    return {name: _place(name, value) for name, value in offset.items()}


def offset_of(places: Mapping[str, LogPlace]) -> dict[str, str]:
    """The offset that Spark keeps; in the order of names, as offsets are compared as texts."""
    return {name: places[name].text() for name in sorted(places)}


def places_in(checkpoint: Path) -> list[dict[str, LogPlace]]:
    """Return the places behind the last batch that is done, for each source of a stream of Spark's.

    Nothing where there was none, or where the checkpoint is of something else.
    """
    try:
        commits = (checkpoint / "commits").iterdir()
        done = max(int(file.name) for file in commits if file.name.isdigit())
        lines = (checkpoint / "offsets" / str(done)).read_text(encoding="utf-8").splitlines()[2:]
        return [places_of(json.loads(line)) for line in lines if line.startswith("{")]
    except (OSError, ValueError):
        return []


def _place(name: str, value: object) -> LogPlace:
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"the checkpoint holds {value!r} for {name}: not of this source")
    reached_ms, mark_ms = (None if digits is None else int(digits) for digits in match.group(3, 4))
    return LogPlace(match[1], int(match[2]), reached_ms, mark_ms)
