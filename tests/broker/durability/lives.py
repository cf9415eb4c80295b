"""A broker that is killed again and again, and publishers that repeat what was not acknowledged."""

import asyncio
import contextlib
import json
import sqlite3
import time
from random import Random

import headwater
from bench.wire import PUBACK, PUBLISH, frame_at, packet, publish, short_text
from tests.broker.running import CONFIG, RunningBroker

PATIENCE_S = 30
STEP_MS = 100  # of event time between two events of a source
SOURCES = 3
WINDOW = 40  # events of a source that are not acknowledged yet

# Windows, sequences and absences: what they find depends on all that came before a crash.
TEXT = """
event Temp(val: float)
event Beat(val: float)

subscription Warm from anna to log
detect Temp(val > 25) as warm

define Mean(mean, readings) aggr every 2 s
  detect Temp
  assign mean = Avg(Temp.val), readings = Count(Temp)
subscription Means from anna to log
detect Mean

subscription Drop from anna to log
detect Temp(val > 22) as high then[..1 s] Temp(val < 8) as low
group by source

subscription Alone from anna to log
detect Temp(val > 27) as high then[..2 s] Temp(val < 3) as low without Beat(val > 15)

subscription Silent from anna to log
detect absent Beat(val > 20) for 1 s
"""
NAMES = {"Warm", "Means", "Drop", "Alone", "Silent"}


class Source:
    """Publishes its events in order and repeats, after each crash, what was not acknowledged."""

    def __init__(self, name, begin_ms, seed, told):
        self.name = name
        self.type = "Beat" if name == "s0" else "Temp"
        self.events = []  # all that were ever made
        self.acknowledged = 0
        self._begin_ms = begin_ms
        self._random = Random(f"{seed} {name}")
        self._told = told  # set with each acknowledgement
        self._sent = 0  # on this connection

    def make(self, more_ms=0):
        """One more event, in order of time."""
        number = len(self.events)
        time_ms = self._begin_ms + number * STEP_MS + self._random.randint(0, STEP_MS - 1) + more_ms
        event = {"id": f"{self.name}-{number}", "timestamp": time_ms}
        self.events.append({**event, "val": float(self._random.randint(0, 30))})

    async def run(self, port, going):
        """Publish over one connection until all is acknowledged and `going` says no more."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = short_text("MQTT") + bytes((4, 2, 0, 0)) + short_text(f"pub-{self.name}")
            writer.write(packet(0x10, head))
            assert (await reader.readexactly(4))[3] == 0
            self._sent = self.acknowledged
            data = b""
            while self._write(writer, going) or self._sent > self.acknowledged:
                await writer.drain()
                got = await reader.read(65536)
                if not got:
                    raise ConnectionError
                data = self._read(data + got)
        finally:
            writer.close()

    def _write(self, writer, going):
        more = going()
        while self._sent - self.acknowledged < WINDOW:
            if self._sent == len(self.events):
                if not more:
                    return False
                self.make()
            event = json.dumps(self.events[self._sent]).encode()
            topic = short_text(f"headwater/events/{self.type}/{self.name}")
            writer.write(publish(topic, event, 1, self._sent % 65535 + 1, 4))
            self._sent += 1
        return True

    def _read(self, data):
        at = 0
        while (frame := frame_at(data, at)) is not None:
            if data[at] >> 4 == PUBACK:
                number = int.from_bytes(data[frame[0] : frame[0] + 2], "big") - 1
                assert number == self.acknowledged % 65535, "acknowledged in order"
                self.acknowledged += 1
                self._told.set()
            at = frame[1]
        return data[at:]


class Follower:
    """A subscriber with a session that outlasts its connections, and the results that it got."""

    def __init__(self):
        self.ids = []
        self.subscribed = asyncio.Event()

    async def run(self, port):
        """Take what comes over one connection, and acknowledge it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = short_text("MQTT") + bytes((4, 0, 0, 0)) + short_text("follower")
            writer.write(packet(0x10, head))
            assert (await reader.readexactly(4))[3] == 0
            if not self.subscribed.is_set():
                writer.write(packet(0x82, b"\0\1" + short_text("headwater/results/#") + b"\1"))
            data = b""
            while got := await reader.read(65536):
                data = self._read(data + got, writer)
        finally:
            writer.close()

    def _read(self, data, writer):
        at = 0
        while (frame := frame_at(data, at)) is not None:
            body, end = frame
            if data[at] >> 4 == PUBLISH:
                after = body + 2 + int.from_bytes(data[body : body + 2], "big")
                writer.write(b"\x40\x02" + data[after : after + 2])
                self.ids.append(json.loads(data[after + 2 : end])["id"])
            elif data[at] >> 4 == 9:
                self.subscribed.set()
            at = end
        return data[at:]


class Lives:
    """One data directory, and the processes that have it one after another."""

    def __init__(self, folder, seed):
        self.folder = folder
        self.random = Random(seed)
        begin_ms = int(time.time() * 1000) // 2000 * 2000 - 3_600_000
        self._told = asyncio.Event()
        names = [f"s{number}" for number in range(SOURCES)]
        self.sources = [Source(name, begin_ms, seed, self._told) for name in names]
        self._flags = [
            f"--set=broker.data_dir={folder}/data",
            "--set=intake.idle_timeout_ms=86400000",
            "--set=journal.segment_bytes=20000",
            "--set=journal.snapshot_bytes=10000",
            f"--set=journal.sync_delay_ms={self.random.choice((0, 5, 20))}",
        ]
        # Starts are most of what this takes, and compiling is most of a start.
        compiled = str(folder / "compiled")
        self._environ = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        self._broker = None
        self._ready = asyncio.Event()
        self.follower = Follower()
        self._following = None

    @property
    def acknowledged(self):
        return sum(source.acknowledged for source in self.sources)

    async def begin(self):
        """Start a process; the publishers connect once it is ready."""
        broker = RunningBroker(self.folder, CONFIG, *self._flags, environ=self._environ)
        self._broker = await asyncio.to_thread(broker.__enter__)
        self._ready.set()
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
            await self.follower.subscribed.wait()

    async def kill(self):
        """End it without a word, at once."""
        self._ready.clear()
        self._broker.process.kill()
        await asyncio.to_thread(self._broker.__exit__)

    async def begin_and_kill(self):
        """Kill one that has not even recovered."""
        broker = RunningBroker(self.folder, CONFIG, *self._flags, environ=self._environ)
        await asyncio.sleep(self.random.uniform(0.3, 1.0))
        broker.process.kill()
        await asyncio.to_thread(broker.__exit__)

    async def submit(self):
        """Install the text, by HTTP."""
        ask = ("/v1/subscriptions?client=anna", "POST", TEXT.encode())
        status, answer = await asyncio.to_thread(self._broker.get, *ask)
        assert (status, answer["ok"]) == (200, True)

    async def publish(self, going=lambda: False):
        """Have all sources publish, through as many processes as it takes."""
        await asyncio.gather(*(self._publish(source, going) for source in self.sources))

    async def _publish(self, source, going):
        while True:
            async with asyncio.timeout(PATIENCE_S):
                await self._ready.wait()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await source.run(self._broker.port(), going)
                return
            await asyncio.sleep(0.01)

    async def _follow(self):
        while True:
            await self._ready.wait()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self.follower.run(self._broker.port())
            await asyncio.sleep(0.01)

    async def acknowledge(self, count):
        """Wait for so many more acknowledgements."""
        until = self.acknowledged + count
        async with asyncio.timeout(PATIENCE_S):
            while self.acknowledged < until:
                self._told.clear()
                await self._told.wait()

    async def finish(self):
        """Have time pass by what the sources tell, and end the process as one should."""
        for source in self.sources:
            source.make(more_ms=60_000)
        await self.publish()
        async with asyncio.timeout(PATIENCE_S):
            while not await self._all_came():  # noqa: ASYNC110  # another process is asked
                await asyncio.sleep(0.05)
        self._following.cancel()
        assert await asyncio.to_thread(self._broker.end) == 0
        await asyncio.to_thread(self._broker.__exit__)

    async def _all_came(self):
        """Whether nothing waits in the broker any more, and who follows has everything."""
        told = (await asyncio.to_thread(self._broker.get, "/v1/status"))[1]["journal"]
        waits = told["records"] - told["durable"] + told["promises"] + told["outbox_waiting"]
        return not waits and len(set(self.follower.ids)) == told["outbox_end"]

    # --- what came of it ----------------------------------------------------------------------

    def stored(self):
        """The outbox, as it lies in the database."""
        with contextlib.closing(sqlite3.connect(self.folder / "data" / "headwater.db")) as database:
            rows = database.execute('SELECT "offset", id, payload FROM outbox ORDER BY "offset"')
            return [(offset, id_, json.loads(payload)) for offset, id_, payload in rows]

    def expected(self):
        """What one process finds in all events, from which nothing was taken away; up to when."""
        engine = headwater.Engine(TEXT, lateness_ms=None)
        last = [source.events[-2]["timestamp"] for source in self.sources]
        told = [
            {**event, "type": source.type, "source": source.name}
            for source in self.sources
            for event in source.events
        ]
        found = [*engine.push(told), *engine.finish()]
        return found, min(last)


async def survive(folder, kills, seed):
    """Kill so many times under load, then let it end."""
    lives = Lives(folder, seed)
    await lives.begin()
    await lives.submit()
    for source in lives.sources:  # each is known before any other goes ahead
        source.make()
    await lives.publish()
    left = kills
    publishing = asyncio.create_task(lives.publish(lambda: left > 0))
    while left:
        await lives.acknowledge(lives.random.choice((1, 30, 100, 400)))
        await lives.kill()
        if left > 1 and lives.random.random() < 0.15:
            left -= 1
            await lives.begin_and_kill()
        left -= 1
        await lives.begin()
    await publishing
    await lives.finish()
    return lives
