"""Which subscriptions of one text share a cell: what has nothing in common may run apart.

Owns the parting. Must not know where cells run. Invariant: each subscription is in one part, and
those that need the same definition or the same events of the same places are in one together.

Tasks that consume the same would be placed alike, and each cell costs its host: it is fed by
itself, and saves its state by itself. Seed paper 3 (section 5) calls what shares events dependent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.core.operators.making import task_operators
from broker.core.operators.times import Times

if TYPE_CHECKING:
    from broker.core.catalogue import Installed
    from language import Task

PARTS_MAX = 16  # of one text: each reads all of it once more where it begins
PARTED_MAX = 64  # subscriptions; a longer text takes too long to read for each part

_NO_TIMES = Times(uncertainty_ms_max=0)  # what is asked here does not depend on them


def parts(
    subscriptions: Sequence[Installed], tasks: Mapping[str, Task], most: int
) -> list[list[Installed]]:
    """The subscriptions in parts, at most so many, all in the order given.

    Where there are more, or the text is long, none is parted: a few large cells beside many small
    ones would be placed by chance.
    """
    if most <= 1 or len(subscriptions) > PARTED_MAX:
        return [list(subscriptions)]
    found: list[tuple[set[object], list[Installed]]] = []
    for one in subscriptions:
        shared = set(_shared(one, tasks))
        members = [one]
        apart = []
        for known, others in found:
            if known & shared:
                shared |= known
                members = [*others, *members]
            else:
                apart.append((known, others))
        found = [*apart, (shared, members)]
    if len(found) > most:
        return [list(subscriptions)]
    order = {one.key: place for place, one in enumerate(subscriptions)}
    ordered = [sorted(members, key=lambda one: order[one.key]) for _, members in found]
    return sorted(ordered, key=lambda members: order[members[0].key])


def _shared(one: Installed, tasks: Mapping[str, Task]) -> Iterable[object]:
    """What makes another subscription that has it, too, run with this one."""
    inputs: dict[object, None] = {}
    for name in (*one.definitions, one.task):
        yield name
        for operator in task_operators(tasks[name], _NO_TIMES):
            for key in operator.keys:
                inputs[key.type_name, key.source or "", key.location or "", key.region] = None
    yield frozenset(inputs)
