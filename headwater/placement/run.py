"""The work of `headwater plan`: read, plan, show.

Owns the order of things and what goes where. Must not know how a plan is found or drawn. Invariant:
what is faulty in the input is told before any time is spent on planning.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.placement.picture import dot, svg
from headwater.placement.show import difference, difference_lines, table_lines
from planner.flow import as_document
from planner.layout import Layout, lay_out
from planner.methods import Found, Wanted, find
from planner.optimal import NoSolverError
from planner.plan import Plan, read_plan
from planner.problem import ProblemError
from planner.reading import read_problem

TELL_EVERY_S = 0.5


def run(arguments: argparse.Namespace) -> int:
    """Plans and shows; the exit status."""
    layout = _problem(arguments.problem)
    old = _old(arguments.diff, layout)
    kind = Path(arguments.picture).suffix if arguments.picture else ""
    if arguments.picture and kind not in {".svg", ".dot"}:
        raise CommandError(
            2, f"--picture {arguments.picture}: the name ends in neither .svg nor .dot"
        )
    found = _plan(arguments, layout)
    document = told(layout, found, arguments)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")
    if arguments.picture:
        draw = svg if kind == ".svg" else dot
        Path(arguments.picture).write_text(draw(layout, found.plan, found.evaluation), "utf-8")
    changes = None if old is None else difference(layout, old, found.plan)
    if arguments.json:
        print_json(document if changes is None else document | {"diff": changes})
    elif changes is not None or arguments.table:
        lines = [] if changes is None else difference_lines(changes)
        lines += table_lines(layout, found) if arguments.table else []
        sys.stdout.write("\n".join([*lines, ""]))
    elif not arguments.output:
        print_json(document)
    for violation in found.evaluation.violations[:20]:
        complain(f"headwater: {violation.sentence}")
    return 0 if found.evaluation.feasible else 1


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


def _problem(name: str) -> Layout:
    document = _json(name)
    try:
        return lay_out(read_problem(document))
    except ProblemError as error:
        raise CommandError(2, f"{name}: {error}") from None


def _old(name: str | None, layout: Layout) -> Plan | None:
    if name is None:
        return None
    try:
        return read_plan(_json(name), layout)
    except ProblemError as error:
        raise CommandError(2, f"{name}: {error}") from None


def _json(name: str) -> object:
    text = read_text(name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        raise CommandError(2, f"{where}: not JSON: {error.msg.lower()}") from None
    except (ValueError, RecursionError):
        raise CommandError(2, f"{name}: not JSON that can be read: too deep or too long") from None


def _plan(arguments: argparse.Namespace, layout: Layout) -> Found:
    wanted = Wanted(
        arguments.method, arguments.radius, arguments.seed, arguments.time_limit, arguments.steps
    )
    progress = _Progress() if sys.stderr.isatty() else None
    try:
        return find(layout, wanted, progress)
    except ProblemError as error:
        raise CommandError(2, f"{arguments.problem}: {error}") from None
    except NoSolverError as error:
        raise CommandError(2, str(error)) from None


class _Progress:
    """A line now and then of how the search goes."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.head = False

    def __call__(self, steps: int, flow: float, excess: float, kicks: int) -> None:
        now = time.monotonic()
        if now - self.last < TELL_EVERY_S:
            return
        if not self.head:
            complain(f"{'seconds':>8} {'steps':>9} {'kicks':>6} {'flow':>16}  limits")
            self.head = True
        self.last = now
        limits = "kept" if not excess else f"broken by {excess:.2g}"
        complain(f"{now - self.began:8.1f} {steps:9} {kicks:6} {flow:16.6g}  {limits}")
