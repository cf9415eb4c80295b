"""The experiment of paper 000 on brokers' cores: detection at the nodes, or all to the sink.

Owns the network of nodes, the readings, the texts and the page. Must not know how a rehearsal runs.
Invariant: the same seed gives the same figures, whatever the machine; every message and byte counts
that a broker says to another, its control included.

    python -m experiments.motes [--seed N] [--processes N] [--page docs/papers-motes.md]

25 nodes stand in a square, 5 by 5, and the sink is in a corner. Each reports an event a second for
a minute, of one of five types. Wanted are sequences of 2, 3 and 5 of them at a node, in the paper's
three modes.
"""

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

import headwater
from experiments.figures import show_figures, table_lines

SIDE: Final = 5
NODES: Final = SIDE * SIDE
SECONDS: Final = 60
KINDS: Final = "ABCDE"
MODEL: Final = Path(__file__).resolve().parent.parent / "examples/propagation/mote.toml"
LENGTHS: Final = (2, 3, 5)
MODES: Final = ("first", "recent", "unrestricted")
IN_NODES, AT_SINK, CENTRAL = "in the nodes", "as filter-split-forward", "all to the sink"


class MoteRun(NamedTuple):
    """One run: how long the sequence is, in which mode, and where it is detected."""

    length: int
    mode: str
    place: str
    seed: int


class MoteFigures(NamedTuple):
    """What came of a run; of energy that of all nodes, and of the sink, in millijoules."""

    run: MoteRun
    messages: int
    size_bytes: int
    content_bytes: int
    energy_mj: float
    sink_mj: float
    results: int
    memory_bytes: int


def runs(seed: int) -> Iterator[MoteRun]:
    """Yield all runs: the mode matters where detection is, in the nodes."""
    for length in LENGTHS:
        for mode in MODES:
            yield MoteRun(length, mode, IN_NODES, seed)
        yield MoteRun(length, "unrestricted", AT_SINK, seed)
        yield MoteRun(length, "unrestricted", CENTRAL, seed)


def network(run: MoteRun) -> dict[str, Any]:
    """Return the nodes, each linked with the next toward the sink in the corner."""
    names = [f"n{number}" for number in range(NODES)]
    links = [
        {"a": names[number], "b": names[number - 1 if number % SIDE else number - SIDE]}
        for number in range(1, NODES)
    ]
    homes = {f"Seq{number}": names[number] for number in range(NODES)}
    return {
        "name": "motes",
        "nodes": [{"id": name} for name in names],
        "links": links,
        "sources": [
            {"source": f"s{number}", "broker": names[number], "location": names[number]}
            for number in range(NODES)
        ],
        "home": names[0],
        "homes": homes if run.place == IN_NODES else {},
        "actors": [{"actor": "sink", "broker": names[0]}],
    }


def text_of(run: MoteRun) -> str:
    """Return the sequence at each node, and for the sink that gets all events, these as well."""
    lines = [f"event {kind}(n: int)" for kind in KINDS]
    for number in range(NODES):
        steps = " then ".join(
            f'{kind}(location = "n{number}") as {kind.lower()}' for kind in KINDS[: run.length]
        )
        context = "" if run.mode == "unrestricted" else f"[{run.mode}]"
        lines += [
            f"subscription Seq{number} seq 1 from paper to sink",
            f"  detect{context} {steps} within 10 s",
        ]
    if run.place == CENTRAL:
        every = "subscription All{0} seq 1 from paper to desk detect {0} as e".format
        lines += [every(kind) for kind in KINDS]
    return "\n".join(lines) + "\n"


def events(run: MoteRun) -> list[dict[str, Any]]:
    """Return an event a second of each node; the same whatever is detected and where."""
    draw = random.Random(run.seed)
    return [
        {
            "type": draw.choice(KINDS),
            "id": f"{second}-{number}",
            "source": f"s{number}",
            "location": f"n{number}",
            "timestamp": 1_700_000_000_000 + 1000 * second + draw.randrange(1000),
            "n": draw.randrange(100),
        }
        for second in range(SECONDS)
        for number in range(NODES)
    ]


def figures(run: MoteRun) -> MoteFigures:
    """Rehearse a run, and count."""
    from headwater.cli import main as command

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "spec.hw").write_text(text_of(run), encoding="utf-8")
        (folder / "network.json").write_text(json.dumps(network(run)), encoding="utf-8")
        lines = "".join(json.dumps(event) + "\n" for event in events(run))
        (folder / "events.jsonl").write_text(lines, encoding="utf-8")
        words = ["simulate", "--spec", str(folder / "spec.hw")]
        words += ["--network", str(folder / "network.json")]
        words += ["--events", str(folder / "events.jsonl"), "--energy", str(MODEL)]
        words += ["--output", str(folder / "report.json")]
        with contextlib.redirect_stdout(io.StringIO()):
            status = command(words)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if status != 0:
        raise RuntimeError(f"{run}: the rehearsal ended with {status}")
    links = report["links"].values()
    energy = report["energy"]
    return MoteFigures(
        run,
        sum(link["messages"] for link in links),
        sum(link["bytes"] for link in links),
        sum(link["events_bytes"] + link["results_bytes"] for link in links),
        1000 * energy["total_j"],
        1000 * energy["brokers"]["n0"]["total_j"],
        sum(subscription["found"] for subscription in report["subscriptions"].values()),
        memory(run),
    )


def memory(run: MoteRun) -> int:
    """Return the most bytes of state that a node with a sequence has, or the sink with all."""
    text = text_of(run)
    if run.place == IN_NODES:
        lines = text.splitlines()[: len(KINDS) + 2]  # the types, and the sequence of node 0
        text = "\n".join(lines) + "\n"
    engine = headwater.Engine(text, lateness_ms=0)
    most = 0
    for event in sorted(events(run), key=lambda event: event["timestamp"]):
        if run.place != IN_NODES or event["source"] == "s0":
            engine.push([event])
            most = max(most, len(engine.state()))
    return most


def page(seed: int, processes: int) -> str:
    """Return the tables of the page."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        made = list(pool.map(figures, runs(seed)))
    lines = [f"{NODES} nodes, {SECONDS} s, seed {seed}; each run finds what a replay finds.", ""]
    head = ["length", "mode", "detected", "messages", "bytes", "of events and results"]
    head += ["energy, mJ", "at the sink", "state, bytes", "results"]
    rows = [
        [
            *(str(each.run.length), each.run.mode, each.run.place),
            *(f"{each.messages:,}", f"{each.size_bytes:,}", f"{each.content_bytes:,}"),
            *(f"{each.energy_mj:,.0f}", f"{each.sink_mj:,.0f}"),
            *(f"{each.memory_bytes:,}", f"{each.results:,}"),
        ]
        for each in made
    ]
    lines += table_lines(head, rows)
    lines += ["", "In the nodes beside all to the sink, unrestricted:", ""]
    by_run = {each.run: each for each in made}
    shares = []
    for length in LENGTHS:
        inside = by_run[MoteRun(length, "unrestricted", IN_NODES, seed)]
        central = by_run[MoteRun(length, "unrestricted", CENTRAL, seed)]
        pairs = (
            (inside.messages, central.messages),
            (inside.size_bytes, central.size_bytes),
            (inside.content_bytes, central.content_bytes),
            (inside.energy_mj, central.energy_mj),
            (inside.sink_mj, central.sink_mj),
        )
        shares.append([str(length), *(f"{100 * part / whole:.0f} %" for part, whole in pairs)])
    head = ["length", "messages", "bytes", "of events and results", "energy", "at the sink"]
    lines += table_lines(head, shares)
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the tables, or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    show_figures(page(options.seed, options.processes), options.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
