"""What each subscription of a scenario needs, found without any broker.

Owns the meaning of a scenario: which simple events belong to complex events of a subscription. Must
not know routers or the network. Invariant: an event is needed exactly if some complex event of the
subscription holds it, all of whose events were sent while it was subscribed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, inf

from simulation.propagation.scenario import (
    PlacedSensor,
    PropagationScenario,
    RangeSubscription,
    SensorReading,
)

Life = tuple[int | None, int | None]  # from t on, before t; None: no end


def needed(scenario: PropagationScenario) -> dict[str, set[str]]:
    """The ids of the events that each subscription needs."""
    sent = published(scenario)
    by_sensor: dict[str, list[SensorReading]] = {}
    for reading in sent:
        by_sensor.setdefault(reading.sensor, []).append(reading)
    needed_by: dict[str, set[str]] = {name: set() for name in scenario.subscriptions}
    for name, lives in lives_of(scenario, "subscribe", "unsubscribe").items():
        subscription = scenario.subscriptions[name]
        for life in lives:
            needed_by[name] |= _needed(subscription, life, by_sensor, scenario.sensors)
    return needed_by


def published(scenario: PropagationScenario) -> list[SensorReading]:
    """The events of sensors that were advertised when they came."""
    lives = lives_of(scenario, "advertise", "withdraw")
    return [
        reading
        for reading in scenario.readings
        if any(_alive(reading, life) for life in lives.get(reading.sensor, ()))
    ]


def lives_of(scenario: PropagationScenario, begin: str, end: str) -> dict[str, list[Life]]:
    """From when to when each sensor or subscription was there."""
    lives_by_id: dict[str, list[Life]] = {}
    for step in scenario.steps:
        lives = lives_by_id.setdefault(step.id, []) if step.op in (begin, end) else []
        alive = bool(lives) and lives[-1][1] is None
        if step.op == begin and not alive:
            lives.append((step.t, None))
        elif step.op == end and alive:
            lives[-1] = (lives[-1][0], step.t)
    return lives_by_id


def _alive(reading: SensorReading, life: Life) -> bool:
    first, end = life
    return (first is None or reading.t >= first) and (end is None or reading.t < end)


def _needed(
    subscription: RangeSubscription,
    life: Life,
    by_sensor: dict[str, list[SensorReading]],
    sensors: dict[str, PlacedSensor],
) -> set[str]:
    candidates: list[tuple[SensorReading, int]] = []
    for key, (name, (low, high)) in enumerate(subscription.filters.items()):
        for sensor in _asked(subscription, name, sensors):
            candidates += (
                (reading, key)
                for reading in by_sensor.get(sensor, ())
                if (low is None or low <= reading.v)
                and (high is None or reading.v <= high)
                and _alive(reading, life)
            )
    candidates.sort(key=lambda pair: pair[0].t)
    keys = len(subscription.filters)
    if subscription.delta_l is None or keys == 1:
        return _in_time(candidates, keys, subscription.delta_t)
    return _in_space(candidates, keys, subscription, sensors)


def _asked(
    subscription: RangeSubscription, name: str, sensors: dict[str, PlacedSensor]
) -> Iterator[str]:
    """The sensors that a filter is about."""
    if not subscription.abstract:
        if name in sensors:
            yield name
        return
    x0, y0, x1, y1 = subscription.region or (-inf, -inf, inf, inf)
    for sensor in sensors.values():
        x, y = sensor.loc
        if sensor.attr == name and x0 <= x <= x1 and y0 <= y <= y1:
            yield sensor.id


def _in_time(some: list[tuple[SensorReading, int]], keys: int, delta_t: float) -> set[str]:
    """All events of every window shorter than δt that has one for each key."""
    matched: set[str] = set()
    counts = [0] * keys
    last = marked = 0
    for first, (begin, key) in enumerate(some):
        while last < len(some) and some[last][0].t - begin.t < delta_t:
            counts[some[last][1]] += 1
            last += 1
        if all(counts):
            matched.update(reading.id for reading, _ in some[max(first, marked) : last])
            marked = last
        counts[key] -= 1
    return matched


def _in_space(
    some: list[tuple[SensorReading, int]],
    keys: int,
    subscription: RangeSubscription,
    sensors: dict[str, PlacedSensor],
) -> set[str]:
    """Event by event: is there a choice of others, all near each other in time and in space?"""
    delta_t, delta_l = subscription.delta_t, subscription.delta_l or 0.0
    matched: set[str] = set()

    def near(a: SensorReading, b: SensorReading) -> bool:
        (ax, ay), (bx, by) = sensors[a.sensor].loc, sensors[b.sensor].loc
        return abs(a.t - b.t) < delta_t and hypot(ax - bx, ay - by) < delta_l

    def extend(
        chosen: list[SensorReading], left: list[list[SensorReading]]
    ) -> list[SensorReading] | None:
        if not left:
            return chosen
        for reading in left[0]:
            if all(near(reading, other) for other in chosen):
                match = extend([*chosen, reading], left[1:])
                if match is not None:
                    return match
        return None

    begin = 0
    for reading, key in some:
        while some[begin][0].t <= reading.t - delta_t:
            begin += 1
        if reading.id in matched:
            continue
        others: list[list[SensorReading]] = [[] for _ in range(keys)]
        for other, index in some[begin:]:
            if other.t >= reading.t + delta_t:
                break
            if index != key and near(reading, other):
                others[index].append(other)
        left = sorted((each for index, each in enumerate(others) if index != key), key=len)
        match = extend([reading], left)
        matched.update(each.id for each in match or ())
    return matched
