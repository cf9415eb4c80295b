"""`headwater replay --explain`: a replay that tells why, in place of its results.

Owns the way from the command's arguments to the explanation. Must not match or look for reasons:
the replay and the other modules do. Invariant: what is found is what the same replay reports.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.cli.output import CommandError, complain, read_text
from headwater.explaining.record import OWN, ReplayRecord, extended
from headwater.explaining.tell import moment, result_data, results_lines
from headwater.explaining.why import how_far, limits_text
from headwater.given import functions_of
from headwater.replays.columns import ColumnError, parse_map
from headwater.replays.lines import UnreadableError
from headwater.replays.readers import read_events
from headwater.replays.reference_tables import tables_beside
from headwater.replays.replay import BadInputError, FileReplay
from headwater.replays.sorter import SortingError
from language import Specification, check_text

if TYPE_CHECKING:
    import argparse

GOOD, FAULTY = 0, 2


def run(arguments: argparse.Namespace) -> int:
    """Replay and explain; 0, or 2 on a faulty specification or input."""
    text = read_text(arguments.spec)
    tables = tables_beside(arguments.spec)
    own = functions_of(arguments.functions)
    checked = check_text(text, file=arguments.spec, functions=own, tables=tables)
    if checked.specification is None:
        if arguments.json:
            _complain_json(
                [
                    {"file": arguments.spec, **diagnostic.to_dict()}
                    for diagnostic in checked.diagnostics
                ]
            )
        else:
            complain(checked.report().rstrip("\n"))
        return FAULTY
    specification = checked.specification
    record = ReplayRecord(specification)
    whole = check_text(
        extended(text, specification), file=arguments.spec, functions=own, tables=tables
    )
    if whole.specification is None or any(
        subscriber == OWN for subscriber, _ in specification.subscriptions
    ):
        sentence = (
            f"{arguments.spec}: no room for the subscriptions of {OWN}, by which events are seen"
        )
        raise CommandError(FAULTY, sentence)
    try:
        _replay(arguments, whole.specification, record)
    except (UnreadableError, ColumnError, SortingError) as error:
        raise CommandError(FAULTY, str(error)) from None
    except BadInputError as error:
        if arguments.json:
            shown = [{"file": b.file, "line": b.line, "message": b.reason} for b in error.shown]
            _complain_json(shown)
        else:
            for bad in error.shown:
                complain(str(bad))
        return FAULTY
    if arguments.output is None:
        _tell(specification, record, sys.stdout.write, as_json=arguments.json)
        return GOOD
    try:
        with open(arguments.output, "w", encoding="utf-8") as file:  # noqa: PTH123
            _tell(specification, record, file.write, as_json=arguments.json)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(FAULTY, f"{arguments.output}: cannot be written: {reason}") from None
    return GOOD


def _replay(arguments: argparse.Namespace, whole: Specification, record: ReplayRecord) -> None:
    replay = FileReplay(whole, record.take, skip_bad=arguments.skip_bad)
    kinds = {
        name: dict(kind.attributes) for name, kind in whole.event_types.items() if not kind.defined
    }
    mapping = parse_map(arguments.map) if arguments.map else None
    batches = read_events(arguments.events, kinds, mapping=mapping)
    if arguments.lateness is None:
        replay.sorted(batches)
    else:
        replay.streamed(batches, arguments.lateness)
    dropped = replay.dropped()
    if arguments.json or not (dropped or replay.bad_lines):
        return
    parts = [f"bad lines {replay.bad_lines}"] if replay.bad_lines else []
    parts += [f"{reason} {count}" for reason, count in dropped.items()]
    complain(f"passed over: {', '.join(parts)}")


def _complain_json(errors: list[dict[str, Any]]) -> None:
    complain(msgspec.json.encode({"ok": False, "errors": errors}).decode())


def _tell(specification: Specification, record: ReplayRecord, write: Any, *, as_json: bool) -> None:
    for key in specification.graph.roots:
        task = specification.graph.tasks[key]
        node: Any = task.node
        results = record.results[node.subscriber, node.name]
        lines: list[str] = []
        sampled = False
        if not results.count:
            lines, sampled = how_far(specification, record, task)
        if as_json:
            document = {
                "subscription": node.name,
                "subscriber": node.subscriber,
                "count": results.count,
                "results": [result_data(result, record.readings) for result in results.kept],
                "how_far": lines,
                "sampled": sampled,
            }
            write(msgspec.json.encode(document).decode() + "\n")
            continue
        count = f"{results.count:,}" if results.count else "no"
        write(f"{node.name} of {node.subscriber}: {count} result{'s' * (results.count != 1)}\n")
        for line in results_lines(results, record.readings):
            write(line + "\n")
        for line in lines:
            write(f"  {line}\n")
        if sampled:
            write(f"  ({limits_text()})\n")
        if lines and record.uncertain:
            write("  (uncertain times are taken at their word)\n")
    if not as_json and record.first is not None and record.last is not None:
        write(f"events from {moment(record.first)} to {moment(record.last)}\n")
