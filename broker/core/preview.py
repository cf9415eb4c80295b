"""What a submission would change, told before it is done.

Owns the form of that answer and what it says of state, bounds and traffic. Must not change
anything, nor decide what is installed: `installer` does. Invariant: what is said to keep its state
keeps it, if the same text is submitted next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from broker.core.network.needs import asked_operators
from broker.core.operators.times import Times
from broker.core.operators.wording import in_words
from broker.engine.pattern.bounds import Inputs, bounds_of, stated

if TYPE_CHECKING:
    from broker.core.catalogue import Installed
    from broker.core.options import BrokerOptions
    from broker.engine.limits import Limits
    from language import TaskGraph

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


def row_of(
    coming: Installed, begins: Collection[str], graph: TaskGraph, change: Change
) -> SubscriptionPreview:
    """Return the row of a subscription, with the keys of those of its tasks that begin anew."""
    names = {key: graph.tasks[key].name for key in coming.definitions}
    return SubscriptionPreview(
        coming.name,
        coming.subscriber,
        change,
        tuple([name for key, name in names.items() if key not in begins]),
        tuple([name for key, name in names.items() if key in begins]),
        goes_on=coming.task not in begins,
    )


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
    graph: TaskGraph, begun: Collection[str], limits: Limits, options: BrokerOptions
) -> tuple[TaskWords, ...]:
    """Return, of the tasks of these keys, the operators that their home asks others for."""
    times = Times.of(limits, options.drift_ppm)
    joins_ms = limits.kept_back_ms_max if options.correlate else None
    tasks = [graph.tasks[key] for key in graph.tasks if key in begun]
    return _by_task(
        (task.name, in_words(operator))
        for task in tasks
        for operator in asked_operators(task, times, joins_ms)
    )


def _by_task(lines: Iterable[tuple[str, str]]) -> tuple[TaskWords, ...]:
    by_name: dict[str, list[str]] = {}
    for name, line in lines:
        by_name.setdefault(name, []).append(line)
    return tuple([TaskWords(name, _distinct(listed)) for name, listed in by_name.items()])


def _distinct(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
