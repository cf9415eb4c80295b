"""Which subscriptions of one text share a cell: each runs apart, but with whom it shares a task.

Owns the parting. Must not know where cells run. Invariant: each subscription is in one part, and
those that need the same definition are in one together, so that it runs once for all of them.

Those that need the same events are placed each by itself: what travels to several of them travels
once over each link, which the plan knows, and which moves them together where that pays. Yet each
cell costs its host, as it is fed by itself, and saves its state by itself. So where a text comes to
more parts than there may be, what consumes the same inputs stays together; paper 003 (section 5)
calls that dependent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.network.operators.derivation import task_operators
from broker.network.operators.times import Times

if TYPE_CHECKING:
    from broker.core.catalogue import Installed
    from broker.core.messages import SpecificationSubmitted
    from language import Task

PARTS_MAX = 16  # of one text: each reads all of it once more where it begins
PARTED_MAX = 64  # subscriptions; a longer text takes too long to read for each part

_NO_TIMES = Times(uncertainty_ms_max=0)  # what is asked here does not depend on them
_Bonds = Callable[["Installed", Mapping[str, "Task"]], Iterable[object]]


def parts(
    subscriptions: Sequence[Installed],
    tasks: Mapping[str, Task],
    message: SpecificationSubmitted,
    room: int,
) -> list[list[Installed]]:
    """Return the subscriptions in parts, in the order given: as many as `message` allows, and room.

    Where there would be too many even so, or the text is long, none is parted: a few large cells
    beside many small ones would be placed by chance.
    """
    most = min(message.cells, room)
    if most > 1 and len(subscriptions) <= PARTED_MAX:
        for bonds in (_definitions, _inputs) if message.alone else (_inputs,):
            parted = _parted(subscriptions, tasks, bonds)
            if len(parted) <= most:
                return parted
    return [list(subscriptions)] if subscriptions else []


def sharing(subscriptions: Sequence[Installed]) -> list[list[Installed]]:
    """Return those together that need the same definition, in the order given."""
    return _parted(subscriptions, {}, _definitions)


def _parted(
    subscriptions: Sequence[Installed], tasks: Mapping[str, Task], bonds: _Bonds
) -> list[list[Installed]]:
    """Return those together that have a bond in common."""
    groups: list[tuple[set[object], list[Installed]]] = []
    for subscription in subscriptions:
        shared = set(bonds(subscription, tasks))
        members = [subscription]
        apart = []
        for known, others in groups:
            if known & shared:
                shared |= known
                members = [*others, *members]
            else:
                apart.append((known, others))
        groups = [*apart, (shared, members)]
    order = {subscription.key: place for place, subscription in enumerate(subscriptions)}
    parted = [sorted(members, key=lambda each: order[each.key]) for _, members in groups]
    return sorted(parted, key=lambda members: order[members[0].key])


def _definitions(subscription: Installed, _tasks: Mapping[str, Task]) -> Iterable[object]:
    return subscription.definitions


def _inputs(subscription: Installed, tasks: Mapping[str, Task]) -> Iterable[object]:
    """Yield the same, and all of its inputs as one: types, sources and places."""
    yield from subscription.definitions
    inputs: dict[object, None] = {}
    for name in (*subscription.definitions, subscription.task):
        for operator in task_operators(tasks[name], _NO_TIMES):
            for key in operator.keys:
                inputs[key.type_name, key.source or "", key.location or "", key.region] = None
    yield frozenset(inputs)
