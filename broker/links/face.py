"""The links of one broker, running: sockets, time and configuration around the core's `Links`.

Owns the sockets, the timer and the log lines of links. Must not know what messages mean. Invariant:
the core hears of a connection once when it opens and once when it is gone; effects are carried out
in the order in which the core gave them; no call of a receiver that fails stops a link.

To use it, give it somebody who takes what links say (`LinkReceiver.on_link`, called in the loop's
thread with `Up`, `Down`, `Delivered`, `Congested` or `Refused`), `start` it, and `offer` messages.
"""

import asyncio
import logging
import random
import secrets
import socket as sockets
import ssl
from collections import deque
from typing import Any, Protocol, TypeAlias, cast

from broker.bridge.backoff import Backoff
from broker.config.links import LinksSection, address_of, seeds_of
from broker.links.announcement import network_tags
from broker.links.dialling import Dialler, sentence
from broker.links.discovery import Discovery, segment
from broker.links.securing import LinkConfigError, Security, load_security, named
from broker.links.seeds import Seeds
from broker.network.overlay.kinds import KindTraffic
from broker.network.session.frames import ACK_BYTES
from broker.network.session.limits import LinkLimits
from broker.network.session.links import Links
from broker.network.session.told import (
    Choked,
    Close,
    Closed,
    Congested,
    Delivered,
    Down,
    Forgotten,
    Held,
    NameInUse,
    Offered,
    Opened,
    Received,
    Refused,
    Told,
    Up,
    Woken,
    Write,
)

WRITE_BYTES_HIGH = 1_048_576  # what the socket has not taken yet; past it the session is choked
IDLE_S, PROBE_EVERY_S, PROBES_MAX = 5, 2, 3  # a machine that is gone is noticed after 11 s
UNTAKEN_MS = 11_000  # of what was written
CLOSE_S = 2.0  # so long the other may take for what was written last


class LinkSocket(asyncio.Protocol):
    """One connection to a neighbour. `dialled` names the peer, "" if the other side dialled."""

    def __init__(self, face: "LinkFace", dialled: str = "") -> None:
        self.dialled = dialled
        self.closing = False  # on this side
        self.heard = False  # anything at all
        self.number = 0  # of the connection, once it is open
        self.transport: asyncio.Transport
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._face = face

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there, its TLS handshake done."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in {sockets.AF_INET, sockets.AF_INET6}:
            raw.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            notice_loss(raw)
        self._face.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self.heard = True
        self._face.received(self, data)

    def pause_writing(self) -> None:
        """The other reads too slowly."""
        self._face.choked(self, on=True)

    def resume_writing(self) -> None:
        """It has caught up."""
        self._face.choked(self, on=False)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        if not self.gone.done():
            self.gone.set_result(None)
        self._face.lost(self, error)

    @property
    def address(self) -> str:
        """Return the address of the other end."""
        name = self.transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if name else "somewhere"

    def close(self) -> None:
        """Close once what was written is out, or cut when that takes too long."""
        self.closing = True
        self.transport.close()
        asyncio.get_running_loop().call_later(CLOSE_S, self.transport.abort)


def notice_loss(raw: sockets.socket) -> None:
    """Have the kernel ask whether the other machine is there, and end what it does not take.

    It does so while nothing is to be said, for less than a sign of life of the brokers would cost.
    """
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    for option, setting in (
        ("TCP_KEEPIDLE", IDLE_S),
        ("TCP_KEEPINTVL", PROBE_EVERY_S),
        ("TCP_KEEPCNT", PROBES_MAX),
        ("TCP_USER_TIMEOUT", UNTAKEN_MS),
    ):
        if hasattr(sockets, option):  # not every system has them
            raw.setsockopt(sockets.IPPROTO_TCP, getattr(sockets, option), setting)


FIRST_S = 0.2  # a broker that restarts is back after about as long
TLS_HANDSHAKE_S = 5.0
TOLD_MAX = 200  # different lines about connections that failed; further ones are counted only

# Why a connection was refused during its TLS handshake reaches the other end only by luck.
SILENT_TLS = (
    "it closed without a word; it may not take the certificate of this broker, or ask for one"
)
SILENT_PLAIN = "it closed without a word; it may ask for TLS"

logger = logging.getLogger(__name__)

LinkNews: TypeAlias = Up | Down | NameInUse | Delivered | Congested | Refused


class LinkReceiver(Protocol):
    """Take what links report."""

    def on_link(self, news: LinkNews) -> None:
        """Take it. Must not block."""


class LinkFace:
    """Listen for links and dial them, by the settings of [links] and [link_limits].

    `epoch` has to grow with each start of the broker of this name. Raises LinkConfigError.
    """

    def __init__(
        self,
        name: str,
        epoch: int,
        settings: LinksSection,
        receiver: LinkReceiver,
        limits: LinkLimits | None = None,
    ) -> None:
        self.settings = settings
        self.security: Security = load_security(settings)
        self.links = Links(name, epoch, limits)
        self.links.rekey(self.security.secrets)
        self.faults = 0
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._sockets: dict[int, LinkSocket] = {}
        self._numbers = 0
        self._diallers: dict[str, Dialler] = {}
        self._seeds: Seeds | None = None
        self.discovery = (
            Discovery(name, network_tags(self.security), segment()) if settings.discover else None
        )
        self._wake: asyncio.TimerHandle | None = None
        self._wake_ms = 0
        self._told: dict[str, None] = {}
        self._effects: deque[Any] = deque()
        self._performing = False
        self._up_since_s: dict[str, float] = {}

    # --- what others ask -----------------------------------------------------------------

    async def start(self) -> None:
        """Listen, dial all peers, ask the seeds and discover others. Raises LinkConfigError."""
        if self.security.remark:
            logger.warning(self.security.remark)
        if self.settings.host:
            await self._listen()
        for peer, address in self.settings.peers.items():
            self.dial(peer, address_of(address))
        given, discovery = seeds_of(self.settings.seeds), self.discovery
        if discovery is not None:
            listening = () if self._server is None else self._server.sockets
            discovery.start([socket.getsockname()[0] for socket in listening], self.port)
            self._seeds = Seeds(self, given, discovery.addresses)
        elif given:
            self._seeds = Seeds(self, given)
        if self._seeds is not None:
            self._seeds.start()

    def dial(self, peer: str, where: tuple[str, int]) -> None:
        """Begin to dial a peer, and go on as long as there is no link to it."""
        backoff = Backoff(random.Random(), FIRST_S, self.settings.reconnect_ms_max / 1000)
        self._diallers[peer] = Dialler(self, peer, where, backoff, lambda: LinkSocket(self, peer))
        self._diallers[peer].start()

    async def leave(self, peer: str) -> None:
        """Dial a peer no more; a link to it that stands goes on."""
        if (dialler := self._diallers.pop(peer, None)) is not None:
            await dialler.stop()

    async def stop(self) -> None:
        """Tell all neighbours goodbye and close everything."""
        if self._server is not None:
            self._server.close()
        if self._seeds is not None:
            await self._seeds.stop()
        if self.discovery is not None:
            await self.discovery.stop()
        for dialler in self._diallers.values():
            await dialler.stop()
        self._perform(self.links.end())
        waiting = [sock.gone for sock in self._sockets.values()]
        if waiting:
            await asyncio.wait(waiting)  # `Socket.close` cuts whoever takes too long
        if self._wake is not None:
            self._wake.cancel()
        if self._server is not None:
            await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port that is listened on; 0 if none is."""
        return self._server.sockets[0].getsockname()[1] if self._server is not None else 0

    def offer(
        self, peer: str, messages: list[bytes], *, control: bool = False, events: int = 0
    ) -> None:
        """Send messages to a neighbour; `Refused` tells of those that are not taken."""
        self.tell(Offered(peer, messages, control, events))

    def secure(self, security: Security) -> None:
        """Use other secrets and certificates; links made with a secret that is gone are made anew.

        Links that stand keep their encryption.
        """
        self.security = security
        if self.discovery is not None:
            self.discovery.retag(network_tags(security))
        self._perform(self.links.rekey(security.secrets))

    def hold(self, *, on: bool, peer: str = "") -> None:
        """Take no more events from neighbours than they have credit for, or take them again."""
        self.tell(Held(on, peer))

    def forget(self, peer: str) -> None:
        """A neighbour is no more. One that is a peer is dialled all the same."""
        self.tell(Forgotten(peer))

    def up(self, peer: str) -> bool:
        """Tell whether the link to a neighbour stands."""
        return self.links.up(peer)

    def status(self) -> dict[str, dict[str, Any]]:
        """Each neighbour, and each peer that never was one, for people and programs that look."""
        neighbours: dict[str, dict[str, Any]] = {}
        for name in sorted({*self.links.sessions, *self._diallers}):
            session, dialler = self.links.sessions.get(name), self._diallers.get(name)
            state: dict[str, Any] = {"state": "up" if self.up(name) else "down"}
            if dialler is not None:
                state["address"] = dialler.address
            if session is not None:
                state |= {"counts": dict(session.counts), **session.loads()}
            if self.up(name):
                state["up_s"] = int(self._loop.time() - self._up_since_s[name])
            else:
                state["reason"] = dialler.why if dialler is not None else ""
                if session is not None and not state["reason"]:
                    state["reason"] = session.why
            neighbours[name] = state
        return neighbours

    # --- what sockets tell ---------------------------------------------------------------

    def opened(self, socket: LinkSocket) -> None:
        """A connection is there."""
        self._numbers += 1
        socket.number = self._numbers
        self._sockets[socket.number] = socket
        try:
            certified = named(socket.transport.get_extra_info("peercert"))
        except LinkConfigError as error:
            self._close(Close(socket.number, str(error), fault=True))
            return
        nonce = secrets.token_bytes(16)
        dialled = bool(socket.dialled)
        self.tell(Opened(socket.number, nonce, dialled, socket.dialled, certified))

    def received(self, socket: LinkSocket, data: bytes) -> None:
        """Bytes came."""
        self.tell(Received(socket.number, data))

    def choked(self, socket: LinkSocket, *, on: bool) -> None:
        """A socket takes no more, or takes some again."""
        self.tell(Choked(socket.number, on))

    def lost(self, socket: LinkSocket, error: Exception | None) -> None:
        """A socket is gone."""
        self._sockets.pop(socket.number, None)
        reason = "the connection was lost" if error is None else sentence(error)
        if socket.dialled and not socket.heard:
            reason = SILENT_TLS if self.security.dialling is not None else SILENT_PLAIN
        if not socket.closing and (dialler := self._diallers.get(socket.dialled)) is not None:
            dialler.closed(reason, fault=True)
        self.tell(Closed(socket.number, reason))

    def told(self, who: str, reason: str) -> bool:
        """Tell whether this was said of a neighbour since its link was up last; now it is."""
        key = f"{who}: {reason}"
        if key in self._told or len(self._told) >= TOLD_MAX:
            return True
        self._told[key] = None
        return False

    # --- carrying out --------------------------------------------------------------------

    def tell(self, told: Told) -> None:
        """Have the core handle it, and carry out what it wants."""
        self._perform(self.links.handle(told, self._now_ms()))

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _perform(self, effects: list[Any]) -> None:
        self._effects.extend(effects)
        if self._performing:
            return  # a receiver has offered something: that comes after what is being carried out
        self._performing = True
        try:
            while self._effects:
                self._carry_out(self._effects.popleft())
        finally:
            self._performing = False
        self._arm()

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, Write):
            if (socket := self._sockets.get(effect.connection)) is not None:
                socket.transport.write(effect.data)
        elif isinstance(effect, Close):
            self._close(effect)
        else:
            self._news(effect)

    def _news(self, news: LinkNews) -> None:
        if isinstance(news, Up):
            self._up(news)
        elif isinstance(news, Down):
            self._down(news)
        try:
            self._receiver.on_link(news)
        except Exception:
            self.faults += 1
            logger.exception("what a link brought could not be handled")

    def _up(self, news: Up) -> None:
        self._up_since_s[news.peer] = self._loop.time()
        for key in [key for key in self._told if key.startswith(f"{news.peer}: ")]:
            del self._told[key]
        began = "from the beginning" if news.fresh else "where it was"
        logger.info("the link to %s is up and goes on %s", news.peer, began)
        if (dialler := self._diallers.get(news.peer)) is not None:
            dialler.up()

    def _down(self, news: Down) -> None:
        logger.warning("the link to %s is cut: %s", news.peer, news.reason)
        if (dialler := self._diallers.get(news.peer)) is not None:
            dialler.down(news.reason)

    def _close(self, effect: Close) -> None:
        socket = self._sockets.get(effect.connection)
        if socket is None:
            return
        if (dialler := self._diallers.get(socket.dialled)) is not None:
            dialler.closed(effect.reason, fault=effect.fault)
        elif effect.fault:
            self._failed(effect.peer or socket.address.rpartition(":")[0], effect.reason)
        socket.close()

    def _failed(self, who: str, reason: str) -> None:
        if not self.told(who, reason):
            logger.warning("a connection with %s was closed: %s", who, reason)

    async def _listen(self) -> None:
        settings = self.settings
        tls = self.security.listening
        if tls is not None:
            tls.sni_callback = self._choose_context
        try:
            self._server = await self._loop.create_server(
                lambda: LinkSocket(self),
                settings.host,
                settings.port,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else TLS_HANDSHAKE_S,
            )
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            where = f"{settings.host}:{settings.port}"
            raise LinkConfigError(f"links: cannot listen on {where}: {reason}") from None
        logger.info("listening for brokers on %s:%d", settings.host, self.port)

    def _choose_context(self, connection: ssl.SSLObject, *_: object) -> None:
        """Use the certificates as they were read last, though the listener has the first."""
        if self.security.listening is not None:
            connection.context = self.security.listening

    # --- time ----------------------------------------------------------------------------

    def _arm(self) -> None:
        """Wake when the core wants it; a timer that is due earlier already will look again."""
        due_ms = self.links.next_wake()
        if due_ms is None:
            return
        if self._wake is not None:
            if self._wake_ms <= due_ms:
                return
            self._wake.cancel()
        self._wake_ms = due_ms
        self._wake = self._loop.call_at((due_ms + 0.5) / 1000, self._woken)

    def _woken(self) -> None:
        self._wake = None
        self.tell(Woken())


def own_traffic(links: Links) -> KindTraffic:
    """Return what links have sent by themselves: acknowledgements and signs of life."""
    traffic = KindTraffic()
    for session in links.sessions.values():
        acks, signs = session.counts["acks"], session.counts["signs_of_life"]
        traffic.add("acknowledgements", acks, acks * ACK_BYTES)
        traffic.add("heartbeat", signs, signs * ACK_BYTES)
    return traffic
