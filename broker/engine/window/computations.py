"""The computation of each aggregate: of what a window keeps, and of the members of a list.

Owns one record for each of language.functions.AGGREGATES. Must not know windows or text. Invariant:
a list gives the same value as a window with the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from broker.engine.window.aggregates import Bag, Distinct, unsigned_zero
from broker.engine.window.exact import Moments
from language.functions import AGGREGATES


def _moments(values: Sequence[Any], *, squared: bool = False) -> Moments:
    moments = Moments(squared)
    moments.take(values)
    return moments


def _sum(values: Sequence[Any], _: Any) -> Any:
    whole = all(value.__class__ is int for value in values)
    moments = _moments(values)
    return moments.sum_int() if whole else moments.sum_float()


def _distinct(values: Sequence[Any], _: Any) -> int:
    distinct = Distinct()
    distinct.take(values)
    return distinct.result()


def _quantile(values: Sequence[Any], share: Fraction) -> float | None:
    bag = Bag()
    bag.take(values)
    return bag.quantile(share.numerator, share.denominator)


@dataclass(frozen=True, slots=True)
class Computation:
    """The engine's part of one aggregate.

    `kept`: what a window keeps for it (see window_code.py). `result`: code of its value, `{kept}`
    being what is kept, `{over}` / `{under}` the share of a quantile; `of_whole`: the same where all
    values are integers. `nullable`: whether it may be null though there are values. `of_list`: its
    value of one or more values at hand, in order, with the share.
    """

    kept: str
    result: str
    of_list: Callable[[Sequence[Any], Any], Any]
    nullable: bool = False
    of_whole: str | None = None


_QUANTILE = Computation("bag", "{kept}.quantile({over}, {under})", _quantile)

COMPUTATIONS: dict[str, Computation] = {
    "Count": Computation("tally", "{kept}.n", lambda values, _: len(values)),
    "Sum": Computation(
        "moments", "{kept}.sum_float()", _sum, nullable=True, of_whole="{kept}.sum_int()"
    ),
    "Avg": Computation("moments", "{kept}.mean()", lambda values, _: _moments(values).mean()),
    "StdDev": Computation(
        "squares",
        "{kept}.deviation()",
        lambda values, _: _moments(values, squared=True).deviation(),
    ),
    "Min": Computation("least", "{kept}.result()", lambda values, _: unsigned_zero(min(values))),
    "Max": Computation("greatest", "{kept}.result()", lambda values, _: unsigned_zero(max(values))),
    "Median": _QUANTILE,
    "Quantile": _QUANTILE,
    "First": Computation("ends", "{kept}.first()", lambda values, _: values[0]),
    "Last": Computation("ends", "{kept}.last()", lambda values, _: values[-1]),
    "CountDistinct": Computation("distinct", "{kept}.result()", _distinct),
}


def is_nullable(function: str) -> bool:
    """Return True for an aggregate that has no value of some events."""
    return COMPUTATIONS[function].nullable or AGGREGATES[function].over_none is None


def aggregate(function: str, values: Sequence[Any], share: Fraction | None = None) -> Any:
    """Return the aggregate of non-null values in order; `share` is that of a quantile."""
    if not values:
        return AGGREGATES[function].over_none
    return COMPUTATIONS[function].of_list(values, share)
