"""An origin and the cells that need it.

Owns what is kept for a cell when it goes from broker to broker, and the end of that. Must not know
how a cell runs. Invariant: what is kept for a term ends with a snapshot that its home has stored,
or with its home's word that the term is over; so what a cell begins anew from finds all behind it.

A cell's `Reoffer` tells where the cell is, not what it has stored: that is told by `Stored` alone.
A term that does not know its place at an origin begins where the earlier ones of the same cell have
left off, if anything is kept for one.

A home that is forgotten may have been taken over a moment before, and word of that comes behind
word of the forgetting where links fail between. So its terms end once all other brokers have been
within reach for a while: whoever is not may be the heir, or stand between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from broker.core.networked.networked import NetworkedBroker
from broker.network.frames import told
from broker.network.neighbours.ways import Ways
from broker.network.origin.own import Interest
from broker.network.overlay.topology import Topology
from broker.network.placement import cell_messages
from broker.network.placement.cell_view import is_cell
from broker.network.placement.mail import SAY_AGAIN_MS, CellMail
from broker.network.routing.wants import HostWants

MOMENT_MS = 1_000  # a tree that changes has brokers out of reach for less
FORGOTTEN_MS = 10_000  # word of a succession goes through a network that is whole in that time


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
        topology: Topology,
        ways: Ways,
        mail: CellMail,
        tell: Callable[[told.Told | HostWants], None],
    ) -> None:
        self.asks_at: int | None = None  # when homes are asked for lost terms
        self._whole_at: dict[str, int] = {}  # forgotten homes: since when the others are in reach
        self._network = network
        self._topology = topology
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
        elif self._whole_at and origin in self._topology.known:
            self._whole_at.clear()
            self._look_by(now + MOMENT_MS)

    def wake(self, now: int) -> None:
        """Look, where it is time to."""
        if self.asks_at is not None and self.asks_at <= now:
            self.look(now)

    def look(self, now: int) -> None:
        """Ask homes for terms of cells that are not to be reached; end those of forgotten ones."""
        by_home: dict[str, list[str]] = {}
        for name in _terms(self._network):
            by_home.setdefault(self._network.successions.home_of(name), []).append(name)
        dues = []
        for home, names in by_home.items():
            lost = tuple([name for name in names if name not in self._ways.via])
            if home in self._topology.forgotten:
                due = self._end_of(home, now)
                if due <= now:
                    del self._whole_at[home]
                    self._end(home, names)
                else:
                    dues.append(due)
            elif lost:
                self._mail.tell(home, cell_messages.Asked(lost))
                dues.append(now + SAY_AGAIN_MS)
        self.asks_at = min(dues, default=None)

    def _end_of(self, home: str, now: int) -> int:
        """Return when nothing more is to be heard of a forgotten home, or when to look again."""
        others = [name for name in self._topology.known if name != self._topology.me]
        if all(name in self._ways.via for name in others):
            return self._whole_at.setdefault(home, now) + FORGOTTEN_MS
        return now + FORGOTTEN_MS

    def _end(self, home: str, names: Collection[str]) -> None:
        for name in _terms(self._network):
            if name in names and self._network.successions.home_of(name) == home:
                self._tell(told.HostInterested(name, {}, None))
                self._tell(HostWants(name, 0, {}))

    def forget(self, broker: str, now: int) -> None:
        """Keep nothing for the cells of a home that nobody is to wait for, before long."""
        self._whole_at.pop(broker, None)
        self._look_by(now)

    def _look_by(self, due: int) -> None:
        self.asks_at = due if self.asks_at is None else min(due, self.asks_at)


def _terms(network: NetworkedBroker) -> dict[str, None]:
    """The terms of cells for which something is kept, or would be."""
    hosts = (*network.own.hosts, *network.wants.hosts)
    return dict.fromkeys([name for name in hosts if is_cell(name)])
