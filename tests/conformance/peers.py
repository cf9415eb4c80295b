"""The servers that the conformance tests talk to: ours in a thread, or another by its address.

In ours time is turned on by the test: `pass_time` moves the clock of its loop, and what is due by
then happens, so that no test waits for a keep-alive. Another server gets the time that it needs.
"""

import asyncio
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

from broker.mqtt.listeners import Listener
from broker.mqtt.server import MqttServer
from broker.mqtt.storage.rows import KEPT
from broker.store import Store
from tests.broker.mqtt.sockets import Application
from tests.broker.mqtt.world import HEADWATER
from tests.conformance.clients import Client, NotSpoken
from tests.conformance.wire import CONNACK, V311, Login

PATIENCE_S = 10.0
STEPS = 5  # turns of the loop in which all that is due has happened


class TurnedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead_s = 0.0

    def time(self):
        return super().time() + self.ahead_s


class Ours:
    """A server of this project on real sockets, in a thread of its own.

    With a folder it keeps there what it promises, as a broker does.
    """

    settable = True  # a test can have one with other settings
    turns_time = True  # to pass any time costs nothing
    bounded = True  # it has bounds where MQTT leaves them to the server

    def __init__(self, *, folder=None, **options):
        self._options = options
        self._folder = folder
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failed = None

    def _run(self):
        with asyncio.Runner(loop_factory=TurnedLoop) as runner:
            runner.run(self._serve())

    async def _serve(self):
        store = None
        try:
            application = Application()
            options = {"prefix": HEADWATER, **self._options}
            listeners = [Listener(port=0)]
            self.server = application.server = MqttServer(
                application, listeners=listeners, **options
            )
            if self._folder is not None:
                store = Store.open(f"sqlite:///{self._folder}/headwater.db", parts=(KEPT,))
                await self.server.keep_in(store)
            await self.server.start()
            self.loop = asyncio.get_running_loop()
            self.port = self.server.addresses()[0][1]
            self._over = asyncio.Event()
        except BaseException as error:
            self.failed = error
            raise
        finally:
            self._ready.set()
        await self._over.wait()
        await self.server.stop()
        if store is not None:
            await store.close()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        assert self.failed is None
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def call(self, todo):
        """The result of a function in the server's loop."""

        async def called():
            result = todo()
            for _ in range(STEPS):
                await asyncio.sleep(0)
            return result

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(PATIENCE_S)

    def pass_time(self, seconds):
        def turn():
            self.loop.ahead_s += seconds

        self.call(turn)

    def settle(self):
        """All that sockets have told the kernel up to now has been seen."""
        self.call(lambda: None)

    def say(self, topic, payload):
        """Publish as the server itself."""
        self.call(lambda: self.server.publish(topic, payload))

    def counters(self):
        return self.call(self.server.counters)


class Other:
    """A server that somebody else has started."""

    settable = turns_time = bounded = False
    slack_s = 0.5  # servers look at their clocks once a while

    def __init__(self, port):
        self.port = port

    def pass_time(self, seconds):
        time.sleep(seconds + self.slack_s)

    def settle(self):
        time.sleep(0.05)

    def say(self, topic, payload):
        """Publish as a client may do to any topic there."""
        client = Client(self.port, V311)
        client.send(Login(V311, "says").encode()).expect(CONNACK)
        client.publish(topic, payload, 1)
        client.close()


class Process(Other):
    """A broker of this project in a process of its own."""

    bounded = True

    def say(self, topic, payload):
        if topic.startswith("$"):
            raise NotSpoken("clients may not publish to such a topic")
        super().say(topic, payload)


@contextmanager
def mosquitto(program, folder):
    """Run it on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    process = subprocess.Popen(
        [program, "-c", str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.02)
        yield Other(port)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
