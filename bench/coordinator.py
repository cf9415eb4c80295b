"""What live placement gains: tasks moved against flow saved, over the price of a move.

Owns which networks are tried and how the table is laid out. Must not decide: the coordinators do.
Invariant: all figures are the same on every machine.

    python -m bench.coordinator [--quick]

Coordinators of whole networks over simulated links, each with its own knowledge, measure rates of
tasks that are not run (their counts are drawn from the rates), and move them. Ten times one
origin's rate of one type becomes another; the flow is that of the true rates, over all changes.
"""

import argparse
import sys
from functools import cache
from pathlib import Path
from random import Random

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from broker.core.coordinator.laying import rounds_settings
from tests.broker.core.coordinator.town import best, drawn

PRICES = (0, 5, 10, 20, 50, 100)
CHANGES = 10
STEP_S = 45  # until a rate is measured, told, planned with, and tasks have moved
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times what it was at first


@cache
def least(seed: int, changes: int) -> float:
    """The least flow after so many changes, as one planner for all finds it."""
    town = drawn(seed, brokers=8, jobs=8)
    town.run(1)  # until the tree stands
    for rates in steps(seed, dict(town.rates))[:changes]:
        town.rate(rates)
    return best(town)[1]


def steps(seed: int, base: dict[tuple[str, str], float]) -> list[dict[tuple[str, str], float]]:
    """What becomes another rate, one after the other."""
    draw = Random(seed)
    places = [draw.choice(sorted(base)) for _ in range(CHANGES)]
    return [{place: base[place] * draw.choice(FACTORS)} for place in places]


def changed(seed: int, price_percent: int | None) -> tuple[int, int, float, float]:
    """(moves, of these of tasks that moved already since the last change, flow, the least flow).

    Without a price nothing moves at all: everything stays at home.
    """
    town = drawn(seed, brokers=8, jobs=8)
    for house in town.houses.values():
        one = house.coordinator
        price = 10**9 if price_percent is None else price_percent
        one.settings = replace(one.settings, price_percent=price)
        one.rounds.settings = rounds_settings(one.settings)
    town.run(STEP_S)
    moves = again = 0
    flow = lowest = 0.0
    for number, rates in enumerate(steps(seed, dict(town.rates)), 1):
        before = {key: len(job.moves) for key, job in town.jobs.items()}
        town.rate(rates)
        town.run(STEP_S)
        came = [len(job.moves) - before[key] for key, job in town.jobs.items()]
        moves += sum(came)
        again += sum(max(0, count - 1) for count in came)
        flow += town.flow()
        lowest += least(seed, number)
    return moves, again, flow, lowest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two networks in place of six")
    seeds = range(2 if parser.parse_args().quick else 6)
    say("price", "tasks moved", "of these again", "flow, of the least")
    say("---", "---:", "---:", "---:")
    for price in (*PRICES, None):
        rows = [changed(seed, price) for seed in seeds]
        moves, again, flow, lowest = (sum(column) for column in zip(*rows, strict=True))
        name = "all at home" if price is None else f"{price} %"
        say(name, moves, again, f"{100 * flow / lowest:.1f} %")


def say(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
