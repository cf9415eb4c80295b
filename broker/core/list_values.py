"""Aggregates over the members of a list.

Owns the values of aggregates over a few values at hand. Must not know windows or text. Invariant:
the same values as a window with the same events gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from broker.core.aggregates import Bag, Distinct, unsigned_zero
from broker.core.exact import Moments


def _moments(values: Sequence[Any], *, squared: bool = False) -> Moments:
    moments = Moments(squared)
    moments.take(values)
    return moments


def _sum(values: Sequence[Any]) -> Any:
    whole = all(value.__class__ is int for value in values)
    moments = _moments(values)
    return moments.sum_int() if whole else moments.sum_float()


def _distinct(values: Sequence[Any]) -> int:
    distinct = Distinct()
    distinct.take(values)
    return distinct.result()


def _quantile(values: Sequence[Any], share: Fraction) -> float | None:
    bag = Bag()
    bag.take(values)
    return bag.quantile(share.numerator, share.denominator)


_OVER_NONE: dict[str, Any] = {"Count": 0, "Sum": 0, "CountDistinct": 0}
_AGGREGATES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "Count": len,
    "Sum": _sum,
    "CountDistinct": _distinct,
    "First": lambda values: values[0],
    "Last": lambda values: values[-1],
    "Min": lambda values: unsigned_zero(min(values)),
    "Max": lambda values: unsigned_zero(max(values)),
    "Avg": lambda values: _moments(values).mean(),
    "StdDev": lambda values: _moments(values, squared=True).deviation(),
    "Median": lambda values: _quantile(values, Fraction(1, 2)),
}


def aggregate(function: str, values: Sequence[Any], share: Fraction | None = None) -> Any:
    """The aggregate of non-null values in order; null of none, but 0 for counts and Sum.

    `share` is the q of Quantile.
    """
    if not values:
        return _OVER_NONE.get(function)
    if share is not None:
        return _quantile(values, share)
    return _AGGREGATES[function](values)
