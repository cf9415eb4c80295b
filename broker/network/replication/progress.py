"""Progress of origins and of hosts, which is sent when somebody waits for it.

Owns the times that are awaited beyond each neighbour and here, what of it neighbours were asked,
since when something is owed to whom, and which positions of this host origins know. Must not know
claims, events, journals or tasks. Invariant: progress that a neighbour waits for is owed for no
longer than it takes to come; what nobody waits for is sent every so often (`owed_ms`); what is said
of an origin was stored before, and one that waits, or keeps much, hears within `STORED_MS`.

A result often depends on how far every origin has come, and an origin comes further with each of
its readings. To send all of that costs more than the readings that are needed. So a broker whose
tasks cannot report before a type has come as far as a time says so (`Awaited`) to the neighbours
that lead to origins of the type; these pass it on, and answer when all origins beyond have come as
far. Each answer is one frame for each link, whatever the number of origins beyond it. A fixed
period was rejected: it either costs a frame for each link and period where nothing is found, or
has all results wait for as many periods as there are hops.

    settled --progress that was not sent--> owed
    owed --all that is awaited has come, or `owed_ms` since the last time--> settled

An origin keeps its events until all hosts have stored them. It loses nothing by keeping some for
longer, so it is told seldom, and of all origins in one frame for each way; but soon where it was
not told since it answered a question, or is far behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

PROGRESS_SINCE = 3  # the version of frames that has them
LOOK_MS = 100  # how often it is looked what tasks wait for; lateness is a second, as a rule
ASK_AGAIN_MS = 30_000  # a question may be lost where a neighbour's neighbour begins again
HURRY_MS = 3_000  # so long all that is owed to who asks for it is sent as soon as it is there
READ_STEP_MS = 1_000  # so much further is asked at once for who reads results by event time

Times = dict[str, int]  # by event type
StoredRow = tuple[str, int, int]  # origin, life, position
IsBehind = Callable[[str, str, int], bool]  # (neighbour, type, time)


class Awaited(Struct, array_like=True, frozen=True, tag="awaited"):
    """At the sender or beyond, tasks wait until these types have come as far as these times.

    Of none: all that is owed is to be said, as a task there is about to go elsewhere. What it has
    not heard of is offered to it anew there.
    """

    rows: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def times(self) -> Times:
        """Return the time of each type."""
        return {name: time for time, types in self.rows for name in types}


def awaited(times: Mapping[str, int]) -> Awaited:
    """Return that these are awaited, each time once."""
    by_time: dict[int, list[str]] = {}
    for name, time in times.items():
        by_time.setdefault(time, []).append(name)
    return Awaited(tuple([(time, tuple(types)) for time, types in by_time.items()]))


class Claimed(Struct, array_like=True, frozen=True):
    """A claim of what is complete of one origin, with its events: as `Passed`, in fewer bytes.

    All before `upto` - `span` was claimed before. `promised` are pairs of a place among the sets of
    types of the frame and a time, from the frame's earliest on; -1: there is no source of them.
    `life` 0: as in the frame before. `back`: so far before `upto` lies what is kept back. `hurry`:
    the origin waits until hosts have stored this.
    """

    origin: str
    span: int
    upto: int
    serial: int
    promised: tuple[tuple[int, int], ...] = ()
    life: int = 0
    places: tuple[int, ...] = ()
    events: bytes = b""
    back: int | None = None
    hurry: bool = False

    @property
    def positions(self) -> list[int]:
        """Return the positions of the events."""
        return list(map(self.upto.__sub__, self.places))


class Advanced(Struct, array_like=True, frozen=True, tag="adv"):
    """Claims of several origins in one frame."""

    since: int
    types: tuple[tuple[str, ...], ...]
    rows: tuple[Claimed, ...]


class StoredUpto(Struct, array_like=True, frozen=True, tag="stored_upto"):
    """A host has on its disk all that it needs of these (origin, life) up to these positions."""

    host: str
    rows: tuple[StoredRow, ...]


class ProgressLedger:
    """Times that are awaited and progress that is owed, by neighbour.

    What is owed for half of `owed_ms` goes with a frame that goes anyway.
    """

    def __init__(self, owed_ms: int) -> None:
        # A broker's limit: simulated runs draw it short, as what is let go too early shows then.
        self._owed_ms = owed_ms
        self._expected: list[Times] = []  # by tasks in this process
        self._read: Times = {}  # by those who read results by event time
        self._awaited: dict[str, Times] = {}  # by neighbour
        self._asked: dict[str, dict[str, tuple[int, int]]] = {}  # the time, and when it was asked
        self._owed: dict[str, int] = {}  # since when
        self._sent_ms: dict[str, int] = {}  # when nothing was owed last
        self._look_at: int | None = None  # what tasks wait for may be another then
        self._looked_ms = 0
        self._changed = False  # what is awaited
        self._heard = False  # a neighbour's question
        self._ways = 0
        self._hurried: dict[str, int] = {}  # by neighbour that wants all that is owed: until when
        self.hurries: dict[str, None] = {}  # for whom others are to be asked the same

    # --- what is awaited -------------------------------------------------------------------

    def feed(self, now: int) -> None:
        """Note that tasks here were fed."""
        soon = max(now, self._looked_ms + LOOK_MS)
        self._look_at = soon if self._look_at is None else min(soon, self._look_at)

    def looks(self, now: int) -> bool:
        """Return if it is time to look what tasks wait for; it then counts as done."""
        if self._look_at is None or self._look_at > now:
            return False
        self._look_at, self._looked_ms = None, now
        late = now - ASK_AGAIN_MS
        for asked in self._asked.values():
            for _, asked_ms in asked.values():
                self._changed = self._changed or asked_ms <= late
        return True

    def expect(self, times: Sequence[Times]) -> None:
        """Note all that tasks in this process wait for.

        They are apart where tasks wait for brokers for different times: what one of them is not
        to reach, as a broker is away, is no reason not to ask for another's.
        """
        if times != self._expected:
            self._expected = list(times)
            self._changed = True
        if times and self._look_at is None:
            self._look_at = self._looked_ms + ASK_AGAIN_MS

    def read(self, reached: Mapping[str, int]) -> None:
        """Note that results are read by event time, so that all types are to come further.

        `reached` tells how far each has come here. The next step is asked of that and not of the
        time of day, as clocks of brokers differ; and only when the step before is done, as a time
        that moves on with each question would never be reached.
        """
        for name, time in reached.items():
            if self._read.get(name, time) <= time:
                self._read[name] = time + READ_STEP_MS
                self._changed = True

    def hurry(self, peer: str, now: int) -> None:
        """Note that a neighbour, or a task here, wants all that is owed by now."""
        self._hurried[peer] = now + HURRY_MS
        self.hurries[peer] = None

    def take_hurries(self) -> list[str]:
        """Return for whom others are to be asked for all that they owe."""
        taken, self.hurries = list(self.hurries), {}
        return taken

    def hear(self, peer: str, said: Awaited, now: int) -> None:
        """Note what a neighbour waits for besides."""
        if not said.rows:
            self.hurry(peer, now)
            return
        self._awaited.setdefault(peer, {}).update(said.times)
        self._changed = self._heard = True

    def leave(self, peer: str) -> None:
        """Forget a neighbour, as its session ended."""
        for ledger in (self._awaited, self._asked, self._owed, self._sent_ms, self._hurried):
            ledger.pop(peer, None)
        self._changed = True

    def questions(
        self, peers: Callable[[], Iterable[str]], ways: int, is_behind: IsBehind, now: int
    ) -> list[tuple[str, Awaited]]:
        """Return what neighbours are to be asked now; they then count as asked.

        `peers` are those that can be asked; `ways` is another number than before when origins are
        behind other neighbours.
        """
        if not self._changed and ways == self._ways:
            return []
        self._changed, self._ways = False, ways
        asked = []
        for peer in peers():
            times = self._question(peer, is_behind, now)
            if times:
                self._asked.setdefault(peer, {}).update(
                    {name: (time, now) for name, time in times.items()}
                )
                asked.append((peer, awaited(times)))
        return asked

    def _question(self, peer: str, is_behind: IsBehind, now: int) -> Times:
        """Of each type the least time that is awaited elsewhere and not reached behind `peer`."""
        least: Times = {}
        others = [times for toward, times in self._awaited.items() if toward != peer]
        for times in (*self._expected, self._read, *others):
            for name, time in times.items():
                if time < least.get(name, time + 1) and is_behind(peer, name, time):
                    least[name] = time
        asked = self._asked.get(peer, {})
        return {
            name: time
            for name, time in least.items()
            if name not in asked or asked[name][0] != time or now - asked[name][1] >= ASK_AGAIN_MS
        }

    # --- what is owed ----------------------------------------------------------------------

    def owe(self, toward: str, now: int) -> None:
        """Note that progress was not sent to a neighbour."""
        self._owed.setdefault(toward, now)

    def settle(self, toward: str, now: int) -> None:
        """Note that all was sent to it."""
        self._owed.pop(toward, None)
        self._sent_ms[toward] = now

    def awaited_by(self, toward: str) -> Times:
        """Return how far types have to come before tasks at a neighbour, or beyond, report."""
        return self._awaited.get(toward, {})

    def is_awaited(self, toward: str) -> bool:
        """Return if a neighbour waits for anything."""
        return bool(self._awaited.get(toward))

    def lacking_ms(self, promised: Mapping[str, int | None], soon_ms: int) -> int | None:
        """Return in how long types sent here have come as far as a neighbour waits for.

        `promised` holds for the present when time alone has just moved it on; behind a question it
        may be old, so that it is to be moved on in `soon_ms`.
        """
        if self._heard:
            self._heard = False
            return soon_ms
        lacking: list[int] = []
        for times in self._awaited.values():
            for name, time in times.items():
                if (reached := promised.get(name)) is not None:
                    lacking.append(time - reached)
        return max(min(lacking), soon_ms) if lacking else None

    def rides(self, toward: str, now: int) -> bool:
        """Return if what is owed is to go with a frame that goes anyway."""
        return toward in self._owed and now - self._sent_ms.get(toward, now) >= self._owed_ms // 2

    def due(self, reached: Callable[[str, str], tuple[float, bool]], now: int) -> list[str]:
        """Return the neighbours to whom progress is to be sent now.

        `reached` tells of a neighbour and a type how far those origins have come that are heard of
        there, and if these are all.
        """
        due = []
        for toward, times in self._awaited.items():
            come = False
            for name in list(times):
                least, whole = reached(toward, name)
                if least >= times[name]:
                    come = True
                    if whole:
                        del times[name]
                        self._changed = True
            if come and toward in self._owed:
                due.append(toward)
        if self._hurried:
            self._hurried = {peer: until for peer, until in self._hurried.items() if until >= now}
            due += [toward for toward in self._hurried if toward in self._owed]
        for toward in self._owed:
            if self._due_ms(toward) <= now:
                due.append(toward)
        return list(dict.fromkeys(due))

    def next_wake(self) -> int | None:
        """Return when something is due, if nothing else happens before."""
        wakes = map(self._due_ms, self._owed)
        return min(wakes if self._look_at is None else (self._look_at, *wakes), default=None)

    def _due_ms(self, toward: str) -> int:
        since = self._owed[toward]
        return max(since, self._sent_ms.get(toward, since) + self._owed_ms)


STORED_MS = 500  # origins are told at most so often, where one of them waits for it
STORED_MS_MAX = 60_000  # else; then of all that is new
FAR = 1_024  # positions, behind which an origin keeps what it might let go of

Say = Callable[[str, Any, int], None]


class StoredReports:
    """The reports of one host, and those of others that pass it.

    `unstored` returns, by the ways and what origins were told, what these are not told yet;
    `single` makes a report of one row for neighbours of the version before.
    """

    def __init__(  # noqa: PLR0917  # what a broker lends it
        self,
        me: str,
        via: Mapping[str, str],
        version: Callable[[str], int],
        unstored: Callable[[Mapping[str, str], Mapping[str, int]], list[StoredRow]],
        say: Say,
        single: Callable[[str, str, int, int], Any],
    ) -> None:
        self.told_ms = 0
        self.positions: dict[str, int] = {}  # by origin: what it was told
        self._me = me
        self._via = via
        self._version = version
        self._unstored = unstored
        self._say = say
        self._single = single

    def due(self) -> int | None:
        """Return when origins are to be told; None where there is nothing to tell."""
        rows = self._unstored(self._via, self.positions)
        if not rows:
            return None
        for origin, _, upto in rows:
            if upto - self.positions.get(origin, -FAR) >= FAR:
                return self.told_ms + STORED_MS
        return self.told_ms + STORED_MS_MAX

    def hurry(self, origin: str) -> None:
        """Tell an origin soon: it waits, or may have lost what it was told."""
        self.positions.pop(origin, None)

    def wake(self, now: int, after: int) -> None:
        """Tell origins if it is time for it."""
        due = self.due()
        if due is not None and due <= now:
            self.tell(now, after)

    def tell(self, now: int, after: int) -> None:
        """Tell all origins what they do not know, behind the record `after`."""
        self.told_ms = now
        rows = self._unstored(self._via, self.positions)
        self.positions.update({origin: position for origin, _, position in rows})
        self.pass_on("", StoredUpto(self._me, tuple(rows)), after)

    def pass_on(self, peer: str, stored: StoredUpto, after: int = 0) -> None:
        """Say a host's report on the way to each of the origins, but not back to `peer`."""
        by_way: dict[str, list[StoredRow]] = {}
        for row in stored.rows:
            via = self._via.get(row[0], peer)
            if via != peer:
                by_way.setdefault(via, []).append(row)
        for via, rows in by_way.items():
            if self._version(via) >= PROGRESS_SINCE:
                self._say(via, StoredUpto(stored.host, tuple(rows)), after)
                continue
            for origin, life, position in rows:
                self._say(via, self._single(stored.host, origin, life, position), after)
