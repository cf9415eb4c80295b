"""How near the planner's plans come to the least flow, and how soon.

Owns the measuring of plans. Must not know how they are found. Invariant: every plan is judged by
`planner.flow` after the search, and against a bound that HiGHS proved or that was planted.

    python -m bench.planner [--quick] [--part optimum homes large] [--milp-seconds N]
                            [--brokers-max N] [--jobs N] [--large NAME]
                            [--page docs/placement.md]

A search has its seconds of one core's time (process time), so that what else runs does not show.
"""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.__main__ import Findings, around, write_page
from bench.placement_bounds import (
    NEAR,
    SEARCH_S,
    Drawn,
    Known,
    digest,
    drawn,
    known,
    prove,
    searched,
)
from bench.planted_placement import planted
from bench.report import Goal, Report, Table, as_text, columns_of, goals_table, machine, parser
from experiments.generate import Limits, problem
from experiments.homes import nursing_home
from experiments.tightening import tighten
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.optimal import solve
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import Progress, after_seconds

PARTS = ("optimum", "homes", "large")
HOME_S = 3.0
LARGE, LARGE_QUICK = (1000, (20.0, 160.0)), (200, (5.0, 10.0))  # brokers and tasks; seconds


def percent(flow: float, bound: float) -> float:
    """By how much a flow is above a bound."""
    return 100.0 * (flow - bound) / bound if bound > 0 else 0.0


def middle(gaps: list[float]) -> list[float]:
    """Their median; nothing of nothing."""
    return [statistics.median(gaps)] if gaps else []


# --- against the optimum ----------------------------------------------------------------------


def against_optimum(brokers_max: int, milp_s: float, jobs: int) -> Report:
    """Each problem's plan against what is known of it, which is proven first where nothing is."""
    kept = known()
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(_row, [(one, kept, milp_s) for one in drawn(brokers_max)]))
    rows = [row.cells for row in found]
    proven = [row.gap for row in found if row.proven]
    to_bound = [row.gap for row in found]
    beyond = [row.beyond for row in found]
    seconds = sorted({round(row.seconds) for row in found if not row.proven})
    heads = ["network", "brokers x tasks", "limits on", "flow", "best known", "bound", "gap, %"]
    table = Table("", [*heads, "optimum", "steps"], rows)
    goals = [
        Goal("plans that are feasible, of 1", 1.0, [row.feasible for row in found], at_least=True),
        Goal("gap to a proven optimum, median", 0.2, middle(proven), " %"),
        Goal("gap to a proven optimum, worst", 0.5, proven, " %"),
        Goal("gap to the bound, proven or not, median", 0.2, middle(to_bound), " %"),
        Goal("gap to the bound, proven or not, worst", 3.0, to_bound, " %"),
        Goal("above the best plan known, worst", 3.0, beyond, " %"),
    ]
    waited = " or ".join(map(str, seconds)) or "no"
    note = (
        f"A search has {SEARCH_S:.0f} s of one core, and ends before that as the command does."
        " The best plan known and the bound are from `bench/placement_bounds.json`, which"
        " `python -m bench.placement_bounds` writes."
        f" {len(proven)} of {len(found)} optima are proven. The others are open: after {waited} s"
        " of one core with HiGHS, what the plan is above the bound is the bound's fault as much as"
        " the plan's."
    )
    return Report("Against the optimum", [table], goals, [note])


class _Row(NamedTuple):
    """A row of the table, and what the goals are judged by."""

    cells: list[str]
    gap: float
    beyond: float
    proven: bool
    feasible: float
    seconds: float


def _row(task: tuple[Drawn, dict[str, Known], float]) -> _Row:
    one, kept, milp_s = task
    document = one.document()
    best = kept.get(one.name)
    if best is None or best.digest != digest(document):
        best = prove(one, milp_s, None)
    found = searched(lay_out(read_problem(document)), SEARCH_S)
    gap = percent(found.flow, best.bound)
    least = min(found.flow, best.flow or found.flow)
    if found.feasible and found.flow < best.bound * (1 - NEAR):
        raise SystemExit(f"{one.name}: a plan has {found.flow}, which is below {best.bound}")
    cells = [one.shape, f"{one.nodes} x {one.tasks}", one.limits, f"{found.flow:,.0f}"]
    cells += [
        f"{least:,.0f}",
        f"{best.bound:,.0f}",
        f"{gap:.3f}",
        "proven" if best.proven else "open",
    ]
    cells.append(f"{found.steps:,}")
    print(*cells, file=sys.stderr, flush=True)
    feasible = float(found.feasible or (best.proven and best.flow is None))
    return _Row(cells, gap, percent(found.flow, least), best.proven, feasible, best.seconds)


def homes(seeds: Iterable[int], milp_s: float, jobs: int) -> Report:
    """Nursing homes, with and without video, against the optimum."""
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [(seed, video, milp_s) for seed in seeds for video in (True, False)]
        found = list(pool.map(_home, tasks))
    heads = ["home", "brokers x pieces", "flow", "bound", "gap, %", "steps"]
    goal = Goal(f"nursing homes, gap after {HOME_S:.0f} s", 0.05, [gap for gap, _ in found], " %")
    return Report("Nursing homes", [Table("", heads, [row for _, row in found])], [goal])


def _home(task: tuple[int, bool, float]) -> tuple[float, list[str]]:
    seed, video, milp_s = task
    layout = lay_out(read_problem(nursing_home(seed, video=video)))
    found = searched(layout, HOME_S)
    start = found.plan if found.feasible else None
    best = solve(layout, milp_s, start, threads=1, clock=time.process_time, tighten=tighten)
    gap = percent(found.flow, best.bound) if found.feasible else 100.0
    size = f"{len(layout.problem.nodes)} x {len(layout.pieces)}"
    row = [f"{seed}, {'with' if video else 'without'} video", size, f"{found.flow:,.0f}"]
    return gap, [*row, f"{best.bound:,.0f}", f"{gap:.4f}", f"{found.steps:,}"]


# --- large problems ---------------------------------------------------------------------------


class Watch:
    """Ends after some seconds, and remembers when the first plan was feasible."""

    def __init__(self, seconds: float) -> None:
        self.began_s = time.process_time()
        self.limit = after_seconds(seconds, time.process_time)
        self.first: float | None = None

    def __call__(self, progress: Progress) -> bool:
        """True: the search ends."""
        if progress.feasible and self.first is None:
            self.first = time.process_time() - self.began_s
        # To ask for a process's time takes some of it.
        return progress.steps % 8 == 0 and self.limit(progress)


def large(size: int, seconds: tuple[float, float], beginning: str) -> Report:
    short, long = seconds
    rows = []
    firsts, parts, planted_gaps = [], [], []
    tight = Limits(1.4, 1.3, 1.3)
    makers: dict[str, Callable[[], tuple[Any, int | None]]] = {
        "geometric": lambda: (problem("geometric", size, size, 1), None),
        "grid, all limits": lambda: (problem("grid", size, size, 1, tight), None),
        "geometric, all limits": lambda: (problem("geometric", size, size, 1, tight), None),
        "planted, geometric": lambda: planted("geometric", size, size, 1),
        "planted, grid": lambda: planted("grid", size, size, 1),
    }
    for name, make in makers.items():
        if not name.startswith(beginning):
            continue
        document, least = make()
        first, soon = _timed(document, short)
        _, late = _timed(document, long) if least is None else (0.0, float(least))
        firsts.append(first)
        (parts if least is None else planted_gaps).append(percent(soon, late))
        rows.append(
            [name, f"{first:.1f}", f"{soon:,.0f}", f"{late:,.0f}", f"{percent(soon, late):.2f}"]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    heads = [
        "problem",
        "first feasible, s",
        f"flow, {short:.0f} s",
        f"{long:.0f} s or planted",
        "more, %",
    ]
    goals = [
        Goal("first feasible plan", 1.5, firsts, " s"),
        Goal(f"flow after {short:.0f} s above that after {long:.0f} s", 1.5, parts, " %"),
        Goal(f"flow after {short:.0f} s above a planted least", 2.0, planted_gaps, " %"),
        Goal("greatest memory of the process", 1024.0, [memory], " MB"),
    ]
    return Report(f"{size} brokers and {size} tasks", [Table("", heads, rows)], goals)


def _timed(document: Any, seconds: float) -> tuple[float, float]:
    """When a plan was feasible first, counted from the document on, and the flow at the end."""
    began = time.process_time()
    layout = lay_out(read_problem(document))
    instance = Instance(layout)
    search = Search(instance, 1)
    ready = time.process_time() - began
    watch = Watch(max(0.1, seconds - ready))
    found = evaluate(layout, as_plan(instance, search.run(watch)), instance.network)
    first = float("inf") if watch.first is None else ready + watch.first
    return first, float(found.flow) if found.feasible else float("inf")


def main() -> int:
    """Measures and shows."""
    options = parser(__doc__)
    options.add_argument("--part", nargs="+", choices=PARTS, help="only these")
    options.add_argument("--milp-seconds", type=float, default=600.0, help="for what is not known")
    options.add_argument("--jobs", type=int, default=1, help="problems at a time, but large ones")
    options.add_argument("--brokers-max", type=int, default=60, help="for --part optimum")
    options.add_argument(
        "--large", default="", help="for --part large: how a problem's name begins"
    )
    options.add_argument("--page", type=Path, help="write the figures into this page")
    arguments = options.parse_args()
    if arguments.page is not None:
        around(arguments.page)
    quick, milp_s = arguments.quick, arguments.milp_seconds
    brokers_max = 10 if quick else arguments.brokers_max
    where, began = machine(), time.monotonic()
    makers: dict[str, Callable[[], Report]] = {
        "optimum": lambda: against_optimum(brokers_max, milp_s, arguments.jobs),
        "homes": lambda: homes(range(1, 2 if quick else 6), milp_s, arguments.jobs),
        "large": lambda: large(*(LARGE_QUICK if quick else LARGE), arguments.large),
    }
    wanted = arguments.part or PARTS
    reports = [makers[name]() for name in wanted]
    if arguments.page is not None:
        command = " ".join(["python -m bench.planner", *sys.argv[1:]])
        write_page(arguments.page, Findings(where, time.monotonic() - began, reports), command)
    if arguments.json:
        print(msgspec.json.encode(reports).decode())
        return 0
    print("\n\n".join(map(as_text, reports)))
    goals = goals_table(reports)
    print("\n" + "\n".join(columns_of(goals.columns, goals.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
