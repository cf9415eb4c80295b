"""The copies of other homes that a broker has.

Owns them, in the core's state. Must not know links. Invariant: a copy has taken in its home's
changes without a gap; what does not follow on what is there changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from broker.core.effects import Outgoing
from broker.core.standby.home_copy import HomeCopy, read, saved
from broker.network.delivery.messages import HomeChanged, HomeEntrusted, HomeKept

HOMES_MAX = 1_000  # as many as links may be
# What reading a state or a change may raise where another version wrote it, or somebody else.
_UNREADABLE: Final = (msgspec.MsgspecError, ArithmeticError, LookupError, TypeError, ValueError)


class CopiesKept:
    """Keeps a copy of each home of which this broker is the stand-in; `homes` are by name."""

    def __init__(self) -> None:
        self.homes: dict[str, HomeCopy] = {}

    def __len__(self) -> int:
        return len(self.homes)

    def entrusted(self, message: HomeEntrusted, _out: Outgoing | None = None) -> None:
        """Take a copy in the place of the one before, or let go of it: also if none can be read."""
        if not message.state:
            self.homes.pop(message.home, None)
        elif message.home in self.homes or len(self.homes) < HOMES_MAX:
            try:
                copy = HomeCopy(message.home, message.run, message.number, message.state)
            except _UNREADABLE:
                self.homes.pop(message.home, None)
            else:
                self.homes[message.home] = copy

    def changed(self, message: HomeChanged, _out: Outgoing | None = None) -> None:
        """Take in changes of a home."""
        if self.follows(message):
            try:
                self.homes[message.home].take(message.changes, message.first)
            except _UNREADABLE:
                # Half of a change may be in it: the home hears that it lacks all, and says it anew.
                del self.homes[message.home]

    def follows(self, message: HomeChanged) -> bool:
        """Tell if changes go on where the copy is."""
        copy = self.homes.get(message.home)
        return copy is not None and copy.run == message.run and message.first <= copy.number + 1

    def knows(self, message: HomeEntrusted | HomeChanged) -> bool:
        """Tell if the copy has it already."""
        copy = self.homes.get(message.home)
        if isinstance(message, HomeChanged):
            return copy is not None and copy.run == message.run and message.last <= copy.number
        if not message.state:
            return copy is None or copy.run > message.run
        return copy is not None and (copy.run, copy.number) >= (message.run, message.number)

    def reached(self, home: str, *, lacks: bool = False) -> HomeKept:
        """Return how far the copy of a home is."""
        copy = self.homes.get(home)
        return HomeKept(0, 0, lacks) if copy is None else HomeKept(copy.run, copy.number, lacks)

    def status(self) -> dict[str, dict[str, int]]:
        """Return it for people, by home."""
        return {
            name: {
                "subscriptions": len(copy.rows),
                "cells": len(copy.book.cells),
                "change": copy.number,
                "run": copy.run,
            }
            for name, copy in self.homes.items()
        }

    def state(self) -> list[dict[str, Any]]:
        """Return plain data."""
        return [saved(copy) for copy in self.homes.values()]

    def restore(self, state: Iterable[Mapping[str, Any]]) -> None:
        """Take up such a state, in the place of all that is there."""
        self.homes = {copy.home: copy for copy in map(read, state)}
