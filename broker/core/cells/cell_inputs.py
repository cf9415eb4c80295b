"""What a cell takes in of origins: events, or what each has folded of its own.

Owns what an origin is asked besides operators, the positions up to which it may forget, and the
counts of what came. Must not know sessions, nor how rows are merged. Invariant: an origin keeps
what it may have to send again: behind what the cell has, and of folded inputs behind what is
complete (`header.safe`).

Folded inputs are those of a cell whose windows are split: it merges rows. It asks for no events by
operators, which would have them travel; so nothing passes on the way to it but answers, each for it
alone. Before it begins it asks for nothing, as it may yet have other tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from broker.core.networked.networked import NetworkedBroker
from broker.engine.window.splitting import Split
from broker.network.frames import frames, told
from broker.network.placement.cell_view import Load, rows_of
from broker.network.placement.home_reports import NamedOrigins
from broker.network.placement.snapshot_pace import Positions, Saver

Inputs = dict[tuple[str, str], Load]  # by origin and what came of it


class _Typed(Struct):
    type: str


_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_typed = msgspec.msgpack.Decoder(_Typed).decode


class EventInputs:
    """The inputs of a cell that are events; `counts` is what came of them by now."""

    splits = False

    def __init__(
        self, cell: str, network: NetworkedBroker, counts: Inputs, now: int, revision: int
    ) -> None:
        self._cell, self._network, self._counts = cell, network, counts
        self.begun = True  # whether the cell has all of its tasks, and no others
        self.origins = NamedOrigins()
        self.saver = Saver(self.positions(), now, revision)

    def changed(self) -> bool:
        """Tell whether other windows are split than before."""
        return False

    def may_ask(self, origin: str, types: tuple[str, ...]) -> bool:
        """Tell whether an origin may be asked for these types by now; else the home is told."""
        return self.begun and self.origins.allow(origin, types)

    def came(self, what: told.Told) -> None:
        """Count what comes of an origin."""
        if isinstance(what, told.Forwarded) and what.positions:
            self.saver.came(what.origin, what.positions[-1], len(what.events))
            for raw in _raw(what.events):
                self._count(what.origin, _typed(raw).type, len(bytes(raw)))

    def _count(self, origin: str, of: str, size_bytes: int) -> None:
        self._counts.setdefault((origin, of), Load()).add(1, size_bytes)

    def positions(self) -> Positions:
        """Return, by origin, up to where it will never be asked again."""
        return {
            origin: (upstream.life, position)
            for origin, upstream in self._network.upstream.items()
            if (position := self._safe(origin)) is not None
        }

    def unstored(
        self, via: Mapping[str, str], stored: Mapping[str, int]
    ) -> list[tuple[str, int, int]]:
        """Return what is stored of each origin and not reported: what the home has is stored."""
        rows = []
        for origin, (life, safe) in self.positions().items():
            position = self.saver.may_tell(origin, life, safe) if origin in via else None
            if position is not None and position != stored.get(origin):
                rows.append((origin, life, position))
        return rows

    def _safe(self, origin: str) -> int | None:
        return self._network.upstream[origin].position

    def held(self) -> dict[str, int]:
        """By origin, what it keeps besides: behind that position."""
        return {}

    def saves_at(self, end: int) -> int | None:
        """When the next snapshot is due, with results before `end`; see `Saver.due_at`."""
        return self.saver.due_at(self.positions(), end, self.held())

    def question(
        self, host: str, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Fold | None:
        """Return what an origin is asked in place of its events, if anything is."""

    def status(self) -> dict[str, Any]:
        """Describe for people what of it is split."""
        return {}


class FoldedInputs(EventInputs):
    """The inputs of a cell whose windows are split: origins fold their events, and it merges."""

    splits = True

    def __init__(
        self, cell: str, network: NetworkedBroker, counts: Inputs, now: int, revision: int
    ) -> None:
        super().__init__(cell, network, counts, now, revision)
        self.begun = False
        self._split: Split | None = None

    def changed(self) -> bool:
        """Tell whether other windows are split than before."""
        before, self._split = self._split, self._network.header.split()
        return before != self._split

    def came(self, what: told.Told) -> None:
        """Count what comes of an origin, which may be events where a source is at two."""
        super().came(what)
        if isinstance(what, told.Folded) and (what.rows or what.positions):
            size_bytes = len(what.rows) + len(what.events)
            self.saver.came(what.origin, what.upto, size_bytes)
            if self._split is not None and self._split.types:
                self._count(what.origin, rows_of(self._split.types, self._cell), size_bytes)

    def _safe(self, origin: str) -> int | None:
        return self._network.header.safe(origin)

    def held(self) -> dict[str, int]:
        """By origin, what it keeps besides, as it may have to send that again."""
        return self._network.header.gathered.held()

    def question(
        self, host: str, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Fold | None:
        """Have an origin fold; it is asked so where something of it is needed."""
        network, header, split = self._network, self._network.header, self._split
        if not types or split is None:
            return None
        upstream, doubted = network.upstream[origin], header.doubted(origin)
        text = network.source_of(next(iter(network.catalogue.subscriptions))).text
        return frames.Fold(
            host,
            origin,
            serial,
            upstream.life,
            upstream.position if doubted is None else doubted,
            header.safe(origin),
            types,
            text.encode("utf-8", "surrogatepass"),
            split.keys,
            split.ids,
            header.is_raw(origin),
            None if doubted is None else header.complete_ms(),
            doubted is not None,
        )

    def status(self) -> dict[str, Any]:
        """Describe for people what of it is split."""
        network, header = self._network, self._network.header
        split = {
            "types": [] if self._split is None else list(self._split.types),
            "raw": [name for name in network.upstream if header.is_raw(name)],
            "doubted": [name for name in network.upstream if header.doubted(name) is not None],
            "conflicts": network.ledger.notes.get("split_conflicts", 0),
            "conflicts_unresolved": network.ledger.notes.get("split_conflicts_unresolved", 0),
        }
        return {"split": split}
