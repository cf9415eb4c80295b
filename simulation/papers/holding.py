"""What the event load would be if brokers held events back: an estimate with hindsight.

Owns the estimate. Must not know routers. Invariant: what a link carries without holding back is
what filter-split-forward sends over it, found here without any router.

Filter-split-forward sends events toward a join before it is known whether the others will come.
*Hold and probe*: for each subscription the sensor with the fewest matching events leads. Where a
link does not lie behind the leading sensor, the others' events wait before it for up to δt, and an
event of the leading sensor, told over the link as a probe, lets those go that match with it. Each
link is taken to use the cheaper way for the very events it is judged by, so this is what could be
gained at most by this means, and not a protocol.
"""

from __future__ import annotations

from typing import NamedTuple

from simulation.propagation.needed import needed
from simulation.propagation.scenario import PropagationScenario, RangeSubscription, steps_of, toward

Link = tuple[int, int]
Keys = frozenset[str]


class Holding(NamedTuple):
    """Events, and probes, over all links."""

    plain: int
    held: int


class _Load:
    """The load of one link, either way."""

    def __init__(self) -> None:
        self.plain: set[str] = set()
        self.released: set[str] = set()
        self.probes: set[str] = set()


def estimate(scenario: PropagationScenario) -> Holding:
    """The event load as it is, and with holding back where that is cheaper.

    Identified subscriptions alone, all of them there from the beginning.
    """
    near = scenario.neighbours
    inward: dict[int, list[int | None]] = {}
    loads: dict[Link, _Load] = {}
    matching = _Matching(scenario)
    for one in scenario.subscriptions.values():
        if one.node not in inward:
            inward[one.node] = toward(near, one.node)
        behind: dict[Link, set[str]] = {}
        for sensor in one.filters:
            at = scenario.sensors[sensor].node
            while (to := inward[one.node][at]) is not None:
                behind.setdefault((at, to), set()).add(sensor)
                at = to
        lead = matching.lead(one)
        for link, sensors in behind.items():
            load = loads.setdefault(link, _Load())
            keys = frozenset(sensors)
            load.plain |= matching.of(one, keys, keys)
            load.released |= matching.of(one, keys | {lead}, keys)
            if lead not in keys:
                load.probes |= matching.of(one, frozenset((lead,)), frozenset((lead,)))
    return Holding(
        sum(len(load.plain) for load in loads.values()),
        sum(min(len(load.plain), len(load.released) + len(load.probes)) for load in loads.values()),
    )


class _Matching:
    """Matches of parts of subscriptions."""

    def __init__(self, scenario: PropagationScenario) -> None:
        self._scenario = scenario
        self._readings = {
            name: [reading for reading in scenario.readings if reading.sensor == name]
            for name in scenario.sensors
        }
        self._found: dict[tuple[str, Keys], dict[str, set[str]]] = {}

    def lead(self, one: RangeSubscription) -> str:
        """The sensor that has the fewest events in its range."""

        def count(sensor: str) -> int:
            return len(self.of(one, frozenset((sensor,)), frozenset((sensor,))))

        return min(sorted(one.filters), key=count)

    def of(self, one: RangeSubscription, keys: Keys, wanted: Keys) -> set[str]:
        """The events of the wanted sensors in matches of the subscription's part for these keys."""
        if (one.id, keys) not in self._found:
            self._found[one.id, keys] = self._match(one, keys)
        by_sensor = self._found[one.id, keys]
        return set().union(*(by_sensor[sensor] for sensor in wanted))

    def _match(self, one: RangeSubscription, keys: Keys) -> dict[str, set[str]]:
        part = one._replace(filters={name: one.filters[name] for name in sorted(keys)})
        sensors = {name: self._scenario.sensors[name] for name in part.filters}
        readings = sorted(
            (reading for name in sensors for reading in self._readings[name]),
            key=lambda reading: reading.t,
        )
        alone = PropagationScenario(
            1,
            (),
            sensors,
            {one.id: part},
            tuple(readings),
            steps_of(sensors, {one.id: part}, []),
            0,
        )
        found = needed(alone)[one.id]
        by_sensor: dict[str, set[str]] = {name: set() for name in sensors}
        for reading in readings:
            if reading.id in found:
                by_sensor[reading.sensor].add(reading.id)
        return by_sensor
