"""Large placement problems whose least flow is known, as it was planted.

Owns how they are made. Must not know any search. Invariant: no plan is below `least`: each chain of
tasks shares no stream with another, and is placed where it alone costs least, by dynamic
programming over hop counts; brokers bear just what that takes, so nothing is to be had for nothing.
"""

from random import Random
from typing import Any

import numpy as np

from experiments.generate import links

CHAIN = 2  # tasks of a chain: the first joins two contents, the last is delivered


def planted(shape: str, nodes: int, tasks: int, seed: int) -> tuple[dict[str, Any], int]:
    """A problem with about so many tasks, and its least flow."""
    random = Random(f"planted {shape} {nodes} {tasks} {seed}")
    names = [f"b{i}" for i in range(nodes)]
    pairs = links(shape, nodes, random)
    hops = _hops(nodes, pairs)
    work = [0] * nodes
    least = 0
    contents: list[dict[str, Any]] = []
    made: list[dict[str, Any]] = []
    for chain in range(tasks // CHAIN):
        rates = [random.randint(10, 1000) for _ in range(2 + CHAIN)]
        origins, end = random.sample(range(nodes), 2), random.randrange(nodes)
        for which in range(2):
            content = {"id": f"C{chain}.{which}", "rates": {names[origins[which]]: rates[which]}}
            contents.append(content)
        # Forward: what it costs to have each task's output sent from each broker.
        costs = [rates[0] * hops[origins[0]] + rates[1] * hops[origins[1]]]
        ways = []
        for place in range(1, CHAIN):
            steps = costs[-1][:, None] + rates[1 + place] * hops
            ways.append(steps.argmin(axis=0))
            costs.append(steps.min(axis=0))
        whole = costs[-1] + rates[1 + CHAIN] * hops[end]
        host = int(whole.argmin())
        least += int(whole[host])
        hosts = [host]
        for way in reversed(ways):
            hosts.append(int(way[hosts[-1]]))
        for place, at in enumerate(reversed(hosts)):
            inputs = [f"C{chain}.0", f"C{chain}.1"] if not place else [f"T{chain}.{place - 1}"]
            cost = random.randint(1, 5)
            work[at] += cost
            ends = [names[end]] if place == CHAIN - 1 else []
            task = {"id": f"T{chain}.{place}", "inputs": inputs, "cost": cost}
            made.append(task | {"rate": rates[2 + place], "destinations": ends})
    document = {
        "name": f"planted {shape} {nodes} {tasks} {seed}",
        "nodes": [{"id": n, "capacity": w} for n, w in zip(names, work, strict=True)],
        "links": [{"a": names[a], "b": names[b]} for a, b in pairs],
        "contents": contents,
        "tasks": made,
    }
    return document, least


def _hops(nodes: int, pairs: list[tuple[int, int]]) -> Any:
    """All hop counts, by widening rings."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in pairs:
        near[a].append(b)
        near[b].append(a)
    found = np.full((nodes, nodes), -1, dtype=np.int64)
    for start in range(nodes):
        row = found[start]
        row[start] = 0
        ring = [start]
        for node in ring:
            for other in near[node]:
                if row[other] < 0:
                    row[other] = row[node] + 1
                    ring.append(other)
    return found
