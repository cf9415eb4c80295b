"""Signs of life to systemd, where it is what started the broker.

Owns the protocol of NOTIFY_SOCKET. Must not know the broker. Invariant: without that socket, or
where it does not answer, nothing happens.
"""

import os
import socket
from collections.abc import Mapping


class Supervisor:
    """Tells systemd that the broker is ready, alive or ending; see sd_notify(3)."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        usec = environ.get("WATCHDOG_USEC", "")
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.alive_every_s = int(usec) / 2_000_000 if usec.isdecimal() and mine else None

    def ready(self) -> None:
        """Clients are served."""
        self._tell("READY=1")

    def alive(self) -> None:
        """The event loop turns; due every `alive_every_s` (None: nobody wants to know)."""
        self._tell("WATCHDOG=1")

    def stopping(self) -> None:
        """The broker is about to end."""
        self._tell("STOPPING=1")

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(text.encode(), self._address)
        except OSError:
            return  # a supervisor that does not listen is no reason to stop serving
