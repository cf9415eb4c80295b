"""`headwater simulate`, carried out: from a scenario's file to loads, a table and a drawing.

Owns the order of things and the form of the output. Must not know brokers: `simulation.propagation`
does. Invariant: a scenario that is faulty, or a drawing that cannot be made, is told before any
work is done.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TextIO

from headwater.cli.output import CommandError, complain, print_json, print_table
from headwater.cli.simulate import ALL, APPROACHES
from headwater.given import write_text
from simulation.propagation.needed import needed
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import Outcome, simulate
from simulation.propagation.scenario import Scenario, ScenarioError

GOOD, FAULTY = 0, 2
BAR_WIDTH = 24
REDRAWN_EVERY_S = 0.1


def run(arguments: argparse.Namespace) -> int:
    """Run the approaches over a scenario. Raises CommandError with status 2."""
    draw = drawing("headwater.simulated_plot") if arguments.plot else None
    try:
        scenario = read_scenario(Path(arguments.scenario))
    except ScenarioError as error:
        raise CommandError(FAULTY, str(error)) from None
    for sentence in _in_vain(scenario):
        complain(f"headwater: {arguments.scenario}: {sentence}")
    approaches = APPROACHES if arguments.approach == ALL else (arguments.approach,)
    wanted = needed(scenario)
    outcomes: dict[str, Outcome] = {}
    for approach in approaches:
        with Bar(approach, sys.stderr) as bar:
            outcomes[approach] = simulate(scenario, approach, wanted, bar.show)
    told = {name: each.told(numbered=scenario.numbered) for name, each in outcomes.items()}
    if draw is not None:
        title = f"{scenario.nodes} brokers, {len(scenario.subscriptions)} subscriptions"
        write_text(arguments.plot, draw(outcomes, title))
    if arguments.output:
        write_text(arguments.output, json.dumps(told, ensure_ascii=False) + "\n")
    if arguments.json or not arguments.output:
        print_json(told)
    else:
        _table(outcomes)
    return GOOD


def _in_vain(scenario: Scenario) -> Iterator[str]:
    """Of each filter that nothing can ever meet, a sentence: a name may be misspelt."""
    measured = {sensor.attr for sensor in scenario.sensors.values()}
    for one in scenario.subscriptions.values():
        known, kind = (measured, "attribute") if one.abstract else (scenario.sensors, "sensor")
        for name, (low, high) in one.filters.items():
            where = f"subscription {one.id}: filters: {name}:"
            if name not in known:
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


def _table(outcomes: dict[str, Outcome]) -> None:
    heads = ("approach", "operators sent", "events sent", "recall", "busiest link")
    rows = [
        (
            name,
            f"{each.subscription:,}",
            f"{each.publication:,}",
            f"{each.recall:.4f}",
            busiest(each),
        )
        for name, each in outcomes.items()
    ]
    print_table(heads, rows)


def busiest(outcome: Outcome) -> str:
    """The directed link over which most events went, the first of several."""
    links = outcome.by_link
    if not links:
        return "none used"
    (a, b), (_, events) = max(
        links.items(), key=lambda item: (item[1][1], -item[0][0], -item[0][1])
    )
    return f"{a} to {b}: {events:,} events"


class Bar:
    """A progress line on a terminal, and nothing elsewhere."""

    def __init__(self, words: str, side: TextIO) -> None:
        self._words = words
        self._side = side
        self._draws = side.isatty()
        self._drawn_s = -1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._draws:
            self._side.write("\r\x1b[2K")
            self._side.flush()

    def show(self, done: int, total: int) -> None:
        """Redraw the line, now and then."""
        if not self._draws:
            return
        now_s = time.monotonic()
        if now_s - self._drawn_s < REDRAWN_EVERY_S and done < total:
            return
        self._drawn_s = now_s
        filled = BAR_WIDTH * done // max(1, total)
        line = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done:,} of {total:,}  {self._words}"
        self._side.write("\r\x1b[2K" + line[: max(1, shutil.get_terminal_size().columns - 1)])
        self._side.flush()
