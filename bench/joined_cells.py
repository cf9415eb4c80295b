"""What it saves that texts which share a definition are one cell: `python -m bench.joined_cells`.

Owns three brokers in a line, whose time passes by hand, and what is compared on them. Must not know
how cells are joined. Invariant: either way each subscription finds as much.

Readings enter at the middle broker; texts come to the first, one after another, and run at the
last. *Apart* the definition has another name in each text, so that each is a cell of its own;
*joined* it is the same. Told is, for each reading once all are there, the CPU of all brokers in µs
and the bytes on both links, and the cells and instances of the definition in the end.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from time import process_time

from bench.sharing import DEFINITIONS, readings
from broker.core import messages
from broker.network.frames.messages import CellPlaced
from tests.broker.core.network.test_cells_placed import Net

TEXTS = 16
MEASURED = 600  # readings
EVERY_MS = 50


class CountingNet(Net):
    """The brokers, and the bytes that they sent each other."""

    sent_bytes = 0

    def step(self) -> None:
        """Count a frame as it is brought."""
        self.sent_bytes += len(self.under_way[0][2])
        super().step()


def text_of(name: str, number: int, *, joined: bool) -> str:
    """Return a text that wants a sixteenth of what the definition gives, or nearly so."""
    defined = "D" if joined else f"D{number}"
    definition = DEFINITIONS[name].replace("define D(", f"define {defined}(")
    value = "avg" if name == "window" else "n"
    low, high = number * 100 // TEXTS, (number + 1) * 100 // TEXTS
    detected = f"{defined}({value} >= {low} and {value} < {high})"
    return (
        "event A(n: int)\nevent B(n: int)\n"
        f"{definition}\nsubscription S from client{number} to x detect {detected}\n"
    )


def run(name: str, *, joined: bool) -> tuple[float, float, int, int, Counter[str]]:
    """Return CPU and bytes for each reading, cells and instances, and results by subscriber."""
    net = CountingNet("a", "b", "c")
    for number in range(TEXTS):
        text = text_of(name, number, joined=joined)
        net.tell("a", messages.SpecificationSubmitted(f"client{number}", "r", text))
        net.run(1_000)
        for cell in list(net.brokers["a"].durable.network.book.cells):
            net.tell("a", CellPlaced(cell, "c"))
        net.run(2_000)
    stream = [each for batch in readings() for each in batch]
    begun = process_time(), net.sent_bytes
    for number, reading in enumerate(stream[: 2 * MEASURED]):
        if number == MEASURED:  # what a definition held when others came is over
            begun = process_time(), net.sent_bytes
        values = {"timestamp": net.now, "id": reading["id"], "n": reading["n"]}
        data = json.dumps(values | {"location": reading["location"]}).encode()
        payload = messages.Payload(str(reading["type"]), str(reading["source"]), data)
        net.tell("b", messages.EventsReceived((payload,)))
        net.run(EVERY_MS)
    seconds, size_bytes = process_time() - begun[0], net.sent_bytes - begun[1]
    net.run(30_000)
    hosted = net.brokers["c"].hosted.values()
    instances = sum(len(cell.durable.catalogue.definitions) for cell in hosted)
    results = Counter([each["subscriber"] for each in net.found["a"]])
    each_us = seconds / MEASURED * 1e6
    return each_us, size_bytes / MEASURED, len(hosted), instances, results


def main(names: list[str]) -> None:
    """Compare both ways for all definitions, or for what is named."""
    for name in names or DEFINITIONS:
        ways = {joined: run(name, joined=joined) for joined in (False, True)}
        if ways[False][-1] != ways[True][-1]:
            raise SystemExit(f"{name}: other results")
        words = [
            f"{'joined' if joined else 'apart'} {cpu:.0f} µs, {size_bytes:.0f} bytes,"
            f" {cells} cells, {instances} instances"
            for joined, (cpu, size_bytes, cells, instances, _) in ways.items()
        ]
        print(f"{name}, {TEXTS} texts, {ways[True][-1].total()} results: {'; '.join(words)}")


if __name__ == "__main__":
    main(sys.argv[1:])
