"""The two processes of a load: one publishes, one subscribes.

Owns the pace, the bound of what is in flight, and the taking of times. Must not know the server.
Invariant: a message carries the time at which it was to be sent (`sent_us`, the machine's monotonic
clock in microseconds), so that waiting for a slow server counts as latency.

    python -m bench.clients PORT LOAD COUNTERS publish|subscribe
"""

import ctypes
import gc
import mmap
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from bench.load import COUNTERS_BYTES, PATIENCE_S, WANTED, Load, delivered
from bench.wire import PUBACK, PUBLISH, connect, frame_at, publish, short_text, subscribe

MARK = b'"sent_us":'
UNACKNOWLEDGED_MAX = 400  # of one publisher; a server may take fewer than it is told of
NAP_S = 0.0002
PR_SET_TIMERSLACK = 29


class Publishers:
    """All publishing connections of one process, one thread, blocking writes."""

    def __init__(self, port: int, load: Load, counters: mmap.mmap) -> None:
        self.load = load
        self.counters = counters
        self.sockets = [
            connect(port, f"load-{index}", load.version) for index in range(load.publishers)
        ]
        self.topics = [
            [short_text(load.topic.format(source=index, kind=kind)) for kind in ("cold", "hot")]
            for index in range(load.publishers)
        ]
        self.next_id = [0] * load.publishers
        self.unacknowledged = [0] * load.publishers
        self.left_over = [b""] * load.publishers
        self.number = 0  # of messages made
        self.wanted = 0  # of these
        self.lags_us: list[float] = []

    def run(self) -> dict[str, float]:
        """Publish everything, or until a connection is cut; counts and seconds."""
        begin_s = time.monotonic()
        cut = False
        try:
            self.publish_all(begin_s)
        except OSError:
            cut = True
        ordered = sorted(self.lags_us) or [0.0]
        return {
            "messages": self.number,
            "seconds": time.monotonic() - begin_s,
            "lag_p99_us": ordered[len(ordered) * 99 // 100],
            "cut": cut,
        }

    def publish_all(self, begin_s: float) -> None:
        """Publish by the intended times; OSError: a connection was cut, or all stand still."""
        load = self.load
        epoch_ms = time.time() * 1000 - begin_s * 1000
        step_s = load.burst / load.rate if load.rate else 0.0
        for turn in range(load.messages() // load.burst):
            due_s = begin_s + turn * step_s if step_s else time.monotonic()
            wait_s = due_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            if not step_s:
                self.wait_for_room()
            self.write(turn % load.publishers, due_s, epoch_ms)
            self.lags_us.append((time.monotonic() - due_s) * 1e6)
        for index in range(load.publishers):
            while self.unacknowledged[index]:
                self.read(index, wait=True)

    def wait_for_room(self) -> None:
        """Until few enough messages are on their way to the subscriber."""
        until = time.monotonic() + PATIENCE_S
        while self.wanted - delivered(self.counters) >= self.load.inflight_max:
            if time.monotonic() > until:
                raise OSError("nothing is delivered any more")
            time.sleep(NAP_S)

    def write(self, index: int, due_s: float, epoch_ms: float) -> None:
        """Write one burst, after the acknowledgements that it has to wait for."""
        load = self.load
        if load.qos:
            self.read(index, wait=False)
            while self.unacknowledged[index] > UNACKNOWLEDGED_MAX:
                self.read(index, wait=True)
        data = b"".join(self.message(index, due_s, epoch_ms) for _ in range(load.burst))
        self.unacknowledged[index] += load.burst if load.qos else 0
        self.sockets[index].sendall(data)

    def message(self, index: int, due_s: float, epoch_ms: float) -> bytes:
        """The next PUBLISH of this connection."""
        load = self.load
        wanted = load.wanted(self.number)
        payload = payload_of(load, self.number, index, due_s, epoch_ms)
        self.number += 1
        self.wanted += wanted
        self.next_id[index] = self.next_id[index] % 0xFFFF + 1
        return publish(
            self.topics[index][wanted], payload, load.qos, self.next_id[index], load.version
        )

    def read(self, index: int, *, wait: bool) -> None:
        """Count PUBACKs; `wait` for at least one read."""
        connection = self.sockets[index]
        if not select.select([connection], [], [], PATIENCE_S if wait else 0)[0]:
            if wait:
                raise OSError("nothing is acknowledged any more")
            return
        got = connection.recv(65536)
        if not got:
            raise OSError("closed")
        data = self.left_over[index] + got
        position = 0
        while position + 2 <= len(data) and position + 2 + data[position + 1] <= len(data):
            self.unacknowledged[index] -= data[position] >> 4 == PUBACK
            position += 2 + data[position + 1]
        self.left_over[index] = data[position:]


def payload_of(load: Load, number: int, index: int, due_s: float, epoch_ms: float) -> bytes:
    """A message's payload: an event of about the wanted size, or a batch of them.

    A source's times go up: a batch ends at its message's time and begins after the one before.
    """
    end_ms = int(due_s * 1000 + epoch_ms)
    value = WANTED if load.wanted(number) else 20 + number % 60 / 10
    sent_us = int(due_s * 1e6)
    if load.batch == 1:
        return event(load, f"{number:07d}", index, timestamp=end_ms, value=value, sent=sent_us)
    period_ms = 1000 * load.publishers * load.burst / load.rate if load.rate else 0
    last = load.batch - 1
    events = (
        event(
            load,
            f"{number:05d}{place:03d}",
            index,
            timestamp=int(end_ms - (last - place) * period_ms / load.batch),
            value=value if place == last else 20 + place % 60 / 10,
            sent=sent_us,
        )
        for place in range(load.batch)
    )
    return b"[" + b",".join(events) + b"]"


def event(load: Load, name: str, source: int, *, timestamp: int, value: float, sent: int) -> bytes:
    """One event as JSON."""
    text = (
        f'{{"type":"Temp","id":"{load.run:x}-{name}","source":"s{source}",'
        f'"timestamp":{timestamp},"val":{value},"sent_us":{sent}'
    )
    return (text + " " * (load.payload_bytes - len(text) - 1) + "}").encode()


class Subscriber:
    """One subscribing connection that reads, acknowledges and takes the time."""

    def __init__(self, port: int, load: Load, counters: mmap.mmap) -> None:
        self.socket = connect(port, "load-subscriber", load.version)
        subscribe(self.socket, load.topic_filter, load.qos, load.version)
        self.counters = counters
        self.latencies_us: list[int] = []

    def run(self) -> dict[str, float]:
        """Read until told to end by a line on standard input, or cut off."""
        cut = False
        try:
            self.read_all(self.socket)
        except OSError:
            cut = True
            sys.stdin.readline()
        ordered = sorted(self.latencies_us) or [0]
        return {
            "delivered": len(self.latencies_us),
            "p50_us": ordered[len(ordered) // 2],
            "p99_us": ordered[len(ordered) * 99 // 100],
            "cut": cut,
        }

    def read_all(self, connection: socket.socket) -> None:
        """Take what comes; OSError: the connection was cut."""
        data = b""
        while True:
            ready = select.select([connection, sys.stdin], [], [])[0]
            if connection in ready:
                got = connection.recv(262_144)
                if not got:
                    raise OSError("closed")
                data = self.take(data + got)
                self.counters[:8] = len(self.latencies_us).to_bytes(8, sys.byteorder)
            elif ready:
                sys.stdin.readline()
                return

    def take(self, data: bytes) -> bytes:
        """Note the deliveries in whole packets, acknowledge them; what is left."""
        now_us = time.monotonic_ns() // 1000
        position = 0
        answers = bytearray()
        while (frame := frame_at(data, position)) is not None:
            body, stop = frame
            first = data[position]
            if first >> 4 == PUBLISH:
                self.note(data, body, stop, now_us)
                if first & 6:
                    after = body + 2 + (data[body] << 8 | data[body + 1])
                    answers += b"\x40\x02" + data[after : after + 2]
            position = stop
        if answers:
            self.socket.sendall(answers)
        return data[position:]

    def note(self, data: bytes, body: int, stop: int, now_us: int) -> None:
        """One delivery's latency, if it is of the load."""
        at = data.find(MARK, body, stop) + len(MARK)
        if at >= len(MARK) + body:
            end = at
            while end < stop and 48 <= data[end] <= 57:
                end += 1
            self.latencies_us.append(now_us - int(data[at:end]))


def main(arguments: list[str]) -> None:
    """Be one of the two processes."""
    port, load = int(arguments[0]), msgspec.json.decode(arguments[1], type=Load)
    with suppress(OSError, AttributeError):  # Linux rounds a sleep up by 50 µs otherwise
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with Path(arguments[2]).open("r+b") as file:
        counters = mmap.mmap(file.fileno(), COUNTERS_BYTES)
    role = Publishers if arguments[3] == "publish" else Subscriber
    client = role(port, load, counters)
    gc.collect()
    gc.disable()  # a pause of the client would be taken for one of the server
    print("ready", flush=True)
    if isinstance(client, Publishers):
        sys.stdin.readline()
    print(msgspec.json.encode(client.run()).decode(), flush=True)
    sys.stdin.read()  # stay connected until told: a disconnection would cost the server CPU
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
