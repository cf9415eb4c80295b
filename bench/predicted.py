"""Bytes over each link: what the plan's flow predicts beside what simulated links carried.

Owns the drawn networks and texts, what is measured of them and the table. Must not run a network or
make a problem: `simulation.rehearsal` and `headwater.placing` do. Invariant: everything is drawn
from a seed; what is predicted knows the recording's rates, and nothing of what links carried.

    python bench/predicted.py                       the table of docs/planning.md: ten minutes each
    python bench/predicted.py --seconds 60 --seeds 2
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from broker.core.intake import Intake, IntakeOptions  # noqa: E402
from broker.engine.ingest.event_bytes import packed  # noqa: E402
from headwater.engine import Engine  # noqa: E402
from headwater.placing import placement_problem  # noqa: E402
from language import Specification, check_text  # noqa: E402
from planner.document import read_problem  # noqa: E402
from planner.flow import evaluate  # noqa: E402
from planner.layout import lay_out  # noqa: E402
from planner.plan import Plan  # noqa: E402
from simulation.rehearsal.description import read_network  # noqa: E402
from simulation.rehearsal.links import RehearsalTraffic  # noqa: E402
from simulation.rehearsal.material import Material, located  # noqa: E402
from simulation.rehearsal.network import read_rehearsed  # noqa: E402
from simulation.rehearsal.run import Progress, rehearse  # noqa: E402

Document = dict[str, Any]
Arc = tuple[str, str]

BEGIN_MS = 1_700_000_000_000
SECONDS = 600
SEEDS = 6
TYPES = {"Temp": "<", "Wind": ">", "Humid": ">"}  # which way tasks look at a type's values
PERIOD_S = 30  # in which a source's value goes up and down


@dataclass(frozen=True)
class Wanting:
    """A task: which part of each type's values passes its own conditions, and its text."""

    name: str
    only: Mapping[str, float]
    text: str
    home: str
    places: Mapping[str, str | None]


@dataclass(frozen=True)
class Drawn:
    """A network without rates, a recording on it, and the tasks of its text."""

    network: Document
    text: str
    tasks: Sequence[Wanting]
    events: Sequence[Document]


@dataclass(frozen=True)
class Compared:
    """Bytes by link and direction: predicted, and as they were carried."""

    seed: int
    brokers: int
    tasks: int
    events: int
    predicted: Mapping[Arc, float]
    carried: Mapping[Arc, RehearsalTraffic]

    def off(self, arc: Arc) -> float:
        """By how much the prediction is off, as a part of what was carried."""
        content = self.carried[arc].content_bytes
        return abs(self.predicted.get(arc, 0.0) - content) / content if content else 0.0

    @property
    def worst(self) -> float:
        """The most of all links that carried anything, or were to."""
        silent = [a for a, one in self.carried.items() if not one.content_bytes]
        if any(self.predicted.get(arc, 0.0) for arc in silent):
            return math.inf
        return max(map(self.off, self.carried))

    @property
    def total(self) -> tuple[float, int, int]:
        """Over all links: predicted bytes, those of events and results, and those of messages."""
        some = self.carried.values()
        content = sum(one.content_bytes for one in some)
        return sum(self.predicted.values()), content, sum(one.size_bytes for one in some)


# --- drawing ------------------------------------------------------------------------------------


def drawn(seed: int, seconds: int, *, swinging: bool = True) -> Drawn:
    """A tree of brokers, sources at some, and tasks with simple filters at others.

    `swinging`: values go up and down as those of sensors do, so that each source passes a filter
    as often as the next; else each is drawn by itself.
    """
    draw = Random(seed)
    brokers = [f"b{number}" for number in range(draw.randint(4, 8))]
    links = [
        {"a": brokers[draw.randrange(at)], "b": brokers[at], "delay_ms": draw.choice((1, 5, 20))}
        for at in range(1, len(brokers))
    ]
    sources = [
        {
            "source": f"{kind.lower()}-{number}",
            "broker": draw.choice(brokers),
            "location": f"hall/{draw.randrange(3)}",
            "kind": kind,
        }
        for kind in TYPES
        for number in range(draw.randint(2, 4))
    ]
    tasks = [_task(draw, number, brokers) for number in range(draw.randint(3, 6))]
    actors = [
        {"actor": f"actor-{number}", "broker": draw.choice(brokers)} for number in range(len(tasks))
    ]
    events = [event for one in sources for event in _recorded(draw, one, seconds, swinging)]
    network = {
        "nodes": [{"id": name} for name in brokers],
        "links": links,
        "sources": [{k: v for k, v in one.items() if k != "kind"} for one in sources],
        "homes": {f"S{number}": one.home for number, one in enumerate(tasks)},
        "actors": actors,
    }
    declared = "".join(f"event {kind}(val: float)\n" for kind in TYPES)
    text = declared + "\n".join(one.text for one in tasks)
    return Drawn(network, text, tasks, sorted(events, key=lambda one: one["timestamp"]))


def _recorded(draw: Random, source: Document, seconds: int, swinging: bool) -> list[Document]:
    """Values from 0 to 1, evenly spread over a period, or each drawn by itself."""
    every_ms = draw.choice((200, 400, 500))
    phase = draw.random()
    found = []
    for number, at_ms in enumerate(range(draw.randrange(every_ms), seconds * 1000, every_ms)):
        swing = (at_ms / (PERIOD_S * 1000) + phase) % 1
        value = abs(2 * swing - 1) if swinging else draw.random()
        event = {"type": source["kind"], "source": source["source"], "val": round(value, 6)}
        event |= {"id": f"{source['source']}-{number}", "location": source["location"]}
        found.append({**event, "timestamp": BEGIN_MS + at_ms})
    return found


def _task(draw: Random, number: int, brokers: Sequence[str]) -> Wanting:
    """A threshold, two types within a second, means of windows, or a threshold in one hall."""
    name, home = f"S{number}", draw.choice(brokers)
    head = f"subscription {name} seq 1 from team to actor-{number}\n"
    kind, other = draw.sample(list(TYPES), 2)
    part, other_part = (draw.choice((0.1, 0.25, 0.4)) for _ in range(2))
    one = f"{kind}({_condition(kind, part)})"
    form = ("threshold", "pair", "means", "hall")[number % 4]
    if form == "pair":
        two = f"{other}({_condition(other, other_part)})"
        body = (
            f"  detect[recent] {one} as a and {two} as b within 1 s\n  assign a = a.val, b = b.val"
        )
        return Wanting(name, {kind: part, other: other_part}, head + body + "\n", home, {})
    if form == "means":
        define = (
            f"define M{number}(mean) aggr every 10 s\n  detect {one} as a\n"
            "  assign mean = Avg(a.val)\n  group by location\n"
        )
        body = f"  detect M{number} as m\n  assign mean = m.mean\n"
        return Wanting(f"M{number}", {kind: part}, define + head + body, home, {})
    if form == "hall":
        hall = f"hall/{draw.randrange(3)}"
        body = f'  detect {one} as a in path("{hall}")\n  assign a = a.val\n'
        return Wanting(name, {kind: part}, head + body, home, {kind: hall})
    body = f"  detect {one} as a\n  assign a = a.val\n"
    return Wanting(name, {kind: part}, head + body, home, {})


def _condition(kind: str, part: float) -> str:
    """What a part of the values from 0 to 1 fulfils."""
    return f"val < {part}" if TYPES[kind] == "<" else f"val > {1 - part}"


# --- measuring and predicting -------------------------------------------------------------------


def compare(
    seed: int, seconds: int, *, swinging: bool = True, progress: Progress | None = None
) -> Compared:
    """One drawn network: predicted, and run."""
    found = drawn(seed, seconds, swinging=swinging)
    specification = check_text(found.text).demand()
    network = read_rehearsed(found.network)
    events = located(found.events, network)
    # A plan reckons with what simple filters let through: how much less travels for want of a
    # partner depends on which events meet.
    material = Material(network, specification, events, correlate=False)
    outcome = rehearse(material, (), progress)
    return Compared(
        seed=seed,
        brokers=len(network.brokers),
        tasks=len(found.tasks),
        events=len(events),
        predicted=predicted(found, specification, seconds),
        carried=outcome.links,
    )


def predicted(found: Drawn, specification: Specification, seconds: int) -> dict[Arc, float]:
    """Bytes by link and direction, with every task at its home."""
    document = {
        **found.network,
        "sources": _sources(found, specification, seconds),
        "estimates": _estimates(found, specification, seconds),
    }
    made = placement_problem(specification, read_network(document))
    layout = lay_out(read_problem(made.document))
    homes = dict(found.network["homes"])
    homes |= {one.name: one.home for one in found.tasks}
    plan = Plan(tuple(layout.numbers[homes[piece.task]] for piece in layout.pieces))
    names = [node.id for node in layout.problem.nodes]
    loads = evaluate(layout, plan).loads
    return {(names[a], names[b]): load * seconds for (a, b), load in loads.items()}


def _sources(found: Drawn, specification: Specification, seconds: int) -> list[Document]:
    """The network's, with what each sends: events a second, and bytes of one as it travels."""
    intake = Intake(IntakeOptions(lateness_ms=None))
    intake.declare(one for one in specification.event_types.values() if not one.defined)
    sizes: dict[tuple[str, str], list[int]] = {}
    for event in intake.from_mappings(list(found.events)).events:
        key = (event.source or "", event.event_type)
        sizes.setdefault(key, []).append(len(packed([event])) - 1)  # less the array's own byte
    return [
        {
            **one,
            "types": {
                kind: {"measured": len(some) / seconds, "bytes": sum(some) / len(some)}
                for (name, kind), some in sizes.items()
                if name == one["source"]
            },
        }
        for one in found.network["sources"]
    ]


def _estimates(found: Drawn, specification: Specification, seconds: int) -> Document:
    """What passes each task's conditions, and what subscriptions send, as one engine has it."""
    estimates: Document = {one.name: {"only": _passing(found, one)} for one in found.tasks}
    engine = Engine(found.text, None)
    engine.push(list(found.events))
    sent: dict[str, list[int]] = {name: [] for _, name in specification.subscriptions}
    for result in engine.finish():
        said = {**result, "detected_at": BEGIN_MS}
        sent[result["subscription"]].append(len(msgspec.json.encode(said)))
    for name, sizes in sent.items():
        mean = sum(sizes) / len(sizes) if sizes else 0
        told = {"per_s": len(sizes) / seconds, "bytes": mean}
        estimates[name] = {**estimates.get(name, {}), **told}
    return estimates


def _passing(found: Drawn, task: Wanting) -> dict[str, float]:
    """Of the events of each type that come from where the task looks, the part that passes."""
    only = {}
    for kind, part in task.only.items():
        below = TYPES[kind] == "<"
        hall = task.places.get(kind)
        values = [
            one["val"]
            for one in found.events
            if one["type"] == kind and hall in {None, one["location"]}
        ]
        passing = sum(value < part if below else value > 1 - part for value in values)
        only[kind] = passing / len(values) if values else 0.0
    return only


# --- the table ----------------------------------------------------------------------------------


def table(some: Sequence[Compared]) -> list[str]:
    """Rows of Markdown."""
    heads = ("seed", "brokers", "subscriptions", "events", "predicted, bytes", "carried")
    heads += ("total off", "worst link", "messages, bytes")
    lines = [f"| {' | '.join(heads)} |", "|" + " ---: |" * len(heads)]
    for one in some:
        predicted_bytes, content, messages = one.total
        off = abs(predicted_bytes - content) / content
        lines.append(
            f"| {one.seed} | {one.brokers} | {one.tasks} | {one.events:,} | {predicted_bytes:,.0f}"
            f" | {content:,} | {off:.2%} | {one.worst:.2%} | {messages:,} |".replace("%", " %")
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print the tables; 1 where a link is more than 5 % off."""
    parser = argparse.ArgumentParser(description="Predicted beside carried bytes of links.")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of the recording")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many networks")
    parser.add_argument("--drawn", action="store_true", help="values that do not swing")
    parser.add_argument("--links", action="store_true", help="each link, as JSON")
    said = parser.parse_args(arguments)
    found = []
    for seed in range(1, said.seeds + 1):
        found.append(compare(seed, said.seconds, swinging=not said.drawn))
        if said.links:
            one = found[-1]
            links = {
                f"{a} -> {b}": [round(one.predicted.get((a, b), 0)), carried.content_bytes]
                for (a, b), carried in one.carried.items()
            }
            sys.stdout.write(json.dumps({"seed": seed, "links": links}) + "\n")
    sys.stdout.write("\n".join(table(found)) + "\n")
    return 1 if any(one.worst > 0.05 for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
