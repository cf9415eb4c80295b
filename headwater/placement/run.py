"""The work of `headwater plan`: read, plan, show.

Owns the order of things and what goes where. Must not know how a plan is found or drawn. Invariant:
what is faulty in the input is told before any time is spent on planning.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, complain, print_json
from headwater.given import checked_text, read_json, write_text
from headwater.placement.changes import Older, difference, difference_lines, read_older
from headwater.placement.plan_document import as_document
from headwater.placement.reasons import hopeless, reasons
from headwater.placement.show import table_lines
from headwater.placement.task_rates import Made
from headwater.placing import placement_problem
from headwater.replays.lines import STANDARD_INPUT
from planner.document import read_problem
from planner.history import SearchHistory, SearchSample
from planner.layout import Layout, lay_out
from planner.methods import Found, Wanted, find
from planner.problem import NoSolverError, ProblemError
from simulation.rehearsal.description import read_network

TELL_EVERY_S = 0.5
REASONS_MAX = 20


def run(arguments: argparse.Namespace) -> int:
    """Plans and shows; the exit status."""
    layout, remarks = given(arguments)
    old = _old(arguments.diff, layout)
    kind = Path(arguments.picture).suffix if arguments.picture else ""
    if arguments.picture and kind not in {".svg", ".dot"}:
        raise CommandError(
            2, f"--picture {arguments.picture}: the name ends in neither .svg nor .dot"
        )
    draw_search = _drawing() if arguments.search_picture else None
    for sentence in [*remarks, *(f"no plan keeps all limits: {why}" for why in hopeless(layout))]:
        complain(f"headwater: {sentence}")
    found = _plan(arguments, layout)
    if found.interrupted:
        complain(f"headwater: interrupted after {found.steps} steps; the best plan so far")
    document = told(layout, found, arguments)
    if arguments.output:
        write_text(arguments.output, json.dumps(document, ensure_ascii=False) + "\n")
    if arguments.picture:
        # Lays brokers out by numpy, which a search does without.
        from headwater.placement.picture import dot, svg

        draw = svg if kind == ".svg" else dot
        write_text(arguments.picture, draw(layout, found.plan, found.evaluation))
    if draw_search is not None:
        write_text(arguments.search_picture, draw_search(found.history))
    changes = None if old is None else difference(layout, old, found.plan)
    if arguments.json:
        print_json(document if changes is None else document | {"diff": changes})
    elif changes is not None or arguments.table:
        lines = [] if changes is None else difference_lines(changes)
        lines += table_lines(layout, found) if arguments.table else []
        sys.stdout.write("\n".join([*lines, ""]))
    elif not arguments.output:
        print_json(document)
    for reason in reasons(layout, found.plan, found.evaluation)[:REASONS_MAX]:
        complain(f"headwater: {reason}")
    return 0 if found.evaluation.feasible else 1


def _drawing() -> Callable[[SearchHistory], str]:
    """Return what draws a search. Raises CommandError where matplotlib is not installed."""
    try:
        from headwater.placement.search_plot import draw
    except ImportError:
        sentence = "--search-picture needs matplotlib: install headwater[plots]"
        raise CommandError(2, sentence) from None
    return draw


def told(layout: Layout, found: Found, arguments: argparse.Namespace) -> dict[str, Any]:
    """The plan as it is written, with how it was found."""
    document = as_document(layout, found.plan, found.evaluation)
    if layout.problem.name:
        document["problem"] = layout.problem.name
    document["method"] = arguments.method
    if arguments.method in {"tabu", "optimal"}:
        document |= {"seed": arguments.seed, "steps": found.steps}
    if found.bound is not None:
        document["bound"] = found.bound
    return document


def given(arguments: argparse.Namespace) -> tuple[Layout, list[str]]:
    """The problem that is told, or made of a text on a network; and what is to be said of that.

    Raises CommandError with status 2.
    """
    told_so, spec, network = arguments.problem, arguments.spec, arguments.network
    if (told_so is None) == (spec is None):
        raise CommandError(2, "tell either PROBLEM.json, or --from SPEC.hw and --network NET.json")
    if (spec is None) != (network is None):
        raise CommandError(2, "--from SPEC.hw and --network NET.json go together")
    if spec is None and arguments.write_problem:
        raise CommandError(2, "--write-problem is for a problem that --from makes")
    if spec is None:
        return _laid_out(read_json(told_so), told_so), []
    if spec == network == STANDARD_INPUT:
        raise CommandError(2, "standard input (-) can be read only once")
    made = _made(arguments)
    layout = _laid_out(made.document, f"{spec} on {network}")
    if arguments.write_problem:
        text = json.dumps(made.document, ensure_ascii=False, indent=1) + "\n"
        write_text(arguments.write_problem, text)
    remarks = [f"{network}: {sentence}; passed over" for sentence in made.in_vain]
    return layout, remarks + [f"guessed: {sentence}" for sentence in made.guessed]


def _made(arguments: argparse.Namespace) -> Made:
    functions, network = arguments.functions, arguments.network
    _, checked = checked_text(arguments.spec, as_json=arguments.json, functions=functions)
    described = read_json(network)
    try:
        return placement_problem(checked, read_network(described))
    except ProblemError as error:
        raise CommandError(2, f"{network}: {error}") from None


def _laid_out(document: object, name: str) -> Layout:
    try:
        return lay_out(read_problem(document))
    except ProblemError as error:
        raise CommandError(2, f"{name}: {error}") from None


def _old(name: str | None, layout: Layout) -> Older | None:
    if name is None:
        return None
    try:
        return read_older(read_json(name), layout)
    except ProblemError as error:
        raise CommandError(2, f"{name}: {error}") from None


def _plan(arguments: argparse.Namespace, layout: Layout) -> Found:
    wanted = Wanted(
        arguments.method, arguments.radius, arguments.seed, arguments.time_limit, arguments.steps
    )
    progress = _Progress() if sys.stderr.isatty() else None
    try:
        return find(layout, wanted, progress)
    except ProblemError as error:
        name = arguments.problem or arguments.network
        raise CommandError(2, f"{name}: {error}") from None
    except NoSolverError as error:
        raise CommandError(2, str(error)) from None


class _Progress:
    """A line now and then of how the search goes."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.head = False

    def __call__(self, sample: SearchSample) -> None:
        now = time.monotonic()
        if now - self.last < TELL_EVERY_S:
            return
        if not self.head:
            complain(f"{'seconds':>8} {'steps':>9} {'cost':>16} {'best':>16}  limits")
            self.head = True
        self.last = now
        limits = "kept" if not sample.excess else f"broken by {sample.excess:.2g}"
        figures = f"{sample.seconds:8.1f} {sample.steps:9} {sample.cost:16.6g} {sample.best:16.6g}"
        complain(f"{figures}  {limits}")
