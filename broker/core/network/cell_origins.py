"""An origin and the cells that need it.

Owns what is kept for a cell when it goes from broker to broker, and the end of that. Must not know
how a cell runs. Invariant: what is kept for a term ends with a snapshot that its home has stored,
or with its home's word that the term is over; so what a cell begins anew from finds all behind it.

A cell's `Reoffer` tells where the cell is, not what it has stored: that is told by `Stored` alone.
A term that does not know its place at an origin begins where the earlier ones of the same cell have
left off, if anything is kept for one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker.core.network import cell_frames, told
from broker.core.network.cell_hosts import CellHosts
from broker.core.network.cell_posting import SAY_AGAIN_MS
from broker.core.network.cell_view import home_of, is_cell
from broker.core.network.networked import NetworkedBroker
from broker.core.network.own import Interest
from broker.network.routing.wants import HostWants


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


class CellOrigins(CellHosts):
    """See the module."""

    def _begin_cells(self, epoch: int) -> None:
        """Begin; to be called once."""
        self._begin_posting(epoch)
        self._begin_homes()
        self._begin_hosts()
        self._ask_homes_at: int | None = None
        self._on_said |= {cell_frames.Over: lambda home, one: self._end_terms(home, one.terms)}
        self._look_for_lost_terms()

    def _gone(self, origin: str, peer: str) -> None:
        if is_cell(origin):
            self.ways.forget_host(origin)
            if origin in _terms(self.durable.network):
                self._ask_homes_at = self._now
        super()._gone(origin, peer)

    def _look_for_lost_terms(self) -> None:
        """Ask homes for terms of cells that are not to be reached."""
        lost: dict[str, list[str]] = {}
        for name in _terms(self.durable.network):
            if name not in self.ways.via:
                lost.setdefault(home_of(name), []).append(name)
        self._ask_homes_at = self._now + SAY_AGAIN_MS if lost else None
        for home, names in lost.items():
            self._tell_broker(home, cell_frames.Asked(tuple(names)))

    def _end_terms(self, home: str, names: Collection[str]) -> None:
        for name in _terms(self.durable.network):
            if name in names and home_of(name) == home:
                self._tell_network(told.HostInterested(name, {}, None))
                self._tell_network(HostWants(name, 0, {}))

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        self._end_terms(broker, _terms(self.durable.network))

    # --- time ------------------------------------------------------------------------------

    def _wake_for_cells(self) -> None:
        """Do what is due of all that concerns cells."""
        self._wake_cells()
        self._leave_lost_hosts()
        self._give_up_moves()
        self._begin_again()
        if self._ask_homes_at is not None and self._ask_homes_at <= self._now:
            self._look_for_lost_terms()

    def _wakes_for_cells(self) -> list[int]:
        """When that is."""
        asks = [] if self._ask_homes_at is None else [self._ask_homes_at]
        return self._homes_wake() + self._cells_wake() + asks


def _terms(network: NetworkedBroker) -> dict[str, None]:
    """The terms of cells for which something is kept, or would be."""
    hosts = (*network.own.hosts, *network.wants.hosts)
    return dict.fromkeys([name for name in hosts if is_cell(name)])
