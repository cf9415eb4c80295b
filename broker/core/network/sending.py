"""Events of an origin as they travel: in parts that a link takes.

Owns the cutting of many events into frames. Must not know ways or neighbours. Invariant: each part
is complete in itself: all that is needed of its own (after, upto] is in it; the last one alone
carries what is promised.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.core.network.told import Forwarded, Watermarks
from broker.core.recovery.durable_events import packed
from broker.engine.event.event import Event

PART_EVENTS = 512
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
    parts = cut(sorted(rows, key=lambda row: row[0]))
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        end = upto if is_last else max(after, part[-1][0])
        positions = [at for at, _ in part]
        events = packed([event for _, event in part])
        promised = watermarks if is_last else {}
        held = None if held_after is None else min(held_after, end)
        one = Forwarded(origin, life, after, end, positions, events, promised, held_after=held)
        found.append(one)
        after = end
    return found


def cut(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Rows in parts of bounded size; one part, if an empty one, at least."""
    parts = [rows[at : at + PART_EVENTS] for at in range(0, len(rows), PART_EVENTS)] or [rows]
    found: list[Sequence[Row]] = []
    while parts:
        part = parts.pop(0)
        if len(part) > 1 and len(packed([event for _, event in part])) > PART_BYTES:
            half = len(part) // 2
            parts[:0] = [part[:half], part[half:]]
        else:
            found.append(part)
    return found
