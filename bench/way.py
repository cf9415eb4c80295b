"""How many functions one publication calls on its way through a broker, and in how many files.

Owns the counting. Must not know what lies on the way. Invariant: only functions of ours count, on
the thread that serves, from a QoS 1 publication that completes a two-step pattern until all that
follows from it is done; of several such publications the fewest calls are told, as timers that
happen to be due come between.

    python -m bench.way
"""

import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import msgspec

from broker.config.reader import load
from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import encode
from broker.process import claimed
from broker.site.site import Site

ROOT = Path(__file__).resolve().parent.parent
ROOMS = tuple(f"{ROOT / room}/" for room in ("broker", "language", "planner", "headwater"))
TEXT = """event Motion()
event Door()
subscription S from bench to log
detect Motion then Door within 1 min
"""
RESULT = str(ROOT / "broker/engine/runtime/subscribed.py")  # where a subscription's result is made
TIMES = 5
APART_MS = 120_000
QUIET_S = 0.15


class Way(msgspec.Struct, frozen=True):
    """What a publication took: calls of functions, and the files that these stand in."""

    calls: int
    files: int


class Counting:
    """Counts the calls of the thread in which it is switched on."""

    def __init__(self) -> None:
        self.calls = 0
        self.files: set[str] = set()

    def _called(self, frame: FrameType, what: str, _argument: object) -> None:
        if what == "call" and frame.f_code.co_filename.startswith(ROOMS):
            self.calls += 1
            self.files.add(frame.f_code.co_filename)

    def switch_on(self) -> None:
        """Begin to count on this thread."""
        self.calls, self.files = 0, set()
        sys.setprofile(self._called)

    def counted(self) -> Way:
        """End it; what was counted."""
        sys.setprofile(None)
        if RESULT not in self.files:
            raise SystemExit("the publication has completed nothing")
        return Way(self.calls, len(self.files))


def client(port: int, on_loop: Callable[[Callable[[], object]], None], found: list[Way]) -> None:
    """Speak MQTT as bytes, on a thread of its own: what the client calls is not counted."""
    counting = Counting()
    now_ms = int(time.time() * 1000)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(encode(p.Connect(p.V5, "bench"), p.V5))
        link.recv(1_000)
        link.sendall(
            encode(p.Publish("headwater/submit/bench/1", TEXT.encode(), 1, packet_id=99), p.V5)
        )
        link.recv(1_000)
        time.sleep(QUIET_S)
        for number in range(2 * TIMES):
            kind = ("Motion", "Door")[number % 2]
            # Pairs so far apart that each completes the pattern once.
            instant = now_ms - (TIMES - number // 2) * APART_MS + number
            event = {"id": f"e{number}", "timestamp": instant}
            topic, payload = f"headwater/events/{kind}/s", msgspec.json.encode(event)
            if kind == "Door":
                on_loop(counting.switch_on)
                time.sleep(QUIET_S / 3)
            link.sendall(encode(p.Publish(topic, payload, qos=1, packet_id=number + 1), p.V5))
            link.recv(1_000)
            time.sleep(QUIET_S)
            if kind == "Door":
                on_loop(lambda: found.append(counting.counted()))
        time.sleep(QUIET_S)


async def through_one_broker(folder: Path) -> Way:
    """Return the way through one broker with a disk in this folder."""
    flags = {
        "broker.name": "way",
        "broker.data_dir": str(folder / "data"),
        "mqtt.port": "0",
        "http.enabled": "false",
    }
    with claimed(load(flags=flags).config.broker.data_dir) as data:
        site = Site(load(flags=flags).config, data)
        where = await site.start()
        try:
            ways: list[Way] = []
            loop = asyncio.get_running_loop()
            port = int(where["mqtt"].rpartition(":")[2])
            await asyncio.to_thread(client, port, loop.call_soon_threadsafe, ways)
        finally:
            await site.stop()
    return min(ways, key=lambda way: (way.calls, way.files))


def main() -> int:
    """Print the ways."""
    with tempfile.TemporaryDirectory() as folder:
        way = asyncio.run(through_one_broker(Path(folder)))
    print(f"one broker with a disk: {way.calls} calls in {way.files} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
