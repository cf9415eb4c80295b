"""What the engine does in a second for each of the drawn shapes, in order, late, and from JSON.

Owns the measuring and its tables. Must not know how shapes are drawn. Invariant: what the engine
finds in the first 500 events of a shape is compared with the independent reference matcher,
and what it finds in all of them is the same in order, late and from JSON.

Results cost what they hold, so a rate counts events + 10 × results. A calibration loop runs beside
each shape: its rate tells how fast the machine was in that moment.

    python -m bench.drawn            # 50,000 events a shape; --quick: 10,000
"""

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any

import msgspec

from bench.report import Goal, Options, Report, Table, run
from bench.shapes import Drawing, Shape
from bench.workload import LATENESS_MS, Row, as_event, delayed, workload
from broker.engine.runtime.results import told
from headwater import Engine
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.matcher import run as matches_of
from tests.oracles.render import text_of

BATCH = 1_000
CHECKED = 500
RESULT_WEIGHT = 10
MEDIAN_LEAST, WORST_LEAST, JSON_LEAST = 2.0, 1.0, 0.8  # million a second


@dataclass(frozen=True)
class Rates:
    """Of one shape: its results, and millions a second of CPU of events + 10 × results."""

    results: int
    in_order: float
    late: float
    from_json: float
    loop: float | None
    calibration: float


# --- what is measured -------------------------------------------------------------------------


def check(shape: Shape, rows: Sequence[Row]) -> None:
    """Raise SystemExit unless the engine finds what the reference matcher does."""
    engine = Engine(text_of(shape.spec), 0)
    results = engine.push([as_event(row) for row in rows]) + engine.finish()
    expected = matches_of(shape.spec, [mapping_of(row) for row in rows])
    if wrong := [line for line in compare(shape.spec, expected, results) if "was due" not in line]:
        raise SystemExit(f"{shape.name}: the engine differs from the reference: {wrong[0]}")


def mapping_of(row: Row) -> dict[str, Any]:
    """Return the row as an object of JSON lines."""
    kind, time_ms, location, value, name = row
    return {"type": kind, "id": name, "location": location, "timestamp": time_ms, "value": value}


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """Return what the work gives, and its seconds of CPU."""
    gc.collect()
    gc.freeze()
    began = process_time()
    count = work()
    seconds = process_time() - began
    gc.unfreeze()
    return count, seconds


def of_events(text: str, rows: Iterable[Row], lateness_ms: int) -> tuple[int, float]:
    """Push events that were made before; the results and the seconds."""
    events = [as_event(row) for row in rows]
    engine = Engine(text, lateness_ms)

    def work() -> int:
        count = 0
        for start in range(0, len(events), BATCH):
            count += len(engine.push(events[start : start + BATCH]))
        return count + len(engine.finish())

    return timed(work)


def of_json(text: str, lines: Sequence[bytes]) -> tuple[int, float]:
    """Decode lines of JSON, match them and make results, as a replay does."""
    pipeline = Engine(text, 0)._pipeline  # noqa: SLF001

    def work() -> int:
        count = 0
        for start in range(0, len(lines), BATCH):
            decoded = pipeline.intake.decode_lines(lines[start : start + BATCH])
            count += len(told(pipeline.admit(decoded.events, decoded.by_class)))
        return count + len(told(pipeline.finish()))

    return timed(work)


def calibration(rows: Sequence[Row]) -> int:
    """Count readings by type and place: what a plain loop over the rows costs."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row[0], row[2]
        counts[key] = counts.get(key, 0) + 1
    return len(counts)


def measured(shape: Shape, rows: Sequence[Row], late: Sequence[Row], times: int) -> Rates:
    """Measure one shape in turns, so often; the medians."""
    text = text_of(shape.spec)
    lines = [msgspec.json.encode(mapping_of(row)) for row in rows]
    check(shape, rows[:CHECKED])
    columns: list[list[float]] = [[], [], [], [], []]
    for _ in range(times):
        results, seconds = of_events(text, rows, 0)
        if results < len(rows) / 1_000:
            raise SystemExit(f"{shape.name}: {results} results of {len(rows)} events are too few")
        weight = len(rows) + RESULT_WEIGHT * results
        columns[0].append(weight / seconds / 1e6)
        for column, (others, seconds) in zip(
            columns[1:3], (of_events(text, late, LATENESS_MS), of_json(text, lines)), strict=True
        ):
            if others != results:
                raise SystemExit(f"{shape.name}: {others} results where there were {results}")
            column.append(weight / seconds / 1e6)
        if loop := LOOPS.get(shape.name):
            own, seconds = timed(lambda: loop(rows, shape.spec))
            if own != results:
                raise SystemExit(f"{shape.name}: the loop has {own} results, of {results}")
            columns[3].append(weight / seconds / 1e6)
        _, seconds = timed(lambda: calibration(rows))
        columns[4].append(len(rows) / seconds / 1e6)
    rates = [median(column) if column else None for column in columns]
    return Rates(results, *rates)  # type: ignore[arg-type]


def tables(options: Options) -> tuple[list[Table], list[Goal]]:
    """Measure all shapes, the slowest first."""
    rows = workload(10_000 if options.quick else 50_000)
    late = delayed(rows)
    found = {
        shape.name: measured(shape, rows, late, options.times(1)) for shape in Drawing().shapes()
    }
    ranked = sorted(found.items(), key=lambda item: item[1].in_order)
    columns = ["shape", "results", "in order", "2 s late", "from JSON", "loop", "calibration"]
    lines = [
        [
            name,
            f"{rates.results:,}",
            *(
                "" if rate is None else f"{rate:.2f}"
                for rate in (rates.in_order, rates.late, rates.from_json, rates.loop)
            ),
            f"{rates.calibration:.2f}",
        ]
        for name, rates in ranked
    ]
    in_order = [rates.in_order for rates in found.values()]
    disordered = [rates.late for rates in found.values()]
    from_json = [rates.from_json for rates in found.values()]
    summary = [
        [name, f"{median(column):.2f}", f"{min(column):.2f}"]
        for name, column in (
            ("in order", in_order),
            ("2 s late", disordered),
            ("from JSON", from_json),
        )
    ]
    unit = "million a second of CPU, events + 10 × results"
    return [
        Table(
            f"{len(found)} drawn shapes, {len(rows):,} events: {unit}",
            ["", "median", "worst"],
            summary,
        ),
        Table(f"Each drawn shape, the slowest first: {unit}", columns, lines),
    ], [
        _goal("median of the drawn shapes in order", MEDIAN_LEAST, median(in_order)),
        _goal("worst of the drawn shapes in order", WORST_LEAST, min(in_order)),
        _goal("median of the drawn shapes, 2 s late", MEDIAN_LEAST / 2, median(disordered)),
        _goal("worst of the drawn shapes, 2 s late", WORST_LEAST / 2, min(disordered)),
        _goal("median of the drawn shapes from JSON bytes", JSON_LEAST, median(from_json)),
    ]


def report(options: Options) -> Report:
    """Return the drawn shapes alone."""
    return Report("Drawn shapes", *tables(options))


def _goal(text: str, least: float, value: float) -> Goal:
    return Goal(text, least, [value], " M/s", at_least=True)


# --- loops for some of them -------------------------------------------------------------------

Own = Callable[[Sequence[Row], s.Spec], int]


def _first_type(spec: s.Spec) -> str:
    return s.atoms_of(spec.subscriptions[0].case.pattern)[0].type


def loop_or(rows: Sequence[Row], spec: s.Spec) -> int:
    """One or the other."""
    kind = _first_type(spec)
    return len(
        [(row,) for row in rows if row[0] == kind or (row[0] == "Temperature" and row[3] > 28.0)]
    )


def _after(low_ms: int, high_ms: int) -> Own:
    def loop(rows: Sequence[Row], spec: s.Spec) -> int:
        """All earlier ones of one type at the place, from so long to so long before."""
        kind, results = _first_type(spec), []
        held: dict[str, deque[Row]] = {}
        for row in rows:
            if row[0] == kind:
                held.setdefault(row[2], deque()).append(row)
            elif row[0] == "Temperature" and row[3] > 24.0:
                earlier = held.get(row[2])
                if earlier:
                    while earlier and earlier[0][1] < row[1] - high_ms:
                        earlier.popleft()
                    results += [(one, row) for one in earlier if one[1] <= row[1] - low_ms]
        return len(results)

    return loop


def _near(reach_ms: int) -> Own:
    def loop(rows: Sequence[Row], spec: s.Spec) -> int:
        """Both types of the place, so near each other."""
        kind, results = _first_type(spec), []
        held: dict[str, tuple[deque[Row], deque[Row]]] = {}
        for row in rows:
            if row[0] == kind:
                side = 0
            elif row[0] == "Temperature" and row[3] > 24.0:
                side = 1
            else:
                continue
            both = held.get(row[2])
            if both is None:
                both = held[row[2]] = (deque(), deque())
            others = both[1 - side]
            while others and others[0][1] < row[1] - reach_ms:
                others.popleft()
            results += [(row, other) for other in others]
            both[side].append(row)
        return len(results)

    return loop


def loop_where(rows: Sequence[Row], spec: s.Spec) -> int:  # noqa: ARG001
    """Pairs of temperatures that rise, at one place within 20 s."""
    results = []
    held: dict[str, deque[Row]] = {}
    for row in rows:
        if row[0] == "Temperature" and row[3] > 24.0:
            earlier = held.setdefault(row[2], deque())
            while earlier and earlier[0][1] < row[1] - 20_000:
                earlier.popleft()
            results += [(one, row) for one in earlier if row[3] > one[3]]
            earlier.append(row)
    return len(results)


LOOPS: dict[str, Own] = {
    "or": loop_or,
    "then[unrestricted]": _after(1, 60_000),
    "then[1 s..30 s]": _after(1_000, 30_000),
    "and[unrestricted]": _near(20_000),
    "and[..10 s]": _near(10_000),
    "where": loop_where,
}


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
