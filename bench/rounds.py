"""Tables of distributed planning: the central plan's lead, the price of moves.

Owns which networks are planned and how the tables are laid out. Must not plan: the planner does.
Invariant: everything but the seconds is the same on every machine.

    python bench/rounds.py                 all tables, as docs/planning.md has them
    python bench/rounds.py --quick gaps    fewer networks; one table
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.generate import SHAPES, Limits, problem  # noqa: E402
from experiments.overlay import on_tree, overlay  # noqa: E402
from experiments.placing import ALL, come_to, mark, rounds  # noqa: E402
from experiments.trial import Trial  # noqa: E402
from planner.layout import lay_out  # noqa: E402
from planner.methods import Wanted, find  # noqa: E402
from planner.problem import Problem  # noqa: E402
from planner.reading import read_problem  # noqa: E402
from planner.rounds.settings import Effort  # noqa: E402
from planner.rounds.units import scaled  # noqa: E402

SLACK = 1.15  # limits leave a drawn placement 15 %
PRICES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def say(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


def head(*cells: str) -> None:
    """A table's head: words to the left, numbers to the right."""
    say(*cells)
    say("---", *("---:" for _ in cells[1:]))


# --- the tables -----------------------------------------------------------------------------------


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
