"""Reading a planned range of one broker's log.

Owns the pages of a range, the choice of their form and the patience with a broker that is away.
Must not know how ranges are planned. Invariant: all rows of the range are given, or an error says
which are not there; with `failOnDataLoss` off, what retention took is left out and told.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
from pyspark.sql.datasource import InputPartition

from server.source.columnar import ColumnPage, Columns
from server.source.fanout import ahead, at_once
from server.source.history import HistoryGap, note_gap, page_in
from server.source.log import AwayError, EpochError, FormError, GoneError, Log, TooLargeError, tell
from server.source.options import SourceOptions
from server.source.planning import LostError, gap, going_on
from server.source.rows import Page, RowOrigin, chosen, has_msgpack, mark_alone, page_of

AGAIN_S: Final = 0.25
AGAIN_S_MAX: Final = 5.0
TASK_ROWS: Final = 10_000  # more of them are worth a task of their own
TASK_RANGES: Final = 8


class LogRange:
    """A half-open range of the log of one broker.

    What ends before `late_ms` comes too late. `mark_ms` goes along with each row, and by itself
    where there is none and it has to `arrive`. `files` are those of a history that have the rows.
    """

    late_ms: int | None = None
    mark_ms: int | None = None
    arrive: bool = False
    files: tuple[str, ...] | None = None  # None: the broker is asked
    copy: "LogCopy | None" = None  # None: the broker itself is asked

    def __init__(self, broker: str, address: str, epoch: str, begin: int, end: int) -> None:
        self.broker = broker
        self.address = address
        self.epoch = epoch
        self.begin = begin
        self.end = end


class LogCopy(NamedTuple):
    """The same rows in the log of the broker that took over, at offsets greater by `behind`."""

    broker: str
    address: str
    epoch: str
    behind: int

    def of(self, part: LogRange) -> LogRange:
        """Return where a range is read here."""
        begin, end = part.begin + self.behind, part.end + self.behind
        return LogRange(self.broker, self.address, self.epoch, begin, end)


class ReadTask(InputPartition):
    """Ranges that one task of Spark's reads, one after the other."""

    def __init__(self, ranges: Sequence[LogRange]) -> None:
        super().__init__(tuple((part.broker, part.begin, part.end) for part in ranges))
        self.ranges = list(ranges)


def tasks_of(options: SourceOptions, ranges: Sequence[LogRange]) -> list[ReadTask]:
    """The ranges, in their order, in as many tasks as are worth it.

    A task costs Spark about as much as two thousand rows, and the request for a range a broker's
    answer to wait for: with many small brokers most of a batch would be waiting and beginning.
    """
    rows = sum(part.end - part.begin for part in ranges)
    wanted = max(rows // TASK_ROWS, -(-len(ranges) // TASK_RANGES), 1)
    count = min(wanted, options.tasks_max)
    tasks: dict[int, list[LogRange]] = {}
    before = 0
    for part in ranges:
        size = part.end - part.begin
        # That in whose share of the rows its middle is; what has none may stand behind the last.
        share = (2 * before + size) * count // max(1, 2 * rows)
        tasks.setdefault(min(share, count - 1), []).append(part)
        before += size
    return [ReadTask(parts) for parts in _by_turns(tasks.values())]


def _by_turns(tasks: Iterable[list[LogRange]]) -> list[list[LogRange]]:
    """Put tasks so that those which Spark runs at a time ask different brokers, as far as may be.

    A broker makes one page at a time: of two tasks that ask the same one, one waits.
    """
    turns: dict[str, int] = {}
    placed = []
    for parts in tasks:
        turn = turns[parts[0].broker] = turns.get(parts[0].broker, 0) + 1
        placed.append((turn, parts))
    return [parts for _, parts in sorted(placed, key=lambda pair: pair[0])]


class Stretch(NamedTuple):
    """All that is to be read of the log of one broker: a half-open range of one epoch."""

    broker: str
    epoch: str
    begin: int
    end: int


def ranges_of(options: SourceOptions, stretches: Sequence[Stretch]) -> list[LogRange]:
    """The stretches, cut into what one task reads at most, at the edges of pages."""
    return [part for parts in ranges_apart(options, stretches, options.brokers) for part in parts]


def ranges_apart(
    options: SourceOptions, stretches: Sequence[Stretch], brokers: Iterable[tuple[str, str]]
) -> list[list[LogRange]]:
    """Return the ranges of each stretch; `brokers` are names and addresses."""
    rows_all = sum(max(0, stretch.end - stretch.begin) for stretch in stretches)
    share = rows_all // options.tasks_max
    pages = max(1, -(-share // options.page_rows)) * options.page_rows
    rows, addresses = min(options.split_rows, pages), dict(brokers)
    apart: list[list[LogRange]] = []
    for broker, epoch, first, end in stretches:
        apart.append([])
        begin = first
        while begin < end:
            to = page_end(begin, end, rows)
            apart[-1].append(LogRange(broker, addresses[broker], epoch, begin, to))
            begin = to
    return apart


def page_end(begin: int, end: int, rows: int) -> int:
    """Return the end of what begins there: that of the range, or of the page of so many offsets.

    Pages are at fixed places of a log, not counted from where a reader is, so that all readers ask
    for the same ones: a broker then need not make them again.
    """
    return min(end, (begin // rows + 1) * rows)


class Late:
    """Counts what comes later than its readers wait for, to be told once for a range."""

    def __init__(self, part: LogRange) -> None:
        self._part = part
        self._offsets: list[int] = []  # the first and the last
        self._count = 0

    def note(self, page: "Page | ColumnPage") -> None:
        """Look at a page."""
        late_ms = self._part.late_ms
        offsets = [] if late_ms is None else page.before(late_ms)
        if offsets:
            self._count += len(offsets)
            self._offsets = [*self._offsets[:1], *offsets[:1]][:1] + offsets[-1:]

    def tell(self) -> None:
        """Say what there was, if anything."""
        if self._count:
            first, last = self._offsets
            tell(
                f"broker {self._part.broker}: {self._count} results among offsets {first} to {last}"
                f" come later than the windows that they are of: the broker or their subscription"
                f" was not there by then, or was waited for no more"
            )


class RangeReader:
    """One pass over a range."""

    def __init__(
        self,
        options: SourceOptions,
        columns: Sequence[str],
    ) -> None:
        self._options = options
        self._columns = columns
        self._ended = threading.Event()
        self._forms = _forms(options.form)

    def task_batches(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in order. Raises LogError."""
        rows = sum(part.end - part.begin for part in task.ranges)
        if rows > self._options.page_rows:
            made = (batch for part in task.ranges for batch in self.batches(part))
            return ahead(made, self._ended)
        return at_once([partial(self.batches, part) for part in task.ranges], self._ended)

    def batches(self, part: LogRange) -> Iterator[pa.RecordBatch]:
        """The rows, in order. Raises LogError."""
        origin = RowOrigin(part.broker, part.epoch, part.mark_ms)
        late = Late(part)
        arrived = False
        try:
            for page in self._pages(part):
                late.note(page)
                if page.row_count:
                    arrived = True
                    yield page.shown(origin, self._columns)
            if part.arrive and not arrived:
                yield mark_alone(origin, self._columns)
        finally:
            late.tell()

    def _pages(self, part: LogRange) -> Iterator[Page | ColumnPage]:
        """The pages of a range, of its broker or its files."""
        options = self._options
        if part.files is not None:
            source, span = (part.broker, part.epoch), (part.begin, part.end)
            yield page_in(part.files, source, span, self._columns, options.subscriptions)
            return
        asked = Columns(self._columns, options.subscriptions, timed=part.late_ms is not None)
        if part.copy is None:
            yield from self._asked(part, asked)
            return
        for page in self._asked(part.copy.of(part), asked):
            yield page.moved(-part.copy.behind)

    def _asked(self, part: LogRange, asked: Columns) -> Iterator[Page | ColumnPage]:
        """The pages of a range of a log."""
        options = self._options
        with closing(Log(part.broker, part.address, options.login)) as log:
            offset = part.begin
            while offset < part.end:
                to = page_end(offset, part.end, options.page_rows)
                try:
                    offset, page = self._page(log, part, (offset, to), asked)
                except GoneError as gone:
                    offset = self._passed(part, offset, min(gone.earliest, part.end))
                except EpochError:
                    if options.fail_on_loss:
                        raise
                    offset = self._passed(part, offset, part.end)
                else:
                    yield page

    def _page(
        self, log: Log, part: LogRange, span: tuple[int, int], asked: Columns
    ) -> tuple[int, Page | ColumnPage]:
        """The page of a span; it may end before that where it is too much for one answer."""
        begin, to = span
        pause_s, deadline = AGAIN_S, time.monotonic() + self._options.retry_s
        while True:
            form = self._forms[0]
            try:
                if form == "arrow":
                    data = log.columns(part.epoch, begin, to, asked.names, asked.pushed)
                    columnar = asked.page_of(data)
                    if columnar is not None:
                        return to, columnar
                else:
                    data = log.page(part.epoch, begin, to, form)
                return to, chosen(page_of(form, data), self._options.subscriptions)
            except TooLargeError as large:
                if not begin < large.fits < to:
                    raise
                to = large.fits
            except FormError:
                others = [other for other in self._forms if other != form]
                if not others:
                    raise
                self._forms = others
            except AwayError:
                if time.monotonic() + pause_s > deadline or self._ended.wait(pause_s):
                    raise
                pause_s = min(2 * pause_s, AGAIN_S_MAX)

    def _passed(self, part: LogRange, begin: int, end: int) -> int:
        message = gap(part.broker, begin, end)
        if self._options.fail_on_loss or end <= begin:
            raise LostError(f"{message}{going_on(self._options)}")
        tell(message)
        note_gap(self._options.note_gaps, HistoryGap(part.broker, part.epoch, begin, end))
        return end


def _forms(named: str) -> list[str]:
    """Those to try, the best first."""
    if named != "auto":
        return [named]
    return ["arrow", "msgpack" if has_msgpack() else "json"]
