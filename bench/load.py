"""Load for MQTT servers at minimal cost, and what it does to them: reusable by every bench.

Owns a publishing process and a subscribing process on blocking sockets, and the reading of a
server's CPU time. Must not know which server it loads. Invariant: the load is the same whatever the
server does; what was not delivered is told, never left out of a mean.

A payload carries `"sent_us":` with the machine's monotonic clock in microseconds; whatever reaches
the subscriber with it is a delivery. Publisher and subscriber must be on the server's machine.
"""

import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

MARK = b'"sent_us":'
PUBLISH = 3
PUBACK = 4
QUIET_S = 2.0  # a subscriber that hears nothing for so long has heard all


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is published and who listens.

    `rate` is messages a second over all publishers, 0 is as fast as the server takes them (at QoS 1
    with at most `window` unacknowledged per publisher). `burst` messages of one publisher are
    written at once. `{source}` in the topic is the publisher's number.
    """

    publishers: int = 10
    rate: float = 1000.0
    seconds: float = 5.0
    burst: int = 1
    qos: int = 0
    version: int = 4
    window: int = 100
    topic: str = "bench/Temp/s{source}"
    topic_filter: str = "bench/#"
    payload_bytes: int = 100
    deliveries_per_message: float = 1.0

    def messages(self, unpaced: int = 200_000) -> int:
        """How many messages are published in all."""
        count = int(self.rate * self.seconds) if self.rate else unpaced
        unit = self.publishers * self.burst
        return max(1, count // unit) * unit


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a load did: counts, server CPU per published message, latency of deliveries."""

    published: int
    delivered: int
    seconds: float
    cpu_us: float
    p50_us: float
    p99_us: float

    def line(self) -> str:
        """One line for a table."""
        rate = self.published / self.seconds if self.seconds else 0.0
        lost = "" if self.delivered >= self.published else f", delivered {self.delivered}"
        return (
            f"{self.cpu_us:6.1f} µs CPU/msg, p50 {self.p50_us:7.0f} µs, p99 {self.p99_us:8.0f} µs, "
            f"{rate:8.0f} msg/s ({self.published} messages{lost})"
        )


# --- the server's side ------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """CPU seconds that a process with all its threads has used, to the nanosecond on Linux."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: "subprocess.Popen[Any]", patience_s: float = 15.0) -> None:
    """Return once the port accepts; RuntimeError where the process ends or takes too long."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server does not listen")


def measure(pid: int, port: int, load: Load) -> Outcome:
    """Run one load in processes of its own against the server with this pid and port."""
    arguments = [sys.executable, "-m", "bench.load", str(port), json.dumps(_plain(load))]
    root = Path(__file__).resolve().parent.parent
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": root}
    subscriber = subprocess.Popen([*arguments, "subscribe"], **pipes)
    publisher = subprocess.Popen([*arguments, "publish"], **pipes)
    try:
        _line(subscriber)  # both are connected now
        _line(publisher)
        before_s = cpu_s(pid)
        publisher.stdin.write(b"go\n")
        publisher.stdin.flush()
        published = json.loads(_line(publisher))
        heard = json.loads(_line(subscriber))
        used_s = cpu_s(pid) - before_s
    finally:
        for process in (publisher, subscriber):
            process.stdin.close()
            process.wait(timeout=30)
            process.stdout.close()
    return Outcome(
        published=published["messages"],
        delivered=heard["delivered"],
        seconds=published["seconds"],
        cpu_us=1e6 * used_s / published["messages"],
        p50_us=heard["p50_us"],
        p99_us=heard["p99_us"],
    )


def _plain(load: Load) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(load)
    return result


def _line(process: "subprocess.Popen[Any]") -> bytes:
    line: bytes = process.stdout.readline()  # type: ignore[union-attr]
    if not line:
        raise RuntimeError("a load process ended early")
    return line


# --- the clients' side ------------------------------------------------------------------------


def remaining_length(length: int) -> bytes:
    """The variable-length integer before a packet's body."""
    out = bytearray()
    while True:
        length, low = length >> 7, length & 0x7F
        out.append(low | (0x80 if length else 0))
        if not length:
            return bytes(out)


def packet(first: int, body: bytes) -> bytes:
    """A packet of this first byte and body."""
    return bytes((first,)) + remaining_length(len(body)) + body


def short_text(value: str) -> bytes:
    """A text with its length."""
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


def connect(port: int, client_id: str, version: int) -> socket.socket:
    """A socket with an accepted CONNECT."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    properties = b"\0" if version == 5 else b""
    head = short_text("MQTT") + bytes((version, 2, 0, 0)) + properties
    connection.sendall(packet(0x10, head + short_text(client_id)))
    answer = connection.recv(1024)
    if answer[0] != 0x20 or answer[3] != 0:
        raise RuntimeError(f"CONNECT was refused: {answer!r}")
    return connection


class Publishers:
    """All publishing connections of one process, one thread, blocking writes."""

    def __init__(self, port: int, load: Load) -> None:
        self.load = load
        self.sockets = [
            connect(port, f"load-{index}", load.version) for index in range(load.publishers)
        ]
        self.topics = [
            short_text(load.topic.format(source=index)) for index in range(load.publishers)
        ]
        self.next_id = [0] * load.publishers
        self.unacknowledged = [0] * load.publishers
        self.left_over = [b""] * load.publishers
        self.sequence = 0

    def run(self) -> dict[str, float]:
        """Publish everything; counts and seconds."""
        load = self.load
        messages = load.messages()
        begin = time.monotonic()
        step_s = load.burst / load.rate if load.rate else 0.0
        for turn in range(messages // load.burst):
            wait_s = begin + turn * step_s - time.monotonic() if step_s else 0.0
            if wait_s > 0:
                time.sleep(wait_s)
            self.write(turn % load.publishers)
        while any(self.unacknowledged):
            for index in range(load.publishers):
                if self.unacknowledged[index]:
                    self.read(index, wait=True)
        return {"messages": messages, "seconds": time.monotonic() - begin}

    def write(self, index: int) -> None:
        """Write one burst, after the acknowledgements that it has to wait for."""
        load = self.load
        if load.qos:
            self.read(index, wait=False)
            while self.unacknowledged[index] + load.burst > max(load.window, load.burst):
                self.read(index, wait=True)
        self.sockets[index].sendall(b"".join(self.publish(index) for _ in range(load.burst)))
        self.unacknowledged[index] += load.burst if load.qos else 0

    def publish(self, index: int) -> bytes:
        """The next PUBLISH of this connection."""
        load = self.load
        self.sequence += 1
        body = self.topics[index]
        if load.qos:
            self.next_id[index] = self.next_id[index] % 0xFFFF + 1
            body += self.next_id[index].to_bytes(2, "big")
        if load.version == 5:
            body += b"\0"
        return packet(0x30 | load.qos << 1, body + self.payload(index))

    def payload(self, index: int) -> bytes:
        """An event of about the wanted size."""
        now = time.time_ns()
        text = (
            f'{{"type":"Temp","id":"s{index}-{self.sequence:07d}","source":"s{index}",'
            f'"timestamp":{now // 1_000_000},"val":{20 + self.sequence % 70 / 10},'
            f'"sent_us":{time.monotonic_ns() // 1000}'
        )
        return (text + " " * (self.load.payload_bytes - len(text) - 1) + "}").encode()

    def read(self, index: int, *, wait: bool) -> None:
        """Count PUBACKs; `wait` for at least one read."""
        connection = self.sockets[index]
        if not wait and not select.select([connection], [], [], 0)[0]:
            return
        data = self.left_over[index] + connection.recv(65536)
        position = 0
        while position + 2 <= len(data) and position + 2 + data[position + 1] <= len(data):
            self.unacknowledged[index] -= data[position] >> 4 == PUBACK
            position += 2 + data[position + 1]
        self.left_over[index] = data[position:]


class Subscriber:
    """One subscribing connection that reads, acknowledges and takes the time."""

    def __init__(self, port: int, load: Load) -> None:
        self.socket = connect(port, "load-subscriber", load.version)
        properties = b"\0" if load.version == 5 else b""
        body = b"\0\x01" + properties + short_text(load.topic_filter) + bytes((load.qos,))
        self.socket.sendall(packet(0x82, body))
        self.socket.recv(64)
        self.load = load
        self.latencies_us: list[int] = []

    def run(self) -> dict[str, float]:
        """Read until all is there, or nothing has come for a while after the first."""
        expected = int(self.load.messages() * self.load.deliveries_per_message)
        data = b""
        while len(self.latencies_us) < expected:
            patience_s = QUIET_S if self.latencies_us else 30.0
            if not select.select([self.socket], [], [], patience_s)[0]:
                break
            got = self.socket.recv(262_144)
            if not got:
                break
            data = self.take(data + got)
        ordered = sorted(self.latencies_us) or [0]
        return {
            "delivered": len(self.latencies_us),
            "p50_us": ordered[len(ordered) // 2],
            "p99_us": ordered[len(ordered) * 99 // 100],
        }

    def take(self, data: bytes) -> bytes:
        """Note the deliveries in whole packets, acknowledge them; what is left."""
        now_us = time.monotonic_ns() // 1000
        position = 0
        answers = bytearray()
        while (frame := frame_at(data, position)) is not None:
            body, stop = frame
            first = data[position]
            if first >> 4 == PUBLISH:
                at = data.find(MARK, body, stop) + len(MARK)
                if at >= len(MARK) + body:
                    end = at
                    while end < stop and 48 <= data[end] <= 57:
                        end += 1
                    self.latencies_us.append(now_us - int(data[at:end]))
                if first & 6:
                    after = body + 2 + (data[body] << 8 | data[body + 1])
                    answers += b"\x40\x02" + data[after : after + 2]
            position = stop
        if answers:
            self.socket.sendall(answers)
        return data[position:]


def frame_at(data: bytes, position: int) -> tuple[int, int] | None:
    """Where the body of the whole packet at `position` begins and ends."""
    length = shift = 0
    at = position + 1
    while at < len(data):
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (at, at + length) if at + length <= len(data) else None
        shift += 7
    return None


def main(arguments: list[str]) -> None:
    """Be one of the two load processes: port, load, `publish` or `subscribe`."""
    port, load = int(arguments[0]), msgspec.json.decode(arguments[1], type=Load)
    client = Publishers(port, load) if arguments[2] == "publish" else Subscriber(port, load)
    print("ready", flush=True)
    if arguments[2] == "publish":
        sys.stdin.readline()
    print(json.dumps(client.run()), flush=True)
    sys.stdin.read()  # stay connected until told: a disconnection would cost the server CPU
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
