"""Servers to be joined, and a line to them that can be cut, for tests."""

import asyncio
import contextlib
import getpass
import shutil
import signal
import socket
import subprocess
import threading

from broker.mqtt.listeners import Listener
from broker.mqtt.routing.router import Prefix
from broker.mqtt.server import MqttServer
from headwater.demo.process import free_ports
from tests.conftest import SEARCH_PATH

PATIENCE_S = 10.0  # for what takes well under a second


class Mosquitto:
    """A mosquitto of the test's own, on loopback, that keeps what it has over a restart."""

    def __init__(self, folder, *lines):
        (self.port,) = free_ports(1)
        self._config = folder / "mosquitto.conf"
        self._config.write_text(
            "\n".join(
                [
                    "persistence true",
                    # As whoever runs the test: the folder is theirs. Without root it ignores this.
                    f"user {getpass.getuser()}",
                    f"persistence_location {folder}/",
                    "max_queued_messages 100000",
                    "max_inflight_messages 1000",
                    f"listener {self.port} 127.0.0.1",
                    *(lines or ("allow_anonymous true",)),
                    "",
                ]
            )
        )
        self._process = None
        self._drain = None

    def start(self):
        program = shutil.which("mosquitto", path=SEARCH_PATH)
        self._process = subprocess.Popen(
            [program, "-v", "-c", str(self._config)],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        said = []
        for line in self._process.stderr:
            said.append(line)
            if "running" in line:
                break
        else:
            raise AssertionError(f"mosquitto did not start: {said}")
        self._drain = threading.Thread(target=self._process.stderr.read)
        self._drain.start()
        # It says so just before it runs, and passes over a signal that comes in between. What is
        # no packet makes it close the connection, and to that it has to run.
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as one:
            one.sendall(bytes(64))
            with contextlib.suppress(ConnectionError):
                while one.recv(100):
                    pass

    def stop(self, number=signal.SIGTERM):
        """It writes down what it has before it ends."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._drain.join(PATIENCE_S)
            self._process.stderr.close()
            self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class OwnFace:
    """The MQTT face of another broker, in a thread: its own topics aside it is plain MQTT."""

    def __init__(self, **options):
        self.port = 0
        self._options = options
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self):
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        listeners, prefix = [Listener("127.0.0.1", 0)], Prefix("headwater")
        server = MqttServer(self, listeners=listeners, prefix=prefix, **self._options)
        await server.start()
        ((_, self.port),) = server.addresses()
        self._ready.set()
        await self._end.wait()
        await server.stop()

    def on_publish(self, messages):
        raise AssertionError(f"nobody publishes to its own topics, but for {messages}")

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


class Line:
    """A line to a server on loopback that can be cut, or fall silent."""

    def __init__(self, to_port):
        self.port = 0
        self.cuts = 0
        self._to_port = to_port
        self._open = asyncio.Event()
        self._open.set()
        self._heard = asyncio.Event()
        self._heard.set()
        self._pipes = set()
        self._bytes_left = None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._through, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        self.cut()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        await self._server.wait_closed()

    def cut(self):
        """Both ends lose the connection."""
        self.cuts += 1
        for pipe in self._pipes:
            pipe.cancel()

    def cut_after(self, count):
        """Cut once so many bytes more have come from the server."""
        self._bytes_left = count

    def silence(self, *, on):
        """Pass nothing on, without an end of the connection."""
        (self._heard.clear if on else self._heard.set)()

    async def _through(self, reader, writer):
        task = asyncio.current_task()
        self._pipes.add(task)
        there = None
        try:
            from_there, there = await asyncio.open_connection("127.0.0.1", self._to_port)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pipe(reader, there, counted=False))
                group.create_task(self._pipe(from_there, writer, counted=True))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._pipes.discard(task)
            for one in filter(None, (writer, there)):
                one.transport.abort()

    async def _pipe(self, reader, writer, *, counted):
        while data := await reader.read(65_536):
            await self._heard.wait()
            if counted and self._bytes_left is not None:
                data, self._bytes_left = data[: self._bytes_left], self._bytes_left - len(data)
                if self._bytes_left <= 0:
                    self._bytes_left = None
                    writer.write(data)
                    with contextlib.suppress(OSError):
                        await writer.drain()
                    self.cuts += 1
                    raise ConnectionError
            writer.write(data)
            await writer.drain()
        raise ConnectionError
