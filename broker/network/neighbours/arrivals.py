"""What neighbours claim of origins, as it comes: whatever came at once goes on as one.

Owns whether a claim is the next of its origin, and how far each origin has come here. Must not know
who needs what of it, nor who keeps events back. Invariant: claims go on in the order in which they
came; two go on as one only where nothing lies between them, so that a hole in them shows as before.

An event that was kept back on its way comes with a claim of its own, mostly in one message with the
partner that let it go. One claim for both is one step of the router, one record and one step of the
tasks that need them.

    claims of a message ─▶ runs without a hole, each of one origin ─▶ next of it? ─ no ─▶ missed
                                                                          └▶ passed on as one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.engine.ingest.event_bytes import unpacked
from broker.network.frames.sending import Passage, Row, passage
from broker.network.frames.told import Forwarded, Watermarks
from broker.network.neighbours.ways import Ways
from broker.network.overlay.traffic import LinkTraffic
from broker.network.replication.progress import Advanced

Spread = Callable[[str, Forwarded, list[Row], Watermarks], None]
"""Pass on what came from a neighbour, its events, and what was promised before it."""


class ArrivalTools(NamedTuple):
    """The parts of a broker that claims go on to, and what it counts."""

    ways: Ways
    counts: dict[str, int]  # for the status
    missed: Callable[[str], None]  # something of an origin did not come
    hurry: Callable[[str], None]  # an origin waits until hosts have stored this
    spread: Spread
    traffic: LinkTraffic  # by link and type, for who looks


class ClaimArrivals:
    """Take claims of neighbours; `correlates`: what was promised before them is of interest."""

    def __init__(self, tools: ArrivalTools, *, correlates: bool) -> None:
        self._tools = tools
        self._correlates = correlates

    def take_frames(self, peer: str, *frames: Advanced) -> None:
        """Take all that came in frames of one message. Raises LookupError, ValueError."""
        claims: list[Passage] = []
        lives: dict[str, int] = {}  # a row without one means that of the row before
        for frame in frames:
            for row in frame.rows:
                life = lives.get(row.origin) or self._tools.ways.life_of(row.origin)
                claims.append(passage(frame, row, life))
                lives[row.origin] = claims[-1].what.life
        self.take(peer, claims)

    def take(self, peer: str, claims: Sequence[Passage]) -> None:
        """Take claims, those that follow each other without a hole as one."""
        first = 0
        for end in range(1, len(claims) + 1):
            if end == len(claims) or not _follows(claims[end - 1], claims[end]):
                self._take(peer, claims[first:end])
                first = end

    def _take(self, peer: str, run: Sequence[Passage]) -> None:
        tools, (begin, serial, *_), last = self._tools, run[0], run[-1]
        origin = begin.origin
        if tools.ways.via.get(origin) != peer:
            tools.counts["frames_astray"] += len(run)
            for passed in run:
                tools.traffic.count("received", peer, passed)
            return
        rows: list[Row] = []
        watermarks: Watermarks = {}
        for what, *_ in run:
            rows += zip(what.positions, unpacked(what.events), strict=True)
            watermarks.update(what.watermarks)
        tools.traffic.count_types("received", peer, [event.event_type for _, event in rows])
        came = tools.ways.came[origin]
        if not came.goes_on(begin.after, serial):
            tools.missed(origin)
        came.serial, came.life = last.serial, last.what.life
        came.upto, came.complete = max(last.what.upto, came.upto or 0), last.what.complete
        before = dict(came.watermarks) if self._correlates else {}
        came.watermarks.update(watermarks)
        whole = Forwarded(origin, came.life, begin.after, last.what.upto, [], b"", watermarks)
        tools.spread(peer, whole, rows, before)
        if last.hurry:
            tools.hurry(origin)


def _follows(before: Passage, after: Passage) -> bool:
    """Tell whether two claims are one, as nothing lies between them and nobody waits for one."""
    if before.hurry or after.what.after != before.what.upto:
        return False
    if (before.what.origin, before.what.life) != (after.what.origin, after.what.life):
        return False
    return not (before.serial and after.serial) or after.serial == before.serial + 1
