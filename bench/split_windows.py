"""What travels where windows are split, and where they are not: `python -m bench.split_windows`.

Owns the network and how the table is laid out. Must not know how windows are merged. Invariant:
both runs of a case have the same network, text and events, and find the same results; figures are
the same on every machine that has the same zlib.

Real cores in a virtual world, without faults. A line of brokers, `home` at one end and four brokers
with sources at the other, each of them linked to the last of the line:

    home - hub - far - a, b, c, d

Tasks run where the brokers decide. Counted are all bytes of all frames over all links in the last
four minutes of six: events, rows, results, snapshots, watermarks and what brokers say besides.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from broker.core.broker import BrokerOptions
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.messages import EventsReceived, Payload, SourceAdvertised, SpecificationSubmitted
from broker.engine.limits import Limits
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.checks import noted_by_cells
from simulation.network.links import Link
from simulation.network.planned import PlannedPlace
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
READY_S = 20
RUN_S = 360
COUNTED_S = 240
LINE = ("home", "hub", "far")
LEAVES = ("a", "b", "c", "d")
LATENESS_MS = 1_000
TEXT = """
event Temp(val: float)
define Mean(n, mean, top) aggr every {every} s
detect Temp
assign n = Count(Temp), mean = Avg(Temp.val), top = Max(Temp.val)
{group}
subscription S from x to y
{detect}
"""
ASKS = {"each": "detect Mean(mean > 0) as m", "pairs": "detect Mean as m then[..1 min] Mean as o"}
GROUPS = {"one": "", "per place": "group by location"}


class Case(Struct, frozen=True):
    """A load: events a second of all sources together, from so many; groups; who asks for them."""

    rate: int
    sources: int
    every_s: int
    group: str
    asks: str = "each"


CASES = (
    Case(4, 8, 10, "one"),
    Case(40, 40, 10, "one"),
    Case(40, 40, 60, "one"),
    Case(40, 40, 60, "one", "pairs"),
    Case(40, 40, 10, "per place"),
    Case(40, 40, 10, "per place", "pairs"),
    Case(200, 40, 10, "per place"),
    Case(200, 200, 60, "per place"),
)
PLACES = 4  # at each broker, some of them at two


class Came(Struct, frozen=True):
    """What was counted: bytes a second over all links, and what was found."""

    bytes_per_s: float
    results: frozenset[str]
    host: str
    conflicts: int


class Line(Struct):
    """The brokers of a run."""

    world: World
    places: dict[str, PlannedPlace]
    links: list[Link]


def made(*, split: bool) -> Line:
    """The network, begun."""
    world = World(Random(1), BEGIN_MS)
    places = {name: _place(world, name, split=split) for name in (*LINE, *LEAVES)}
    pairs = [("home", "hub"), ("hub", "far"), *(("far", leaf) for leaf in LEAVES)]
    links = []
    for one, other in pairs:
        link = Link(world, places[one], places[other], 10)
        places[one].links[other] = places[other].links[one] = link
        links.append(link)
    for place in places.values():
        place.start()
    return Line(world, places, links)


def _place(world: World, name: str, *, split: bool) -> PlannedPlace:
    options = BrokerOptions(
        name=name, networked=True, cells=True, split_windows=split, lateness_ms=LATENESS_MS
    )
    machine = Machine(Disk(Random(1)), SimulatedOutbox(), options, Limits(), 0, 0, 5_000, 5_000_000)
    return PlannedPlace(world, machine, CoordinatorSettings(measure_ms=20_000))


def tried(case: Case, *, split: bool) -> Came:
    """One run."""
    line, draw = made(split=split), Random(7)
    world = line.world
    for number in range(case.sources):
        said = {"types": ["Temp"], "location": f"hall-{(number // 2) % (2 * PLACES)}"}
        at = line.places[LEAVES[number % len(LEAVES)]]
        at.tell(SourceAdvertised(f"s{number}", json.dumps(said).encode()), {})
    text = TEXT.format(every=case.every_s, group=GROUPS[case.group], detect=ASKS[case.asks])
    line.places["home"].tell(SpecificationSubmitted("x", "r", text), {})
    begin_ms = BEGIN_MS + READY_S * 1_000
    world.run(begin_ms)
    for number in range(case.rate * RUN_S):
        at_ms = begin_ms + number * 1_000 // case.rate
        world.at(at_ms, partial(_send, line, case, number, round(draw.uniform(1, 40), 1)))
    world.run(begin_ms + (RUN_S - COUNTED_S) * 1_000)
    before = _bytes(line)
    world.run(begin_ms + RUN_S * 1_000)
    counted = _bytes(line) - before
    world.run(world.now + 120_000)
    return _came(line, counted / COUNTED_S)


def _send(line: Line, case: Case, number: int, value: float) -> None:
    source = number % case.sources
    reading = {"id": f"s{source}-{number}", "timestamp": line.world.now, "val": value}
    payload = Payload("Temp", f"s{source}", json.dumps(reading).encode())
    line.places[LEAVES[source % len(LEAVES)]].tell(EventsReceived((payload,)), {})


def _bytes(line: Line) -> int:
    return sum(link.load(name).size_bytes for link in line.links for name in link.ends)


def _came(line: Line, bytes_per_s: float) -> Came:
    rows = line.places["home"].machine.outbox.rows
    found = [json.loads(row.payload) for row in rows]
    said = frozenset(json.dumps([one["id"], one["values"]]) for one in found)
    process = line.places["home"].process
    assert process is not None
    cell = process.network.cells()[0]
    conflicts = sum(
        noted_by_cells(place.process, "split_conflicts")
        for place in line.places.values()
        if place.process is not None
    )
    return Came(bytes_per_s, said, cell.host, conflicts)


def main(arguments: list[str]) -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="the first two cases alone")
    quick = options.parse_args(arguments).quick
    heads = ["events/s", "sources", "window", "groups", "asked for"]
    heads += ["whole, bytes/s", "split, bytes/s", "of it"]
    print(f"| {' | '.join(heads)} | ran at |")
    print(f"|{' ---: |' * len(heads)} --- |")
    for case in CASES[:2] if quick else CASES:
        whole, split = tried(case, split=False), tried(case, split=True)
        if whole.results != split.results or not whole.results:
            raise SystemExit(f"{case}: {len(whole.results ^ split.results)} other results")
        share = f"{split.bytes_per_s / whole.bytes_per_s:.1%}"
        cells = [case.rate, case.sources, f"{case.every_s} s", case.group, case.asks]
        cells += [f"{whole.bytes_per_s:,.0f}", f"{split.bytes_per_s:,.0f}", share]
        cells.append(f"{whole.host}, {split.host}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
