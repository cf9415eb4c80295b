"""The built-in scalar functions: what those of language.functions.SCALARS compute.

Owns their values. Must not know types or nulls: arguments are checked and not null.
Invariant: no function raises; what has no value is None.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, isfinite, sqrt
from typing import Any


def _whole(function: Callable[[float], int]) -> Callable[[float], int | None]:
    """The function on finite numbers: an overflow earlier on has no whole number."""
    return lambda x: function(x) if isfinite(x) else None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": _whole(round),
    "floor": _whole(floor),
    "ceil": _whole(ceil),
    # A negative root has no value, and null is what the language has for that; an error would end
    # the whole condition, a NaN compares false with itself.
    "sqrt": lambda x: sqrt(x) if x >= 0 else None,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "concat": lambda *texts: "".join(texts),
}
