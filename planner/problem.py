"""A placement problem: brokers, links, contents and tasks, as somebody described them.

Owns the types and what they mean. Must not know the document that they come from (`document`), nor
how a plan is found. Invariant: a problem that was read refers only to what it has: every name of a
broker, content or task in it stands for one, and no task feeds itself.

Rates are in bytes a second, costs and capacities in one unit of work that the describer chooses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from graphlib import CycleError, TopologicalSorter

Number = int | float
PARTIAL_MARK = "/partial@"  # between an aggregate and a broker, in the name of what goes from there


class ProblemError(ValueError):
    """A problem or a plan cannot be used; `path` names the key that is at fault."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class NoSolverError(RuntimeError):
    """The extra that brings HiGHS is not installed, or the problem is too large for it."""


class Mode(Enum):
    """Tell how a task may be divided among brokers."""

    SINGLE = "single"
    SHARDED = "sharded"
    AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class Node:
    """A broker; `capacity` bounds the costs of what runs there, `egress` all that it sends."""

    id: str
    capacity: Number | None = None
    egress: Number | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Two neighbours; `capacity` bounds what goes over it in each direction."""

    a: str
    b: str
    capacity: Number | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """Describe what sources bring in: the rate at each broker where it enters (its origins)."""

    id: str
    rates: Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class Task:
    """Work to be placed.

    A sharded task may have its `cost`, `rate` and `destinations` by key. Of an aggregate, `cost` is
    paid for each key at its partial's broker and `merge_cost` at the header's.
    """

    id: str
    inputs: tuple[str, ...]
    rate: Number | Mapping[str, Number]
    mode: Mode = Mode.SINGLE
    cost: Number | Mapping[str, Number] = 0
    destinations: tuple[str, ...] | Mapping[str, tuple[str, ...]] = ()
    hosts: tuple[str, ...] | None = None
    merge_cost: Number = 0
    partial_rate: Number = 0

    def cost_of(self, key: str) -> Number:
        """Return what the work for one key costs."""
        return self.cost[key] if isinstance(self.cost, Mapping) else self.cost

    def rate_of(self, key: str) -> Number:
        """Return what the work for one key sends."""
        return self.rate[key] if isinstance(self.rate, Mapping) else self.rate

    def destinations_of(self, key: str) -> tuple[str, ...]:
        """The brokers that want what the work for one key sends, whoever else consumes it."""
        if isinstance(self.destinations, Mapping):
            return self.destinations.get(key, ())
        return self.destinations


@dataclass(frozen=True)
class Problem:
    """A network and its tasks; `server` is where the centralised way runs everything."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    contents: tuple[Content, ...]
    tasks: tuple[Task, ...]
    name: str = ""
    server: str | None = None
    keys: Mapping[str, tuple[str, ...] | None] = field(init=False, compare=False)
    """The keys of each content and task, in order; None where its output is one stream."""

    def __post_init__(self) -> None:
        keys: dict[str, tuple[str, ...] | None]
        keys = {content.id: tuple(content.rates) for content in self.contents}
        object.__setattr__(self, "keys", keys)
        for task in self.in_order():
            # Of those that feed it the keys are known by then.
            keys[task.id] = self.input_keys(task) if task.mode is Mode.SHARDED else None

    def input_keys(self, task: Task) -> tuple[str, ...]:
        """The keys that a task's inputs have, each once, in the order of the brokers."""
        keyed = {key for name in task.inputs for key in self.keys[name] or ()}
        return tuple(node.id for node in self.nodes if node.id in keyed)

    def in_order(self) -> list[Task]:
        """The tasks, each after those that it consumes. Raises ProblemError where none can be."""
        tasks = {task.id: task for task in self.tasks}
        sorter = TopologicalSorter(dict.fromkeys(tasks, ()))
        for task in self.tasks:
            sorter.add(task.id, *(name for name in dict.fromkeys(task.inputs) if name in tasks))
        try:
            return [tasks[name] for name in sorter.static_order()]
        except CycleError as error:
            first, *others = reversed(error.args[1])  # each but the first feeds the one before
            circle = " <- ".join([first, *others])
            path = f"tasks[{list(tasks).index(first)}].inputs"
            raise ProblemError(path, f"{first} feeds itself: {circle}") from None
