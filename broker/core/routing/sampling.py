"""Whether boxes together cover a box: by random points, wrong at times (seed paper 2, section V.B).

Owns the probabilistic check that the paper takes from its reference 15, its bound of error and what
the bound costs. Must not know whose boxes they are; randomness comes in as a seed. Invariant:
"not covered" is never wrong; "covered" is wrong with at most the probability that is told with it.
"""

from __future__ import annotations

from math import ceil, inf, log, log1p
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.core.routing.covering_exact import first_part, reduced

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from broker.core.routing.boxes import Box
    from broker.core.routing.covering_exact import Part

    Floats = NDArray[np.float64]

AT_ONCE = 4096  # comparisons of points with boxes, in thousands of numbers, held at a time


class Sampled(NamedTuple):
    """What the points told.

    `rho` is a lower bound of the chance that one point finds a gap, if there is any: the product
    over the axes of the narrowest gap that the ends allow, as a part of the box's width. `error` is
    the chance at most that "covered" is wrong, (1 - rho) ** guesses; 0 where it is certain.
    """

    covered: bool
    guesses: int = 0
    rho: float = 1.0
    error: float = 0.0


def guesses_for(error: float, rho: float) -> float:
    """How many points bring the error down to this; infinite if rho is too small to tell.

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
    lows: Floats,
    highs: Floats,
    *,
    seed: int,
    error: float = 0.0,
    guesses_max: int = 1000,
) -> Sampled:
    """Whether the rows of these ends, one box each, seem to cover the box together.

    As many points are drawn as `error` asks for by the bound, but no more than `guesses_max`; with
    an error of 0 that many. In practice the bound asks for more than anybody can draw, and what
    was reached is told instead. The same seed gives the same answer.
    """
    import numpy as np

    if box.empty:
        return Sampled(covered=True)
    part = first_part(box, lows, highs)
    below, above = part.lows > part.low, part.highs < part.high
    if (~(below | above).any(axis=1)).any():
        return Sampled(covered=True)
    left = reduced(part)
    if left is None:
        return Sampled(covered=False)
    rho = least_share(left)
    guesses = guesses_max
    if error:
        guesses = int(min(guesses_max, guesses_for(error, rho)))
    generator = np.random.Generator(np.random.PCG64(seed))
    step = max(1, AT_ONCE * 1000 // left.lows.size)
    for done in range(0, guesses, step):
        count = min(step, guesses - done)
        if _misses(left, generator.random((count, box.axes))):
            return Sampled(covered=False, guesses=done + count, rho=rho)
    return Sampled(covered=True, guesses=guesses, rho=rho, error=(1.0 - rho) ** guesses)


def least_share(part: Part) -> float:
    """`rho` of `Sampled`: no gap of the part takes up less of its volume."""
    import numpy as np

    share = 1.0
    for axis in range(len(part.low)):
        low, high = part.low[axis], part.high[axis]
        # A gap ends at the part's ends or at those of boxes: it begins where one of them ends.
        begins = np.concatenate(((low,), part.highs[:, axis]))
        ends = np.sort(np.concatenate(((high,), part.lows[:, axis])))
        begins = begins[begins < high]
        places = np.searchsorted(ends, begins, side="right")
        found = places < len(ends)
        widths = ends[places[found]] - begins[found]
        share *= float(widths.min() / (high - low))
    return share


def _misses(part: Part, drawn: Floats) -> bool:
    """Whether one of these points lies in no box."""
    import numpy as np

    points = part.low + drawn * (part.high - part.low)
    points = np.minimum(points, np.nextafter(part.high, -np.inf))[:, None, :]
    inside: Any = ((part.lows <= points) & (points < part.highs)).all(axis=2)
    return not bool(inside.any(axis=1).all())
