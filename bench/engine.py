"""What the engine does in a second for drawn shapes, and for six patterns beside their loops.

Owns the measuring and the table. Must not know brokers or sockets, nor what lies behind the
engine's public face but to say where its time goes. Invariant: events are made before the clock
starts, and what the engine and the loops give is compared with a search through everything.

    python -m bench.engine [--quick] [--repeats N] [--json]
"""

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

from bench import drawn
from bench.brute import BRUTE, Named, of_engine, of_loop
from bench.report import Goal, Options, Report, Table, run
from bench.workload import (
    DECLARED,
    HEAVY,
    HEAVY_TEXT,
    LATENESS_MS,
    LOOPS,
    TEXTS,
    Row,
    as_event,
    delayed,
    workload,
)
from broker.engine.runtime.results import told
from headwater import Engine

BATCH = 1_000
SLICE = 100_000  # so many events are made at once, with the clock stopped
ORDERED_LEAST, LATE_LEAST = 0.5, 0.25


@dataclass(frozen=True)
class Measured:
    """Of one pattern: thousands of events a second of CPU, medians; and how many results."""

    results: int
    loop: float
    in_order: float
    late: float


def loop_s(name: str, rows: Sequence[Row], wanted: list[Named]) -> float:
    """Seconds of CPU of the loop, which must find what is wanted."""
    gc.collect()
    began = process_time()
    results = LOOPS[name](rows)
    seconds = process_time() - began
    same(name, "the loop", of_loop(name, results), wanted)
    return seconds


def check_engine(
    name: str, text: str, rows: Sequence[Row], lateness_ms: int, wanted: list[Named]
) -> None:
    """The engine must find what is wanted; no clock runs."""
    engine = Engine(DECLARED + text, lateness_ms)
    found: list[Named] = []
    for start in range(0, len(rows), BATCH):
        found += of_engine(name, engine.push(list(map(as_event, rows[start : start + BATCH]))))
    same(name, "the engine", found + of_engine(name, engine.finish()), wanted)


def engine_s(text: str, rows: Sequence[Row], lateness_ms: int, wanted: int) -> float:
    """Seconds of CPU of the engine, from events to results, which are counted."""
    engine = Engine(DECLARED + text, lateness_ms)
    seconds, found = 0.0, 0
    for start in range(0, len(rows), SLICE):
        events = [as_event(row) for row in rows[start : start + SLICE]]
        gc.collect()
        gc.freeze()  # the events are there to stay; the same holds of the rows for the loops
        began = process_time()
        for first in range(0, len(events), BATCH):
            found += len(engine.push(events[first : first + BATCH]))
        if start + SLICE >= len(rows):
            found += len(engine.finish())
        seconds += process_time() - began
        gc.unfreeze()
    if found != wanted:
        raise SystemExit(f"the engine has {found} results, of {wanted}")
    return seconds


def same(name: str, who: str, found: list[Named], wanted: list[Named]) -> None:
    """Raise SystemExit unless both are the same results."""
    found.sort()
    if found != wanted:
        raise SystemExit(f"{name}: {who} has {len(found)} results, of {len(wanted)}, or others")


def measured(
    name: str, text: str, rows: Sequence[Row], late: Sequence[Row], times: int
) -> Measured:
    """One pattern in turns, so often."""
    wanted = sorted(BRUTE[name](rows))
    check_engine(name, text, rows, 0, wanted)
    check_engine(name, text, late, LATENESS_MS, wanted)
    rounds = [
        (
            loop_s(name, rows, wanted),
            engine_s(text, rows, 0, len(wanted)),
            engine_s(text, late, LATENESS_MS, len(wanted)),
        )
        for _ in range(times)
    ]
    rates = [len(rows) / median(column) / 1e3 for column in zip(*rounds, strict=True)]
    return Measured(len(wanted), *rates)


def phases(text: str, rows: Sequence[Row]) -> list[float]:
    """Microseconds of CPU an event: taking in, admitting and matching, writing results out."""
    engine = Engine(DECLARED + text)
    decode, pipeline = engine._decoded, engine._pipeline  # noqa: SLF001
    taken = [0.0, 0.0, 0.0]
    for start in range(0, len(rows), SLICE):
        events: list[Any] = [as_event(row) for row in rows[start : start + SLICE]]
        gc.collect()
        gc.freeze()
        for first in range(0, len(events), BATCH):
            at = [process_time()]
            decoded = decode(events[first : first + BATCH])
            at.append(process_time())
            results = pipeline.admit(decoded.events, decoded.by_class)
            at.append(process_time())
            told(results)
            at.append(process_time())
            taken = [so_far + b - a for so_far, (a, b) in zip(taken, pairwise(at), strict=True)]
        gc.unfreeze()
    return [seconds / len(rows) * 1e6 for seconds in taken]


def report(options: Options) -> Report:
    """Measure each pattern in order and late."""
    rows = workload(100_000 if options.quick else 1_000_000)
    late = delayed(rows)
    lines, parts, apart = [], [], []
    in_order, disordered = [], []
    for name, text in {**TEXTS, HEAVY: HEAVY_TEXT}.items():
        found = measured(name, text, rows, late, options.times(3))
        ratios = found.in_order / found.loop, found.late / found.loop
        rates = [f"{rate:,.0f}" for rate in (found.loop, found.in_order, found.late)]
        line = [name, f"{found.results:,}", *rates, *(f"{ratio:.2f}" for ratio in ratios)]
        if name == HEAVY:
            apart.append(line)
        else:
            lines.append(line)
            in_order.append(ratios[0])
            disordered.append(ratios[1])
        parts.append([name, *(f"{us:.2f}" for us in phases(text, rows))])
    drawn_tables, drawn_goals = drawn.tables(options)
    rates = ["loop, k/s", "in order, k/s", "2 s late, k/s"]
    columns = ["pattern", "results", *rates, "ratio", "ratio, late"]
    return Report(
        "Patterns through the engine",
        [
            *drawn_tables,
            Table(f"Six patterns, {len(rows):,} events, thousands a second of CPU", columns, lines),
            Table("Apart: nearly a result for each event", columns, apart),
            Table(
                "Where the time goes, µs of CPU an event, in order",
                ["pattern", "taking in", "admitting and matching", "writing results"],
                parts,
            ),
        ],
        [
            *drawn_goals,
            Goal(
                "engine's rate in order beside a loop for the pattern alone",
                ORDERED_LEAST,
                in_order,
                at_least=True,
            ),
            Goal(
                "engine's rate with 2 s of disorder beside that loop",
                LATE_LEAST,
                disordered,
                at_least=True,
            ),
        ],
        [
            "Events are `headwater.Event`s made beforehand and pushed in batches of 1,000.",
            (
                "The first 500 events of each drawn shape are compared with the reference matcher"
                " of the tests; what is found in all of them is the same late and from JSON."
            ),
            "The loops go over tuples of the same texts and numbers, in order, and give tuples.",
            (
                "Every result of both is compared with a search through everything: for the engine"
                " in a round of its own; in the rounds that are measured its results are counted."
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
