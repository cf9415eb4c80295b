"""The demonstration's broker: a process of its own with its MQTT face on a free loopback port.

Owns the process and its temporary folder. Must not know what is asked of the broker. Invariant:
whatever happens, leaving the context ends the process and removes the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.config.reader import PREFIX
from language.errors import HeadwaterError

HOST = "127.0.0.1"
READY_S_MAX = 30.0  # a small machine that reads everything from a card for the first time
END_S_MAX = 5.0
ASKED_EVERY_S = 0.05
ANSWER_S_MAX = 5.0
LOG_LINES = 5  # of what the broker said last, where it failed

# Recorded stations send in the order of time, so that nothing has to be waited for.
CONFIGURATION = """\
[broker]
name = "demo"
data_dir = "data"

[mqtt]
port = {mqtt_port}

[http]
port = {http_port}

[intake]
lateness_ms = 0
"""


class BrokerFailedError(HeadwaterError):
    """The broker did not start, or ended before its time."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """Where the broker is reached."""

    process: asyncio.subprocess.Process
    mqtt_port: int
    http_port: int
    log: Path

    def last_words(self) -> str:
        """What it said last, on one line."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "nothing"
        return "; ".join(lines[-LOG_LINES:]) or "nothing"

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP answer. Raises OSError."""
        return await asyncio.to_thread(_get, self.http_port, path)


@asynccontextmanager
async def running_broker() -> AsyncIterator[RunningBroker]:
    """Starts a broker, waits until it is ready, and ends it. Raises BrokerFailedError."""
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        broker = await _started(Path(folder))
        try:
            await _ready(broker)
            yield broker
        finally:
            await _end(broker.process)


async def _started(folder: Path) -> RunningBroker:
    mqtt_port, http_port = _free_ports()
    configuration, log = folder / "demo.toml", folder / "broker.log"
    text = CONFIGURATION.format(mqtt_port=mqtt_port, http_port=http_port)
    configuration.write_text(text, encoding="utf-8")
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            # -P: what lies in the folder where somebody tries this is none of ours.
            *(sys.executable, "-P", "-m", "headwater.cli", "broker"),
            *("--config", str(configuration)),
            env=_environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # Ctrl-C is ours: the broker is ended after its clients
        )
    return RunningBroker(process, mqtt_port, http_port, log)


def _environment() -> dict[str, str]:
    """Ours without settings that are meant for other brokers."""
    return {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}


async def _ready(broker: RunningBroker) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_S_MAX):
            while broker.process.returncode is None:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    status, _ = await broker.get("/readyz")
                    if status == http.client.OK:
                        return
                await asyncio.sleep(ASKED_EVERY_S)
    if broker.process.returncode is not None:
        raise BrokerFailedError(f"the broker did not start: {broker.last_words()}")
    raise BrokerFailedError(f"the broker is not ready after {READY_S_MAX:.0f} s")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(END_S_MAX):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S_MAX)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
