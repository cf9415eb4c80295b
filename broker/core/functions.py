"""The built-in scalar functions, as the language's table of functions names them.

Owns what they compute. Must not know types or nulls: arguments are checked and not null.
Invariant: no function raises; what has no value is None.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, sqrt
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "floor": floor,
    "ceil": ceil,
    "sqrt": lambda x: sqrt(x) if x >= 0 else None,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
}
