"""Many small files of a job's folder made into few, and old days taken out of it.

Owns what is merged and what is dropped. Must not know brokers. Invariant: the list of files changes
in one step, and until then the folder is as it was; what is not listed any more stays for those who
read it still, as long as they are given.

Only what stands in Spark's last compact list is touched: it is one file, and the batches behind it
are few. Their files are merged a few batches later.
"""

import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from server.checkpoint import replace_file
from server.config import duration_ms
from server.errors import ServerError
from server.history import COMPACT
from server.upkeep.folders import folder_alone
from server.upkeep.listing import ListedFile, change_list, check_form, line_of, listed_files

REPLACED: Final = "_headwater_replaced"  # a file a compaction: what it took out of the list
DAY_MS: Final = 86_400_000


class Compaction(NamedTuple):
    """Count what was done: files merged and made, dropped with their days, and removed for good."""

    merged: int = 0
    made: int = 0
    dropped: int = 0
    removed: int = 0


class CompactionSettings(NamedTuple):
    """Sizes in bytes, times in ms; `keep_ms` None: all days are kept."""

    file_bytes: int = 128 * 2**20
    keep_ms: int | None = None
    grace_ms: int = DAY_MS


def compact_now(
    path: Path, name: str, *, file_mib: int, keep: str | None, grace: str
) -> Compaction:
    """Compact with settings as a person writes them. Raises ServerError."""
    try:
        settings = CompactionSettings(
            file_mib * 2**20, None if keep is None else duration_ms(keep), duration_ms(grace)
        )
    except ValueError as error:
        raise ServerError(str(error)) from None
    return compact(path, name, settings, time.time_ns() // 1_000_000)


def compact(path: Path, name: str, settings: CompactionSettings, now_ms: int) -> Compaction:
    """Compact the folder of a job. Raises ServerError."""
    with folder_alone(path, name) as place:
        check_form(place.path)
        removed = _remove_replaced(place.path, now_ms - settings.grace_ms)
        listed = [file for file in listed_files(place.path) if file.batch.name.endswith(COMPACT)]
        if not listed:
            return Compaction(removed=removed)
        cut_ms = None if settings.keep_ms is None else now_ms - settings.keep_ms
        dropped = [file for file in listed if cut_ms is not None and _is_before(file.path, cut_ms)]
        groups = list(
            _groups([file for file in listed if file not in dropped], settings.file_bytes)
        )
        made = [line_of(_merged([file.path for file in group])) for group in groups]
        gone = [*dropped, *(file for group in groups for file in group)]
        if gone:
            _note_replaced(place.path, gone, now_ms)
            change_list(gone[0].batch, gone, made)
        return Compaction(len(gone) - len(dropped), len(made), len(dropped), removed)


def _is_before(path: Path, cut_ms: int) -> bool:
    """Return whether the whole day of a file is over by a time."""
    day = path.parent.name.partition("day=")[2]
    try:
        midnight = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    except ValueError:
        return False
    return midnight.timestamp() * 1000 + DAY_MS <= cut_ms


def _groups(listed: Iterable[ListedFile], file_bytes: int) -> Iterator[list[ListedFile]]:
    """Yield files of one day that together are no larger than wanted, two at least."""
    by_day: dict[Path, list[ListedFile]] = {}
    for file in listed:
        if file.path.is_file():  # where it is missing there is a gap, which `mend` is for
            by_day.setdefault(file.path.parent, []).append(file)
    for files in by_day.values():
        group: list[ListedFile] = []
        size = 0
        for file in files:
            file_size = file.path.stat().st_size
            if group and size + file_size > file_bytes:
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(file)
            size += file_size
        if len(group) > 1:
            yield group


def _merged(paths: list[Path]) -> Path:
    """Write the rows of these files into one beside them; the same of the same, whenever."""
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from pyarrow import parquet

    digest = sha256("\n".join(path.name for path in paths).encode()).hexdigest()[:32]
    target = paths[0].with_name(f"part-merged-{digest}.parquet")
    parts = []
    for path in paths:
        with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            parts.append(file.read())
    write_rows(target, pa.concat_tables(parts))
    return target


def write_rows(target: Path, rows: "object") -> None:
    """Write a table as Spark writes it, so that a half-written file never has the name."""
    from pyarrow import parquet

    fresh = target.with_name(f".{target.name}.fresh")
    parquet.write_table(rows, fresh, use_deprecated_int96_timestamps=True)
    fresh.replace(target)


def _note_replaced(folder: Path, gone: Iterable[ListedFile], now_ms: int) -> None:
    place = folder / REPLACED
    place.mkdir(exist_ok=True)
    names = [str(file.path.relative_to(folder)) for file in gone]
    replace_file(place / str(now_ms), json.dumps(names))


def _remove_replaced(folder: Path, until_ms: int) -> int:
    """Remove what was replaced before a time and is listed nowhere; how many files."""
    place = folder / REPLACED
    notes = sorted(place.iterdir()) if place.is_dir() else []
    counted = {listed.path for listed in listed_files(folder)} if notes else set()
    removed = 0
    for note in notes:
        if not note.name.isdigit() or int(note.name) > until_ms:
            continue
        for name in json.loads(note.read_text(encoding="utf-8")):
            file = folder / name
            if file.is_file() and file not in counted:
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
                removed += 1
        note.unlink()
    return removed
