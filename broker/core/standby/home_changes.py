"""The changes of a home by a message, as its stand-in is to have them.

Owns the comparison of what is installed with what was said of it last. Must not know the stand-in.
Invariant: `of` is asked for each message that the core has handled, in order; its changes, taken in
behind the `state` of any moment before, give the state of now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from broker.core import messages
from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import DisownResults, Emission
from broker.core.recovery.durable_state import Source
from broker.core.standby.home_copy import (
    Cell,
    CopiesMade,
    CopyRow,
    Given,
    GivenRow,
    GivenUpto,
    HomeState,
    InstalledRow,
    Key,
    ListingChanged,
    ResultsGiven,
    Revisions,
    TextRow,
    UnreadResults,
    encoded,
)
from broker.engine.ingest.times import TIME_MAX_MS
from broker.network.actors.copies import Copies, Copy
from broker.network.delivery.succession import HomeTaken, Succeeded
from broker.network.frames import told
from broker.network.placement import home_records
from broker.network.placement.book import CellBook
from broker.network.placement.home_records import CellStood

_REQUESTS = (messages.SpecificationSubmitted, messages.CancelRequested)
_OF_CELLS = (
    home_records.CellMoved,
    home_records.CellNamed,
    home_records.CellResults,
    home_records.CellSaved,
)
_LISTING = (HomeTaken, Succeeded, home_records.CellParted)


class Home(Protocol):
    """The core of a home, as far as its stand-in has a copy of it."""

    catalogue: Catalogue
    book: CellBook
    copies: Copies

    def source_of(self, key: Key) -> Source:
        """Return the text that a subscription came with."""


class HomeChanges:
    """Compares a home, whose core this is, with what was said; its outbox lacked `unstored`.

    `epoch` names the home's output log, `lease_ms` is what its stand-in may count on.
    """

    def __init__(self, home: Home, unstored: Sequence[Emission] = ()) -> None:
        self._home = home
        self._rows: dict[Key, tuple[Any, ...]] = {}  # what was said of each subscription last
        self._texts: dict[int, tuple[Source, TextRow]] = {}  # by the identity of the source
        self._cells: dict[str, tuple[Key, ...]] = {}
        self._asked: dict[str, int] = {}  # by cell, its last revision
        self._text_number = 0
        self.epoch, self.lease_ms = "", 0
        self._given = UnreadResults()
        self.given(unstored)

    def state(self) -> bytes:
        """Return all as of now; `of` goes on from here."""
        home = self._home
        self._rows, self._cells, self._texts, self._asked = {}, {}, {}, {}
        listed = self._listed()
        copies = [copy for name in home.copies.brokers() for copy in home.copies.kept_for(name)]
        whole = HomeState(
            listed.texts,
            listed.rows,
            home.book.state(),
            home.copies.life,
            _rows(copies),
            self._given.state(),
            self.epoch,
            self.lease_ms,
        )
        return encoded(whole)

    def of(self, message: messages.Message) -> list[bytes]:
        """Return what has changed by a message that the core has handled."""
        changes: list[Any] = []
        what = message.what if isinstance(message, messages.NetworkTold) else None
        if isinstance(message, _REQUESTS) or isinstance(what, _LISTING):
            listed = self._listed()
            if any(msgspec.structs.astuple(listed)):
                changes.append(listed)
        elif isinstance(what, _OF_CELLS) or (isinstance(what, CellStood) and what.cell):
            changes.append(what)
        elif isinstance(what, home_records.CellSettled):
            ended = [row for row in what.reached if row[2] >= TIME_MAX_MS]
            changes += [msgspec.structs.replace(what, reached=ended)] if ended else []
        elif isinstance(what, told.CopiesTaken):
            changes.append(what)
        if self._home.copies.fresh:
            changes.append(CopiesMade(_rows(self._home.copies.fresh)))
        return [encoded(change) for change in changes]

    def given(self, results: Sequence[Emission]) -> list[bytes]:
        """Return the changes that results have got offsets; those of cells were said with them."""
        # One without a payload is void, see `disowned`: nobody is to have it.
        rows = [_given_row(result) for result in results if result.payload]
        self._given.add(rows)
        in_cells = [row for row in rows if row.result[:2] in self._home.book.of]
        others = [row for row in rows if row.result[:2] not in self._home.book.of]
        changes: list[Any] = [Given(in_cells[-1].offset + 1)] if in_cells else []
        changes += [ResultsGiven(others)] if others else []
        return [encoded(change) for change in changes]

    def recall(self, unread: Sequence[Emission], first: int, end: int) -> None:
        """Take in what the log has from `first` to `end` that its readers have not read."""
        self._given.begin([_given_row(result) for result in unread], first, end)

    def disown(self, by: DisownResults) -> None:
        """Let go of results that another home finds again; the whole state has to be said anew."""
        self._given.disown(by)

    def delivered(self, offset: int, read: int) -> list[bytes]:
        """Return the change that results were given out, and read, before these offsets."""
        given = self._given
        if not given.rows or given.rows[0].offset >= offset:
            return []
        before = given.delivered, given.first
        given.deliver(offset, read)
        if before == (given.delivered, given.first):
            return []
        return [encoded(GivenUpto(offset, read))]

    def _listed(self) -> ListingChanged:
        home = self._home
        rows: list[InstalledRow] = []
        texts: list[TextRow] = []
        cells: list[Cell] = []
        installed = home.catalogue.subscriptions
        for key, subscription in installed.items():
            standing = _standing(subscription)
            if self._rows.get(key) != standing:
                self._rows[key] = standing
                number = self._number_of(key, subscription, texts)
                rows.append(InstalledRow(number, subscription))
        left = [key for key in self._rows if key not in installed]
        for name, cell in home.book.cells.items():
            if self._cells.get(name) != (keys := tuple(cell.keys)):
                self._cells[name] = keys
                cells.append(_cell(name, cell.since, keys, splits=cell.splits))
        gone = [name for name in self._cells if name not in home.book.cells]
        revised = self._revised()
        for key in left:
            del self._rows[key]
        for name in gone:
            del self._cells[name]
        return ListingChanged(texts, rows, left, cells, gone, revised)

    def _revised(self) -> list[Revisions]:
        """Return the texts that cells are to take up, of cells that were given others since."""
        book = self._home.book.cells
        cells, before = book.values(), self._asked
        asked = {cell.name: cell.revision_asked for cell in cells if cell.revisions}
        self._asked = {name: last for name, last in (before | asked).items() if name in book}
        return [
            (cell.name, list(cell.revisions))
            for cell in cells
            if cell.revisions and before.get(cell.name) != cell.revision_asked
        ]

    def _number_of(self, key: Key, subscription: Installed, texts: list[TextRow]) -> int:
        """Return the number of a subscription's text, which is said with its first row."""
        source = self._home.source_of(key)
        numbered = self._texts.get(id(source))
        if numbered is not None:
            return numbered[1].number
        self._text_number += 1
        row = TextRow(
            self._text_number,
            source.text.encode("utf-8", "surrogatepass"),
            subscription.client.encode("utf-8", "surrogatepass"),
            subscription.proven,
            source.tables,
            source.functions,
        )
        self._texts[id(source)] = source, row  # the source is held, so that its identity stays
        texts.append(row)
        return row.number


def _given_row(result: Emission) -> GivenRow:
    row = result.subscriber, result.subscription, result.actor, result.payload
    return GivenRow(result.offset, row)


def _standing(subscription: Installed) -> tuple[Any, ...]:
    return (
        subscription.seq,
        subscription.since,
        subscription.state,
        subscription.suspended,
        subscription.resumed,
        subscription.ends,
    )


def _cell(name: str, since: int, keys: Iterable[Key], *, splits: bool) -> Cell:
    return name, since, list(keys), splits


def _rows(copies: Iterable[Copy]) -> list[CopyRow]:
    return [
        CopyRow(copy.broker, copy.serial, copy.actor, copy.payload, copy.version, copy.asks)
        for copy in copies
    ]
