"""Reading a propagation scenario from its files.

Owns the form of the files. Must not know how a scenario is run. Invariant: what is wrong is told
with the place where it stands; nothing is guessed.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, cast

from simulation.propagation.scenario import (
    PlacedSensor,
    PropagationScenario,
    RangeSubscription,
    ScenarioError,
    SensorReading,
    Step,
    check_tree,
    middle,
    steps_of,
)

NODES_MAX = 10_000  # a described network, not the world's
READINGS_MAX = 5_000_000  # they are held in memory, some 300 bytes each
FILE_BYTES_MAX = 2**26  # of a description: as many subscriptions as anybody will wait for
NUMBER_MAX = 1e300  # whatever is computed of numbers stays finite
SECONDS_MAX = 2**43  # times in milliseconds stay 64-bit integers
DIGITS_MAX = 640  # of an id that is written as a number; whatever the settings, Python reads these
SHOWN_MAX = 40  # characters of what is refused
WHOLE = re.compile("[+-]?[0-9]{1,20}")
COLUMNS = ("id", "sensor", "t", "v")
OPERATIONS = ("advertise", "withdraw", "subscribe", "unsubscribe")


def read_scenario(path: Path) -> PropagationScenario:
    """The scenario of a file, `-` being standard input, and of the file of events it names.

    Raises ScenarioError.
    """
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise ScenarioError(f"{path}: more than {FILE_BYTES_MAX:,} bytes")
        document = json.loads(data, object_pairs_hook=_each_once)
    except OSError as error:
        raise ScenarioError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from None
    try:
        return _scenario(document, path.parent)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; which of two that tell one key is meant nobody knows."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ScenarioError(f"an object has the key {json.dumps(key)} twice")
        members[key] = value
    return members


def _scenario(told: Any, folder: Path) -> PropagationScenario:
    if not isinstance(told, dict):
        raise ScenarioError("found no object with nodes, edges, sensors, subscriptions")
    nodes = _nodes(_need(told, "nodes", "the scenario"))
    edges = tuple(
        _edge(each, f"edges[{place}]", nodes)
        for place, each in enumerate(_list(told.get("edges", []), "edges"))
    )
    check_tree(nodes, edges)
    sensors: dict[str, PlacedSensor] = {}
    for place, each in enumerate(_list(_need(told, "sensors", "the scenario"), "sensors")):
        sensor = _sensor(each, f"sensors[{place}]", nodes)
        if sensor.id in sensors:
            raise ScenarioError(f"sensors[{place}]: a second sensor {sensor.id!r}")
        sensors[sensor.id] = sensor
    subscriptions: dict[str, RangeSubscription] = {}
    wanted = _list(_need(told, "subscriptions", "the scenario"), "subscriptions")
    for place, each in enumerate(wanted):
        subscription = _subscription(each, f"subscriptions[{place}]", nodes)
        if subscription.id in subscriptions:
            raise ScenarioError(
                f"subscriptions[{place}]: a second subscription {subscription.id!r}"
            )
        subscriptions[subscription.id] = subscription
    script = [
        _step(each, f"script[{place}]")
        for place, each in enumerate(_list(told.get("script") or [], "script"))
    ]
    center = told.get("center")
    named = told.get("events_file")
    if named is not None and not isinstance(named, str):
        raise ScenarioError("events_file: found no name of a file")
    readings = _readings(folder / named, f"events_file: {named}", sensors) if named else []
    numbered = all(_is_number(each.id) for each in readings)
    return PropagationScenario(
        nodes,
        edges,
        sensors,
        subscriptions,
        _in_order(readings, numbered=numbered),
        steps_of(sensors, subscriptions, script),
        middle(nodes, edges) if center is None else _node(center, "center", nodes),
        numbered,
    )


def _in_order(readings: list[SensorReading], *, numbered: bool) -> tuple[SensorReading, ...]:
    """By time and id; numbers by what they count, so that 9 comes before 10."""
    if numbered:
        return tuple(sorted(readings, key=lambda reading: (reading.t, int(reading.id))))
    return tuple(sorted(readings, key=lambda reading: (reading.t, reading.id)))


def _need(told: dict[str, Any], name: str, where: str) -> Any:
    if name not in told:
        raise ScenarioError(f"{where}: `{name}` is missing")
    return told[name]


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ScenarioError(f"{where}: found no list")
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: found no object")
    return value


def _nodes(value: Any) -> int:
    if isinstance(value, list):
        names: list[Any] = [each.get("id") if isinstance(each, dict) else each for each in value]
        if not all(_is_whole(each) for each in names) or sorted(names) != list(range(len(names))):
            raise ScenarioError("nodes: expected the brokers 0, 1, 2 … or how many there are")
        value = len(names)
    if not _is_whole(value) or not 1 <= value <= NODES_MAX:
        raise ScenarioError(f"nodes: found {value!r}, expected 1 to {NODES_MAX} brokers")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _node(value: Any, where: str, nodes: int) -> int:
    if not _is_whole(value) or not 0 <= value < nodes:
        raise ScenarioError(f"{where}: found broker {value!r}, expected 0 to {nodes - 1}")
    return int(value)


def _edge(value: Any, where: str, nodes: int) -> tuple[int, int]:
    pair = [value.get("a"), value.get("b")] if isinstance(value, dict) else value
    if not isinstance(pair, list) or len(pair) != 2:
        raise ScenarioError(f"{where}: expected two brokers")
    a, b = (_node(each, where, nodes) for each in pair)
    return a, b


def _name(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ScenarioError(f"{where}: found {value!r}, expected a text or a whole number")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise ScenarioError(f"{where}: has half of a surrogate pair, which no file can hold")
    return str(value)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"{where}: found {value!r}, expected a number")
    if not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise ScenarioError(f"{where}: found {str(value)[:20]}, expected a finite number")
    return value


def _numbers(value: Any, where: str, count: int) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise ScenarioError(f"{where}: expected {count} numbers")
    return [_number(each, where) for each in value]


def _sensor(value: Any, where: str, nodes: int) -> PlacedSensor:
    fields = _object(value, where)
    x, y = _numbers(_need(fields, "loc", where), f"{where}: loc", 2)
    return PlacedSensor(
        _name(_need(fields, "id", where), f"{where}: id"),
        _node(_need(fields, "node", where), f"{where}: node", nodes),
        _name(_need(fields, "attr", where), f"{where}: attr"),
        (x, y),
    )


def _subscription(value: Any, where: str, nodes: int) -> RangeSubscription:
    fields = _object(value, where)
    name = _name(_need(fields, "id", where), f"{where}: id")
    kind = _need(fields, "type", where)
    if kind not in ("identified", "abstract"):
        raise ScenarioError(f"{where}: type: found {kind!r}, expected identified or abstract")
    delta_t = _number(_need(fields, "delta_t", where), f"{where}: delta_t")
    if not 0 < delta_t <= SECONDS_MAX:
        raise ScenarioError(f"{where}: delta_t: found {delta_t!r}, expected more than 0 seconds")
    filters = _object(_need(fields, "filters", where), f"{where}: filters")
    if not filters:
        raise ScenarioError(f"{where}: filters: expected at least one")
    ranges = {each: _range(ends, f"{where}: filters: {each}") for each, ends in filters.items()}
    node = _node(_need(fields, "node", where), f"{where}: node", nodes)
    if kind == "identified":
        return RangeSubscription(name, node, abstract=False, delta_t=delta_t, filters=ranges)
    region, delta_l = fields.get("region"), fields.get("delta_l")
    if region is not None:
        x0, y0, x1, y1 = _numbers(region, f"{where}: region", 4)
        region = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    if delta_l is not None and _number(delta_l, f"{where}: delta_l") < 0:
        raise ScenarioError(f"{where}: delta_l: found {delta_l!r}, expected 0 metres or more")
    return RangeSubscription(name, node, True, delta_t, ranges, region, delta_l)


def _range(value: Any, where: str) -> tuple[float | None, float | None]:
    if not isinstance(value, list) or len(value) != 2:
        raise ScenarioError(f"{where}: expected [lowest, highest]")
    low, high = (None if each is None else _number(each, where) for each in value)
    return low, high


def _step(value: Any, where: str) -> Step:
    fields = _object(value, where)
    op = _need(fields, "op", where)
    if op not in OPERATIONS:
        raise ScenarioError(f"{where}: op: found {op!r}, expected one of {', '.join(OPERATIONS)}")
    t = _need(fields, "t", where)
    if isinstance(t, float) and t.is_integer():
        t = int(t)
    if not _is_whole(t) or abs(t) > SECONDS_MAX:
        raise ScenarioError(f"{where}: t: found {t!r}, expected whole seconds")
    named = _name(_need(fields, "id", where), f"{where}: id")
    kind = cast('Literal["advertise", "withdraw", "subscribe", "unsubscribe"]', op)
    return Step(t, kind, named)


def _readings(path: Path, where: str, sensors: dict[str, PlacedSensor]) -> list[SensorReading]:
    """The events of a file, gzip or plain, in its order."""
    opened = gzip.open if path.suffix == ".gz" else open
    readings: list[SensorReading] = []
    ids: set[str] = set()
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            heads = [head.strip() for head in next(lines, [])]
            if any(name not in heads for name in COLUMNS):
                raise ScenarioError(f"{where}: expected the columns id,sensor,t,v")
            columns = [heads.index(name) for name in COLUMNS]
            for number, cells in enumerate(lines, 2):
                if not cells:
                    continue
                reading = _reading(cells, columns, f"{where}:{number}")
                if reading.sensor not in sensors:
                    raise ScenarioError(f"{where}:{number}: no sensor {reading.sensor!r}")
                if reading.id in ids:
                    raise ScenarioError(f"{where}:{number}: a second event {reading.id!r}")
                if len(readings) >= READINGS_MAX:
                    raise ScenarioError(f"events_file: more than {READINGS_MAX:,} events")
                ids.add(reading.id)
                readings.append(reading)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ScenarioError(f"{where}: {reason}") from None
    except (ValueError, csv.Error, EOFError) as error:
        raise ScenarioError(f"{where}: {error}") from None
    return readings


def _reading(cells: list[str], at: list[int], where: str) -> SensorReading:
    if len(cells) <= max(at):
        raise ScenarioError(f"{where}: expected id,sensor,t,v")
    name, sensor, t, v = (cells[place].strip() for place in at)
    if not WHOLE.fullmatch(t) or abs(int(t)) > SECONDS_MAX:
        raise ScenarioError(f"{where}: found t {t[:SHOWN_MAX]!r}, expected whole seconds")
    try:
        value = math.nan if "_" in v else float(v)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{where}: found v {v[:SHOWN_MAX]!r}, expected a finite number")
    return SensorReading(name, sensor, int(t), value)


def _is_number(text: str) -> bool:
    """Tell whether a text is plain digits that are the same text again once they were a number."""
    if not text.isascii() or not text.isdecimal() or len(text) > DIGITS_MAX:
        return False
    return text == "0" or text[0] != "0"
