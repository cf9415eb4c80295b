"""From a checked text and a described network to a placement problem.

Owns what tasks cost and send, and where their results go. Must not know how kinds are decided:
that is said of each task (single, sharded or aggregate), since it takes an engine to know.
Invariant: the document is one that `planner.document` takes; whatever was guessed is told.

Rates are those after the tasks' own simple conditions: what of a type's events passes them is
estimated by whoever describes the network. A task that may be split is taken as single where its
inputs have no origins to be split by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headwater.placement.contents import Asked, Content, asked, contents_of
from language import Specification, Task, TaskGraph, tree
from planner.problem import Number
from simulation.rehearsal.description import Described, Estimate

Kind = Literal["single", "sharded", "aggregate"]

EVENT_BYTES = 120  # type, id, source and times of an event, as JSON
VALUE_BYTES = 16  # an attribute's name and value
BYTES_A_UNIT = 1000  # of input: one unit of work, where nobody says what an event costs
SESSION_PASSES = 0.1  # ten readings to a session, where nobody says it


@dataclass
class Flow:
    """State what a task or content sends: events and bytes a second, by origin ("": it has one)."""

    per_s: dict[str, Number]
    bytes_per_s: dict[str, Number]
    groups: dict[str, dict[str, None]] = field(default_factory=dict)

    @property
    def keyed(self) -> bool:
        """Tell whether what is sent has origins."""
        return "" not in self.per_s


@dataclass
class Made:
    """The problem as a document, what was guessed for it, and what the network told in vain."""

    document: dict[str, Any]
    guessed: list[str]
    in_vain: list[str]


def problem_of(specification: Specification, network: Described, kinds: Mapping[str, Kind]) -> Made:
    """The placement problem of a text; `kinds` are those of its tasks, by key.

    Raises ProblemError where the network does not tell a subscription's home.
    """
    graph = specification.graph
    active = (*graph.active(graph.roots), *graph.roots)
    names = _names(graph, active)
    wants: dict[str, list[Asked]] = {}
    for key in active:
        task = graph.tasks[key]
        wants[key] = [one for one in asked(task.node) if one.type not in task.needs]
    contents = contents_of(wants, names, network)
    making = _Making(network, names, kinds, contents)
    tasks = [making.task(graph.tasks[key]) for key in active]
    bare = network.bare
    document: dict[str, Any] = {
        "name": bare.name,
        "nodes": [_given(id=n.id, capacity=n.capacity, egress=n.egress) for n in bare.nodes],
        "links": [_given(a=one.a, b=one.b, capacity=one.capacity) for one in bare.links],
        "contents": [
            {
                "id": one.id,
                "type": one.type,
                "for": [names[key] for key in one.wanted],
                "rates": {origin: _round(rate) for origin, rate in one.bytes_per_s.items()},
            }
            for one in contents
        ],
        "tasks": tasks,
    }
    if bare.server is not None:
        document["server"] = bare.server
    in_vain = network.strange_homes(list(specification.subscriptions))
    in_vain += network.strange_estimates({*names.values(), *(t.name for t in graph.tasks.values())})
    return Made(document, making.guessed, in_vain)


def weakest(kinds: Mapping[str, list[Kind]]) -> dict[str, Kind]:
    """The kind of each task by those of its cases: all must be split alike, or none is."""
    return {key: own[0] if len(set(own)) == 1 else "single" for key, own in kinds.items()}


def _names(graph: TaskGraph, keys: tuple[str, ...]) -> dict[str, str]:
    """A name of its own for each task: that of the text, with the subscriber's where needed."""
    found: dict[str, str] = {}
    for key in keys:
        task = graph.tasks[key]
        name = task.name
        if name in found.values() and isinstance(task.node, tree.Subscription):
            name = f"{task.node.subscriber}/{name}"
        found[key] = name if name not in found.values() else f"{name}#{key[:8]}"
    return found


def _given(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}


def _round(value: Number) -> Number:
    found = round(value, 6)
    return int(found) if found == int(found) else found


class _Making:
    """Tasks one after the other, each after those that it needs."""

    def __init__(
        self,
        network: Described,
        names: Mapping[str, str],
        kinds: Mapping[str, Kind],
        contents: list[Content],
    ) -> None:
        self._network = network
        self._names = names
        self._kinds = kinds
        self._contents = contents
        self._flows: dict[str, Flow] = {}
        self.guessed: list[str] = []

    def task(self, task: Task) -> dict[str, Any]:
        """The entry of one task; what it sends is remembered for those who need it."""
        name = self._names[task.key]
        estimate = self._network.estimates.get(name, Estimate())
        inputs, comes = self._inputs(task)
        kind = self._kinds[task.key]
        keys = [key for key in comes.per_s if key]
        if kind == "sharded" and not (keys and comes.keyed):
            kind = "single"
        if kind == "aggregate" and not keys:
            kind = "single"
        size = estimate.bytes
        if size is None:
            size = EVENT_BYTES + VALUE_BYTES * _width(task.node)
        entry: dict[str, Any] = {"id": name, "inputs": inputs, "mode": kind}
        if kind == "sharded":
            self._sharded(task, entry, comes, estimate, size)
        else:
            self._single(task, entry, comes, estimate, size)
        if kind == "aggregate":
            self._partials(task, entry, comes, estimate, size)
        entry["destinations"] = list(self._destinations(task))
        if estimate.hosts is not None:
            entry["hosts"] = list(estimate.hosts)
        return entry

    def _inputs(self, task: Task) -> tuple[list[str], Flow]:
        """The ids of what a task takes, and all of it together."""
        ids: list[str] = []
        together = Flow({}, {})
        for name in task.inputs:
            if name in task.needs:
                ids.append(self._names[task.needs[name]])
                _join(together, self._flows[task.needs[name]])
        for content in self._contents:
            if task.key in content.wanted:
                ids.append(content.id)
                groups = {
                    origin: dict.fromkeys(one.location or one.id for one in sources.values())
                    for origin, sources in content.sources.items()
                }
                _join(together, Flow(content.per_s, content.bytes_per_s, groups))
        if not together.per_s:
            self.guessed.append(f"{self._names[task.key]}: no source sends what it takes")
        return ids, together

    def _sharded(
        self, task: Task, entry: dict[str, Any], comes: Flow, estimate: Estimate, size: Number
    ) -> None:
        sends: dict[str, Number] = {}
        total = sum(comes.per_s.values())
        for key, per_s in comes.per_s.items():
            if estimate.per_s is not None:
                sends[key] = estimate.per_s * (per_s / total if total else 0)
            else:
                part = comes.groups.get(key, {})
                sends[key] = self._sends(task, per_s, estimate, max(1, len(part)))
        entry["cost"] = {
            key: _round(self._work(estimate, per_s, comes.bytes_per_s[key]))
            for key, per_s in comes.per_s.items()
        }
        entry["rate"] = {key: _round(per_s * size) for key, per_s in sends.items()}
        rates = {key: per_s * size for key, per_s in sends.items()}
        self._flows[task.key] = Flow(sends, rates, comes.groups)

    def _single(
        self, task: Task, entry: dict[str, Any], comes: Flow, estimate: Estimate, size: Number
    ) -> None:
        total, volume = sum(comes.per_s.values()), sum(comes.bytes_per_s.values())
        groups = estimate.groups or self._groups(task, comes)
        sends = estimate.per_s
        if sends is None:
            sends = self._sends(task, total, estimate, groups)
        entry["cost"] = _round(self._work(estimate, total, volume))
        entry["rate"] = _round(sends * size)
        self._flows[task.key] = Flow({"": sends}, {"": sends * size})

    def _partials(
        self, task: Task, entry: dict[str, Any], comes: Flow, estimate: Estimate, size: Number
    ) -> None:
        """Each broker sends its groups' partial results once a window; the header takes them."""
        keys = [key for key in comes.per_s if key]
        most = max((len(comes.groups.get(key, {})) for key in keys), default=1)
        groups = estimate.groups or self._groups(task, comes)
        every_s = _every_s(task)
        partial_per_s = min(max(1, most), groups) / every_s if every_s else 1
        entry["cost"] = {
            key: _round(self._work(estimate, comes.per_s[key], comes.bytes_per_s[key]))
            for key in keys
        }
        entry["partial_rate"] = _round(partial_per_s * size)
        merged = partial_per_s * len(keys)
        entry["merge_cost"] = _round(self._work(estimate, merged, merged * size))

    def _groups(self, task: Task, comes: Flow) -> int:
        """Count the keys that `group by` meets, as far as the sources tell."""
        cases = task.node.cases if isinstance(task.node, tree.Definition) else (task.node.case,)
        if not any(case.group_by for case in cases):
            return 1
        known: dict[str, None] = {}
        for groups in comes.groups.values():
            known.update(groups)
        return max(1, len(known))

    def _sends(self, task: Task, comes_per_s: Number, estimate: Estimate, groups: int) -> Number:
        """Events a second that a task sends, told or guessed by what kind of task it is."""
        if estimate.passes is not None:
            return comes_per_s * estimate.passes
        name = self._names[task.key]
        every_s = _every_s(task)
        if every_s is not None:
            return groups / every_s
        window = task.node.window if isinstance(task.node, tree.Definition) else None
        if window is not None and window.runs:
            self.guessed.append(f"{name}: taken to send {SESSION_PASSES} of what comes in")
            return comes_per_s * SESSION_PASSES
        if len(task.inputs) > 1:
            self.guessed.append(f"{name}: taken to send as often as its rarest input comes")
            return min(self._rarest(task), comes_per_s)
        self.guessed.append(f"{name}: taken to send as often as its input comes")
        return comes_per_s

    def _rarest(self, task: Task) -> Number:
        rates = []
        for name in task.inputs:
            if name in task.needs:
                rates.append(sum(self._flows[task.needs[name]].per_s.values()))
            else:
                wanted = [c for c in self._contents if c.type == name and task.key in c.wanted]
                rates.append(sum(sum(c.per_s.values()) for c in wanted))
        return min(rates, default=0)

    def _work(self, estimate: Estimate, per_s: Number, bytes_per_s: Number) -> Number:
        return bytes_per_s / BYTES_A_UNIT if estimate.work is None else per_s * estimate.work

    def _destinations(self, task: Task) -> tuple[str, ...]:
        node = task.node
        if not isinstance(node, tree.Subscription):
            return ()
        home = self._network.home_of(node.subscriber, node.name)
        actor = node.actor
        listening = self._network.listeners(
            actor.name, home, below=actor.group_key is not None, nearest=actor.nearest
        )
        return tuple(dict.fromkeys((home, *listening)))


def _join(together: Flow, more: Flow) -> None:
    for key, per_s in more.per_s.items():
        together.per_s[key] = together.per_s.get(key, 0) + per_s
        rate = together.bytes_per_s.get(key, 0) + more.bytes_per_s[key]
        together.bytes_per_s[key] = rate
    for key, groups in more.groups.items():
        together.groups.setdefault(key, {}).update(groups)


def _width(node: tree.Definition | tree.Subscription) -> int:
    """Count the values that an event or result of a task has."""
    cases = node.cases if isinstance(node, tree.Definition) else (node.case,)
    return max([len(case.assign) for case in cases], default=0)


def _every_s(task: Task) -> float | None:
    """The seconds between a window's reports; None where no clock makes them."""
    window = task.node.window if isinstance(task.node, tree.Definition) else None
    if window is None:
        return None
    if window.every_days is not None:
        return window.every_days * 86_400.0
    return None if window.every_ms is None else window.every_ms / 1000
