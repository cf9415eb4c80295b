"""The segment as it is: DNS-SD over multicast DNS, by the package zeroconf.

Owns all that is the package's. Must not know which announcements are of use. Invariant: nothing
that comes from the segment stops the broker or fills its log; the package is imported only where
this module is, which is with `links.discover` and for `headwater discover`.
"""

import asyncio
import ipaddress
import logging
import secrets
import socket as sockets
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import ifaddr
from zeroconf import Error, ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from broker.links.announcement import (
    ADDRESSES_MAX,
    SERVICE,
    Announcement,
    Interface,
    properties_of,
    tags_of,
)
from broker.links.discovery import Receive, SegmentError

if TYPE_CHECKING:
    from zeroconf import Zeroconf

GROUP = ("224.0.0.251", 5353)
NO_QUESTION = bytes(12)  # a whole message of DNS that asks nothing
TTL_S = 1_200  # a broker that dies is withdrawn after so long; the package takes no less than 1,125
ANSWER_MS = 3_000
ASKED_MAX = 64  # announcements that are resolved at a time

# A stranger's packets must not fill the log: what matters to this broker is reported by itself.
logging.getLogger("zeroconf").setLevel(logging.CRITICAL)


class MulticastSegment:
    """A `broker.links.discovery.DiscoverySegment` by the package zeroconf."""

    def __init__(self) -> None:
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._info: AsyncServiceInfo | None = None
        self._receive: Receive
        self._asked: dict[str, asyncio.Task[None]] = {}

    def interfaces(self) -> list[Interface]:
        """Return this machine's addresses but loopback and those of IPv6 that need a scope."""
        interfaces: set[Interface] = set()
        for adapter in ifaddr.get_adapters():
            for address in adapter.ips:
                host = address.ip if isinstance(address.ip, str) else address.ip[0]
                interface = ipaddress.ip_interface(f"{host}/{address.network_prefix}")
                scoped = interface.version == 6 and interface.ip.is_link_local
                if not (interface.ip.is_loopback or scoped):
                    interfaces.add(interface)
        return sorted(interfaces, key=lambda interface: (interface.version, int(interface.ip)))

    def usable(self, interfaces: Sequence[Interface]) -> list[Interface]:
        """Return those from which multicast can be sent. Raises SegmentError if it is none."""
        faults = {interface: _fault(interface) for interface in interfaces}
        usable = [interface for interface, fault in faults.items() if not fault]
        if not usable:
            reasons = [*faults.values(), "this machine has no address but loopback"]
            raise SegmentError(f"multicast is not possible: {reasons[0]}")
        return usable

    async def open(
        self, interfaces: Sequence[Interface], own: Announcement | None, receive: Receive
    ) -> None:
        """Announce `own` and report others. Raises SegmentError."""
        usable = self.usable(interfaces)
        self._receive = receive
        try:
            self._zeroconf = AsyncZeroconf(interfaces=[str(interface.ip) for interface in usable])
            self._browser = AsyncServiceBrowser(
                self._zeroconf.zeroconf, SERVICE, handlers=[self._changed]
            )
            if own is not None:
                self._info = _info_of(own)
                sent = await self._zeroconf.async_register_service(
                    self._info, allow_name_change=True
                )
                await sent
        except (Error, OSError, RuntimeError) as error:
            raise SegmentError(f"multicast is not possible: {_sentence(error)}") from None

    async def announce(self, own: Announcement) -> None:
        """Announce other tags under the label of before, which the segment may have changed."""
        if self._zeroconf is None or self._info is None:
            return
        info = _info_of(own)
        info.name, info.server = self._info.name, self._info.server
        self._info = info
        try:
            await (await self._zeroconf.async_update_service(info))
        except (Error, OSError) as error:
            raise SegmentError(f"multicast is not possible: {_sentence(error)}") from None

    async def close(self) -> None:
        """Withdraw what was announced."""
        asked, self._asked = list(self._asked.values()), {}
        for task in asked:
            task.cancel()
        if asked:
            await asyncio.wait(asked)
        zeroconf, self._zeroconf, self._info = self._zeroconf, None, None
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.async_cancel()
        if zeroconf is not None:
            with suppress(Error, OSError):
                await zeroconf.async_close()

    def _changed(
        self,
        zeroconf: "Zeroconf",
        service_type: str,  # noqa: ARG002 - the package names its arguments
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        label = name.removesuffix(f".{SERVICE}")
        if state_change is ServiceStateChange.Removed:
            if (task := self._asked.pop(name, None)) is not None:
                task.cancel()
            self._receive(label, None)
            return
        info = AsyncServiceInfo(SERVICE, name)
        if info.load_from_cache(zeroconf):
            self._take(label, info)
        elif name not in self._asked and len(self._asked) < ASKED_MAX:
            task = asyncio.get_running_loop().create_task(self._ask(zeroconf, label, info))
            self._asked[name] = task
            task.add_done_callback(lambda _: self._forget(name, task))

    def _forget(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._asked.get(name) is task:
            del self._asked[name]

    async def _ask(self, zeroconf: "Zeroconf", label: str, info: AsyncServiceInfo) -> None:
        with suppress(Error, OSError):
            if await info.async_request(zeroconf, ANSWER_MS):
                self._take(label, info)

    def _take(self, label: str, info: AsyncServiceInfo) -> None:
        hosts = [host for host in info.parsed_addresses() if "%" not in host][:ADDRESSES_MAX]
        if hosts and info.port:
            tags = tags_of(info.properties)
            self._receive(label, Announcement(label, tuple(hosts), info.port, tags))


def _info_of(own: Announcement) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE,
        f"{own.label}.{SERVICE}",
        parsed_addresses=list(own.addresses),
        port=own.port,
        properties=properties_of(own.tags),
        # Not the machine's name, which is no concern of the segment's, nor the broker's, which
        # a broker of another network may have as well.
        server=f"{secrets.token_hex(8)}.local.",
        other_ttl=TTL_S,
    )


def _fault(interface: Interface) -> str:
    """Return why nothing can be sent to the group from an address; empty: it can."""
    if interface.version == 6:
        return ""  # what is wrong shows when the segment is opened
    with sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) as probe:
        try:
            probe.setsockopt(sockets.IPPROTO_IP, sockets.IP_MULTICAST_IF, interface.ip.packed)
            probe.sendto(NO_QUESTION, GROUP)
        except OSError as error:
            return f"{_sentence(error)} at {interface.ip}"
    return ""


def _sentence(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
