"""A load for an MQTT server, run from two processes of its own, and what it did to the server.

Owns the description of a load, the running of its processes and the reading of a server's CPU
time. Must not know which server it loads. Invariant: the load is the same whatever the server is;
what was not delivered, and a client that was cut off, is told and never left out of a mean.

A paced load is open: each message has its intended time, latency counts from there, and a server
that stalls is charged for all that had to wait. An unpaced load is closed: no more than
`inflight_max` messages are on their way, so that no queue of any server has to overflow.
"""

import mmap
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 20.0  # for a client to connect, and for the first delivery
QUIET_S = 1.0  # nothing more is delivered after so long without a delivery
POLL_S = 0.005
COUNTERS_BYTES = 4096  # of the page that the two processes share
WANTED = 30.0  # the value of a reading that somebody wants; others stay below 26


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is published and who listens.

    `rate` is in messages a second over all publishers, 0 is closed. `burst` messages of one
    publisher are written at once; `batch` events are in one message. One message in `one_in` is
    wanted. In a topic, `{source}` is the publisher's number and `{kind}` is `hot` for what is
    wanted, else `cold`. `run` is part of every id, so that no run repeats another's events.
    `deliveries` is how many messages are to reach the subscriber; None: the wanted ones.
    """

    publishers: int = 10
    rate: float = 1000.0
    seconds: float = 3.0
    burst: int = 1
    batch: int = 1
    qos: int = 0
    version: int = 4
    inflight_max: int = 1_000
    one_in: int = 1
    topic: str = "bench/{kind}/s{source}"
    topic_filter: str = "bench/hot/#"
    payload_bytes: int = 100
    unpaced_messages: int = 100_000
    deliveries: int | None = None
    run: int = 0

    def messages(self) -> int:
        """How many messages are published in all."""
        count = int(self.rate * self.seconds) if self.rate else self.unpaced_messages
        unit = self.publishers * self.burst
        return max(1, count // unit) * unit

    def wanted(self, number: int) -> bool:
        """Whether this message (from 0) is wanted; each publisher's turn comes as often."""
        return (number + number // self.publishers) % self.one_in == 0

    def expected(self) -> int:
        """How many messages are to reach the subscriber."""
        if self.deliveries is not None:
            return self.deliveries
        return sum(self.wanted(number) for number in range(self.messages()))


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a load did: counts, the server's CPU per published message, latency of deliveries.

    `lag_p99_us` is by how much the publisher itself was behind its intended times. `cut` tells that
    the server closed a client's connection.
    """

    published: int
    delivered: int
    expected: int
    seconds: float
    cpu_us: float
    p50_us: float
    p99_us: float
    lag_p99_us: float
    cut: bool


def cpu_s(pid: int) -> float:
    """CPU seconds, user and system, that a process with all its threads has used (Linux)."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])  # in nanoseconds
    return total / 1e9


def measure(pid: int, port: int, load: Load) -> Outcome:
    """Run one load against the server with this pid and port. RuntimeError: it cannot be run."""
    with tempfile.NamedTemporaryFile() as shared:
        shared.write(bytes(COUNTERS_BYTES))
        shared.flush()
        with mmap.mmap(shared.fileno(), COUNTERS_BYTES) as counters:
            return _measure(pid, port, load, shared.name, counters)


def _measure(pid: int, port: int, load: Load, shared: str, counters: mmap.mmap) -> Outcome:
    described = msgspec.json.encode(load).decode()
    arguments = [sys.executable, "-m", "bench.clients", str(port), described, shared]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": ROOT}
    subscriber = subprocess.Popen([*arguments, "subscribe"], **pipes)
    publisher = subprocess.Popen([*arguments, "publish"], **pipes)
    try:
        _line(subscriber)  # both are connected now
        _line(publisher)
        before_s = cpu_s(pid)
        _tell(publisher, b"go\n")
        published = msgspec.json.decode(_line(publisher))
        _wait(counters, load.expected(), published["cut"])
        used_s = cpu_s(pid) - before_s
        _tell(subscriber, b"end\n")
        heard = msgspec.json.decode(_line(subscriber))
    finally:
        for process in (publisher, subscriber):
            _end(process)
    return Outcome(
        published=published["messages"],
        delivered=heard["delivered"],
        expected=load.expected(),
        seconds=published["seconds"],
        cpu_us=1e6 * used_s / max(1, published["messages"]),
        p50_us=heard["p50_us"],
        p99_us=heard["p99_us"],
        lag_p99_us=published["lag_p99_us"],
        cut=published["cut"] or heard["cut"],
    )


def delivered(counters: mmap.mmap) -> int:
    """How many messages the subscriber has got."""
    return int.from_bytes(counters[:8], sys.byteorder)


def _wait(counters: mmap.mmap, expected: int, cut: bool) -> None:
    """Until all is delivered, or nothing has been for a while."""
    seen = -1
    until = 0.0
    while (got := delivered(counters)) < expected:
        if got != seen:
            patience_s = QUIET_S if got or cut else PATIENCE_S
            seen, until = got, time.monotonic() + patience_s
        elif time.monotonic() > until:
            return
        time.sleep(POLL_S)


def _end(process: "subprocess.Popen[Any]") -> None:
    """A load process ends when its standard input does."""
    process.stdin.close()  # type: ignore[union-attr]
    process.wait(timeout=30)
    process.stdout.close()  # type: ignore[union-attr]


def _tell(process: "subprocess.Popen[Any]", word: bytes) -> None:
    process.stdin.write(word)  # type: ignore[union-attr]
    process.stdin.flush()  # type: ignore[union-attr]


def _line(process: "subprocess.Popen[Any]") -> bytes:
    line: bytes = process.stdout.readline()  # type: ignore[union-attr]
    if not line:
        raise RuntimeError("a load process ended early")
    return line
