"""Successions: a broker took over a home, and every other one knows it.

Owns the successions and how they spread. Must not know links, sessions or what a cell is but for
its name. Invariant: a cell belongs to the heir of the latest succession that names it, else to the
home that its name begins with; whoever hears of a succession keeps it and passes it on.

A home that was taken over is fenced by it: behind the beginning of each session a neighbour states
all successions before anything else. Two persons may have two stand-ins take over one home, where
the network is parted. Then the later word counts at all brokers that hear of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from msgspec import Struct, convert, to_builtins

SUCCESSIONS_MAX = 1_000  # the oldest go: cells of those have ended, or have a later home
NAMED_MAX = 500  # subscriptions in one message: far below what a link takes

Generation = tuple[str, str, int, int]
"""Subscriber, name, seq, and when it was installed, in ms."""


class Succeeded(Struct, array_like=True, frozen=True, tag="succeeded"):
    """A broker, `heir`, took over cells and subscriptions of `home` at a time `at_ms`."""

    outlasts: ClassVar[bool] = True
    enlists: ClassVar[bool] = True  # the home that hears of it gives subscriptions up

    home: str
    heir: str
    at_ms: int
    part: int  # of several messages
    cells: tuple[str, ...]
    subscriptions: tuple[Generation, ...]
    log_end: int = 0  # results of the home before this offset of its log are in the heir's, too

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Return what tells it from all others."""
        return (self.home, self.heir, self.at_ms, self.part)


class HomeTaken(Struct, array_like=True, frozen=True, tag="home_taken"):
    """A person, or a lapsed lease, has this broker take over a home of which it has a copy."""

    outlasts: ClassVar[bool] = True
    enlists: ClassVar[bool] = True

    home: str


class SuccessionLog:
    """The successions that a broker has heard of; in the core's state."""

    def __init__(self) -> None:
        self.fresh: list[Succeeded] = []  # not yet said to neighbours
        self._heard: dict[tuple[str, str, int, int], Succeeded] = {}
        self._homes: dict[str, tuple[int, str]] = {}  # by cell: since when, where

    def __len__(self) -> int:
        return len(self._heard)

    def home_of(self, name: str) -> str:
        """Return the home of a cell, by its name or that of a term of it."""
        succeeded = self._homes.get(name.partition("#")[0])
        return name.partition("/")[0] if succeeded is None else succeeded[1]

    def heirs(self) -> dict[str, list[str]]:
        """Return, by home, who took it over, the last one last."""
        heirs: dict[str, dict[str, None]] = {}
        for succession in self._heard.values():
            heirs.setdefault(succession.home, {})[succession.heir] = None
        return {home: list(names) for home, names in heirs.items()}

    def stated(self) -> tuple[Succeeded, ...]:
        """Return all, in the order in which they came."""
        return tuple(self._heard.values())

    def has(self, succession: Succeeded) -> bool:
        """Tell if it is in the log already."""
        return succession.key in self._heard

    def handle(self, succession: Succeeded) -> None:
        """Take it in; a later one of the same cell counts."""
        if self.has(succession):
            return
        self._heard[succession.key] = succession
        self.fresh.append(succession)
        if len(self._heard) > SUCCESSIONS_MAX:
            del self._heard[next(iter(self._heard))]
        for cell in succession.cells:
            # Of two at the same millisecond the greater name: all brokers choose alike.
            self._homes[cell] = max(
                self._homes.get(cell, (0, "")), (succession.at_ms, succession.heir)
            )

    def state(self) -> list[Any]:
        """Return plain data."""
        return [to_builtins(succession) for succession in self._heard.values()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._heard, self._homes = {}, {}
        for row in state:
            self.handle(convert(row, Succeeded))
        self.fresh.clear()


class SuccessionExchange:
    """Exchanges successions with neighbours.

    `say` sends a message to a neighbour, behind the last record if it `rests` on that; `keep` has
    the core take one in.

    What is passed on rests on no record of this broker: whoever took over has it on its disk. So it
    stays ahead of what that one says to hosts behind it.
    """

    def __init__(
        self,
        log: SuccessionLog,
        say: Callable[[str, Succeeded, bool], None],
        keep: Callable[[Succeeded], None],
    ) -> None:
        self._log = log
        self._say = say
        self._keep = keep
        self._peers: dict[str, None] = {}  # those who understand it

    def begin(self, peer: str, *, understands: bool) -> None:
        """State all to a neighbour with whom a session was established now."""
        self._peers.pop(peer, None)
        if understands:
            self._peers[peer] = None
            for succession in self._log.stated():
                self._say(peer, succession, True)

    def spread(self, peers: Iterable[str], *, rests: bool) -> None:
        """State what is new since the last time."""
        if not self._log.fresh:
            return
        fresh = tuple(self._log.fresh)
        self._log.fresh.clear()
        for peer in peers:
            if peer in self._peers:
                for succession in fresh:
                    self._say(peer, succession, rests)

    def hear(self, _peer: str, succession: Succeeded) -> None:
        """Take in what a neighbour states; what is in the log makes no record."""
        if not self._log.has(succession):
            self._keep(succession)
