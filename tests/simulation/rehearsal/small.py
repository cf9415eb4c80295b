"""A small network with a recording: three brokers in a line, four sources, three minutes."""

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from headwater.engine import Engine
from language import check_text
from simulation.rehearsal.compare import RehearsalComparison, compared
from simulation.rehearsal.faults import FaultSetting, read_fault
from simulation.rehearsal.material import Material, located
from simulation.rehearsal.network import read_rehearsed
from simulation.rehearsal.run import RehearsalOutcome, rehearse

FIRST_MS = 1_700_000_000_000
SPEC = """
event Temp(val: float)
event Wind(val: float)

define Mean(where_, mean) aggr every 20 s
  detect Temp as t
  assign where_ = group.location, mean = Avg(t.val)
  group by location

subscription Cold seq 1 from team to alarm
  detect Temp(val < 3) as t
  assign val = t.val

subscription Chill seq 1 from team to alarm
  detect Temp(val < 6) as t and Wind(val > 4) as w within 5 s
  assign t = t.val, w = w.val

subscription Means seq 1 from team to `board 1`
  detect Mean as m
  assign mean = m.mean
"""
NETWORK: dict[str, Any] = {
    "nodes": [{"id": "east"}, {"id": "mid"}, {"id": "west"}],
    "links": [{"a": "east", "b": "mid", "delay_ms": 10}, {"a": "mid", "b": "west"}],
    "sources": [
        {"source": "t1", "broker": "east", "location": "yard"},
        {"source": "t2", "broker": "west", "location": "roof"},
        {"source": "w1", "broker": "east"},
        {"source": "w2", "broker": "west"},
    ],
    "home": "west",
    "homes": {"Chill": "mid", "team/Means": "east"},
    "actors": [{"actor": "alarm", "broker": "east"}, {"actor": "board 1", "broker": "west"}],
}


def recorded(seed: int = 1, count: int = 120) -> list[dict[str, Any]]:
    """Events of four sources, in order."""
    draw = Random(seed)
    found = []
    at_ms = FIRST_MS
    for number in range(count):
        at_ms += draw.randint(200, 3_000)
        source = draw.choice(("t1", "t2", "w1", "w2"))
        kind = "Temp" if source[0] == "t" else "Wind"
        event = {"type": kind, "id": f"e{number}", "source": source, "timestamp": at_ms}
        found.append({**event, "val": float(draw.randint(0, 9))})
    return found


def material(**changes: Any) -> Material:
    """The network with the recording; `events`, `spec`, `network` and settings may be others."""
    text = changes.pop("spec", SPEC)
    network = read_rehearsed({**NETWORK, **changes.pop("network", {})})
    events = located(changes.pop("events", None) or recorded(), network)
    return Material(network, check_text(text).demand(), events, **changes)


def with_faults(one: Material, *asked: tuple[str, str]) -> RehearsalOutcome:
    """A run with faults by (kind, text)."""
    network = one.network
    setting = FaultSetting(network.brokers, network.links, one.first_ms, one.last_ms)
    return rehearse(one, [read_fault(kind, text, setting) for kind, text in asked])


def beside_engine(
    one: Material,
    outcome: RehearsalOutcome,
    plain: RehearsalOutcome | None = None,
    text: str = SPEC,
) -> RehearsalComparison:
    """The outcome beside one engine on the same events."""
    engine = Engine(text, None)
    engine.push(list(one.events))
    homes = {key: one.network.described.home_of(*key) for key in one.specification.subscriptions}
    return compared(one.specification, homes, engine.finish(), outcome, plain)


def written(folder: Path) -> list[str]:
    """The options that name the files of all this, which are written into a folder."""
    (folder / "spec.hw").write_text(SPEC)
    (folder / "net.json").write_text(json.dumps(NETWORK))
    places = {one["source"]: one.get("location") for one in NETWORK["sources"]}
    events = [{**one, "location": places[one["source"]]} for one in recorded()]
    lines = [json.dumps(one) for one in reversed(events)]  # files need not be in order
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")
    names = {"--spec": "spec.hw", "--network": "net.json", "--events": "events.jsonl"}
    return [word for key, name in names.items() for word in (key, str(folder / name))]


def in_a_line(nodes: int, seed: int) -> tuple[str, Material]:
    """Brokers in a line, each with a source and a sequence of its own; and their text.

    All end at once, within three seconds: the last events decide what only those who have no
    source any more can release.
    """
    names = [f"n{number}" for number in range(nodes)]
    network = {
        "nodes": [{"id": name} for name in names],
        "links": [{"a": a, "b": b} for a, b in pairwise(names)],
        "sources": [{"source": f"s{at}", "broker": at, "location": at} for at in names],
        "home": names[0],
        "homes": {f"Seq_{name}": name for name in names},
        "actors": [],
    }
    lines = [f"event {kind}(n: int)" for kind in "ABC"]
    for name in names:
        steps = f'A(location = "{name}") as a then B(location = "{name}") as b'
        lines += [f"subscription Seq_{name} seq 1 from team to sink"]
        lines += [f"  detect[first] {steps} within 10 s"]
    draw = Random(seed)
    events = [
        {
            "type": draw.choice("ABC"),
            "id": f"{second}-{name}",
            "source": f"s{name}",
            "timestamp": FIRST_MS + 1000 * second + draw.randrange(1000),
            "n": 1,
        }
        for second in range(3)
        for name in names
    ]
    events.sort(key=lambda event: event["timestamp"])
    text = "\n".join(lines) + "\n"
    return text, material(spec=text, network=network, events=events)
