"""The cells in which a home's submissions run: its part of the core of a broker.

Owns what a subscription's home keeps while its tasks run in a cell: who asked for it, whether it is
active, and its results. Must not know frames or where a cell is. Invariant: a task runs in this
core's own matcher exactly while a subscription needs it that is of no cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import Emission, Outgoing
from broker.engine.ingest.times import TIME_MAX_MS
from broker.engine.ledger import Ledger
from broker.engine.runtime.matcher import Matcher
from broker.network.placement.book import CellBook
from broker.network.placement.home_records import (
    CellMoved,
    CellNamed,
    CellResults,
    CellSaved,
    CellSettled,
    Row,
)

Key = tuple[str, str]

_decode = msgspec.json.decode
_encode = msgspec.json.encode


class HomeCells:
    """Take up what the cells say that are in the home's `book`.

    `activate` has subscriptions active, `end` ends one, `nearest` chooses an actor, and `give`
    gives results out.
    """

    def __init__(  # noqa: PLR0917  # what a part of the core is lent
        self,
        book: CellBook,
        catalogue: Catalogue,
        matcher: Matcher,
        ledger: Ledger,
        activate: Callable[[Iterable[Key], Outgoing], None],
        end: Callable[[Installed], None],
        nearest: Callable[[str], str],
        give: Callable[[Sequence[Emission], Outgoing], None],
    ) -> None:
        self._book, self._matcher, self._ledger = book, matcher, ledger
        self._subscriptions = catalogue.subscriptions
        self._activate, self._end, self._nearest, self._give = activate, end, nearest, give

    def handlers(self) -> dict[type[Any], Callable[[Any, Outgoing], None]]:
        """Return what takes in the messages of cells."""
        book = self._book
        return {
            CellMoved: lambda move, _: book.move(move.cell, move.broker, move.reason),
            CellNamed: lambda named, _: book.name(named.cell, named.origins),
            CellResults: self._results,
            CellSaved: self._saved,
            CellSettled: self._settled,
        }

    def forget_cancelled(self) -> None:
        """Run no cell of what is installed no more."""
        if self._book.of:
            self._book.drop([key for key in self._book.of if key not in self._subscriptions])
            self.stop_idle()

    def stop_idle(self) -> None:
        """Run the tasks of those subscriptions alone that are of no cell."""
        needed = {
            name
            for key, installed in self._subscriptions.items()
            if key not in self._book.of and installed.state != "ended"
            for name in (*installed.uses, installed.task)
        }
        for name in reversed(list(self._matcher.running)):  # users first
            if name not in needed:
                self._matcher.remove(name)

    # --- what cells say --------------------------------------------------------------------

    def _results(self, sent: CellResults, out: Outgoing) -> None:
        forgotten = self._book.forgotten
        self.hand_out(self._book.results(sent), out)
        self._ledger.note("cell_ids_forgotten", self._book.forgotten - forgotten)

    def _saved(self, saved: CellSaved, out: Outgoing) -> None:
        fresh, rows = self._book.save(saved)
        if fresh:
            self._activate(fresh, out)
        self.hand_out(rows, out)

    def _settled(self, settled: CellSettled, _out: Outgoing) -> None:
        book = self._book
        book.settle(settled)
        over = [
            (subscriber, name)
            for subscriber, name, reached in settled.reached
            if reached >= TIME_MAX_MS and book.of.get((subscriber, name)) == settled.cell
        ]
        for key in over:
            if book.settled.get(key) == TIME_MAX_MS:  # all results before it are here
                book.drop([key])
                self._end(self._subscriptions[key])

    def hand_out(self, rows: Sequence[Row], out: Outgoing) -> None:
        """Give results out as if they had been detected here."""
        emissions = []
        for subscriber, name, actor, payload in rows:
            installed = self._subscriptions.get((subscriber, name))
            if installed is None:
                continue
            installed.results += 1
            result = _decode(payload)
            if installed.nearest:
                nearest = self._nearest(actor)
                if nearest != actor:
                    payload = _encode({**result, "actor": nearest})  # noqa: PLW2901
                    actor = nearest  # noqa: PLW2901
            emissions.append(
                Emission(result["id"], result["end"], subscriber, name, actor, payload)
            )
        self._ledger.results += len(emissions)
        self._give(emissions, out)
