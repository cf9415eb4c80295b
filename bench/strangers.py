"""How the search fares on strange problems, of which each has a plan that was planted.

Owns the table by family. Must not know how plans are found. Invariant: every plan is judged by the
oracle of the tests, and against the planted plan or a better one of any seed.

    python -m bench.strangers [--quick] [--count N] [--first N] [--nodes MIN MAX] [--seconds N]
                              [--optimal N] [--jobs N]

A search has its seconds of one core's time and ends at them; `--optimal N` has HiGHS go on for so
many from the best plan, which pays on ten to fifteen brokers.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from bench.report import columns_of, machine
from experiments.tightening import tighten
from headwater.placement.plan_document import as_document
from planner.document import read_problem
from planner.layout import Layout, lay_out
from planner.methods import patience_steps
from planner.optimal import solve
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import after_seconds, at_first, when_stalled
from tests.oracles.placement import judge
from tests.planner.strangers import strangers

SEEDS = (1, 2)
QUICK = 11
HEADS = ["family", "problems", "without a plan", "gap, median %", "gap, worst %"]


class Asked(NamedTuple):
    """A problem by its number and size, and the seconds for it."""

    number: int
    nodes: tuple[int, int]
    seconds: float
    optimal_s: float


class Row(NamedTuple):
    """Of one problem: by how much the flow of the first seed is above the best known, or None."""

    name: str
    gap: float | None


def searched(document: Any, layout: Layout, seconds: float, seed: int) -> tuple[Any, float | None]:
    """The plan, and the flow where it keeps all limits."""
    search = Search(Instance(layout), seed)
    stop = at_first(after_seconds(seconds, time.process_time), when_stalled(patience_steps(layout)))
    plan = as_plan(search.instance, search.run(stop))
    flow, good = judge(document, as_document(layout, plan))  # type: ignore[no-untyped-call]
    return plan, float(flow) if good else None


def measured(asked: Asked) -> Row:
    """One problem, with each of the seeds."""
    (one,) = strangers(1, asked.number, asked.nodes)  # type: ignore[no-untyped-call]
    layout = lay_out(read_problem(one.document))
    found = [searched(one.document, layout, asked.seconds, seed) for seed in SEEDS]
    plan, first = found[0]
    flows = [float(one.flow), *(flow for _, flow in found if flow is not None)]
    if asked.optimal_s:
        begin = plan if first is not None else None
        best = solve(
            layout, asked.optimal_s, begin, threads=1, clock=time.process_time, tighten=tighten
        )
        flows += [best.flow] if best.flow is not None else []
    least = min(flows)
    if first is None:
        return Row(one.name, None)
    return Row(one.name, 100.0 * (first - least) / least if least else 0.0)


def cells(name: str, rows: list[Row]) -> list[str]:
    """A line of the table."""
    gaps = [row.gap for row in rows if row.gap is not None]
    middle = f"{statistics.median(gaps):.2f}" if gaps else "-"
    worst = f"{max(gaps):.2f}" if gaps else "-"
    return [name, str(len(rows)), str(len(rows) - len(gaps)), middle, worst]


def main() -> int:
    """Measures and shows."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few small ones, a second each")
    options.add_argument("--count", type=int, default=110)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--nodes", type=int, nargs=2, default=(10, 30))
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--optimal", type=float, default=0.0)
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    count, seconds = (QUICK, 1.0) if given.quick else (given.count, given.seconds)
    nodes = (10, 12) if given.quick else (given.nodes[0], given.nodes[1])
    numbers = range(given.first, given.first + count)
    with ProcessPoolExecutor(given.jobs) as pool:
        asked = [Asked(number, nodes, seconds, given.optimal) for number in numbers]
        rows = list(pool.map(measured, asked))
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        family, _, limits, _ = row.name.split(", ")
        for name in (*family.split("/"), limits.replace("%", " % of room")):
            families[name].append(row)
    table = [cells(name, families[name]) for name in sorted(families)] + [cells("all", rows)]
    print("; ".join(machine()))
    print("\n".join(columns_of(HEADS, table)))
    for row in rows:
        if row.gap is None:
            print(f"without a plan: {row.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
