"""What planning costs a broker as the network grows: messages, bytes, memory and CPU.

Owns which networks are tried and how the table is laid out. Must not decide: the coordinators do.
Invariant: all figures but memory and seconds are the same on every machine.

    python -m bench.knowledge [--brokers 10 20 50 100 200] [--subscriptions 100]

Coordinators of whole networks over simulated links: a random tree, four sources in every ten
brokers, so many submissions at home at each broker, each of the types of sources nearby. Then two
rates change, one after the other. Looks are short, as what is counted hangs on them
little. Everything else that a broker holds is left out. Memory is that
of the objects of a coordinator, one by one, as a mean over a few brokers.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.metering import Counts
from broker.core.coordinator.statement import Piece
from broker.core.coordinator.works import Work
from broker.network.effects import SendFrame
from broker.network.overlay.tree import Tree
from planner.rounds.settings import Effort
from tests.broker.core.coordinator.town import House, Job, Town

BROKERS = (10, 20, 50, 100, 200)
TYPES = ("A", "B", "C")
HOPS = 3  # from a home to the sources that its submissions need, at most: a vicinity
SETTLED_S = 120  # until all has been measured and told, and tasks have moved
STEP_S = 45  # the same after one change
CHANGES = 2
EFFORT = Effort(total=20_000, each=100, at_once=20_000)  # short looks: little hangs on them
WALKED = 5  # brokers whose memory is counted
SHARED = (House, Town, Tree, type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)


class BenchHouse(House):
    """A broker that finds its own submissions without looking at all of the network's."""

    town: "BenchTown"

    def __init__(self, town: "BenchTown", name: str, life: int) -> None:
        super().__init__(town, name, life)
        rounds = self.coordinator.rounds
        rounds.settings = replace(rounds.settings, effort=EFFORT)

    def works(self) -> Iterable[Work]:
        """See Around."""
        return [Work(job.key, job.key, job.host) for job in self.town.at_home[self.name]]

    def counted(self) -> Mapping[Piece, Counts]:
        """See Around."""
        jobs = self.town.at_host.get(self.name, {}).values()
        return {(job.home, job.key): self.town.counts(job) for job in jobs}


class BenchTown(Town):
    """A network that counts what planning sends."""

    kind = BenchHouse

    def __init__(self, seed: int, brokers: int, edges: list, rates: dict) -> None:
        self.at_home: dict[str, list[Job]] = {f"b{number}": [] for number in range(brokers)}
        self.at_host: dict[str, dict[str, Job]] = {}
        self.messages = self.size = 0
        super().__init__(seed, brokers, edges, rates, settings=CoordinatorSettings())

    def add(self, home: str, inputs: dict[tuple[str, str], float], part: float) -> None:
        """Submit before anything runs: all at once, and nobody is told of each by itself."""
        job = Job(home, len(self.jobs), inputs, part)
        self.jobs[job.key] = job
        self.at_home[home].append(job)

    def _moved(self, job: Job, host: str) -> None:
        self.at_host.get(job.host, {}).pop(job.key, None)
        self.at_host.setdefault(host, {})[job.key] = job
        super()._moved(job, host)

    def _count(self) -> None:
        if self.world.now != self._counted_at:
            super()._count()

    def sent(self, name: str, frame: SendFrame) -> None:
        """Count what is of planning, and send it."""
        for kind, size in frame.parts:
            if kind == "planning":
                self.messages += 1
                self.size += size
        super().sent(name, frame)


def town_of(brokers: int, subscriptions: int, seed: int) -> tuple[BenchTown, float]:
    """Draw a network; return it and how many brokers are within the radius of one, on average."""
    draw = Random(f"knowledge {seed}")
    edges = [(draw.randrange(max(0, child - 4), child), child) for child in range(1, brokers)]
    near = {number: within(edges, number) for number in range(brokers)}
    sources = sorted(draw.sample(range(brokers), brokers * 2 // 5))
    rates = {
        (f"b{number}", name): float(draw.randrange(500, 8_000))
        for number in sources
        for name in TYPES
    }
    town = BenchTown(seed, brokers, edges, rates)
    for home in range(brokers):
        around = [number for number in sources if number in near[home]] or sources[:1]
        for _ in range(subscriptions):
            chosen = draw.sample(around, min(len(around), draw.randint(1, 3)))
            names = draw.sample(TYPES, draw.choice((1, 1, 2)))
            part = draw.choice((1.0, 0.4, 0.1))
            inputs = {(f"b{number}", name): part for number in chosen for name in names}
            town.add(f"b{home}", inputs, 0.01)
    return town, sum(len(each) for each in near.values()) / brokers


def within(edges: list[tuple[int, int]], start: int) -> set[int]:
    """Return the brokers at most `HOPS` hops away, the start included."""
    reached = {start}
    for _ in range(HOPS):
        reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
    return reached


def parts_of(item: object) -> Iterator[object]:
    """Yield what an object holds."""
    if isinstance(item, Mapping):
        yield from item.keys()
        yield from item.values()
    elif isinstance(item, list | tuple | set | frozenset):
        yield from item
    elif not isinstance(item, str | bytes | int | float):
        yield getattr(item, "__dict__", None)
        for kind in type(item).__mro__:
            for name in getattr(kind, "__slots__", ()):
                yield getattr(item, name, None)


def size_bytes(start: object) -> int:
    """Count the bytes of an object and of all that it holds, each once, without what is shared."""
    seen: set[int] = set()
    todo, size = [start], 0
    while todo:
        item = todo.pop()
        if item is None or id(item) in seen or isinstance(item, SHARED):
            continue
        seen.add(id(item))
        size += sys.getsizeof(item)
        todo.extend(parts_of(item))
    return size


def row_of(brokers: int, subscriptions: int, seed: int = 1) -> tuple[object, ...]:
    """Return a row of the table: what a broker has, sent and used, as means over all."""
    town, vicinity = town_of(brokers, subscriptions, seed)
    began = time.process_time()
    town.run(SETTLED_S)
    messages, size = town.messages, town.size
    draw = Random(f"changes {seed}")
    for _ in range(CHANGES):
        place = draw.choice(sorted(town.rates))
        town.rate({place: town.rates[place] * draw.choice((0.25, 0.5, 2.0, 4.0))})
        town.run(STEP_S)
    cpu_s = time.process_time() - began
    walked = [town.houses[name] for name in town.names[:: max(1, brokers // WALKED)]]
    memory = sum(size_bytes(house.coordinator) for house in walked) / len(walked)
    known = sum(len(house.coordinator.known.submissions) for house in walked) / len(walked)
    return (
        brokers,
        f"{brokers * subscriptions:,}",
        f"{vicinity:.1f}",
        f"{known:,.0f}",
        f"{messages / brokers:,.0f}",
        f"{size / brokers / 1000:,.0f}",
        f"{(town.messages - messages) / CHANGES:,.0f}",
        f"{(town.size - size) / CHANGES / 1000:,.0f}",
        f"{memory / 1e6:.2f}",
        f"{cpu_s / brokers:.2f}",
        town.moves - len(town.jobs),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--brokers", type=int, nargs="+", default=BROKERS, metavar="N")
    parser.add_argument("--subscriptions", type=int, default=100, help="at each broker")
    arguments = parser.parse_args()
    say(
        "brokers",
        "subscriptions",
        "within 3 hops",
        "subscriptions that a broker knows",
        "messages a broker until settled",
        "kB",
        "messages of all for a change",
        "kB",
        "MB a broker",
        "CPU s a broker",
        "moves",
    )
    say(*["---:"] * 11)
    for brokers in arguments.brokers:
        say(*row_of(brokers, arguments.subscriptions))


def say(*cells: object) -> None:
    """Print a row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
