"""What it costs to tell whether boxes cover a box, and what sampling saves and gets wrong.

Owns the sets of boxes and the tables. Must not know how covering is decided. Invariant: each asked
box lies within no single other one where one can be found, as those that do are told at a glance;
what is not covered is added, as a broker adds it.

    python -m bench.covering [--quick] [--json]
"""

import random
import sys
from collections.abc import Callable
from math import log10
from statistics import median
from time import process_time
from typing import NamedTuple

from bench.report import Goal, Options, Report, Table, run
from broker.network.routing.covering.boxes import Box, box_of, cuts
from broker.network.routing.covering.covering import Check, CoverIndex
from broker.network.routing.covering.covering_table import Table as Boxes
from simulation.papers.sampler import guesses_for, sample

SIZES = (100, 1_000, 10_000)
AXES = (3, 4, 5, 6)
CHECKS = 200
TRIES = 30  # to find a box that no single other one covers
GOALS_MS = {1_000: 10.0, 10_000: 80.0}
GUESSES = 1_000
NOTES = """\
CPU time of one check and, where the box is not covered, of adding it; {checks} checks a row.
*parts*: the most that one search looked at; *over*: searches that reached the budget.
*wrong*: uncovered boxes that sampling took for covered; *points for 1e-3*: what its bound of \
error asks for (median), where points were needed at all."""
Draw = Callable[[random.Random, int], Box]


def around_the_median(seeded: random.Random, axes: int) -> Box:
    """As the papers' subscriptions: an offset to each side of the median, drawn from Pareto(1)."""

    def offset() -> float:
        return 0.25 * seeded.paretovariate(1.0)

    return box_of(cuts(-offset(), offset()) for _ in range(axes))


def uniform(seeded: random.Random, axes: int) -> Box:
    """Both ends anywhere."""
    return box_of(cuts(*sorted((seeded.random(), seeded.random()))) for _ in range(axes))


def thick(seeded: random.Random, axes: int) -> Box:
    """Two or three axes are bounded, so that nearly all boxes meet and overlap."""
    bounded = set(seeded.sample(range(axes), seeded.choice((2, 3))))
    pairs = []
    for axis in range(axes):
        middle, half = seeded.random(), seeded.uniform(0.05, 0.3)
        pairs.append(cuts(middle - half, middle + half) if axis in bounded else cuts(None, None))
    return box_of(pairs)


def inner(seeded: random.Random, axes: int) -> Box:
    """Most of the middle, which many thick ones cover together and none alone."""
    return box_of(cuts(seeded.uniform(0.0, 0.3), seeded.uniform(0.7, 1.0)) for _ in range(axes))


def cell(seeded: random.Random, axes: int) -> Box:
    """Half as wide as the whole, with ends on a lattice: what meets does so exactly."""
    starts = [seeded.randrange(6) for _ in range(axes)]
    return box_of(cuts(start, start + 3) for start in starts)


def whole(_: random.Random, axes: int) -> Box:
    """All that cells begin in."""
    return box_of(cuts(0, 6) for _ in range(axes))


SETS: dict[str, tuple[Draw, Draw]] = {
    "around the median": (around_the_median, around_the_median),
    "uniform": (uniform, uniform),
    "few bounded axes": (thick, inner),
    "lattice": (cell, whole),
}


class Measured(NamedTuple):
    """One row of the first table."""

    times_ms: list[float]
    parts: list[int]
    covered: int
    over_budget: int

    def quantile_ms(self, part: float) -> float:
        """The time that this part of the checks stays within."""
        return sorted(self.times_ms)[min(len(self.times_ms) - 1, int(part * len(self.times_ms)))]


def pairwise(axes: int, held: list[Box]) -> CoverIndex:
    """What tells whether a single box covers another."""
    index = CoverIndex(axes, Check.PAIRWISE)
    for number, box in enumerate(held):
        index.add(f"{number}", box)
    return index


def asked_of(seeded: random.Random, draw: Draw, axes: int, single: CoverIndex) -> Box:
    """One that no single box covers, if one is found soon."""
    box = draw(seeded, axes)
    for _ in range(TRIES):
        if not single.covers(box):
            break
        box = draw(seeded, axes)
    return box


def measured(draws: tuple[Draw, Draw], stored: int, axes: int, checks: int) -> Measured:
    """Check after check against so many boxes."""
    seeded = random.Random(stored * 10 + axes)
    index, held = CoverIndex(axes), []
    for number in range(stored):
        held.append(draws[0](seeded, axes))
        index.add(f"held-{number}", held[-1])
    single = pairwise(axes, held)
    asked = [asked_of(seeded, draws[1], axes, single) for _ in range(checks)]
    index.covers(held[0])  # the first check sorts
    times, parts, hits = [], [], 0
    for number, box in enumerate(asked):
        before = index.counts.parts
        began = process_time()
        if index.covers(box):
            hits += 1
        else:
            index.add(f"asked-{number}", box)
        times.append((process_time() - began) * 1e3)
        parts.append(index.counts.parts - before)
    return Measured(times, parts, hits, index.counts.over_budget)


def exact(checks: int) -> tuple[Table, list[Goal]]:
    """The exact check over all sets, sizes and numbers of axes."""
    rows = []
    slow: dict[int, list[float]] = {size: [] for size in GOALS_MS}
    for name, draws in SETS.items():
        for stored in SIZES:
            for axes in AXES:
                found = measured(draws, stored, axes, checks)
                if stored in slow:
                    slow[stored].append(round(found.quantile_ms(0.95), 2))
                rows.append(
                    [
                        f"{name}, {stored:,}",
                        str(axes),
                        *(f"{found.quantile_ms(part):.2f}" for part in (0.5, 0.95, 1.0)),
                        str(max(found.parts)),
                        f"{100 * found.covered / checks:.0f} %",
                        str(found.over_budget),
                    ]
                )
    columns = ["stored boxes", "axes", "p50 ms", "p95 ms", "max ms", "parts", "covered", "over"]
    goals = [
        Goal(f"covering check, {size:,} stored, p95", GOALS_MS[size], values, " ms")
        for size, values in slow.items()
    ]
    return Table("Exact covering", columns, rows), goals


def sampled(stored: int, axes: int, checks: int) -> list[str]:
    """One row: what a thousand points take, and how often they are wrong."""
    seeded = random.Random(stored + axes)
    held = [around_the_median(seeded, axes) for _ in range(stored)]
    index, table = CoverIndex(axes), Boxes(axes)
    for number, box in enumerate(held):
        index.add(f"{number}", box)
        table.add(f"{number}", box)
    single = pairwise(axes, held)
    times, wrong, uncovered, needed = [], 0, 0, []
    for seed in range(checks):
        box = asked_of(seeded, around_the_median, axes, single)
        began = process_time()
        found = sample(box, table.meeting(box), seed=seed, guesses_max=GUESSES)
        times.append((process_time() - began) * 1e3)
        if found.guesses:
            needed.append(guesses_for(1e-3, found.rho))
        if not index.covers(box):
            uncovered += 1
            wrong += found.covered
    times.sort()
    return [
        f"{stored:,}",
        str(axes),
        f"{median(times):.2f}",
        f"{times[int(0.95 * len(times))]:.2f}",
        f"{times[-1]:.2f}",
        f"{wrong} of {uncovered}",
        f"1e{log10(median(needed)):.0f}" if needed else "-",
    ]


def report(options: Options) -> Report:
    """All tables."""
    checks = 20 if options.quick else CHECKS * options.times(1)
    table, goals = exact(checks)
    few = max(10, checks // 5)
    columns = ["stored boxes", "axes", "p50 ms", "p95 ms", "max ms", "wrong", "points for 1e-3"]
    rows = [sampled(stored, axes, few) for stored in SIZES for axes in (3, 5)]
    return Report(
        "Covering",
        [table, Table(f"Sampling with at most {GUESSES:,} points", columns, rows)],
        goals,
        NOTES.format(checks=checks).splitlines(),
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
