"""What no plan of the bench's placement problems can be below: proven once, and kept.

Owns the problems and `placement_bounds.json` beside it. Must not know how searches are judged.
Invariant: a bound stands beside the digest of its problem and holds for that alone; to prove again
never loosens it.

    python -m bench.placement_bounds [--seconds N] [--jobs N] [--only NAME]
                                     [--brokers-min N] [--brokers-max N] [--again]

Each problem whose optimum is not proven yet has so many seconds of one core's time with HiGHS,
beginning with the search's plan; one that has had them is left out, but for `--again`, as when the
program has become sharper. The file is written after each problem.
"""

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from experiments.generate import SHAPES, Limits, problem
from experiments.tightening import tighten
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import Layout, lay_out
from planner.methods import patience_steps
from planner.optimal import solve
from planner.plan import Plan
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import after_seconds, at_first, when_stalled

KEPT = Path(__file__).with_suffix(".json")
SIZES = ((10, 7), (15, 10), (20, 14), (30, 20), (45, 25), (60, 30))
KINDS = {"brokers": Limits(1.4), "all": Limits(1.4, 1.25, 1.25)}
SEED = 11
SEARCH_S = 10.0
NEAR = 1e-6  # of a flow: as near to it, a bound is reached


class Drawn(NamedTuple):
    """A problem by what it was drawn from; `limits` is a key of KINDS."""

    shape: str
    nodes: int
    tasks: int
    limits: str

    @property
    def name(self) -> str:
        """What it is called in the file."""
        return f"{self.shape} {self.nodes} x {self.tasks}, {self.limits}"

    def document(self) -> dict[str, Any]:
        """The problem itself."""
        return problem(self.shape, self.nodes, self.tasks, SEED, KINDS[self.limits])


class Known(msgspec.Struct, frozen=True):
    """What is known of a problem: its digest, the least flow of a plan, a bound, the effort.

    `proven`: no plan is better than `flow`, but for a millionth.
    """

    digest: str
    flow: float | None
    bound: float
    proven: bool
    seconds: float


class Searched(NamedTuple):
    """A search's plan; what it comes to; the steps."""

    plan: Plan
    flow: float
    feasible: bool
    steps: int


def drawn(brokers_max: int) -> Iterator[Drawn]:
    """The problems of the bench, the small ones first."""
    for nodes, tasks in SIZES:
        if nodes <= brokers_max:
            for shape in SHAPES:
                for limits in KINDS:
                    yield Drawn(shape, nodes, tasks, limits)


def digest(document: dict[str, Any]) -> str:
    """Tells a problem from any other."""
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()[:16]


def known() -> dict[str, Known]:
    """What is known, by the problems' names."""
    if not KEPT.exists():
        return {}
    return msgspec.json.decode(KEPT.read_bytes(), type=dict[str, Known])


def searched(layout: Layout, seconds: float) -> Searched:
    """The plan after so much of one core's time."""
    instance = Instance(layout)
    search = Search(instance, 1)
    stop = at_first(after_seconds(seconds, time.process_time), when_stalled(patience_steps(layout)))
    plan = as_plan(instance, search.run(stop))
    found = evaluate(layout, plan, instance.network)
    return Searched(plan, float(found.flow), found.feasible, search.steps)


def prove(one: Drawn, seconds: float, before: Known | None) -> Known:
    """A bound within so much of one core's time, and what was known before where that is better."""
    document = one.document()
    mark = digest(document)
    layout = lay_out(read_problem(document))
    start = searched(layout, SEARCH_S)
    best = solve(
        layout,
        seconds,
        start.plan if start.feasible else None,
        threads=1,
        clock=time.process_time,
        tighten=tighten,
    )
    flows = [best.flow, *([start.flow] if start.feasible else [])]
    bound, spent = best.bound, seconds
    if before is not None and before.digest == mark:
        flows += [] if before.flow is None else [before.flow]
        bound, spent = max(bound, before.bound), max(seconds, before.seconds)
    flow = min(flows)
    if flow < bound * (1 - NEAR):
        raise ValueError(f"{one.name}: a plan has {flow}, which is below the bound of {bound}")
    if proven := best.proven or bound >= flow * (1 - NEAR):
        bound = flow  # what is left between the two is less than plans can differ by
    return Known(mark, flow if flow < float("inf") else None, min(bound, flow), proven, spent)


def main() -> int:
    """Proves what is not proven yet."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=600.0, help="for each problem")
    options.add_argument("--jobs", type=int, default=1, help="problems at a time")
    options.add_argument("--brokers-max", type=int, default=60)
    options.add_argument("--brokers-min", type=int, default=0)
    options.add_argument("--only", default="", help="problems whose names begin so")
    options.add_argument("--again", action="store_true", help="also what had that time before")
    arguments = options.parse_args()
    found = known()
    todo = [
        one
        for one in drawn(arguments.brokers_max)
        if one.nodes >= arguments.brokers_min
        and one.name.startswith(arguments.only)
        and not (
            (before := found.get(one.name))
            and before.digest == digest(one.document())
            and (before.proven or (before.seconds >= arguments.seconds and not arguments.again))
        )
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        running = {
            pool.submit(prove, one, arguments.seconds, found.get(one.name)): one for one in todo
        }
        for done in as_completed(running):
            one = running[done]
            found[one.name] = done.result()
            print(one.name, found[one.name], file=sys.stderr, flush=True)
            text = msgspec.json.format(msgspec.json.encode(found, order="sorted"), indent=1)
            KEPT.write_bytes(text + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
