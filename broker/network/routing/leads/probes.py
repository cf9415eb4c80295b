"""Probes: events that a neighbour is told of, so that what waits for them there may go.

Owns what was heard as a probe, and which events are told each neighbour. Must not know how leads
are chosen. Invariant: a neighbour that was asked for events only together with silent ones is told
each event that came from elsewhere, as a probe too, and is in a complete match of the silent keys.

A probe completes matches where it comes, and is sent on as a probe alone: what it stands for
travels by itself to those who want it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from broker.network.routing.advertisement.messages import LeadEvents, Send
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.advertisement.sources import simplest
from broker.network.routing.matching.matching import Compile, Joined, Matcher, Released, parts_of
from broker.network.routing.matching.rows import EventView, Held, Store

SEPARATOR = "\x1e"  # between who is to be told, and what


class KeptEvents:
    """Offer all that is kept of a type, be it events or probes."""

    def __init__(self, *stores: Store) -> None:
        self._stores = stores

    def of_type(self, type_name: str) -> Sequence[Held]:
        """Return the events of a type."""
        return [held for store in self._stores for held in store.of_type(type_name)]


class Probing:
    """Tell neighbours what they need to know of, and remember what was told here."""

    def __init__(self, events: Store, compile_condition: Compile) -> None:
        self.heard = Store(events.numbers)
        self._events = events
        self._compile = compile_condition  # of conditions in words
        self._bits: dict[str, int] = {}
        self.asked: dict[str, Matcher] = {}  # of neighbours that have to be told
        self._shed: tuple[int, int] | None = None  # as `shed` was called last

    def link(self, bits: dict[str, int]) -> None:
        """Forget all neighbours and begin with these, each with the bit of what it was told."""
        self.heard = Store(self._events.numbers)
        self._bits, self.asked = {}, {}
        for name, bit in bits.items():
            self.add(name, bit)

    def add(self, name: str, bit: int) -> None:
        """Begin with a neighbour that was told nothing; `bit` marks what it is told."""
        for held in self.heard.everything():
            held.sent &= ~bit
        self._bits[name] = bit
        self.asked.pop(name, None)

    def remove(self, name: str) -> None:
        """Tell a neighbour nothing more."""
        del self._bits[name]
        self.asked.pop(name, None)

    def ask(self, name: str, owner: str, operator: Operator) -> list[Send]:
        """Tell a neighbour from now on what the silent keys of an operator want."""
        keys = tuple(key for key in operator.keys if key.name in operator.silent)
        if not keys:
            return []
        probe = simplest(replace(operator, id=_name(owner, operator.id), keys=keys, silent=()))
        matcher = self.asked.get(name)
        if matcher is None:
            # What came from there completes matches, too; its bit tells that it does not go back.
            matcher = Matcher("", self._bits[name], self._compile, each=False)
            self.asked[name] = matcher
            if self._shed is not None:  # what was forgotten then may be needed by what comes
                matcher.shed(*self._shed)
        kept = KeptEvents(self._events, self.heard)
        return _sends(name, matcher.add(probe, parts_of(probe), kept))

    def release(self, name: str, owner: str, operator: str) -> None:
        """Tell a neighbour no longer what an operator needs; it may need nothing."""
        matcher, probe = self.asked.get(name), _name(owner, operator)
        if matcher is not None and probe in matcher:
            matcher.remove(probe)
            if not len(matcher):
                del self.asked[name]

    def tell(self, held: Held, out: list[Send]) -> None:
        """Tell others of an event, or probe, that has come."""
        for name, matcher in self.asked.items():
            out += _sends(name, matcher.offer(held))

    def joined(self) -> list[tuple[str, Joined]]:
        """Return by neighbour what has to be in a match before it is told."""
        asked = [(name, matcher.joined()) for name, matcher in self.asked.items()]
        return [(name, joined) for name, joined in asked if joined.types]

    def expire(self, before_ms: int) -> None:
        """Forget what began before."""
        self.heard.expire(before_ms)
        for matcher in self.asked.values():
            matcher.expire(before_ms)

    def shed(self, before_ms: int, last_ms: int) -> list[Send]:
        """Forget it though it may be needed: as `Matcher.shed`."""
        out: list[Send] = []
        latest_ms = last_ms if self._shed is None else max(self._shed[1], last_ms)
        self._shed = before_ms, latest_ms
        for name, matcher in self.asked.items():
            out += _sends(name, matcher.shed(before_ms, last_ms))
        self.heard.expire(before_ms)
        return out

    def hear(self, came_from: str, bit: int, events: Iterable[EventView]) -> list[Held]:
        """Return what was not heard before, of probes that a neighbour sent."""
        new: list[Held] = []
        for event in events:
            held = self.heard.add(event, came_from)
            if held is not None:
                held.sent |= bit | bit << 1
                new.append(held)
        return new


def _name(owner: str, operator: str) -> str:
    return f"{owner}{SEPARATOR}{operator}"


def _sends(name: str, released: list[Released]) -> list[Send]:
    if not released:
        return []
    return [Send(name, LeadEvents([each.held.event for each in released], len(released)))]
