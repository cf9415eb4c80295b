"""The demonstration's brokers: processes of their own with MQTT faces on free loopback ports.

Owns the processes and their temporary folder. Must not know what is asked of the brokers.
Invariant: whatever happens, leaving the context ends the processes and removes the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from broker.config.reader import PREFIX
from language.errors import HeadwaterError

HOST = "127.0.0.1"
READY_S_MAX = 30.0  # a small machine that reads everything from a card for the first time
END_S_MAX = 15.0  # it writes a snapshot, on a machine that may be busy
ASKED_EVERY_S = 0.05
ANSWER_S_MAX = 5.0
FREE = range(20_000, 32_000)  # Linux gives outgoing connections ports from 32,768 on
LOG_LINES = 5  # of what the broker said last, where it failed

# Recorded stations send in the order of time, so that nothing has to be waited for.
RECORDED = """\
lateness_ms = 0
idle_timeout_ms = 600000
"""

CONFIGURATION = """\
[broker]
name = "{name}"
data_dir = "data-{name}"
{settings}

[mqtt]
port = {mqtt_port}

[http]
port = {http_port}

[intake]
{intake}
[links]
host = "{host}"
port = {link_port}
{peers}

{tables}
"""


class BrokerFailedError(HeadwaterError):
    """The broker did not start, or ended before its time."""


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker's process, its ports and its log."""

    process: asyncio.subprocess.Process
    mqtt_port: int
    http_port: int
    log: Path

    def last_words(self) -> str:
        """Return the last lines of its log, on one line."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "nothing"
        return "; ".join(lines[-LOG_LINES:]) or "nothing"

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP answer. Raises OSError."""
        return await asyncio.to_thread(_get, self.http_port, path)


@asynccontextmanager
async def running_network(
    parents: Mapping[str, str],
    settings: str = "",
    tables: str = "",
    *,
    intake: str = RECORDED,
    ready_s_max: float = READY_S_MAX,
) -> AsyncIterator[dict[str, RunningBroker]]:
    """Starts brokers that link to each other in a tree, waits until each is ready, and ends them.

    `parents`: child -> parent; whoever is no child is the root. `settings` are further ones of
    [broker], `intake` those of [intake], `tables` further tables, the same for all. Raises
    BrokerFailedError.
    """
    names = list(dict.fromkeys([*parents.values(), *parents]))
    free = iter(free_ports(3 * len(names)))
    ports = {name: (next(free), next(free), next(free)) for name in names}
    brokers: dict[str, RunningBroker] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        try:
            for name in names:
                parent = parents.get(name)
                peers = "" if parent is None else _peer(parent, ports[parent][2])
                more = {"peers": peers, "settings": settings, "tables": tables, "intake": intake}
                brokers[name] = await _started(Path(folder), name, ports[name], more)
            for broker in brokers.values():
                await _ready(broker, ready_s_max)
            yield brokers
        finally:
            await asyncio.gather(*(_end(broker.process) for broker in brokers.values()))


def _peer(name: str, port: int) -> str:
    return f'[links.peers]\n{name} = "{HOST}:{port}"'


async def _started(
    folder: Path, name: str, ports: tuple[int, int, int], more: Mapping[str, str]
) -> RunningBroker:
    mqtt_port, http_port, link_port = ports
    configuration, log = folder / f"{name}.toml", folder / f"{name}.log"
    text = CONFIGURATION.format(
        name=name, host=HOST, mqtt_port=mqtt_port, http_port=http_port, link_port=link_port,
        **more,
    )  # fmt: skip
    configuration.write_text(text, encoding="utf-8")
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            # -P: what lies in the folder where somebody tries this is none of ours.
            *(sys.executable, "-P", "-m", "headwater.cli", "broker"),
            *("--config", str(configuration)),
            env=_environment(folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is ours: the broker is ended after its clients
        )
    return RunningBroker(process, mqtt_port, http_port, log)


def _environment(folder: Path) -> dict[str, str]:
    """Return ours without settings that are meant for other brokers, or their secret of links."""
    own = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    return own | {"XDG_STATE_HOME": str(folder)}


async def _ready(broker: RunningBroker, within_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while broker.process.returncode is None:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    status, _ = await broker.get("/readyz")
                    if status == http.client.OK:
                        return
                await asyncio.sleep(ASKED_EVERY_S)
    if broker.process.returncode is not None:
        raise BrokerFailedError(f"the broker did not start: {broker.last_words()}")
    raise BrokerFailedError(f"the broker is not ready after {within_s:.0f} s")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(END_S_MAX):
            await process.wait()
    except TimeoutError:
        raise BrokerFailedError(f"a broker did not end within {END_S_MAX:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on, below those that outgoing connections are given.

    Of these one might be given to a connection before a broker listens. Raises OSError.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as stack:
        for port in secrets.SystemRandom().sample(FREE, len(FREE)):
            probe = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise OSError(errno.EADDRINUSE, f"fewer than {count} ports are free from {FREE[0]} on")


def _get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S_MAX)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
