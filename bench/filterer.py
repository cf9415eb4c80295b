"""What filtering costs as contents grow from ten to a hundred thousand.

Owns the loads and the table. Must not know tasks or brokers. Invariant: the readings are the same
for all numbers of contents; an event that nobody wants is measured apart from those that match.

    python -m bench.filterer [--quick] [--json]
"""

import random
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

from bench.report import Options, Report, Table, run
from broker.engine.event.event import Event, event_class
from broker.engine.filter.filterer import Filterer
from language.tree import Comparison, Constant, Expression, Name

ATTRIBUTES = [f"x{number}" for number in range(10)]
Reading = event_class("Reading", dict.fromkeys(ATTRIBUTES, "float"))
LOCATIONS = 100
Make = Callable[[random.Random], tuple[Expression, ...]]


def ranges(seeded: random.Random) -> tuple[Expression, ...]:
    """Ranges over three to five of ten attributes, each a tenth to a half of the values."""
    found = []
    for name in seeded.sample(ATTRIBUTES, seeded.randint(3, 5)):
        width = seeded.uniform(0.1, 0.5)
        low = seeded.uniform(0.0, 1.0 - width)
        operands = (Constant(low), Name(name), Constant(low + width))
        found.append(Comparison(operands, ("<=", "<")))
    return tuple(found)


def at_a_location(seeded: random.Random) -> tuple[Expression, ...]:
    """The same for one of a hundred locations."""
    place = Constant(f"room-{seeded.randrange(LOCATIONS)}")
    return (Comparison((Name("location"), place), ("=",)), *ranges(seeded))


def thresholds(seeded: random.Random) -> tuple[Expression, ...]:
    """`x0 > c` alone: all contents on one attribute of one type."""
    return (Comparison((Name("x0"), Constant(1.0 + seeded.random())), (">",)),)


LOADS: dict[str, Make] = {
    "type, location, 3-5 ranges": at_a_location,
    "type, 3-5 ranges": ranges,
    "type, one threshold": thresholds,
}


def reading(seeded: random.Random, *, wanted: bool) -> Event:
    """A reading somewhere in all ranges, or just outside of every one."""
    values: dict[str, Any] = {
        f"a_{name}": seeded.random() if wanted else 1.0 for name in ATTRIBUTES
    }
    place = f"room-{seeded.randrange(LOCATIONS)}"
    return Reading(id="r", start=0, end=0, source="s", location=place, **values)


def us_per_event(filterer: Filterer, events: list[Event], batch: int, rounds: int) -> float:
    """Microseconds of CPU for an event, of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        began = process_time()
        for first in range(0, len(events), batch):
            filterer.route(events[first : first + batch])
        best = min(best, process_time() - began)
    return best / len(events) * 1e6


def figures(make: Make, contents: int, events: int, rounds: int) -> dict[str, Any]:
    """One row: costs of installing, of building the index, and of events."""
    seeded = random.Random(contents)
    asked = [make(seeded) for _ in range(contents)]
    some = [reading(seeded, wanted=True) for _ in range(events)]
    none = [reading(seeded, wanted=False) for _ in range(events)]
    filterer = Filterer()
    began = process_time()
    for each in asked:
        filterer.add("Reading", each)
    added = process_time()
    filterer.route(some)
    built = process_time()
    missed = filterer.filtered_count
    filterer.route(none)
    assert filterer.filtered_count - missed == len(none)
    return {
        "contents": contents,
        "nobody_us": round(us_per_event(filterer, none, 100, rounds), 2),
        "nobody_single_us": round(us_per_event(filterer, none, 1, rounds), 2),
        "some_us": round(us_per_event(filterer, some, 100, rounds), 2),
        "matches": round(sum(len(hit) for _, hit in filterer.route(some)) / len(some), 2),
        "add_us": round((added - began) / contents * 1e6, 1),
        "build_s": round(built - added, 3),
    }


def megabytes(make: Make, contents: int) -> float:
    """Memory of the contents with their index, the conditions' trees not counted."""
    seeded = random.Random(contents)
    asked = [make(seeded) for _ in range(contents)]
    everywhere = [reading(seeded, wanted=True) for _ in range(20 * LOCATIONS)]
    tracemalloc.start()
    filterer = Filterer()
    for each in asked:
        filterer.add("Reading", each)
    filterer.route(everywhere)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return round(size / 1e6, 1)


def installs_s(installs: int) -> dict[str, float]:
    """Seconds for installs in a row, and with an event after each."""
    found = {}
    for name, between in (("in a row", False), ("with an event after each", True)):
        seeded = random.Random(1)
        asked = [ranges(seeded) for _ in range(installs)]
        event = reading(seeded, wanted=True)
        filterer = Filterer()
        began = process_time()
        for each in asked:
            filterer.add("Reading", each)
            if between:
                filterer.route([event])
        filterer.route([event])
        found[name] = round(process_time() - began, 3)
    return found


COLUMNS = {
    "contents": "contents",
    "nobody_us": "nobody's, µs",
    "nobody_single_us": "alone, µs",
    "some_us": "matching, µs",
    "matches": "matches",
    "add_us": "add, µs",
    "build_s": "index, s",
}


def report(options: Options) -> Report:
    """Measure, and put it into a table for each load."""
    sizes = [10, 100, 1_000] if options.quick else [10, 100, 1_000, 10_000, 100_000]
    tables = []
    for name, make in LOADS.items():
        rows = []
        for contents in sizes:
            many = contents > 10_000
            events = 200 if many else 500 if options.quick else 2_000
            found = figures(make, contents, events, 2 if many or options.quick else 5)
            size = f"{megabytes(make, contents)}" if 1_000 <= contents <= 10_000 else "-"
            rows.append([f"{found['contents']:,}", *map(str, list(found.values())[1:]), size])
        tables.append(Table(name, [*COLUMNS.values(), "MB"], rows))
    installs = ", ".join(f"{how} {seconds} s" for how, seconds in installs_s(1_000).items())
    notes = [
        f"1,000 installs: {installs}.",
        "Microseconds of CPU an event, in batches of 100 but for those alone.",
    ]
    return Report("What filtering costs as contents grow", tables, [], notes)


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
