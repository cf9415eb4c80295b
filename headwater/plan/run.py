"""`headwater check --plan`: what was found to be free of errors, drawn.

Owns the outcome's form and the exit status. Must not read a task or draw a step: the other modules
do. Invariant: a file with errors is told as `headwater check` does it, and the others are drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.plan.steps import Plan, plans_of
from headwater.plan.svg import plan_svg
from headwater.plan.text import plan_text
from language import check_text

GOOD, PROBLEMS, FAULTY = 0, 1, 2


def run(names: Sequence[str], *, plan: bool, svg: str | None, as_json: bool) -> int:
    """Check each file and draw it; 1 where there is an error, 2 where a file cannot be read."""
    status, count = GOOD, 0
    told: list[dict[str, Any]] = []
    drawn: list[tuple[Plan, list[str]]] = []
    for name in names:
        try:
            checked = check_text(read_text(name), file=name)
        except CommandError as error:
            status = FAULTY
            errors: list[Any] = [{"message": text} for text in error.messages]
            told.append({"file": name, "ok": False, "errors": errors, "plans": []})
            if not as_json:
                for text in error.messages:
                    complain(f"headwater: {text}")
            continue
        errors = [one.to_dict() for one in checked.diagnostics]
        count += len(errors)
        plans: list[Plan] = []
        if checked.specification is None:
            if not as_json:
                complain(checked.report().rstrip("\n"))
        else:
            plans = plans_of(checked.specification)
        drawn += [(one, []) for one in plans]
        shown = [one.to_dict() for one in plans]
        told.append({"file": name, "ok": checked.ok, "errors": errors, "plans": shown})
    if svg is not None:
        _write(svg, plan_svg(drawn))
    if as_json:
        print_json(told)
    elif plan:
        sys.stdout.write("\n".join(plan_text(one, notes) for one, notes in drawn))
    return status or (PROBLEMS if count else GOOD)


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(FAULTY, f"{name}: cannot be written: {reason}") from None
