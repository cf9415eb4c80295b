"""Batches of 100 events through a whole broker, beside bare msgspec decoding of such payloads.

Owns the loads and the table. Must not know the broker but as a process. Invariant: what is decoded
bare are payloads as the load sends them, byte for byte but for their times and ids.

    python -m bench.batches [--quick] [--repeats N] [--json]
"""

import itertools
import statistics
import sys
from contextlib import ExitStack
from time import process_time

import msgspec
from msgspec.structs import replace

from bench.clients import payload_of
from bench.load import Load, Outcome, measure
from bench.mqtt_face import EVENTS, RESULTS, TYPE
from bench.report import Goal, Options, Report, Table, run
from bench.servers import Server, broker

BATCH = 100
GOAL = 3.0
BARE_PAYLOADS = 200
MESSAGES_A_S = 100.0


NOTE = """\
Ten publishers; one event in 100 is a result. All CPU of the broker's process is counted: sockets, \
MQTT, decoding, matching, results. Bare decoding runs over and over in a loop, so the broker at \
full speed is the fair comparison; at a steady pace its caches are cold each time, as they would \
be for bare decoding, which then costs two to three times as much too."""


class Bare(msgspec.Struct, gc=False):
    """The least that a decoder has to make of an event of the load."""

    type: str
    id: str
    source: str
    timestamp: int
    val: float
    sent_us: int


def subscriptions(count: int) -> str:
    """So many thresholds: the first is for the last event of a batch, the others for none."""
    return TYPE + "".join(
        f"subscription S{number} from bench to bench detect Temp(val > {26 + number}) as t\n"
        "assign sent_us = t.sent_us\n"
        for number in range(0, 10 * count, 10)
    )


TEXTS = {
    "1 subscription": subscriptions(1),
    "8 subscriptions": subscriptions(8),
    "average of each second by source": TYPE
    + "define Mean(mean) aggr every 1 s detect Temp assign mean = Avg(Temp.val) group by source\n"
    "subscription High from bench to bench detect Mean(mean > 1000)",
}
JUDGED = tuple(TEXTS)[:2]


def bare_us(rounds: int) -> float:
    """Microseconds of CPU for an event, of the fastest round."""
    load = Load(batch=BATCH, rate=MESSAGES_A_S)
    payloads = [payload_of(load, n, n % 10, n / 100, 1.7e12) for n in range(BARE_PAYLOADS)]
    decode = msgspec.json.Decoder(list[Bare]).decode
    best = float("inf")
    for _ in range(rounds):
        began = process_time()
        for payload in payloads:
            decode(payload)
        best = min(best, process_time() - began)
    return best / (BARE_PAYLOADS * BATCH) * 1e6


def report(options: Options) -> Report:
    """Measure each load on each text, bare decoding beside it."""
    repeats = options.times(3)
    unpaced = Load(rate=0.0, batch=BATCH, unpaced_messages=2_000, inflight_max=20)
    paced = Load(rate=MESSAGES_A_S, batch=BATCH, seconds=1.0 if options.quick else 3.0)
    loads = [replace(load, qos=qos) for load in (unpaced, paced) for qos in (0, 1)]
    found: dict[tuple[str, Load], list[tuple[Outcome, float]]] = {}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(broker(text)) for name, text in TEXTS.items()}
        serial = itertools.count(1)
        for server in servers.values():
            _run(server, replace(paced, seconds=0.3, deliveries=0), next(serial))
        for _ in range(repeats):
            for load, (name, server) in itertools.product(loads, servers.items()):
                if load.rate or name in JUDGED:
                    deliveries = None if name in JUDGED else 0
                    outcome = _run(server, replace(load, deliveries=deliveries), next(serial))
                    found.setdefault((name, load), []).append((outcome, bare_us(5)))
    return _report(found, repeats)


def _run(server: Server, load: Load, run: int) -> Outcome:
    """One run; each message has one wanted event, its last."""
    load = replace(load, topic=EVENTS, topic_filter=RESULTS, run=run)
    return measure(server.pid, server.port, load)


def _report(found: dict[tuple[str, Load], list[tuple[Outcome, float]]], repeats: int) -> Report:
    rows, values = [], []
    for (name, load), runs in found.items():
        event_us = statistics.median(one.cpu_us / BATCH for one, _ in runs)
        ratio = statistics.median(one.cpu_us / BATCH / bare for one, bare in runs)
        bare = statistics.median(bare for _, bare in runs)
        pace = statistics.median(one.published / one.seconds for one, _ in runs) * BATCH
        how = f"{load.rate:.0f} batches/s" if load.rate else "as fast as it goes"
        rows.append(
            [
                f"QoS {load.qos}, {how}, {name}",
                f"{event_us:.2f}",
                f"{bare:.3f}",
                f"{ratio:.1f}",
                f"{pace:,.0f}",
            ]
        )
        if not load.rate:
            values.append(round(ratio, 2))
    about = "CPU per event of a batch of 100, whole broker, beside bare decoding"
    columns = ["µs of CPU an event", "broker", "bare", "ratio", "events/s"]
    return Report(
        "Batches of 100 through a broker",
        [Table("", columns, rows)],
        [Goal(about, GOAL, values, " ×")],
        [NOTE, f"Medians of {repeats}."],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
