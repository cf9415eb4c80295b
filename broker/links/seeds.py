"""Finds other brokers at seed addresses and discovered ones, and has two of them dialled.

Owns the look at the addresses and which of them are dialled. Must not know sessions, nor prove who
is there: whoever is dialled does; nor how addresses are discovered. Invariant: all brokers that
look at the same addresses are linked with each other, however many there are, and stay so when any
one of them is gone.

All addresses in order are a ring. Each broker dials the next two behind its own that answer, so the
ring is closed behind one that is gone; where it is not among them itself, as it listens elsewhere,
two of them all the same. A name is asked for by the first half of a handshake.

Anybody on the segment can have an address discovered. So one at which no broker proves itself is
passed over, ever longer, see `trials`; seeds are what somebody has configured, and are asked at
each look.
"""

import asyncio
import ipaddress
import logging
import secrets
import socket as sockets
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from broker.config.links import LinksSection
from broker.links.announcement import Address
from broker.links.dialling import sentence
from broker.links.securing import Security
from broker.links.trials import Trials
from broker.network.session.frames import (
    LENGTH_BYTES,
    NAME_CHARS_MAX,
    NONCE_BYTES,
    VERSION,
    Bye,
    Hello,
    LinkError,
    decode,
    encode,
)
from broker.network.session.links import Links

DIALLED = 2  # a ring with one more: any one may be gone, and the two beside it are linked
LOOK_S = 3.0  # brokers come and go by people's hands
ANSWER_S = 2.0
ADDRESSES_MAX = 1_000  # as many as links may be
FAILURES_MAX = 16  # of discovered addresses in one look; the others have their turn at the next
LOGGED_MAX = 200  # addresses of which the log has a line

logger = logging.getLogger(__name__)


class Dialling(Protocol):
    """A face of links that dials peers."""

    links: Links
    security: Security
    settings: LinksSection

    @property
    def port(self) -> int:
        """Return the port that it listens on; 0: none."""

    def up(self, peer: str) -> bool:
        """Tell whether the link to a peer stands."""

    def dial(self, peer: str, where: Address) -> None:
        """Dial a peer for as long as there is no link to it."""

    async def leave(self, peer: str) -> None:
        """Dial it no more."""


class Seeds:
    """Look at seed addresses again and again; `given` are host names or addresses with ports.

    `discovered` returns the addresses that are discovered at the time.
    """

    def __init__(
        self,
        face: Dialling,
        given: list[Address],
        discovered: Callable[[], list[Address]] = list,
    ) -> None:
        self._face = face
        self._given = given
        self._discovered = discovered
        self._trials = Trials()
        self._dialled: dict[str, Address] = {}  # by name
        self._names: dict[Address, str] = {}  # of those to which a link was up at the last look
        self._told: dict[str, str] = {}  # what the log has of a seed's name, as long as it holds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="seeds")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:
                logger.exception("the seeds could not be looked at")
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        seeds = await self._addresses()
        discovered = set(self._discovered()) - set(seeds)
        addresses = sorted(discovered.union(seeds), key=order)
        if not addresses:
            return  # names that are not resolved for a while are no reason to leave anybody
        self._judge(discovered)
        next_ones = await self._next_ones(behind(addresses, self._own(addresses)), discovered)
        self._names = {where: name for name, where in next_ones.items()}
        for name in self._face.settings.peers:
            next_ones.pop(name, None)  # it is dialled anyway, where the configuration says
        for name in [name for name, where in self._dialled.items() if next_ones.get(name) != where]:
            del self._dialled[name]
            await self._face.leave(name)
        for name, where in next_ones.items():
            if name not in self._dialled:
                self._face.dial(name, where)
                self._dialled[name] = where

    async def _next_ones(self, ring: list[Address], discovered: set[Address]) -> dict[str, Address]:
        """Return the next brokers on the ring by name, passing over who does not answer."""
        next_ones: dict[str, Address] = {}
        failures = 0
        for where in ring:
            if where in discovered and not self._neighbour(where):
                now_s = asyncio.get_running_loop().time()
                if failures == FAILURES_MAX or not self._trials.is_due(where, now_s):
                    continue
            name = await self._name(where)
            if name and name not in next_ones:
                next_ones[name] = where
            elif not name and where in discovered:
                failures += 1
                self._trials.fail(where, asyncio.get_running_loop().time())
            if len(next_ones) == DIALLED:
                break
        return next_ones

    def _judge(self, discovered: set[Address]) -> None:
        """Take down at which of the addresses that are dialled a broker has proven itself."""
        now_s = asyncio.get_running_loop().time()
        for where, name in self._names.items():
            if where not in discovered:
                continue
            if self._face.up(name):
                self._trials.succeed(where)
            else:
                self._trials.await_proof(where, now_s)
        self._trials.prune(discovered, now_s)

    async def _addresses(self) -> list[Address]:
        """Return all addresses of all seeds."""
        loop = asyncio.get_running_loop()
        addresses: set[Address] = set()
        for host, port in self._given:
            try:
                resolved = await loop.getaddrinfo(host, port, type=sockets.SOCK_STREAM)
            except OSError as error:
                self._tell(host, sentence(error))
                continue
            self._told.pop(host, None)
            addresses.update((str(where[4][0]), port) for where in resolved)
        return sorted(addresses, key=order)[:ADDRESSES_MAX]

    def _tell(self, host: str, why: str) -> None:
        if self._told.get(host) != why and len(self._told) < LOGGED_MAX:
            self._told[host] = why
            logger.warning("%s cannot be asked who is there: %s", host, why)

    def _own(self, addresses: list[Address]) -> Address:
        """Return where this broker is, as the others see it.

        That is its end of the way to the first address on another machine, if there is one.
        """
        host = ""
        for where in addresses:
            family = sockets.AF_INET6 if ":" in where[0] else sockets.AF_INET
            host = where[0]
            with suppress(OSError), sockets.socket(family, sockets.SOCK_DGRAM) as probe:
                probe.connect(where)  # nothing is sent
                host = probe.getsockname()[0]
            if host != where[0]:
                break
        return host, self._face.port

    def _neighbour(self, where: Address) -> str:
        """Return who was at an address at the last look and is linked; empty: nobody."""
        neighbour = self._names.get(where, "")
        return neighbour if neighbour and self._face.up(neighbour) else ""

    async def _name(self, where: Address) -> str:
        """Return who is at an address; empty: nobody, or this broker itself."""
        if neighbour := self._neighbour(where):
            return neighbour
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._asked(where)
        except (OSError, EOFError, TimeoutError, LinkError):
            return ""

    async def _asked(self, where: Address) -> str:
        tls = self._face.security.dialling
        hostname = "" if tls is not None else None
        reader, writer = await asyncio.open_connection(*where, ssl=tls, server_hostname=hostname)
        try:
            local, remote = (writer.get_extra_info(end)[:2] for end in ("sockname", "peername"))
            if local[0] == remote[0] and remote[1] == self._face.port:
                return ""
            links = self._face.links
            nonce = secrets.token_bytes(NONCE_BYTES)
            secured = bool(self._face.security.secrets[0])
            writer.write(encode(Hello(VERSION, links.me, links.epoch, nonce, secured=secured)))
            length = int.from_bytes(await reader.readexactly(LENGTH_BYTES))
            if length > links.limits.hello_bytes_max:
                return ""
            answer = decode(memoryview(await reader.readexactly(length)))
        finally:
            with suppress(OSError, ssl.SSLError):
                writer.close()
        if isinstance(answer, Bye):
            self._tell(f"{where[0]}:{where[1]}", answer.reason)
        if not isinstance(answer, Hello) or answer.broker == links.me:
            return ""
        return answer.broker if 0 < len(answer.broker) <= NAME_CHARS_MAX else ""


def order(where: Address) -> tuple[int, int, int]:
    """Return what addresses are sorted by."""
    address = ipaddress.ip_address(where[0])
    return address.version, int(address), where[1]


def behind(addresses: list[Address], own: Address) -> list[Address]:
    """Return the addresses in the order of a ring that begins behind one's own, without that."""
    mine = order(own)
    later = [where for where in addresses if order(where) > mine]
    return later + [where for where in addresses if order(where) < mine]
