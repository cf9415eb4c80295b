"""`headwater simulate`, carried out: from a scenario's file to loads, a table and a drawing.

Owns the order of things and the form of the output. Must not know brokers: `simulation.propagation`
does. Invariant: a scenario that is faulty, or a drawing that cannot be made, is told before any
work is done.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, ProgressLine, complain, print_json, print_table
from headwater.cli.simulate import ALL, APPROACHES
from headwater.given import write_text
from simulation.energy import (
    Energy,
    EnergyModel,
    EnergyModelError,
    NodeWork,
    energy_of,
    read_model,
    together,
)
from simulation.propagation.needed import needed
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import Loss, PropagationOutcome, simulate
from simulation.propagation.scenario import PropagationScenario, ScenarioError

GOOD, FAULTY = 0, 2


def run(arguments: argparse.Namespace) -> int:
    """Run the approaches over a scenario. Raises CommandError with status 2."""
    draw = drawing("headwater.simulations.loads_plot") if arguments.plot else None
    model = energy_model(arguments.energy)
    try:
        scenario = read_scenario(Path(arguments.scenario))
    except ScenarioError as error:
        raise CommandError(FAULTY, str(error)) from None
    for sentence in _in_vain(scenario):
        complain(f"headwater: {arguments.scenario}: {sentence}")
    approaches = APPROACHES if arguments.approach == ALL else (arguments.approach,)
    wanted = needed(scenario)
    outcomes: dict[str, PropagationOutcome] = {}
    for approach in approaches:
        with ProgressLine(approach) as bar:
            loss = Loss(arguments.loss or 0.0, arguments.seed)
            outcomes[approach] = simulate(scenario, approach, wanted, bar.show, loss)
    by_approach = {name: each.told(numbered=scenario.numbered) for name, each in outcomes.items()}
    if arguments.loss is not None:
        for name, each in outcomes.items():
            by_approach[name]["lost"] = sum(each.lost.values())
    energies = {} if model is None else _energies(model, scenario, outcomes)
    for name, by_node in energies.items():
        by_approach[name]["energy"] = documents(by_node)
    if draw is not None:
        title = f"{scenario.nodes} brokers, {len(scenario.subscriptions)} subscriptions"
        write_text(arguments.plot, draw(outcomes, title))
    if arguments.output:
        write_text(arguments.output, json.dumps(by_approach, ensure_ascii=False) + "\n")
    if arguments.json or not arguments.output:
        print_json(by_approach)
    else:
        _table(outcomes, energies, lossy=arguments.loss is not None)
    return GOOD


def energy_model(name: str | None) -> EnergyModel | None:
    """Return the model in a file; None: none is asked for. Raises CommandError."""
    try:
        return None if name is None else read_model(Path(name))
    except EnergyModelError as error:
        raise CommandError(FAULTY, str(error)) from None


def documents(by_node: dict[str, Energy]) -> dict[str, Any]:
    """Return the energies of brokers and of all together as plain data."""
    all_together = together(list(by_node.values())).document()
    return {
        **all_together,
        "brokers": {name: energy.document() for name, energy in by_node.items()},
    }


def _energies(
    model: EnergyModel, scenario: PropagationScenario, outcomes: dict[str, PropagationOutcome]
) -> dict[str, dict[str, Energy]]:
    times = [reading.t for reading in scenario.readings]
    seconds = float(max(times) - min(times)) if times else 0.0
    return {
        name: {
            str(node): energy_of(model, works.get(node, NodeWork()), seconds)
            for node in range(scenario.nodes)
        }
        for name, each in outcomes.items()
        for works in [each.work(model.size)]
    }


def _in_vain(scenario: PropagationScenario) -> Iterator[str]:
    """Of each filter that nothing can ever meet, a sentence: a name may be misspelt."""
    measured = {sensor.attr for sensor in scenario.sensors.values()}
    for subscription in scenario.subscriptions.values():
        names, kind = (
            (measured, "attribute") if subscription.abstract else (scenario.sensors, "sensor")
        )
        for name, (low, high) in subscription.filters.items():
            where = f"subscription {subscription.id}: filters: {name}:"
            if name not in names:
                yield f"{where} there is no such {kind}, so nothing is delivered"
            elif low is not None and high is not None and low > high:
                yield f"{where} the range [{low:g}, {high:g}] holds no value"


def drawing(module: str) -> Any:
    """A module's function that draws. Raises CommandError where matplotlib is not installed."""
    try:
        return import_module(module).draw
    except ImportError:
        sentence = "--plot needs matplotlib, which the extra `plots` brings: `headwater[plots]`"
        raise CommandError(FAULTY, sentence) from None


def _table(
    outcomes: dict[str, PropagationOutcome], energies: dict[str, dict[str, Energy]], *, lossy: bool
) -> None:
    heads = ["approach", "operators sent", "events sent", "recall"]
    heads += ["lost"] * lossy + ["energy, J", "most at one"] * bool(energies) + ["busiest link"]
    rows = []
    for name, each in outcomes.items():
        row = [name, f"{each.subscription:,}", f"{each.publication:,}", f"{each.recall:.4f}"]
        if lossy:
            row.append(f"{sum(each.lost.values()):,}")
        if by_node := energies.get(name):
            dearest = max(by_node, key=lambda node: (by_node[node].total_j, -int(node)))
            row.append(f"{together(list(by_node.values())).total_j:,.3f}")
            row.append(f"{dearest}: {by_node[dearest].total_j:,.3f}")
        rows.append((*row, busiest(each)))
    print_table(tuple(heads), rows)


def busiest(outcome: PropagationOutcome) -> str:
    """The directed link over which most events went, the first of several."""
    links = outcome.by_link
    if not links:
        return "none used"
    (a, b), (_, events) = max(
        links.items(), key=lambda item: (item[1][1], -item[0][0], -item[0][1])
    )
    return f"{a} to {b}: {events:,} events"
