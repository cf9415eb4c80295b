"""How many functions one event calls on its way through a broker, and in how many files.

Owns the counting. Must not know what lies on the way. Invariant: only functions of ours count, on
the thread that serves, from an event that completes a two-step pattern once until all that follows
from it is done; of several such events the fewest calls are told, as timers that happen to be due
come between.

The event is published to the broker itself, at QoS 1, or to a neighbour, from which it comes over a
link: then what the neighbour does is not counted.

    python -m bench.way
    python -m bench.way --list    # each call, indented by who calls it
"""

import asyncio
import socket
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from queue import SimpleQueue
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
PATIENCE_S = 20.0
SETTLE_S = 1.0  # until neighbours know of each other, and of what is asked for


class Way(msgspec.Struct, frozen=True):
    """What an event took: calls of functions, the files that these stand in, and a line a call."""

    calls: int
    files: int
    lines: tuple[str, ...]


class Counting:
    """Counts the calls of the thread in which it is switched on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.files: set[str] = set()
        self._depth = 0

    def _called(self, frame: FrameType, what: str, _argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOMS):
            return
        if what == "call":
            self.files.add(code.co_filename)
            where = code.co_filename.removeprefix(f"{ROOT}/")
            self.lines.append(f"{'  ' * self._depth}{code.co_qualname}  {where}")
            self._depth += 1
        elif what == "return":
            self._depth = max(0, self._depth - 1)

    def switch_on(self) -> None:
        """Begin to count on this thread."""
        self.lines, self.files, self._depth = [], set(), 0
        sys.setprofile(self._called)

    def counted(self) -> Way:
        """End it; what was counted."""
        sys.setprofile(None)
        if RESULT not in self.files:
            raise SystemExit("the event has completed nothing")
        return Way(len(self.lines), len(self.files), tuple(self.lines))


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """Yield a connection to an MQTT server that has accepted it."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(encode(p.Connect(p.V5, f"bench{port}"), p.V5))
        link.recv(1_000)
        yield link


def client(
    home: int, entry: int, on_loop: Callable[[Callable[[], object]], None], found: list[Way]
) -> None:
    """Speak MQTT as bytes, on a thread of its own: what the client calls is not counted.

    The subscription goes to the port `home`, the events to the port `entry`.
    """
    counting = Counting()
    now_ms = int(time.time() * 1000)
    with connected(home) as link:
        link.sendall(
            encode(p.Publish("headwater/submit/bench/1", TEXT.encode(), 1, packet_id=99), p.V5)
        )
        link.recv(1_000)
        time.sleep(SETTLE_S)
    with connected(entry) as link:
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


@asynccontextmanager
async def serving(name: str, folder: Path, **links: str) -> AsyncIterator[dict[str, int]]:
    """Run a broker with a disk in this folder; yield its ports by what is served there."""
    flags = {
        "broker.name": name,
        "broker.data_dir": str(folder / name),
        "mqtt.port": "0",
        "http.enabled": "false",
        **{f"links.{key}": value for key, value in links.items()},
    }
    with claimed(load(flags=flags).config.broker.data_dir) as data:
        site = Site(load(flags=flags).config, data)
        where = await site.start()
        try:
            yield {door: int(at.rpartition(":")[2]) for door, at in where.items() if at}
        finally:
            await site.stop()


def neighbour(folder: Path, link: int, ports: SimpleQueue[int], over: threading.Event) -> None:
    """Serve a second broker, linked to the first, on a loop of this thread until it is `over`."""

    async def serve() -> None:
        async with serving("beside", folder, peers=f"way=127.0.0.1:{link}") as served:
            ports.put(served["mqtt"])
            await asyncio.to_thread(over.wait)

    asyncio.run(serve())


async def ways_of(home: int, entry: int) -> Way:
    """Return the least way of an event that is published at the port `entry`."""
    ways: list[Way] = []
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(client, home, entry, loop.call_soon_threadsafe, ways)
    return min(ways, key=lambda way: (way.calls, way.files))


async def through_one_broker(folder: Path) -> Way:
    """Return the way through one broker with a disk in this folder."""
    async with serving("way", folder) as served:
        return await ways_of(served["mqtt"], served["mqtt"])


async def over_a_link(folder: Path) -> Way:
    """Return the way of an event from a neighbour, from the link to the result."""
    over, ports = threading.Event(), SimpleQueue[int]()
    async with serving("way", folder, host="127.0.0.1", port="0") as served:
        beside = asyncio.create_task(
            asyncio.to_thread(neighbour, folder, served["links"], ports, over)
        )
        try:
            entry = await asyncio.to_thread(ports.get, timeout=PATIENCE_S)
            await asyncio.sleep(SETTLE_S)
            return await ways_of(served["mqtt"], entry)
        finally:
            over.set()
            await beside


def main() -> int:
    """Print the ways."""
    listed = "--list" in sys.argv[1:]
    for name, measure in (
        ("one broker with a disk", through_one_broker),
        ("from a neighbour, link to result", over_a_link),
    ):
        with tempfile.TemporaryDirectory() as folder:
            way = asyncio.run(measure(Path(folder)))
        print(f"{name}: {way.calls} calls in {way.files} files")
        for line in way.lines if listed else ():
            print(f"    {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
