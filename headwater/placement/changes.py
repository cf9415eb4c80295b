"""What changes from an older plan to a new one.

Owns the comparison and its words. Must not know how a plan was found. Invariant: every piece of the
problem either moves, is new or stays; what ran in the older plan alone is told as gone.

The older plan may be of an earlier problem: tasks have come or gone since, a broker was lost. Then
it cannot be judged by this problem's limits, and its flow is the one that it says itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.placement.plan_document import placed_in, read_plan
from planner.flow import evaluate
from planner.layout import Layout, Role, piece_name
from planner.plan import Plan
from planner.problem import ProblemError

Places = dict[tuple[str, Role, str], str]


@dataclass(frozen=True)
class Older:
    """An older plan: where each piece ran, and the plan itself where it is one of this problem."""

    places: Mapping[tuple[str, Role, str], str]
    plan: Plan | None
    flow: int | float | None
    feasible: bool | None
    differs: str | None = None
    """In what the problem of the older plan is another, where it is."""


def read_older(document: object, layout: Layout) -> Older:
    """The older plan that a decoded document describes. Raises ProblemError, naming the key."""
    document, placed = placed_in(document)
    places: Places = {}
    for task, value in placed.items():
        _take(places, task, value)
    flow, feasible = _flow(document.get("flow")), document.get("feasible")
    try:
        plan = read_plan(document, layout)
    except ProblemError as error:  # of an earlier problem
        said = feasible if isinstance(feasible, bool) else None
        return Older(places, None, flow, said, str(error))
    before = evaluate(layout, plan)
    return Older(places, plan, before.flow, before.feasible)


def _flow(value: object) -> int | float | None:
    """The flow that a plan says it has; None where it says none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        raise ProblemError("flow", f"found {value}, expected a finite number")
    return value


def _take(places: Places, task: str, value: object) -> None:
    """Note the pieces of a task, as `planner.layout.Piece.known_by` tells them apart."""
    path = f"placement.{task}"
    if not isinstance(value, Mapping):
        places[task, Role.TASK, ""] = _broker(value, path)
    elif isinstance(value.get("partial"), Mapping):
        for key, broker in value["partial"].items():
            places[task, Role.PARTIAL, key] = _broker(broker, f"{path}.partial.{key}")
        if value.get("header") is not None:
            places[task, Role.HEADER, ""] = _broker(value["header"], f"{path}.header")
    else:
        for key, broker in value.items():
            places[task, Role.SHARD, key] = _broker(broker, f"{path}.{key}")


def _broker(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise ProblemError(path, "not the name of a broker")
    return value


def difference(layout: Layout, old: Older, new: Plan) -> dict[str, Any]:
    """Find what moves from one plan to another, and what that gains."""
    names = [node.id for node in layout.problem.nodes]
    now = {
        piece.known_by: (str(piece), names[host])
        for piece, host in zip(layout.pieces, new.hosts, strict=True)
    }
    after = evaluate(layout, new)
    before = {} if old.plan is None else evaluate(layout, old.plan).streams
    moves = [
        {"what": what, "from": old.places[key], "to": broker}
        for key, (what, broker) in now.items()
        if key in old.places and old.places[key] != broker
    ]
    fresh = [{"what": what, "to": at} for key, (what, at) in now.items() if key not in old.places]
    gone = [
        {"what": piece_name(*key), "from": at} for key, at in old.places.items() if key not in now
    ]
    rerouted = sorted(
        name
        for name in before.keys() & after.streams.keys()
        if set(before[name]) != set(after.streams[name])
    )
    return {
        "moves": moves,
        "new": fresh,
        "gone": gone,
        "stay": len(now) - len(moves) - len(fresh),
        "rerouted": rerouted,
        "same_problem": old.plan is not None,
        "differs": old.differs,
        "flow": [old.flow, after.flow],
        "feasible": [old.feasible, after.feasible],
    }


def difference_lines(changes: dict[str, Any]) -> list[str]:
    """The same for people."""
    moves, fresh, gone = changes["moves"], changes["new"], changes["gone"]
    counts = [f"{len(moves)} move", f"{changes['stay']} stay"]
    counts += [f"{len(fresh)} new"] if fresh else []
    counts += [f"{len(gone)} gone"] if gone else []
    lines = [", ".join(counts)]
    lines += [f"  {move['what']}: {move['from']} -> {move['to']}" for move in moves]
    lines += [f"  {one['what']}: new at {one['to']}" for one in fresh]
    lines += [f"  {one['what']}: gone from {one['from']}" for one in gone]
    if changes["rerouted"]:
        lines.append(f"{len(changes['rerouted'])} streams take other links")
        lines += [f"  {name}" for name in changes["rerouted"]]
    before, after = changes["flow"]
    if changes["same_problem"]:
        lines.append(f"flow {before:,} -> {after:,}")
    else:
        said = "unknown" if before is None else f"{before:,}"
        lines.append(f"flow {said} -> {after:,}; the older plan is of another problem:")
        lines.append(f"  {changes['differs']}")
    for word, feasible in zip(("older", "new"), changes["feasible"], strict=True):
        if feasible is False:
            lines.append(f"the {word} plan breaks limits")
    return lines
