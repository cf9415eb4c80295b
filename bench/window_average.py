"""The mean of the last x seconds at each reading: the engine, SQLite and forward chaining.

Owns the experiment of the place-and-play paper, figure 7: what one reading costs as more of them
lie in the window. Must not know how the engine moves a window. Invariant: all three say the same
mean at each reading, one reading at a time.

    python -m bench.window_average [--quick] [--repeats N] [--json]
"""

import random
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isclose
from statistics import median
from time import process_time
from typing import Any

from bench.report import Options, Report, Table, run
from headwater import Engine, Event

SIZES = (100, 300, 500, 700, 900, 1_100, 1_300, 1_500)
STEP_MS = 100
MEASURED = 500

Reading = tuple[int, float]  # time in ms, value
Agent = Callable[[int, Sequence[Reading]], tuple[float, list[float]]]


def readings(count: int) -> list[Reading]:
    seeded = random.Random(count)
    return [(1_700_000_000_000 + n * STEP_MS, seeded.uniform(15.0, 30.0)) for n in range(count)]


def by_engine(inside: int, given: Sequence[Reading]) -> tuple[float, list[float]]:
    """Seconds of CPU for the last of the readings, and all means."""
    engine = Engine(
        f"event Temp(val: float)\ndefine Mean(mean) aggr range {(inside - 1) * STEP_MS} ms\n"
        "detect Temp assign mean = Avg(Temp.val)\n"
        "subscription S seq 1 from bench to log detect Mean as m assign mean = m.mean"
    )
    events = [
        Event("Temp", id=f"t{number}", timestamp=time_ms, val=val)
        for number, (time_ms, val) in enumerate(given)
    ]
    results: list[dict[str, Any]] = []
    for event in events[:-MEASURED]:
        results += engine.push([event])
    began = process_time()
    for event in events[-MEASURED:]:
        results += engine.push([event])
    results += engine.finish()
    return process_time() - began, [one["values"]["mean"] for one in results]


def by_sqlite(inside: int, given: Sequence[Reading]) -> tuple[float, list[float]]:
    """An agent that keeps its window in a table in memory."""
    means = []
    with sqlite3.connect(":memory:", isolation_level=None) as base:
        base.execute("CREATE TABLE temp (at INTEGER PRIMARY KEY, val REAL)")
        began = 0.0
        for number, (time_ms, val) in enumerate(given):
            if number == len(given) - MEASURED:
                began = process_time()
            base.execute("INSERT INTO temp VALUES (?, ?)", (time_ms, val))
            least_ms = time_ms - (inside - 1) * STEP_MS
            base.execute("DELETE FROM temp WHERE at < ?", (least_ms,))
            means += base.execute("SELECT AVG(val) FROM temp").fetchone()
        seconds = process_time() - began
    base.close()
    return seconds, means


@dataclass
class Chaining:
    """Productions over facts: all are matched anew with all facts until none applies."""

    inside_ms: int
    facts: list[dict[str, Any]] = field(default_factory=list)
    means: list[float] = field(default_factory=list)

    def take(self, time_ms: int, val: float) -> None:
        """Assert a reading and run until nothing applies."""
        self.facts.append({"type": "now", "at": time_ms})
        self.facts.append({"type": "temp", "at": time_ms, "val": val})
        while self._fired(self._expired) or self._fired(self._averaged):
            pass

    def _fired(self, production: Callable[[int], Iterator[dict[str, Any]]]) -> bool:
        for fact in self.facts:
            if fact["type"] == "now":
                gone = [id(one) for one in production(fact["at"])]
                self.facts = [one for one in self.facts if id(one) not in gone]
                return bool(gone)
        return False

    def _expired(self, now_ms: int) -> Iterator[dict[str, Any]]:
        """A reading that lies before the window is retracted."""
        for fact in self.facts:
            if fact["type"] == "temp" and fact["at"] < now_ms - self.inside_ms:
                yield fact

    def _averaged(self, now_ms: int) -> Iterator[dict[str, Any]]:
        """All readings are gone through; then the time is no longer now."""
        total, count = 0.0, 0
        for fact in self.facts:
            if fact["type"] == "temp" and fact["at"] <= now_ms:
                total += fact["val"]
                count += 1
        self.means.append(total / count)
        yield next(fact for fact in self.facts if fact["type"] == "now")


def by_chaining(inside: int, given: Sequence[Reading]) -> tuple[float, list[float]]:
    """A forward-chaining engine without any memory of what matched before."""
    chaining = Chaining((inside - 1) * STEP_MS)
    for time_ms, val in given[:-MEASURED]:
        chaining.take(time_ms, val)
    began = process_time()
    for time_ms, val in given[-MEASURED:]:
        chaining.take(time_ms, val)
    return process_time() - began, chaining.means


AGENTS: dict[str, Agent] = {
    "engine": by_engine,
    "SQLite": by_sqlite,
    "forward chaining": by_chaining,
}


def figures(inside: int, times: int) -> list[float]:
    """Microseconds of CPU a reading, of each agent: medians."""
    given = readings(inside + MEASURED)
    rounds: list[list[float]] = []
    wanted: list[float] = []
    for _ in range(times):
        taken = []
        for name, agent in AGENTS.items():
            seconds, means = agent(inside, given)
            wanted = wanted or means
            if len(means) != len(given) or not all(map(isclose, means, wanted)):
                raise SystemExit(f"{name}: other means, of {inside} readings")
            taken.append(seconds / MEASURED * 1e6)
        rounds.append(taken)
    return [median(column) for column in zip(*rounds, strict=True)]


def report(options: Options) -> Report:
    """One row for each number of readings in the window."""
    rows = []
    for inside in SIZES[::7] if options.quick else SIZES:
        engine, sqlite, chaining = figures(inside, options.times(3))
        rows.append(
            [
                f"{inside:,}",
                *(f"{us:.1f}" for us in (engine, sqlite, chaining)),
                f"{sqlite / engine:.1f}",
                f"{chaining / engine:.1f}",
            ]
        )
    return Report(
        "The mean of a window, at each reading",
        [
            Table(
                "µs of CPU a reading",
                [
                    "readings in the window",
                    *AGENTS,
                    "SQLite / engine",
                    "chaining / engine",
                ],
                rows,
            )
        ],
        [],
        [
            "Each takes one reading at a time and says the mean at once; all means agree.",
            "SQLite: a table in memory; insert, delete what is too old, select the mean.",
            "Forward chaining: two productions are matched with all facts until none applies:",
            "a reading that is too old is retracted; the mean of those that are left is taken.",
        ],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
