"""Drawing a setting: a network, sensors that replay stations, subscriptions.

Owns every random choice. Must not know routers. Invariant: all choices come from the seed and the
setting's name, in one order; what is drawn is a propagation scenario as any other.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from simulation.papers.recording import ATTRIBUTES, Recording, RecordingError, Series
from simulation.papers.settings import DEGREE_MAX, DELTA_T_S, Setting
from simulation.propagation.needed import needed
from simulation.propagation.scenario import (
    PlacedSensor,
    PropagationScenario,
    RangeSubscription,
    SensorReading,
    middle,
    neighbours_of,
    steps_of,
)

if TYPE_CHECKING:
    import networkx as nx

TRIES = 1000  # to draw a subscription that enough events match
HOUR_S = 3600
IQR_OF_NORMAL = 1.349  # standard deviations between the quartiles of a normal distribution
RARE = ("wind_direction", "wind_speed")

Edge = tuple[int, int]


def draw(setting: Setting, recording: Recording, seed: int) -> dict[str, Any]:
    """The scenario as the file format has it, without the events. Raises RecordingError."""
    if len(recording.stations) < setting.stations:
        found = len(recording.stations)
        raise RecordingError(f"{setting.name}: {setting.stations} stations wanted, found {found}")
    seeded = random.Random(f"{setting.name}:{seed}")
    edges = sorted((min(edge), max(edge)) for edge in topology(setting, seeded).edges)
    drawn = _Drawn(setting, recording, edges, seeded)
    return {
        "name": f"{setting.name}, seed {seed}",
        "nodes": setting.nodes,
        "edges": edges,
        "sensors": [
            {"id": each.id, "node": each.node, "attr": each.attr, "loc": each.loc}
            for each in drawn.sensors.values()
        ],
        "subscriptions": [
            {
                "id": f"s{number + 1}",
                "node": seeded.randrange(setting.nodes),
                "type": "identified",
                "delta_t": DELTA_T_S,
                "filters": drawn.filters(number),
            }
            for number in range(max(setting.counts))
        ],
        "events_file": f"{setting.name}.csv",
        "center": middle(setting.nodes, tuple(edges)),
    }


def write(setting: Setting, recording: Recording, seed: int, folder: Path) -> Path:
    """Write the scenario and its events; the scenario's file. Raises RecordingError, OSError."""
    told = draw(setting, recording, seed)
    with (folder / told["events_file"]).open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("id", "sensor", "t", "v"))
        lines.writerows(events(setting, recording))
    path = folder / f"{setting.name}.json"
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return path


def events(setting: Setting, recording: Recording) -> Iterator[SensorReading]:
    """The events of a setting, numbered in order of time."""
    found = [
        (t, place, sensor, value)
        for place, (sensor, series) in enumerate(_series(setting, recording).items())
        for t, value in series
    ]
    for number, (t, _, sensor, value) in enumerate(sorted(found), 1):
        yield SensorReading(str(number), sensor, t, value)


def first(scenario: PropagationScenario, count: int) -> PropagationScenario:
    """The scenario with no more than so many of its subscriptions."""
    kept = dict(list(scenario.subscriptions.items())[:count])
    return scenario._replace(subscriptions=kept, steps=steps_of(scenario.sensors, kept, []))


def drawn_topology(setting: Setting, seed: int) -> nx.Graph[int]:
    """Return the network that `draw` has for a seed."""
    return topology(setting, random.Random(f"{setting.name}:{seed}"))


def topology(setting: Setting, seeded: random.Random) -> nx.Graph[int]:
    """Return relays in a random tree, the first of them gateways with a node for each sensor.

    Sensor nodes stand last. Paper 002, section VI.A, puts the sensors of a station near each
    other and says no more.
    """
    relays = setting.nodes - setting.sensors
    order = list(range(relays))
    seeded.shuffle(order)
    import networkx as nx  # not before it is needed: 25 MB

    graph: nx.Graph[int] = nx.Graph()
    graph.add_node(order[0])
    for place, node in enumerate(order[1:], 1):
        free = [other for other in order[:place] if graph.degree[other] < DEGREE_MAX]
        graph.add_edge(seeded.choice(free), node)
    graph.add_edges_from((number // 5, relays + number) for number in range(setting.sensors))
    return graph


def _series(setting: Setting, recording: Recording) -> dict[str, Series]:
    """Readings by sensor; of rare attributes the first in each `rare_s`."""
    found: dict[str, Series] = {}
    for station in list(recording.stations)[: setting.stations]:
        for attribute in ATTRIBUTES:
            series = recording.stations[station][attribute]
            if setting.hours is not None:
                series = [
                    each for each in series if each[0] < recording.since_s + HOUR_S * setting.hours
                ]
            if attribute in RARE[: setting.rare]:
                slots: dict[int, tuple[int, float]] = {}
                for t, value in series:
                    slots.setdefault(t // setting.rare_s, (t, value))
                series = list(slots.values())
            found[f"{station}/{attribute}"] = series
    return found


class _Drawn:
    """A network on which subscriptions are drawn."""

    def __init__(
        self, setting: Setting, recording: Recording, edges: list[Edge], seeded: random.Random
    ) -> None:
        self._setting = setting
        self._seeded = seeded
        self._series = _series(setting, recording)
        self._stations = list(recording.stations)[: setting.stations]
        relays = setting.nodes - setting.sensors
        self.sensors = {
            name: PlacedSensor(
                name, relays + number, name.partition("/")[2], (float(number // 5), 0.0)
            )
            for number, name in enumerate(self._series)
        }
        self._readings: dict[str, list[SensorReading]] = {name: [] for name in self._series}
        for reading in events(setting, recording):
            self._readings[reading.sensor].append(reading)
        self._spread = {name: _spread(series) for name, series in self._series.items()}
        self._near = _near(setting, edges)

    def filters(self, number: int) -> dict[str, tuple[float, float]]:
        """The ranges of a subscription: stations take turns; drawn again while too few match."""
        for _ in range(TRIES):
            asked = {name: self._range(name) for name in self._asked(number)}
            if self._matching(asked) >= self._setting.matching_min:
                return asked
        raise RecordingError(
            f"{self._setting.name}: found no subscription that {self._setting.matching_min} events"
            f" match in {TRIES} tries"
        )

    def _asked(self, number: int) -> list[str]:
        at = number % self._setting.stations
        count = self._seeded.randint(*self._setting.attributes)
        attributes = self._seeded.sample(ATTRIBUTES, count)
        # One attribute from each of the near stations in turn.
        near = self._near[at][: self._setting.across]
        return sorted(
            f"{self._stations[near[place % len(near)]]}/{attribute}"
            for place, attribute in enumerate(attributes)
        )

    def _range(self, name: str) -> tuple[float, float]:
        middle_, deviation = self._spread[name]
        step = self._setting.step * deviation
        below, above = (step * self._seeded.paretovariate(1.0) for _ in range(2))
        return round(middle_ - below, 4), round(middle_ + above, 4)

    def _matching(self, filters: dict[str, tuple[float, float]]) -> int:
        """Count the simple events that belong to a match."""
        one = RangeSubscription("s", 0, False, DELTA_T_S, dict(filters))
        sensors = {name: self.sensors[name] for name in filters}
        readings = sorted(
            (
                reading
                for name, (low, high) in filters.items()
                for reading in self._readings[name]
                if low <= reading.v <= high
            ),
            key=lambda reading: reading.t,
        )
        scenario = PropagationScenario(
            1, (), sensors, {"s": one}, tuple(readings), steps_of(sensors, {"s": one}, []), 0
        )
        return len(needed(scenario)["s"])


def _spread(series: Series) -> tuple[float, float]:
    """Median and standard deviation, by the quartiles: a faulty reading does not widen it."""
    values = [value for _, value in series]
    if len(values) < 2:
        raise RecordingError("found a sensor with fewer than two readings in what is replayed")
    low, _, high = quantiles(values, n=4, method="inclusive")
    deviation = (high - low) / IQR_OF_NORMAL
    return median(values), deviation or 1.0


def _near(setting: Setting, edges: list[Edge]) -> list[list[int]]:
    """For each station all stations by the distance of their gateways, itself first."""
    near = neighbours_of(setting.nodes, tuple(edges))
    found = []
    for gateway in range(setting.stations):
        distance = {gateway: 0}
        order = [gateway]
        for node in order:
            for other in near[node]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    order.append(other)
        found.append(sorted(range(setting.stations), key=lambda other: (distance[other], other)))
    return found
