"""What the engine does in a second for six queries, beside a loop written for each query alone.

Owns the workload, the queries and the loops. Must not know brokers or sockets. Invariant: events
are made before the clock starts, every result is counted, and the count is that of the loop.

    python -m bench.engine [--quick] [--json]
"""

import random
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import pairwise
from time import process_time
from typing import Any, NamedTuple

from bench.report import Goal, Options, Report, Table, run
from broker.core.event import Event
from broker.core.intake import IntakeOptions
from headwater.engine import Pipeline
from language import check_text

TYPES = ("Temperature", "Motion", "Door", "Humidity", "Light", "Carbon", "Power")
LOCATIONS = 50
STEP_MS = 20  # on average: 50 events a second
LATENESS_MS = 2_000
BATCH = 1_000
SUBSCRIPTIONS = 1_000
DECLARED = "\n".join(f"event {name}(value: float)" for name in TYPES) + "\n"


class Row(NamedTuple):
    """An event as the loops see it."""

    type: int
    time: int
    location: int
    value: float


def workload(count: int) -> list[Row]:
    """Events of seven types at fifty locations, each later than the one before."""
    seeded = random.Random(2026)
    time_ms = 1_700_000_000_000
    rows = []
    for _ in range(count):
        time_ms += seeded.randint(1, 2 * STEP_MS - 1)
        value = round(seeded.uniform(8.0, 32.0), 2)
        rows.append(Row(seeded.randrange(len(TYPES)), time_ms, seeded.randrange(LOCATIONS), value))
    return rows


# --- the queries ------------------------------------------------------------------------------


def _ranges() -> list[tuple[int, int, float, float]]:
    """The subscriptions of the last query: type, location, least and greatest value."""
    seeded = random.Random(7)
    found = []
    for _ in range(SUBSCRIPTIONS):
        low = round(seeded.uniform(8.0, 28.0), 1)
        place = (seeded.randrange(len(TYPES)), seeded.randrange(LOCATIONS))
        found.append((*place, low, round(low + seeded.uniform(0.5, 6.0), 1)))
    return found


RANGES = _ranges()
HEAD = "subscription S from bench to log\n"
TEXTS = {
    "filter": HEAD + "detect Temperature(20 < value < 25)",
    "average of 5 min": (
        "define Mean(mean) aggr every 5 mins\n  detect Temperature\n"
        f"  assign mean = Avg(Temperature.value)\n  group by location\n{HEAD}detect Mean"
    ),
    "sequence with a list": (
        HEAD + "detect Motion then Door+ then Temperature(value > 30) within 60 s\n"
        "group by location"
    ),
    "sequence, first": (
        HEAD + "detect[first] Motion then Door then Temperature(value > 30) within 60 s\n"
        "group by location"
    ),
    "three in any order": (
        HEAD + "detect Humidity and Light and Carbon within 10 s\ngroup by location"
    ),
    "1,000 subscriptions": "\n".join(
        f"subscription S{number} from bench to log\n"
        f'detect {TYPES[kind]}(location = "room-{place}", {low} <= value <= {high})'
        for number, (kind, place, low, high) in enumerate(RANGES)
    ),
}


# --- the loops --------------------------------------------------------------------------------


def loop_filter(rows: list[Row]) -> int:
    """One comparison."""
    return sum([1 for kind, _, _, value in rows if kind == 0 and 20 < value < 25])


def loop_average(rows: list[Row]) -> int:
    """Sums of the window that is open, by location."""
    results, window = 0, -1
    sums: dict[int, list[float]] = {}
    for kind, time_ms, location, value in rows:
        if kind:
            continue
        if time_ms // 300_000 != window:
            results += len([total / count for total, count in sums.values()])
            window, sums = time_ms // 300_000, {}
        entry = sums.get(location)
        if entry is None:
            sums[location] = [value, 1]
        else:
            entry[0] += value
            entry[1] += 1
    return results + len(sums)


def loop_list(rows: list[Row]) -> int:
    """Motions and doors of the last minute, by location; a pair with a door between is a result."""
    results = 0
    motions: dict[int, deque[int]] = defaultdict(deque)
    doors: dict[int, deque[int]] = defaultdict(deque)
    for kind, time_ms, location, value in rows:
        if kind == 1:
            motions[location].append(time_ms)
        elif kind == 2:
            doors[location].append(time_ms)
        elif kind == 0 and value > 30:
            for held in (motions[location], doors[location]):
                while held and held[0] < time_ms - 60_000:
                    held.popleft()
            last = doors[location][-1] if doors[location] else None
            if last is not None:
                results += sum([1 for motion in motions[location] if motion < last])
    return results


def loop_first(rows: list[Row]) -> int:
    """One run at a time, by location; when its minute has passed the next motion begins one."""
    results = 0
    states: dict[int, list[Any]] = {}
    for kind, time_ms, location, value in rows:
        if kind > 2 or (kind == 0 and value <= 30):
            continue
        state = states.get(location)
        if state is None:
            state = states[location] = [deque(), deque()]
        motions, doors = state
        while motions and motions[0] < time_ms - 60_000:
            motions.popleft()
        if kind == 1:
            motions.append(time_ms)
        elif kind == 2:
            if motions:
                doors.append(time_ms)
        elif motions:
            while doors and doors[0] < motions[0]:
                doors.popleft()
            if doors:
                results += 1
                motions.clear()
                doors.clear()
    return results


def loop_any_order(rows: list[Row]) -> int:
    """The last ten seconds of three types, by location; each triple counted at its last event."""
    results = 0
    held: dict[int, tuple[deque[int], ...]] = defaultdict(lambda: (deque(), deque(), deque()))
    for kind, time_ms, location, _ in rows:
        if not 3 <= kind <= 5:
            continue
        three = held[location]
        for one in three:
            while one and one[0] < time_ms - 10_000:
                one.popleft()
        results += len(three[(kind - 2) % 3]) * len(three[(kind - 1) % 3])
        three[kind - 3].append(time_ms)
    return results


def loop_subscriptions(rows: list[Row]) -> int:
    """Lists by type and location of those whose ranges hold in each interval between ends."""
    edges: dict[tuple[int, int], list[float]] = {}
    cells: dict[tuple[int, int], list[int]] = {}
    for place in {one[:2] for one in RANGES}:
        own = [(low, high) for *key, low, high in RANGES if tuple(key) == place]
        ends = sorted({end for one in own for end in one})
        middles = [(a + b) / 2 for a, b in pairwise(ends)]
        edges[place] = ends
        cells[place] = [sum([low <= at <= high for low, high in own]) for at in middles]
        cells[place] += [sum([low <= at <= high for low, high in own]) for at in ends]
    results = 0
    for kind, _, location, value in rows:
        ends = edges.get((kind, location), [])
        at = bisect_left(ends, value)
        if at < len(ends) and ends[at] == value:
            results += cells[kind, location][len(ends) - 1 + at]
        elif 0 < at < len(ends):
            results += cells[kind, location][bisect_right(ends, value) - 1]
    return results


LOOPS: dict[str, Callable[[list[Row]], int]] = {
    "filter": loop_filter,
    "average of 5 min": loop_average,
    "sequence with a list": loop_list,
    "sequence, first": loop_first,
    "three in any order": loop_any_order,
    "1,000 subscriptions": loop_subscriptions,
}


# --- measuring --------------------------------------------------------------------------------


def events_of(pipeline: Pipeline, rows: list[Row]) -> list[Event]:
    """The rows as the engine's events, made before the clock starts."""
    made: list[Event] = []
    for start in range(0, len(rows), 10_000):
        mappings = [
            {
                "type": TYPES[row.type],
                "id": str(start + number),
                "source": f"sensor-{row.location}",
                "location": f"room-{row.location}",
                "timestamp": row.time,
                "value": row.value,
            }
            for number, row in enumerate(rows[start : start + 10_000])
        ]
        made += pipeline.intake.from_mappings(mappings).events
    return made


def delayed(rows: list[Row]) -> list[Row]:
    """The rows as they would arrive, each up to two seconds late."""
    seeded = random.Random(3)
    return sorted(rows, key=lambda row: row.time + seeded.uniform(0, LATENESS_MS))


def engine_s(text: str, rows: list[Row], lateness_ms: int) -> tuple[float, int]:
    """Seconds of CPU from events to results, and how many results there were."""
    options = IntakeOptions(lateness_ms=lateness_ms)
    pipeline = Pipeline(check_text(DECLARED + text).demand(), options)
    events = events_of(pipeline, rows)
    results = 0
    began = process_time()
    for start in range(0, len(events), BATCH):
        results += len(pipeline.admit(events[start : start + BATCH]))
    results += len(pipeline.finish())
    return process_time() - began, results


def loop_s(loop: Callable[[list[Row]], int], rows: list[Row]) -> tuple[float, int]:
    """The same of a loop: the best of three."""
    taken = []
    results = 0
    for _ in range(3):
        began = process_time()
        results = loop(rows)
        taken.append(process_time() - began)
    return min(taken), results


def report(options: Options) -> Report:
    """Measure each query in order and late, and hold the counts against the loop's."""
    rows = workload(100_000 if options.quick else 1_000_000)
    late = delayed(rows)
    lines, in_order, disordered = [], [], []
    for name, text in TEXTS.items():
        plain_s, wanted = loop_s(LOOPS[name], rows)
        ordered_s, found = engine_s(text, rows, 0)
        late_s, found_late = engine_s(text, late, LATENESS_MS)
        if not found == found_late == wanted:
            raise SystemExit(f"{name}: {found} and {found_late} results, the loop has {wanted}")
        in_order.append(ordered_s / plain_s)
        disordered.append(late_s / plain_s)
        rates = [f"{len(rows) / seconds / 1e3:,.0f}" for seconds in (plain_s, ordered_s, late_s)]
        lines.append([name, f"{wanted:,}", *rates, f"{in_order[-1]:.2f}", f"{disordered[-1]:.2f}"])
    columns = [
        "query",
        "results",
        "loop, k/s",
        "in order, k/s",
        "2 s late, k/s",
        "ratio",
        "ratio, late",
    ]
    return Report(
        "Six queries through the engine",
        [Table(f"{len(rows):,} events, thousands a second of CPU", columns, lines)],
        [
            Goal("CPU per event in order beside a loop for the query alone", 2.0, in_order, " ×"),
            Goal("CPU per event with 2 s of disorder beside that loop", 4.0, disordered, " ×"),
        ],
        ["Every result is counted, and the counts are those of the loops."],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
