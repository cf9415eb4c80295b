"""Whether boxes together cover a box: exactly, by subtraction.

Owns the search alone. Must not know whose boxes they are, nor how they are kept. Invariant: the
answer "covered" is never wrong; "not covered" is wrong only where the search ran over its budget,
and then it says so.

The conflict table is that of the paper's companion on subsumption (its reference 15): for each box
a row, and in it an entry for each of its sides that lies inside the asked box. A point outside of
all boxes fulfils one entry of every row; two entries conflict if no point fulfils both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from broker.core.routing.boxes import Box

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

BUDGET = 3000
"""Parts of a box that one search may look at; searches need some ten, sets made to be hard a few
hundred. Beyond it the box counts as not covered: that costs a message, never an event."""

REDUCTIONS_MAX = 8  # rounds over one table; what is left undone the parts' own tables make good
SLACK = 1e-9  # of the volume: far above what rounding can add up to, so that it never decides


class Verdict(NamedTuple):
    """What a search found: the boxes that it needed to cover all, by their places, ascending."""

    covered: bool
    places: tuple[int, ...] = ()
    parts: int = 0
    over_budget: bool = False


class Part(NamedTuple):
    """What is left of the asked box, with the boxes that may cover it, clipped or not."""

    low: Floats
    high: Floats
    lows: Floats
    highs: Floats
    places: Places


def search(box: Box, lows: Floats, highs: Floats, budget: int = BUDGET) -> Verdict:
    """Whether the rows of these ends, one box each, together cover the box.

    At every part of it: boxes that do not meet the part fall away; a box that lacks one side only
    cuts that side off; rows that cannot matter are dropped; too little volume ends the search;
    else the widest box is taken out, and what is left around it are the next parts.
    """
    if box.empty:
        return Verdict(covered=True)
    used: set[int] = set()
    parts = 0
    open_parts = [first_part(box, lows, highs)]
    while open_parts:
        parts += 1
        if parts > budget:
            return Verdict(covered=False, parts=parts, over_budget=True)
        left = _trimmed(_meeting(open_parts.pop()), used)
        if left is None:
            continue
        left = reduced(left)
        if left is None or not _enough(left):
            return Verdict(covered=False, parts=parts)
        open_parts.extend(_around_widest(left, used))
    return Verdict(covered=True, places=tuple(sorted(used)), parts=parts)


def first_part(box: Box, lows: Floats, highs: Floats) -> Part:
    """The whole box with those rows that meet it, where no end is infinite any more."""
    import numpy as np

    whole = Part(np.array(box.lows), np.array(box.highs), lows, highs, np.arange(len(lows)))
    return _measurable(_meeting(whole))


def _meeting(part: Part) -> Part:
    """The same with those boxes only that meet it, clipped to it."""
    import numpy as np

    keep: Any = np.flatnonzero(((part.lows < part.high) & (part.highs > part.low)).all(axis=1))
    return Part(
        part.low,
        part.high,
        np.maximum(part.lows[keep], part.low),
        np.minimum(part.highs[keep], part.high),
        part.places[keep],
    )


def _measurable(part: Part) -> Part:
    """The same with finite ends in place of those without bounds, in the same order."""
    import numpy as np

    low, high, lows, highs = (np.array(each) for each in part[:4])
    bound = np.finfo(np.float64).max
    for axis in np.flatnonzero((low <= -bound) | (high >= bound)):
        ends = np.concatenate((lows[:, axis], highs[:, axis], (low[axis], high[axis])))
        ends = ends[np.abs(ends) < bound]
        least, most = (ends.min(), ends.max()) if len(ends) else (0.0, 1.0)
        width = max(most - least, abs(most), abs(least), 1.0)  # enough to differ when added
        if not np.isfinite(most + width) or not np.isfinite(least - 2 * width):
            continue  # ends so far out that only their order can be used
        for values in (low, lows, high, highs):
            column = values[..., axis]  # a view
            column[column == -np.inf] = least - 2 * width  # lies below -bound: see ANYTHING
            column[column == -bound] = least - width
            column[column == np.inf] = most + width
    return Part(low, high, lows, highs, part.places)


def _trimmed(part: Part, used: set[int]) -> Part | None:
    """What is left beside the boxes that lack at most one side of it; None: nothing."""
    import numpy as np

    while True:
        below, above = part.lows > part.low, part.highs < part.high
        lacking = below.sum(axis=1) + above.sum(axis=1)
        if not len(lacking) or lacking.min() > 1:
            return part
        if not lacking.min():
            used.add(int(part.places[int(lacking.argmin())]))
            return None
        one = lacking == 1
        low, high = part.low.copy(), part.high.copy()
        for axis in np.flatnonzero((below | above)[one].any(axis=0)):
            for sides, ends, is_low in ((above, part.highs, True), (below, part.lows, False)):
                rows = np.flatnonzero(one & sides[:, axis])
                if not len(rows) or low[axis] >= high[axis]:
                    continue
                column = ends[rows, axis]
                best = int(column.argmax() if is_low else column.argmin())
                used.add(int(part.places[rows[best]]))
                (low if is_low else high)[axis] = column[best]
            if low[axis] >= high[axis]:
                return None
        part = _meeting(part._replace(low=low, high=high))


def reduced(part: Part) -> Part | None:
    """The same without boxes that cannot matter; None: surely something is not covered.

    A row with an entry that conflicts with no entry of the others, or with at least as many
    entries as there are rows, leaves a point wherever the others leave one.
    """
    import numpy as np

    for _ in range(REDUCTIONS_MAX):
        rows = len(part.places)
        below, above = part.lows > part.low, part.highs < part.high
        lacking = below.sum(axis=1) + above.sum(axis=1)
        if (np.sort(lacking) > np.arange(rows)).all():
            return None  # each row in turn has an entry that those before it leave free
        highest = _of_others(np.where(above, part.highs, -np.inf))
        lowest = -_of_others(np.where(below, -part.lows, -np.inf))
        free = (below & (part.lows > highest)) | (above & (part.highs < lowest))
        keep = np.flatnonzero(~free.any(axis=1) & (lacking < rows))
        if len(keep) == rows:
            return part
        part = part._replace(lows=part.lows[keep], highs=part.highs[keep], places=part.places[keep])
        if not len(keep):
            return None
    return part


def _of_others(values: Floats) -> Floats:
    """For each row and column the greatest value of the other rows there."""
    import numpy as np

    at = values.argmax(axis=0)
    columns = np.arange(values.shape[1])
    greatest = np.broadcast_to(values[at, columns], values.shape).copy()
    values[at, columns] = -np.inf
    greatest[at, columns] = values.max(axis=0)
    return greatest


def _enough(part: Part) -> bool:
    """Whether the boxes' volumes together reach that of the part."""
    import numpy as np

    widths = part.high - part.low
    if not np.isfinite(widths).all():
        return True
    return bool(_shares(part).sum() >= 1.0 - SLACK)


def _shares(part: Part) -> Floats:
    """Of the part's volume that each box covers."""
    shares: Floats = ((part.highs - part.lows) / (part.high - part.low)).prod(axis=1)
    return shares


def _around_widest(part: Part, used: set[int]) -> list[Part]:
    """The parts that are left around the box with the greatest volume, apart from each other."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        pivot = int(_shares(part).argmax())
    used.add(int(part.places[pivot]))
    low, high = part.low, part.high
    found = []
    for axis in range(len(low)):
        inner_low, inner_high = part.lows[pivot, axis], part.highs[pivot, axis]
        if inner_low > low[axis]:
            beside = high.copy()
            beside[axis] = inner_low
            found.append(part._replace(low=low, high=beside))
            low = low.copy()
            low[axis] = inner_low
        if inner_high < high[axis]:
            beside = low.copy()
            beside[axis] = inner_high
            found.append(part._replace(low=beside, high=high))
            high = high.copy()
            high[axis] = inner_high
    return found
