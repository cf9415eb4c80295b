"""Six broker processes in a tree, links that can be cut, and what came of it, for tests."""

import asyncio
import contextlib
import queue
import time
from functools import partial
from typing import ClassVar

from tests.broker.running import PATIENCE_S, RunningBroker

NAMES = ("b0", "b1", "b2", "b3", "b4", "b5")
PARENTS = {"b1": "b0", "b2": "b0", "b3": "b1", "b4": "b1", "b5": "b2"}

CONFIG = """
[broker]
name = "{name}"
data_dir = "{folder}/data"
[intake]
lateness_ms = 0
idle_timeout_ms = 3600000
[mqtt]
port = 0
[http]
port = 0
[links]
host = "127.0.0.1"
port = 0
reconnect_ms_max = 300
{peers}
[log]
format = "json"
"""


START_PATIENCE_S = 60.0  # six processes that start at once share a machine's cores


class FleetBroker(RunningBroker):
    """One of several that start together."""

    def line(self, event):
        for _ in range(int(START_PATIENCE_S / PATIENCE_S)):
            with contextlib.suppress(queue.Empty):
                return super().line(event)
        raise AssertionError(f"no line about {event!r} came, but {self.lines}")


class Gap:
    """A way to a broker's link port that can be cut and slow; runs in the test's loop."""

    def __init__(self, target, delay_s=0.0):
        self.target = target  # gives the port; None: nobody listens
        self.delay_s = delay_s  # of each byte, in either direction
        self.open = True
        self._server = None
        self._writers = []
        self._tasks = set()

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def _serve(self, reader, writer):
        port = self.target() if self.open else None
        if port is None:
            writer.close()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        self._writers += [writer, back]
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader, writer):
        underway = asyncio.Queue()

        async def deliver():
            while True:
                due_s, data = await underway.get()
                await asyncio.sleep(due_s - time.monotonic())
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        async def take():
            with contextlib.suppress(OSError):
                while data := await reader.read(65536):
                    underway.put_nowait((time.monotonic() + self.delay_s, data))
            underway.put_nowait((time.monotonic() + self.delay_s, b""))

        with contextlib.suppress(OSError):
            await asyncio.gather(take(), deliver())
        writer.close()

    def cut(self):
        self.open = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def mend(self):
        self.open = True

    async def stop(self):
        self.cut()
        self._server.close()
        await self._server.wait_closed()


class Fleet:
    """See the module; `gaps` are by child. `parents`: of each broker but the first, in order."""

    more = ""  # of each broker's configuration
    links: ClassVar[dict[str, str]] = {}  # by broker: more of its section [links]
    delay_s = 0.0  # of each link

    def __init__(self, folder, parents=PARENTS):
        self.folder = folder
        self.parents = parents
        self.names = tuple(dict.fromkeys([*parents.values(), *parents]))
        self.gaps = {}
        self.brokers = {}
        self.builds = {}  # by broker: the folder of another build than this one

    async def start(self):
        for child, parent in self.parents.items():
            self.gaps[child] = await Gap(partial(self.links_port, parent), self.delay_s).start()
        for name in self.names:
            self.begin(name)
        for broker in self.brokers.values():
            broker.__enter__()
        return self

    def begin(self, name):
        """Start a process; it is ready after `__enter__`."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        peers = ""
        if name in self.parents:
            address = f"127.0.0.1:{self.gaps[name].port}"
            peers = f'[links.peers]\n{self.parents[name]} = "{address}"'
        peers = f"{self.links.get(name, '')}\n{peers}"
        config = CONFIG.format(name=name, folder=folder, peers=peers)
        environ = None
        if name in self.builds:
            environ = {"PYTHONPATH": str(self.builds[name]), "PYTHONSAFEPATH": "1"}
        self.brokers[name] = FleetBroker(folder, config + self.more, environ=environ)

    async def kill(self, name):
        """End a process as a failing machine would, and start it again."""
        self.brokers[name].process.kill()
        await self._again(name)

    async def restart(self, name):
        """End a process as whoever updates it does, and start it again."""
        self.brokers[name].process.terminate()
        await self._again(name)

    async def _again(self, name):
        broker = self.brokers[name]
        await asyncio.to_thread(broker.process.wait, PATIENCE_S)
        broker.__exit__()
        self.begin(name)
        await asyncio.to_thread(self.brokers[name].__enter__)

    def links_port(self, name):
        """Where the process that is there listens for links; None before it does."""
        broker = self.brokers.get(name)
        return broker.port("links") if broker is not None and "links" in broker.where else None

    def subscribed(self, name):
        """The states of a broker's subscriptions."""
        told = self.brokers[name].get("/v1/subscriptions")[1]
        return [one["state"] for one in told["subscriptions"]]

    def network(self, name):
        return self.brokers[name].get("/v1/status")[1]["network"]

    async def until(self, holds, patience_s=START_PATIENCE_S):
        """Wait until something holds; asks again every now and then."""
        deadline = time.monotonic() + patience_s
        while not await asyncio.to_thread(holds):
            assert time.monotonic() < deadline, f"not in time, as brokers are: {self._told()}"
            await asyncio.sleep(0.05)

    def _told(self):
        """What each broker says of the network and of where tasks run, if it answers."""
        told = {}
        for name, broker in self.brokers.items():
            with contextlib.suppress(OSError):
                told[name] = [broker.get(path) for path in ("/v1/status", "/v1/plan")]
        return told

    def results(self, name):
        """All results in a broker's log."""
        _, offsets = self.brokers[name].get("/v1/log/offsets")
        if not offsets["end"]:
            return []
        _, found = self.brokers[name].get(f"/v1/log?from=0&to={offsets['end']}&format=json")
        return [row["result"] for row in found["rows"]]

    async def stop(self):
        for gap in self.gaps.values():
            await gap.stop()
        for broker in self.brokers.values():
            if broker.process.poll() is None:
                broker.process.terminate()
        for broker in self.brokers.values():
            await asyncio.to_thread(broker.__exit__)
