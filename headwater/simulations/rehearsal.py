"""`headwater simulate --spec`, carried out: a rehearsal of faults, from files to a report.

Owns the order of things and what goes where. Must not know brokers: `simulation.rehearsal` does.
Invariant: what is faulty is told before any work is done; the exit status is 0 only if every result
came, once, and nothing else did.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import msgspec

from broker.core.intake import to_mapping
from headwater.cli.output import CommandError, ProgressLine, complain, print_json
from headwater.engine import Engine
from headwater.given import checked_text, functions_of, read_json, write_text
from headwater.replays.columns import ColumnError, parse_map
from headwater.replays.lines import STANDARD_INPUT, UnreadableError
from headwater.replays.readers import read_events
from headwater.replays.reference_tables import tables_beside
from headwater.replays.replay import BadInputError, FileReplay, kinds_of, tell_bad, tell_dropped
from headwater.simulations.loads import documents, drawing, energy_model
from headwater.simulations.rehearsal_tables import report, table
from language import ReadTable, Specification
from planner.problem import ProblemError
from simulation.durations import duration_ms
from simulation.energy import Energy, EnergyModel, NodeWork, energy_of
from simulation.rehearsal.compare import RehearsalComparison, compared
from simulation.rehearsal.faults import (
    FaultError,
    FaultSetting,
    NetworkFault,
    check_apart,
    read_fault,
    time_ms,
)
from simulation.rehearsal.material import (
    IDLE_MS,
    LATENESS_MS,
    Material,
    MaterialError,
    Said,
    between,
    end_of,
    located,
)
from simulation.rehearsal.network import Rehearsed, read_rehearsed
from simulation.rehearsal.run import RehearsalOutcome, rehearse

GOOD, DIFFERENT, FAULTY = 0, 1, 2
KINDS = ("cut", "end", "slow")


def run(arguments: argparse.Namespace) -> int:
    """Rehearse as the command line says. Raises CommandError with status 2."""
    draw = drawing("headwater.simulations.rehearsal_plot") if arguments.plot else None
    model = energy_model(arguments.energy)
    try:
        material, text = _material(arguments)
        faults = _faults(arguments, material)
        outcome, plain = _runs(material, faults)
    except BadInputError as error:
        tell_bad(error, as_json=arguments.json)
        return FAULTY
    except (FaultError, MaterialError, UnreadableError, ColumnError) as error:
        raise CommandError(FAULTY, str(error)) from None
    except ProblemError as error:
        raise CommandError(FAULTY, f"{arguments.network}: {error}") from None
    comparison = _compared(material, text, outcome, plain)
    document = report(material, faults, outcome, comparison)
    if model is not None:
        document["energy"] = documents(_energies(model, material, outcome))
    if arguments.results:
        write_text(arguments.results, "".join(f"{line.decode()}\n" for line in comparison.lines))
    if draw is not None:
        write_text(arguments.plot, draw(material, faults, outcome, comparison))
    if arguments.output:
        write_text(arguments.output, json.dumps(document, ensure_ascii=False) + "\n")
    if arguments.json:
        print_json(document)
    else:
        sys.stdout.write("\n".join(table(document)) + "\n")
    return GOOD if comparison.equal and not outcome.unsettled else DIFFERENT


def _runs(
    material: Material, faults: Sequence[NetworkFault]
) -> tuple[RehearsalOutcome, RehearsalOutcome | None]:
    """With the faults, and without them where there are any."""
    plain = None
    if faults:
        with ProgressLine("events without faults") as bar:
            plain = rehearse(material, (), bar.show)
    with ProgressLine("events with faults" if faults else "events") as bar:
        return rehearse(material, faults, bar.show), plain


def _energies(
    model: EnergyModel, material: Material, outcome: RehearsalOutcome
) -> dict[str, Energy]:
    """Return what each broker takes from the first event to the last."""
    seconds = (material.last_ms - material.first_ms) / 1000
    works = {name: NodeWork(computed=worked.processed) for name, worked in outcome.brokers.items()}
    for (sender, receiver), carried in outcome.links.items():
        works[sender].sent += carried.messages
        works[sender].sent_bytes += carried.size_bytes
        works[receiver].received += carried.messages
        works[receiver].received_bytes += carried.size_bytes
        works[receiver].computed_bytes += carried.size_bytes
    return {name: energy_of(model, work, seconds) for name, work in works.items()}


# --- what is given ------------------------------------------------------------------------------


def _material(arguments: argparse.Namespace) -> tuple[Material, str]:
    given = [arguments.spec, arguments.network, *arguments.events]
    if given.count(STANDARD_INPUT) > 1:
        raise CommandError(FAULTY, "standard input (-) can be read only once")
    tables = _Kept(tables_beside(arguments.spec))
    text, specification = checked_text(
        arguments.spec, as_json=arguments.json, tables=tables.read, functions=arguments.functions
    )
    network = read_rehearsed(read_json(arguments.network))
    for key in specification.subscriptions:
        network.described.home_of(*key)
    for sentence in network.described.strange_homes(list(specification.subscriptions)):
        complain(f"headwater: {arguments.network}: {sentence}; passed over")
    material = Material(
        network=network,
        specification=specification,
        events=_events(arguments, specification, network),
        tables=tables.texts,
        functions=functions_of(arguments.functions),
        lateness_ms=_duration(arguments.lateness, LATENESS_MS),
        idle_ms=_duration(arguments.idle, IDLE_MS),
    )
    return material, text


class _Kept:
    """Reads tables and keeps what was read, for brokers have them by themselves."""

    def __init__(self, read: ReadTable) -> None:
        self.texts: dict[str, str] = {}
        self._read = read

    def read(self, name: str) -> str:
        """The text of a table; raises TableError."""
        self.texts[name] = self._read(name)
        return self.texts[name]


def _duration(text: str | None, usual_ms: int) -> int:
    try:
        return usual_ms if text is None else duration_ms(text)
    except ValueError as error:
        raise FaultError(str(error)) from None


def _events(
    arguments: argparse.Namespace, specification: Specification, network: Rehearsed
) -> list[Said]:
    replay = FileReplay(specification, lambda _: None, skip_bad=arguments.skip_bad)
    batches = read_events(
        arguments.events,
        kinds_of(specification),
        mapping=parse_map(arguments.map) if arguments.map else None,
    )
    events: Sequence[Said] = [to_mapping(event) for event in replay.recorded(batches)]
    tell_dropped(replay, as_json=arguments.json)
    if events and (arguments.since or arguments.until):
        first_ms = end_of(events[0])
        since, until = (
            time_ms(text, first_ms) if text else None for text in (arguments.since, arguments.until)
        )
        events = between(events, since, until)
    return located(events, network)


def _faults(arguments: argparse.Namespace, material: Material) -> list[NetworkFault]:
    network = material.network
    setting = FaultSetting(network.brokers, network.links, material.first_ms, material.last_ms)
    faults = [
        read_fault(kind, text, setting) for kind in KINDS for text in getattr(arguments, kind)
    ]
    check_apart(faults)
    return sorted(faults, key=lambda one: one.at_ms)


# --- what comes of it ---------------------------------------------------------------------------


def _compared(
    material: Material,
    text: str,
    outcome: RehearsalOutcome,
    plain: RehearsalOutcome | None,
) -> RehearsalComparison:
    """Beside one engine on the same events, all on time."""
    engine = Engine(text, None, tables=material.tables, functions=material.functions)
    engine.push(list(material.events))
    expected = [msgspec.json.decode(msgspec.json.encode(result)) for result in engine.finish()]
    homes = {
        key: material.network.described.home_of(*key)
        for key in material.specification.subscriptions
    }
    return compared(material.specification, homes, expected, outcome, plain)
