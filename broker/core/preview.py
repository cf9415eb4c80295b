"""The changes that a submission makes, also told before it is done.

Owns the form of that answer and what it says of state, bounds and traffic, and the choice of the
tasks that go on under a changed text. Must not change anything, nor decide what is installed:
`installer` does; nor how a state is carried over (`broker.engine.runtime.succession`). Invariant:
what is said to keep its state keeps it, if the same text is submitted next; and a task is said to
go on only where nothing of what it should hold can have been missed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from broker.engine.pattern.bounds.bounds import Inputs, bounds_of, stated
from broker.engine.runtime.succession import Heir, heirs_of
from broker.network.host.needs import asked_operators, primitives
from broker.network.operators.phrases import in_words
from broker.network.operators.times import Times
from language import EventType, Specification

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue, Installed
    from broker.core.options import BrokerOptions
    from broker.engine.limits import Limits
    from broker.engine.runtime.matcher import Matcher
    from broker.network.replication.time_promises import TimeBound
    from language import Task, TaskGraph

Change = Literal["new", "same", "changed"]


class TaskWords(msgspec.Struct, frozen=True):
    """Sentences about one task."""

    task: str
    lines: tuple[str, ...]


class SubscriptionPreview(msgspec.Struct, frozen=True):
    """One subscription: what becomes of it, and of the definitions that it needs.

    `keeps` are the definitions that go on with what they hold, `begins` those that begin with
    nothing. `goes_on` says the same of the subscription itself. `parts`: of what begins, the
    operands that go on all the same, by the names of their atoms.
    """

    subscription: str
    subscriber: str
    change: Change
    keeps: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    goes_on: bool = True
    parts: tuple[TaskWords, ...] = ()


class Preview(msgspec.Struct, frozen=True):
    """The changes that a text would make; `ends` are definitions that nobody would need any more.

    `bounds`: the most that each task which begins can hold; `travels`: what its home would ask
    other brokers for.
    """

    subscriptions: tuple[SubscriptionPreview, ...]
    ends: tuple[str, ...] = ()
    bounds: tuple[TaskWords, ...] = ()
    travels: tuple[TaskWords, ...] = ()

    def payload(self) -> bytes:
        """Return the answer as JSON."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return msgspec.json.encode({"ok": True, "dry_run": True, **fields})


def bounds_in_words(
    graph: TaskGraph, begun: Collection[str], limits: Limits, lateness_ms: int | None
) -> tuple[TaskWords, ...]:
    """Return, of the tasks of these keys, the most that each holds at one event a second."""
    inputs = Inputs(lateness_ms=lateness_ms or 0)
    return _by_task(
        (task.name, stated(bound, inputs))
        for task, _, bound in bounds_of(graph, inputs, limits)
        if task.key in begun
    )


def travels_in_words(
    graph: TaskGraph,
    begun: Collection[str],
    limits: Limits,
    options: BrokerOptions,
    promised: Callable[[str], TimeBound],
) -> tuple[TaskWords, ...]:
    """Return, of the tasks of these keys, the operators that their home asks others for.

    `promised` returns what is promised of the times of a type by now.
    """
    allowed = Times.of(limits, options.drift_ppm)
    joins_ms = limits.kept_back_ms_max if options.correlate else None
    lines: list[tuple[str, str]] = []
    for task in [graph.tasks[key] for key in graph.tasks if key in begun]:
        times = allowed.promised({name: promised(name) for name in primitives(task, graph.tasks)})
        operators = asked_operators(task, times, joins_ms)
        lines += [(task.name, line) for line in sorted(map(in_words, operators))]
    return _by_task(lines)


def _by_task(lines: Iterable[tuple[str, str]]) -> tuple[TaskWords, ...]:
    by_name: dict[str, list[str]] = {}
    for name, line in lines:
        by_name.setdefault(name, []).append(line)
    return tuple([TaskWords(name, _distinct(listed)) for name, listed in by_name.items()])


def _distinct(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))


# --- what goes on --------------------------------------------------------------------------------


class CellChange(msgspec.Struct, frozen=True):
    """Subscriptions of a text that go on in a cell, or are added to it.

    `begins`: some task of these begins with nothing, be it but for some operands.
    """

    cell: str
    keys: tuple[tuple[str, str], ...]
    begins: bool


class Predecessors(msgspec.Struct, frozen=True):
    """Tasks that hold all that they should, in one place: those of a `cell`, or of this broker.

    `keys` are the subscriptions that go on there together, or begin there.
    """

    tasks: Mapping[str, Task] = {}
    cell: str = ""
    keys: tuple[tuple[str, str], ...] = ()


class TextChange(msgspec.Struct):
    """A specification as a change: subscriptions to come, and those that go for them.

    `heirs` are, by subscription, tasks that go on from the state of those that they replace, in
    cells too; `cells` are these, as they will be. `keys` are those of the specification's
    subscriptions that are meant.
    """

    text: str
    specification: Specification
    keys: dict[tuple[str, str], None]
    coming: list[Installed]
    leaving: list[Installed]
    types: list[EventType]
    declared: str
    heirs: dict[tuple[str, str], dict[str, Heir]] = {}
    cells: tuple[CellChange, ...] = ()
    apart: bool = True

    def begins(self, coming: Installed) -> list[str]:
        """Return the tasks of a subscription that begin anew, be it but for some operands."""
        keys = (*coming.definitions, coming.task)
        parts = self.parts_of(coming)
        return [key for key in keys if key not in coming.kept or key in parts]

    def parts_of(self, coming: Installed) -> dict[str, tuple[str, ...]]:
        """Return, by task of a subscription, the operands that go on where others do not."""
        heirs = self.heirs.get(coming.key, {})
        keys = (*coming.definitions, coming.task)
        return {key: heirs[key].parts for key in keys if key in heirs and heirs[key].parts}


def own_predecessors(
    keys: Sequence[tuple[str, str]],
    catalogue: Catalogue,
    matcher: Matcher,
    elsewhere: Container[tuple[str, str]],
) -> Predecessors:
    """Return what subscriptions that are to run at this broker may go on from.

    The subscriptions of `elsewhere` run at other brokers.
    """
    running, suspended = matcher.tasks(), matcher.suspensions.why
    # A task of subscriptions that wait for other brokers may have missed what it should hold.
    complete = {
        key: running[key]
        for subscription in catalogue.subscriptions.values()
        if subscription.state == "active" and subscription.key not in elsewhere
        for key in (*subscription.definitions, subscription.task)
        if key in running and subscription.instance_of(key) not in suspended
    }
    return Predecessors(complete, "", tuple(keys))


def look_for_heirs(
    change: TextChange, predecessors: Iterable[Predecessors], limits: Limits
) -> None:
    """Find the tasks that go on: those that stay, and those that take over from others."""
    coming = {subscription.key: subscription for subscription in change.coming}
    # A store for chains holds events, and of operands nothing.
    with_parts = not limits.chain_events_max
    by_cell: dict[str, CellChange] = {}
    for earlier in predecessors:
        members = [coming[key] for key in earlier.keys]
        replaced = [(each, coming[each.key]) for each in change.leaving if each.key in earlier.keys]
        for before, after in replaced:
            _keep(change, earlier, before, after, with_parts)
        if not change.apart:
            _keep_shared(change, earlier, [after for _, after in replaced])
        for before, after in replaced:
            begins = change.begins(after)
            if after.task not in begins and change.specification.subscriptions[after.key].for_ms:
                after.ends = before.ends  # it goes on from its beginning
            if before.state == "active" and not begins and not earlier.cell:
                after.state = "active"  # it needs nothing of others that it has not had so far
        if earlier.cell and any(after.kept for _, after in replaced):
            if not change.apart:
                _keep_shared(change, earlier, members)
            others = by_cell.get(earlier.cell, CellChange(earlier.cell, (), begins=False))
            begin = others.begins or any(map(change.begins, members))
            both = (*others.keys, *earlier.keys)
            by_cell[earlier.cell] = CellChange(earlier.cell, both, begins=begin)
    change.cells = tuple(by_cell.values())


def _keep(
    change: TextChange, earlier: Predecessors, before: Installed, after: Installed, parts: bool
) -> None:
    """Note which tasks of a subscription go on: those that it had, and heirs of these."""
    tasks = change.specification.graph.tasks
    had = {
        key: earlier.tasks[key]
        for key in (*before.definitions, before.task)
        if key in earlier.tasks
    }
    keys = (*after.definitions, after.task)
    heirs = heirs_of(had.values(), [tasks[key] for key in keys], with_parts=parts)
    heirs = {key: heir for key, heir in heirs.items() if key not in had}
    if heirs:
        change.heirs[after.key] = heirs
    after.kept = tuple([key for key in keys if key in had or key in heirs])


def _keep_shared(
    change: TextChange, earlier: Predecessors, subscriptions: Iterable[Installed]
) -> None:
    """Note which tasks of these go on where each has what runs for any, as records have it."""
    tasks = earlier.tasks
    rows = [change.heirs.get(key, {}) for key in earlier.keys]
    heirs = {key: heir for row in rows for key, heir in row.items() if key not in tasks}
    for after in subscriptions:
        change.heirs[after.key] = heirs
        keys = (*after.definitions, after.task)
        after.kept = tuple([key for key in keys if key in tasks or key in heirs])


def row_of(
    change: TextChange, coming: Installed, begins: Collection[str], kind: Change
) -> SubscriptionPreview:
    """Return the row of a subscription, with the keys of those of its tasks that begin anew."""
    tasks = change.specification.graph.tasks
    names = {key: tasks[key].name for key in coming.definitions}
    return SubscriptionPreview(
        coming.name,
        coming.subscriber,
        kind,
        tuple([name for key, name in names.items() if key not in begins]),
        tuple([name for key, name in names.items() if key in begins]),
        coming.task not in begins,
        tuple([TaskWords(tasks[key].name, kept) for key, kept in change.parts_of(coming).items()]),
    )


def rows_of(change: TextChange) -> tuple[SubscriptionPreview, ...]:
    """Return what becomes of the subscriptions that are replaced."""
    replaced = {before.key for before in change.leaving}
    coming = [each for each in change.coming if each.key in replaced]
    return tuple([row_of(change, each, change.begins(each), "changed") for each in coming])
