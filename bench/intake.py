"""What an event costs at the door, in the filterer and in the core, beside bare msgspec decoding.

Owns the loads and the table. Must not know sockets. Invariant: every way is measured on the same
readings, of which none is a repeat or late, and bare decoding is measured beside them.

    python -m bench.intake [--quick] [--repeats N] [--json]
"""

import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import msgspec

from bench.report import Goal, Options, Report, Table, run
from broker.core.broker import Broker
from broker.core.intake import Intake, IntakeOptions
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.engine.filter.filterer import Filterer
from broker.engine.ingest.advertised import Advertisement
from language.specification import EventType
from language.tree import Comparison, Constant, Name

TYPE = EventType("Temp", {"val": "float", "humidity": "int"})
BEGIN_MS = 1_191_234_567_000
BATCH = 100
GOAL = 3.0
JUDGED = ("the whole way, 1 content", "the whole way, 8 contents", "the whole core, no result")
CONDITIONS = {"val > 1000": "no result", "val >= 0": "each event a result"}


NOTE = (
    "Of each way the fastest round. The whole way is decoding, admission and filtering; the whole "
    "core is that, matching and the making of results."
)


class Bare(msgspec.Struct, gc=False):
    """The least that a decoder has to make of a reading."""

    type: str
    id: str
    source: str
    location: str
    timestamp: int
    val: float


def reading(number: int, **fields: Any) -> dict[str, Any]:
    """A reading of about 130 bytes, one a millisecond."""
    said = {
        "type": "Temp",
        "id": f"t7-{number:06d}",
        "source": "t7",
        "location": "building-a/floor-1/room-12",
        "timestamp": BEGIN_MS + number,
        "val": number % 400 / 10,
    }
    said.update(fields)
    return {key: value for key, value in said.items() if value is not None}


def iso(number: int) -> str:
    """The reading's time as a text."""
    minutes, rest = divmod(number, 60_000)
    return f"2007-10-01T{minutes // 60:02d}:{minutes % 60:02d}:{rest / 1_000:06.3f}Z"


FORMS: dict[str, Callable[[int], dict[str, Any]]] = {
    "readings as most are": reading,
    "with an unknown key": lambda n: reading(n, unit="°C"),
    "with a position": lambda n: reading(n, position=[45.87, 7.17]),
    "placed by an advertisement": lambda n: reading(n, location=None),
    "ISO 8601 times": lambda n: reading(n, timestamp=iso(n)),
    "without an id": lambda n: reading(n, id=None),
    "20 sources interleaved": lambda n: reading(
        n, source=f"t{n // BATCH % 20}", timestamp=BEGIN_MS + n // (20 * BATCH) * BATCH + n % BATCH
    ),
}


def payloads(form: Callable[[int], dict[str, Any]], events: int, batch: int) -> list[bytes]:
    """The readings as payloads; a payload of one is an object, a larger one an array."""
    if batch == 1:
        return [msgspec.json.encode(form(number)) for number in range(events)]
    return [
        msgspec.json.encode([form(first + place) for place in range(batch)])
        for first in range(0, events, batch)
    ]


def best_ns(run: Callable[[], object], events: int, rounds: int) -> float:
    """Nanoseconds of CPU for an event, of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        began = process_time()
        run()
        best = min(best, process_time() - began)
    return best / events * 1e9


def run_through(decode: Callable[[bytes], object], stream: Sequence[bytes]) -> None:
    """Decode, and keep nothing."""
    for payload in stream:
        decode(payload)


def measured(make: Callable[[], Callable[[], object]], events: int, rounds: int) -> float:
    """The same where every round needs a fresh door."""
    return min(best_ns(make(), events, 1) for _ in range(rounds))


def conditions(contents: int) -> list[tuple[Comparison, ...]]:
    """Thresholds of which few readings pass the first and none the others."""
    return [
        (Comparison((Name("val"), Constant(39.85 + place)), (">",)),) for place in range(contents)
    ]


def door() -> Intake:
    """A door as a live broker has it."""
    options = IntakeOptions(lateness_ms=1_000, by_source=True, idle_timeout_ms=60_000)
    intake = Intake(options)
    intake.declare(TYPE)
    return intake


def whole_way(
    stream: Sequence[bytes], contents: int, *, admit: bool = True, topic: bool = True
) -> Callable[[], object]:
    """Decoding, and as asked admission and filtering by so many contents."""
    intake, filterer = door(), Filterer()
    intake.advertise(Advertisement(source="t7", location="building-a/floor-1/room-12"), 0)
    if not topic:
        intake.withdraw("t7", 0)
    for each in conditions(contents):
        filterer.add("Temp", each)
    type_name = "Temp" if topic else None
    source = "t7" if topic else None
    now = BEGIN_MS + 10**9

    def run() -> None:
        for payload in stream:
            decoded = intake.decode(payload, type_name=type_name, source=source, arrival_ms=now)
            if admit:
                admitted = intake.admit(decoded.events, now, source)
                if contents:
                    filterer.route(admitted.events)
                    intake.watermark("Temp", now)
        assert not intake.ledger.events.dropped

    return run


def core(stream: Sequence[bytes], condition: str) -> Callable[[], object]:
    """The whole core with one subscription, from payloads to effects."""
    broker = Broker()
    text = (
        "event Temp(val: float, humidity: int)\n"
        f"subscription Some from bench to bench detect Temp({condition})"
    )
    broker.handle(SpecificationSubmitted("bench", "1", text), BEGIN_MS)
    assert broker.subscriptions
    now = BEGIN_MS + 10**9

    def run() -> None:
        for payload in stream:
            broker.handle(EventsReceived((Payload("Temp", "t7", payload),)), now)
        broker.check_invariants()

    return run


def figures(events: int, rounds: int) -> list[tuple[str, float, float]]:
    """(way, nanoseconds an event, ratio to bare decoding) of each way."""
    rows: list[tuple[str, float, float]] = []
    usual = payloads(reading, events, BATCH)
    single = payloads(reading, events, 1)
    decode_all = msgspec.json.Decoder(list[Bare]).decode
    decode_one = msgspec.json.Decoder(Bare).decode

    def row(name: str, nanoseconds: float, bare: float) -> None:
        rows.append((name, nanoseconds, nanoseconds / bare))

    def of(stream: Sequence[bytes], contents: int, **how: bool) -> float:
        return measured(lambda: whole_way(stream, contents, **how), events, rounds)

    def of_core(stream: Sequence[bytes], condition: str) -> float:
        return measured(lambda: core(stream, condition), events, rounds)

    bare = best_ns(lambda: run_through(decode_all, usual), events, rounds)
    row("batches of 100: bare msgspec decoding", bare, bare)
    row("decoded", of(usual, 0, admit=False), bare)
    row("decoded and admitted", of(usual, 0), bare)
    row("the whole way, 1 content", of(usual, 1), bare)
    for contents in (8, 1_000):
        row(f"the whole way, {contents:,} contents", of(usual, contents), bare)
    for condition, name in CONDITIONS.items():
        row(f"the whole core, {name}", of_core(usual, condition), bare)
    for name, form in FORMS.items():
        topic = name != "20 sources interleaved"
        row(f"1 content, {name}", of(payloads(form, events, BATCH), 1, topic=topic), bare)
    alone = best_ns(lambda: run_through(decode_one, single), events, rounds)
    row("single events: bare msgspec decoding", alone, alone)
    row("decoded", of(single, 0, admit=False), alone)
    row("the whole way, 1 content", of(single, 1), alone)
    row("the whole way, 1,000 contents", of(single, 1_000), alone)
    for condition, name in CONDITIONS.items():
        row(f"the whole core, {name}", of_core(single, condition), alone)
    return rows


def report(options: Options) -> Report:
    """Measure, and put it into a table."""
    rounds = options.repeats or (3 if options.quick else 7)
    rows = figures(2_000 if options.quick else 20_000, rounds)
    batches = rows[: 1 + next(place for place, one in enumerate(rows) if "single" in one[0])]
    values = [round(ratio, 2) for name, _, ratio in batches if name in JUDGED]
    return Report(
        "In one process, without sockets",
        [
            Table(
                "",
                ["", "ns an event", "ratio"],
                [[name, f"{ns:,.0f}", f"{ratio:.2f}"] for name, ns, ratio in rows],
            )
        ],
        [
            Goal(
                "CPU per event of a batch of 100, in the core, beside bare decoding",
                GOAL,
                values,
                " ×",
            )
        ],
        [NOTE],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
