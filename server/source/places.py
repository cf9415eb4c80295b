"""How far each broker's log was read: the offset of the source, as Spark keeps it.

Owns that form, and what a broker tells of results that it has of a lost one. Must not know brokers'
addresses. Invariant: it is keyed by the broker's name, so that addresses and the order of brokers
may change; a broker that is no more stays in it, so that it goes on where it was when it comes
back. Each result of a lost log is read once, at the lost broker or at its heir; the place at the
lost broker says up to where, wherever that was. A lost log is known by its epoch: the broker may
come back with another disk, or be read under another name.

Spark writes down where a batch ends before it is read, and will not have it end elsewhere. What was
to be read of a broker that is gone by then would keep all others waiting. So it is postponed: that
is noted beside the checkpoint before the batch is read, the batch is then without it however often
it is run, and the next one goes back to where the range began. A `turn` counts how often that was,
so that a note is of one batch alone.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

POSTPONED: Final = "postponed"  # a folder beside that of Spark's own
AWAY: Final = "away"  # before the name of a broker, in the name of a note; no range has such a one
_FORM = re.compile(
    r"([^:]*):(\d{1,18})"
    r"(?::(-?\d{1,18})?(?::(-?\d{1,18})?(?::(\d{1,18})?(?::(\d{1,18}))?)?)?)?"
)


class LogPlace(NamedTuple):
    """In the log of an epoch, the next offset; and the event time reached before it, in ms.

    `mark_ms` is where the watermark stood, for all brokers, behind the batch that ended here. That
    batch read from `first` on: what is before was read at another broker (None: nothing was).
    `turn` is how often reading went back to what was postponed.
    """

    epoch: str
    next: int
    reached_ms: int | None = None
    mark_ms: int | None = None
    first: int | None = None
    turn: int = 0

    def text(self) -> str:
        """As it stands in the checkpoint."""
        times = ["" if ts is None else str(ts) for ts in (self.reached_ms, self.mark_ms)]
        times.append("" if self.first is None else str(self.first))
        times.append(str(self.turn) if self.turn else "")
        return ":".join((self.epoch, str(self.next), *times)).rstrip(":")


class PostponedRange(NamedTuple):
    """A half-open range of a broker's log that a batch was to read, and has left out."""

    broker: str
    epoch: str
    begin: int
    end: int
    turn: int


class Postponed:
    """The ranges that batches of one stream have left out; None: it leaves out nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def put(self, left: PostponedRange) -> None:
        """Note a range, so that it stays noted whatever dies. Raises OSError."""
        if self._folder is None:
            raise ValueError("this stream leaves out nothing")
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in (self._folder / ":".join(map(str, left)), self._folder):
            flags = os.O_RDONLY if path == self._folder else os.O_WRONLY | os.O_CREAT
            opened = os.open(path, flags, 0o666)
            try:
                os.fsync(opened)
            finally:
                os.close(opened)

    def away_s(self, broker: str, now_s: float, seen_s: float) -> float:
        """Return for how long a broker is away; a restart is no new beginning.

        This run has seen it away for `seen_s`. `now_s` is of the clock on the wall, as the last run
        may have been on another machine.
        """
        if self._folder is None:
            return seen_s
        path = self._folder / f"{AWAY}:{broker}"
        try:
            return max(seen_s, now_s - float(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_text(str(now_s - seen_s), encoding="utf-8")
            return seen_s

    def forget_away(self, broker: str) -> None:
        """Forget that a broker was away."""
        if self._folder is not None:
            (self._folder / f"{AWAY}:{broker}").unlink(missing_ok=True)

    def holds(self, left: PostponedRange) -> bool:
        """Tell whether a batch has left this out."""
        return self._folder is not None and (self._folder / ":".join(map(str, left))).exists()

    def rewound(self, places: Mapping[str, LogPlace]) -> dict[str, LogPlace]:
        """Return the places before which everything was read, of those where a batch has ended."""
        read = dict(places)
        for left in self._noted():
            place = places.get(left.broker)
            ended = (left.epoch, left.end, left.turn)
            if place is not None and (place.epoch, place.next, place.turn) == ended:
                read[left.broker] = place._replace(next=left.begin, turn=place.turn + 1)
        return read

    def forget(self, places: Mapping[str, LogPlace]) -> None:
        """Drop the notes of batches that lie before one which has ended here."""
        for left in self._noted():
            place = places.get(left.broker)
            if place is not None and left.turn < place.turn and self._folder is not None:
                (self._folder / ":".join(map(str, left))).unlink(missing_ok=True)

    def _noted(self) -> Iterator[PostponedRange]:
        if self._folder is None or not self._folder.is_dir():
            return
        for name in sorted(file.name for file in self._folder.iterdir()):
            broker, *words = name.split(":")
            if len(words) == 4 and all(word.isdecimal() for word in words[1:]):
                epoch, begin, end, turn = words
                yield PostponedRange(broker, epoch, int(begin), int(end), int(turn))
            # Else it is no note: a file that somebody, or a file system, has put there.


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
    postponed = Postponed(checkpoint.parent / POSTPONED)
    try:
        done = max(_numbers_in(checkpoint / "commits"))
        lines = (checkpoint / "offsets" / str(done)).read_text(encoding="utf-8").splitlines()[2:]
        places = [places_of(json.loads(line)) for line in lines if line.startswith("{")]
        return [postponed.rewound(each) for each in places]
    except (OSError, ValueError):
        return []


def unfinished_in(checkpoint: Path) -> int | None:
    """Return the number of the batch that was planned and is not done; None where there is none."""
    try:
        planned = max(_numbers_in(checkpoint / "offsets"), default=-1)
        done = max(_numbers_in(checkpoint / "commits"), default=-1)
    except OSError:
        return None
    return planned if planned > done else None


def _numbers_in(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit()]


def _place(name: str, value: object) -> LogPlace:
    match = _FORM.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"the checkpoint holds {value!r} for {name}: not of this source")
    reached_ms, mark_ms, first = (int(text) if text else None for text in match.group(3, 4, 5))
    return LogPlace(match[1], int(match[2]), reached_ms, mark_ms, first, int(match[6] or 0))


# --- results of lost logs ------------------------------------------------------------------------


class InheritedRun(NamedTuple):
    """Results that follow each other in both logs: `size` from offset `theirs`, here `own`."""

    theirs: int
    own: int
    size: int


class Inherited(NamedTuple):
    """The results of log `epoch` of `home` from offset `first` on, before `end`, in another log."""

    home: str
    epoch: str
    first: int
    end: int
    runs: tuple[InheritedRun, ...]

    @property
    def own_begin(self) -> int:
        """Return the offset of the first of them in the heir's log."""
        return self.runs[0].own if self.runs else 0

    @property
    def own_end(self) -> int:
        """Return the offset behind the last of them in the heir's log."""
        return self.runs[-1].own + self.runs[-1].size if self.runs else 0

    def own_from(self, theirs: int) -> int:
        """Return where the first result stands that came at an offset of the lost log or later."""
        for run in self.runs:
            if theirs < run.theirs + run.size:
                return run.own + max(0, theirs - run.theirs)
        return self.own_end

    def cut(self, begin: int, end: int) -> Iterator[InheritedRun]:
        """Yield the runs within a range of the lost log."""
        for theirs, own, size in self.runs:
            low, high = max(begin, theirs), min(end, theirs + size)
            if low < high:
                yield InheritedRun(low, own + low - theirs, high - low)

    def read_upto(self, own: int) -> int:
        """Return the offset of the lost log up to which all is read with what is before `own`."""
        for run in self.runs:
            if own < run.own + run.size:
                return run.theirs + max(0, own - run.own)
        return self.end


class LogHeir(NamedTuple):
    """The broker that has results of a lost log."""

    name: str
    inherited: Inherited

    def is_unread(self, places: Mapping[str, LogPlace]) -> bool:
        """Tell if results of the lost log are still to be read here."""
        place = places.get(self.name)
        return place is None or place.next < self.inherited.own_end


class CopiedRange(NamedTuple):
    """A half-open range of a lost log, and the offset from which `heir` has the same results."""

    heir: str
    begin: int
    end: int
    own: int


class LogHeirs:
    """Those that are known; `told` is what each broker's log says of itself."""

    def __init__(self, told: Mapping[str, Sequence[Inherited]]) -> None:
        self._by_epoch: dict[str, list[LogHeir]] = {}
        self._by_home: dict[str, LogHeir] = {}
        for name, rows in told.items():
            for inherited in rows:
                heir = self._by_home[inherited.home] = LogHeir(name, inherited)
                self._by_epoch.setdefault(inherited.epoch, []).append(heir)
        for heirs in self._by_epoch.values():
            heirs.sort(key=lambda heir: (heir.inherited.end, heir.name))

    def of(self, name: str, place: LogPlace | None) -> LogHeir | None:
        """Return who has what is next of a broker's log; of one never read, by its name.

        A log may be lost several times, and its broker come back in between.
        """
        if place is None:
            return self._by_home.get(name)
        heirs = self._by_epoch.get(place.epoch, [])
        ahead = [heir for heir in heirs if place.next < heir.inherited.end]
        return next(iter(ahead or heirs[-1:]), None)

    def parts(self, epoch: str, begin: int, end: int) -> list[tuple[LogHeir, int, int]]:
        """Cut a range of a lost log by who took over first; the last has what is behind its copies.

        Nothing where it begins behind all copies: that was found when the lost broker was back.
        """
        heirs = [heir for heir in self._by_epoch.get(epoch, []) if begin < heir.inherited.end]
        cut = []
        for heir in heirs:
            to = end if heir is heirs[-1] else min(end, heir.inherited.end)
            if begin < to:
                cut.append((heir, begin, to))
                begin = to
        return cut


def cut(
    heirs: LogHeirs,
    reader: tuple[str, Sequence[Inherited]],
    places: Mapping[str, LogPlace],
    end: int,
) -> tuple[int, int, str]:
    """Return what of an heir's log can be read in one batch up to `end`, and of which lost broker.

    `reader` is the heir with what it has. What was read at the lost broker is passed over. "": it
    is none of a lost broker that is read.
    """
    name, inherited = reader
    begin = places[name].next
    for each in inherited:
        home = next((name for name, place in places.items() if place.epoch == each.epoch), None)
        if home is None or begin >= each.own_end:
            continue
        following = heirs.of(home, places[home])
        if begin < each.own_begin or (following is not None and following.inherited.end < each.end):
            return begin, max(begin, min(end, each.own_begin)), ""
        begin = max(begin, each.own_from(places[home].next))
        return begin, min(end, max(begin, each.own_end)), home
    return begin, end, ""


class WholeLog(NamedTuple):
    """A log of which all is read: its offsets, and what it has of lost ones."""

    epoch: str
    begin: int
    end: int
    inherited: Sequence[Inherited] = ()


def read_once(logs: Mapping[str, WholeLog]) -> dict[str, list[tuple[int, int]]]:
    """Return the ranges of each log so that a result of a lost one is read in one place.

    That is the lost log, where its broker is back with it, else the heir that took over first.
    """
    ranges = {name: [(log.begin, log.end)] for name, log in logs.items()}
    had = {log.epoch: [(log.begin, log.end)] for log in logs.values()}
    heirs = [(each.end, name, each) for name, log in logs.items() for each in log.inherited]
    for _, name, inherited in sorted(heirs):
        begin, end = logs[name].begin, logs[name].end
        read = had.setdefault(inherited.epoch, [])
        own = []
        for theirs, first, size in inherited.runs:
            shift = first - theirs
            for low, high in read:
                repeated = max(low, theirs) + shift, min(high, theirs + size) + shift
                ranges[name] = _without(ranges[name], *repeated)
            own.append((max(begin, first) - shift, min(end, first + size) - shift))
        read += own
    return ranges


def _without(ranges: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Return what is left of ranges without one of them, which may be empty."""
    if low >= high:
        return list(ranges)
    pairs = [((begin, min(end, low)), (max(begin, high), end)) for begin, end in ranges]
    return [(begin, end) for pair in pairs for begin, end in pair if begin < end]


def inherited_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Inherited, ...]:
    """Read what a log says of itself. Raises KeyError, TypeError, ValueError."""
    return tuple(
        [
            Inherited(
                str(row["home"]),
                str(row["epoch"]),
                int(row["from"]),
                int(row["to"]),
                tuple([InheritedRun(*map(int, run)) for run in row["runs"]]),
            )
            for row in rows
        ]
    )
