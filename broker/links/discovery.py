"""Brokers of one network on one segment, found without seeds: who announces itself, and itself.

Owns what is announced by this broker and the announcements of others. Must not know multicast (a
segment does), nor dial: `seeds` asks the addresses like any other. Invariant: it holds a bounded
number of announcements, and passes on addresses of brokers with a tag of this network alone; where
the segment fails, that is logged once, and tried again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from broker.links.announcement import (
    Address,
    Announcement,
    Interface,
    label_of,
    own_addresses,
    reachable,
)
from broker.links.securing import LinkConfigError

CHECK_S = 10.0  # a machine's addresses come and go with cables, leases and radio
ANNOUNCEMENTS_MAX = 256  # a segment has few brokers; a stranger may invent any number
ADDRESSES_MAX = 500

MISSING = (
    "links.discover: to discover brokers needs the package zeroconf: "
    "`pip install 'headwater[discovery]'` brings it"
)

logger = logging.getLogger(__name__)

Receive = Callable[[str, Announcement | None], None]


class SegmentError(Exception):
    """The segment cannot be used; the text says why."""


class Announcements:
    """The announcements of brokers by label, up to ANNOUNCEMENTS_MAX of them.

    `tags` are those of this network: where all places are taken, its brokers come before others.
    """

    def __init__(self, tags: tuple[str, ...] = ()) -> None:
        self.tags = tags
        self._rows: dict[str, Announcement] = {}

    def take(self, label: str, announcement: Announcement | None) -> None:
        """Take what is announced under a label; None where it is withdrawn."""
        if announcement is None:
            self._rows.pop(label, None)
            return
        if len(self._rows) >= ANNOUNCEMENTS_MAX and label not in self._rows:
            other = next((key for key, row in self._rows.items() if not self.ours(row)), None)
            if other is None or not self.ours(announcement):
                return
            del self._rows[other]
        self._rows[label] = announcement

    def rows(self) -> list[Announcement]:
        """Return all, in the order in which they came."""
        return list(self._rows.values())

    def ours(self, announcement: Announcement) -> bool:
        """Return whether the broker is of this network, by what it announces."""
        return not set(self.tags).isdisjoint(announcement.tags)

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()


class DiscoverySegment(Protocol):
    """The network side of discovery."""

    def interfaces(self) -> list[Interface]:
        """Return the addresses of this machine at which others may be."""

    def usable(self, interfaces: Sequence[Interface]) -> list[Interface]:
        """Return those from which multicast can be sent. Raises SegmentError if it is none."""

    async def open(
        self, interfaces: Sequence[Interface], own: Announcement | None, receive: Receive
    ) -> None:
        """Announce `own`, and report announcements by label, None for one that is withdrawn.

        Raises SegmentError.
        """

    async def announce(self, own: Announcement) -> None:
        """Announce other tags of a broker that was announced at `open`."""

    async def close(self) -> None:
        """Withdraw what was announced, and report no more."""


def segment() -> DiscoverySegment:
    """Return the segment that this machine is on. Raises LinkConfigError without the package."""
    try:
        from broker.links.multicast import MulticastSegment
    except ImportError:
        raise LinkConfigError(MISSING) from None
    return MulticastSegment()


class Discovery:
    """This broker's part on a segment; `name` is the broker's, `tags` are those of its network."""

    def __init__(self, name: str, tags: tuple[str, ...], segment: DiscoverySegment) -> None:
        self._label = label_of(name)
        self._received = Announcements(tags)
        self._segment = segment
        self._bound: tuple[str, ...] = ()
        self._port = 0
        self._interfaces: list[Interface] = []  # those that the segment is open at; none: closed
        self._announced: Announcement | None = None
        self._reason = ""
        self._retagged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, bound: Sequence[str], port: int) -> None:
        """Begin; `bound` is where this broker listens for others, nothing where it does not."""
        self._bound, self._port = tuple(bound), port
        self._task = asyncio.get_running_loop().create_task(self._run(), name="discovery")

    async def stop(self) -> None:
        """Withdraw the announcement, and look for no others."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._segment.close()

    def retag(self, tags: tuple[str, ...]) -> None:
        """Announce, and look for, other tags from now on."""
        self._received.tags = tags
        self._retagged.set()

    def addresses(self) -> list[Address]:
        """Return the addresses worth asking, of brokers that announce a tag of this network."""
        addresses = [
            where
            for announcement in self._received.rows()
            if self._received.ours(announcement)
            for where in reachable(announcement, self._interfaces, self._port)
        ]
        return addresses[:ADDRESSES_MAX]

    def status(self) -> dict[str, Any]:
        """Return how many other brokers announce themselves, and why none can be found, if so.

        `found` are those of this network that can be asked, `others` those of other networks.
        """
        rows = self._received.rows()
        ours = [row for row in rows if self._received.ours(row)]
        count = sum(bool(reachable(row, self._interfaces, self._port)) for row in ours)
        return {"found": count, "others": len(rows) - len(ours), "reason": self._reason}

    async def _run(self) -> None:
        while True:
            self._retagged.clear()
            try:
                await self._refresh()
                self._fail("")
            except SegmentError as error:
                self._fail(str(error))
            except Exception:
                logger.exception("the segment could not be looked at")
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._retagged.wait()

    async def _refresh(self) -> None:
        """Have the segment be open at the addresses of now, and announce what holds now."""
        interfaces = self._segment.interfaces()
        hosts = own_addresses(self._bound, interfaces)
        tags = self._received.tags
        own = Announcement(self._label, hosts, self._port, tags) if hosts else None
        if interfaces != self._interfaces or not interfaces:
            await self._close()
            try:
                await self._segment.open(interfaces, own, self._received.take)
            except SegmentError:
                await self._close()
                raise
            self._interfaces, self._announced = interfaces, own
        elif own is not None and own != self._announced:
            await self._segment.announce(own)
            self._announced = own

    async def _close(self) -> None:
        self._interfaces = []
        await self._segment.close()
        self._received.clear()

    def _fail(self, reason: str) -> None:
        if reason != self._reason:
            self._reason = reason
            if reason:
                logger.warning("brokers on this segment cannot be discovered: %s", reason)
            else:
                logger.info("brokers on this segment are discovered again")
