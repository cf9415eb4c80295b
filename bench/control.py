"""What control costs beside events: `python -m bench.control [--seed N] [--stand-in]`.

Owns the scene and what is compared. Must not know how progress travels. Invariant: the network, the
readings and the text hinge on the seed alone; every message and byte is counted, acknowledgements
and signs of life of links included.

24 brokers with a sensor each and a sink are a random tree (each is linked to one that was drawn
before). Each sensor sends A, B or C, drawn each time, with a value in [0, 1); the sink asks for A
then B then C, all above 0.9, by source. Beside it: all readings sent singly to the sink over the
same links, packed as brokers pack an event, each a message of the link, and no acknowledgement. The
default seed draws a tree of the depth with which this was first measured: 88 hops for 24 readings.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import count
from random import Random
from statistics import median
from typing import NamedTuple

import msgspec

from broker.engine.ingest.event_bytes import packed, unpacked
from broker.network.session.frames import DATA_BYTES
from language import check_text
from simulation.rehearsal.material import Material, end_of
from simulation.rehearsal.network import read_rehearsed
from simulation.rehearsal.run import less, rehearse

BROKERS = 24
DEPTH = 88  # hops from all brokers to the sink
BEGIN_MS = 1_700_000_000_000
TEXT = """event A(v: float)
event B(v: float)
event C(v: float)
subscription Steps from user to user
detect[first] A(v > 0.9) then B(v > 0.9) then C(v > 0.9) within 60 s group by source
"""
CASES = (("one reading a second", 1_000, 120_000), ("one a minute", 60_000, 1_200_000))


class Tree(NamedTuple):
    """By broker its neighbour toward the sink, which is 0; how deep each is."""

    parents: dict[int, int]
    depths: dict[int, int]


def main(arguments: list[str] | None = None) -> None:
    """Measure both cases."""
    parser = argparse.ArgumentParser(prog="python -m bench.control", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the tree and the readings")
    stands = 'each home has a neighbour stand in for it, as with `stand_in = "*"`'
    parser.add_argument("--stand-in", action="store_true", help=stands)
    parsed = parser.parse_args(arguments)
    seed = parsed.seed
    if seed is None:
        seed = next(seed for seed in count(1) if sum(tree(seed).depths.values()) == DEPTH)
    for name, period_ms, lasts_ms in CASES:
        stand_in = "*" if parsed.stand_in else ""
        material = replace(scene(seed, period_ms, lasts_ms), stand_in=stand_in)
        _show(name, seed, material)


def tree(seed: int) -> Tree:
    """Draw a tree."""
    draw = Random(seed)
    parents = {number: draw.randrange(number) for number in range(1, BROKERS + 1)}
    depths = {0: 0}
    for number, parent in parents.items():
        depths[number] = depths[parent] + 1
    return Tree(parents, depths)


def scene(seed: int, period_ms: int, lasts_ms: int) -> Material:
    """Draw the readings of each sensor, whose phase is drawn as well."""
    draw = Random(f"{seed} {period_ms}")
    phases = {number: draw.randrange(period_ms) for number in range(1, BROKERS + 1)}
    readings = [
        {
            "type": draw.choice("ABC"),
            "id": f"{number}-{turn}",
            "source": f"s{number}",
            "timestamp": BEGIN_MS + turn * period_ms + phases[number],
            "v": round(draw.random(), 3),
        }
        for turn in range(lasts_ms // period_ms)
        for number in range(1, BROKERS + 1)
    ]
    links = tree(seed).parents.items()
    network = {
        "name": "control",
        "nodes": [{"id": name(number)} for number in range(BROKERS + 1)],
        "links": [{"a": name(low), "b": name(high), "delay_ms": 5} for low, high in links],
        "sources": [{"source": f"s{n}", "broker": name(n)} for n in range(1, BROKERS + 1)],
        "home": name(0),
        "homes": {"Steps": name(0)},
        "actors": [],
    }
    return Material(
        network=read_rehearsed(network),
        specification=check_text(TEXT).demand(),
        events=sorted(readings, key=end_of),
    )


def name(number: int) -> str:
    """Return a broker's name."""
    return f"b{number}" if number else "sink"


def singly(seed: int, material: Material) -> tuple[int, int]:
    """Return the messages and bytes of all readings sent to the sink, each by itself."""
    depths = tree(seed).depths
    messages = size_bytes = 0
    for said in material.events:
        hops = depths[int(said["source"][1:])]
        messages += hops
        size_bytes += hops * DATA_BYTES + hops * len(
            packed(unpacked(msgspec.msgpack.encode([said])))
        )
    return messages, size_bytes


def _show(case: str, seed: int, material: Material) -> None:
    outcome = rehearse(material)
    messages, size_bytes = singly(seed, material)
    late_ms = sorted(one.at_ms - json.loads(one.row.payload)["end"] for one in outcome.detected)
    print(f"\n{case}, seed {seed}: singly {messages:,} messages, {size_bytes:,} bytes")
    before, until, _ = outcome.kinds
    run = less(until, before)
    for what, kinds in (("getting ready", before), ("while readings come", run)):
        print(f"{what}:")
        for kind, row in kinds.items():
            if row["messages"] or row["bytes"]:
                print(f"  {kind:18}{row['messages']:>8,}{row['bytes']:>10,}")
    for what, kinds in (("while readings come", run), ("from the beginning", until)):
        sent = sum(row["messages"] for row in kinds.values())
        sent_bytes = sum(row["bytes"] for row in kinds.values())
        print(
            f"{what}: {sent:,} messages ({sent / messages:.2f} x), {sent_bytes:,} bytes"
            f" ({sent_bytes / size_bytes:.2f} x)"
        )
    if late_ms:
        p99 = late_ms[min(len(late_ms) - 1, len(late_ms) * 99 // 100)]
        print(f"{len(late_ms)} results, p50 {median(late_ms):.0f} ms after their end, p99 {p99} ms")


if __name__ == "__main__":
    main()
