"""The rival that splits operators into rings of binary joins: multi-join.

Owns what its routers ask of whom, and how that is matched (paper 002, section III.B). Must not know
events or what has been sent. Invariant: all events of every complete match reach the subscription.
"""

from __future__ import annotations

from msgspec.structs import replace

from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.advertisement.sources import (
    SEPARATOR,
    Directory,
    answerable,
    project,
    simplest,
)
from broker.network.routing.matching.joins import Variant
from broker.network.routing.matching.matching import Part, parts_of, plain
from broker.network.routing.matching.strategies import Plan
from broker.network.routing.router import RoutedOperator, Router


class RingRouter(Router):
    """A router that asks for binary joins where the sources of an operator part."""

    def _plan(self, entry: RoutedOperator) -> Plan:
        operator, directory = entry.operator, self._directory
        if entry.covered or not answerable(operator, directory):
            return {}
        others = [name for name in directory.directions if name not in (entry.came_from, LOCAL)]
        return _rings(operator, others, directory)

    def _parts(self, operator: Operator, came_from: str) -> list[Part]:
        return _parts(operator, came_from, self._directory)


def _parts(operator: Operator, came_from: str, directory: Directory) -> list[Part]:
    if came_from == LOCAL or not _joins(operator):
        return parts_of(operator)
    around = _around(operator.keys, directory)
    if len(around) == 1:  # what comes from there has been matched there
        return [
            Part(((plain(key), False),), via=around[0])
            for key in operator.keys
            if operator.main in ("", key.name)
        ]
    return [_pair_parts(operator, main, other, directory) for main, other in _pairs(operator)]


def _joins(operator: Operator) -> bool:
    return operator.correlated and len(operator.keys) > 1 and operator.delta_t_ms is not None


def _around(keys: tuple[Key, ...], directory: Directory) -> list[str]:
    """The directions with sources of any of the keys."""
    where = [name for key in keys for name in directory.where(key)]
    return [name for name in directory.directions if name in where]


def _pairs(operator: Operator) -> list[tuple[Key, Key]]:
    """The ring of binary joins: each key sanctioned by the next; one of them where `main` says."""
    keys = operator.keys
    ring = [(key, keys[(place + 1) % len(keys)]) for place, key in enumerate(keys)]
    return [pair for pair in ring if operator.main in ("", pair[0].name)]


def _pair_parts(operator: Operator, main: Key, other: Key, directory: Directory) -> Part:
    around = _around((main, other), directory)
    if len(around) == 1:
        return Part(((plain(main), False),), via=around[0])
    variant = Variant(operator.delta_t_ms or 0, operator.delta_l, operator.strict)
    # Optional: an event of `main` is wanted if the other is there; silent: the other is not.
    return Part(((replace(main, optional=True), False), (plain(other), True)), variant)


def _rings(operator: Operator, others: list[str], directory: Directory) -> Plan:
    """Whole as long as all sources lie in one direction, there binary joins, then simple filters
    (paper 002, section III.B).
    """
    made: Plan = {}
    if not _joins(operator):
        for name in others:
            projected = project(operator, name, directory)
            if projected is not None:
                made[name] = {projected.id: projected}
        return made
    around = _around(operator.keys, directory)
    if len(around) == 1:
        return {around[0]: {operator.id: operator}} if around[0] in others else {}
    for main, other in _pairs(operator):
        _place_pair(operator, (main, other), (others, directory), made)
    return {name: made[name] for name in others if name in made}


def _place_pair(
    operator: Operator, pair: tuple[Key, Key], at: tuple[list[str], Directory], made: Plan
) -> None:
    others, directory = at
    base = operator.id.partition(SEPARATOR)[0]
    around = _around(pair, directory)
    if len(around) == 1:
        if around[0] in others:
            name = f"{base}{SEPARATOR}{pair[0].name}>"
            keys = tuple(sorted(pair, key=lambda key: key.name))
            joined = replace(operator, id=name, keys=keys, main=pair[0].name)
            made.setdefault(around[0], {})[name] = joined
        return
    for key in pair:
        name = f"{base}{SEPARATOR}{key.name}"
        alone = simplest(replace(operator, id=name, keys=(key,), main=""))
        for where in directory.where(key):
            if where in others:
                made.setdefault(where, {})[name] = alone
