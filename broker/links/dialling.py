"""Keeps on dialling one peer while there is no link to it.

Owns the tries and the waits between them. Must not know frames. Invariant: there is at most one try
at a time, and none while the link is up, whoever dialled.
"""

import asyncio
import logging
import re
import socket as sockets
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from broker.bridge.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.links.face import LinkFace, LinkSocket

CONNECT_S = 5.0  # a peer that takes longer is not there

logger = logging.getLogger(__name__)


class Dialler:
    """Dial one peer until it answers, each time with a new `connection`.

    `why`: why the last try failed, "" if there was none.
    """

    def __init__(
        self,
        face: "LinkFace",
        peer: str,
        where: tuple[str, int],
        backoff: Backoff,
        connection: "Callable[[], LinkSocket]",
    ) -> None:
        self.why = "not connected yet"
        self._face = face
        self._peer = peer
        self._where = where
        self._backoff = backoff
        self._connection = connection
        self._tell = True
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._standing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Return the address of the peer."""
        host, port = self._where
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"link {self._peer}")

    async def stop(self) -> None:
        """No more tries."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def up(self) -> None:
        """The link stands."""
        self.why = ""
        self._wanted.clear()
        self._standing.set()

    def down(self, reason: str) -> None:
        """The link is cut."""
        self.why = reason
        self._standing.clear()
        self._wanted.set()

    def closed(self, reason: str, *, fault: bool) -> None:
        """The connection that was dialled is closed; without a fault that is nothing to tell."""
        if not self._standing.is_set():
            self.why = reason
            self._tell = fault

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._standing.is_set():
                await self._try()
            if self._standing.is_set():
                began_s = loop.time()
                await self._wanted.wait()
                self._backoff.stood(loop.time() - began_s)
            # It may come by the other's dialling meanwhile. Not `wait_for`, which in Python 3.11
            # loses a cancellation that comes in the same moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._backoff.next_s()):
                    await self._standing.wait()

    async def _try(self) -> None:
        """Dial, and wait until the link stands or the connection is gone."""
        self._tell = True
        socket = await self._dial()
        if socket is not None:
            standing = asyncio.get_running_loop().create_task(self._standing.wait())
            gone: set[asyncio.Future[Any]] = {standing, socket.gone}
            # The core closes it where it is not agreed on in time.
            await asyncio.wait(gone, return_when=asyncio.FIRST_COMPLETED)
            standing.cancel()
        if self._standing.is_set() or not self._tell:
            return
        if not self._face.told(self._peer, self.why):
            logger.warning("no link to %s at %s: %s", self._peer, self.address, self.why)

    async def _dial(self) -> "LinkSocket | None":
        """A connection whose TLS handshake is done, or None and `why`."""
        loop = asyncio.get_running_loop()
        host, port = self._where
        tls = self._face.security.dialling
        try:
            async with asyncio.timeout(CONNECT_S):
                _, socket = await loop.create_connection(
                    self._connection,
                    host,
                    port,
                    ssl=tls,
                    server_hostname="" if tls is not None else None,
                )
        except TimeoutError:
            self.why = f"no answer within {CONNECT_S:g} s"
        except (OSError, ssl.SSLError) as error:
            self.why = sentence(error)
        else:
            return socket
        return None


def sentence(error: Exception) -> str:
    """Why a connection failed, without the libraries' numbers and places."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not one of ours: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS"
    if isinstance(error, sockets.gaierror):
        return "its host name is not known"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    text = getattr(error, "strerror", None) or str(error)
    text = re.sub(r"\[[^\]]*\] |\s*\(_ssl\.c:\d+\)", "", text).strip().lower()
    return text or "the connection was lost"
