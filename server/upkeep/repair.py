"""A history with gaps, filled from brokers that still have the results and from other histories.

Owns what is missing, and where it is taken from. Must not know Spark. Invariant: a row is put there
once, however often a mending is cut off and run again; what is nowhere stays a gap.

    missing ──▶ rows of brokers, then of other histories ──▶ files ──▶ list ──▶ notes of gaps

Missing is what a stream noted as lost, and every hole among offsets while files of the list are
gone: then nobody can tell a hole from a result that was in one of those.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from server.config import ConfigPart, Jobs
from server.errors import JobsError, ServerError
from server.jobs.reading import options_of
from server.source.history import (
    GAPS_FOLDER,
    History,
    HistoryGap,
    LogHistory,
    gaps_in,
    note_gap,
    page_in,
    read_history,
)
from server.source.log import LogError
from server.source.options import OptionError, SourceOptions
from server.source.range_reader import LogRange, RangeReader
from server.source.rows import COLUMNS, RowOrigin
from server.upkeep.compaction import write_rows
from server.upkeep.consumers import logs_of
from server.upkeep.folders import folder_alone
from server.upkeep.listing import change_list, check_form, last_batch, line_of, listed_files

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]


class MendedHistory(NamedTuple):
    """Sentences about each range, and whether nothing is missing any more."""

    sentences: list[str]
    whole: bool


def mend(path: Path, name: str, others: Iterable[Path], *, check: bool = False) -> MendedHistory:
    """Mend the history of a job; with `check` only say what is missing. Raises ServerError."""
    with folder_alone(path, name) as place:
        jobs, job, folder = place
        if job.kind != "history":
            raise JobsError(f"jobs.{name}: of kind {job.kind}; only a history can be mended")
        check_form(folder)
        try:
            history = read_history(folder)
            copies = [read_history(other) for other in others]
            missing = list(_missing(history))
            if not missing and (gone := _gone(folder)):
                # Before the first row that is left, or of a log of which no row is: who knows.
                return MendedHistory(gone, False)
            if check or not missing:
                return MendedHistory([_sentence(gap, "missing") for gap in missing], not missing)
            return _mended(jobs, job, history, copies, missing)
        except (LogError, OptionError) as error:
            raise ServerError(str(error)) from None


def _gone(folder: Path) -> list[str]:
    """Say which files of the list are gone."""
    return [
        f"{listed.path} is gone, and no row beside it tells which results it had: put it back from"
        " a backup"
        for listed in listed_files(folder)
        if not listed.path.is_file()
    ]


def _missing(history: History) -> Iterator[HistoryGap]:
    """Yield what is missing, each offset once: what was noted may be a hole as well."""
    for broker, logs in history.logs.items():
        for epoch, log in logs.items():
            ranges: list[tuple[int, int]] = []
            for begin, end in sorted(log.gaps):
                if ranges and begin <= ranges[-1][1]:
                    ranges[-1] = ranges[-1][0], max(end, ranges[-1][1])
                else:
                    ranges.append((begin, end))
            for begin, end in ranges:
                yield HistoryGap(broker, epoch, begin, end)


def _mended(
    jobs: Jobs, job: ConfigPart, history: History, copies: list[History], missing: list[HistoryGap]
) -> MendedHistory:
    sentences, left, lines = [], [], []
    for gap in missing:
        log = history.log(gap.broker, gap.epoch)
        assert log is not None
        open_ranges = [(gap.begin, gap.end)]
        for origin, covered, rows in _sources(jobs, job, gap, copies):
            lines += _written(history.folder, gap, covered, _fresh(rows, log))
            sentences.append(_sentence(gap._replace(begin=covered[0], end=covered[1]), origin))
            open_ranges = [part for whole in open_ranges for part in _without(whole, covered)]
        left += [gap._replace(begin=begin, end=end) for begin, end in open_ranges]
    if lines:
        change_list(last_batch(history.folder), (), lines)
    for gap in left:
        note_gap(str(history.folder), gap)
        sentences.append(_sentence(gap, "in no log and in no history that was named"))
    for gap in gaps_in(history.folder):
        if gap not in left and history.log(gap.broker, gap.epoch) is not None:
            (history.folder / GAPS_FOLDER / ":".join(map(str, gap))).unlink()
    gone = [listed for listed in listed_files(history.folder) if not listed.path.is_file()]
    for batch in dict.fromkeys(listed.batch for listed in gone):
        change_list(batch, gone)
    return MendedHistory(sentences, not left)


def _sources(
    jobs: Jobs, job: ConfigPart, gap: HistoryGap, copies: list[History]
) -> Iterator[tuple[str, tuple[int, int], "pa.Table"]]:
    """Yield who has a part of a gap, which part, and its rows; each part once."""
    done: list[tuple[int, int]] = []
    for log in logs_of(jobs, job):
        if log.broker != gap.broker:
            continue
        try:
            standing = log.offsets()
        except LogError:
            continue
        covered = max(gap.begin, standing.earliest), min(gap.end, standing.end)
        if standing.epoch == gap.epoch and covered[0] < covered[1]:
            done.append(covered)
            yield "taken from its log", covered, _of_broker(jobs, job, gap, covered)
    for copy in copies:
        kept = copy.log(gap.broker, gap.epoch)
        for covered in () if kept is None else _covered(kept, gap, done):
            done.append(covered)
            assert kept is not None
            yield f"taken from {copy.folder}", covered, _of_history(copy, kept, gap, covered)


def _covered(
    kept: LogHistory, gap: HistoryGap, done: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the parts of a gap that a history has, without those that are done."""
    parts = [(max(gap.begin, kept.first), min(gap.end, kept.end))]
    for taken in (*kept.gaps, *done):
        parts = [piece for part in parts for piece in _without(part, taken)]
    return [part for part in parts if part[0] < part[1]]


def _without(part: tuple[int, int], taken: tuple[int, int]) -> list[tuple[int, int]]:
    before = part[0], min(part[1], taken[0])
    after = max(part[0], taken[1]), part[1]
    return [piece for piece in (before, after) if piece[0] < piece[1]]


def _of_broker(
    jobs: Jobs, job: ConfigPart, gap: HistoryGap, covered: tuple[int, int]
) -> "pa.Table":
    import pyarrow as pa

    source = jobs.sources[job["source"]]
    options = options_of(source, "mend", in_step=False) | {"failOnDataLoss": "true"}
    if job["subscriptions"]:
        options["subscriptions"] = ",".join(job["subscriptions"])
    reading = SourceOptions.of({key: value for key, value in options.items() if key != "consumer"})
    part = LogRange(gap.broker, dict(reading.brokers)[gap.broker], gap.epoch, *covered)
    batches = list(RangeReader(reading, [*COLUMNS]).batches(part))
    return pa.Table.from_batches(batches, pa.schema(list(COLUMNS.items())))


def _of_history(
    copy: History, kept: LogHistory, gap: HistoryGap, covered: tuple[int, int]
) -> "pa.Table":
    import pyarrow as pa

    paths = copy.paths(kept, *covered)
    page = page_in(paths, (gap.broker, gap.epoch), covered, [*COLUMNS], frozenset())
    batch = page.shown(RowOrigin(gap.broker, gap.epoch, None), [*COLUMNS])
    return pa.Table.from_batches([batch], pa.schema(list(COLUMNS.items())))


def _fresh(rows: "pa.Table", log: LogHistory) -> "pa.Table":
    """Return the rows that are not there already, as after a mending that was cut off."""
    import pyarrow as pa
    import pyarrow.compute as pc  # type: ignore[import-untyped, import-not-found, unused-ignore]

    kept = pa.array(log.offsets, pa.int64())
    return rows.filter(pc.invert(pc.is_in(rows.column("offset"), value_set=kept)))


def _written(
    folder: Path, gap: HistoryGap, covered: tuple[int, int], rows: "pa.Table"
) -> list[str]:
    """Write rows into a file for each day; the lines for the list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.strftime(rows.column("end"), "%Y-%m-%d").fill_null("__HIVE_DEFAULT_PARTITION__")
    digest = sha256(repr((gap, covered)).encode()).hexdigest()[:32]
    lines = []
    for day in sorted(pc.unique(days).to_pylist()):
        target = folder / f"day={day}" / f"part-mended-{digest}.parquet"
        target.parent.mkdir(exist_ok=True)
        of_day: pa.Table = rows.filter(pc.equal(days, day))
        write_rows(target, of_day)
        lines.append(line_of(target))
    return lines


def _sentence(gap: HistoryGap, state: str) -> str:
    count = gap.end - gap.begin
    return f"broker {gap.broker}: offsets {gap.begin} to {gap.end - 1} ({count} offsets): {state}"
