"""The data source itself: what Spark asks, translated for the parts beside it.

Owns the classes that Spark knows. Must not know HTTP. Invariant: a reader is made anew wherever
Spark wants one, so that it holds nothing but options until it is asked for something.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from server.source.backfill import (
    Backfill,
    HistoryLookout,
    HistoryStretch,
    JoinedLog,
    backfill_of,
)
from server.source.filters import ReadBounds
from server.source.garbage import look_seldom
from server.source.log import AwayError, Log, LogError, LogStanding, tell
from server.source.options import OptionError, SourceOptions
from server.source.places import (
    LogPlace,
    Postponed,
    PostponedRange,
    WholeLog,
    offset_of,
    places_of,
    read_once,
)
from server.source.planning import LostError, Planner, mark_of
from server.source.range_reader import (
    LogCopy,
    LogRange,
    RangeReader,
    ReadTask,
    Stretch,
    ranges_apart,
    ranges_of,
    tasks_of,
)
from server.source.rows import COLUMNS, MARK, MARKED_SCHEMA, SCHEMA
from server.source.watch import KnownBroker, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATHER_S = 60.0  # how long a bounded run waits for brokers that are away


class HeadwaterSource(DataSource):
    """`format("headwater")`; the options stand in `options`, the columns in `rows`."""

    @classmethod
    def name(cls) -> str:
        """As users write it."""
        return "headwater"

    def schema(self) -> str:
        """All columns; a reader may be given fewer, in any order."""
        return MARKED_SCHEMA if SourceOptions.of(self.options).by_promises else SCHEMA

    def reader(self, schema: StructType) -> "BatchReader":
        """For `spark.read`."""
        options = SourceOptions.of(self.options)
        if options.history is not None:
            raise OptionError("history is for streams: spark.read.parquet(folder) reads all of it")
        return BatchReader(options, _columns(schema, options))

    def streamReader(self, schema: StructType) -> "StreamReader":  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        options = SourceOptions.of(self.options)
        return StreamReader(options, _columns(schema, options))


class BatchReader(DataSourceReader):
    """All that the logs hold at the moment."""

    def __init__(self, options: SourceOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = columns
        self.bound = ReadBounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Read no more than these leave; Spark looks at each row all the same."""
        self.bound.take(filters)
        both = self.bound.subscriptions
        if both is not None and self.options.subscriptions:
            both &= self.options.subscriptions
        if both:
            self.options = replace(self.options, subscriptions=both)
        self.bound.subscriptions = both
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges from the beginning to the end of each log. Raises LogError."""
        bound = self.bound
        names = [] if bound.empty else [name for name, _ in self.options.brokers]
        wanted = [name for name in names if bound.brokers is None or name in bound.brokers]
        logs = [Log(name, address, self.options.login) for name, address in self.options.brokers]
        by_name = {log.broker: log for log in logs}
        stretches: list[Stretch] = []
        try:
            standings = self._standings(by_name, wanted)
            whole = {name: WholeLog(*log[:3], log.inherited) for name, log in standings.items()}
            for name, ranges in read_once(whole).items():
                if name in wanted:
                    first, behind = self._bounds(by_name[name], standings[name])
                    epoch = standings[name].epoch
                    for begin, end in ranges:
                        stretches.append(Stretch(name, epoch, max(begin, first), min(end, behind)))
        finally:
            for log in logs:
                log.close()
        ranges_all = ranges_of(self.options, stretches)
        return tasks_of(self.options, ranges_all) or [InputPartition(None)]

    def _bounds(self, log: Log, standing: LogStanding) -> tuple[int, int]:
        """Return what is asked of a log: the first offset, and that behind the last."""
        bound = self.bound
        first = bound.first
        if bound.after_ms is not None:
            first = max(first, log.first_offset_after(standing.epoch, bound.after_ms))
        return first, standing.end if bound.behind is None else bound.behind

    def _standings(self, logs: Mapping[str, Log], wanted: Sequence[str]) -> dict[str, LogStanding]:
        """Ask these brokers, and where one was taken over all: what is read of one hangs on others.

        Raises LogError where one is away, but where it was taken over and loss is accepted.
        """
        standings: dict[str, LogStanding] = {}
        away: dict[str, AwayError] = {}
        for name in (*wanted, *(name for name in logs if name not in wanted)):
            taken_over = any(log.inherited for log in standings.values())
            if name not in wanted and not away and not taken_over:
                break
            try:
                standings[name] = logs[name].offsets()
            except AwayError as error:
                away[name] = error
        heirs = {each.home: name for name, log in standings.items() for each in log.inherited}
        for name in wanted:
            if name in away and name in heirs and not self.options.fail_on_loss:
                tell(f"{away[name]}; broker {heirs[name]} took over: its results are read there")
            elif name in away and name in heirs:
                raise LostError(
                    f"{away[name]}; broker {heirs[name]} took over what nobody had acknowledged."
                    " What else its log had is not read: accept that with failOnDataLoss = false"
                )
            elif name in away and self.options.on_away == "fail":
                raise away[name]
            elif name in away:
                raise AwayError(
                    f"broker {name} at {dict(self.options.brokers)[name]} is away: a batch reads"
                    " all brokers or none"
                )
        return standings

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        return _read(self.options, self.columns, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream over the logs; `packed` makes of the rows of a task what goes to Spark."""

    def __init__(
        self,
        options: SourceOptions,
        columns: Sequence[str],
        packed: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]] = iter,
    ) -> None:
        self.options = options
        self.columns = columns
        self.packed = packed
        self._watch: Watch | HistoryLookout | None = None
        self._backfill: Backfill | None = None
        self._planner: Planner | None = None
        self._logs: dict[str, Log | JoinedLog] = {}
        self._targets: Mapping[str, KnownBroker] | None = None
        self._said: dict[str, tuple[str, int]] = {}  # what was acknowledged, as (epoch, offset)
        self._postponed = Postponed(Path(options.postponed) if options.postponed else None)
        self._begun: object = None  # the batch whose ranges were given last

    # Spark's names, one and all.
    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Nothing: each broker is begun when it is seen first."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how many rows a batch may have."""
        rows_max = self.options.batch_rows_max
        return ReadMaxRows(rows_max) if rows_max else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From now on to where the logs end now, and then no further. Raises LogError."""
        wait_s = GATHER_S if self.options.away_s is None else self.options.away_s
        for broker in self._look().values():
            if isinstance(broker.away, AwayError):
                tell(f"{broker.away}; it is waited for, {wait_s:g} s at most")
        watch = self._watch
        assert watch is not None
        watch.until([name for name, _ in self._brokers()], wait_s)
        brokers = self._look()
        for broker in brokers.values():
            if broker.away is not None:
                raise broker.away  # a bounded run reads all brokers or none
        self._targets = brokers

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return the offsets at which the batch that begins at `start` ends. Raises LogError."""
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        places = places_of(start)
        back = self._postponed.rewound(places)
        if back != places:
            return offset_of(back)  # a batch without rows, so that it stands in the checkpoint
        self._postponed.forget(places)
        live = self._targets is None
        brokers = self._look() if self._targets is None else self._targets
        try:
            ends = self._plans().plan(places, brokers, rows_max, live=live)
        except AwayError:
            # It went while it was asked for event times: the next plan knows.
            if self.options.on_away == "fail" or self._targets is not None:
                raise
            return offset_of(places)
        # A broker keeps results from where we say that we are. Spark says so of a batch once there
        # is a next one, days later after a bounded run, and of where a log is begun never.
        self._say_read(
            {
                name: places[name] if name in places and places[name].epoch == end.epoch else end
                for name, end in ends.items()
            }
        )
        return offset_of(ends)

    def reportLatestOffset(self) -> dict[str, str] | None:  # noqa: N802
        """Return the ends of the logs: what is left to read is told by them."""
        if self._watch is None:
            return None
        return offset_of(
            {
                name: LogPlace(broker.standing.epoch, broker.standing.end)
                for name, broker in self._look().items()
                if broker.standing is not None
            }
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The ranges of a batch; brokers that are seen first in it have none yet."""
        before, after = places_of(start), places_of(end)
        # What was read at an heir counts for the lost log: they are read in one batch, or neither.
        moved = (place for name, place in after.items() if before.get(name) != place)
        whole = self.options.whole_first if self._begun is None else self._begun == (start, end)
        whole = whole or any(place.first is not None for place in moved)
        self._begun = (start, end)
        stretches: list[Stretch] = []
        for name, _ in self._brokers():
            begin, stop = before.get(name), after.get(name)
            if begin is not None and stop is not None and begin.epoch == stop.epoch:
                first = begin.next if stop.first is None else max(stop.first, begin.next)
                stretch = Stretch(name, begin.epoch, first, stop.next)
                if not self._left_out(stretch, begin.turn, whole=whole):
                    stretches.append(stretch)
        missing = [
            name
            for name, place in after.items()
            if name not in dict(self._brokers()) and before.get(name, place) != place
        ]
        if missing:
            raise OptionError(
                f"a batch that was planned reads broker {missing[0]}: it must be among the brokers"
                f" once more before it can be taken out"
            )
        ranges = self._ranges(stretches)
        if self.options.late_s is not None:
            delay_ms = round(self.options.late_s * 1000)
            late_ms, mark_ms = mark_of(before, delay_ms), mark_of(after, delay_ms)
            moves = self.options.by_promises and mark_ms != late_ms
            if moves and not ranges:
                ranges = [self._empty(after)]
            for part in ranges:
                part.late_ms = late_ms
                part.mark_ms = mark_ms if self.options.by_promises else None
                # What is read may be of other subscriptions, all of it.
                part.arrive = moves and part is ranges[-1]
        return tasks_of(self.options, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        return self.packed(_read(self.options, self.columns, partition))

    def _left_out(self, stretch: Stretch, turn: int, *, whole: bool) -> bool:
        """Tell whether a batch is without what was planned of a broker, which is away by now.

        That is decided when the batch is begun, and noted. Asked once more, as the batch has
        another sink or may be in one, it has to be as `whole` as it was: what is noted stays out,
        and nothing else. A bounded run reads all brokers or none.
        """
        left = PostponedRange(*stretch, turn)
        if self._postponed.holds(left):
            return True
        options = self.options
        if whole or options.postponed is None or self._targets is not None:
            return False
        if stretch.begin >= stretch.end or options.on_away == "fail":
            return False
        brokers, past = self._look(), self._history()
        seen = brokers.get(stretch.broker)
        if seen is None or not isinstance(seen.away, AwayError):
            return False
        if past is not None and all(passage.kept for passage in past.passages(*stretch)):
            return False
        if self._plans().copies(stretch, brokers) is not None:
            return False
        # A job by event time goes on without a broker once it was waited for: its rows come late.
        if options.align and self._plans().is_waited_for(stretch.broker, seen):
            return False
        self._postponed.put(left)
        tell(
            f"{seen.away}; offsets {stretch.begin} to {stretch.end - 1} were to be read of it:"
            " others go on, and these are read when it is back"
        )
        return True

    def _ranges(self, stretches: Sequence[Stretch]) -> list[LogRange]:
        """The ranges of these stretches, each of one place where it can be read."""
        past = self._history()
        cut: list[Stretch] = []
        kept: set[Stretch] = set()
        copies: dict[Stretch, LogCopy] = {}
        for stretch in stretches:
            whole = [HistoryStretch(stretch.begin, stretch.end, kept=False)]
            for begin, end, in_history in past.passages(*stretch) if past else whole:
                part = Stretch(stretch.broker, stretch.epoch, begin, end)
                if in_history:
                    kept.add(part)
                elif not self.options.brokers:
                    continue  # it was told that it is nowhere
                elif (copied := self._copies(part)) is not None:
                    copies |= copied
                    cut += copied
                    continue
                cut.append(part)
        apart = ranges_apart(self.options, cut, self._brokers())
        ranges: list[LogRange] = []
        for stretch, parts in zip(cut, apart, strict=True):
            for each in parts:
                if past is not None and stretch in kept:
                    each.files = past.paths(each.broker, each.begin, each.end)
                each.copy = copies.get(stretch)
            ranges += parts
        return ranges

    def _copies(self, stretch: Stretch) -> dict[Stretch, LogCopy] | None:
        """Return the parts of what was planned of a broker that was taken over since, and copies.

        None: it is asked itself. Raises LostError.
        """
        brokers, addresses = self._look(), dict(self._brokers())
        copied = self._plans().copies(stretch, brokers)
        if copied is None:
            return None
        copies = {}
        for heir, begin, end, own in copied:
            standing = brokers[heir].standing
            assert standing is not None  # it says what it has
            part = Stretch(stretch.broker, stretch.epoch, begin, end)
            copies[part] = LogCopy(heir, addresses[heir], standing.epoch, own - begin)
        return copies

    def _empty(self, after: Mapping[str, LogPlace]) -> LogRange:
        """Nothing of the first broker that there is: for the mark to go along with."""
        name, address = next(broker for broker in self._brokers() if broker[0] in after)
        place = after[name]
        part = LogRange(name, address, place.epoch, place.next, place.next)
        part.files = None if self.options.brokers else ()
        return part

    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledge: a broker need not keep what came before for this consumer."""
        self._say_read(self._postponed.rewound(places_of(end)))

    def stop(self) -> None:
        """Spark reads no more."""
        if self._watch is not None:
            self._watch.stop()
        if self._planner is not None:
            self._planner.fanout.close()
        for log in self._logs.values():
            log.close()

    # --- what is made when it is first needed -------------------------------------------------

    def _look(self) -> Mapping[str, KnownBroker]:
        if self._watch is None:
            past = self._history()
            alone = past is not None and not self.options.brokers
            self._watch = HistoryLookout(past) if past and alone else Watch(self.options)
        return self._watch.look()

    def _history(self) -> Backfill | None:
        if self._backfill is None:
            self._backfill = backfill_of(self.options)
        return self._backfill

    def _brokers(self) -> tuple[tuple[str, str], ...]:
        past = self._history()
        return self.options.brokers if past is None else past.brokers

    def _plans(self) -> Planner:
        if self._planner is None:
            past = self._history()
            self._planner = Planner(
                self.options, self._log, backfill=past, postponed=self._postponed
            )
        return self._planner

    def _log(self, name: str) -> Log | JoinedLog:
        if name not in self._logs:
            address = dict(self._brokers())[name]
            live = Log(name, address, self.options.login) if address else None
            past = self._history()
            if past is not None:
                self._logs[name] = past.joined(name, live)
            elif live is not None:
                self._logs[name] = live
        return self._logs[name]

    def _say_read(self, places: Mapping[str, LogPlace]) -> None:
        """Acknowledge these places, where that was not done yet."""
        consumer = self.options.consumer
        if consumer is None:
            return
        brokers = self._look()
        due = {
            name: place
            for name, place in places.items()
            if name in brokers
            and brokers[name].away is None  # else it is said with the next batch as well
            and self._said.get(name) != (place.epoch, place.next)
        }
        # A broker answers once its disk has it, and the batch goes on once all have.
        self._plans().fanout.ask(lambda name: self._acknowledge(name, consumer, due[name]), due)

    def _acknowledge(self, name: str, consumer: str, place: LogPlace) -> None:
        try:
            self._log(name).ack(place.epoch, consumer, place.next)
        except AwayError:
            return
        except LogError as error:  # refused: nothing is kept for us, but nothing is wrong either
            tell(f"not acknowledged: {error}")
        self._said[name] = place.epoch, place.next


def register(spark: "SparkSession", *, by_value: bool = True) -> None:
    """Make the source known to a session.

    By value, executors need pyarrow and nothing of ours; but each task makes all of the source
    anew, which takes longer than to read a small batch. Otherwise they are to have our packages.
    """
    if by_value:
        from pyspark import cloudpickle

        import server.source as package

        cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    spark.dataSource.register(HeadwaterSource)
    # Else Spark refuses a source that would look at conditions, instead of keeping them to itself.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def _read(
    options: SourceOptions, columns: Sequence[str], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    look_seldom()
    if isinstance(partition, ReadTask):
        yield from RangeReader(options, columns).task_batches(partition)


def _columns(schema: StructType, options: SourceOptions) -> list[str]:
    names = [*COLUMNS, MARK] if options.by_promises else [*COLUMNS]
    for field in schema.fields:
        if field.name not in names:
            raise OptionError(f"there is no column {field.name[:60]}; there are {', '.join(names)}")
    return [field.name for field in schema.fields]
