"""Problems in other units, so that what searches and solvers take for rounding is none.

Owns the factors. Must not know how a plan is found. Invariant: factors are powers of two, so that
no number is rounded, and a plan keeps the limits of the one problem just if it keeps the other's.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from planner.layout import Layout, lay_out
from planner.problem import Node, Number, Problem, Task

RATE_MIN, RATE_MAX = 1e-3, 1e15  # of the greatest rate, where rates are taken as they are
RATE_BITS = 20  # about so many has the greatest one else: bytes a second as they are usual
COST_MIN, COST_MAX = 1e-3, 1e9  # likewise of the least cost, else about 1: it is told from nothing
BITS_MAX = 500  # a float holds what is below two to the power of 1024, and so the sums and prices


@dataclass(frozen=True)
class Scaled:
    """A layout with rates and costs in other units: flows are `2 ** power` times as large."""

    layout: Layout
    power: int

    def given(self, flow: float) -> float:
        """A flow in the units that were given."""
        return math.ldexp(flow, -self.power)


def scaled(layout: Layout) -> Scaled:
    """The same in units in which rates and costs are as large as they usually are."""
    problem = layout.problem
    power, cost_power = _rate_power(problem), _cost_power(problem)
    if not power and not cost_power:
        return Scaled(layout, 0)
    return Scaled(lay_out(_in_units(problem, power, cost_power)), power)


def _rate_power(problem: Problem) -> int:
    most = max(_rates(problem), default=0)
    return 0 if not most or RATE_MIN <= most <= RATE_MAX else RATE_BITS - _bits(most)


def _cost_power(problem: Problem) -> int:
    positive = [cost for cost in _costs(problem) if cost > 0]
    if not positive or COST_MIN <= min(positive) <= COST_MAX:
        return 0
    return min(1 - _bits(min(positive)), BITS_MAX - _bits(max(positive)))


def _bits(number: Number) -> int:
    return math.frexp(number)[1]


def _rates(problem: Problem) -> Iterator[Number]:
    for content in problem.contents:
        yield from content.rates.values()
    for task in problem.tasks:
        yield from _values(task.rate)
        yield task.partial_rate


def _costs(problem: Problem) -> Iterator[Number]:
    for task in problem.tasks:
        yield from _values(task.cost)
        yield task.merge_cost


def _values(value: Number | Mapping[str, Number]) -> Iterable[Number]:
    return value.values() if isinstance(value, Mapping) else (value,)


def _in_units(problem: Problem, power: int, cost_power: int) -> Problem:
    def node(one: Node) -> Node:
        capacity, egress = _limit(one.capacity, cost_power), _limit(one.egress, power)
        return replace(one, capacity=capacity, egress=egress)

    def task(one: Task) -> Task:
        return replace(
            one,
            rate=_each(one.rate, power),
            cost=_each(one.cost, cost_power),
            merge_cost=_times(one.merge_cost, cost_power),
            partial_rate=_times(one.partial_rate, power),
        )

    links = [replace(link, capacity=_limit(link.capacity, power)) for link in problem.links]
    contents = [replace(content, rates=_all(content.rates, power)) for content in problem.contents]
    return replace(
        problem,
        nodes=tuple(map(node, problem.nodes)),
        links=tuple(links),
        contents=tuple(contents),
        tasks=tuple(map(task, problem.tasks)),
    )


def _limit(limit: Number | None, power: int) -> Number | None:
    """In other units; none where nothing comes to so much."""
    if limit is None or _bits(limit) + power > BITS_MAX:
        return None
    return _times(limit, power)


def _times(number: Number, power: int) -> Number:
    return math.ldexp(number, power) if power else number  # what is whole stays whole


def _each(value: Number | Mapping[str, Number], power: int) -> Number | Mapping[str, Number]:
    return _all(value, power) if isinstance(value, Mapping) else _times(value, power)


def _all(values: Mapping[str, Number], power: int) -> Mapping[str, Number]:
    return {key: _times(number, power) for key, number in values.items()}
