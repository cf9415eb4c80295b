"""What more of something costs: processor times compared, so that a busy machine fails no test.

Owns the repeating. Must not know what is measured.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ATTEMPTS = 8


def growth(few: Callable[[], float], many: Callable[[], float], enough: float) -> float:
    """The least time of `many` as a multiple of the least of `few`.

    Both are measured in turn until the multiple is below what is enough, since other work on the
    machine makes a time longer and never shorter; what truly grows faster stays above it.
    """
    least_few = least_many = math.inf
    with _uncollected():
        for _ in range(ATTEMPTS):
            least_few = min(least_few, few())
            least_many = min(least_many, many())
            if least_many < enough * least_few:
                break
    return least_many / least_few


@contextmanager
def _uncollected() -> Iterator[None]:
    """The collector looks at all that the process holds, which is not what is measured."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
