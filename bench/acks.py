"""A publisher that takes the time from each QoS 1 message to its PUBACK.

Owns the pace, the bound of what is in flight, and the taking of times. Must not know the server.
Invariant: a paced message's time counts from when it was to be sent, so that waiting for a slow
server counts; an unpaced one's from when it was sent.

    python -m bench.acks PORT LOAD
"""

import os
import select
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import msgspec

from bench.wire import PUBACK, connect, frame_at, publish, short_text

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 30.0  # without an acknowledgement, the server has failed


class AckLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What is published: `rate` in messages a second over all publishers; 0 is closed.

    A closed load has `inflight` messages of each publisher on their way. `topic` has `{source}`;
    one value in `one_in` lies above 26. `run` is part of every id.
    """

    publishers: int = 10
    rate: float = 0.0
    inflight: int = 20
    seconds: float = 2.0
    topic: str = "headwater/events/Temp/s{source}"
    payload_bytes: int = 100
    one_in: int = 10
    run: int = 0


class Acked(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    messages: int
    seconds: float
    p50_us: float
    p99_us: float

    @property
    def per_second(self) -> float:
        """Messages acknowledged in a second."""
        return self.messages / self.seconds


def measure(port: int, load: AckLoad) -> Acked:
    """Run a load from a process of its own. RuntimeError where the server does not keep up."""
    words = [sys.executable, "-m", "bench.acks", str(port), msgspec.json.encode(load).decode()]
    done = subprocess.run(words, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    if done.returncode:
        raise RuntimeError("the server does not acknowledge any more")
    return msgspec.json.decode(done.stdout, type=Acked)


class _Publisher:
    """One connection and what is on its way there."""

    def __init__(self, port: int, load: AckLoad, index: int) -> None:
        self.socket = connect(port, f"acks-{load.run}-{index}", 4)
        self.topic = short_text(load.topic.format(source=index))
        self.index = index
        self.sent: deque[float] = deque()  # when each that is not acknowledged was to be sent
        self.packet_id = 0
        self.left_over = b""

    def write(self, load: AckLoad, number: int, due_s: float) -> None:
        """Send a message."""
        self.packet_id = self.packet_id % 0xFFFF + 1
        value = 30 if (number + number // load.publishers) % load.one_in == 0 else 20
        text = (
            f'{{"id":"{load.run:x}-{number:07d}","timestamp":{int(time.time() * 1000)},'
            f'"val":{value}.5,"sent_us":0'
        )
        payload = (text + " " * (load.payload_bytes - len(text) - 1) + "}").encode()
        self.sent.append(due_s)
        self.socket.sendall(publish(self.topic, payload, 1, self.packet_id, 4))

    def read(self, latencies_s: list[float]) -> int:
        """Take acknowledgements; how many came."""
        got = self.socket.recv(65536)
        if not got:
            raise SystemExit(1)
        now_s = time.monotonic()
        data, position, count = self.left_over + got, 0, 0
        while (frame := frame_at(data, position)) is not None:
            if data[position] >> 4 == PUBACK:
                latencies_s.append(now_s - self.sent.popleft())
                count += 1
            position = frame[1]
        self.left_over = data[position:]
        return count


def run(port: int, load: AckLoad) -> Acked:
    """Publish until the time is over and all is acknowledged."""
    publishers = [_Publisher(port, load, index) for index in range(load.publishers)]
    by_file = {one.socket.fileno(): one for one in publishers}
    latencies_s: list[float] = []
    begin_s = time.monotonic()
    number = 0
    if not load.rate:
        for _ in range(load.inflight):
            for one in publishers:
                one.write(load, number, time.monotonic())
                number += 1
    step_s = 1 / load.rate if load.rate else 0.0
    while True:
        now_s = time.monotonic()
        going = now_s < begin_s + load.seconds
        while load.rate and going and begin_s + number * step_s <= now_s:
            one = publishers[number % load.publishers]
            one.write(load, number, begin_s + number * step_s)
            number += 1
        if not going and len(latencies_s) == number:
            break
        wait_s = max(0.0, begin_s + number * step_s - now_s) if load.rate and going else PATIENCE_S
        ready = select.select(by_file, [], [], wait_s)[0]
        if not ready and wait_s == PATIENCE_S:
            raise SystemExit(1)
        for file in ready:
            one = by_file[file]
            for _ in range(one.read(latencies_s)):
                if not load.rate and time.monotonic() < begin_s + load.seconds:
                    one.write(load, number, time.monotonic())
                    number += 1
    ordered = sorted(latencies_s)
    return Acked(
        messages=number,
        seconds=time.monotonic() - begin_s,
        p50_us=1e6 * ordered[len(ordered) // 2],
        p99_us=1e6 * ordered[len(ordered) * 99 // 100],
    )


def main(arguments: list[str]) -> None:
    """Be the publishing process."""
    acked = run(int(arguments[0]), msgspec.json.decode(arguments[1], type=AckLoad))
    print(msgspec.json.encode(acked).decode(), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
