"""The answer of an origin to a host that asks for all behind its position.

Owns how much is answered at once and what is promised meanwhile. Must not know links. Invariant:
the parts of an answer are complete in themselves and follow each other without a gap; until the
last of the last answer nothing is promised, so that the host's watermark waits for what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from msgspec.structs import replace

from broker.core.agent import WATERMARK_NONE
from broker.core.network.own import OwnLog
from broker.core.network.sending import forwarded
from broker.core.network.told import Forwarded, Watermarks

OFFER_EVENTS = 4_096  # in one answer; the host asks again for more


def offers(
    origin: str, own: OwnLog, told: Watermarks, position: int | None, types: Collection[str]
) -> Iterator[tuple[Forwarded, bool, bool]]:
    """The parts: (what, whether it is the last one, whether the host is to ask again)."""
    after = own.position if position is None else max(min(position, own.position), own.floor)
    kept = (row for row in own.since(after) if row[1].event_type in types)
    rows = list(islice(kept, OFFER_EVENTS + 1))
    more = len(rows) > OFFER_EVENTS
    upto = own.position
    if more:
        rows = rows[:OFFER_EVENTS]
        upto = rows[-1][0]
    nothing: Watermarks = dict.fromkeys(told, WATERMARK_NONE)
    parts = forwarded(origin, own.life, (after, upto), rows, {})
    for number, part in enumerate(parts):
        first, last = number == 0, number == len(parts) - 1
        promised = told if last and not more else nothing if first else {}
        yield replace(part, watermarks=promised, whole=first), last, last and more
