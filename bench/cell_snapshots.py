"""What snapshots of tasks that run away from home cost on the wire, against what comes in there.

Owns the networks that are tried and how the table is laid out. Must not know how a snapshot is
made. Invariant: all figures are the same on every machine that has the same zlib, which decides how
small a snapshot is pressed.

    python -m bench.cell_snapshots [--quick]

Two brokers over one link, in virtual time on the real cores: all sources are at one of them, the
submission's home is the other, and its tasks run where the sources are. What travels home is
results and snapshots; with the tasks at home all of the input would. *Before* is what it was when a
snapshot held the last thousand events or more, to know repeats, and was not pressed.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from random import Random
from unittest import mock

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from broker.core.broker import BrokerOptions
from broker.core.cells import cell
from broker.core.messages import (
    EventsReceived,
    Payload,
    SourceAdvertised,
    SpecificationSubmitted,
)
from broker.core.networked.networked import NetworkedBroker
from broker.engine.limits import Limits
from broker.network.frames.messages import CellPlaced
from broker.network.placement.cell_view import CellCounts
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
SOURCES = 10  # half of them of each type
READY_S = 20
RUN_S = 120
RATES = (2, 10, 100, 500)
TYPES = ("Temp", "Humidity")
DECLARED = "".join(f"event {name}(val: float)\n" for name in TYPES)
TEXTS = {
    "pairs, 10 ms": """
subscription S from x to y
detect[recent] Temp as t and Humidity as h within 10 ms where t.val > h.val + 8
""",
    "sequence, 5 s": """
subscription S from x to y
detect[recent] Temp(val > 8) as t then[..5 s] Humidity(val < 1) as h
""",
    "means, 10 s": """
define Mean(m) aggr every 10 s
detect Temp
assign m = Avg(Temp.val)
group by source
subscription S from x to y
detect Mean(m > 6) as m
""",
    "all pairs, 2 s": """
subscription S from x to y
detect Temp as t and Humidity as h within 2 s where t.val > h.val + 9
""",
    "filter": """
subscription S from x to y
detect Temp(val > 9)
""",
}


class Found(Struct):
    """What was counted of one run: bytes a second, and the bytes of a snapshot."""

    came: float
    saved: float
    size: int


class Pair:
    """Two brokers; see the module."""

    def __init__(self, text: str) -> None:
        self.world = World(Random(1), BEGIN_MS)
        self.home, self.host = self._place("home"), self._place("host")
        link = Link(self.world, self.home, self.host, 10)
        self.home.links["host"] = self.host.links["home"] = link
        for place in (self.home, self.host):
            place.start()
        for number in range(SOURCES):
            said = json.dumps({"types": [TYPES[number % 2]]}).encode()
            self.host.tell(SourceAdvertised(f"s{number}", said), {})
        self.home.tell(SpecificationSubmitted("x", "r", DECLARED + text), {})
        self.world.run(BEGIN_MS + READY_S * 500)
        self.home.hear(CellPlaced("home/1", "host"))
        self.world.run(BEGIN_MS + READY_S * 1_000)

    def _place(self, name: str) -> Place:
        options = BrokerOptions(name=name, networked=True, cells=True)
        machine = Machine(
            Disk(Random(1)), SimulatedOutbox(), options, Limits(), 0, 0, 5_000, 5_000_000
        )
        return Place(self.world, machine)

    def counts(self) -> CellCounts:
        """Of the cell, since it began at its host."""
        assert self.host.process is not None
        (one,) = self.host.process.network.cells()
        assert one.counts is not None, one
        return one.counts

    def send(self, number: int, draw: Random) -> None:
        """One reading."""
        reading = {"id": f"r{number}", "timestamp": self.world.now, "val": draw.uniform(0, 10)}
        source = number % SOURCES
        payload = Payload(TYPES[source % 2], f"s{source}", json.dumps(reading).encode())
        self.host.tell(EventsReceived((payload,)), {})


def tried(text: str, rate: int, run_s: int) -> Found:
    """One run; its first half is for warming up."""
    pair, draw = Pair(text), Random(7)
    begin_ms = BEGIN_MS + READY_S * 1_000
    for number in range(rate * run_s):
        pair.world.at(begin_ms + number * 1_000 // rate, partial(pair.send, number, draw))
    pair.world.run(begin_ms + run_s * 500)
    before = said(pair.counts())
    pair.world.run(begin_ms + run_s * 1_000)
    came, saved, count = (now - then for now, then in zip(said(pair.counts()), before, strict=True))
    seconds = run_s / 2
    return Found(came / seconds, saved / seconds, round(saved / max(count, 1)))


def said(one: CellCounts) -> tuple[int, int, int]:
    """Bytes that came, and of snapshots; and how many of these."""
    came = sum(load.size_bytes for load in one.inputs.values())
    return came, one.saved.size_bytes, one.saved.events


def with_all(text: str, rate: int, run_s: int) -> Found:
    """The same with the whole memory for repeats in each snapshot, and nothing pressed."""
    with (
        mock.patch.object(cell, "pressed", lambda state: state),
        mock.patch.object(NetworkedBroker, "forget_what_is_late", return_value=None),
    ):
        return tried(text, rate, run_s)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="fewer rates, a minute each")
    quick = options.parse_args().quick
    columns = ("in, bytes/s", "snapshot, bytes", "before", "snapshots, bytes/s", "before")
    print(f"| task | events/s | {' | '.join(columns)} |")
    print(f"| --- | ---: |{' ---: |' * len(columns)}")
    for name, text in TEXTS.items():
        for rate in RATES[:2] if quick else RATES:
            run_s = RUN_S // 2 if quick else RUN_S
            after, before = tried(text, rate, run_s), with_all(text, rate, run_s)
            cells = [f"{after.came:,.0f}", f"{after.size:,}", f"{before.size:,}"]
            cells += [f"{after.saved:,.0f}", f"{before.saved:,.0f}"]
            print(f"| {name} | {rate} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
