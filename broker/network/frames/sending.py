"""Events of an origin as they travel: in parts that a link takes.

Owns the cutting of many events into frames. Must not know ways or neighbours. Invariant: each part
is complete in itself: all that is needed of its own (after, upto] is in it; the last one alone
carries what is promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import packed
from broker.network.frames.told import Forwarded, Watermarks
from broker.network.replication.progress import Advanced, Claimed

PART_EVENTS = 512  # as many as are worth one step of a host
PART_BYTES = 512 * 1024  # half of what a link takes as one message

Row = tuple[int, Event]


def forwarded(  # noqa: PLR0917  # what a frame says
    origin: str,
    life: int,
    claim: tuple[int, int],
    rows: Sequence[Row],
    watermarks: Watermarks,
    held_after: int | None = None,
) -> list[Forwarded]:
    """All that is needed of a claim, in one part or more; rows are (position, event).

    Rows before the claim were kept back; `held_after` is what holds behind the last part.
    """
    after, upto = claim
    found: list[Forwarded] = []
    parts = cut(sorted(rows, key=itemgetter(0)))
    for number, (part, events) in enumerate(parts):
        is_last = number == len(parts) - 1
        end = upto if is_last else max(after, part[-1][0])
        positions = list(map(itemgetter(0), part))
        promised = watermarks if is_last else {}
        held = None if held_after is None else min(held_after, end)
        one = Forwarded(origin, life, after, end, positions, events, promised, held_after=held)
        found.append(one)
        after = end
    return found


def cut(rows: Sequence[Row]) -> list[tuple[Sequence[Row], bytes]]:
    """Rows in parts of bounded size, with their events; one part, if an empty one, at least."""
    parts = [rows]
    if len(rows) > PART_EVENTS:
        parts = [rows[at : at + PART_EVENTS] for at in range(0, len(rows), PART_EVENTS)]
    found: list[tuple[Sequence[Row], bytes]] = []
    while parts:
        part = parts.pop(0)
        events = packed(list(map(itemgetter(1), part)))
        if len(part) > 1 and len(events) > PART_BYTES:
            half = len(part) // 2
            parts[:0] = [part[:half], part[half:]]
        else:
            found.append((part, events))
    return found


ENDED = -1  # in the place of a time: there is no source of the type any more
UNKNOWN = -2  # likewise: nothing is promised yet
_NONE = packed([])  # what a frame carries that only claims


class Passage(NamedTuple):
    """A claim of an origin with its number; `is_new`: its life is another than before.

    `hurry`: see `Claimed`.
    """

    what: Forwarded  # a claim is one, too, without events
    serial: int  # 0: the sender does not count
    is_new: bool = False
    hurry: bool = False


def advanced(passages: Sequence[Passage]) -> Advanced:
    """Return what is claimed of origins as one frame.

    Types and times are named once, as origins mostly send the same types and are as far.
    """
    times = [time for each in passages for time in each.what.watermarks.values()]
    since = min([time for time in times if time is not None and time > WATERMARK_NONE], default=0)
    types: dict[tuple[str, ...], int] = {}
    rows = []
    for what, serial, is_new, hurry in passages:
        by_time: dict[int | None, list[str]] = {}
        for name, time in what.watermarks.items():
            by_time.setdefault(time, []).append(name)
        promised = [
            (types.setdefault(tuple(names), len(types)), _since(time, since))
            for time, names in by_time.items()
        ]
        row = Claimed(
            what.origin,
            what.upto - what.after,
            what.upto,
            serial,
            tuple(promised),
            what.life if is_new else 0,
            tuple([what.upto - position for position in what.positions]),
            what.events if what.positions else b"",
            None if what.held_after is None else what.upto - what.held_after,
            hurry,
        )
        rows.append(row)
    return Advanced(since, tuple(types), tuple(rows))


def _since(time: int | None, since: int) -> int:
    if time is None:
        return ENDED
    return UNKNOWN if time <= WATERMARK_NONE else time - since


def passage(frame: Advanced, row: Claimed, life: int) -> Passage:
    """Return what one row of a frame claims of an origin; its `life` holds unless the row says one.

    Raises LookupError.
    """
    upto = row.upto
    watermarks: Watermarks = {}
    for place, after in row.promised:
        for name in frame.types[place]:
            watermarks[name] = _time(after, frame.since)
    positions = list(map(upto.__sub__, row.places))
    what = Forwarded(
        row.origin,
        row.life or life,
        upto - row.span,
        upto,
        positions,
        row.events or _NONE,
        watermarks,
        held_after=None if row.back is None else upto - row.back,
    )
    return Passage(what, row.serial, hurry=row.hurry)


def _time(after: int, since: int) -> int | None:
    if after == ENDED:
        return None
    return WATERMARK_NONE if after == UNKNOWN else since + after
