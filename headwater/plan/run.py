"""`headwater check --plan`, `--bounds`, `--operators`: what is free of errors, drawn and weighed.

Owns the outcome's form and the exit status. Must not read a task, draw a step or count: the other
modules do. Invariant: a file with errors is told as `headwater check` does it, whatever is drawn of
the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.engine.pattern.bounds.bounds import Bound, Inputs, bounds_of, stated
from broker.network.operators.times import Times
from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.given import functions_of
from headwater.plan.steps import TaskPlan, plans_of
from headwater.plan.svg import plan_svg
from headwater.plan.text import plan_text
from headwater.plan.travel import travelling
from headwater.replays.reference_tables import tables_beside
from language import Specification, check_text
from language.suggest import nearest

GOOD, PROBLEMS, FAULTY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The selection of what is printed of each task; `inputs` and `groups` are for the bounds."""

    plan: bool = False
    svg: str | None = None
    bounds: bool = False
    inputs: Inputs = field(default_factory=Inputs)
    groups: int | None = None
    functions: str = ""  # a file of functions of one's own
    operators: Times | None = None  # what travels, where that is wanted


def run(names: Sequence[str], wanted: PlanRequest, *, as_json: bool) -> int:
    """Check each file and tell of it; 1 where there is an error, 2 where a file cannot be read."""
    status, count = GOOD, 0
    documents: list[dict[str, Any]] = []
    drawn: list[tuple[TaskPlan, list[str]]] = []
    own = functions_of(wanted.functions)
    for name in names:
        try:
            checked = check_text(
                read_text(name), file=name, functions=own, tables=tables_beside(name)
            )
        except CommandError as error:
            status = FAULTY
            errors: list[Any] = [{"message": text} for text in error.messages]
            documents.append({"file": name, "ok": False, "errors": errors, "tasks": []})
            if not as_json:
                for text in error.messages:
                    complain(f"headwater: {text}")
            continue
        errors = [diagnostic.to_dict() for diagnostic in checked.diagnostics]
        count += len(errors)
        if checked.specification is None and not as_json:
            complain(checked.report().rstrip("\n"))
        tasks = []
        if checked.specification is not None:
            _known(checked.specification, wanted.inputs)
            tasks = _tasks(checked.specification, wanted)
        drawn += [(plan, notes) for plan, notes, _ in tasks]
        documents.append(
            {
                "file": name,
                "ok": checked.ok,
                "errors": errors,
                "tasks": [shown for *_, shown in tasks],
            }
        )
    if wanted.svg is not None:
        _write(wanted.svg, plan_svg(drawn))
    if as_json:
        print_json(documents)
    elif wanted.plan:
        sys.stdout.write("\n".join(plan_text(plan, notes) for plan, notes in drawn))
    elif wanted.bounds or wanted.operators is not None:
        sys.stdout.write("".join(_lines(plan, notes) for plan, notes in drawn if notes))
    return status or (PROBLEMS if count else GOOD)


def _tasks(
    specification: Specification, wanted: PlanRequest
) -> list[tuple[TaskPlan, list[str], dict[str, Any]]]:
    """The plan of each task, what is noted of it, and both for programs."""
    bounds = {
        (task.key, case.number): bound
        for task, case, bound in bounds_of(specification.graph, wanted.inputs)
    }
    planned = []
    for plan in plans_of(specification):
        bound = bounds.get((plan.task.key, plan.case))  # none of a task that nobody needs
        notes: list[str] = []
        shown: dict[str, Any] = plan.to_dict()
        if bound is not None and wanted.bounds:
            sentence = stated(bound, wanted.inputs, wanted.groups)
            notes = [f"{bound.kind}: {bound.why}", sentence]
            shown["bound"] = _shown(bound, sentence)
        if wanted.operators is not None:
            travels = travelling(plan.task, plan.case, wanted.operators)
            notes += travels.lines()
            shown["operators"] = travels.to_list()
        planned.append((plan, notes, shown))
    return planned


def _shown(bound: Bound, sentence: str) -> dict[str, Any]:
    return {
        "kind": bound.kind,
        "why": bound.why,
        "stated": sentence,
        "events": bound.events,
        "partial_matches": bound.matches,
        "events_each_group": bound.events_each,
        "partial_matches_each_group": bound.matches_each,
        "unbounded": list(bound.reasons),
        "limit": {"name": bound.limit[0], "value": bound.limit[1]},
    }


def _lines(plan: TaskPlan, notes: Sequence[str]) -> str:
    return "\n".join([plan.heading, *(f"  {note}" for note in notes)]) + "\n"


def _known(specification: Specification, inputs: Inputs) -> None:
    for name in inputs.per_s:
        if name not in specification.event_types:
            near = nearest(name, specification.event_types)
            hint = f"; did you mean `{near}`?" if near else ""
            raise CommandError(FAULTY, f"--rate {name}: no such event type{hint}")


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(FAULTY, f"{name}: cannot be written: {reason}") from None
