"""A router that gains and loses neighbours one at a time, while all others stay as they are.

Owns what is said then. Must not know who such neighbours are. Invariant: the others are told only
what the one that came or went asks for or says itself.
"""

from __future__ import annotations

from broker.core.routing.asking import Asking
from broker.core.routing.covering import Check
from broker.core.routing.covers import Covers
from broker.core.routing.messages import Advertise, Send
from broker.core.routing.router import Router


class GrowingRouter(Router):
    """See the module; a change of the tree itself is `neighbours_changed`."""

    def neighbour_added(self, name: str) -> list[Send]:
        """A neighbour more, behind the others: what it has to be told."""
        if name in self._asking:
            return self.neighbour_reset(name)
        used = 0
        for bit in self._bits.values():
            used |= bit
        bit = ~used & (used + 1)  # the lowest that is free
        for held in self._store.everything():
            held.sent &= ~bit
        sent, received = self._strategy.sent, self._strategy.received
        self._bits[name] = bit
        self._entries[name] = {}
        self._received[name] = Covers(received if sent is Check.NONE else Check.NONE)
        self._asking[name] = Asking(sent)
        self._matchers[name] = self._matcher(name)
        self._directory.add(name)
        return [
            Send(name, Advertise(each))
            for direction in self._directory.directions
            if direction != name
            for each in self._directory.of(direction)
        ]

    def neighbour_removed(self, name: str) -> list[Send]:
        """A neighbour less; one that is none changes nothing."""
        if name not in self._asking:
            return []
        out = [send for send in self.neighbour_reset(name) if send.to != name]
        for entry in self._all():
            entry.plan.pop(name, None)
        for known in (self._bits, self._entries, self._received, self._asking, self._matchers):
            del known[name]
        self._directory.remove(name)
        return out
