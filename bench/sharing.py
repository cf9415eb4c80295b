"""What it saves that a definition runs once for all who need it: `python -m bench.sharing`.

Owns what is compared. Must not know how tasks are placed. Invariant: all ways give each
subscription the same results.

One stream of readings, and so many subscriptions to one definition. *own*: each has an engine, in
which the definition runs as well, as cells of several texts have. *sent*: each has an engine, and
the definition one more (in which the first subscription runs, too), from which its matches come as
bytes, in the form that they have in snapshots. *one*: all are in one engine, which nothing can be
below. CPU is in µs for each reading, all engines together, with all that an engine takes in made
into events there. What would travel to the place of each subscription is told in events and bytes:
readings, or else matches.

*At one broker* (`python -m bench.sharing broker`) a hundred texts of a hundred clients come one
after another while readings do, and each wants a hundredth of what one definition gives: *apart* it
has another name in each text, so that nothing is shared, *shared* the same. *Base* is the same core
with subscriptions to readings that nobody sends, which is no part of what may be saved. CPU is in
µs for each reading behind the last text, memory in kB (as Python counts it) in the end, base taken
off.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time

import msgspec

from broker.core.broker import Broker, BrokerOptions
from broker.core.intake import Intake, IntakeOptions
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import Specification, check_text
from tests.broker.engine.elsewhere import Apart, said

READINGS, SOURCES, BATCH = 6_000, 20, 50
EVERY_MS = 50
DEFINITIONS = {
    "filter": "define D(n) detect A(n > 90) assign n = A.n",
    "pair": "define D(n) detect A(n > 90) as a then B(n > 90) as b within 2 s assign n = a.n",
    "chain": "define D(n) detect A(n > 70) as a then B(n > 70) as b then A(n < 20) as c within 2 s"
    "\nassign n = a.n group by location",
    "window": "define D(avg) aggr every 10 s detect A assign avg = Avg(A.n) group by source",
}
FOLLOWERS = (2, 8)


def text_of(name: str, followers: int) -> str:
    """Return a definition and so many subscriptions to it."""
    told = [f"subscription S{n} from anna to x detect D" for n in range(followers)]
    return "\n".join(["event A(n: int)\nevent B(n: int)", DEFINITIONS[name], *told]) + "\n"


def readings() -> list[list[dict[str, object]]]:
    """Return the stream in batches."""
    draw, found = random.Random("sharing"), []
    for number in range(READINGS):
        place = draw.randrange(SOURCES)
        found.append(
            {
                "type": "AB"[number % 2],
                "id": f"e{number}",
                "timestamp": number * EVERY_MS,
                "source": f"s{place}",
                "location": f"room{place % 4}",
                "n": draw.randrange(100),
            }
        )
    return [found[at : at + BATCH] for at in range(0, READINGS, BATCH)]


class Measured:
    """One way: what it found, and the CPU that matching took."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.seconds = 0.0


def own(specification: Specification, alone: bool) -> Measured:
    """Run all subscriptions in one engine, or each in one of its own if `alone`."""
    graph = specification.graph
    groups = [[root] for root in graph.roots] if alone else [list(graph.roots)]
    measured = Measured()
    engines = [(intake_of(specification), Matcher(Limits())) for _ in groups]
    for (_, matcher), roots in zip(engines, groups, strict=True):
        for key in (*graph.active(roots), *roots):
            matcher.install(graph.tasks[key])
    for batch in readings():
        begun = process_time()
        found = []
        for intake, matcher in engines:
            events = intake.admit(intake.from_mappings(batch).events).events
            found.append(in_one_go(matcher.push(events, intake.watermark)))
        measured.seconds += process_time() - begun
        measured.results += [one for results in found for one in said(results)]
    return measured


def sent(specification: Specification) -> tuple[Measured, int, int]:
    """Run the definition in one engine and each subscription in another; (…, matches, bytes)."""
    graph, measured = specification.graph, Measured()
    definitions = graph.active(graph.roots)
    apart = [Apart(specification, set(definitions), 0, [root]) for root in graph.roots]
    first = apart[0]
    for one in apart:
        one.part()
    size_bytes = 0
    for batch in readings():
        begun = process_time()
        events = first.intake.admit(first.intake.from_mappings(batch).events).events
        first.whole.push(events, first.intake.watermark)
        told = first.take()
        found = [one.follow(told, [], first.intake.watermark) for one in apart]
        measured.seconds += process_time() - begun
        measured.results += [one for results in found for one in said(results)]
        size_bytes += sum([len(packed) for packed, _ in told if len(packed) > 1])
    matches = sum([stand_in.came for _, stand_in, _ in first.pairs])
    return measured, matches, size_bytes


def intake_of(specification: Specification) -> Intake:
    """Return what decodes the stream."""
    intake = Intake(IntakeOptions(lateness_ms=0), Limits())
    intake.declare([kind for kind in specification.event_types.values() if not kind.defined])
    return intake


TEXTS = 100
SUBMITTED_EACH = 20  # readings from one text to the next


def texts_at_broker(name: str, way: str) -> list[str]:
    """Return texts of which each wants little of one definition."""
    texts = []
    for number in range(TEXTS):
        defined = {"shared": "D", "apart": f"D{number}", "base": "D"}[way]
        definition = DEFINITIONS[name].replace("define D(", f"define {defined}(")
        value = "avg" if name == "window" else "n"
        detected = f"{defined}({value} = {number})" if way != "base" else f"C(n = {number})"
        texts.append(
            "event A(n: int)\nevent B(n: int)\nevent C(n: int)\n"
            f"{definition}\nsubscription S from client{number} to x detect {detected}\n"
        )
    return texts


def at_broker(name: str, way: str, measure: Callable[[], float]) -> tuple[float, Broker]:
    """Run all at one broker; what `measure` grew by from the last text on, and the broker."""
    broker = Broker(BrokerOptions(lateness_ms=0))
    texts, begun = texts_at_broker(name, way), measure()
    for number, reading in enumerate(each for batch in readings() for each in batch):
        now = int(str(reading["timestamp"])) + 1
        if texts and number % SUBMITTED_EACH == 0:
            broker.handle(SpecificationSubmitted("me", "1", texts.pop(0)), now)
            begun = begun if texts else measure()
        said = {key: value for key, value in reading.items() if key not in ("type", "source")}
        payload = Payload(str(reading["type"]), str(reading["source"]), json.dumps(said).encode())
        broker.handle(EventsReceived((payload,)), now)
    return measure() - begun, broker


def memory(name: str, way: str) -> float:
    """Return how many bytes a broker with all texts takes in the end."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    _, broker = at_broker(name, way, lambda: 0.0)
    gc.collect()
    found = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert broker.subscriptions
    return float(found)


def compare_at_broker(names: list[str]) -> None:
    """Print what a hundred texts cost at one broker, apart and shared."""
    ways = ("base", "apart", "shared")
    behind = READINGS - TEXTS * SUBMITTED_EACH
    for name in names:
        cpu = {}
        results = {}
        for way in ways:
            seconds, broker = at_broker(name, way, process_time)
            cpu[way] = seconds / behind * 1e6
            results[way] = sorted((one.subscriber, one.results) for one in broker.subscriptions)
            instances = len(broker.catalogue.definitions)
        if results["apart"] != results["shared"]:
            raise SystemExit(f"{name}: other results")
        kb = {way: memory(name, way) / 1e3 for way in ways}
        saved = (cpu["apart"] - cpu["base"]) / (cpu["shared"] - cpu["base"])
        less = (kb["apart"] - kb["base"]) / (kb["shared"] - kb["base"])
        print(
            f"{name}, {TEXTS} texts at one broker: CPU base {cpu['base']:.1f}, apart"
            f" {cpu['apart'] - cpu['base']:.1f}, shared {cpu['shared'] - cpu['base']:.1f} µs"
            f" ({saved:.1f} ×); memory base {kb['base']:.0f}, apart {kb['apart'] - kb['base']:.0f},"
            f" shared {kb['shared'] - kb['base']:.0f} kB ({less:.1f} ×);"
            f" {instances} of {TEXTS} instances left"
        )


def main(names: list[str]) -> None:
    """Compare the ways for all definitions, or for what is named."""
    if names[:1] == ["broker"]:
        compare_at_broker(names[1:] or list(DEFINITIONS))
        return
    stream = [each for batch in readings() for each in batch]
    for name in names or DEFINITIONS:
        wanted = "AB" if " B(" in DEFINITIONS[name] else "A"
        travelling = [each for each in stream if str(each["type"]) in wanted]
        size_bytes = sum([len(msgspec.msgpack.encode(each)) for each in travelling])
        for followers in FOLLOWERS:
            specification = check_text(text_of(name, followers)).demand()
            one, each = own(specification, alone=False), own(specification, alone=True)
            shared, matches, shared_bytes = sent(specification)
            if not sorted(one.results) == sorted(each.results) == sorted(shared.results):
                raise SystemExit(f"{name}, {followers}: other results")
            cpu = [way.seconds / READINGS * 1e6 for way in (each, shared, one)]
            print(
                f"{name}, {followers} subscriptions, {len(one.results)} results: CPU"
                f" own {cpu[0]:.1f}, sent {cpu[1]:.1f}, one {cpu[2]:.1f} µs; to each place"
                f" {len(travelling)} readings ({size_bytes} bytes) or"
                f" {matches} matches ({shared_bytes} bytes)"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
