"""The answer of an origin to a host that asks for all behind its position.

Owns how much is answered at once and what is promised meanwhile. Must not know links. Invariant:
the parts of an answer are complete in themselves and follow each other without a gap; until the
last of the last answer nothing is promised, so that the host's watermark waits for what is missing,
also of types that no source here sends any more. How far those had come is said before it is said
that they have ended: a host that was away would not know from where its time goes on otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping

from msgspec.structs import replace

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import packed
from broker.network.frames.frames import Row, forwarded
from broker.network.frames.told import Forwarded, Watermarks
from broker.network.origin.own import OwnLog

OFFER_EVENTS = 4_096  # in one answer; the host asks again for more
LOOKED_EVENTS = 16_384  # that are looked at for one answer: a tenth of a second


def offers(  # noqa: PLR0917  # an origin's own and a host's
    origin: str,
    own: OwnLog,
    told: Watermarks,
    position: int | None,
    types: Collection[str],
    wanted: Callable[[Event], bool] = lambda _: True,
    left_off: Mapping[str, int] | None = None,
    taken: Container[int] = (),
) -> Iterator[tuple[Forwarded, bool, bool]]:
    """The parts: (what, whether it is the last one, whether the host is to ask again).

    `wanted` may let through more than the host needs, and must let through all of that. `left_off`
    is the last promise of types of which nothing is told any more.
    `taken` are positions that the host has already, behind one from which something is missing.
    """
    after = own.position if position is None else max(min(position, own.position), own.floor)
    rows, upto = rows_since(own, after, types, wanted, taken)
    more = upto < own.position
    gone = [name for name in types if name not in told]
    nothing: Watermarks = dict.fromkeys([*told, *gone], WATERMARK_NONE)
    come_to = {**told, **{name: at for name, at in (left_off or {}).items() if name in gone}}
    parts = forwarded(origin, own.life, (after, upto), rows, {})
    for number, part in enumerate(parts):
        first, last = number == 0, number == len(parts) - 1
        promised = come_to if last and not more else nothing if first else {}
        is_end = last and (more or not gone)
        said = replace(part, watermarks=promised, whole=first, again=True)
        yield said, is_end, is_end and more
    if gone and not more:
        ended: Watermarks = dict.fromkeys(gone)
        empty: tuple[list[int], bytes] = ([], packed([]))
        yield Forwarded(origin, own.life, upto, upto, *empty, ended, again=True), True, False


def offers_nothing(origin: str, own: OwnLog) -> Iterator[tuple[Forwarded, bool, bool]]:
    """Yield the answer to a quiet question: it came, and nothing is offered."""
    span = (own.position, own.position)
    yield Forwarded(origin, own.life, *span, [], packed([]), {}, whole=True), True, False


def rows_since(
    own: OwnLog,
    after: int,
    types: Collection[str],
    wanted: Callable[[Event], bool],
    taken: Container[int] = (),
) -> tuple[list[Row], int]:
    """Return what goes into one answer, and the position up to which that is all."""
    rows: list[Row] = []
    looked = 0
    last = after
    for row in own.since(after):
        if row[1].event_type in types:
            if len(rows) == OFFER_EVENTS or looked == LOOKED_EVENTS:
                return rows, last
            looked += 1
            if row[0] not in taken and wanted(row[1]):
                rows.append(row)
        last = row[0]
    return rows, own.position
