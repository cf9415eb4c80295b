"""A dry run: a specification over recorded events, in one process, without a network.

Owns the way from files to results in order. Must not know formats of files (readers.py), matching
or arguments' syntax. Invariant: the same events give the same bytes, in whatever order they stand
in the files, unless a lateness says that their order counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from broker.core.intake import Intake, IntakeOptions
from broker.engine.ingest.reasons import UNDECLARED_TYPE
from broker.engine.runtime.budget import CANDIDATES_ALONE
from headwater.cli.output import CommandError, ProgressLine, complain, read_text
from headwater.engine import BATCH_EVENTS, Extent, Pipeline, WorkError
from headwater.given import functions_of
from headwater.replays.columns import ColumnError, parse_map
from headwater.replays.event_bytes import Packer
from headwater.replays.lines import STANDARD_INPUT, UnreadableError
from headwater.replays.outlet import opened
from headwater.replays.readers import BadLine, Batch, JsonLinesReader, read_events
from headwater.replays.reference_tables import tables_beside
from headwater.replays.release import Release
from headwater.replays.sorter import ExternalSort, SortingError
from language import Specification, check_text

if TYPE_CHECKING:
    import argparse

    from broker.engine.event.agent import Result
    from broker.engine.event.event import Event

FAULTY = 2
BAD_LINES_SHOWN_MAX = 20
FRONTIER_BATCHES = 4  # batches between two looks at what may be released


def run(arguments: argparse.Namespace) -> int:
    """Replay as the command line says; 0, or 2 on a faulty specification or input.

    What is wrong is told on standard error, as JSON too: standard output is for results alone.
    """
    try:
        return _replay(arguments)
    except CommandError as error:
        if not arguments.json:
            raise
        _tell_json([{"message": text} for text in error.messages])
        return error.status


def _replay(arguments: argparse.Namespace) -> int:
    spec, files = arguments.spec, arguments.events
    if [spec, *files].count(STANDARD_INPUT) > 1:
        raise CommandError(FAULTY, "standard input (-) can be read only once")
    checked = check_text(
        read_text(spec),
        file=spec,
        functions=functions_of(arguments.functions),
        tables=tables_beside(spec),
    )
    if checked.specification is None:
        if arguments.json:
            _tell_json(
                [{"file": spec, **diagnostic.to_dict()} for diagnostic in checked.diagnostics]
            )
        else:
            complain(checked.report().rstrip("\n"))
        return FAULTY
    try:
        with opened(arguments.output, [spec, *files]) as outlet:
            replay = FileReplay(
                checked.specification,
                outlet.write,
                skip_bad=arguments.skip_bad,
                drift=arguments.drift,
                step_candidates=arguments.step_candidates,
                beside_output=arguments.output in {None, STANDARD_INPUT},
            )
            batches = read_events(
                files,
                kinds_of(checked.specification),
                mapping=parse_map(arguments.map) if arguments.map else None,
            )
            if arguments.lateness is None:
                replay.sorted(batches)
            else:
                replay.streamed(batches, arguments.lateness)
            outlet.end()
    except (UnreadableError, ColumnError, SortingError, WorkError) as error:
        raise CommandError(FAULTY, str(error)) from None
    except BadInputError as error:
        tell_bad(error, as_json=arguments.json)
        return FAULTY
    tell_dropped(replay, as_json=arguments.json)
    return 0


class BadInputError(Exception):
    """The input has `count` bad lines; `shown` are the first of them."""

    def __init__(self, shown: list[BadLine], count: int) -> None:
        super().__init__(f"{count} bad lines")
        self.shown = shown
        self.count = count


class FileReplay:
    """One run; `write` takes results as they leave.

    On a terminal it shows how far it is, but for results that go to that terminal themselves, which
    `beside_output` tells.
    """

    def __init__(
        self,
        specification: Specification,
        write: Callable[[list[Result]], None],
        *,
        skip_bad: bool,
        drift: float = 0.0,
        step_candidates: int = CANDIDATES_ALONE,
        beside_output: bool = False,
    ) -> None:
        self._drift = drift
        self._step_candidates = step_candidates
        self._specification = specification
        self._write = write
        self._skip_bad = skip_bad
        self.bad_lines = 0
        self._beside_output = beside_output
        self._bad_shown: list[BadLine] = []
        self._refused: Counter[str] = Counter()  # of the bad lines, by reason: those of the intake
        self._undeclared = 0  # rows that never came to be events

    def sorted(self, batches: Iterator[Batch]) -> None:
        """All input is on time: sorted first, then matched, results in one order."""
        self._pipeline = pipeline = self._made(IntakeOptions())
        packer = Packer(self._specification.event_types)
        whole = Extent()
        with ExternalSort(_order, packer.pack, packer.unpack) as sort:
            total = 0
            with self._progress("events read") as line:
                for batch in batches:
                    events = self._events(pipeline.intake, batch)
                    whole.add(events)
                    sort.add(events, batch.size_bytes)
                    total += len(events)
                    line.show(total)
            self._refuse_bad()
            pipeline.foresee(whole)
            release = Release()
            ordered = sort.in_order()
            chunks = iter(lambda: list(islice(ordered, BATCH_EVENTS)), [])
            with self._progress("events matched") as line:
                for number, events in enumerate(chunks):
                    release.add(pipeline.admit(events))
                    if number % FRONTIER_BATCHES == FRONTIER_BATCHES - 1:
                        self._write(release.due(pipeline.frontier()))
                    line.show(number * BATCH_EVENTS + len(events), total)
            release.add(pipeline.finish())
            self._write(release.rest())

    def recorded(self, batches: Iterator[Batch]) -> list[Event]:
        """The events themselves, in order, all in memory; nothing is matched."""
        self._pipeline = self._made(IntakeOptions())
        events: list[Event] = []
        for batch in batches:
            events += self._events(self._pipeline.intake, batch)
        self._refuse_bad()
        return sorted(events, key=_order)

    def streamed(self, batches: Iterator[Batch], lateness_ms: int) -> None:
        """The input as it comes; results as they become known."""
        options = IntakeOptions(lateness_ms=lateness_ms)
        self._pipeline = pipeline = self._made(options)
        total = 0
        with self._progress("events matched") as line:
            for batch in batches:
                events = self._events(pipeline.intake, batch)
                self._refuse_bad()
                self._write(pipeline.admit(events))
                total += len(events)
                line.show(total)
        self._write(pipeline.finish())

    def _progress(self, words: str) -> ProgressLine:
        return ProgressLine(words, beside_output=self._beside_output)

    def _made(self, options: IntakeOptions) -> Pipeline:
        candidates = self._step_candidates
        return Pipeline(self._specification, options, self._drift, step_candidates=candidates)

    def dropped(self) -> dict[str, int]:
        """Count the events that were passed over, by reason, beside those on bad lines."""
        dropped = Counter(self._pipeline.ledger.events.dropped)
        dropped[UNDECLARED_TYPE] += self._undeclared
        return dict(sorted((dropped - self._refused).items()))

    def _events(self, intake: Intake, batch: Batch) -> list[Event]:
        if isinstance(batch, JsonLinesReader):
            decoded = intake.decode_lines(batch.lines)
            numbers: Sequence[int] = range(batch.first_line, batch.first_line + len(batch.lines))
        else:
            decoded = intake.from_mappings(batch.events)
            numbers = batch.numbers
            self._undeclared += sum(batch.undeclared.values())
        bad = list(batch.bad)
        for rejection in decoded.rejections:
            line = numbers[rejection.index or 0] if numbers else 0
            bad.append(BadLine(batch.file, line, rejection.message))
            self._refused[rejection.reason] += 1
        self.bad_lines += len(bad)
        if bad and len(self._bad_shown) < BAD_LINES_SHOWN_MAX:
            self._bad_shown += sorted(bad, key=lambda one: one.line)
            del self._bad_shown[BAD_LINES_SHOWN_MAX:]
        return decoded.events

    def _refuse_bad(self) -> None:
        if self.bad_lines and not self._skip_bad:
            raise BadInputError(self._bad_shown, self.bad_lines)


def tell_bad(error: BadInputError, *, as_json: bool) -> None:
    """The first bad lines, on standard error."""
    more = error.count - len(error.shown)
    if as_json:
        errors = [{"file": b.file, "line": b.line, "message": b.reason} for b in error.shown]
        _tell_json(errors, more=more)
        return
    for bad in error.shown:
        complain(str(bad))
    if more:
        complain(f"and {more} bad lines more; --skip-bad passes over them")


def tell_dropped(replay: FileReplay, *, as_json: bool) -> None:
    """Report what was passed over, if anything was."""
    dropped = replay.dropped()
    if not dropped and not replay.bad_lines:
        return
    if as_json:
        document: dict[str, Any] = {"bad_lines": replay.bad_lines, "dropped": dropped}
        complain(msgspec.json.encode(document).decode())
        return
    parts = [f"bad lines {replay.bad_lines}"] if replay.bad_lines else []
    parts += [f"{reason} {count}" for reason, count in dropped.items()]
    complain(f"passed over: {', '.join(parts)}")


def _tell_json(errors: list[dict[str, Any]], **more: object) -> None:
    complain(msgspec.json.encode({"ok": False, "errors": errors, **more}).decode())


def kinds_of(specification: Specification) -> dict[str, dict[str, str]]:
    """By declared event type, its attributes and their kinds."""
    return {
        name: dict(kind.attributes)
        for name, kind in specification.event_types.items()
        if not kind.defined
    }


def _order(event: Event) -> Any:
    return event.order
