"""The operators of a task, and of all that a subscription needs.

Owns ids and names in operators. Must not know who asks for them or where they go. Invariant: the
same task gives the same operators on every broker, and two that ask for the same are equal, so that
whoever installs them counts how often.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from broker.engine.event.identity import digest
from broker.engine.pattern.layout.operands import Leaf
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.network.operators import reasons
from broker.network.operators.decision import Group, decide
from broker.network.operators.keys import key_of
from broker.network.operators.times import Times
from broker.network.routing.advertisement.operator import Key, Operator
from language.taskgraph import cases_of
from language.tree import Case, Definition

if TYPE_CHECKING:
    from language.taskgraph import Task, TaskGraph


def operators_of(graph: TaskGraph, root: str, times: Times) -> tuple[Operator, ...]:
    """Return what a subscription's home needs of others, by id: for it and for its definitions.

    All these tasks run at the home, so that what definitions make does not travel.
    """
    needed, waiting = {root: None}, [root]
    while waiting:
        for need in graph.tasks[waiting.pop()].needs.values():
            if need not in needed:
                needed[need] = None
                waiting.append(need)
    tasks = [graph.tasks[key] for key in needed]
    return _distinct(operator for task in tasks for operator in task_operators(task, times))


class Reasoned(NamedTuple):
    """An operator, and why its events travel as it says."""

    operator: Operator  # as it is asked
    why: str  # in words


def task_operators(
    task: Task, times: Times, away: Collection[str] = frozenset()
) -> tuple[Operator, ...]:
    """Return what one task needs of others among its inputs, by id.

    `away` are the keys of definitions that run elsewhere: what they make travels like events of a
    source, of the type that `agents.input_name` says.
    """
    cases = [_of_case(case, task, times, away) for case in cases_of(task.node)]
    return _distinct(reasoned.operator for of_case in cases for reasoned in of_case)


def reasoned_operators(task: Task, case: Case, times: Times) -> tuple[Reasoned, ...]:
    """Return what one case of a task adds to `task_operators`, by id, each with all its reasons."""
    kept = dict.fromkeys([operator.id for operator in task_operators(task, times)])
    by_id: dict[str, tuple[Operator, dict[str, None]]] = {}
    for operator, reason in _of_case(case, task, times, ()):
        why = reason if operator.id in kept else reasons.ANYHOW
        by_id.setdefault(operator.id, (operator, {}))[1][why] = None
    return tuple([Reasoned(each, "; ".join(whys)) for _, (each, whys) in sorted(by_id.items())])


def _of_case(case: Case, task: Task, times: Times, away: Collection[str]) -> list[Reasoned]:
    local_types = frozenset(name for name, key in task.needs.items() if key not in away)
    window = task.node.window if isinstance(task.node, Definition) else None
    layout = lay_out(case)
    if window is None or not window.aggregated:
        return _of_pattern(case, layout, task, times, local_types)
    alone = [leaf for leaf in layout.leaves if leaf.event_type not in local_types]
    singles = [_single(_key(leaf, task, alone=False)) for leaf in alone]
    return [Reasoned(operator, reasons.WINDOW) for operator in singles]


def _of_pattern(
    case: Case, layout: Layout, task: Task, times: Times, here: Collection[str]
) -> list[Reasoned]:
    travel = decide(layout, times, here, task.needs, partitioned=bool(case.group_by))
    whole = [_single(Key(_type(task, name), _type(task, name))) for name in travel.whole]
    reasoned = [Reasoned(operator, travel.why_whole) for operator in whole]
    reasoned += [Reasoned(_single(_key(leaf, task)), why) for leaf, why in travel.alone]
    reasoned += [Reasoned(_joined(group, task), group.why) for group in travel.groups]
    return reasoned


def _key(leaf: Leaf, task: Task, *, alone: bool = True) -> Key:
    key = key_of(leaf, task.types[leaf.event_type].attributes, alone=alone)
    name = _type(task, leaf.event_type)
    return msgspec.structs.replace(key, name=name, type_name=name)


def _type(task: Task, name: str) -> str:
    """Return what the events of an input are called outside: as agents.input_name has it."""
    made_by = task.needs.get(name)
    return name if made_by is None else f"{name}@{made_by}"


def _single(key: Key) -> Operator:
    return _identified(Operator("", (key,), correlated=False))


def _joined(group: Group, task: Task) -> Operator:
    keys = [_key(leaf, task) for leaf in group.mandatory]
    keys += [msgspec.structs.replace(_key(leaf, task), optional=True) for leaf in group.optional]
    return _identified(Operator("", _named(keys), group.delta_t_ms, group.delta_l, strict=True))


def _named(keys: Sequence[Key]) -> tuple[Key, ...]:
    """Keys under names that are alike where two operators ask for the same types."""
    by_name: dict[str, Key] = {}
    for key in sorted(keys, key=lambda key: (key.type_name, key.optional, repr(key))):
        name, count = key.type_name, 1
        while name in by_name:
            count += 1
            name = f"{key.type_name}#{count}"
        by_name[name] = msgspec.structs.replace(key, name=name)
    return tuple(by_name[name] for name in sorted(by_name))


def _plain(key: Key) -> Key:
    return msgspec.structs.replace(key, name=key.type_name, optional=False)


def _identified(operator: Operator) -> Operator:
    *asked, _is_part = msgspec.to_builtins(operator)  # what a task asks for is whole
    return msgspec.structs.replace(operator, id=digest("operator", asked))


def _distinct(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Each once, by id, but none whose events travel anyhow, partners or not."""
    by_id = {operator.id: operator for operator in operators}
    single = {repr(operator.keys[0]) for operator in by_id.values() if not operator.correlated}
    return tuple(
        by_id[name]
        for name in sorted(by_id)
        if not by_id[name].correlated
        or not all(repr(_plain(key)) in single for key in by_id[name].keys)
    )
