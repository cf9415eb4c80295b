"""Brokers as real processes, and MQTT clients that talk to them, for tests."""

import asyncio
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import aiomqtt
from aiomqtt.client import ProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 15.0  # for what takes well under a second

# Ports of the test's own, and a log that a test can read.
CONFIG = """
[broker]
name = "site-1"
[mqtt]
port = 0
[http]
port = 0
[log]
format = "json"
"""


class RunningBroker:
    """A broker in a process of its own; `lines` are those of its log so far."""

    def __init__(self, folder, config=CONFIG, *flags, environ=None, within=()):
        file = folder / "broker.toml"
        file.write_text(config)
        self.began_s = time.perf_counter()
        self.process = start(["--config", str(file), *flags], environ, within)
        self.lines = []
        self.where = {}
        self._queue = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self._queue.put(json.loads(line) if line.startswith("{") else {"text": line.strip()})
        self._queue.put(None)

    def line(self, event):
        """The next line about an event; all up to it are in `lines` then."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            assert line is not None, f"the broker ended after {self.lines}"
            self.lines.append(line)
            if line.get("event") == event:
                return line

    def port(self, face="mqtt"):
        return int(self.where[face].rpartition(":")[2])

    def get(self, path, method="GET", body=None):
        """Status and JSON answer (or text)."""
        headers = {"Content-Type": "text/plain"} if body is not None else {}
        url = f"http://127.0.0.1:{self.port('http')}{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                status, data = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, data = error.code, error.read()
        with contextlib.suppress(ValueError):
            return status, json.loads(data)
        return status, data.decode()

    def end(self):
        """Ask it to end; see `ended`."""
        self.process.terminate()
        return self.ended()

    def ended(self):
        """Wait for its end; the exit status. All of its lines are in `lines` then."""
        status = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        while (line := self._queue.get(timeout=PATIENCE_S)) is not None:
            self.lines.append(line)
        return status

    def __enter__(self):
        try:
            ready = self.line("ready")
        except BaseException:
            self.__exit__()
            raise
        self.ready_s = time.perf_counter() - self.began_s
        self.where = {k: v for k, v in ready.items() if k in {"mqtt", "mqtts", "http", "links"}}
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        self.process.stderr.close()


def start(words, environ=None, within=()):
    """The command, with its standard error to read; `within` is what runs it elsewhere."""
    return subprocess.Popen(
        [*within, sys.executable, "-m", "headwater.cli", "broker", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def refused(words, environ=None):
    """Exit status and standard error of a broker that does not start."""
    process = start(words, environ)
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


@contextlib.asynccontextmanager
async def client(port, *topics, version=ProtocolVersion.V5, **options):
    """An MQTT client that is subscribed."""
    async with aiomqtt.Client("127.0.0.1", port, protocol=version, **options) as one:
        for topic in topics:
            await one.subscribe(topic, qos=1)
        yield one


async def take(one, count=1):
    """The next messages: (topic, payload as JSON)."""
    found = []
    async with asyncio.timeout(PATIENCE_S):
        async for message in one.messages:
            payload = json.loads(message.payload) if message.payload else None
            found.append((str(message.topic), payload))
            if len(found) == count:
                break
    return found


async def ask(one, verb, body, name="me", request="1"):
    """Publish a request with a response topic; its last answer."""
    topic = f"headwater/reply/{name}/{request}"
    await one.subscribe(topic, qos=1)
    properties = Properties(PacketTypes.PUBLISH)
    properties.ResponseTopic = topic
    await one.publish(f"headwater/{verb}/{name}/{request}", body, qos=1, properties=properties)
    ((_, reply),) = await take(one)
    if reply.get("state") == "accepted":
        ((_, reply),) = await take(one)
    await one.unsubscribe(topic)
    return reply
