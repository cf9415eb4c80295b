"""The four settings of paper 002 in small, on brokers: `python -m bench.settings --real`.

Owns how the settings shrink, what is run and what is compared. Must not know how events wait.
Invariant: the exact routers, the processes and the virtual world are given the same network,
subscriptions and readings; a result that is missing or surplus ends the command with status 1.

The paper's networks have 60 to 200 brokers. Here are six, or twenty, in the same proportions: of
relays, among them the gateways of stations, and of brokers with sensors beside their gateway, whom
the five sensors of a station share where there are fewer. Subscriptions and ranges are drawn as
those of the paper are (`simulation.papers.drawing`), by the same readings. `near`, `mixed` and
`near-mixed` go beyond the paper: subscriptions across three stations, and two of five sensors that
are read fifty times less often than the others; there what comes often can wait for what is rare
(`broker.network.routing.leads`): brokers do, and the exact routers where they are told to.

With `--real` brokers are processes of their own on loopback, at default settings, and events are
those that `GET /v1/network` counts over links, as `headwater flows` shows them, a few seconds after
the last reading. With `--coordinator` they plan, too, and tasks may move. Without `--real` they are
cores in a virtual world, where time goes as in the recording; with a coordinator as it does with
processes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from bench.real_brokers import Placed, run_on_processes
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD, HOLD_AND_PROBE
from headwater.engine import Engine
from language import check_text
from simulation.papers.bound import lower_bound
from simulation.papers.drawing import draw, events
from simulation.papers.holding import estimate
from simulation.papers.recording import read_recording
from simulation.papers.settings import BEYOND, PAPER
from simulation.propagation.needed import needed
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import simulate
from simulation.propagation.scenario import PropagationScenario
from simulation.rehearsal.material import Material, end_of
from simulation.rehearsal.network import read_rehearsed
from simulation.rehearsal.run import rehearse

DATA = Path("examples/data/grand_st_bernard.csv.gz")
SENSORS = 5  # of a station
SEED = 1
HOURS, HOURS_RARE = 3, 8
MATCHING_MIN = 5
IDLE_MS = 3_600_000  # what is read every two minutes is not idle
RARE_S = 6_000  # of what is read every two minutes otherwise: fifty to one


Link = tuple[str, str]
Sent = Callable[[PropagationScenario], Counter[Link]]


class Shape(NamedTuple):
    """A network in small: relays, stations, and brokers with sensors beside each gateway."""

    relays: int
    stations: int
    beside: int
    subscriptions: int

    @property
    def brokers(self) -> int:
        """Count the brokers."""
        return self.relays + self.stations * self.beside


SHAPES = {
    6: {
        "small": Shape(2, 2, 2, 20),
        "medium": Shape(3, 1, 3, 20),
        "large": Shape(4, 1, 2, 20),
        "sources": Shape(2, 2, 2, 20),
        "near": Shape(3, 3, 1, 20),
    },
    20: {
        "small": Shape(5, 3, 5, 40),
        "medium": Shape(10, 2, 5, 40),
        "large": Shape(15, 1, 5, 40),
        "sources": Shape(10, 5, 2, 40),
        "near": Shape(8, 4, 3, 40),
    },
}
for shapes in SHAPES.values():
    shapes |= {"mixed": shapes["medium"], "near-mixed": shapes["near"]}
ALL = (*PAPER, *BEYOND)


class Case(NamedTuple):
    """A setting in small; `told` is what `headwater simulate` reads."""

    name: str
    told: dict[str, Any]
    scenario: PropagationScenario


def case_of(name: str, brokers: int, folder: Path) -> Case:
    """Draw a setting, and write it where `headwater simulate` finds it."""
    shape = SHAPES[brokers][name]
    whole = next(setting for setting in ALL if setting.name == name)
    setting = whole._replace(
        nodes=shape.relays + SENSORS * shape.stations,
        stations=shape.stations,
        counts=(shape.subscriptions,),
        matching_min=MATCHING_MIN,
        hours=HOURS_RARE if whole.rare else HOURS,
    )
    recording = read_recording(DATA)
    told = draw(setting, recording, SEED)

    def at(node: int) -> int:
        """Return the broker that stands for one of the paper's."""
        station, sensor = divmod(node - shape.relays, SENSORS)
        return (
            node
            if node < shape.relays
            else shape.relays + station * shape.beside + sensor % shape.beside
        )

    told["nodes"] = shape.brokers
    told["edges"] = sorted({tuple(sorted((at(a), at(b)))) for a, b in told["edges"]})
    for part in (*told["sensors"], *told["subscriptions"]):
        part["node"] = at(part["node"])
    told.pop("center")
    lines = [f"{one.id},{one.sensor},{one.t},{one.v}" for one in events(setting, recording)]
    (folder / told["events_file"]).write_text("\n".join(["id,sensor,t,v", *lines]) + "\n")
    path = folder / f"{name}.json"
    path.write_text(json.dumps(told))
    return Case(name, told, read_scenario(path))


def text_of(case: Case) -> str:
    """Return the subscriptions as a specification."""
    scenario = case.scenario
    kinds = {sensor.id: sensor.attr for sensor in scenario.sensors.values()}
    texts = [f"event {kind}(value: float)" for kind in dict.fromkeys(kinds.values())]
    for one in scenario.subscriptions.values():
        keys = [
            f'{kinds[sensor]}(source = "{sensor}" and value >= {low} and value <= {high})'
            for sensor, (low, high) in one.filters.items()
        ]
        texts.append(
            f"subscription {one.id} from user to user\ndetect {' and '.join(keys)}"
            f" within {int(one.delta_t * 1000) - 1} ms"
        )
    return "\n".join(texts) + "\n"


def material_of(case: Case) -> Material:
    """Return the same for brokers."""
    scenario = case.scenario
    network = {
        "name": case.name,
        "nodes": [{"id": f"n{node}"} for node in range(scenario.nodes)],
        "links": [{"a": f"n{a}", "b": f"n{b}", "delay_ms": 5} for a, b in scenario.edges],
        "sources": [
            {"source": each.id, "broker": f"n{each.node}"} for each in scenario.sensors.values()
        ],
        "home": "n0",
        "homes": {one.id: f"n{one.node}" for one in scenario.subscriptions.values()},
        "actors": [],
    }
    readings = [
        {
            "type": scenario.sensors[one.sensor].attr,
            "id": one.id,
            "source": one.sensor,
            "timestamp": one.t * 1000,
            "value": one.v,
        }
        for one in scenario.readings
    ]
    return Material(
        network=read_rehearsed(network),
        specification=check_text(text_of(case)).demand(),
        events=sorted(readings, key=end_of),
        idle_ms=IDLE_MS,
    )


class Row(NamedTuple):
    """One run: events over all links, the most over one link as a part of the exact routers', and
    results that were found, missing, or not expected. `held` is `papers.holding`'s estimate, `led`
    what the exact routers send, probes included, where the rare leads; `moves` how often a task was
    moved.
    """

    case: Case
    least: int
    held: int
    led: int
    exact: int
    events: int
    worst: float
    found: int
    expected: int
    surplus: int
    moves: int

    def cells(self, shape: Shape) -> str:
        """Return it as a row of a table."""
        scenario = self.case.scenario
        said = (
            self.case.name,
            shape.brokers,
            len(scenario.sensors),
            len(scenario.subscriptions),
            f"{len(scenario.readings):,}",
            f"{self.least:,}",
            f"{self.held:,}",
            f"{self.led:,}",
            f"{self.exact:,}",
            f"{self.events:,}",
            f"{self.events / self.exact:.3f}",
            f"{self.worst:.3f}",
            f"{self.events / self.least:.3f}",
            f"{self.found:,} of {self.expected:,}",
            self.surplus,
            self.moves,
        )
        return f"| {' | '.join(map(str, said))} |"


HEAD = (
    "| setting | brokers | sensors | subscriptions | readings | least | held with hindsight |"
    " routers with leads | exact routers | here | / exact | worst link | / least | results |"
    " surplus | moves |\n" + "|---" * 16 + "|"
)


def compare(case: Case, pace: float, *, real: bool, coordinated: bool = False) -> Row:
    """Run a case, on processes if it is to be `real`, and hold it to the exact routers.

    These are told where subscriptions ran when; leads and what is held, where they ran in the end.
    """
    material = material_of(case)
    if real:
        ran = run_on_processes(material, pace, coordinated=coordinated)
        events, results, moves, placed = ran.events, ran.results, ran.moves, ran.placed
    else:
        if coordinated:
            paced = {"moment_ms": round(1000 / pace), "coordinator": CoordinatorSettings()}
            material = replace(material, **paced)
        outcome = rehearse(material)
        events = {link: carried.events for link, carried in outcome.links.items()}
        results = [_identity(json.loads(one.row.payload)) for one in outcome.detected]
        moves, placed = outcome.moves, outcome.placed
    placed = placed or [(0, {})]
    exact = over_time(case.scenario, placed, _sent_exactly)
    least = over_time(case.scenario, placed, _sent_at_least)
    case = case._replace(scenario=_placed(case.scenario, placed[-1][1]))
    wanted = needed(case.scenario)
    led = simulate(case.scenario, HOLD_AND_PROBE, wanted)
    if led.delivered != simulate(case.scenario, FILTER_SPLIT_FORWARD, wanted).delivered:
        raise RuntimeError(f"{case.name}: leads change what is delivered")
    engine = Engine(text_of(case), None)
    engine.push(material.events)
    expected = {_identity(msgspec.to_builtins(one)) for one in engine.finish()}
    shares = [count / max(1, exact[link]) for link, count in events.items()]
    return Row(
        case,
        least.total(),
        estimate(case.scenario).held,
        led.publication,
        exact.total(),
        sum(events.values()),
        max(shares),
        len(expected.intersection(results)),
        len(expected),
        len(results) - len(expected.intersection(results)),
        moves,
    )


def over_time(scenario: PropagationScenario, placed: Placed, sent: Sent) -> Counter[Link]:
    """Count what is sent over links, where subscriptions run from so many readings on.

    As if they had always run there, but only of what travels while they do.
    """
    counts: Counter[Link] = Counter()
    ends = [*[begin for begin, _ in placed[1:]], len(scenario.readings)]
    for (begin, hosts), end in zip(placed, ends, strict=True):
        there = _placed(scenario, hosts)
        counts.update(sent(there._replace(readings=there.readings[:end])))
        if begin:
            counts.subtract(sent(there._replace(readings=there.readings[:begin])))
    return counts


def _sent_exactly(scenario: PropagationScenario) -> Counter[Link]:
    exact = simulate(scenario, FILTER_SPLIT_FORWARD, needed(scenario))
    links = exact.by_link.items()
    return Counter({(f"n{a}", f"n{b}"): count for (a, b), (_, count) in links})


def _sent_at_least(scenario: PropagationScenario) -> Counter[Link]:
    return Counter({("", ""): lower_bound(scenario, needed(scenario))})


def _placed(scenario: PropagationScenario, hosts: Mapping[str, str]) -> PropagationScenario:
    """Return a scenario with subscriptions at the brokers that ran them."""
    placed = {
        name: one._replace(node=int(hosts[name][1:])) if name in hosts else one
        for name, one in scenario.subscriptions.items()
    }
    return scenario._replace(subscriptions=placed)


def _identity(said: dict[str, Any]) -> tuple[str, str]:
    return str(said["subscription"]), str(said["id"])


def main(arguments: list[str] | None = None) -> int:
    """Compare; 1 where a result is missing or surplus."""
    parser = argparse.ArgumentParser(prog="python -m bench.settings", description=__doc__)
    parser.add_argument("settings", nargs="*", default=[one.name for one in PAPER])
    parser.add_argument("--brokers", type=int, choices=list(SHAPES), default=6)
    parser.add_argument("--real", action="store_true", help="processes, not a virtual world")
    parser.add_argument(
        "--pace",
        type=float,
        default=2.0,
        help="moments a second, where time is not the recording's",
    )
    parser.add_argument("--coordinator", action="store_true", help="brokers that plan, too")
    parser.add_argument("--keep", type=Path, help="a folder for what `headwater simulate` reads")
    said = parser.parse_args(arguments)
    if not 0 < said.pace <= 1000:
        parser.error(f"--pace: found {said.pace:g}, expected more than 0, and 1000 at most")
    whole = True
    print(HEAD)
    with TemporaryDirectory() as folder:
        for name in said.settings:
            case = case_of(name, said.brokers, said.keep or Path(folder))
            row = compare(case, said.pace, real=said.real, coordinated=said.coordinator)
            print(row.cells(SHAPES[said.brokers][name]), flush=True)
            whole = whole and row.found == row.expected and not row.surplus
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
