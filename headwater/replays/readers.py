"""Recorded events for a replay: JSON lines or CSV, gzip or plain, from files or a pipe.

Owns the choice of the format by the content and the naming of bad lines. Must not know what becomes
of events: JSON lines are handed on undecoded, so that the engine decodes them straight into its own
structs, CSV rows as dicts with native values. Invariant: whatever a file holds, each of its lines
ends in a batch exactly once: among its events or lines, its bad lines, or its undeclared types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from headwater.replays.columns import ColumnError, ColumnMap, RowConverter
from headwater.replays.lines import LINE_BYTES_MAX, Lines, UnreadableError, lines_of, shown
from headwater.replays.records import RecordAssembler


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no event, and why; as text it reads `file:line: reason`."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{shown(self.file)}:{self.line}: {self.reason}"


@dataclass(slots=True)
class JsonLinesReader:
    """Lines of JSON, one event or one array of events each; number `first_line` and following.

    Blank lines and those that `bad` names stand here empty.
    """

    file: str
    first_line: int
    lines: list[bytes]
    bad: list[BadLine] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """The length of the lines."""
        return sum(map(len, self.lines))


@dataclass(slots=True)
class CsvEvents:
    """Events out of CSV rows; `numbers` are their lines. `undeclared` counts rows by event type.

    `size_bytes` is the length of the lines that were read for them.
    """

    file: str
    events: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bad: list[BadLine] = field(default_factory=list)
    undeclared: dict[str, int] = field(default_factory=dict)
    size_bytes: int = 0


Batch = JsonLinesReader | CsvEvents

OPENING_LINES_MAX = 1_000  # blank ones among them; behind a header row they tell nothing


def read_events(
    files: Sequence[str],
    types: Mapping[str, Mapping[str, str]],
    *,
    mapping: ColumnMap | None = None,
    stdin: BinaryIO | None = None,
    line_bytes_max: int = LINE_BYTES_MAX,
) -> Iterator[Batch]:
    """The events of the files, one file after the other, in batches as they are read.

    `types` gives, for each declared event type, its attributes and their kinds (int, float, text,
    bool, bytes). `mapping` (see `parse_map`) names columns and concerns CSV alone. `-` is standard
    input, or `stdin`. A longer line than `line_bytes_max` is a bad one. Bad lines are handed on, to
    be refused or passed over by the caller; a file that cannot be read raises UnreadableError.
    """
    for file in files:
        chunks = lines_of(file, stdin=stdin, line_bytes_max=line_bytes_max)
        first = _opening(chunks)
        if first is None:
            continue
        if _is_json(first):
            _refuse_laid_out(file, first)
            yield _json(file, first, line_bytes_max)
            for chunk in chunks:
                yield _json(file, chunk, line_bytes_max)
        else:
            yield from _CsvFile(file, types, mapping or ColumnMap(), line_bytes_max).read(
                first, chunks
            )


def _opening(chunks: Iterator[Lines]) -> Lines | None:
    """The first lines with text; as many as it takes to tell the format, wherever reads end."""
    opening: Lines | None = None
    for chunk in chunks:
        if opening is not None:
            opening = Lines(
                opening.first_line,
                opening.lines + chunk.lines,
                opening.too_long + chunk.too_long,
                opening.head or chunk.head,
            )
        elif chunk.too_long or _texts(chunk, 1):
            opening = chunk
        else:
            continue
        enough = len(_texts(opening, 2)) == 2 or len(opening.lines) > OPENING_LINES_MAX
        if opening.too_long or enough or _is_json(opening):
            break
    return opening


def _texts(chunk: Lines, count: int) -> list[bytes]:
    return list(islice((line for line in chunk.lines if line and not line.isspace()), count))


def _is_json(chunk: Lines) -> bool:
    """By the first line; but what was cut off at its beginning goes on with a whole object."""
    if _begins_too_long(chunk):
        return chunk.head.lstrip().startswith((b"{", b"["))
    texts = [line.strip() for line in _texts(chunk, 2)]
    if any(line.startswith((b"{", b"[")) for line in texts[:1]):
        return True
    try:
        return len(texts) == 2 and isinstance(json.loads(texts[1]), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_laid_out(file: str, chunk: Lines) -> None:
    """A document over many lines would give a complaint for each of them, none of which helps."""
    if next((line for line in map(bytes.strip, chunk.lines) if line), b"") in (b"[", b"{"):
        raise UnreadableError(
            file, "JSON over several lines; write one event, or one array of events, on each line"
        )


def _too_long(file: str, chunk: Lines, line_bytes_max: int) -> list[BadLine]:
    reason = f"longer than {line_bytes_max} bytes"
    return [BadLine(file, number, reason) for number in chunk.too_long]


def _begins_too_long(chunk: Lines) -> bool:
    """Tell whether its first line with text is longer than allowed."""
    before = chunk.lines[: chunk.too_long[0] - chunk.first_line] if chunk.too_long else [b"text"]
    return not any(line and not line.isspace() for line in before)


def _json(file: str, chunk: Lines, line_bytes_max: int) -> JsonLinesReader:
    lines = [b"" if line.isspace() else line for line in chunk.lines]
    return JsonLinesReader(file, chunk.first_line, lines, _too_long(file, chunk, line_bytes_max))


class _CsvFile:
    """One CSV file on its way; the header row makes the converter."""

    def __init__(self, file: str, types: Any, mapping: ColumnMap, line_bytes_max: int) -> None:
        self._file = file
        self._types = types
        self._mapping = mapping
        self._line_bytes_max = line_bytes_max
        self._records = RecordAssembler(line_bytes_max)
        self._converter: RowConverter | None = None

    def read(self, first: Lines, others: Iterator[Lines]) -> Iterator[CsvEvents]:
        chunk: Lines | None = first
        while chunk is not None:
            if self._converter is None and _begins_too_long(chunk):
                reason = f"the header row is longer than {self._line_bytes_max} bytes"
                raise UnreadableError(self._file, reason)
            batch = CsvEvents(self._file, bad=_too_long(self._file, chunk, self._line_bytes_max))
            batch.size_bytes = sum(map(len, chunk.lines))
            self._convert(self._records.take(chunk.first_line, chunk.lines), batch)
            batch.bad.sort(key=lambda bad: bad.line)
            yield batch
            chunk = next(others, None)
        last = CsvEvents(self._file)
        self._convert(self._records.finish(), last)
        if last.events or last.bad or last.undeclared:
            yield last

    def _convert(self, records: Iterator[tuple[int, Any]], batch: CsvEvents) -> None:
        for number, record in records:
            if self._converter is None:
                self._converter = self._with_header(record)
                continue
            made = record if isinstance(record, str) else self._converter.convert(record)
            if isinstance(made, dict):
                batch.events.append(made)
                batch.numbers.append(number)
            elif made is None:
                name = self._converter.type_of(record)
                batch.undeclared[name] = batch.undeclared.get(name, 0) + 1
            else:
                batch.bad.append(BadLine(self._file, number, made))

    def _with_header(self, record: list[str] | str) -> RowConverter:
        if isinstance(record, str):
            raise UnreadableError(self._file, f"the header row: {record}")
        try:
            return RowConverter(record, self._types, self._mapping)
        except ColumnError as error:
            raise UnreadableError(self._file, str(error)) from error
