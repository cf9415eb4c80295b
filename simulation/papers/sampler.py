"""Whether boxes together cover a box: by random points, wrong at times (paper 002, section V.B).

Owns the probabilistic check that the paper takes from its reference 15, its bound of error and what
the bound costs. Must not know whose boxes they are; randomness comes in as a seed. Invariant:
"not covered" is never wrong; "covered" is wrong with at most the probability that is told with it.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil, inf, log, log1p, nextafter
from operator import gt
from typing import TYPE_CHECKING, NamedTuple

from broker.network.routing.covering.covering_exact import first_part, reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.routing.covering.boxes import Box
    from broker.network.routing.covering.covering import Sampler
    from broker.network.routing.covering.covering_exact import Part
    from broker.network.routing.covering.covering_table import Row

BITS = (1 << 64) - 1


class Sampled(NamedTuple):
    """Hold what the points told.

    `rho` is a lower bound of the chance that one point finds a gap, if there is any: the product
    over the axes of the narrowest gap that the ends allow, as a part of the box's width. `error` is
    the chance at most that "covered" is wrong, (1 - rho) ** guesses; 0 where it is certain.
    """

    covered: bool  # no point was found outside of all
    guesses: int = 0  # points that were looked at
    rho: float = 1.0
    error: float = 0.0


def guesses_for(error: float, rho: float) -> float:
    """Return the number of points that bring the error down to `error`; inf: `rho` is too small.

    ValueError: the error is no probability between 0 and 1.
    """
    if not 0.0 < error < 1.0:
        raise ValueError("an error must lie between 0 and 1")
    if rho >= 1.0:
        return 1.0
    each = log1p(-rho)
    return ceil(log(error) / each) if each else inf


def sample(
    box: Box,
    rows: list[Row],
    *,
    seed: int,
    error: float = 0.0,
    guesses_max: int = 1000,
) -> Sampled:
    """Return whether `rows`, all of which meet `box`, seem to cover it together.

    As many points are drawn as `error` asks for by the bound, but no more than `guesses_max`; with
    an error of 0 that many. In practice the bound asks for more than anybody can draw, and what
    was reached is told instead. The same seed gives the same answer.
    """
    if box.empty:
        return Sampled(covered=True)
    part = first_part(box, rows)
    if any(not any(map(gt, row, part.sides)) for row in part.rows):
        return Sampled(covered=True)
    left = reduced(part)
    if left is None:
        return Sampled(covered=False)
    rho = least_share(left)
    guesses = guesses_max
    if error:
        guesses = int(min(guesses_max, guesses_for(error, rho)))
    draw = _uniform(seed)
    for done in range(guesses):
        if _misses(left, draw):
            return Sampled(covered=False, guesses=done + 1, rho=rho)
    return Sampled(covered=True, guesses=guesses, rho=rho, error=(1.0 - rho) ** guesses)


def sampler(points: int) -> Sampler:
    """Return what a strategy asks that draws so many points."""
    return lambda box, rows, seed: sample(box, rows, seed=seed, guesses_max=points).covered


def least_share(part: Part) -> float:
    """Return `rho` of `Sampled`: no gap of `part` takes up less of its volume."""
    share = 1.0
    for axis in range(part.axes):
        across = axis + part.axes
        low, high = part.sides[axis], -part.sides[across]
        # A gap ends at the part's ends or at those of boxes: it begins where one of them ends.
        begins = [low, *(max(-row[across], low) for row in part.rows if -row[across] < high)]
        ends = sorted([high, *(row[axis] for row in part.rows if row[axis] > low)])
        width = min(ends[bisect_right(ends, begin)] - begin for begin in begins)
        share *= width / (high - low)
    return share


def _uniform(seed: int) -> Callable[[], float]:
    """Return a generator of numbers in [0, 1): splitmix64, whose state is any 64 bits."""
    state = seed & BITS

    def draw() -> float:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & BITS
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & BITS
        return ((mixed ^ (mixed >> 31)) >> 11) * 2.0**-53

    return draw


def _misses(part: Part, draw: Callable[[], float]) -> bool:
    """Return whether the next point that is drawn lies in no box; the widest are asked first."""
    axes = part.axes
    point = []
    for axis in range(axes):
        low, high = part.sides[axis], -part.sides[axis + axes]
        point.append(min(low + draw() * (high - low), nextafter(high, -inf)))
    # low <= value and value < high: at the high end, which is out, by the next float
    sides = (*point, *(-nextafter(value, inf) for value in point))
    return not any(not any(map(gt, row, sides)) for row in part.rows)
