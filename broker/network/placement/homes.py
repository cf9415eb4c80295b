"""A home and its cells: where each is to run, and what comes of it.

Owns the wishes of a home toward hosts, and what it does when one is lost. Must not know how a cell
runs. Invariant: a host is asked only for what is written down here; what a host says of a term that
is over changes nothing, and the host is told that it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from broker.network.placement import cell_messages, home_records
from broker.network.placement.book import CellBook, Kept, Term
from broker.network.placement.cell_messages import Which
from broker.network.placement.cell_view import cell_of
from broker.network.placement.departures import STATE_BYTES_MAX, Departures
from broker.network.placement.home_records import HomeRecord
from broker.network.placement.mail import CellMail
from broker.network.placement.revisions import Joinings, Reviser
from broker.network.placement.suspension import Rows, StandingCatalogue, standing_of, unheard

HOST_LOST_MS = 10_000  # a host that is not reached for so long is one no more
BEGIN_AGAIN_MS = 60_000  # after a cell failed at its home, where it begins anew
SETTLE_MS = 1_000  # a question and an answer for each cell, as often, while somebody reads by them
UNHEARD_MAX = 1_024  # terms that are over, of which one host is yet to hear
MOVING_MS_MAX = 60_000  # a move that takes longer is given up, if it runs where it was meanwhile


class _Wish(Struct):
    """Record what a broker was asked to run last."""

    which: Which
    broker: str
    keys: cell_messages.Keys
    standing: Rows
    revision: int


class HomeTools(NamedTuple):
    """Tools that a broker lends its part as a home.

    `record` has the core take in what outlasts this process, `describe` says all that a host needs
    to begin a term, `note` writes a line into the log, `touched` hears that cells may have ended.
    """

    me: str
    book: CellBook
    catalogue: StandingCatalogue
    mail: CellMail
    via: Mapping[str, str]
    counts: dict[str, int]
    clock: Callable[[], int]
    record: Callable[[HomeRecord], None]
    describe: Callable[[Kept, Which], cell_messages.Hosted]
    note: Callable[[Literal["warning"], str, dict[str, str | int]], None]
    touched: Callable[[], None]


class CellHomes:
    """Have a home's cells run where they are to run, and take what comes of it."""

    def __init__(self, tools: HomeTools) -> None:
        self._lent = tools
        self._book, self._catalogue, self._mail = tools.book, tools.catalogue, tools.mail
        self._clock, self._record = tools.clock, tools.record
        self.wishes: dict[str, _Wish] = {}  # by the term's name
        self._away: dict[str, int] = {}  # brokers with cells of this home, since when
        self._moving: dict[str, int] = {}  # terms that come, since when
        self._failed: dict[str, None] = {}  # terms that serve, and failed where they were
        self._again_at: dict[str, int] = {}  # terms that failed here, at home
        self._settle_at = 0  # when cells are asked again how far they are settled
        self._last_stored: dict[str, tuple[int, int]] = {}  # by term: life, number
        self._over = EndedTerms(self.is_away, self._mail.tell)
        lent = self._mail.tell, self._clock, self._book.lacks_results
        self._reviser = Reviser(self._book.cells, *lent)
        self._joinings = Joinings(self._book.cells, self._clock)
        self.departures = Departures(self._mail.tell, self._clock)
        self._mail.on_said |= {
            cell_messages.Missing: self._cell_missing,
            cell_messages.Running: self._cell_running,
            cell_messages.Refused: self._cell_refused,
            cell_messages.Named: self._cell_named,
            cell_messages.Results: self._cell_results,
            cell_messages.Saved: self._cell_saved,
            cell_messages.Settled: self._cell_settled,
            cell_messages.Asked: self._cells_asked_for,
        }

    # --- where cells are to run ------------------------------------------------------------

    def place(self, cell: str, broker: str) -> None:
        """Have a cell run at a broker; passed over and counted where that cannot be."""
        goal = self._book.goes_to(cell)
        if goal is None or self.is_away(broker):
            self._lent.counts["cells_not_placed"] += 1
        elif (self.departures.goes_to(cell) or goal) != broker:
            self.departures.end(cell)
            kept = self._book.cells[cell]
            if self._is_to_save(kept, broker):
                which = _which(kept, kept.serving)
                self.departures.begin(which, kept.serving.broker, broker)
            elif goal != broker:
                self._move(cell, broker)

    def _is_to_save(self, cell: Kept, broker: str) -> bool:
        """Tell whether a cell's state is to come home before it goes to a broker."""
        serves = cell.active and cell.coming is None and not self._is_lost(cell)
        return serves and cell.serving.broker != broker and len(cell.snapshot) <= STATE_BYTES_MAX

    def _depart(self, cell: str) -> None:
        """Have a cell go where it is to go; its state is here, or does not come in time."""
        to = self.departures.end(cell)
        if to is None or self._book.goes_to(cell) is None:
            return  # it did not leave, or is no more
        if self.is_away(to):
            self._lent.counts["cells_not_placed"] += 1
        else:
            self._move(cell, to)

    def _move(self, cell: str, broker: str, reason: str = "") -> None:
        self.departures.end(cell)
        self._record(home_records.CellMoved(cell, broker, reason))
        self._lent.counts["cells_moved"] += 1
        self.look()

    def look(self) -> None:
        """Ask hosts for what is to run there, where that is another than before."""
        book = self._book
        if not book.cells and not self.wishes:
            return
        # All of it, each time: what a host is to run follows from the book, and from nothing else.
        wanted = _wishes(book, self._catalogue)
        before, self.wishes = self.wishes, wanted
        coming = [_which(one, one.coming).name for one in book.cells.values() if one.coming]
        self._moving = {name: self._moving.get(name, self._clock()) for name in coming}
        self._joinings.look()
        for name, one in wanted.items():
            if _resumes(book, name, self._failed) or before.get(name) != one:
                self._wish(one)
        for name, one in before.items():
            if name not in wanted:
                for known in (self._last_stored, self._failed, self._again_at):
                    known.pop(name, None)
                self._over.end(one.broker, one.which)
        self._reviser.look()

    def _wish(self, one: _Wish) -> None:
        if self.is_away(one.broker):
            # It is asked as soon as it is found; the wait for that begins now.
            self._away.setdefault(one.broker, self._clock())
        wanted = cell_messages.Wanted(one.which, one.keys, one.standing, one.revision)
        self._mail.tell(one.broker, wanted)

    def found(self, origin: str) -> None:
        """Ask a broker to which there is a way for what is to run there."""
        self._away.pop(origin, None)
        self._over.found(origin)
        for one in [wish for wish in self.wishes.values() if wish.broker == origin]:
            self._wish(one)

    def lost(self, origin: str) -> None:
        """Note since when there is no way to a host."""
        if any(one.broker == origin for one in self.wishes.values()):
            self._away[origin] = self._clock()

    def _leave_lost_hosts(self) -> None:
        """Have cells run elsewhere whose host was not reached for long."""
        for broker, since in list(self._away.items()):
            if self._clock() - since >= HOST_LOST_MS:
                del self._away[broker]
                self.leave_host(broker, "its host was not reached")

    def _give_up_moves(self) -> None:
        """Let cells stay where they are that did not get away for long."""
        for name, since in self._moves_to_give_up():
            if self._clock() - since >= MOVING_MS_MAX:
                cell, _ = cell_of(name)
                stays = self._book.cells[cell].serving.broker
                self._move(cell, stays, "it did not begin there")

    def _moves_to_give_up(self) -> list[tuple[str, int]]:
        """Terms that come, since when, of cells that run where they were meanwhile."""
        cells = self._book.cells
        return [
            (name, since)
            for name, since in self._moving.items()
            if not self._is_lost(cells[cell_of(name)[0]])
        ]

    def _is_lost(self, cell: Kept) -> bool:
        """Tell whether it no longer runs where it serves, as far as this is known here."""
        failed = _which(cell, cell.serving).name in self._failed
        return failed or self.is_away(cell.serving.broker)

    def _begin_again(self) -> None:
        """Have cells begin anew that failed here, a while ago."""
        for name, at in list(self._again_at.items()):
            if at <= self._clock():
                del self._again_at[name]
                self._wish(self.wishes[name])

    def leave_host(self, broker: str, reason: str) -> None:
        """Have no cell stay at a broker, for this reason."""
        for cell in list(self._book.cells.values()):
            if cell.coming is not None and cell.coming.broker == broker:
                # Back to where it serves, if it runs there still; else the home runs it itself,
                # which needs nobody.
                lost = cell.serving.broker == broker or self._is_lost(cell)
                self._move(cell.name, self._lent.me if lost else cell.serving.broker, reason)
            elif cell.serving.broker == broker and cell.coming is None:
                self._move(cell.name, self._lent.me, reason)

    def is_away(self, broker: str) -> bool:
        """Tell whether there is no way to a broker."""
        return broker != self._lent.me and broker not in self._lent.via

    def wake(self) -> None:
        """Time has passed."""
        self._leave_lost_hosts()
        self._give_up_moves()
        self._begin_again()
        for cell in self.departures.late():
            self._depart(cell)
        for name, revision in self._joinings.late():
            self._record(home_records.CellParted(name, revision))
            self._lent.counts["cells_parted"] += 1
            self.look()
            self._lent.touched()
        self._reviser.look()

    def next_wake(self) -> list[int]:
        """Return when something is due of all this."""
        moving = [since + MOVING_MS_MAX for _, since in self._moves_to_give_up()]
        lost = [since + HOST_LOST_MS for since in self._away.values()]
        due = [*self._again_at.values(), *self._reviser.next_wake()]
        due += self._joinings.next_wake()
        if self.departures.leaving:
            due += self.departures.next_wake()
        return [*lost, *moving, *due]

    # --- what hosts say --------------------------------------------------------------------

    def _goes_on(self, host: str, which: Which) -> Kept | None:
        """The cell of a term that is not over; else the host is told that it is."""
        cell = self._book.cells.get(which.cell)
        if cell is not None and cell.since == which.since and cell.term(which.term) is not None:
            return cell
        self._over.end(host, which)
        return None

    def _cell_running(self, host: str, one: cell_messages.Running) -> None:
        cell, catalogue = self._goes_on(host, one.which), self._catalogue
        if cell is None or one.standing is None:
            return
        # Nobody has to run all brokers at one version: at home the text can be taken up.
        if one.revision < 0 and cell.revisions and host != self._lent.me:
            self._move(cell.name, self._lent.me, "its host cannot change texts")
            return
        if cell.serving.number == one.which.term:
            self._reviser.runs(one.which, one.life, one.revision)
        if 0 <= one.revision != cell.revision_asked:
            return  # of subscriptions that were replaced since
        if one.standing == standing_of(catalogue, cell.keys):
            return
        if rows := unheard(catalogue, cell.keys, one.standing):
            self._record(home_records.CellStood(cell.name, rows))
            self.look()
        else:
            self._wish(self.wishes[one.which.name])

    def _cell_missing(self, host: str, one: cell_messages.Missing) -> None:
        cell = self._goes_on(host, one.which)
        if cell is not None:
            self._mail.tell(host, self._lent.describe(cell, one.which))

    def _cell_refused(self, host: str, one: cell_messages.Refused) -> None:
        cell = self._goes_on(host, one.which)
        if cell is None:
            return
        name = one.which.name
        if host == self._lent.me:
            # There is no other broker to give it to: it begins from its snapshot in a while.
            self._again_at[name] = self._clock() + BEGIN_AGAIN_MS
            return
        self._lent.counts["cells_refused"] += 1
        words: dict[str, str | int] = {"cell": name, "broker": host, "reason": one.reason}
        self._lent.note("warning", "cell_refused", words)
        # The term that serves has failed, and is not to be gone back to.
        if cell.coming is None or cell.coming.number != one.which.term:
            self._failed[name] = None
        self._move(
            cell.name, self._lent.me if self._is_lost(cell) else cell.serving.broker, one.reason
        )

    def _cell_named(self, host: str, one: cell_messages.Named) -> None:
        if self._goes_on(host, one.which) is None:
            return
        # Said also where it was known: the answer may have been lost.
        if not self._book.knows(one.which.cell, one.origins):
            self._record(home_records.CellNamed(one.which.cell, one.origins))
        self._mail.tell(host, cell_messages.Noted(one.which, one.life, one.origins))

    def _cell_results(self, host: str, one: cell_messages.Results) -> None:
        cell = self._goes_on(host, one.which)
        if cell is None:
            return
        which, book = one.which, self._book
        place = (which.cell, which.term, one.life, one.floor, one.first)
        what = home_records.CellResults(*place, one.rows, one.revision)
        known = book.takes(what)
        if known is None:
            return  # what is before it comes again
        if known < len(one.rows):
            self._record(what)
        term = cell.term(which.term)
        assert term is not None
        self._mail.tell(host, cell_messages.Taken(which, one.life, term.next))
        self._reviser.ask(which.cell)

    def _cell_saved(self, host: str, one: cell_messages.Saved) -> None:
        if self._goes_on(host, one.which) is None:
            return
        which, name = one.which, one.which.name
        # A snapshot that comes again, as the answer was lost, is written down once.
        if self._last_stored.get(name) != (one.life, one.number):
            place = (which.cell, which.term, one.life, one.floor, one.end)
            what = home_records.CellSaved(*place, one.snapshot, one.revision)
            if not self._book.saves(what):
                return  # results before it are missing: both come again
            self._record(what)
            self._last_stored[name] = (one.life, one.number)
            self.look()
        self._mail.tell(host, cell_messages.Stored(which, one.life, one.number))
        if self._book.cells[which.cell].serving.number == which.term:
            self._depart(which.cell)

    def _cell_settled(self, host: str, one: cell_messages.Settled) -> None:
        if self._goes_on(host, one.which) is not None:
            place = (one.which.cell, one.which.term, one.life, one.next)
            what = home_records.CellSettled(*place, one.reached)
            book = self._book
            if not book.settles(what):
                return
            before = len(book.of)
            self._record(what)
            if len(book.of) < before:  # what has ended needs no cell
                self.look()
                self._lent.touched()

    def settle(self) -> None:
        """Ask the cells that serve how far they are settled; each once in a while."""
        if self._clock() < self._settle_at:
            return
        self._settle_at = self._clock() + SETTLE_MS
        for cell in self._book.cells.values():
            to_settle = cell_messages.Settle(_which(cell, cell.serving))
            self._mail.tell(cell.serving.broker, to_settle)

    def _cells_asked_for(self, origin: str, one: cell_messages.Asked) -> None:
        book = self._book
        # Of others this broker knows nothing, and silence keeps what is kept.
        mine = [name for name in one.terms if self._mail.home_of(name) == self._lent.me]
        if over := tuple([name for name in mine if book.is_over(*cell_of(name))]):
            self._mail.tell(origin, cell_messages.Over(over))


class EndedTerms:
    """Terms that are over, of which a host is told once there is a way to it.

    A host says that it runs one as soon as it sees a way, which may be before its home sees it; an
    answer would be lost then, and the term would run for ever.
    """

    def __init__(
        self, is_away: Callable[[str], bool], tell: Callable[[str, cell_messages.Ended], None]
    ) -> None:
        self._is_away = is_away
        self._tell = tell
        self._unheard: dict[str, dict[Which, None]] = {}  # by host

    def end(self, host: str, which: Which) -> None:
        """Tell a host that a term is over, now or when it is found."""
        if self._is_away(host):
            unheard = self._unheard.setdefault(host, {})
            unheard[which] = None
            if len(unheard) > UNHEARD_MAX:
                del unheard[next(iter(unheard))]
        else:
            self._tell(host, cell_messages.Ended(which))

    def found(self, host: str) -> None:
        """Tell a host to which there is a way again."""
        for which in self._unheard.pop(host, {}):
            self._tell(host, cell_messages.Ended(which))


def _which(cell: Kept, term: Term) -> Which:
    return Which(cell.name, cell.since, term.number)


def _resumes(book: CellBook, name: str, failed: dict[str, None]) -> bool:
    """Take a term from those that failed if its cell goes nowhere else; tell if it did.

    Its host ended it, and has to be asked for it anew.
    """
    if name not in failed or book.cells[cell_of(name)[0]].coming is not None:
        return False
    del failed[name]
    return True


def _wishes(book: CellBook, catalogue: StandingCatalogue) -> dict[str, _Wish]:
    """By name, the terms of a home's cells as they are to run."""
    wanted = {}
    for cell in book.cells.values():
        keys, standing = tuple(cell.keys), standing_of(catalogue, cell.keys)
        for term in (cell.serving, cell.coming):
            if term is not None:
                wish = _Wish(_which(cell, term), term.broker, keys, standing, cell.revision_asked)
                wanted[wish.which.name] = wish
    return wanted
