"""Links between brokers: throughput and latency of one hop beside a bare stream on TCP.

Owns the load, the bare stream and the comparison. Must not know what a broker does with events.
Invariant: both carry the same bytes and decode them into the same structs; they take turns, and a
ratio is of two runs next to each other.

    python -m bench.links [--quick] [--repeats N] [--json]
"""

import asyncio
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import uvloop

from bench.report import Goal, Options, Report, Table, run
from broker.config.links import LinksSection
from broker.core.links import Congested, Delivered, Up
from broker.links import LinkFace

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 120
WRITE_BYTES_HIGH = 1_048_576  # as a link's socket has it
TRANSPORTS = {
    "bare": "bare TCP stream",
    "link": "link",
    "link-each": "link, each event a message",
    "bare-tls": "bare TLS stream",
    "link-tls": "link with TLS",
}


class Event(msgspec.Struct, array_like=True, gc=False):
    """43 bytes on the wire; `sent_us` is when it left, of the first of a batch."""

    id: str
    type: str
    source: str
    sent_us: int
    start: int
    value: float
    unit: str


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """`batches` of `batch` events each; `every_s` apart, 0: as fast as they are taken."""

    transport: str
    batch: int
    batches: int
    every_s: float = 0.0
    certificates: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: from the first to the last, CPU of the receiving process alone."""

    events: int
    seconds: float
    cpu_s: float
    p50_us: float = 0.0
    p99_us: float = 0.0

    @property
    def per_second(self) -> float:
        """Events in a second."""
        return self.events / self.seconds


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


def message(batch: int) -> bytes:
    """A batch of events that leaves now."""
    sent_us = time.monotonic_ns() // 1000
    one = Event("a1b2c3d4", "Temp", "s17", sent_us, 1, 21.5, "C")
    return _encoder.encode([one] * batch)


def cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- the receiving process --------------------------------------------------------------------


class Sink:
    """Decodes what comes and takes the time."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.events = 0
        self.done = asyncio.Event()
        self._began_s = self._began_cpu_s = 0.0
        self._waited_us: list[int] = []
        self._ended_s = self._ended_cpu_s = 0.0

    def take(self, data: bytes | memoryview) -> None:
        """One message."""
        events = _decoder.decode(data)
        if not self.events:
            self._began_s, self._began_cpu_s = time.monotonic(), cpu_s()
        self.events += len(events)
        if self.load.every_s:
            self._waited_us.append(time.monotonic_ns() // 1000 - events[0].sent_us)
        if self.events >= self.load.batch * self.load.batches:
            self._ended_s, self._ended_cpu_s = time.monotonic(), cpu_s()
            self.done.set()

    def measured(self) -> Measured:
        """When `done`."""
        waited = sorted(self._waited_us[len(self._waited_us) // 10 :]) or [0]
        return Measured(
            events=self.events,
            seconds=max(self._ended_s - self._began_s, 1e-6),
            cpu_s=self._ended_cpu_s - self._began_cpu_s,
            p50_us=waited[len(waited) // 2],
            p99_us=waited[len(waited) * 99 // 100],
        )


class BareReceiver(asyncio.Protocol):
    """Four bytes of length, then the message; nothing is said back."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._kept:
            data = self._kept + data
        view, at, end = memoryview(data), 0, len(data)
        while end - at >= 4:
            after = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if after > end:
                break
            self._sink.take(view[at + 4 : after])
            at = after
        self._kept = data[at:]


class LinkReceiver:
    """The receiving end of a link."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def on_link(self, news: object) -> None:
        """What a link says."""
        if isinstance(news, Delivered):
            for one in news.messages:
                self._sink.take(one)


async def receive(load: Load) -> None:
    """Print the port, take all, print what was measured."""
    sink = Sink(load)
    loop = asyncio.get_running_loop()
    if load.transport.startswith("bare"):
        from broker.links import load_security

        context = load_security(_settings(load, "a", listen=True)).listening
        server = await loop.create_server(lambda: BareReceiver(sink), "127.0.0.1", 0, ssl=context)
        print(server.sockets[0].getsockname()[1], flush=True)
        await sink.done.wait()
    else:
        face = LinkFace("a", 1, _settings(load, "a", listen=True), LinkReceiver(sink))
        await face.start()
        print(face.port, flush=True)
        await sink.done.wait()
    print(msgspec.json.encode(sink.measured()).decode(), flush=True)


# --- the sending process ----------------------------------------------------------------------


class Gate:
    """Open while more may be sent."""

    def __init__(self) -> None:
        self._open = asyncio.Event()

    def set(self, *, on: bool) -> None:
        """Open or shut."""
        (self._open.set if on else self._open.clear)()

    @property
    def shut(self) -> bool:
        """Whether nothing may be sent."""
        return not self._open.is_set()

    async def wait(self) -> None:
        """Until it is open."""
        await self._open.wait()


class BareSender(asyncio.Protocol):
    """The other end of `BareReceiver`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        self._gate.set(on=True)

    def pause_writing(self) -> None:
        """It takes no more."""
        self._gate.set(on=False)

    def resume_writing(self) -> None:
        """It does again."""
        self._gate.set(on=True)

    def send(self, data: bytes) -> None:
        """One message."""
        self.transport.write(len(data).to_bytes(4, "big") + data)


class LinkSender:
    """The sending end of a link."""

    def __init__(self, gate: Gate, load: Load) -> None:
        self._gate = gate
        self._load = load
        self.face: LinkFace

    def on_link(self, news: object) -> None:
        """What a link says."""
        if isinstance(news, Up):
            self._gate.set(on=True)
        elif isinstance(news, Congested):
            self._gate.set(on=not news.on)

    def send(self, data: bytes) -> None:
        """One message, or one for each of its events."""
        if self._load.transport == "link-each":
            one = data if self._load.batch == 1 else message(1)
            self.face.offer("a", [one] * self._load.batch, events=self._load.batch)
        else:
            self.face.offer("a", [data], events=self._load.batch)


async def send(load: Load, port: int) -> None:
    """Send all, then wait to be ended."""
    loop, gate = asyncio.get_running_loop(), Gate()
    sender: Any
    if load.transport.startswith("bare"):
        from broker.links import load_security

        context = load_security(_settings(load, "b", port)).dialling
        hostname = "" if context is not None else None
        _, sender = await loop.create_connection(
            lambda: BareSender(gate), "127.0.0.1", port, ssl=context, server_hostname=hostname
        )
    else:
        sender = LinkSender(gate, load)
        sender.face = LinkFace("b", 1, _settings(load, "b", port), sender)
        await sender.face.start()
    await gate.wait()
    data, due_s = message(load.batch), loop.time()
    for number in range(load.batches):
        if load.every_s:
            due_s += load.every_s
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            data = message(load.batch)
        if gate.shut:
            await gate.wait()
        elif number % 64 == 63:
            await asyncio.sleep(0)
        sender.send(data)
    await asyncio.sleep(PATIENCE_S)


def _settings(load: Load, name: str, port: int = 0, *, listen: bool = False) -> LinksSection:
    peers = {} if listen else {"a": f"127.0.0.1:{port}"}
    host, folder = "127.0.0.1" if listen else "", load.certificates
    if not load.transport.endswith("-tls"):
        return LinksSection(host=host, port=0, peers=peers)
    return LinksSection(
        host=host,
        port=0,
        peers=peers,
        tls_cert=f"{folder}/{name}.pem",
        tls_key=f"{folder}/{name}.key",
        tls_ca=f"{folder}/ca.pem",
    )


# --- the comparison ---------------------------------------------------------------------------


def one(load: Load) -> Measured:
    """One measurement, by two processes of its own."""
    words = [sys.executable, "-m", "bench.links"]
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


def measure(options: Options) -> Report:
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


def main() -> int:
    """The bench, or one of its two processes."""
    if len(sys.argv) > 2 and sys.argv[1] in {"receive", "send"}:
        load = msgspec.json.decode(sys.argv[2], type=Load)
        course = receive(load) if sys.argv[1] == "receive" else send(load, int(sys.argv[3]))
        uvloop.run(course)
        return 0
    return run(__doc__, measure)


if __name__ == "__main__":
    sys.exit(main())
