"""Faces of links in the test's own loop, and what they were told."""

import asyncio
from contextlib import asynccontextmanager

from broker.config.links import LinksSection
from broker.links.face import LinkFace
from broker.network.session.limits import make_link_limits
from broker.network.session.told import Delivered, Up

PATIENCE_S = 10.0
QUICK = {"heartbeat_ms": 50, "silence_ms": 1000, "handshake_ms": 1000}


class Recorder:
    """Remembers what links say, and wakes whoever waits for something."""

    def __init__(self):
        self.news = []
        self.events = []
        self.control = []
        self.failing = False
        self._changed = asyncio.Event()

    def on_link(self, news):
        self.news.append(news)
        if isinstance(news, Delivered):
            (self.control if news.control else self.events).extend(news.messages)
        self._changed.set()
        if self.failing:
            raise RuntimeError("planted")

    def ups(self):
        return [one for one in self.news if isinstance(one, Up)]

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def face(name, peers=(), epoch=1, port=0, limits=None, host="127.0.0.1", **settings):
    """A started face; `peers` are faces that it dials, or names with addresses."""
    addresses = {p.links.me: f"127.0.0.1:{p.port}" for p in peers} if peers else {}
    addresses |= settings.pop("addresses", {})
    recorder = Recorder()
    made = LinkFace(
        name,
        epoch,
        LinksSection(host=host, port=port, peers=addresses, **settings),
        recorder,
        make_link_limits(**(limits or QUICK)),
    )
    made.heard = recorder
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def both_up(one, other):
    await one.heard.until(lambda: one.up(other.links.me))
    await other.heard.until(lambda: other.up(one.links.me))


def cut(one):
    """All connections of a face end at once, without a word."""
    for socket in list(one._sockets.values()):
        socket.transport.abort()


async def until(condition):
    """Wait for what no receiver is told of; bounded."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.002)
