"""Compare this search with `planner.search` on problems whose limits leave little room.

Owns the table. Must not know how either finds its plan. Invariant: both have the same seconds of
one core's time, and the oracle of the tests judges both.

    python -m experiments.search [--count N] [--first N] [--seconds N]
"""

import argparse
import statistics
import time
from typing import Any

from bench.report import machine
from bench.strangers import searched
from experiments.search.instance import Instance
from experiments.search.search import Search, as_plan
from planner.flow import as_document
from planner.layout import Layout, lay_out
from planner.reading import read_problem
from tests.oracles.placement import judge
from tests.planner.strangers import strangers


def found(document: Any, layout: Layout, seconds: float, seed: int) -> float | None:
    """Return the flow of this search's plan, or None where it breaks a limit."""
    began = time.process_time()
    search = Search(Instance(layout), seed)
    best = search.run(lambda _: time.process_time() - began >= seconds)
    plan = as_plan(search.instance, best)
    flow, good = judge(document, as_document(layout, plan))  # type: ignore[no-untyped-call]
    return float(flow) if good else None


def main() -> None:
    """Print a line for each problem and the median of what this search costs more."""
    parser = argparse.ArgumentParser(prog="python -m experiments.search", description=__doc__)
    parser.add_argument("--count", type=int, default=11, help="how many problems")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seconds", type=float, default=2.5, help="of one core's time, each")
    options = parser.parse_args()
    print("; ".join(machine()))
    more = []
    problems = strangers(options.count, options.first)  # type: ignore[no-untyped-call]
    for problem in problems:
        layout = lay_out(read_problem(problem.document))
        ours = found(problem.document, layout, options.seconds, 1)
        _, theirs = searched(problem.document, layout, options.seconds, 1)
        if ours is not None and theirs is not None:
            more.append(100 * (ours / theirs - 1))
        print(f"{problem.name:40} {ours} {theirs}")
    if more:
        print(f"more than planner.search: median {statistics.median(more):+.3f} %")


if __name__ == "__main__":
    main()
