"""What thousands of subscriptions to ranges cost: installing them, memory, events a second.

Owns the subscriptions and the readings. Must not know the index behind them. Invariant: every
size is measured in a process of its own, through the engine's public face, and its results are
those of a search through all subscriptions.

    python -m bench.ranges [--quick] [--repeats N] [--json]
"""

import gc
import random
import sys
from collections import Counter
from time import process_time
from typing import NamedTuple

from msgspec import json

from bench.report import Goal, Options, Report, Table, run
from bench.resident import alone, resident_mb
from broker.core.broker import Broker, BrokerOptions
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from headwater import Engine, Event

TYPES = [f"Kind{number}" for number in range(10)]
LOCATIONS = 100
ATTRIBUTES = [f"x{number}" for number in range(8)]
DECLARED = "\n".join(
    f"event {name}({', '.join(f'{one}: float' for one in ATTRIBUTES)})" for name in TYPES
)
SIZES = (1_000, 10_000, 100_000)
EVENTS = 20_000
TEXT_SUBSCRIPTIONS = 1_000  # a text may take a second to install
WARMING = 10_000
CHECKED = 500  # of them, against all subscriptions
BATCH = 1_000
LATENESS_MS = 60_000  # a batch holds one type after the other
INSTALL_S_MAX, INSTALL_MB_MAX = 2.0, 15.0


class Asked(NamedTuple):
    """One subscription: a type, a location, and for three to five attributes a range."""

    kind: str
    place: str
    ranges: tuple[tuple[str, float, float], ...]


def subscriptions(count: int) -> list[Asked]:
    """Each range is a tenth to a half of the values."""
    seeded = random.Random(count)
    found = []
    for _ in range(count):
        ranges = []
        for name in seeded.sample(ATTRIBUTES, seeded.randint(3, 5)):
            width = seeded.uniform(10.0, 50.0)
            low = round(seeded.uniform(0.0, 100.0 - width), 1)
            ranges.append((name, low, round(low + width, 1)))
        place = f"room-{seeded.randrange(LOCATIONS)}"
        found.append(Asked(seeded.choice(TYPES), place, tuple(ranges)))
    return found


def text_of(asked: list[Asked], start: int = 0) -> str:
    """The specification of those from `start` that fit into one text."""
    lines = [DECLARED]
    some = asked[start : start + TEXT_SUBSCRIPTIONS]
    for number, (kind, place, ranges) in enumerate(some, start):
        wanted = ", ".join(f"{low} <= {name} <= {high}" for name, low, high in ranges)
        lines.append(f"subscription S{number} seq 1 from bench to log")
        lines.append(f'detect {kind}(location = "{place}", {wanted})')
    return "\n".join(lines)


def readings(count: int) -> list[Event]:
    """Readings somewhere in all values."""
    seeded = random.Random(11)
    found = []
    for number in range(count):
        values = {name: round(seeded.uniform(0.0, 100.0), 2) for name in ATTRIBUTES}
        place = f"room-{seeded.randrange(LOCATIONS)}"
        when = 1_700_000_000_000 + 20 * number
        kind = seeded.choice(TYPES)
        found.append(
            Event(kind, id=f"e{number}", location=place, timestamp=when, attributes=values)
        )
    return found


def search(asked: list[Asked], events: list[Event]) -> Counter[str]:
    """How many events each subscription holds of: each is tried with each."""
    found: Counter[str] = Counter()
    for fields in [event.to_dict() for event in events]:
        for number, (kind, place, ranges) in enumerate(asked):
            if (
                kind == fields["type"]
                and place == fields["location"]
                and all(low <= fields[name] <= high for name, low, high in ranges)
            ):
                found[f"S{number}"] += 1
    return found


def payloads(events: list[Event]) -> list[EventsReceived]:
    """The events as they come through a broker's face: by type, a batch of JSON for each."""
    found = []
    for start in range(0, len(events), BATCH):
        by_type: dict[str, list[dict[str, object]]] = {}
        for event in events[start : start + BATCH]:
            by_type.setdefault(event.type, []).append(event.to_dict())
        batches = [Payload(kind, "bench", json.encode(own)) for kind, own in by_type.items()]
        found.append(EventsReceived(tuple(batches)))
    return found


def engine_installs(count: int) -> tuple[float, float]:
    """Seconds of CPU and megabytes to install one text with so many into an engine."""
    Engine(text_of(subscriptions(1)))  # what any specification needs is there
    text = text_of(subscriptions(count))
    first = readings(1)
    before_mb = resident_mb()
    began = process_time()
    engine = Engine(text)
    engine.push(first)
    return process_time() - began, resident_mb() - before_mb


def measured(count: int, events: int) -> dict[str, float]:
    """Of so many subscriptions in a broker's core: seconds and MB to install, µs an event."""
    Engine(text_of(subscriptions(1)))
    asked = subscriptions(count)
    texts = [text_of(asked, start) for start in range(0, count, TEXT_SUBSCRIPTIONS)]
    made = readings(CHECKED + WARMING + events)
    first, *rest = payloads(made[:CHECKED]) + payloads(made[CHECKED:])
    warming, rest = rest[: WARMING // BATCH], rest[WARMING // BATCH :]
    before_mb = resident_mb()
    core = Broker(BrokerOptions(lateness_ms=LATENESS_MS))
    now = 1_800_000_000_000
    began = process_time()
    for number, text in enumerate(texts):
        core.handle(SpecificationSubmitted("bench", str(number), text), now)
    installed_s = process_time() - began
    core.handle(first, now)
    reported = Counter({one.name: one.results for one in core.subscriptions if one.results})
    if len(core.subscriptions) != count or reported != search(asked, made[:CHECKED]):
        raise RuntimeError(f"{count} subscriptions: not the results of a search")
    began = process_time()
    for batch in warming:
        core.handle(batch, now)
    warming_s = process_time() - began
    installed_mb = resident_mb() - before_mb
    warmed = sum(one.results for one in core.subscriptions)
    gc.freeze()
    began = process_time()
    for batch in rest:
        core.handle(batch, now)
    taken_s = process_time() - began
    results = sum(one.results for one in core.subscriptions) - warmed
    return {
        "install_s": installed_s,
        "install_mb": installed_mb,
        "first_us": warming_s / WARMING * 1e6,
        "us": taken_s / events * 1e6,
        "results": results / events,
    }


def report(options: Options) -> Report:
    """One row for each number of subscriptions."""
    sizes = SIZES[:1] if options.quick else SIZES
    rows = []
    for count in sizes:
        found = alone(measured, count, EVENTS)
        rows.append(
            [
                f"{count:,}",
                f"{found['install_s']:.2f}",
                f"{found['install_mb']:.1f}",
                f"{1e3 * found['install_mb'] / count:.1f}",
                f"{found['first_us']:.1f}",
                f"{found['us']:.1f}",
                f"{1e6 / found['us']:,.0f}",
                f"{found['results']:.3f}",
            ]
        )
    installs = [alone(engine_installs, SIZES[0]) for _ in range(options.times(3))]
    seconds, megabytes = (
        [round(value, 2) for value in column] for column in zip(*installs, strict=True)
    )
    return Report(
        "Subscriptions to ranges",
        [
            Table(
                "in a broker's core: a type, a location, ranges of 3 to 5 of 8 attributes",
                [
                    "subscriptions",
                    "install, s",
                    "MB",
                    "kB each",
                    "first, µs",
                    "then, µs",
                    "events/s",
                    "results",
                ],
                rows,
            )
        ],
        [
            Goal("installing 1,000 in an engine", INSTALL_S_MAX, seconds, " s"),
            Goal("memory of these 1,000", INSTALL_MB_MAX, megabytes, " MB"),
        ],
        [
            f"Installing texts of {TEXT_SUBSCRIPTIONS:,}: read, checked, made to run; CPU seconds.",
            f"Memory is what the process has grown by when the first {WARMING:,} events have come.",
            "The first events of a type at a location build the index for it; µs of CPU an event.",
            "Events come as batches of JSON; decoding and the making of results are in the figure.",
            f"Results an event; of {CHECKED} events they are compared with a search through all.",
        ],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
