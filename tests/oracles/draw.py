"""Where generated cases take their choices from: a seed, or hypothesis.

Owns: the three choices that all generators are written in.
Must not know: what is generated. Invariant: the same choices give the same case.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Draw(Protocol):
    """A source of choices."""

    def integer(self, low: int, high: int) -> int:
        """A number in low..high."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""

    def chance(self, percent: int) -> bool:
        """True about that often."""


class SeededDraw:
    """Choices that follow from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A number in low..high."""
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random.choice(options)

    def chance(self, percent: int) -> bool:
        """True about that often."""
        return self._random.randrange(100) < percent


class HypothesisDraw:
    """Choices that hypothesis makes and shrinks, toward the low end, the first, and False."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number in low..high."""
        return int(self._draw(st.integers(low, high)))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True about that often."""
        return self.integer(0, 99) >= 100 - percent


def shuffled(draw: Draw, items: Sequence[T]) -> list[T]:
    """The items in an order of the draw's choosing."""
    left, order = list(items), []
    while left:
        order.append(left.pop(draw.integer(0, len(left) - 1)))
    return order
