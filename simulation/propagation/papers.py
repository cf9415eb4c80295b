"""The settings of seed paper 2, section VI: stations behind gateways, users anywhere, real data.

Owns how the paper's networks and subscriptions are drawn, and the least load that any way of
propagation could do with. Must not know routers. Invariant: a setting, its number of subscriptions
and a seed give one scenario; more subscriptions only add to those of fewer.

What the paper leaves open was chosen so: sensors of a station are nodes of their own next to a
gateway; gateways and relays form a random tree with at most four neighbours among themselves;
ranges reach from the median by two independent offsets, each a Pareto variate times a quarter of
the stream's spread; a subscription has at least four needed events an hour, the paper only says
"a minimum number".
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import NamedTuple

from simulation.propagation.needed import needed
from simulation.propagation.scenario import (
    Reading,
    Scenario,
    Sensor,
    Subscription,
    middle,
    steps_of,
    toward,
)

ATTRIBUTES = (
    "ambient_temperature",
    "surface_temperature",
    "relative_humidity",
    "wind_speed",
    "wind_direction",
)
DELTA_T_S = 180.0
OFFSET_SCALE = 0.25  # of the spread; narrower ranges make multi-join look worse
NEEDED_PER_HOUR = 4
TRIES = 200
SPREADS_PER_QUARTILES = 1.349  # between the quartiles of a normal distribution, in deviations
GATEWAY_LINKS_MAX = 4
SLOW_S = 1800  # of streams that send rarely
SLOW = ATTRIBUTES[:2]


class Setting(NamedTuple):
    """One of the paper's four experiments."""

    name: str
    nodes: int
    stations: int
    attributes: tuple[int, int]  # at least and at most in a subscription
    counts: tuple[int, ...]  # of subscriptions


SETTINGS = (
    Setting("small", 60, 10, (3, 5), (100, 400, 1000)),
    Setting("medium", 100, 10, (5, 5), (100, 400, 900)),
    Setting("large network", 200, 10, (5, 5), (100, 400, 900)),
    Setting("large sources", 200, 20, (5, 5), (100, 400, 900)),
)

Series = dict[tuple[str, str], list[tuple[int, float]]]


def read_series(path: Path, hours: float) -> Series:
    """The readings of stations that measure all attributes: by station and attribute (t in s, v).

    The file is in long form with the columns timestamp_ms, station, attribute and value.
    """
    found: Series = {}
    first: int | None = None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            t = int(row["timestamp_ms"]) // 1000
            first = t if first is None else first
            if t < first + hours * 3600 and row["attribute"] in ATTRIBUTES:
                key = (row["station"], row["attribute"])
                found.setdefault(key, []).append((t, float(row["value"])))
    stations = sorted({station for station, _ in found}, key=lambda name: (len(name), name))
    whole = [each for each in stations if all((each, kind) in found for kind in ATTRIBUTES)]
    return {(each, kind): found[each, kind] for each in whole for kind in ATTRIBUTES}


def scenario_of(
    setting: Setting,
    series: Series,
    count: int,
    seed: int,
    *,
    near: int = 1,
    mixed_rates: bool = False,
) -> Scenario:
    """A scenario with so many subscriptions, each to sensors of `near` stations near each other.

    `mixed_rates`: two of the attributes are sent every half hour. ValueError: too few stations.
    """
    random = Random(seed)
    stations = list(dict.fromkeys(station for station, _ in series))[: setting.stations]
    if len(stations) < setting.stations:
        raise ValueError(f"{setting.name} needs {setting.stations} whole stations")
    edges, gateways = _tree(random, setting, len(stations))
    sensors: dict[str, Sensor] = {}
    node = setting.nodes - len(stations) * len(ATTRIBUTES)
    for place, station in enumerate(stations):
        for kind in ATTRIBUTES:
            name = f"{station}/{kind}"
            sensors[name] = Sensor(name, node, kind, (1000.0 * place, 0.0))
            edges.append((gateways[place], node))
            node += 1
    readings = _readings(series, sensors, mixed_rates=mixed_rates)
    empty = Scenario(
        setting.nodes, tuple(edges), sensors, {}, readings, (), middle(setting.nodes, tuple(edges))
    )
    groups = _groups(empty, gateways, near)
    subscriptions: dict[str, Subscription] = {}
    for number in range(count):
        of = [stations[place] for place in groups[number % len(groups)]]
        name = f"s{number}"
        subscriptions[name] = _subscription(random, name, (setting, of), empty, series)
    steps = steps_of(sensors, subscriptions, [])
    return empty._replace(subscriptions=subscriptions, steps=steps)


def _tree(
    random: Random, setting: Setting, stations: int
) -> tuple[list[tuple[int, int]], list[int]]:
    """The links among gateways and relays, and the gateway of each station."""
    inner = setting.nodes - stations * len(ATTRIBUTES)
    links = [0] * inner
    edges = []
    for node in range(1, inner):
        other = random.choice([one for one in range(node) if links[one] < GATEWAY_LINKS_MAX])
        links[other] += 1
        links[node] += 1
        edges.append((other, node))
    return edges, random.sample(range(inner), stations)


def _readings(
    series: Series, sensors: dict[str, Sensor], *, mixed_rates: bool
) -> tuple[Reading, ...]:
    rows = []
    for (station, kind), some in series.items():
        name = f"{station}/{kind}"
        if name not in sensors:
            continue
        last: int | None = None
        for t, v in some:
            if mixed_rates and kind in SLOW and last is not None and t < last + SLOW_S:
                continue
            last = t
            rows.append((t, name, v))
    rows.sort(key=lambda row: row[:2])
    return tuple(Reading(str(number), name, t, v) for number, (t, name, v) in enumerate(rows))


def _groups(scenario: Scenario, gateways: list[int], near: int) -> list[list[int]]:
    """For each station it and those whose gateways are nearest to its own."""
    found = []
    for place, gateway in enumerate(gateways):
        distances = _distances(scenario, gateway)
        others = sorted(range(len(gateways)), key=lambda one: (distances[gateways[one]], one))
        found.append([place, *(one for one in others if one != place)][:near])
    return found


def _distances(scenario: Scenario, start: int) -> list[int]:
    ways = toward(scenario.neighbours, start)
    found = [0] * scenario.nodes
    for node in range(scenario.nodes):
        at: int | None = node
        while (at := ways[at] if at is not None else None) is not None:
            found[node] += 1
    return found


def _subscription(
    random: Random, name: str, wanted: tuple[Setting, list[str]], empty: Scenario, series: Series
) -> Subscription:
    """One that needs some events; after many tries that fail one that wants all values."""
    setting, stations = wanted
    node = random.randrange(setting.nodes)
    kinds = random.sample(ATTRIBUTES, random.randint(*setting.attributes))
    hours = (empty.readings[-1].t - empty.readings[0].t) / 3600
    one = Subscription(name, node, abstract=False, delta_t=DELTA_T_S, filters={})
    for tried in range(TRIES):
        filters: dict[str, tuple[float | None, float | None]] = {}
        for place, kind in enumerate(sorted(kinds)):
            station = stations[place % len(stations)]
            low, median, high = quantiles([v for _, v in series[station, kind]], n=4)
            spread = (high - low) / SPREADS_PER_QUARTILES * OFFSET_SCALE
            below, above = random.paretovariate(1) * spread, random.paretovariate(1) * spread
            filters[f"{station}/{kind}"] = (median - below, median + above)
        if tried == TRIES - 1:
            filters = dict.fromkeys(filters, (None, None))
        one = one._replace(filters=filters)
        if _events_of(empty, one) >= NEEDED_PER_HOUR * hours:
            break
    return one


def _events_of(empty: Scenario, one: Subscription) -> int:
    readings = tuple(each for each in empty.readings if each.sensor in one.filters)
    there = {one.id: one}
    steps = steps_of(empty.sensors, there, [])
    return len(needed(empty._replace(subscriptions=there, readings=readings, steps=steps))[one.id])


def least_load(scenario: Scenario, wanted: dict[str, set[str]]) -> int:
    """Each needed event once over each link on the union of the ways to those who need it."""
    users: dict[str, set[int]] = {}
    for name, events in wanted.items():
        for event in events:
            users.setdefault(event, set()).add(scenario.subscriptions[name].node)
    near = scenario.neighbours
    ways: dict[int, list[int | None]] = {}
    total = 0
    for reading in scenario.readings:
        origin = scenario.sensors[reading.sensor].node
        if reading.id in users:
            if origin not in ways:
                ways[origin] = toward(near, origin)
            total += _links(ways[origin], users[reading.id])
    return total


def _links(way: list[int | None], nodes: Iterable[int]) -> int:
    """How many links the ways from these nodes have together."""
    seen: set[int] = set()
    for node in nodes:
        at: int | None = node
        while at is not None and at not in seen and way[at] is not None:
            seen.add(at)
            at = way[at]
    return len(seen)
