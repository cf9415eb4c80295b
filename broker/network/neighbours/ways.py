"""Which way origins are, and what is still to be claimed toward each neighbour.

Owns `via`, the types of origins, how far each has come here, and the claims. Must not know frames
or routers. Invariant: a way exists only from a host's `Reoffer` on, which came behind all operators
that hold for it; so whatever passes on a way has been asked for all the way down.

What comes of an origin goes on in the order in which it came, whatever came at once as one. An
event that was kept back on its way comes with a claim of its own, mostly in one message with the
partner that let it go: one claim for both is one step of the router, one record and one step of the
tasks that need them. Two go on as one only where nothing lies between them, so that a hole shows.

    claims of a message ─▶ runs without a hole, each of one origin ─▶ next of it? ─ no ─▶ missed
                                                                          └▶ passed on as one

A *claim* (after, upto] says: of these positions all that is needed beyond has been passed, but for
what is kept back. What has not been said yet is kept here until there is reason to say it; where
something is missing between two claims the earlier one is dropped, as the gap will be seen in the
later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from broker.engine.ingest.event_bytes import unpacked
from broker.network.frames.frames import Here, Passage, Row, passage
from broker.network.frames.told import Forwarded, Watermarks
from broker.network.neighbours.kept_back import KeptBack
from broker.network.replication.progress import Advanced
from broker.network.replication.time_promises import Bounds, HeardPromises
from broker.network.routing.advertisement.messages import LOCAL

OWED_POSITIONS = 1_024  # that are not claimed: origins keep as many for hosts longer than need be


class Claim(Struct):
    """Hold what of an origin is to be claimed toward one neighbour (or here), for these hosts.

    `back` are the events that are kept back; `serial` counts what was said. `begins`: of a type
    beyond which nobody waits, as nothing was said of it or that it has no source, there is one now:
    hosts would pass by its events, so this is said at once.
    """

    hosts: dict[str, None] = field(default_factory=dict)  # for whom, beyond this neighbour
    after: int | None = None
    upto: int = 0
    watermarks: Watermarks = field(default_factory=dict)  # promised together with it
    back: KeptBack = field(default_factory=KeptBack)  # what holds the claim back
    serial: int = 0  # of the last that was said
    limited: dict[str, int] = field(default_factory=dict)  # promised short of what was heard
    broken: bool = False  # something is missing before it: the other end is to see that at once
    life: int = 0  # that was said last
    hurry: bool = False  # the origin waits until this is stored
    begins: bool = False
    waited: dict[str, None] = field(default_factory=dict)  # types of which a time was said last

    def extend(self, after: int, upto: int, watermarks: Mapping[str, int | None]) -> None:
        """Claim (after, upto], too, with what was promised at its end."""
        if self.after is None:
            self.after = after  # what was promised short of what was heard is still owed
        if after > self.upto:
            self.after = after
            self.broken = True
            self.watermarks = {}
            self.limited = {}
        self.upto = upto
        self.watermarks.update(watermarks)
        for name, time in watermarks.items():
            self.begins = self.begins or (time is not None and name not in self.waited)

    def take(self, *, promises: bool = True) -> tuple[int, int, Watermarks]:
        """(after, upto, watermarks), now said; for what is kept back no time passes.

        Without `promises` these stay to be said.
        """
        after = self.upto if self.after is None else self.after
        self.after, self.broken = None, False
        if not promises:
            return after, self.upto, {}
        promised = self.sayable()
        self.begins = False
        for name, time in promised.items():
            if time is None:
                self.waited.pop(name, None)
            else:
                self.waited[name] = None
        for name, time in promised.items():
            if time == self.watermarks[name]:
                del self.watermarks[name]
                self.limited.pop(name, None)
            elif time is not None:
                self.limited[name] = time
        return after, self.upto, promised

    def numbered(self, part: Forwarded) -> Passage:
        """Return what is said now, with its number; see `Passage`."""
        self.serial += 1
        is_new, self.life = part.life != self.life, part.life
        hurry, self.hurry = self.hurry, False
        return Passage(part, self.serial, is_new, hurry)

    def may_be_owed(self) -> bool:
        """Return if nothing is lost when this is said later, with what comes then."""
        if self.broken or self.begins:
            return False
        return self.after is None or self.upto - self.after < OWED_POSITIONS

    def sayable(self) -> Watermarks:
        """Return what may be promised now and was not before."""
        if not self.watermarks or not self.back:
            return dict(self.watermarks)
        ends = self.back.ends()
        found: Watermarks = {}
        for name, at in self.watermarks.items():
            limit = ends[name] - 1 if name in ends else None
            if limit is None or (at is not None and at <= limit):
                found[name] = at
            elif self.limited.get(name, limit - 1) < limit:
                found[name] = limit
        return found

    def complete(self, complete: int) -> int:
        """The position up to which nothing is missing, where that is `complete` here."""
        upto = min(self.upto, complete)
        first = self.back.first() if self.back else None
        return upto if first is None else min(upto, first - 1)


class Came(Struct):
    """Record how far an origin has come here, by what it or a neighbour has said in this session.

    `upto` None: nothing has come since somebody here or beyond needs something of it.
    """

    life: int = 0  # 0: nothing came yet
    upto: int | None = None
    complete: int = 0  # behind which something may be kept back
    serial: int = 0
    watermarks: Watermarks = field(default_factory=dict)  # the last that were promised

    def begin(self) -> None:
        """Begin: what comes next comes first."""
        self.upto, self.serial = None, 0

    def goes_on(self, after: int, serial: int) -> bool:
        """Tell whether what begins there is the next of it; it then is."""
        follows = self.upto is None or (
            after <= self.upto and (not serial or not self.serial or serial == self.serial + 1)
        )
        self.serial = serial
        return follows


class Ways:
    """Know which way origins are, and what is still to be claimed toward each neighbour.

    `via` is the neighbour behind whom an origin is; `own` says which types are sent here.
    """

    def __init__(self, me: str) -> None:
        self.own = Here(me, ())
        self.via: dict[str, str] = {}
        self.types: dict[str, tuple[str, ...]] = {}  # by origin: those it told
        self.came: dict[str, Came] = {}  # by origin: what has passed here
        self._claims: dict[str, dict[str, Claim]] = {}  # by neighbour, origin
        self.promises = HeardPromises()  # of how certain times are
        self.changes = 0  # how often a way was another, or opened

    def here(
        self, origin: str, via: str, types: tuple[str, ...], bounds: Bounds | None = None
    ) -> None:
        """An origin is behind this neighbour."""
        self.via[origin], self.types[origin] = via, types
        self.promises.take(origin, types, bounds)
        self.changes += 1
        self.came.setdefault(origin, Came())

    def said(self, origin: str) -> tuple[tuple[str, ...], Bounds | None]:
        """Return the types of an origin, and what it promises of them."""
        return self.types[origin], self.promises.said(origin)

    def life_of(self, origin: str) -> int:
        """Return the life that an origin was said to have; 0 where none was."""
        return self.came[origin].life if origin in self.came else 0

    def gone(self, origin: str) -> None:
        """The way to an origin is no more, nor any way from it."""
        self.via.pop(origin, None)
        self.types.pop(origin, None)
        self.came.pop(origin, None)
        self._claims.pop(origin, None)

    def behind(self, neighbour: str) -> list[str]:
        """The origins behind a neighbour."""
        return [origin for origin, via in self.via.items() if via == neighbour]

    def leave(self, neighbour: str) -> None:
        """No host beyond this neighbour is known any more."""
        for claims in self._claims.values():
            claims.pop(neighbour, None)

    def open(self, origin: str, toward: str, host: str) -> None:
        """A host beyond a neighbour (or this broker: LOCAL) needs something of the origin.

        Where it is the first one, claims of the origin begin anew all the way to there.
        """
        self.changes += 1
        if not self._claims.get(origin) and origin in self.came:
            self.came[origin].begin()
        self._claims.setdefault(origin, {}).setdefault(toward, Claim()).hosts[host] = None

    def close(self, origin: str, toward: str, host: str) -> None:
        """It needs nothing any more."""
        claims = self._claims.get(origin, {})
        claim = claims.get(toward)
        if claim is not None:
            claim.hosts.pop(host, None)
            if not claim.hosts:
                del claims[toward]

    def forget_host(self, host: str) -> None:
        """A host is not to be reached any more; it says anew what it needs when it is."""
        for origin, claims in self._claims.items():
            for toward in [toward for toward, one in claims.items() if host in one.hosts]:
                self.close(origin, toward, host)

    def claims(self, origin: str) -> list[tuple[str, Claim]]:
        """The claims of an origin's events, by neighbour; LOCAL for this broker."""
        return list(self._claims.get(origin, {}).items())

    def toward(self, neighbour: str) -> list[tuple[str, Claim]]:
        """The claims toward a neighbour, by origin."""
        return [
            (origin, claims[neighbour])
            for origin, claims in self._claims.items()
            if neighbour in claims
        ]


__all__ = ["LOCAL", "Came", "Claim", "Ways"]


Spread = Callable[[str, Forwarded, list[Row], Watermarks], None]
"""Pass on what came from a neighbour, its events, and what was promised before it."""


class ArrivalTools(NamedTuple):
    """The parts of a broker that claims go on to, and what it counts."""

    ways: Ways
    counts: dict[str, int]  # for the status
    missed: Callable[[str], None]  # something of an origin did not come
    hurry: Callable[[str], None]  # an origin waits until hosts have stored this
    spread: Spread
    received: Callable[[str, object], None]  # the events that a neighbour sent, by their types
    received_types: Callable[[str, Sequence[str]], None]  # the same of those that are decoded


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
                tools.received(peer, passed)
            return
        rows: list[Row] = []
        watermarks: Watermarks = {}
        for what, *_ in run:
            rows += zip(what.positions, unpacked(what.events), strict=True)
            watermarks.update(what.watermarks)
        tools.received_types(peer, [event.event_type for _, event in rows])
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
