"""Plans as text: a tree from the sink to its sources.

Owns the form alone. Must not know tasks. Invariant: one step is one line, but for the chain from a
source to its operator, which is one line as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.plan.steps import PlanStep, TaskPlan

CHAINED = frozenset(("source", "filter", "stamp"))


def plan_text(plan: TaskPlan, notes: Sequence[str] = ()) -> str:
    """A heading, notes, and the tree; it ends with a line break."""
    lines = [plan.heading, *(f"  {note}" for note in notes)]
    lines += _lines(plan.root, "  ", "  ")
    return "\n".join(lines) + "\n"


def _lines(step: PlanStep, first: str, rest: str) -> list[str]:
    lines = [first + _one(step)]
    inputs = () if step.kind in CHAINED else step.inputs
    for index, part in enumerate(inputs, 1):
        last = index == len(inputs)
        lines += _lines(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines


def _one(step: PlanStep) -> str:
    parts = [_told(step)]
    while step.kind in CHAINED and step.inputs:
        (step,) = step.inputs
        parts.append(_told(step))
    return " ← ".join(parts)


def _told(step: PlanStep) -> str:
    details = "; ".join(step.details)
    return f"{step.kind} {step.title}" + (f"  ({details})" if details else "")
