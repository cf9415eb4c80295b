"""What it would save that a definition runs once for all who need it: `python -m bench.sharing`.

Owns what is compared. Must not know how tasks are placed. Invariant: all ways give each
subscription the same results.

One stream of readings, and so many subscriptions to one definition. *own*: each has an engine, in
which the definition runs as well, as cells of several texts have. *sent*: each has an engine, and
the definition one more (in which the first subscription runs, too), from which its matches come as
bytes, in the form that they have in snapshots. *one*: all are in one engine, which nothing can be
below. CPU is in µs for each reading, all engines together, with all that an engine takes in made
into events there. What would travel to the place of each subscription is told in events and bytes:
readings, or else matches.
"""

from __future__ import annotations

import random
import sys
from time import process_time

import msgspec

from broker.core.intake import Intake, IntakeOptions
from broker.engine.limits import Limits
from broker.engine.runtime.matcher import Matcher
from broker.engine.runtime.slices import in_one_go
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


def main(names: list[str]) -> None:
    """Compare the ways for all definitions, or for what is named."""
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
