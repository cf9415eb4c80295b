"""Placement problems made up by a seed: to measure planners with, and to try the command.

Owns the shapes of networks and of tasks. Must not know any planner beyond the flow of a plan.
Invariant: a problem made with limits has a feasible plan: a placement is drawn first, and limits
leave it room.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.plan import Plan

Document = dict[str, Any]
SHAPES = ("line", "tree", "grid", "geometric")


@dataclass(frozen=True)
class Limits:
    """How tight a problem is; 1.0 leaves a drawn placement just enough."""

    brokers: float | None = 1.4
    links: float | None = None
    egress: float | None = None


def problem(
    shape: str, nodes: int, tasks: int, seed: int, limits: Limits | None = None
) -> Document:
    """Chains, joins, shared inputs, shards and aggregates on a network of that shape."""
    random = Random(f"{shape} {nodes} {tasks} {seed}")
    names = [f"b{i}" for i in range(nodes)]
    contents = _contents(names, tasks, random)
    document: Document = {
        "name": f"{shape}-{nodes}-{tasks}-{seed}",
        "server": names[random.randrange(nodes)],
        "nodes": [{"id": name} for name in names],
        "links": [{"a": names[a], "b": names[b]} for a, b in links(shape, nodes, random)],
        "contents": contents,
        "tasks": _tasks(names, contents, tasks, random),
    }
    _limit(document, limits or Limits(), random)
    return document


# --- networks ---------------------------------------------------------------------------------


def links(shape: str, nodes: int, random: Random) -> list[tuple[int, int]]:
    """The links of a connected network. Raises ValueError for a shape that is not known."""
    makers: dict[str, Callable[[int, Random], list[tuple[int, int]]]] = {
        "line": lambda n, _: [(i, i + 1) for i in range(n - 1)],
        "tree": lambda n, r: [(r.randrange(max(0, i - 6), i), i) for i in range(1, n)],
        "grid": _grid,
        "geometric": _geometric,
    }
    if shape not in makers:
        raise ValueError(f"found the shape {shape}, expected one of {', '.join(SHAPES)}")
    return makers[shape](nodes, random)


def _grid(nodes: int, _: Random) -> list[tuple[int, int]]:
    wide = max(2, round(nodes**0.5))
    found = [(i, i + 1) for i in range(nodes - 1) if (i + 1) % wide]
    return found + [(i, i + wide) for i in range(nodes - wide)]


def _geometric(nodes: int, random: Random) -> list[tuple[int, int]]:
    """Brokers at random places, linked where they are near; what is apart is joined nearest."""
    places = [(random.random(), random.random()) for _ in range(nodes)]
    reach = 1.6 / nodes**0.5

    def apart(a: int, b: int) -> float:
        (ax, ay), (bx, by) = places[a], places[b]
        return float(((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5)

    found = [(a, b) for b in range(nodes) for a in range(b) if apart(a, b) <= reach]
    part = list(range(nodes))

    def root(node: int) -> int:
        while part[node] != node:
            node = part[node]
        return node

    for a, b in found:
        part[root(a)] = root(b)
    while len({root(node) for node in range(nodes)}) > 1:
        inside = [node for node in range(nodes) if root(node) == root(0)]
        outside = [node for node in range(nodes) if root(node) != root(0)]
        _, a, b = min((apart(a, b), a, b) for a in inside for b in outside)
        found.append((min(a, b), max(a, b)))
        part[root(a)] = root(b)
    return sorted(found)


# --- tasks ------------------------------------------------------------------------------------


def _contents(names: list[str], tasks: int, random: Random) -> list[Document]:
    found: list[Document] = []
    for i in range(max(2, tasks // 2)):
        scale = 10 ** random.uniform(0.5, 4)
        count = 1 if random.random() < 0.6 else random.randint(2, min(6, len(names)))
        origins = random.sample(names, count)
        rates = {origin: round(scale * random.uniform(0.5, 1.5)) + 1 for origin in origins}
        found.append({"id": f"C{i}", "rates": rates})
    return found


def _tasks(
    names: list[str], contents: list[Document], count: int, random: Random
) -> list[Document]:
    """Tasks over contents and earlier tasks; about one in four is sharded or an aggregate."""
    volume = {c["id"]: sum(c["rates"].values()) for c in contents}
    keys = {c["id"]: list(c["rates"]) for c in contents}
    found: list[Document] = []
    for i in range(count):
        several = [name for name in keys if len(keys[name]) > 1]
        kind = random.random()
        recent = [task["id"] for task in found[-6:]]
        task: Document = {"id": f"T{i}"}
        if kind < 0.12 and several:
            inputs = [random.choice(several)]
            rates = {key: round(volume[inputs[0]] / len(keys[inputs[0]]) * random.uniform(0.1, 0.9))
                     for key in keys[inputs[0]]}  # fmt: skip
            task |= {"inputs": inputs, "mode": "sharded", "cost": 1, "rate": rates}
            keys[task["id"]] = keys[inputs[0]]
            volume[task["id"]] = sum(rates.values())
        elif kind < 0.26 and several:
            inputs = [random.choice(several)]
            rate = max(1, round(volume[inputs[0]] * random.uniform(0.02, 0.3)))
            task |= {"inputs": inputs, "mode": "aggregate", "cost": 1, "merge_cost": 1}
            task |= {"partial_rate": max(1, round(rate * random.uniform(0.3, 1.2))), "rate": rate}
            volume[task["id"]] = rate
        else:
            pool = [c["id"] for c in contents] if not recent or random.random() < 0.55 else recent
            inputs = random.sample(pool, min(len(pool), random.choice((1, 1, 2, 2, 3))))
            rate = max(1, round(sum(volume[n] for n in inputs) * 10 ** random.uniform(-2, 0)))
            task |= {"inputs": inputs, "cost": random.randint(1, 5), "rate": rate}
            volume[task["id"]] = rate
        wanted = random.choice((0, 1, 1, 1, 2, 3))
        task["destinations"] = random.sample(names, min(wanted, len(names)))
        if random.random() < 0.1:
            task["hosts"] = random.sample(names, max(2, len(names) // 3))
        found.append(task)
    consumed = {name for task in found for name in task["inputs"]}
    for task in found:  # what nobody wants would not run
        if task["id"] not in consumed and not task["destinations"]:
            task["destinations"] = [random.choice(names)]
    return found


# --- limits -----------------------------------------------------------------------------------


def _limit(document: Document, limits: Limits, random: Random) -> None:
    """Limits that leave a placement room: each piece near what feeds it, some elsewhere."""
    layout = lay_out(read_problem(document))
    hosts: list[int] = []
    where: dict[str, int] = {}
    feeds: dict[int, list[int]] = {}
    for stream in layout.streams:
        for consumer in stream.consumers:
            source = stream.origin if stream.origin is not None else stream.piece
            if source is not None:
                feeds.setdefault(consumer, []).append(source if stream.origin is not None else -1)
    for number, piece in enumerate(layout.pieces):
        near = [node for node in feeds.get(number, []) if node in piece.hosts]
        pick = random.choice(near) if near and random.random() < 0.7 else random.choice(piece.hosts)
        hosts.append(pick)
        where[piece.task] = pick
    found = evaluate(layout, Plan(tuple(hosts)))
    least = max((piece.cost for piece in layout.pieces), default=0)
    for number, node in enumerate(document["nodes"]):
        sent = sum(load for (a, _), load in found.loads.items() if a == number)
        if limits.brokers is not None:
            usual = sum(found.work) / len(found.work)
            node["capacity"] = max(round(usual * limits.brokers), found.work[number], least)
        if limits.egress is not None and random.random() < 0.5:
            node["egress"] = round(sent * limits.egress) + 10
    for link in document["links"]:
        ends = layout.numbers[link["a"]], layout.numbers[link["b"]]
        load = max(found.loads.get(ends, 0), found.loads.get(ends[::-1], 0))
        if limits.links is not None and random.random() < 0.5:
            link["capacity"] = round(load * limits.links) + 10
