"""A dry run: a specification over recorded events, in one process, without a network.

Owns the way from files to results in order. Must not know formats of files (readers.py), matching
or arguments' syntax. Invariant: the same events give the same bytes, in whatever order they stand
in the files, unless a lateness says that their order counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from broker.core.event import Event, event_class
from broker.core.intake import Intake, IntakeOptions
from headwater.cli.output import CommandError, complain, read_text
from headwater.columns import ColumnError, parse_map
from headwater.engine import BATCH_EVENTS, Pipeline
from headwater.lines import UnreadableError
from headwater.readers import BadLine, Batch, JsonLines, read_events
from headwater.release import Release
from headwater.sorting import ExternalSort, SortingError
from language import Specification, check_text

if TYPE_CHECKING:
    import argparse

    from broker.core.agent import Result

FAULTY = 2
BAD_LINES_SHOWN_MAX = 20
FRONTIER_BATCHES = 4  # batches between two looks at what may be released


def run(arguments: argparse.Namespace) -> int:
    """Replay as the command line says; 0, or 2 on a faulty specification or input."""
    checked = check_text(read_text(arguments.spec), file=arguments.spec)
    if checked.specification is None:
        complain(checked.report().rstrip("\n"))
        return FAULTY
    try:
        with ExitStack() as stack:
            write = _writer(arguments.output, stack)
            replay = Replay(checked.specification, write, skip_bad=arguments.skip_bad)
            batches = read_events(
                arguments.events,
                _kinds(checked.specification),
                mapping=parse_map(arguments.map) if arguments.map else None,
            )
            if arguments.lateness is None:
                replay.sorted(batches)
            else:
                replay.streamed(batches, arguments.lateness)
    except (UnreadableError, ColumnError, SortingError) as error:
        raise CommandError(FAULTY, str(error)) from None
    except BadInputError:
        return FAULTY
    replay.tell(as_json=arguments.json)
    return 0


class BadInputError(Exception):
    """The input is faulty and has been complained of."""


class Replay:
    """One run; `write` takes results as they leave."""

    def __init__(
        self,
        specification: Specification,
        write: Callable[[list[Result]], None],
        *,
        skip_bad: bool,
    ) -> None:
        self._specification = specification
        self._write = write
        self._skip_bad = skip_bad
        self.bad_lines = 0

    def sorted(self, batches: Iterator[Batch]) -> None:
        """All input is on time: sorted first, then matched, results in one order."""
        self._pipeline = pipeline = Pipeline(self._specification, IntakeOptions())
        classes = _classes(self._specification)
        with ExternalSort(_order, _encode, lambda data: _decode(data, classes)) as sort:
            for batch in batches:
                sort.add(self._events(pipeline.intake, batch))
            self._refuse_bad()
            release = Release()
            for number, events in enumerate(_chunks(sort.in_order())):
                release.add(pipeline.admit(events))
                if number % FRONTIER_BATCHES == FRONTIER_BATCHES - 1:
                    self._write(release.due(pipeline.frontier()))
            release.add(pipeline.finish())
            self._write(release.rest())

    def streamed(self, batches: Iterator[Batch], lateness_ms: int) -> None:
        """The input as it comes; results as they become known."""
        options = IntakeOptions(lateness_ms=lateness_ms)
        self._pipeline = pipeline = Pipeline(self._specification, options)
        for batch in batches:
            events = self._events(pipeline.intake, batch)
            self._refuse_bad()
            self._write(pipeline.admit(events))
        self._write(pipeline.finish())

    def tell(self, *, as_json: bool) -> None:
        """What was passed over, on standard error."""
        dropped = {
            reason: count for reason, count in self._pipeline.ledger.events.dropped.items() if count
        }
        if self.bad_lines:
            dropped["bad_lines"] = self.bad_lines
        if not dropped:
            return
        if as_json:
            complain(msgspec.json.encode({"dropped": dropped}).decode())
            return
        told = ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
        complain(f"passed over: {told}")

    def _events(self, intake: Intake, batch: Batch) -> list[Event]:
        if isinstance(batch, JsonLines):
            decoded = intake.decode_lines(batch.lines)
            numbers: Sequence[int] = range(batch.first_line, batch.first_line + len(batch.lines))
        else:
            decoded = intake.from_mappings(batch.events)
            numbers = batch.numbers
        bad = list(batch.bad)
        for rejection in decoded.rejections:
            line = numbers[rejection.index or 0] if numbers else 0
            bad.append(BadLine(batch.file, line, rejection.message))
        for one in sorted(bad, key=lambda one: one.line):
            self.bad_lines += 1
            if not self._skip_bad and self.bad_lines <= BAD_LINES_SHOWN_MAX:
                complain(str(one))
        return decoded.events

    def _refuse_bad(self) -> None:
        if self.bad_lines and not self._skip_bad:
            more = self.bad_lines - BAD_LINES_SHOWN_MAX
            if more > 0:
                complain(f"and {more} bad lines more; --skip-bad passes over them")
            raise BadInputError


def _kinds(specification: Specification) -> dict[str, dict[str, str]]:
    return {
        name: dict(kind.attributes)
        for name, kind in specification.event_types.items()
        if not kind.defined
    }


def _classes(specification: Specification) -> dict[str, type[Event]]:
    return {
        name: event_class(name, kind.attributes)
        for name, kind in specification.event_types.items()
        if not kind.defined
    }


def _order(event: Event) -> Any:
    return event.order


def _encode(event: Event) -> bytes:
    return msgspec.msgpack.encode([event.event_type, event])


def _decode(data: bytes, classes: dict[str, type[Event]]) -> Event:
    name, fields = msgspec.msgpack.decode(data, type=tuple[str, msgspec.Raw])
    return msgspec.msgpack.decode(fields, type=classes[name])


def _chunks(events: Iterator[Event]) -> Iterator[list[Event]]:
    chunk: list[Event] = []
    for event in events:
        chunk.append(event)
        if len(chunk) == BATCH_EVENTS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _writer(output: str | None, stack: ExitStack) -> Callable[[list[Result]], None]:
    encode = msgspec.json.Encoder().encode
    stream: IO[bytes] = sys.stdout.buffer
    if output is not None:
        try:
            stream = stack.enter_context(Path(output).open("wb"))  # noqa: SIM115 - the stack closes it
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CommandError(FAULTY, f"{output}: cannot be written: {reason}") from None

    def write(results: list[Result]) -> None:
        if results:
            stream.write(b"".join([encode(result.to_dict()) + b"\n" for result in results]))
            stream.flush()

    return write
