"""Tables of distributed planning: radius, overhead, the central plan's lead, the price of moves.

Owns which networks are planned and how the tables are laid out. Must not plan: the planner does.
Invariant: everything but the seconds is the same on every machine.

    python bench/rounds.py                 all tables, as docs/planning.md has them
    python bench/rounds.py --quick gaps    fewer networks; one table
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.generate import SHAPES, Limits, problem  # noqa: E402
from experiments.trial import Trial  # noqa: E402
from planner.flow import Evaluation, evaluate  # noqa: E402
from planner.layout import lay_out  # noqa: E402
from planner.methods import Wanted, find  # noqa: E402
from planner.plan import Plan  # noqa: E402
from planner.problem import Problem  # noqa: E402
from planner.reading import read_problem  # noqa: E402
from planner.rounds.messages import Commit, Envelope, Tell, size_bytes  # noqa: E402
from planner.rounds.settings import Effort, Settings  # noqa: E402
from planner.rounds.tree import on_tree, overlay  # noqa: E402
from planner.rounds.units import scaled  # noqa: E402

EXAMPLES = ROOT / "examples" / "placement"
ALL = 99  # a radius that covers every network here
INTERVALS = (100, 150, 200, 250, 300)
SLACK = 1.15  # limits leave a drawn placement 15 %
PRICES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def example(name: str) -> Problem:
    """A scenario of the examples."""
    return read_problem(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def rounds(
    network: Problem, radius: int, *, price: float = 0.0, effort: Effort | None = None
) -> Trial:
    """The network once all brokers are quiet."""
    trial = Trial(network, Settings(radius=radius, price=price, effort=effort or Effort()), seed=1)
    trial.until_quiet()
    return trial


def come_to(trial: Trial) -> Evaluation:
    """What the placement comes to, on the tree that it was planned on."""
    layout = lay_out(on_tree(trial.problem, trial.tree))
    return evaluate(layout, Plan(tuple(trial.hosts)))


def say(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


def head(*cells: str) -> None:
    """A table's head: words to the left, numbers to the right."""
    say(*cells)
    say("---", *("---:" for _ in cells[1:]))


def mark(found: Evaluation) -> str:
    """A flow, or that there is none without breaking a limit."""
    return f"{found.flow:,.0f}" if found.feasible else "infeasible"


# --- the tables -----------------------------------------------------------------------------------


def radius_table(_: argparse.Namespace) -> None:
    """As the paper's table 2: the flow of the logical test by radius and interval."""
    radii = range(1, 7)
    head("interval", *(f"r = {radius}" for radius in radii), "optimum", "hop-based")
    for interval in INTERVALS:
        network = example(f"logical-test-{interval}")
        layout = lay_out(network)
        best = find(layout, Wanted("optimal", time_limit_s=20)).evaluation
        hop = find(layout, Wanted("hop")).evaluation
        say(interval, *(mark(come_to(rounds(network, r))) for r in radii), mark(best), mark(hop))


def flow_table(_: argparse.Namespace) -> None:
    """As the paper's table 3: what travels in the nursing home, in bytes a second."""
    network = example("nursing-home")
    layout = lay_out(network)
    head("approach", "flow, bytes/s", "of centralised", "moves")
    central = find(layout, Wanted("central")).evaluation
    rows: list[tuple[str, Evaluation, object]] = []
    for radius in (1, 2, 3, ALL):
        trial = rounds(network, radius)
        name = "all in view" if radius == ALL else f"r = {radius}"
        rows.append((f"in rounds, {name}", come_to(trial), len(trial.moves)))
    rows.append(("one planner for all (tabu)", find(layout, Wanted("tabu")).evaluation, ""))
    rows.append(("hop-based", find(layout, Wanted("hop")).evaluation, ""))
    rows.append(("centralised", central, ""))
    for name, found, moves in rows:
        note = "" if found.feasible else " (over a limit)"
        say(name + note, f"{found.flow:,.0f}", f"1 : {central.flow / found.flow:.2f}", moves)


def overhead_table(_: argparse.Namespace) -> None:
    """As the paper's table 4: what planning itself sends in the nursing home."""
    network = example("nursing-home")
    head("approach", "messages", "bytes", "until quiet, s", "flow")
    runs = {}
    for radius in (1, 2, 3, 4, 5, 6, 8, ALL):
        trial = runs[radius] = rounds(network, radius)
        name = "cover: all brokers" if radius == ALL else f"r = {radius}"
        say(name, *overhead(trial), f"{trial.now / 1000:.1f}", mark(come_to(trial)))
    messages, size = pushing(runs[ALL])
    say("centralised: to the server and back", f"{messages:,}", f"{size:,}", "", "")
    kinds = runs[3].counts
    sys.stdout.write("\nAt r = 3, by kind of message:\n\n")
    head("kind", "messages", "bytes")
    for kind in sorted(kinds.messages):
        say(kind, f"{kinds.messages[kind]:,}", f"{kinds.bytes[kind]:,}")


def overhead(trial: Trial) -> tuple[str, str]:
    """Messages and bytes, each counted once a link."""
    counts = trial.counts
    return f"{sum(counts.messages.values()):,}", f"{sum(counts.bytes.values()):,}"


def pushing(trial: Trial) -> tuple[int, int]:
    """What it takes to tell one server everything once, and each broker its part of the plan."""
    server = trial.layout.numbers[trial.problem.server or trial.problem.nodes[0].id]
    messages = size = 0
    for broker, hops in trial.tree.hops(server).items():
        machine = trial.machines[broker]
        there = Envelope(0, broker, server, Tell(machine._summary(), 0))  # noqa: SLF001
        back = Envelope(0, server, broker, Commit(1, machine.tables, ()))
        messages += 2 * hops
        size += hops * (size_bytes(there) + size_bytes(back))
    return messages, size


def gap_table(arguments: argparse.Namespace) -> None:
    """How far the rounds stay behind one planner for all, on the same tree."""
    quick = arguments.quick
    radii = arguments.radii or ((1, 3, ALL) if quick else (1, 2, 3, ALL))
    told = arguments.sizes or (("10x8", "16x12") if quick else ("10x10", "20x20", "30x30"))
    sizes = [(int(a), int(b)) for a, b in (one.split("x") for one in told)]
    first = arguments.first_seed
    seeds = range(first, first + (arguments.seeds or (2 if quick else 4)))
    shapes = arguments.shapes or SHAPES
    gaps: dict[int, list[float]] = {radius: [] for radius in radii}
    broken: dict[int, int] = dict.fromkeys(radii, 0)
    sent: dict[int, list[int]] = {radius: [] for radius in radii}
    for network in drawn(shapes, sizes, seeds):
        layout = lay_out(on_tree(network, overlay(network)))
        best = find(layout, Wanted("tabu", steps=20_000)).evaluation
        for radius in radii:
            trial = rounds(network, radius)
            found = come_to(trial)
            sent[radius].append(sum(trial.counts.messages.values()))
            if found.feasible:
                gaps[radius].append(100 * (found.flow / best.flow - 1) if best.flow else 0.0)
            else:
                broken[radius] += 1
            if arguments.verbose:
                sys.stderr.write(f"{network.name} r={radius} {mark(found)} {best.flow:,.0f}\n")
    count = len(gaps[radii[0]]) + broken[radii[0]]
    sys.stdout.write(f"{count} networks, {SLACK:.2f} times what a drawn placement needs\n\n")
    head("radius", "median gap", "mean", "worst", "infeasible", "messages, median")
    for radius in radii:
        own = gaps[radius]
        name = "all" if radius == ALL else radius
        figures = [statistics.median(own), statistics.mean(own), max(own)]
        cells = [f"{figure:.2f} %" for figure in figures]
        say(name, *cells, broken[radius], f"{statistics.median(sent[radius]):,.0f}")


def drawn(
    shapes: Iterable[str], sizes: Iterable[tuple[int, int]], seeds: Iterable[int]
) -> Iterable[Problem]:
    """Generated networks with room for a placement."""
    every = [(nodes, tasks, seed) for nodes, tasks in sizes for seed in seeds]
    for shape in shapes:
        for nodes, tasks, seed in every:
            yield read_problem(problem(shape, nodes, tasks, seed, Limits(brokers=SLACK)))


def price_table(arguments: argparse.Namespace) -> None:
    """Moves against flow: the rates of a network change ten times, under several prices."""
    sizes, seeds = ((10, 8),), range(3 if arguments.quick else 6)
    networks = list(drawn(("tree", "geometric"), sizes, seeds))
    head("price", "pieces moved", "flow, of that without a price", "pieces moved there and back")
    base = 0.0
    for price in PRICES:
        moved = again = 0
        flow = 0.0
        for number, network in enumerate(networks):
            steps = changing(network, price, number)
            for came, back, found in steps:
                moved += came
                again += back
                flow += found
        base = base or flow
        say(f"{price:g}", moved, f"{100 * flow / base:.2f} %", again)


def changing(network: Problem, price: float, seed: int) -> list[tuple[int, int, float]]:
    """After each change of rates: how many pieces moved, and back where they were, and the flow."""
    trial = rounds(network, 3, effort=Effort(total=100_000))
    for machine in trial.machines:  # what has not run yet has no state to take along
        machine.settings = replace(machine.settings, price=price)
    random = Random(seed)
    streams = [n for n, stream in enumerate(trial.layout.streams) if stream.origin is not None]
    first = {stream: trial.amounts.rates[stream] for stream in streams}
    found = []
    before = list(trial.hosts)
    for _ in range(10):
        stream = random.choice(streams)
        factor = random.choice((0.5, 0.8, 1.0, 1.25, 2.0))
        count, old = len(trial.moves), trial.hosts
        trial.rate({stream: round(first[stream] * factor)})
        trial.until_quiet()
        back = sum(a == c != b for a, b, c in zip(before, old, trial.hosts, strict=True))
        before = old
        found.append((len(trial.moves) - count, back, carried(trial)))
    return found


def carried(trial: Trial) -> float:
    """The flow as the tables have it, in bytes a second."""
    whole = 0
    for machine in trial.machines:
        whole += sum(one.rate * len(one.down) for one in machine.tables.passing)
        for joined in machine.tables.joined:
            if joined.toward >= 0:
                whole += joined.rate * (joined.own + sum(count for _, count in joined.come))
    return whole / scaled(1)


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "radius": radius_table,
    "flow": flow_table,
    "overhead": overhead_table,
    "gaps": gap_table,
    "price": price_table,
}


def main() -> None:
    """Prints the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller networks")
    parser.add_argument("--verbose", action="store_true", help="each network on standard error")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, help="for gaps")
    parser.add_argument("--sizes", nargs="+", metavar="BROKERSxTASKS", help="for gaps")
    parser.add_argument("--first-seed", type=int, default=0, help="for gaps")
    parser.add_argument("--seeds", type=int, metavar="N", help="for gaps: networks of each kind")
    parser.add_argument("--radii", nargs="+", type=int, metavar="R", help=f"for gaps; {ALL}: all")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
        sys.stdout.write(f"\n### {TABLES[name].__doc__}\n\n")
        TABLES[name](arguments)


if __name__ == "__main__":
    main()
