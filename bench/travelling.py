"""What events that wait for partners save, and what it costs: `python -m bench.travelling`.

Owns what is compared. Must not know how events wait. Invariant: both runs of a case have the same
network, subscriptions and events, and find the same results.

Real cores in a virtual world, without faults. *weather* is the demonstration's: its tree, texts and
recordings, six hours of each at once. The others are a part of the setting of paper 002, section
VI, on the Grand St. Bernard: four stations of five sensors, each sensor at a broker of its own
behind its station's relay, in a tree of 40 brokers; subscriptions that each join the readings of
five sensors. *station* has those at one station, *near* across three, *near-mixed* has two of five
sensors read seldom; the number of subscriptions stands behind.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import msgspec

from headwater.demo import layout
from headwater.demo.material import load
from language import check_text
from simulation.papers.drawing import draw, events
from simulation.papers.recording import read_recording
from simulation.papers.settings import BEYOND, PAPER, Setting
from simulation.rehearsal.material import Material, end_of
from simulation.rehearsal.network import read_rehearsed
from simulation.rehearsal.run import rehearse

SMALL = {"nodes": 40, "stations": 4, "hours": 3, "matching_min": 5}
CASES = ("weather", "station-8", "station-40", "near-8", "near-mixed-8")
WEATHER_MS = 6 * 3_600_000  # the beginning of both days, at the same time
SEED = 1


class Came(NamedTuple):
    """What came of a run: events and bytes over links, results with when each was found."""

    events: int
    size_bytes: int
    found: dict[str, int]
    ended: dict[str, int]


def main(names: list[str]) -> None:
    """Compare all, or what is named."""
    for name in names or CASES:
        material = _weather() if name == "weather" else _papers(name)
        plain, waiting = [_run(replace(material, correlate=on)) for on in (False, True)]
        if plain.found.keys() != waiting.found.keys():
            raise SystemExit(f"{name}: other results")
        later = [waiting.found[one] - at for one, at in plain.found.items()] or [0]
        took = [at - plain.ended[one] for one, at in plain.found.items()] or [0]
        print(
            f"{name}: {len(material.events)} readings, {len(plain.found)} results; events over"
            f" links {plain.events} -> {waiting.events} ({waiting.events / plain.events - 1:+.1%}),"
            f" bytes {plain.size_bytes / 1e6:.2f} -> {waiting.size_bytes / 1e6:.2f} MB; found"
            f" {median(took) / 1e3:.1f} s after the end (median), then {mean(later) / 1e3:.1f} s"
            f" later on average, {max(later) / 1e3:.1f} s at most"
        )
        sys.stdout.flush()


def _run(material: Material) -> Came:
    outcome = rehearse(material)
    found: dict[str, int] = {}
    ended: dict[str, int] = {}
    for one in outcome.detected:
        said = json.loads(one.row.payload)
        name = f"{said['subscription']} {said['id']}"
        found[name], ended[name] = one.at_ms, said["end"]
    links = outcome.links.values()
    return Came(
        sum(one.events for one in links), sum(one.size_bytes for one in links), found, ended
    )


def _papers(name: str) -> Material:
    kind, _, count = name.rpartition("-")
    base = next((one for one in BEYOND if one.name == kind), PAPER[1])
    setting = base._replace(**SMALL, counts=(int(count),))
    recording = read_recording(Path("examples/data/grand_st_bernard.csv.gz"))
    told = draw(setting, recording, SEED)
    types = sorted({one["attr"] for one in told["sensors"]})
    texts = [f"event {one}(value: float)" for one in types]
    kinds = {one["id"]: one["attr"] for one in told["sensors"]}
    homes: dict[str, str] = {}
    for one in told["subscriptions"]:
        keys = [
            f'{kinds[sensor]}(source = "{sensor}" and value >= {low} and value <= {high})'
            for sensor, (low, high) in one["filters"].items()
        ]
        texts.append(
            f"subscription {one['id']} from user to user\ndetect {' and '.join(keys)}"
            f" within {one['delta_t'] * 1000 - 1} ms"
        )
        homes[one["id"]] = f"n{one['node']}"
    network = {
        "name": name,
        "nodes": [{"id": f"n{node}"} for node in range(told["nodes"])],
        "links": [{"a": f"n{a}", "b": f"n{b}", "delay_ms": 5} for a, b in told["edges"]],
        "sources": [{"source": one["id"], "broker": f"n{one['node']}"} for one in told["sensors"]],
        "home": "n0",
        "homes": homes,
        "actors": [],
    }
    return _material(network, "\n".join(texts) + "\n", _readings(setting, recording, kinds))


def _readings(setting: Setting, recording: Any, kinds: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "type": kinds[one.sensor],
            "id": one.id,
            "source": one.sensor,
            "timestamp": one.t * 1000,
            "value": one.v,
        }
        for one in events(setting, recording)
    ]


def _weather() -> Material:
    demo = load()
    readings: list[dict[str, Any]] = []
    sources: dict[str, str] = {}
    begin_ms = demo.recordings[0].readings[0].time_ms
    for recording in demo.recordings:
        later_ms = begin_ms - recording.readings[0].time_ms
        for one in recording.readings:
            said = msgspec.json.decode(one.payload)
            if one.time_ms + later_ms > begin_ms + WEATHER_MS:
                break
            said["timestamp"] = one.time_ms + later_ms
            place = recording.stations[one.source].location
            sources[one.source] = layout.origin_of(place)
            readings.append({"type": one.type, "source": one.source, "id": one.id, **said})
    readings.sort(key=end_of)
    network = {
        "name": "weather",
        "nodes": [{"id": name} for name in layout.NAMES],
        "links": [{"a": a, "b": b, "delay_ms": 5} for a, b in layout.PARENTS.items()],
        "sources": [{"source": name, "broker": at} for name, at in sources.items()],
        "home": layout.ROOT,
        "homes": {name: layout.home_of(name) for _, name in demo.specification.subscriptions},
        "actors": [],
    }
    return _material(network, demo.text, readings)


def _material(network: dict[str, Any], text: str, said: list[dict[str, Any]]) -> Material:
    return Material(
        network=read_rehearsed(network),
        specification=check_text(text).demand(),
        events=said,
        idle_ms=3_600_000,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
