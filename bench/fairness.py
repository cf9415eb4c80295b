"""A calm client beside a flood: how long its messages take while somebody else publishes at will.

Owns the floods, the calm clients and the tables. Must not know a broker but as a process.
Invariant: broker and mosquitto get the same flood in turns on the same machine, and the calm
client's messages never go where the flood goes.

One client writes PUBLISHes at QoS 0 as fast as its socket takes them. Another publishes a message
every few milliseconds and waits until it comes back to itself; that is its latency.

A flood may also be of few events that each make much work: an event that follows `MATCHES` others
is a result with each, for every subscription. Beside those, one client sends PINGREQ and one asks
for `GET /v1/status`, and what counts is the longest that either waits.

    python -m bench.fairness [--quick] [--repeats N] [--json]
"""

import contextlib
import http.client
import itertools
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from bench import wire
from bench.load import ROOT
from bench.report import Goal, Options, Report, Table, run
from bench.servers import KEEPS_NOTHING, Server, broker, mosquitto, start_broker, stop, submit

RATIO_MAX = 10.0
EVENTS = "headwater/events/Temp/flood"
TYPE = "event Temp(val: float)\nsubscription Hot from bench to bench detect Temp(val > 90)"
EVERY_S = 0.005
WRITE_BYTES = 65_536
ANSWER_S = 20.0  # a message that is not back by then never will be
CALM = "calm/messages"
MATCHES = 4_000  # of one event with those before it, for each subscription: most of a step's budget
FILLS_EACH = 500  # events of one payload
LONG_TYPES = "event Fill(n: int)\nevent Go(n: int)\n"
LONG = "subscription Long{} from bench to bench detect Fill as f and Go as g within 1 h\n"


class Flood(NamedTuple):
    """What is flooded: the topic and payload of each message, how many write and who reads."""

    name: str
    topic: str
    payload: bytes
    writers: int = 1
    read: bool = False
    text: str = ""


FLOODS = (
    Flood("nothing", "", b"", 0),
    Flood("100 bytes, nobody subscribed", "flood/x", b"x" * 100),
    Flood("2 bytes, nobody subscribed", "flood/x", b"21"),
    Flood("100 bytes, to a subscriber", "flood/x", b"x" * 100, read=True),
    Flood("100 bytes, from four clients", "flood/x", b"x" * 100, 4),
    Flood("100 kB, nobody subscribed", "flood/x", b"x" * 100_000),
    Flood("events that nobody wants", EVENTS, b'{"val": 21.5}', text=TYPE),
)


class Calm(NamedTuple):
    """What a calm client met, and how much of the flood the server took meanwhile."""

    p50_us: float
    p99_us: float
    flood_per_s: float


def flood(port: int, topic: str, payload: bytes) -> None:
    """Write PUBLISHes until the server or the parent is gone; tell how many, every now and then."""
    connection = wire.connect(port, f"flood-{time.monotonic_ns()}", 4)
    one = wire.publish(wire.short_text(topic), payload, 0, 0, 4)
    count = max(1, WRITE_BYTES // len(one))
    many = one * count
    print("ready", flush=True)
    written = 0
    until_s = time.monotonic() + 0.2
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(many)
            written += count
            if time.monotonic() > until_s:
                until_s += 0.2
                print(written, flush=True)


def read(port: int, topic: str) -> None:
    """Take all that comes."""
    connection = wire.connect(port, f"read-{time.monotonic_ns()}", 4)
    connection.sendall(wire.packet(0x82, b"\0\x01" + wire.short_text(topic) + b"\0"))
    connection.recv(4)
    print("ready", flush=True)
    with contextlib.suppress(OSError):
        while connection.recv(262_144):
            pass


@contextmanager
def flooding(port: int, wanted: Flood) -> Iterator[list["subprocess.Popen[str]"]]:
    """The processes that write; all are connected when this begins and gone when it ends."""
    command = [sys.executable, "-m", "bench.fairness"]
    payload = wanted.payload.decode()
    readers = [[*command, "read", str(port), wanted.topic]] * wanted.read
    writers = [[*command, "flood", str(port), wanted.topic, payload]] * wanted.writers
    processes: list[subprocess.Popen[str]] = []
    try:
        for arguments in (*readers, *writers):
            processes.append(
                subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            )
            assert processes[-1].stdout is not None
            processes[-1].stdout.readline()
        yield processes[len(readers) :]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def calm(connection: socket.socket, seconds: float) -> list[float]:
    """How long each message took to come back, in microseconds."""
    took_us: list[float] = []
    topic = wire.short_text(CALM)
    until_s = time.monotonic() + seconds
    for number in itertools.count():
        began_s = time.monotonic()
        if began_s > until_s and took_us:
            return took_us
        payload = b"%d" % number
        connection.sendall(wire.publish(topic, payload, 0, 0, 4))
        _wait_for(connection, payload)
        ended_s = time.monotonic()
        took_us.append((ended_s - began_s) * 1e6)
        time.sleep(max(0.0, EVERY_S - (ended_s - began_s)))
    raise AssertionError("counting does not end")


def _wait_for(connection: socket.socket, payload: bytes) -> None:
    """Until this payload came back."""
    data = b""
    until_s = time.monotonic() + ANSWER_S
    while not data.endswith(payload):
        if not select.select([connection], [], [], max(0.0, until_s - time.monotonic()))[0]:
            raise RuntimeError(f"a message was not back after {ANSWER_S:.0f} s")
        data += connection.recv(4096) or b""


def measure(server: Server, wanted: Flood, seconds: float) -> Calm:
    """One run of a flood against a server."""
    connection = wire.connect(server.port, f"calm-{time.monotonic_ns()}", 4)
    wire.subscribe(connection, CALM, 0, 4)
    with flooding(server.port, wanted) as writers:
        calm(connection, 0.3)  # until the flood has filled its sockets
        before = [_written(process) for process in writers]
        began_s = time.monotonic()
        took_us = calm(connection, seconds)
        written = sum(_written(process) for process in writers) - sum(before)
        rate = written / (time.monotonic() - began_s)
    connection.close()
    took_us.sort()
    return Calm(statistics.median(took_us), took_us[len(took_us) * 99 // 100], rate)


class LongSteps(NamedTuple):
    """Events that each are a result with many others, for so many subscriptions, on what disk."""

    name: str
    subscriptions: int
    settings: Mapping[str, str] = KEEPS_NOTHING
    read: bool = False


LONG_STEPS = (
    LongSteps("no such events", 0),
    LongSteps("1 subscription", 1),
    LongSteps("8 subscriptions", 8),
    LongSteps("8 subscriptions, a client reads them", 8, read=True),
    LongSteps("8 subscriptions, on a disk", 8, {}),
)


class Waits(NamedTuple):
    """The longest that a PINGREQ and a GET waited, and how long an event took."""

    ping_ms: float
    status_ms: float
    event_ms: float


def measure_steps(wanted: LongSteps, events: int) -> Waits:
    """Have a broker take such events, one after the other is acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        process, ready = start_broker(folder, wanted.settings)
        try:
            port = int(ready["mqtt"].rpartition(":")[2])
            submit(
                port, LONG_TYPES + "".join(map(LONG.format, range(max(1, wanted.subscriptions))))
            )
            with ExitStack() as stack:
                if wanted.read:
                    stack.enter_context(_reading(port))
                return _waits(wanted, port, int(ready["http"].rpartition(":")[2]), events)
        finally:
            stop(process)


def _waits(wanted: LongSteps, port: int, http_port: int, events: int) -> Waits:
    publisher = wire.connect(port, "long-steps", 4)
    if wanted.subscriptions:
        for first in range(0, MATCHES, FILLS_EACH):  # no two are equal: one would be a repeat
            fills = [b'{"n":%d}' % number for number in range(first, first + FILLS_EACH)]
            _acknowledged(publisher, "headwater/events/Fill/fills", b"[" + b",".join(fills) + b"]")
    calm_one = wire.connect(port, "calm", 4)
    web = http.client.HTTPConnection("127.0.0.1", http_port, timeout=ANSWER_S)

    def ping() -> None:
        calm_one.sendall(wire.packet(0xC0, b""))
        if calm_one.recv(2) != b"\xd0\0":
            raise RuntimeError("a PINGREQ got another answer")

    def ask_status() -> None:
        web.request("GET", "/v1/status")
        if web.getresponse().read()[:1] != b"{":
            raise RuntimeError("the status is no object")

    with _longest(ping) as ping_s, _longest(ask_status) as status_s:
        began_s = time.monotonic()
        for number in range(events):
            if wanted.subscriptions:
                _acknowledged(publisher, "headwater/events/Go/goes", b'{"n":%d}' % number)
            else:
                time.sleep(0.1)
        took_s = time.monotonic() - began_s
    publisher.close()
    calm_one.close()
    web.close()
    return Waits(ping_s[0] * 1e3, status_s[0] * 1e3, took_s / events * 1e3)


def _acknowledged(connection: socket.socket, topic: str, payload: bytes) -> None:
    """Publish at QoS 1, and wait for the PUBACK."""
    connection.sendall(wire.publish(wire.short_text(topic), payload, 1, 1, 4))
    connection.settimeout(ANSWER_S)
    if connection.recv(4)[:1] != b"\x40":
        raise RuntimeError("a publication was not acknowledged")


@contextmanager
def _reading(port: int) -> Iterator[None]:
    """Have a client read all results meanwhile."""
    command = [sys.executable, "-m", "bench.fairness", "read", str(port), "headwater/results/#"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def _longest(ask: Callable[[], None]) -> Iterator[list[float]]:
    """Ask every few milliseconds in a thread; the longest wait for an answer, in seconds."""
    longest, ended = [0.0], threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            began_s = time.monotonic()
            ask()
            longest[0] = max(longest[0], time.monotonic() - began_s)
            ended.wait(EVERY_S)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield longest
    finally:
        ended.set()
        thread.join()


def steps_table(events: int, repeats: int) -> Table:
    """Measure the floods of long steps, medians of the repeats."""
    columns = [
        "longest wait beside such events, ms",
        "PINGRESP",
        "GET /v1/status",
        "an event takes",
    ]
    rows = []
    for wanted in LONG_STEPS:
        several = [measure_steps(wanted, events) for _ in range(repeats)]
        waits = Waits(*map(statistics.median, zip(*several, strict=True)))
        rows.append([wanted.name, *(f"{wait_ms:,.1f}" for wait_ms in waits)])
    return Table(f"Events that are {MATCHES:,} results for each subscription", columns, rows)


def _written(process: "subprocess.Popen[str]") -> int:
    """How many messages a flood has written, as it told last."""
    assert process.stdout is not None
    told = "0"
    while select.select([process.stdout], [], [], 0)[0]:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the server closed the flood's connection")
        told = line
    return int(told) if told.strip() != "0" else int(process.stdout.readline() or 0)


class Figures(NamedTuple):
    """What one flood came to, medians of the repeats."""

    wanted: Flood
    here: Calm
    there: Calm | None


def compare(floods: tuple[Flood, ...], seconds: float, repeats: int) -> list[Figures]:
    """Every flood against both servers, in turns."""
    found: list[Figures] = []
    with ExitStack() as stack:
        other = stack.enter_context(mosquitto())
        ours = {text: stack.enter_context(broker(text)) for text in {one.text for one in floods}}
        for wanted in floods:
            here, there = [], []
            for _ in range(repeats):
                here.append(measure(ours[wanted.text], wanted, seconds))
                if other is not None:
                    there.append(measure(other, wanted, seconds))
            found.append(Figures(wanted, _median(here), _median(there) if there else None))
    return found


def _median(several: list[Calm]) -> Calm:
    return Calm(*(statistics.median(values) for values in zip(*several, strict=True)))


def report(options: Options) -> Report:
    """Measure, and put it into a table."""
    repeats = options.times(3)
    found = compare(FLOODS, 1.0 if options.quick else 3.0, repeats)
    columns = ["of a calm client, µs", "mosquitto p50", "p99", "broker p50", "p99", "ratio of p50"]
    columns += ["mosquitto's flood/s", "broker's"]
    rows = []
    for wanted, here, there in found:
        other = ["-"] * 2 if there is None else [f"{there.p50_us:,.0f}", f"{there.p99_us:,.0f}"]
        ratio = "-" if there is None else f"{here.p50_us / there.p50_us:.2f}"
        rates = ["-" if one is None else f"{one.flood_per_s:,.0f}" for one in (there, here)]
        own = [f"{here.p50_us:,.0f}", f"{here.p99_us:,.0f}", ratio]
        rows.append([wanted.name, *other, *own, *rates])
    ratios = [
        round(here.p50_us / there.p50_us, 2)
        for wanted, here, there in found
        if there is not None and wanted.writers
    ]
    goal = Goal(
        "a calm client's p50 beside a QoS 0 flood, to mosquitto's",
        *(RATIO_MAX, ratios, " ×", "mosquitto is not installed"),
    )
    note = (
        f"Medians of {repeats}; the calm client sends a message every {EVERY_S * 1000:.0f} ms and "
        "waits for it; the flood writes as fast as its socket takes."
    )
    tables = [Table("Latency", columns, rows), steps_table(5 if options.quick else 20, repeats)]
    return Report("A calm client beside a flood", tables, [goal], [note])


if __name__ == "__main__":
    if sys.argv[1:2] == ["flood"]:
        flood(int(sys.argv[2]), sys.argv[3], sys.argv[4].encode())
    elif sys.argv[1:2] == ["read"]:
        read(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(run(__doc__, report))
