"""What routing an event costs as subscriptions grow from ten to ten thousand.

Owns the loads and the table. Must not know links or how events are encoded. Invariant: events are
the same for all numbers of subscriptions; what nobody wants, what some want and what many want are
measured apart.

    python -m bench.router [--quick] [--json]
"""

import random
import sys
from time import process_time
from typing import Any

from bench.report import Goal, Options, Report, Table, run
from broker.engine.event.event import Event, MetricPosition, event_class
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import (
    Advertisement,
    Key,
    Operator,
    Range,
    Region,
)
from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD, Strategy
from broker.network.routing.router import Router

TYPES = [f"T{number}" for number in range(5)]
CLASSES = {name: event_class(name, {"value": "float"}) for name in TYPES}
STATIONS = 20
DELTA_T_MS = 180_000
PERIOD_MS = 120_000
# Compared box by box, ten thousand operators take minutes to install; routing is what is measured.
PLAIN = Strategy("plain")
FLAT_MAX = 2.5  # ten times as many subscriptions may cost an unwanted event so much more


def place(station: int) -> MetricPosition:
    """Where a station stands: on a line, a kilometre from the next."""
    return MetricPosition(1000.0 * station, 0.0)


def subscription(seeded: random.Random, name: str) -> Operator:
    """Three to five types at one station, each a fifth to a half of the values around 0.5."""
    station = seeded.randrange(STATIONS)
    x = 1000.0 * station
    region = Region("box", (x - 100, -100.0, x + 100, 100.0), metric=True)
    keys = []
    for kind in sorted(seeded.sample(TYPES, seeded.randint(3, 5))):
        low, high = 0.5 - seeded.uniform(0.1, 0.25), 0.5 + seeded.uniform(0.1, 0.25)
        keys.append(Key(kind, kind, region=region, ranges=(Range("value", low, high),)))
    return Operator(name, tuple(keys), DELTA_T_MS, 500.0, strict=True)


def events(seeded: random.Random, rounds: int, *, wanted: bool) -> list[Event]:
    """Rounds of readings of every type at every station, in or out of all ranges."""
    found = []
    for number in range(rounds):
        for station in range(STATIONS):
            for kind in TYPES:
                value = seeded.random() if wanted else 2.0
                at = number * PERIOD_MS
                found.append(
                    CLASSES[kind](
                        id=f"{number}-{station}-{kind}",
                        source=f"{station}-{kind}",
                        position=place(station),
                        start=at,
                        end=at,
                        a_value=value,
                    )
                )
    return found


def router_with(subscriptions: int, came_from: str, strategy: Strategy) -> tuple[Router, float]:
    """A router with a neighbour, and the milliseconds that installing one subscription took."""
    seeded = random.Random(subscriptions)
    router = Router(["east", "west"], strategy)
    for station in range(STATIONS):
        for kind in TYPES:
            said = Advertisement(f"{station}-{kind}", (kind,), None, place(station))
            router.advertised(LOCAL, said)
    asked = [subscription(seeded, f"s{number}") for number in range(subscriptions)]
    began = process_time()
    for one in asked:
        router.operator_added(came_from, one)
    return router, (process_time() - began) / subscriptions * 1e3


def us_per_event(router: Router, some: list[Event]) -> float:
    """Microseconds of CPU for an event, in batches of one reading of every station."""
    size = STATIONS * len(TYPES)
    began = process_time()
    for first in range(0, len(some), size):
        batch = some[first : first + size]
        router.events(LOCAL, batch)
        router.expire(batch[-1].start - DELTA_T_MS)
    return (process_time() - began) / len(some) * 1e6


def figures(subscriptions: int, rounds: int) -> dict[str, Any]:
    """One row: a neighbour's operators, and as many subscriptions of the broker's own."""
    row: dict[str, Any] = {"subscriptions": subscriptions}
    for name, came_from in (("east", "east"), ("own", LOCAL)):
        router, row[f"{name} install"] = router_with(subscriptions, came_from, PLAIN)
        for wanted in (False, True):
            some = events(random.Random(1), rounds, wanted=wanted)
            us_per_event(router, some[: STATIONS * len(TYPES)])  # builds the index
            router.expire(2**62)
            row[f"{name} {'wanted' if wanted else 'unwanted'}"] = us_per_event(router, some)
            router.expire(2**62)
    return row


def us_among_many_types(operators: int) -> float:
    """The same where each operator joins two of a hundred types: hardly two of one shape."""
    seeded = random.Random(operators)
    kinds = {name: event_class(name, {"value": "float"}) for name in map("U{}".format, range(100))}
    router = Router(["east", "west"], PLAIN)
    for number in range(operators):
        pair = sorted(seeded.sample(sorted(kinds), 2))
        lows = [seeded.uniform(0.0, 0.98) for _ in pair]
        keys = tuple(
            Key(kind, kind, ranges=(Range("value", low, low + 0.02),))
            for kind, low in zip(pair, lows, strict=True)
        )
        router.operator_added("east", Operator(f"s{number}", keys, 1000))
    some = [
        kinds[f"U{seeded.randrange(100)}"](
            id=str(number), start=number * 10, end=number * 10, a_value=seeded.random()
        )
        for number in range(4000)
    ]
    us_per_event(router, some[:2000])
    return us_per_event(router, some[2000:])


def report(options: Options) -> Report:
    """Rows from ten to ten thousand subscriptions."""
    counts = (10, 100, 1000) if options.quick else (10, 100, 1000, 10_000)
    rows = [figures(count, 3 if options.quick else 10) for count in counts]
    table = Table(
        "CPU for an event: five types at twenty stations, joins of three to five",
        [
            "subscriptions",
            "unwanted, µs",
            "for a neighbour, µs",
            "for own users, µs",
            "install, ms",
        ],
        [
            [
                f"{row['subscriptions']:,}",
                f"{row['east unwanted']:.1f}",
                f"{row['east wanted']:.1f}",
                f"{row['own wanted']:.1f}",
                f"{row['east install']:.2f}",
            ]
            for row in rows
        ],
    )
    ratio = rows[-1]["east unwanted"] / rows[-2]["east unwanted"]
    told = f"an unwanted event among {counts[-1]:,} subscriptions, against {counts[-2]:,}"
    goal = Goal(told, FLAT_MAX, [ratio], "×")
    among = ", ".join(f"{us_among_many_types(count):.0f} µs of {count:,}" for count in counts)
    some = 300 if options.quick else 1000
    covering = router_with(some, LOCAL, FILTER_SPLIT_FORWARD)[1]
    notes = [
        (
            "An event is looked up once for each combination of types that is asked for; among ten"
            " subscriptions there are few of the sixteen, among a thousand all."
        ),
        f"Where each joins two of a hundred types, an event costs {among}.",
        f"With exact covering one of the first {some:,} subscriptions takes {covering:.1f} ms.",
    ]
    return Report("What routing an event costs as subscriptions grow", [table], [goal], notes)


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
