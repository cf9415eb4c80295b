"""A propagation scenario: a tree of brokers, sensors, subscriptions, events and a script.

Owns the shape of a scenario and what must hold of one. Must not know routers or files' formats.
Invariant: a scenario that was made holds together; every name in it is known or said to be absent.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

SECOND_MS = 1000


class ScenarioError(Exception):
    """A scenario cannot be run; the message says where and why."""


class PlacedSensor(NamedTuple):
    """One source: it sends events of the type `attr` from `loc`, in metres, at broker `node`."""

    id: str
    node: int
    attr: str
    loc: tuple[float, float]


class RangeSubscription(NamedTuple):
    """The wish of a user at broker `node`: ranges by sensor (identified) or attribute (abstract).

    Events of one match lie less than `delta_t` seconds and `delta_l` metres apart (None: no bound).
    """

    id: str
    node: int
    abstract: bool
    delta_t: float
    filters: dict[str, tuple[float | None, float | None]]
    region: tuple[float, float, float, float] | None = None
    delta_l: float | None = None


class SensorReading(NamedTuple):
    """One simple event; `t` in whole seconds."""

    id: str
    sensor: str
    t: int
    v: float


class Step(NamedTuple):
    """Something that is done before the events of `t`; None: before everything."""

    t: int | None
    op: Literal["advertise", "withdraw", "subscribe", "unsubscribe"]
    id: str


class PropagationScenario(NamedTuple):
    """All of it. `steps` and `readings` are in the order in which they happen."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    sensors: dict[str, PlacedSensor]
    subscriptions: dict[str, RangeSubscription]
    readings: tuple[SensorReading, ...]
    steps: tuple[Step, ...]
    center: int
    numbered: bool = False  # whether the ids of events are written as numbers

    @property
    def neighbours(self) -> list[list[int]]:
        """The neighbours of each broker, ascending."""
        return neighbours_of(self.nodes, self.edges)


def neighbours_of(nodes: int, edges: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """The neighbours of each broker, ascending."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    return [sorted(neighbours) for neighbours in near]


def check_tree(nodes: int, edges: tuple[tuple[int, int], ...]) -> None:
    """Raise ScenarioError unless the edges join all brokers without a cycle."""
    parent = list(range(nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in edges:
        if root(a) == root(b):
            raise ScenarioError(f"edges: {a}-{b} closes a cycle; the brokers must form a tree")
        parent[root(a)] = root(b)
    apart = [node for node in range(nodes) if root(node) != root(0)]
    if apart:
        raise ScenarioError(f"edges: no way from broker 0 to broker {apart[0]}")


def middle(nodes: int, edges: tuple[tuple[int, int], ...]) -> int:
    """The broker from which the sum of the distances to all others is least; the lowest such."""
    near = neighbours_of(nodes, edges)
    order, parent = _walk(near)
    size = [1] * nodes
    for node in reversed(order[1:]):
        size[parent[node]] += size[node]
    # Stepping to a child brings its side nearer by one and takes all others one further away.
    sums = [0] * nodes
    for node in order[1:]:
        sums[node] = sums[parent[node]] + nodes - 2 * size[node]
    return min(range(nodes), key=lambda node: (sums[node], node))


def _walk(near: list[list[int]]) -> tuple[list[int], list[int]]:
    parent = [-1] * len(near)
    order = [0]
    for node in order:
        for other in near[node]:
            if other != parent[node]:
                parent[other] = node
                order.append(other)
    return order, parent


def toward(near: list[list[int]], goal: int) -> list[int | None]:
    """For each broker the neighbour that is nearer to the goal; None at the goal."""
    next_hops: list[int | None] = [None] * len(near)
    order = [goal]
    for node in order:
        for other in near[node]:
            if other != next_hops[node]:
                next_hops[other] = node
                order.append(other)
    return next_hops


def steps_of(
    sensors: dict[str, PlacedSensor],
    subscriptions: dict[str, RangeSubscription],
    script: list[Step],
) -> tuple[Step, ...]:
    """All steps in order: what no step of the script begins is there from the beginning."""
    advertised = {step.id for step in script if step.op == "advertise"}
    subscribed = {step.id for step in script if step.op == "subscribe"}
    first = [Step(None, "advertise", name) for name in sensors if name not in advertised]
    first += [Step(None, "subscribe", name) for name in subscriptions if name not in subscribed]
    domains = {"advertise": sensors, "withdraw": sensors}
    for place, step in enumerate(script):
        if step.id not in domains.get(step.op, subscriptions):
            what = "sensor" if step.op in domains else "subscription"
            sentence = f"{step.op} names {what} {step.id!r}, which is not there"
            raise ScenarioError(f"script[{place}]: {sentence}")
    return (*first, *sorted(script, key=lambda step: step.t or 0))
