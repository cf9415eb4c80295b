"""The copy of a home at its stand-in: its subscriptions, its cells and copies of results.

Owns the form of a state and of its changes, as bytes, and taking them in. Must not know which
broker it is in. Invariant: a change that cannot be read raises and leaves the copy as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from broker.core.catalogue import Installed, State
from broker.core.effects import DisownResults
from broker.core.recovery.durable_state import Source
from broker.engine.ingest.times import TIME_MAX_MS
from broker.network.frames.told import Asks, CopiesTaken
from broker.network.placement import home_records
from broker.network.placement.book import CellBook, Kept, Term
from broker.network.placement.cell_messages import TextRevision

GIVEN_MAX = 10_000  # results; past either the oldest are in the home's log alone
GIVEN_BYTES_MAX = 8 * 1024 * 1024

Key: TypeAlias = tuple[str, str]
Cell: TypeAlias = tuple[str, int, list[Key], bool]  # name, since, keys, whether windows are split
Revisions: TypeAlias = tuple[str, list[TextRevision]]  # of a cell, all that no snapshot has


class TextRow(Struct, array_like=True):
    """A text with who submitted it, and what it names; `number` is the home's for it."""

    number: int
    text: bytes
    client: bytes
    proven: bool
    tables: dict[str, str]
    functions: dict[str, str]

    @property
    def source(self) -> Source:
        """Return the text as a broker that installs it has it."""
        text = self.text.decode("utf-8", "surrogatepass")
        return Source(text, self.tables, self.functions)


class InstalledRow(Struct, array_like=True):
    """A subscription as it is installed at its home, and the number of its text."""

    text: int
    installed: Installed


class CopyRow(Struct, array_like=True, frozen=True):
    """A result for an actor at another broker, see `broker.network.actors.copies.Copy`."""

    broker: str
    serial: int
    actor: str
    payload: bytes
    version: int
    asks: Asks


class GivenRow(Struct, array_like=True, frozen=True):
    """A result with its offset at its home; not all have it."""

    offset: int
    result: home_records.Row


class ListingChanged(Struct, array_like=True, frozen=True, tag="listed"):
    """A request has changed these; cells of `gone` are no more."""

    texts: list[TextRow]
    rows: list[InstalledRow]
    left: list[Key]
    cells: list[Cell]
    gone: list[str]
    revised: list[Revisions] = []


class CopiesMade(Struct, array_like=True, frozen=True, tag="copies_made"):
    """Results that others have yet to take."""

    rows: list[CopyRow]


class Given(Struct, array_like=True, frozen=True, tag="given"):
    """The results of the change before this got the offsets up to, and without, `end`."""

    end: int


class ResultsGiven(Struct, array_like=True, frozen=True, tag="results_given"):
    """Results of subscriptions that run in no cell got offsets."""

    rows: list[GivenRow]


class GivenUpto(Struct, array_like=True, frozen=True, tag="delivered"):
    """Results before `offset` need not be given out again, nor those before `read` be read."""

    offset: int
    read: int


Change: TypeAlias = (
    ListingChanged
    | CopiesMade
    | CopiesTaken
    | Given
    | ResultsGiven
    | GivenUpto
    | home_records.HomeRecord
)


class GivenState(Struct, array_like=True, frozen=True):
    """The state of `UnreadResults`."""

    rows: list[GivenRow] = []
    first: int = 0
    end: int = 0
    delivered: int = 0


class HomeState(Struct, array_like=True, frozen=True):
    """All of it."""

    texts: list[TextRow]
    rows: list[InstalledRow]
    book: list[Any]
    life: int  # of the numbers of copies
    copies: list[CopyRow]
    given: GivenState
    epoch: str = ""  # of the home's output log
    lease_ms: int = 0  # 0: it is taken over by a person's word alone


encoded = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Change, strict=False).decode
_decode_state = msgspec.msgpack.Decoder(HomeState, strict=False).decode


class UnreadResults:
    """Results of a home that it may not have given out, or that its log's readers have not read.

    In the order of their offsets. Of those from `first` up to, and without, `end` none is missing
    that has to be given out or read; those before `delivered` were given out.
    """

    def __init__(self) -> None:
        self.rows: deque[GivenRow] = deque()
        self.first = self.end = self.delivered = 0
        self._size_bytes = 0

    def give(self, results: Sequence[home_records.Row], end: int) -> None:
        """Take in results that got the last offsets before `end`."""
        first = end - len(results)
        self.add([GivenRow(offset, row) for offset, row in enumerate(results, first)])

    def add(self, rows: Sequence[GivenRow]) -> None:
        """Take in results behind all that there are."""
        self.rows.extend(rows)
        self._size_bytes += sum([len(row.result[3]) for row in rows])
        self.end = max(self.end, rows[-1].offset + 1) if rows else self.end
        while len(self.rows) > GIVEN_MAX or self._size_bytes > GIVEN_BYTES_MAX:
            self._drop()

    def begin(self, rows: Sequence[GivenRow], first: int, end: int) -> None:
        """Put what the log had unread at a start, from `first` to `end`, ahead of all."""
        later = [row for row in self.rows if row.offset >= end]
        self.rows, self._size_bytes = deque(), 0
        self.first, self.end, self.delivered = first, max(end, self.end), end
        self.add([*rows, *later])

    def deliver(self, delivered: int, read: int) -> None:
        """Let go of those before both offsets."""
        self.delivered = max(self.delivered, delivered)
        self.first = max(self.first, min(self.delivered, read))
        while self.rows and self.rows[0].offset < self.first:
            self._drop()

    def disown(self, by: DisownResults) -> None:
        """Let go of results that another home finds again."""
        keys = dict.fromkeys(by.keys)
        rows = [row for row in self.rows if row.offset < by.upto or row.result[:2] not in keys]
        self.rows, self._size_bytes = deque(), 0
        self.add(rows)

    def _drop(self) -> None:
        row = self.rows.popleft()
        self._size_bytes -= len(row.result[3])
        self.first = max(self.first, row.offset + 1)

    def state(self) -> GivenState:
        """Return all of it."""
        return GivenState(list(self.rows), self.first, self.end, self.delivered)

    def restore(self, state: GivenState) -> None:
        """Take up such a state."""
        self.add(state.rows)
        self.first, self.end, self.delivered = state.first, state.end, state.delivered


class HomeCopy:
    """Follows one home. `run` and `number` tell how far it is, see `broker.network.delivery`."""

    def __init__(self, home: str, run: int, number: int, state: bytes = b"") -> None:
        self.home = home
        self.run = run
        self.number = number
        self.texts: dict[int, TextRow] = {}
        self.rows: dict[Key, InstalledRow] = {}
        self.book = CellBook(home)
        self.life = 0
        self.copies: dict[tuple[str, int], CopyRow] = {}
        self.given = UnreadResults()
        self.epoch = ""
        self.lease_ms = 0
        self._results: list[home_records.Row] = []  # of the last change
        if state:
            self._take_up(_decode_state(state))

    def _take_up(self, state: HomeState) -> None:
        self.texts = {text.number: text for text in state.texts}
        self.rows = {(row.installed.subscriber, row.installed.name): row for row in state.rows}
        self.book.restore(state.book)
        self.life = state.life
        self.copies = {(copy.broker, copy.serial): copy for copy in state.copies}
        self.given.restore(state.given)
        self.epoch, self.lease_ms = state.epoch, state.lease_ms

    def state(self) -> bytes:
        """Return all of it."""
        texts, rows = list(self.texts.values()), list(self.rows.values())
        copies = list(self.copies.values())
        book, given = self.book.state(), self.given.state()
        log = self.epoch, self.lease_ms
        return encoded(HomeState(texts, rows, book, self.life, copies, given, *log))

    def by_text(self) -> list[tuple[TextRow, list[Installed]]]:
        """Return the subscriptions of each text, in the order of installation."""
        texts: dict[int, list[Installed]] = {}
        for row in self.rows.values():
            texts.setdefault(row.text, []).append(row.installed)
        return [(self.texts[number], rows) for number, rows in texts.items()]

    # --- changes ---------------------------------------------------------------------------

    def take(self, changes: Iterable[bytes], first: int) -> None:
        """Take in changes, numbered from `first`; those that it has are passed over."""
        unseen = [
            _decode(change) for number, change in enumerate(changes, first) if number > self.number
        ]
        for change in unseen:
            self._take(change)
        self.number += len(unseen)

    def _take(self, change: Change) -> None:
        match change:
            case ListingChanged():
                self._list(change)
            case CopiesMade(rows):
                self.copies |= {(row.broker, row.serial): row for row in rows}
            case CopiesTaken(broker, _, serial):
                taken = [place for place in self.copies if place[0] == broker]
                for place in [place for place in taken if place[1] <= serial]:
                    del self.copies[place]
            case Given(end):
                self.given.give(self._results, end)
                self._results = []
            case ResultsGiven(rows):
                self._count([row.result for row in rows])
                self._results = []
                self.given.add(rows)
            case GivenUpto(offset, read):
                self.given.deliver(offset, read)
            case _:
                self._take_of_cell(change)

    def _take_of_cell(self, change: home_records.HomeRecord) -> None:
        """Take in what the home took in, as its own book did."""
        book = self.book
        match change:
            case home_records.CellMoved():
                book.move(change.cell, change.broker, change.reason)
            case home_records.CellNamed():
                book.name(change.cell, change.origins)
            case home_records.CellResults():
                self._count(book.results(change))
            case home_records.CellSaved():
                active, results = book.save(change)
                for key in active:
                    self._state_of(key, "active")
                self._count(results)
            case home_records.CellSettled():
                self._settle(change)
            case home_records.CellStood():
                for stood in change.rows:
                    if (row := self.rows.get(stood.key)) is not None:
                        row.installed.suspended = stood.exceeded

    def _count(self, results: Iterable[home_records.Row]) -> None:
        self._results = []
        for result in results:
            if (row := self.rows.get((result[0], result[1]))) is not None:
                row.installed.results += 1
                self._results.append(result)

    def _state_of(self, key: Key, state: State) -> None:
        if (row := self.rows.get(key)) is not None:
            row.installed.state = state

    def _settle(self, change: home_records.CellSettled) -> None:
        """Settle, and end what nothing more is a result of, as its home does."""
        self.book.settle(change)
        for subscriber, name, reached in change.reached:
            key = subscriber, name
            is_over = self.book.settled.get(key) == TIME_MAX_MS
            if reached >= TIME_MAX_MS and is_over and self.book.of.get(key) == change.cell:
                self.book.drop([key])
                self._state_of(key, "ended")

    def _list(self, change: ListingChanged) -> None:
        book = self.book
        self.texts |= {text.number: text for text in change.texts}
        for key in change.left:
            self.rows.pop(key, None)
        for row in change.rows:
            self.rows[row.installed.key] = row
        for name in change.gone:
            if name in book.cells:
                book.drop(list(book.cells[name].keys))
        for name, since, keys, splits in change.cells:
            cell = book.cells.get(name)
            if cell is None:
                cell = book.cells[name] = Kept(name, since, [], Term(1, self.home))
                cell.splits = splits
            kept = dict.fromkeys(keys)
            book.drop([key for key in list(cell.keys) if key not in kept])
            if keys:
                book.cells[name] = cell
                cell.keys = list(keys)
                book.of.update(dict.fromkeys(keys, name))
        for name, revisions in change.revised:
            if (cell := book.cells.get(name)) is not None:
                cell.revisions = revisions
        used = {row.text for row in self.rows.values()}
        self.texts = {number: text for number, text in self.texts.items() if number in used}


def read(state: Mapping[str, Any]) -> HomeCopy:
    """Return a copy of which `saved` made this."""
    return HomeCopy(state["home"], state["run"], state["number"], state["state"])


def saved(copy: HomeCopy) -> dict[str, Any]:
    """Return a copy as plain data."""
    return {
        "home": copy.home,
        "run": copy.run,
        "number": copy.number,
        "state": copy.state(),
    }
