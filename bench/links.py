"""Links between brokers: throughput and latency of one hop beside a bare stream on TCP.

Owns the comparison. Must not know what a broker does with events. Invariant: transports take turns,
and a ratio is of two runs next to each other.

    python -m bench.links [--quick] [--repeats N] [--json]
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bench.link_ends import Load, Measured
from bench.report import Goal, Options, Report, Table, run

ROOT = Path(__file__).resolve().parent.parent
TRANSPORTS = {
    "bare": "bare TCP stream",
    "link": "link",
    "link-each": "link, each event a message",
    "bare-tls": "bare TLS stream",
    "link-tls": "link with TLS",
}


def one(load: Load) -> Measured:
    """One measurement, by two processes of its own."""
    words = [sys.executable, "-m", "bench.link_ends"]
    told = msgspec.json.encode(load).decode()
    receiver = subprocess.Popen(
        [*words, "receive", told], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert receiver.stdout is not None
    sender = None
    try:
        port = receiver.stdout.readline().strip()
        sender = subprocess.Popen([*words, "send", told, port], cwd=ROOT)
        answer = receiver.stdout.readline()
        if not answer:
            raise SystemExit("bench.links: nothing was received")
        return msgspec.json.decode(answer, type=Measured)
    finally:
        for process in (receiver, sender):
            if process is not None:
                process.kill()
                process.wait()
        receiver.stdout.close()


def make_certificates(folder: str) -> bool:
    """An authority and certificates of brokers a and b; False where openssl is missing."""
    openssl = shutil.which("openssl")
    if openssl is None:
        return False

    def call(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    call(
        *("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2"),
        *("-subj", "/CN=ca", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )
    for name in ("a", "b"):
        call("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        call(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-days", "2", "-out", f"{name}.pem"),
        )
    return True


def throughput(options: Options, transports: list[str], folder: str) -> dict[Any, list[Measured]]:
    """By transport and batch, all rounds; the transports take turns."""
    found: dict[Any, list[Measured]] = {}
    events = 400_000 if options.quick else 4_000_000
    for _ in range(options.times(5)):
        for batch in (128, 16, 1):
            total = events if batch == 128 else events // (4 if batch == 16 else 40)
            for transport in transports:
                load = Load(
                    transport=transport,
                    batch=batch,
                    batches=total // batch,
                    certificates=folder,
                )
                found.setdefault((transport, batch), []).append(one(load))
    return found


def latency(options: Options, transports: list[str], folder: str) -> list[list[str]]:
    """Rows of p50 and p99 at steady paces."""
    rows = []
    seconds = 1 if options.quick else 5
    for batch, every_s in ((1, 0.01), (1, 0.001), (128, 0.0064)):
        for transport in transports:
            load = Load(
                transport=transport,
                batch=batch,
                batches=int(seconds / every_s),
                every_s=every_s,
                certificates=folder,
            )
            runs = [one(load) for _ in range(options.times(3))]
            pace = f"{batch / every_s:,.0f} events/s, batches of {batch}"
            p50, p99 = (
                statistics.median(getattr(r, k) for r in runs) for k in ("p50_us", "p99_us")
            )
            rows.append([f"{TRANSPORTS[transport]}: {pace}", f"{p50:.0f}", f"{p99:.0f}"])
    return rows


def report(options: Options) -> Report:
    """The report."""
    with tempfile.TemporaryDirectory() as folder:
        tls = make_certificates(folder)
        transports = [name for name in TRANSPORTS if tls or not name.endswith("-tls")]
        found = throughput(options, transports, folder)
        paced = [name for name in transports if name in {"bare", "link", "link-tls"}]
        waits = latency(options, paced, folder)
    rows, ratios = [], {}
    for (transport, batch), runs in found.items():
        beside = found["bare-tls" if transport.endswith("-tls") else "bare", batch]
        ratio = [a.per_second / b.per_second for a, b in zip(runs, beside, strict=True)]
        cpu = [b.cpu_s / a.cpu_s for a, b in zip(runs, beside, strict=True)]
        ratios[transport, batch] = ratio
        rows.append(
            [
                f"{TRANSPORTS[transport]}, batches of {batch}",
                f"{statistics.median(r.per_second for r in runs):,.0f}",
                f"{statistics.median(1e6 * r.cpu_s / r.events for r in runs):.2f}",
                f"{statistics.median(ratio):.2f}",
                f"{statistics.median(cpu):.2f}",
            ]
        )
    tables = [
        Table(
            "Throughput of one link",
            ["", "events/s", "receiver's CPU, µs/event", "ratio", "ratio of CPU"],
            rows,
        ),
        Table("Latency of one hop", ["", "p50 µs", "p99 µs"], waits),
    ]
    goal = "link with acks, batches of 128, to a bare length-prefixed TCP stream"
    goals = [Goal(goal, 0.5, [statistics.median(ratios["link", 128])], at_least=True)]
    if tls:
        text = "the same, both with TLS"
        goals.append(Goal(text, 0.5, [statistics.median(ratios["link-tls", 128])], at_least=True))
    return Report("Links between brokers", tables, goals, NOTES)


NOTES = [
    """\
A ratio is the median over the rounds of a transport's events per second to those of the bare stream
(with TLS: the bare one with TLS) in the same round. That of CPU is the bare stream's to the
transport's, in the receiving process, and is less troubled by other work on the machine. An event
has 43 bytes as msgpack and is decoded into a struct on both. Latency counts from the offer to the
decoded struct, in two processes on one machine; events that are offered singly and come faster than
every 3 ms wait that long for company (`flush_ms`).
"""
]


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
