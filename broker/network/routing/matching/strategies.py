"""Strategies of a router: what is asked of whom, and how what is asked is matched.

Owns the choices in which filter-split-forward and its rivals differ (paper 002, sections III and
V). Must not know events or what has been sent. Invariant: under every strategy all events of every
complete match reach the subscription; strategies differ in what else travels, and how often.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.advertisement.sources import (
    SEPARATOR,
    Directory,
    answerable,
    asked_of,
    project,
    simplest,
)
from broker.network.routing.covering.covering import POINTS, Check
from broker.network.routing.matching.joins import Variant
from broker.network.routing.matching.matching import Part, parts_of, plain

Plan = dict[str, dict[str, Operator]]
"""What is asked of each neighbour, by id."""


class Strategy(NamedTuple):
    """One way to propagate operators and events.

    `received` decides which operators of a neighbour are covered where they arrive, `sent` which
    are not sent because what was sent before covers them. `each`: each operator has its own result
    set, covered ones included; else an event goes over a link once. `rings`: operators are split
    into binary joins. `central`: everything happens at one broker. `clip`: see `project`.
    `points`: how many a sampling check draws. `leads`: what comes often waits for what is rare.
    """

    name: str  # as figures and options call it
    received: Check = Check.NONE  # compares what comes in
    sent: Check = Check.NONE  # compares what goes out
    each: bool = False  # no event is shared between two results
    rings: bool = False
    central: bool = False  # everything goes to one broker
    clip: bool = False  # ranges are cut to what sources promise
    points: int = POINTS  # of the sampled check
    leads: bool = False  # the rarer travels first


FILTER_SPLIT_FORWARD = Strategy("filter-split-forward", Check.EXACT, Check.EXACT)
HOLD_AND_PROBE = Strategy(  # beyond the paper
    "hold-and-probe", Check.EXACT, Check.EXACT, leads=True
)
NAIVE = Strategy("naive", each=True)
OPERATOR_PLACEMENT = Strategy("operator-placement", Check.PAIRWISE, each=True)
MULTI_JOIN = Strategy("multi-join", Check.PAIRWISE, rings=True)
CENTRALISED = Strategy("centralised", each=True, central=True)

STRATEGIES = {
    each.name: each
    for each in (CENTRALISED, NAIVE, OPERATOR_PLACEMENT, MULTI_JOIN, FILTER_SPLIT_FORWARD)
}


def plan(
    strategy: Strategy,
    operator: Operator,
    came_from: str,
    directory: Directory,
    leads: tuple[str, ...] = (),
) -> Plan:
    """Return what an operator makes its broker ask of each other neighbour.

    Nothing as long as a key that must be found has no source anywhere. `leads`: see `asked_of`.
    """
    if not answerable(operator, directory):
        return {}
    others = [name for name in directory.directions if name not in (came_from, LOCAL)]
    if strategy.rings:
        return _rings(operator, others, directory)
    if strategy.leads:
        return asked_of_all(operator, others, directory, leads)
    asked = {name: project(operator, name, directory, clip=strategy.clip) for name in others}
    return {name: {one.id: one} for name, one in asked.items() if one is not None}


def asked_of_all(
    operator: Operator,
    others: list[str],
    directory: Directory,
    leads: tuple[str, ...],
) -> Plan:
    """Return what is asked of these neighbours."""
    asked = {name: asked_of(operator, name, directory, leads) for name in others}
    return {name: operators for name, operators in asked.items() if operators}


def parts(
    strategy: Strategy, operator: Operator, came_from: str, directory: Directory
) -> list[Part]:
    """Return the parts by which events that go to where an operator came from are matched."""
    if not strategy.rings or came_from == LOCAL or not _joins(operator):
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
            one = project(operator, name, directory)
            if one is not None:
                made[name] = {one.id: one}
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
