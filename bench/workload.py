"""A million readings, the patterns asked of them, and a loop written for each pattern alone.

Owns the readings, the specifications and the loops that are the yardstick. Must not know how the
engine runs or what is measured. Invariant: a loop gives each result as a tuple of what it is made
of, so that it does what the engine has to do and no more.
"""

import random
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any

from headwater import Event

# Type, time in ms, location, value, id.
Row = tuple[str, int, str, float, str]
Loop = Callable[[Sequence[Row]], list[tuple[Any, ...]]]

# Each type's share of the events, in thousandths.
SHARES = {
    "Temperature": 285,
    "Motion": 12,
    "Door": 41,
    "Humidity": 20,
    "Light": 20,
    "Carbon": 20,
    "Power": 602,
}
TYPES = tuple(SHARES)
LOCATIONS = 50
STEP_MS = 20  # on average: 50 events a second
LEAST, GREATEST = 8.0, 32.0
LATENESS_MS = 2_000
SUBSCRIPTIONS = 1_000
DECLARED = "\n".join(f"event {name}(value: float)" for name in TYPES) + "\n"
HEAD = "subscription S seq 1 from bench to log\n"


def workload(count: int) -> list[Row]:
    """Readings of seven types at fifty locations, each later than the one before.

    Locations and ids are texts of their own, as they are when a reading has just been decoded.
    """
    seeded = random.Random(2026)
    kinds = seeded.choices(TYPES, [SHARES[name] for name in TYPES], k=count)
    time_ms = 1_700_000_000_000
    rows = []
    for number, kind in enumerate(kinds):
        time_ms += seeded.randint(1, 2 * STEP_MS - 1)
        value = round(seeded.uniform(LEAST, GREATEST), 2)
        rows.append((kind, time_ms, f"room-{seeded.randrange(LOCATIONS)}", value, f"e{number}"))
    return rows


def delayed(rows: Sequence[Row]) -> list[Row]:
    """The rows as they would arrive, each up to two seconds late."""
    seeded = random.Random(3)
    arrivals = [(row[1] + seeded.uniform(0, LATENESS_MS), row[4], row) for row in rows]
    return [row for _, _, row in sorted(arrivals)]


def as_event(row: Row) -> Event:
    """The row as a program hands it to the engine."""
    kind, time_ms, location, value, name = row
    return Event(kind, id=name, location=location, timestamp=time_ms, value=value)


def ranges(count: int) -> list[tuple[str, str, float, float]]:
    """Type, location, least and greatest value; an event is in about nine tenths of one."""
    seeded = random.Random(7)
    found = []
    for _ in range(count):
        low = round(seeded.uniform(LEAST, 24.0), 1)
        place = (seeded.choice(TYPES), f"room-{seeded.randrange(LOCATIONS)}")
        found.append((*place, low, round(low + seeded.uniform(6.0, 9.4), 1)))
    return found


RANGES = ranges(SUBSCRIPTIONS)

# --- the patterns -----------------------------------------------------------------------------

TEXTS = {
    "filter": HEAD + "detect Temperature(20 < value < 25)",
    "average of 5 min": (
        "define Mean(place, mean) aggr every 5 mins\n  detect Temperature\n"
        "  assign place = group.location, mean = Avg(Temperature.value)\n"
        f"  group by location\n{HEAD}detect Mean"
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
        f"subscription S{number} seq 1 from bench to log\n"
        f'detect {kind}(location = "{place}", {low} <= value <= {high})'
        for number, (kind, place, low, high) in enumerate(RANGES)
    ),
}
# Apart from the six: nearly as many results as events.
HEAVY = "pairs, many results"
HEAVY_TEXT = (
    HEAD + "detect Temperature(value > 20) and Power(value > 20) within 10 s\ngroup by location"
)

# --- the loops --------------------------------------------------------------------------------


def loop_filter(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Two comparisons."""
    return [(row,) for row in rows if row[0] == "Temperature" and 20 < row[3] < 25]


def loop_average(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Sums of the window that is open, by location."""
    results: list[tuple[Any, ...]] = []
    window = -1
    sums: dict[str, list[float]] = {}
    for kind, time_ms, location, value, _ in rows:
        if kind != "Temperature":
            continue
        if time_ms // 300_000 != window:
            results += [(window, place, total / count) for place, (total, count) in sums.items()]
            window, sums = time_ms // 300_000, {}
        entry = sums.get(location)
        if entry is None:
            sums[location] = [value, 1]
        else:
            entry[0] += value
            entry[1] += 1
    return results + [(window, place, total / count) for place, (total, count) in sums.items()]


def loop_list(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Motions and doors of the last minute, by location; the doors after a motion are its list."""
    results: list[tuple[Any, ...]] = []
    motions: dict[str, deque[Row]] = defaultdict(deque)
    doors: dict[str, deque[Row]] = defaultdict(deque)
    for row in rows:
        kind, time_ms, location, value, _ = row
        if kind == "Motion":
            motions[location].append(row)
        elif kind == "Door":
            doors[location].append(row)
        elif kind == "Temperature" and value > 30:
            near_doors, near_motions = doors[location], motions[location]
            for held in (near_doors, near_motions):
                while held and held[0][1] < time_ms - 60_000:
                    held.popleft()
            for motion in near_motions:
                between = [door for door in near_doors if door[1] > motion[1]]
                if between:
                    results.append((motion, between, row))
    return results


def loop_first(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """One run at a time, by location; when its minute has passed the next motion begins one."""
    results: list[tuple[Any, ...]] = []
    states: dict[str, tuple[deque[Row], deque[Row]]] = defaultdict(lambda: (deque(), deque()))
    for row in rows:
        kind, time_ms, location, value, _ = row
        if kind == "Motion":
            states[location][0].append(row)
        elif kind == "Door":
            states[location][1].append(row)
        elif kind == "Temperature" and value > 30:
            motions, doors = states[location]
            while motions and motions[0][1] < time_ms - 60_000:
                motions.popleft()
            if not motions:
                doors.clear()
                continue
            begin_ms = motions[0][1]
            while doors and doors[0][1] < begin_ms:
                doors.popleft()
            if doors:
                results.append((motions[0], doors[0], row))
                motions.clear()
                doors.clear()
    return results


def loop_any_order(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The last ten seconds of three types, by location; each triple at its last event."""
    results: list[tuple[Any, ...]] = []
    places = {"Humidity": 0, "Light": 1, "Carbon": 2}
    held: dict[str, tuple[deque[Row], ...]] = defaultdict(lambda: (deque(), deque(), deque()))
    for row in rows:
        place = places.get(row[0])
        if place is None:
            continue
        three = held[row[2]]
        least_ms = row[1] - 10_000
        for one in three:
            while one and one[0][1] < least_ms:
                one.popleft()
        three[place].append(row)
        others = three[place - 2], three[place - 1]
        if others[0] and others[1]:
            results += [(row, a, b) for a in others[0] for b in others[1]]
    return results


Cells = dict[tuple[str, str], tuple[list[float], list[list[int]]]]


def cells_of(wanted: Sequence[tuple[str, str, float, float]]) -> Cells:
    """By type and location: where the subscriptions in force change, and which are from there.

    Bounds have one decimal and values two, so that it is known what comes after a bound.
    """
    by_place: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for number, (kind, location, low, high) in enumerate(wanted):
        by_place.setdefault((kind, location), []).append((number, low, high))
    found = {}
    for place, own in by_place.items():
        edges = sorted({edge for _, low, high in own for edge in (low, high + 0.005)})
        holds = [[number for number, low, high in own if low <= at <= high] for at in edges]
        found[place] = (edges, [[], *holds])
    return found


def loop_subscriptions(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The subscriptions of the cell in which the value lies."""
    results: list[tuple[Any, ...]] = []
    cells = cells_of(RANGES)
    for row in rows:
        found = cells.get((row[0], row[2]))
        if found is not None:
            edges, holds = found
            results += [(number, row) for number in holds[bisect_right(edges, row[3])]]
    return results


def loop_pairs(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The last ten seconds of two types, by location."""
    results: list[tuple[Any, ...]] = []
    held: dict[str, tuple[deque[Row], deque[Row]]] = defaultdict(lambda: (deque(), deque()))
    for row in rows:
        kind, time_ms, location, value, _ = row
        if value <= 20 or kind not in {"Temperature", "Power"}:
            continue
        own, others = held[location]
        if kind == "Power":
            own, others = others, own
        while others and others[0][1] < time_ms - 10_000:
            others.popleft()
        own.append(row)
        results += [(row, other) for other in others]
    return results


LOOPS: dict[str, Loop] = {
    "filter": loop_filter,
    "average of 5 min": loop_average,
    "sequence with a list": loop_list,
    "sequence, first": loop_first,
    "three in any order": loop_any_order,
    "1,000 subscriptions": loop_subscriptions,
    HEAVY: loop_pairs,
}
