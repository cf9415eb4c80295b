"""Servers that the commands talk to: a fake broker behind the real HTTP face, and mosquitto."""

import asyncio
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from broker.http import listen, make_app
from broker.rights.current import CurrentRights
from headwater.demo.process import free_ports
from tests.broker.http.fakes import OPEN, FakeBroker


class FaceThread:
    """The HTTP face of a fake broker in a thread with a loop of its own."""

    def __init__(self, rights: CurrentRights) -> None:
        self.broker: FakeBroker
        self.port = 0
        self.loop: asyncio.AbstractEventLoop
        self.followed = threading.Event()
        self._rights = rights
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self.broker = FakeBroker()
        follow = self.broker.follow

        def noted(subscription, user):
            follower = follow(subscription, user)
            self.followed.set()
            return follower

        self.broker.follow = noted  # type: ignore[method-assign]
        listener = await listen(make_app(self.broker, self._rights), "127.0.0.1", 0)
        self.port = listener.port
        self._started.set()
        await self._end.wait()
        self.broker.fan.close()
        await listener.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def publish(self, *results: tuple[str, bytes]) -> None:
        """Once somebody follows: these results, in order."""
        assert self.followed.wait(10)
        for subscription, line in results:
            self.loop.call_soon_threadsafe(self.broker.fan.publish, "anna", subscription, line)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def face() -> Iterator[FaceThread]:
    with FaceThread(OPEN) as running:
        yield running


@dataclass
class Mosquitto:
    port: int

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"


@pytest.fixture
def mosquitto(find_program: Callable[[str], str], tmp_path: Path) -> Iterator[Mosquitto]:
    """A mosquitto of the test's own, on loopback."""
    program = find_program("mosquitto")
    (port,) = free_ports(1)
    config = tmp_path / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
    process = subprocess.Popen(
        [program, "-v", "-c", str(config)],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "running" in line:
                break
        drain = threading.Thread(target=process.stderr.read)
        drain.start()
        yield Mosquitto(port)
    finally:
        process.terminate()
        process.wait(10)
    drain.join(10)
    process.stderr.close()
