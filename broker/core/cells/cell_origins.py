"""An origin and the cells that need it.

Owns what is kept for a cell when it goes from broker to broker, and the end of that. Must not know
how a cell runs. Invariant: what is kept for a term ends with a snapshot that its home has stored,
or with its home's word that the term is over; so what a cell begins anew from finds all behind it.

A cell's `Reoffer` tells where the cell is, not what it has stored: that is told by `Stored` alone.
A term that does not know its place at an origin begins where the earlier ones of the same cell have
left off, if anything is kept for one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from broker.core.networked.networked import NetworkedBroker
from broker.network.frames import told
from broker.network.neighbours.ways import Ways
from broker.network.origin.own import Interest
from broker.network.placement import cell_messages
from broker.network.placement.cell_view import is_cell
from broker.network.placement.mail import SAY_AGAIN_MS, CellMail
from broker.network.routing.wants import HostWants

FORGOTTEN_MS = 10_000  # word of a succession goes through a network in that time


def places(
    hosts: Mapping[str, Interest], host: str, position: int | None
) -> tuple[int | None, int | None]:
    """(behind what to offer to a term of a cell, what it has stored); None: from now on."""
    cell = host.partition("#")[0]
    if position is None:
        terms = [one.position for name, one in hosts.items() if name.partition("#")[0] == cell]
        position = min(terms, default=None)
    known = hosts.get(host)
    if known is None or position is None:
        return position, position
    return position, min(known.position, position)


class CellTerms:
    """Hold what this origin keeps for terms; `tell` has the core take something in."""

    def __init__(
        self,
        network: NetworkedBroker,
        ways: Ways,
        mail: CellMail,
        tell: Callable[[told.Told | HostWants], None],
    ) -> None:
        self.asks_at: int | None = None  # when homes are asked for lost terms
        self._forgotten: dict[str, int] = {}  # homes, and when their terms end
        self._network = network
        self._ways = ways
        self._mail = mail
        self._tell = tell
        mail.on_said |= {cell_messages.Over: lambda home, one: self._end(home, one.terms)}

    def gone(self, origin: str, now: int) -> None:
        """Ask the home before long, where a term is not to be reached any more."""
        if is_cell(origin):
            self._ways.forget_host(origin)
            if origin in _terms(self._network):
                self.asks_at = now

    def wake(self, now: int) -> None:
        """Look, where it is time to."""
        if self.asks_at is not None and self.asks_at <= now:
            self.look(now)

    def look(self, now: int) -> None:
        """Ask homes for terms of cells that are not to be reached; end those of forgotten ones."""
        for broker in [broker for broker, due in self._forgotten.items() if due <= now]:
            del self._forgotten[broker]
            self._end(broker, _terms(self._network))
        lost: dict[str, list[str]] = {}
        for name in _terms(self._network):
            if name not in self._ways.via:
                lost.setdefault(self._network.successions.home_of(name), []).append(name)
        dues = [*self._forgotten.values(), *([now + SAY_AGAIN_MS] if lost else ())]
        self.asks_at = min(dues, default=None)
        for home, names in lost.items():
            self._mail.tell(home, cell_messages.Asked(tuple(names)))

    def _end(self, home: str, names: Collection[str]) -> None:
        for name in _terms(self._network):
            if name in names and self._network.successions.home_of(name) == home:
                self._tell(told.HostInterested(name, {}, None))
                self._tell(HostWants(name, 0, {}))

    def forget(self, broker: str, now: int) -> None:
        """Keep nothing for the cells of a home that nobody is to wait for, before long.

        It may have been taken over a moment ago, of which this broker is yet to hear.
        """
        if any(self._network.successions.home_of(name) == broker for name in _terms(self._network)):
            due = self._forgotten[broker] = now + FORGOTTEN_MS
            self.asks_at = due if self.asks_at is None else min(due, self.asks_at)


def _terms(network: NetworkedBroker) -> dict[str, None]:
    """The terms of cells for which something is kept, or would be."""
    hosts = (*network.own.hosts, *network.wants.hosts)
    return dict.fromkeys([name for name in hosts if is_cell(name)])
