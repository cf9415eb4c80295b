"""Strategies of a router: what is asked of whom, and how what is asked is matched.

Owns the choices in which filter-split-forward and its rivals differ (paper 002, sections III and
V). Must not know events or what has been sent. Invariant: under every strategy all events of every
complete match reach the subscription; strategies differ in what else travels, and how often.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.advertisement.sources import Directory, answerable, asked_of, project
from broker.network.routing.covering.covering import Check, Sampler

Plan = dict[str, dict[str, Operator]]
"""What is asked of each neighbour, by id."""


class Strategy(NamedTuple):
    """One way to propagate operators and events.

    `received` decides which operators of a neighbour are covered where they arrive, `sent` which
    are not sent because what was sent before covers them. `each`: each operator has its own result
    set, covered ones included; else an event goes over a link once. `rings`: operators are split
    into binary joins. `central`: everything happens at one broker. `clip`: see `project`.
    `sampler`: what a sampled check asks. `leads`: what comes often waits for what is rare.
    """

    name: str  # as figures and options call it
    received: Check = Check.NONE  # compares what comes in
    sent: Check = Check.NONE  # compares what goes out
    each: bool = False  # no event is shared between two results
    rings: bool = False
    central: bool = False  # everything goes to one broker
    clip: bool = False  # ranges are cut to what sources promise
    sampler: Sampler | None = None  # of the sampled check
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
