"""How far a host is with an origin.

Owns the positions that have come. Must not know links or tasks. Invariant: what is counted as come
is in the core, each event once; nothing that is needed is missing up to `position`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from operator import sub
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import said_again, written_out
from broker.network.frames import told
from broker.network.replication.incarnation import Place, Recalled

GAPS_MAX = 4_096  # of one question, some bytes each; what lies behind them is offered again


class OriginsHeard(Protocol):
    """A core that hears of origins."""

    upstream: dict[str, Upstream]  # by origin

    def watermarks_of(self, origin: str) -> dict[str, int]:
        """Return what an origin has promised, by type."""


class Upstream(Struct):
    """An origin that this broker needs; `position` None: it has not answered yet.

    All up to `position` is here. Of what lies between it and `ahead` something may be kept back on
    the way; `beyond` are the positions of what has come of that already. `types` are those for
    which it was asked; that it has no source of one any more does not mean that all of that
    source's events have come.
    """

    life: int = 0  # 0: nothing was heard of it
    position: int | None = None  # None: it begins
    lost: int = 0  # positions that it could not offer any more
    types: tuple[str, ...] = ()
    ahead: int = 0  # the greatest that came, holes or not
    beyond: dict[int, None] = {}  # those that came, behind a hole
    order: list[int] = []  # the same as a heap: the least one first

    def begin(self, life: int, position: int) -> None:
        """All up to this position of a life is here, or not needed."""
        self.life, self.position, self.ahead = life, position, position
        self.beyond, self.order = {}, []

    def passes(self, one: told.Forwarded) -> list[int]:
        """Go on by what is claimed; which of its events have not come before, by place."""
        before = self.position or 0
        known = self.beyond
        fresh = [place for place, at in enumerate(one.positions) if at > before and at not in known]
        self.position = max(before, one.complete)
        self.ahead = max(self.ahead, one.upto)
        if known or self.position < self.ahead:
            for place in fresh:
                known[one.positions[place]] = None
                heappush(self.order, one.positions[place])
            while self.order and self.order[0] <= self.position:
                known.pop(heappop(self.order), None)
        return fresh

    def place(self) -> tuple[int, int | None, tuple[int, ...]]:
        """Return where a question begins: life, position, and what has come behind that."""
        return self.life, self.position, self.gaps()

    def gaps(self) -> tuple[int, ...]:
        """Return the first positions of `beyond`, each by how far it lies behind the one before."""
        positions = sorted(self.beyond)[:GAPS_MAX]
        return tuple(map(sub, positions, [self.position or 0, *positions]))

    def take(
        self,
        one: told.Forwarded,
        passed: Callable[[str], int],
        events: Sequence[Event] | None = None,
    ) -> tuple[list[dict[str, Any]], dict[str, int]] | None:
        """Go on by what came, if it follows: (events that have not come before, counts of note).

        None where it does not follow, or cannot be read: as if it had not come, so that what lies
        behind it leaves a gap, which is offered again. `events` are those of `one`, where they are
        decoded already.
        """
        if one.life != self.life and not one.whole:
            return None
        rows = events_of(one, events)
        if rows is None:
            return None
        if one.whole and (self.position is None or one.life != self.life):
            self.begin(one.life, one.after)
        if self.position is None or one.upto < self.position:
            return None
        lost = 0
        if one.after > (self.position if one.whole else self.ahead):
            if not one.whole:
                return None  # a gap
            lost = one.after - self.position
            self.lost += lost
            self.position = one.after
        new, let_go = self.new_of(one, rows, passed)
        counts = {"positions_lost": lost, "let_go_on_the_way": let_go}
        return new, {name: count for name, count in counts.items() if count}

    def new_of(
        self, one: told.Forwarded, rows: Sequence[dict[str, Any]], passed: Callable[[str], int]
    ) -> tuple[list[dict[str, Any]], int]:
        """Go on by what is claimed: (the events that have not come before, how many were let go).

        `rows` are all that it holds, see `events_of`. An answer holds also what was kept back on
        the way and let go there, as no partner came. What of that is behind a promise since is of
        no use, and not late.
        """
        before = self.ahead
        fresh = self.passes(one)
        if not one.again:
            return [rows[place] for place in fresh], 0
        new = [
            rows[place]
            for place in fresh
            if one.positions[place] > before or _end(rows[place]) > passed(rows[place]["type"])
        ]
        return new, len(fresh) - len(new)

    def state(self) -> list[Any]:
        """Plain data."""
        place = [self.life, self.position, self.lost, list(self.types)]
        return [*place, self.ahead, sorted(self.beyond)]

    @staticmethod
    def of(  # noqa: PLR0917  # as `state` has it; it was shorter once
        life: int,
        position: int | None,
        lost: int,
        types: Iterable[str],
        ahead: int | None = None,
        beyond: Iterable[int] = (),
    ) -> Upstream:
        """Make one of what such a state says."""
        if ahead is None:
            ahead = position or 0
        order = sorted(beyond)
        return Upstream(life, position, lost, tuple(types), ahead, dict.fromkeys(order), order)


def events_of(
    one: told.Forwarded, events: Sequence[Event] | None = None
) -> list[dict[str, Any]] | None:
    """Return the events that `one` holds, one for each position; None where they make no sense.

    `events` are the same, where they are decoded already.
    """
    try:
        rows = _rows(one.events, events)
        for row in rows:
            end = row.get("timestamp", row.get("end"))
            if type(end) is not int or not isinstance(row["type"], str):
                return None
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError):
        return None
    return rows if len(rows) == len(one.positions) else None


def _rows(data: bytes, events: Sequence[Event] | None) -> list[dict[str, Any]]:
    if events is not None:
        try:
            return written_out(events)
        except TypeError:  # it holds what only bytes can
            pass
    return said_again(data)


def recalled(me: str, asker: str, cores: Sequence[OriginsHeard]) -> Recalled:
    """Tell what the cores here, that of each cell too, have seen of a broker that begins."""
    places: list[Place] = []
    watermarks: dict[str, int] = {}
    for core in cores:
        upstream = core.upstream.get(asker)
        if upstream is not None and upstream.position is not None:
            places.append((upstream.life, upstream.ahead))
            for name, reached in core.watermarks_of(asker).items():
                watermarks[name] = max(reached, watermarks.get(name, reached))
    return Recalled(me, asker, places, watermarks)


def _end(said: dict[str, Any]) -> int:
    end: int = said["timestamp"] if "timestamp" in said else said["end"]
    return end
