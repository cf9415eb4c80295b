"""Events that a link has carried of late: an answer to a host names them instead of carrying them.

Owns which events of each origin both ends of a session remember. Must not know hosts or ways.
Invariant: both ends remember the same, as each takes up what frames carry in the order of frames,
and forgets the oldest of an origin by their bytes; so what one end names the other has, unless a
link has refused it.

A task that moves begins at its new host from a state, and has all offered that came behind it. Of
that some has just passed the same links on its way to the old host.

    Passed, Advanced, Offered ─▶ remembered at both ends
    Offered again ─▶ named where it is remembered ─▶ Offered, as if all had been carried
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from broker.network.frames.frames import Offered, Passed, Sealed
from broker.network.frames.told import Forwarded
from broker.network.replication.progress import Advanced, Claimed

CARRIED_SINCE = 4  # the version of frames whose answers may name events
CARRIED_BYTES_MAX = 8_192  # of the events of an origin that are remembered

Row = tuple[int, msgspec.Raw]  # a position, and its event as it is packed
Seal = tuple[int, int]  # of a session, the same number first at one end and last at the other

_encode = msgspec.msgpack.Encoder().encode
_rows_of = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class _Carried(Struct):
    """The last that was carried of an origin: by frame the positions and the events, packed."""

    life: int = 0  # in another the same position may be another event
    size: int = 0
    frames: deque[tuple[Sequence[int], bytes]] = field(default_factory=deque)

    def take(self, positions: Sequence[int], events: bytes) -> None:
        """Remember what a frame carries, and forget the oldest."""
        self.frames.append((positions, events))
        self.size += len(events)
        while self.size > CARRIED_BYTES_MAX:
            self.size -= len(self.frames.popleft()[1])


class _Side(Struct):
    """Remember what a session has carried one way, by origin."""

    seal: Seal = (0, 0)
    origins: dict[str, _Carried] = field(default_factory=dict)

    def of(self, origin: str, life: int) -> _Carried:
        """Return what was carried of an origin in this life; 0: in that of before."""
        carried = self.origins.get(origin)
        if carried is None or (life and life != carried.life):
            carried = self.origins[origin] = _Carried(life)
        return carried

    def rows(self, what: Forwarded) -> dict[int, msgspec.Raw]:
        """Return what is remembered of an answer's origin, by position."""
        rows: dict[int, msgspec.Raw] = {}
        for positions, events in self.of(what.origin, what.life).frames:
            rows.update(zip(positions, _rows_of(events), strict=True))
        return rows

    def take(self, body: Sealed) -> None:
        """Remember what a frame carries."""
        rows: Sequence[Claimed | Forwarded] = ()
        if isinstance(body, Advanced):
            rows = body.rows
        elif isinstance(body, Passed | Offered):
            rows = (body.what,)
        for row in rows:
            positions = row.positions
            if positions or row.life:
                carried = self.of(row.origin, row.life)
                if positions:
                    carried.take(positions, row.events)


class CarriedEvents:
    """Remember what each link of a broker has carried of late, in both directions."""

    def __init__(self) -> None:
        self._sent: dict[str, _Side] = {}  # by neighbour
        self._received: dict[str, _Side] = {}  # likewise

    def keep(self, peers: Collection[str]) -> None:
        """Forget what was carried to and from who is none of these neighbours."""
        for sides in (self._sent, self._received):
            for peer in [peer for peer in sides if peer not in peers]:
                del sides[peer]

    def sent(self, peer: str, seal: Seal, body: Sealed, events: int) -> tuple[Sealed, int]:
        """Return what is to be sent in place of a frame, and how many events it carries."""
        side = _side(self._sent, peer, seal)
        if isinstance(body, Offered) and body.what.positions:
            body = _named(side, body)
            events = len(body.what.positions)
        side.take(body)
        return body, events

    def received(self, peer: str, seal: Seal, body: Sealed) -> tuple[Sealed, ...]:
        """Return what a frame stands for; nothing where it names what a link has refused.

        Whoever sent that hears of it, and begins a new session. Raises ValueError.
        """
        side = _side(self._received, peer, seal)
        if not isinstance(body, Offered) or not body.named:
            side.take(body)
            return (body,)
        rows = side.rows(body.what)
        side.take(body)
        places = [body.what.upto - back for back in body.named]
        if any(place not in rows for place in places):
            return ()
        return (_whole(body, [(place, rows[place]) for place in places]),)


def _side(sides: dict[str, _Side], peer: str, seal: Seal) -> _Side:
    side = sides.get(peer)
    if side is None or side.seal != seal:
        side = sides[peer] = _Side(seal)
    return side


def _named(side: _Side, answer: Offered) -> Offered:
    what = answer.what
    frames = side.of(what.origin, what.life).frames
    carried = {position for positions, _ in frames for position in positions}
    named = tuple([what.upto - position for position in what.positions if position in carried])
    if not named:
        return answer
    rows = zip(what.positions, _rows_of(what.events), strict=True)
    left = [row for row in rows if row[0] not in carried]
    return replace(answer, what=replace(what, **_packed(left)), named=named)


def _whole(answer: Offered, named: Sequence[Row]) -> Offered:
    rows = [*zip(answer.what.positions, _rows_of(answer.what.events), strict=True), *named]
    rows.sort(key=lambda row: row[0])
    return replace(answer, what=replace(answer.what, **_packed(rows)), named=())


def _packed(rows: Sequence[Row]) -> dict[str, list[int] | bytes]:
    positions, events = [position for position, _ in rows], [row for _, row in rows]
    return {"positions": positions, "events": _encode(events)}
