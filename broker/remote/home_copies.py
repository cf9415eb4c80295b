"""The copies of homes that cannot be asked, found at the brokers that stand in for them.

Owns the question which broker has the latest copy of a home, and what a copy lists. Must not know
how a copy is kept or adopted. Invariant: nobody is asked twice for one answer, and a copy is no
home: what it lists is said to be that of a home that is away.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from broker.core.standby.copies_kept import CopiesKept
from broker.remote.desk import CallDesk, Reply, UnansweredError
from broker.remote.question import Row, row_of

Place: TypeAlias = tuple[int, int]  # the run of the home, and the change within it
Places: TypeAlias = dict[str, Place]


class Successors(Protocol):
    """Knows the homes that were taken over."""

    def heirs(self) -> dict[str, list[str]]:
        """Return, by home, who took it over, the last one last."""


class HomeCopies:
    """The copies that broker `me` has, `kept`, and those of the brokers that it can ask."""

    def __init__(self, me: str, calls: CallDesk, kept: CopiesKept, successors: Successors) -> None:
        self._me = me
        self._calls = calls
        self._kept = kept
        self._successors = successors
        calls.answers["copies"] = self._asked

    def places(self) -> Places:
        """Return how far the copies here are, by home."""
        return {name: (copy.run, copy.number) for name, copy in self._kept.homes.items()}

    def rows(self, home: str) -> list[Row]:
        """Return what the copy of a home lists; nothing where there is no copy here."""
        copy = self._kept.homes.get(home)
        return [] if copy is None else [row_of(row.installed) for row in copy.rows.values()]

    async def latest(
        self, homes: Collection[str], brokers: Sequence[str]
    ) -> dict[str, tuple[str, Place]]:
        """Return by home which of these brokers has the latest copy, and how far that is."""
        places = await asyncio.gather(*[self._places_of(name) for name in brokers])
        best: dict[str, tuple[Place, str]] = {}
        for broker, copies in zip(brokers, places, strict=True):
            for home in homes:
                if home in copies:
                    best[home] = max((copies[home], broker), best.get(home, ((-1, -1), "")))
        return {home: (broker, place) for home, (place, broker) in best.items()}

    async def remarks(self, away: Collection[str]) -> dict[str, dict[str, str]]:
        """Return by home that is away who stands in for it, or has taken it over.

        `away` are not asked themselves: they have just given no answer.
        """
        if not away:
            return {}
        asked = [self._me, *[name for name in self._calls.others() if name not in away]]
        latest, heirs = await self.latest(away, asked), self._successors.heirs()
        remarks: dict[str, dict[str, str]] = {}
        for home in away:
            if home in latest:
                remarks.setdefault(home, {})["stand_in"] = latest[home][0]
            if home in heirs:
                remarks.setdefault(home, {})["taken_over_by"] = heirs[home][-1]
        return remarks

    async def _places_of(self, broker: str) -> Places:
        """Return how far the copies of a broker are; nothing where it cannot be asked."""
        if broker == self._me:
            return self.places()
        try:
            reply = await self._calls.read(broker, "copies")
            return msgspec.convert(reply.get("homes", {}), Places)
        except (UnansweredError, msgspec.ValidationError):
            return {}

    async def _asked(self, _question: Mapping[str, Any]) -> Reply:
        return {"homes": self.places()}
