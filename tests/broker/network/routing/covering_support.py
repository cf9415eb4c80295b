"""Generated boxes, and a slow way to tell whether some cover one: every point that can matter.

The oracle knows ranges as they are written, open or closed; it knows nothing of cuts, tables or
subtraction. Between two neighbouring ends all values are alike, so that the ends and one value
between each two of them, and one beyond each outermost, stand for all.
"""

import random
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from broker.network.routing.covering.boxes import ANYTHING, Box, box_of, cuts

ABSENT = None  # what an event has that lacks the attribute


class Side(NamedTuple):
    """A range as it is written; `anything`: not even a number is asked for."""

    low: float | None
    high: float | None
    low_open: bool = False
    high_open: bool = False
    anything: bool = False

    def cuts(self):
        if self.anything:
            return ANYTHING
        return cuts(self.low, self.high, low_open=self.low_open, high_open=self.high_open)

    def takes(self, value):
        if self.anything or value is ABSENT:
            return self.anything
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        return self.high is None or not (
            value > self.high or (self.high_open and value == self.high)
        )


Written = tuple[Side, ...]


def box(written: Written) -> Box:
    return box_of(side.cuts() for side in written)


def values_that_matter(sides: list[Side]) -> list:
    ends = sorted({end for side in sides for end in side[:2] if end is not None}) or [0.0]
    between = [(low + high) / 2 for low, high in pairwise(ends)]
    beyond = 1.0 + abs(ends[0]) + abs(ends[-1])
    return [ABSENT, ends[0] - beyond, *ends, *between, ends[-1] + beyond]


def oracle(asked: Written, held: list[Written]) -> bool:
    """Whether every point of the asked box lies in one of those held."""
    axes = [[each[axis] for each in (asked, *held)] for axis in range(len(asked))]
    values = [values_that_matter(sides) for sides in axes]
    values = [
        [v for v in found if side.takes(v)] for found, side in zip(values, asked, strict=True)
    ]
    uncovered = np.ones([len(found) for found in values], bool)
    for each in held:
        inside = np.ones((), bool)
        for side, found in zip(each, values, strict=True):
            inside = np.logical_and.outer(inside, [side.takes(value) for value in found])
        uncovered &= ~inside
    return not uncovered.any()


def side(seeded: random.Random, span: int, wide: float) -> Side:
    """Ends among few numbers, so that many meet; `wide`: how often an end is missing."""
    if seeded.random() < wide / 4:
        return Side(None, None, anything=True)
    low, high = sorted((seeded.randint(0, span), seeded.randint(0, span)))
    return Side(
        None if seeded.random() < wide else float(low),
        None if seeded.random() < wide else float(high),
        seeded.random() < 0.3,
        seeded.random() < 0.3,
    )


def random_case(seeded: random.Random) -> tuple[Written, list[Written]]:
    """An asked box in the middle and boxes about it; covered ones and others are both frequent."""
    axes = seeded.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))
    span = seeded.choice((3, 5, 8)) if axes < 4 else 3
    wide = seeded.choice((0.0, 0.1, 0.4))
    count = seeded.randint(0, 4 + 6 * axes)
    asked = tuple(side(seeded, span, wide) for _ in range(axes))
    return asked, [tuple(side(seeded, span, wide + 0.2) for _ in asked) for _ in range(count)]


def partition_case(seeded: random.Random) -> tuple[Written, list[Written]]:
    """A box cut into pieces at random, some of them wider; often one piece is missing or smaller:
    the boxes cover it just so, or fail to by one side.
    """
    axes = seeded.randint(1, 6)
    whole = tuple(Side(0.0, 16.0) for _ in range(axes))
    pieces: list[Written] = [whole]
    for _ in range(seeded.randint(1, 12)):
        piece = pieces.pop(seeded.randrange(len(pieces)))
        axis = seeded.randrange(axes)
        low, high, low_open, high_open, _ = piece[axis]
        at = (low + high) / 2
        left_open = seeded.random() < 0.5
        left = Side(low, at, low_open, left_open)
        right = Side(at, high, not left_open, high_open)
        pieces += [(*piece[:axis], half, *piece[axis + 1 :]) for half in (left, right)]
    seeded.shuffle(pieces)
    spoilt = seeded.random()
    if spoilt < 0.3:
        pieces.pop()
    elif spoilt < 0.6:
        axis = seeded.randrange(axes)
        low, high, low_open, high_open, _ = pieces[-1][axis]
        smaller = Side(low, high, True, high_open) if not low_open else Side(low, high, True, True)
        pieces[-1] = (*pieces[-1][:axis], smaller, *pieces[-1][axis + 1 :])
    wider = [
        tuple(side._replace(high=side.high + 1.0) for side in piece)
        if seeded.random() < 0.2
        else piece
        for piece in pieces
    ]
    return whole, wider


def generated(seed: int) -> tuple[Written, list[Written]]:
    seeded = random.Random(seed)
    return seeded.choice((random_case, partition_case))(seeded)
