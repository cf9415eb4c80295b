"""A cell whose windows are split: each origin folds its own events, and the cell merges them.

Owns what is asked of origins instead of events, and the positions up to which they may forget. Must
not know how rows are merged. Invariant: as of any cell; besides, an origin keeps what it may have
to send again as events (`header.safe`).

It asks for no events by operators: these would have them travel. So nothing passes on the way to it
but answers, each for it alone.
"""

from __future__ import annotations

from typing import Any

from broker.core.cells.cell import Cell
from broker.core.messages import DecodedEvents
from broker.core.recovery.durable import DurableBroker
from broker.engine.window.splitting import Split
from broker.network.frames import frames, told
from broker.network.operators.times import Times
from broker.network.placement import cell_messages
from broker.network.placement.cell_view import Load, rows_of
from broker.network.placement.snapshot_pace import Positions


class HeaderCell(Cell):
    """Run a cell whose windows are split: origins fold their events, and the cell merges them."""

    def __init__(
        self,
        durable: DurableBroker,
        hosted: cell_messages.Hosted,
        host: str,
        life: int,
        times: Times | None = None,
    ) -> None:
        self._begun = False  # whether it has all of its tasks, and no others
        self._split: Split | None = None
        super().__init__(durable, hosted, host, life, times)
        self._on_frame |= {frames.Folded: self._folded}

    def keep_only(self, one: cell_messages.Wanted | cell_messages.Hosted, now: int) -> None:
        """Keep only what the home names; the first time, look at what is needed, too."""
        super().keep_only(one, now)
        if not self._begun:
            self._begun = True
            self._look_at_needs()

    # --- what is needed --------------------------------------------------------------------

    def _look_at_needs(self) -> None:
        if not self._begun:
            return
        network = self.durable.network
        before, self._split = self._split, network.header.split()
        new = [key for key in network.activation.inactive() if key not in self.needs.waits]
        for key in new:
            self.needs.wait(key, self._known_origins(network.wanted_by(key)))
        if new or before != self._split:
            wanted = network.wanted()
            for origin, types in self.ways.types.items():
                if origin in network.upstream or not wanted.keys().isdisjoint(types):
                    self._ask(origin)
            self.needs.probe = self.probes.begin(wanted)
        self._activate()

    def _ask(self, origin: str) -> None:
        if self._begun:
            super()._ask(origin)

    def _question(
        self, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Sealed:
        """Have an origin fold; it is asked so where something of it is needed."""
        network, split = self.durable.network, self._split
        if not types or split is None:
            return super()._question(origin, serial, types)
        known = network.upstream[origin]
        return frames.Fold(
            self.me,
            origin,
            serial,
            known.life,
            known.position if (at := network.header.doubted(origin)) is None else at,
            network.header.safe(origin),
            types,
            self._text(),
            split.keys,
            split.ids,
            network.header.is_raw(origin),
            None if at is None else network.header.complete_ms(),
            at is not None,
        )

    def _text(self) -> bytes:
        network = self.durable.network
        key = next(iter(network.catalogue.subscriptions))
        return network.source_of(key).text.encode("utf-8", "surrogatepass")

    # --- what comes ------------------------------------------------------------------------

    def _folded(self, peer: str, one: frames.Folded) -> None:
        origin = one.what.origin
        known = self.durable.network.upstream.get(origin)
        if one.host != self.me or known is None or self.ways.via.get(origin) != peer:
            return
        asked = self.needs.asked.get(origin)
        if asked is not None and asked.serial != one.serial:
            self.counts["answers_stale"] += 1
            return
        if asked is None and (known.life, known.position) != (one.what.life, one.what.after):
            self._missed(origin)
            return
        self._tell_network(one.what)
        if one.more:
            self._ask(origin)
        elif one.last and asked is not None:
            self._whole(origin, one.serial)
        self._ask_anew()

    def _whole(self, origin: str, serial: int) -> None:
        self.needs.answered(origin, serial)
        self._activate()
        self._has_answered(origin)

    def _ask_anew(self) -> None:
        """Ask those whose sources are shared, or are so no more."""
        network = self.durable.network
        to_ask, network.header.to_ask = network.header.to_ask, {}
        for origin in to_ask:
            if origin in self.ways.via:
                self._ask(origin)

    def _tell_network(self, what: told.Told, events: DecodedEvents = None) -> None:
        if isinstance(what, told.Folded) and (what.rows or what.positions):
            size_bytes = len(what.rows) + len(what.events)
            self.saver.came(what.origin, what.upto, size_bytes)
            types = () if self._split is None else self._split.types
            if types:
                place = what.origin, rows_of(types, self.which.cell)
                self.counted.inputs.setdefault(place, Load()).add(1, size_bytes)
        super()._tell_network(what, events)

    # --- its state -------------------------------------------------------------------------

    def _positions(self) -> Positions:
        network = self.durable.network
        return {
            name: (one.life, at)
            for name, one in network.upstream.items()
            if (at := network.header.safe(name)) is not None
        }

    def _held(self) -> dict[str, int]:
        return self.durable.network.header.gathered.held()

    def _stored_at_origin(self, origin: str) -> int | None:
        one = self.durable.network.upstream[origin]
        at = self.durable.network.header.safe(origin)
        return None if at is None else self.saver.may_tell(origin, one.life, at)

    def split_status(self) -> dict[str, Any]:
        """Describe for people what of it is split."""
        network, header = self.durable.network, self.durable.network.header
        return {
            "types": [] if self._split is None else list(self._split.types),
            "raw": [name for name in network.upstream if header.is_raw(name)],
            "doubted": [name for name in network.upstream if header.doubted(name) is not None],
            "conflicts": network.ledger.notes.get("split_conflicts", 0),
            "conflicts_unresolved": network.ledger.notes.get("split_conflicts_unresolved", 0),
        }
