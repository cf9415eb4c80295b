"""A plan as a document: what `headwater plan` writes, and reads again.

Owns the form and its checks. Must not know how a plan is found. Invariant: a plan that is read for
a problem gives each piece of it one broker of the problem; what is refused names the key.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.flow import Evaluation, evaluate
from planner.layout import Layout, Role, partial_name
from planner.plan import Plan, Routes
from planner.problem import Mode, ProblemError


def as_document(layout: Layout, plan: Plan, evaluation: Evaluation | None = None) -> dict[str, Any]:
    """The plan as it is written, with what it comes to and, where limits break, which."""
    outcome = evaluation or evaluate(layout, plan)
    document: dict[str, Any] = {"placement": placement(layout, plan.hosts)}
    if plan.routes:
        document["routes"] = {
            name: [list(arc) for arc in plan.routes[name]] for name in plan.routes
        }
    document["flow"] = outcome.flow
    document["feasible"] = outcome.feasible
    if outcome.violations:
        document["violations"] = [violation.sentence for violation in outcome.violations]
    return document


def placement(layout: Layout, hosts: Sequence[int]) -> dict[str, Any]:
    """Return where everything runs, as a document tells it."""
    names = [node.id for node in layout.problem.nodes]
    placed: dict[str, Any] = {}
    for piece, host in zip(layout.pieces, hosts, strict=True):
        if piece.role is Role.TASK:
            placed[piece.task] = names[host]
        elif piece.role is Role.SHARD:
            placed.setdefault(piece.task, {})[piece.key] = names[host]
        else:
            both = placed.setdefault(piece.task, {"partial": {}, "header": None})
            if piece.role is Role.HEADER:
                both["header"] = names[host]
            else:
                both["partial"][piece.key] = names[host]
    for task in layout.problem.tasks:
        placed.setdefault(task.id, {})  # sharded, and no source has a key
    return placed


def placed_in(document: object) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """A decoded plan and its placement, as objects. Raises ProblemError, naming the key."""
    if not isinstance(document, Mapping):
        raise ProblemError("", "the document is not an object")
    placed = document.get("placement")
    if not isinstance(placed, Mapping):
        raise ProblemError("placement", "missing" if placed is None else "not an object")
    return document, placed


def read_plan(document: object, layout: Layout) -> Plan:
    """The plan that a decoded document describes. Raises ProblemError, naming the key."""
    document, placed = placed_in(document)
    hosts = []
    for piece in layout.pieces:
        steps = [piece.task]
        if piece.role is Role.SHARD:
            steps.append(piece.key)
        elif piece.role is Role.PARTIAL:
            steps += ["partial", piece.key]
        elif piece.role is Role.HEADER:
            steps.append("header")
        host: Any = placed
        for step in steps:
            host = host.get(step) if isinstance(host, Mapping) else None
        path = ".".join(["placement", *steps])
        if not isinstance(host, str):
            raise ProblemError(path, "missing" if host is None else "not the name of a broker")
        if host not in layout.numbers:
            raise ProblemError(path, f"no broker is called {host}")
        hosts.append(layout.numbers[host])
    _check_no_more(placed, layout)
    return Plan(tuple(hosts), _read_routes(document.get("routes"), layout, hosts))


def _check_no_more(placed: Mapping[str, Any], layout: Layout) -> None:
    """Check that what is placed is of the problem's tasks, and by keys that they have."""
    pieces = {(piece.task, piece.role, piece.key) for piece in layout.pieces}
    modes = {task.id: task.mode for task in layout.problem.tasks}
    for task, value in placed.items():
        if task not in modes:
            raise ProblemError(f"placement.{task}", f"no task is called {task}")
        role, path, keyed = Role.SHARD, f"placement.{task}", value
        if modes[task] is Mode.AGGREGATE:
            role, path, keyed = Role.PARTIAL, f"{path}.partial", value.get("partial")
        if modes[task] is not Mode.SINGLE and isinstance(keyed, Mapping):
            for key in keyed:
                if (task, role, key) not in pieces:
                    raise ProblemError(f"{path}.{key}", f"{key} is no key of its inputs")


def _read_routes(value: object, layout: Layout, hosts: Sequence[int]) -> Routes:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ProblemError("routes", "not an object")
    linked = {
        ends for link in layout.problem.links for ends in ((link.a, link.b), (link.b, link.a))
    }
    names = {stream.name for stream in layout.streams}
    for aggregate in layout.aggregates:
        brokers = {hosts[piece] for piece in aggregate.partials}
        names |= {partial_name(aggregate.task, layout.problem.nodes[host].id) for host in brokers}
    routes = {}
    for name, arcs in value.items():
        if name not in names:
            raise ProblemError(f"routes.{name}", f"no stream is called {name}")
        if not isinstance(arcs, list | tuple):
            raise ProblemError(f"routes.{name}", "not an array")
        route = []
        for index, arc in enumerate(arcs):
            pair = tuple(arc) if isinstance(arc, list | tuple) else ()
            if len(pair) != 2 or pair not in linked:
                raise ProblemError(f"routes.{name}[{index}]", "not two brokers that are linked")
            route.append((pair[0], pair[1]))
        routes[name] = tuple(dict.fromkeys(route))
    return routes
