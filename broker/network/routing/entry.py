"""The beginning of a process: whether it has found its neighbours.

Owns which links are to be up before a broker may take itself for cut off. Must not know links.
Invariant: once it is over it stays so; it is over at the latest `WAIT_MS` after the beginning.
"""

from __future__ import annotations

from collections.abc import Collection

WAIT_MS = 5_000  # to dial and be dialled; a broker that is not there by then is not reachable


class Joining:
    """Wait for the first links. `peers` are dialled; `listens`: others may dial, and somebody will.

    `begin_ms` is the time of the beginning; the time is over `until` then, None: it is over.
    """

    def __init__(
        self, peers: Collection[str] = (), begin_ms: int = 0, *, listens: bool = False
    ) -> None:
        self._peers = tuple(peers)
        self.until: int | None = begin_ms + WAIT_MS if peers or listens else None

    def over(self, links: Collection[str], now: int) -> bool:
        """Tell whether all who are to be neighbours are, or had their time; `links` are up."""
        if self.until is None:
            return True
        # Nobody knows who will dial: one link is taken for a sign that others are there.
        if now < self.until and not (links and all(peer in links for peer in self._peers)):
            return False
        self.until = None
        return True
