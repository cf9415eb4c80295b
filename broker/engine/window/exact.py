"""Exact sums of numbers, and their values rounded once.

Owns the arithmetic behind Sum, Avg and StdDev. Must not know events or windows. Invariant: a total
is the exact sum of what was added less what was removed, so that neither order nor any split into
parts shows in a rounded value.

A finite float is an integer over a power of two; totals are kept over one such power, which grows
where a value needs it. Runs of floats are condensed by `math.fsum`, which rounds correctly: the
sum, then the sum of what that rounding left, and so on until nothing is left; those few floats are
the exact sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, inf, isqrt
from typing import Any

from broker.engine import native

LOOSE_MAX = 32  # floats that wait to be condensed together
FSUM_MIN = 8  # below so many values the exact sum is cheaper one by one
UNIT_START = 1 << 64  # divides whatever a sensor reads, down to 0.0003 in magnitude
UNIT_FLOAT_MAX = 1 << 1023  # the greatest power of two that a float holds
ROOT_BITS = 112  # of the radicand's quotient: its root then has more bits than a float, and a rest


def ratio(numerator: int, denominator: int) -> float | None:
    """The float nearest to the quotient (ties to even); None beyond a float's range."""
    try:
        return numerator / denominator
    except OverflowError:
        return None


def root_ratio(radicand: int, denominator: int) -> float | None:
    """The float nearest to sqrt(radicand) / denominator; None beyond a float's range.

    The integer root keeps more bits than a float has, with a last bit that says whether anything
    was cut off; so the one rounding, by true division of integers, is the correct one.
    """
    if radicand == 0:
        return 0.0
    lacking = ROOT_BITS + 2 * denominator.bit_length() - radicand.bit_length()
    shift = max(0, (lacking + 1) // 2)
    quotient, rest = divmod(radicand << (2 * shift), denominator * denominator)
    root = isqrt(quotient)
    cut = rest != 0 or root * root != quotient
    return ratio((root << 1) | cut, 1 << (shift + 1))


def unsigned_zero(value: Any) -> Any:
    """Return the value, with 0.0 for -0.0: they are equal, so which comes first must not show."""
    return value + 0.0 if value.__class__ is float else value


def quantile(count: int, value_at: Callable[[int], Any], over: int, under: int) -> float | None:
    """Return the over/under quantile of ascending values, rounded once; None of none.

    It is linear between the closest ranks of (n − 1) q: of 10, 20, 40 the 0.75 quantile is at rank
    1.5, hence 30.0.
    """
    if not count:
        return None
    rank, rest = divmod((count - 1) * over, under)
    low = value_at(rank)
    if rest == 0 or low == (high := value_at(rank + 1)):
        return ratio(low, 1) if low.__class__ is int else unsigned_zero(float(low))
    # By integers: in floats the two products and their sum would be rounded three times.
    a, a_unit = low.as_integer_ratio()
    b, b_unit = high.as_integer_ratio()
    weighed = a * b_unit * (under - rest) + b * a_unit * rest
    return ratio(weighed, a_unit * b_unit * under)


class Moments:
    """Count numbers, and keep their exact sum and, if asked for, that of their squares.

    `total / unit` is the sum and `squares / unit²` that of the squares; `unit` is a power of two.
    `loose` are floats not yet in the total: many are condensed cheaper than one by one.
    """

    __slots__ = ("loose", "n", "scale", "squared", "squares", "total", "unit")

    def __init__(self, squared: bool) -> None:
        self.n = 0
        self.total = 0
        self.squares = 0
        self.squared = squared
        self.loose: list[float] = []
        self.unit = UNIT_START
        self.scale = float(UNIT_START)

    def take(self, values: Sequence[Any]) -> None:
        """Add many finite numbers."""
        self.n += len(values)
        if self.squared:
            parts = self._parts_of_all(values)
            self.total += sum(parts)
            self.squares += sum([part * part for part in parts])
        else:
            self.loose += values
            if len(self.loose) >= LOOSE_MAX:
                self.settle()

    def take_read(self, events: Sequence[Any], slot: str) -> bool:
        """Add what events have in a slot, where a compiled pass can; whether it is done."""
        if native.passes is None or self.squared:
            return False
        counted = native.passes.read_total(events, slot)
        if counted is None:
            return False
        count, total = counted
        self.n += count
        self.total += total * (self.unit // UNIT_START)
        return True

    def add(self, value: float) -> None:
        """Add one finite number."""
        part = self._parts(value)
        self.n += 1
        self.total += part
        if self.squared:
            self.squares += part * part

    def remove(self, value: float) -> None:
        """Take back one number that was added."""
        part = self._parts(value)
        self.n -= 1
        self.total -= part
        if self.squared:
            self.squares -= part * part

    def merged(self, others: Sequence[Moments]) -> Moments:
        """This and others together, as a new one."""
        made = self.__class__(self.squared)
        number, total, squares, unit = 0, 0, 0, made.unit
        for part in (self, *others):
            if part.loose:
                part.settle()
            number += part.n
            factor = 1
            if part.unit != unit:  # as of few: a value that needs a finer one is rare
                finest = max(unit, part.unit)
                factor, coarser, unit = finest // part.unit, finest // unit, finest
                total, squares = total * coarser, squares * coarser * coarser
            if factor == 1:
                total += part.total
                squares += part.squares
            else:
                total += part.total * factor
                squares += part.squares * factor * factor
        if unit > made.unit:
            made.refine(unit)
        made.n, made.total, made.squares = number, total, squares
        return made

    def sum_float(self) -> float | None:
        """The sum as a float, 0.0 over none; None beyond a float's range."""
        if self.loose:
            self.settle()
        return ratio(self.total, self.unit)

    def sum_int(self) -> int:
        """The sum of integers, exact however great."""
        self.settle()
        return self.total // self.unit

    def mean(self) -> float | None:
        """The arithmetic mean; None over none."""
        if self.loose:
            self.settle()
        return ratio(self.total, self.unit * self.n) if self.n else None

    def deviation(self) -> float | None:
        """The standard deviation of the whole population; None over none."""
        if not self.n:
            return None
        # n·Σx² − (Σx)², in units of unit²
        return root_ratio(self.n * self.squares - self.total * self.total, self.n * self.unit)

    def plain(self) -> list[Any]:
        """Plain data; integers as hexadecimal text, as they may pass 64 bits."""
        self.settle()
        return [self.n, f"{self.total:x}", f"{self.squares:x}", f"{self.unit:x}"]

    def restore(self, data: list[Any]) -> None:
        """Take up what `plain` gave."""
        self.n = data[0]
        self.total, self.squares, self.unit = (int(text, 16) for text in data[1:])
        self.scale = float(self.unit) if self.unit <= UNIT_FLOAT_MAX else inf

    def _parts(self, value: float) -> int:
        """The value in units; the unit is made finer where it must."""
        try:
            scaled = value * self.scale  # exact, being by a power of two, unless it overflows
            parts = int(scaled)
            if parts == scaled:
                return parts
        except (OverflowError, ValueError):  # infinite, or zero times an infinite scale
            pass
        over, unit = value.as_integer_ratio()
        if unit > self.unit:
            self.refine(unit)
        return over * (self.unit // unit)

    def _parts_of_all(self, values: Sequence[float]) -> list[int]:
        scale = self.scale
        try:
            scaled = [value * scale for value in values]
            parts = list(map(int, scaled))
            if parts == scaled:
                return parts
        except (OverflowError, ValueError):
            pass
        pairs = [value.as_integer_ratio() for value in values]
        finest = max([unit for _, unit in pairs])
        if finest > self.unit:
            self.refine(finest)
        return [over * (self.unit // unit) for over, unit in pairs]

    def refine(self, unit: int) -> None:
        """Keep the totals in a finer unit: a power of two that this one's unit divides."""
        factor = unit // self.unit
        self.total *= factor
        self.squares *= factor * factor
        self.unit = unit
        self.scale = float(unit) if unit <= UNIT_FLOAT_MAX else inf

    def settle(self) -> None:
        """Bring what is loose into the total."""
        values = self.loose
        if values:
            if native.passes is not None and self.unit == UNIT_START:
                total = native.passes.total(values)
                if total is not None:
                    self.total += total
                    self.loose = []
                    return
            if len(values) < FSUM_MIN or not self._condense(values):
                parts = self._parts_of_all(values)  # first: it may change the total's unit
                self.total += sum(parts)
            self.loose = []

    def _condense(self, values: Sequence[float]) -> bool:
        """Add a run of floats to the total through few of them; False where that cannot be."""
        rest = list(values)
        found = []
        try:
            while part := fsum(rest):
                found.append(part)
                rest.append(-part)
        except OverflowError:
            return False
        for part in found:
            parts = self._parts(part)  # first: it may change the total's unit
            self.total += parts
        return True


class WholeMoments(Moments):
    """Moments of integers, whose unit is one."""

    __slots__ = ()

    def __init__(self, squared: bool) -> None:
        super().__init__(squared)
        self.unit = 1
        self.scale = 1.0

    def take(self, values: Sequence[int]) -> None:
        """Add many."""
        self.n += len(values)
        self.total += sum(values)
        if self.squared:
            self.squares += sum([value * value for value in values])

    def _parts(self, value: int) -> int:  # type: ignore[override]  # integers alone come here
        return value
