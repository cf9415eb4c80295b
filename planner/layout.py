"""What of a problem is placed, and which streams run between what is placed.

Owns the pieces and the streams. Must not know a plan, nor what anything costs to carry. Invariant:
the pieces stand in the order of the tasks and, within a task, of its keys, the header last; so a
plan is a host for each piece, in order.

A *piece* is what needs one host: a task, a shard of it, a key of an aggregate (all keys of one
aggregate at one broker share a partial there) or a header.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from planner.problem import PARTIAL_MARK, Mode, Number, Problem, Task


class Role(Enum):
    """Tell what a piece is of its task."""

    TASK = "task"
    SHARD = "shard"
    PARTIAL = "partial"
    HEADER = "header"


def piece_name(task: str, role: Role, key: str) -> str:
    """Name a piece for people; names hold anything, so two may be called the same."""
    if role is Role.SHARD:
        return f"{task}@{key}"
    if role is Role.PARTIAL:
        return f"{task}/partial of {key}"
    return f"{task}/header" if role is Role.HEADER else task


@dataclass(frozen=True, slots=True)
class Piece:
    """Describe what needs one host, out of `hosts` (numbers of brokers, ascending)."""

    task: str
    role: Role
    key: str
    cost: Number
    hosts: tuple[int, ...]

    @property
    def known_by(self) -> tuple[str, Role, str]:
        """Return what no other piece of a problem has, whatever names hold."""
        return self.task, self.role, self.key

    def __str__(self) -> str:
        return piece_name(self.task, self.role, self.key)


@dataclass(frozen=True, slots=True)
class Stream:
    """Describe what is sent at `rate` from a broker, or from where a piece is, and to where."""

    name: str
    rate: Number
    origin: int | None
    """The broker that it enters at; None where a piece sends it."""
    piece: int | None
    consumers: tuple[int, ...]
    destinations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The pieces of an aggregate; from each broker with a partial goes `rate` to the header."""

    task: str
    rate: Number
    partials: tuple[int, ...]
    header: int


@dataclass(frozen=True)
class Layout:
    """The pieces and streams of a problem."""

    problem: Problem
    numbers: Mapping[str, int]
    pieces: tuple[Piece, ...]
    streams: tuple[Stream, ...]
    aggregates: tuple[Aggregate, ...]
    ranks: tuple[int, ...]
    """By piece, the place of its task in an order in which each comes after its feeders."""


@dataclass
class _Making:
    problem: Problem
    numbers: dict[str, int]
    everywhere: tuple[int, ...]
    pieces: list[Piece] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    consumers: dict[str, list[int]] = field(default_factory=dict)
    senders: dict[str, tuple[Number, int, Sequence[str]]] = field(default_factory=dict)


def lay_out(problem: Problem) -> Layout:
    """The pieces and streams of a problem."""
    numbers = {node.id: number for number, node in enumerate(problem.nodes)}
    making = _Making(problem, numbers, tuple(numbers.values()))
    for task in problem.tasks:
        first = len(making.pieces)
        if task.mode is Mode.SINGLE:
            _add(making, task, Role.TASK, "", task.cost_of(""))
        else:
            role = Role.SHARD if task.mode is Mode.SHARDED else Role.PARTIAL
            for key in problem.input_keys(task):
                _add(making, task, role, key, task.cost_of(key))
            if task.mode is Mode.AGGREGATE:
                partials = tuple(range(first, len(making.pieces)))
                header = len(partials) + first
                _add(making, task, Role.HEADER, "", task.merge_cost)
                making.aggregates.append(Aggregate(task.id, task.partial_rate, partials, header))
    ranks = {task.id: rank for rank, task in enumerate(problem.in_order())}
    return Layout(
        problem,
        making.numbers,
        tuple(making.pieces),
        tuple(_streams(making)),
        tuple(making.aggregates),
        tuple(ranks[piece.task] for piece in making.pieces),
    )


def _add(making: _Making, task: Task, role: Role, key: str, cost: Number) -> None:
    hosts = making.everywhere
    if task.hosts is not None:
        hosts = tuple(sorted(making.numbers[name] for name in task.hosts))
    piece = len(making.pieces)
    making.pieces.append(Piece(task.id, role, key, cost, hosts))
    if role is not Role.HEADER:
        for name in task.inputs:
            for stream in _wanted(making.problem, name, key, all_keys=role is Role.TASK):
                making.consumers.setdefault(stream, []).append(piece)
    if role is not Role.PARTIAL:
        name = f"{task.id}@{key}" if role is Role.SHARD else task.id
        destinations = task.destinations_of(key)
        making.senders[name] = (task.rate_of(key), piece, destinations)


def _wanted(problem: Problem, name: str, key: str, *, all_keys: bool) -> list[str]:
    """The streams of an input that a piece needs; one without keys goes to every shard."""
    keys = problem.keys[name]
    if keys is None:
        return [name]
    return [f"{name}@{each}" for each in keys if all_keys or each == key]


def _streams(making: _Making) -> list[Stream]:
    numbers, streams = making.numbers, []
    for content in making.problem.contents:
        for key, rate in content.rates.items():
            name = f"{content.id}@{key}"
            consumers = tuple(making.consumers.get(name, ()))
            streams.append(Stream(name, rate, numbers[key], None, consumers, ()))
    for name, (rate, piece, destinations) in making.senders.items():
        consumers = tuple(making.consumers.get(name, ()))
        ends = tuple(sorted(numbers[end] for end in destinations))
        streams.append(Stream(name, rate, None, piece, consumers, ends))
    return streams


def partial_name(task: str, broker: str) -> str:
    """Name what an aggregate's partial at a broker sends; `task` and `broker` may hold any text."""
    return f"{task}{PARTIAL_MARK}{broker}"


@dataclass(frozen=True, slots=True)
class Carried:
    """A stream with its ends known: who sends it, and who must get it."""

    name: str
    rate: Number
    source: int
    targets: tuple[int, ...]
    number: int
    """Its place among the layout's streams or, counted on behind them, its aggregate's place."""


def carried(layout: Layout, hosts: Sequence[int], routed: Collection[str] = ()) -> list[Carried]:
    """The streams that leave a broker when each piece is at its host, in a fixed order.

    Those that are `routed` do so in any case, even if nobody elsewhere wants them.
    """
    sent = []
    for number, stream in enumerate(layout.streams):
        source = stream.origin if stream.piece is None else hosts[stream.piece]
        assert source is not None
        ends = {hosts[piece] for piece in stream.consumers}
        ends.update(stream.destinations)
        ends.discard(source)
        if ends or stream.name in routed:
            sent.append(Carried(stream.name, stream.rate, source, tuple(sorted(ends)), number))
    for number, aggregate in enumerate(layout.aggregates, len(layout.streams)):
        header = hosts[aggregate.header]
        for source in sorted({hosts[piece] for piece in aggregate.partials}):
            name = partial_name(aggregate.task, layout.problem.nodes[source].id)
            if source != header or name in routed:
                ends = {header} - {source}
                sent.append(Carried(name, aggregate.rate, source, tuple(ends), number))
    return sent
