"""From texts and a described network to a placement problem, as `headwater plan --from` makes it.

Owns the joining of what the engine knows of tasks (how they may be divided) with the planner's view
of them. Must not know options or terminals. Invariant: a task is divided in the problem only where
`headwater check --bounds` says that it may be.
"""

from __future__ import annotations

from broker.engine.pattern.bounds.bounds import Inputs as BoundInputs
from broker.engine.pattern.bounds.bounds import bounds_of
from headwater.placement.task_rates import Kind, Made, problem_of, weakest
from language import Specification
from simulation.rehearsal.description import Described


def kinds_of(specification: Specification) -> dict[str, Kind]:
    """By task's key, over how many brokers it may be divided without a difference."""
    kinds: dict[str, list[Kind]] = {}
    for task, _, bound in bounds_of(specification.graph, BoundInputs()):
        kinds.setdefault(task.key, []).append(bound.kind)
    return weakest(kinds)


def placement_problem(specification: Specification, network: Described) -> Made:
    """The problem as a document, and what was guessed. Raises planner.problem.ProblemError."""
    return problem_of(specification, network, kinds_of(specification))
