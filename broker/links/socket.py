"""One connection to another broker, as asyncio has it.

Owns the way between a transport and the face. Must not know frames. Invariant: the face hears of a
connection once when it opens and once when it is gone.
"""

import asyncio
import socket as sockets
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from broker.links.face import LinkFace

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
