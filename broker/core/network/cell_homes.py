"""A home and its cells: where each is to run, and what comes of it.

Owns the wishes of a home toward hosts, and what it does when one is lost. Must not know how a cell
runs. Invariant: a host is asked only for what is written down here; what a host says of a term that
is over changes nothing, and the host is told that it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from broker.core.broker import BrokerOptions
from broker.core.catalogue import Catalogue
from broker.core.effects import Note
from broker.core.network import cell_frames, cell_told, told
from broker.core.network.cell_book import CellBook, Kept, Term
from broker.core.network.cell_frames import Which
from broker.core.network.cell_posting import CellMail
from broker.core.network.cell_view import cell_of
from broker.core.network.hosting import Hosting
from broker.core.network.listening import ActorNews
from broker.core.suspension.agreement import Rows, standing_of, unheard

if TYPE_CHECKING:
    from broker.core.network.messages import CellPlaced

HOST_LOST_MS = 10_000  # a host that is not reached for so long is one no more
BEGIN_AGAIN_MS = 60_000  # after a cell failed at its home, where it begins anew
SETTLE_MS = 1_000  # a question and an answer for each cell, as often, while somebody reads by them
UNHEARD_MAX = 1_024  # terms that are over, of which one host is yet to hear
MOVING_MS_MAX = 60_000  # a move that takes longer is given up, if it runs where it was meanwhile


class _Wish(Struct):
    """Record what a broker was asked to run last."""

    which: Which
    broker: str
    keys: cell_frames.Keys
    standing: Rows


class CellHomes(Hosting):
    """Have a home's cells run where they are to run, and take what comes of it."""

    _mail: CellMail
    _actors: ActorNews

    def _begin_homes(self) -> None:
        """Begin; to be called once."""
        self._wishes: dict[str, _Wish] = {}  # by the term's name
        self._away: dict[str, int] = {}  # brokers with cells of this home, since when
        self._moving: dict[str, int] = {}  # terms that come, since when
        self._failed: dict[str, None] = {}  # terms that serve, and failed where they were
        self._again_at: dict[str, int] = {}  # terms that failed here, at home
        self._settle_at = 0  # when cells are asked again how far they are settled
        self._last_stored: dict[str, tuple[int, int]] = {}  # by term: life, number
        self._over = EndedTerms(self._is_away, self._mail.tell)
        self._mail.on_said |= {
            cell_frames.Missing: self._cell_missing,
            cell_frames.Running: self._cell_running,
            cell_frames.Refused: self._cell_refused,
            cell_frames.Named: self._cell_named,
            cell_frames.Results: self._cell_results,
            cell_frames.Saved: self._cell_saved,
            cell_frames.Settled: self._cell_settled,
            cell_frames.Asked: self._cells_asked_for,
        }

    # --- where cells are to run ------------------------------------------------------------

    def _cell_placed(self, message: CellPlaced) -> None:
        book, broker = self.durable.network.book, message.broker
        there = book.goes_to(message.cell)
        if there is None or (broker != self.me and broker not in self.ways.via):
            self.counts["cells_not_placed"] += 1
        elif there != broker:
            self._move(message.cell, broker)

    def _move(self, cell: str, broker: str, reason: str = "") -> None:
        self._tell_network(cell_told.CellMoved(cell, broker, reason))
        self.counts["cells_moved"] += 1
        self._look_at_cells()

    def _look_at_cells(self) -> None:
        """Ask hosts for what is to run there, where that is another than before."""
        book = self.durable.network.book
        if not book.cells and not self._wishes:
            return
        wanted = _wishes(book, self.durable.catalogue)
        before, self._wishes = self._wishes, wanted
        coming = [_which(one, one.coming).name for one in book.cells.values() if one.coming]
        self._moving = {name: self._moving.get(name, self._now) for name in coming}
        for name, one in wanted.items():
            if _resumes(book, name, self._failed) or before.get(name) != one:
                self._wish(one)
        for name, one in before.items():
            if name not in wanted:
                for known in (self._last_stored, self._failed, self._again_at):
                    known.pop(name, None)
                self._over.end(one.broker, one.which)

    def _wish(self, one: _Wish) -> None:
        if one.broker != self.me and one.broker not in self.ways.via:
            self._away.setdefault(one.broker, self._now)
        self._mail.tell(one.broker, cell_frames.Wanted(one.which, one.keys, one.standing))

    def _found(self, origin: str) -> None:
        super()._found(origin)
        self._actors.found(origin)
        self._away.pop(origin, None)
        self._over.found(origin)
        for one in [wish for wish in self._wishes.values() if wish.broker == origin]:
            self._wish(one)

    def _lost(self, origin: str) -> None:
        super()._lost(origin)
        if any(one.broker == origin for one in self._wishes.values()):
            self._away[origin] = self._now

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        if any(broker in cell.origins for cell in self.durable.network.book.cells.values()):
            self._tell_network(told.BrokerForgotten(broker))
        self._leave_host(broker, "it was forgotten")

    def _leave_lost_hosts(self) -> None:
        """Have cells run elsewhere whose host was not reached for long."""
        for broker, since in list(self._away.items()):
            if self._now - since >= HOST_LOST_MS:
                del self._away[broker]
                self._leave_host(broker, "its host was not reached")

    def _give_up_moves(self) -> None:
        """Let cells stay where they are that did not get away for long."""
        for name, since in self._moves_to_give_up():
            if self._now - since >= MOVING_MS_MAX:
                cell, _ = cell_of(name)
                stays = self.durable.network.book.cells[cell].serving.broker
                self._move(cell, stays, "it did not begin there")

    def _moves_to_give_up(self) -> list[tuple[str, int]]:
        """Terms that come, since when, of cells that run where they were meanwhile."""
        cells = self.durable.network.book.cells
        return [
            (name, since)
            for name, since in self._moving.items()
            if not self._is_lost(cells[cell_of(name)[0]])
        ]

    def _is_lost(self, cell: Kept) -> bool:
        """Tell whether it no longer runs where it serves, as far as this is known here."""
        failed = _which(cell, cell.serving).name in self._failed
        return failed or self._is_away(cell.serving.broker)

    def _begin_again(self) -> None:
        """Have cells begin anew that failed here, a while ago."""
        for name, at in list(self._again_at.items()):
            if at <= self._now:
                del self._again_at[name]
                self._wish(self._wishes[name])

    def _leave_host(self, broker: str, reason: str) -> None:
        for cell in list(self.durable.network.book.cells.values()):
            if cell.coming is not None and cell.coming.broker == broker:
                lost = cell.serving.broker == broker or self._is_lost(cell)
                self._move(cell.name, self.me if lost else cell.serving.broker, reason)
            elif cell.serving.broker == broker and cell.coming is None:
                self._move(cell.name, self.me, reason)

    def _is_away(self, broker: str) -> bool:
        return broker != self.me and broker not in self.ways.via

    def _homes_wake(self) -> list[int]:
        """When something is due of all this."""
        moving = [since + MOVING_MS_MAX for _, since in self._moves_to_give_up()]
        lost = [since + HOST_LOST_MS for since in self._away.values()]
        return [*lost, *moving, *self._again_at.values()]

    # --- what hosts say --------------------------------------------------------------------

    def _goes_on(self, host: str, which: Which) -> Kept | None:
        """The cell of a term that is not over; else the host is told that it is."""
        cell = self.durable.network.book.cells.get(which.cell)
        if cell is not None and cell.since == which.since and cell.term(which.term) is not None:
            return cell
        self._over.end(host, which)
        return None

    def _cell_running(self, host: str, one: cell_frames.Running) -> None:
        cell, catalogue = self._goes_on(host, one.which), self.durable.catalogue
        if cell is None or one.standing is None:
            return
        if one.standing == standing_of(catalogue, cell.keys):
            return
        if rows := unheard(catalogue, cell.keys, one.standing):
            self._tell_network(cell_told.CellStood(cell.name, rows))
            self._look_at_cells()
        else:
            self._wish(self._wishes[one.which.name])

    def _cell_missing(self, host: str, one: cell_frames.Missing) -> None:
        cell = self._goes_on(host, one.which)
        if cell is None:
            return
        source = self.durable.network.source_of(cell.keys[0])
        text, tables = source.text.encode("utf-8", "surrogatepass"), source.tables
        origins = {name: tuple(types) for name, types in cell.origins.items()}
        standing = standing_of(self.durable.catalogue, cell.keys)
        calls = self.durable.given.versions(source.text, source.functions)
        said = _options(cell, self.durable.options), text, tables, origins
        what = (tuple(cell.keys), *said, cell.snapshot, standing, calls)
        self._mail.tell(host, cell_frames.Hosted(one.which, *what))

    def _cell_refused(self, host: str, one: cell_frames.Refused) -> None:
        cell = self._goes_on(host, one.which)
        if cell is None:
            return
        name = one.which.name
        if host == self.me:
            self._again_at[name] = self._now + BEGIN_AGAIN_MS
            return
        self.counts["cells_refused"] += 1
        words: dict[str, str | int] = {"cell": name, "broker": host, "reason": one.reason}
        self._sender.out.append(Note("warning", "cell_refused", words))
        if cell.coming is None or cell.coming.number != one.which.term:
            self._failed[name] = None
        self._move(cell.name, self.me if self._is_lost(cell) else cell.serving.broker, one.reason)

    def _cell_named(self, host: str, one: cell_frames.Named) -> None:
        if self._goes_on(host, one.which) is None:
            return
        if not self.durable.network.book.knows(one.which.cell, one.origins):
            self._tell_network(cell_told.CellNamed(one.which.cell, one.origins))
        self._mail.tell(host, cell_frames.Noted(one.which, one.life, one.origins))

    def _cell_results(self, host: str, one: cell_frames.Results) -> None:
        cell = self._goes_on(host, one.which)
        if cell is None:
            return
        which, book = one.which, self.durable.network.book
        place = (which.cell, which.term, one.life, one.floor, one.first)
        what = cell_told.CellResults(*place, one.rows)
        known = book.takes(what)
        if known is None:
            return  # what is before it comes again
        if known < len(one.rows):
            self._tell_network(what)
        term = cell.term(which.term)
        assert term is not None
        self._mail.tell(host, cell_frames.Taken(which, one.life, term.next))

    def _cell_saved(self, host: str, one: cell_frames.Saved) -> None:
        if self._goes_on(host, one.which) is None:
            return
        which, name = one.which, one.which.name
        if self._last_stored.get(name) != (one.life, one.number):
            place = (which.cell, which.term, one.life, one.floor, one.end)
            what = cell_told.CellSaved(*place, one.snapshot)
            if not self.durable.network.book.saves(what):
                return  # results before it are missing: both come again
            self._tell_network(what)
            self._last_stored[name] = (one.life, one.number)
            self._look_at_cells()
        self._mail.tell(host, cell_frames.Stored(which, one.life, one.number))

    def _cell_settled(self, host: str, one: cell_frames.Settled) -> None:
        if self._goes_on(host, one.which) is not None:
            place = (one.which.cell, one.which.term, one.life, one.next)
            what = cell_told.CellSettled(*place, one.reached)
            book = self.durable.network.book
            if not book.settles(what):
                return
            before = len(book.of)
            self._tell_network(what)
            if len(book.of) < before:  # what has ended needs no cell
                self._look_at_cells()
                if self.deciding is not None:
                    self.deciding.touched()

    def _settle_cells(self) -> None:
        """Ask the cells that serve how far they are settled; each once in a while."""
        if self._now < self._settle_at:
            return
        self._settle_at = self._now + SETTLE_MS
        for cell in self.durable.network.book.cells.values():
            to_settle = cell_frames.Settle(_which(cell, cell.serving))
            self._mail.tell(cell.serving.broker, to_settle)

    def _cells_asked_for(self, origin: str, one: cell_frames.Asked) -> None:
        book = self.durable.network.book
        mine = [name for name in one.terms if self._mail.home_of(name) == self.me]
        if over := tuple([name for name in mine if book.is_over(*cell_of(name))]):
            self._mail.tell(origin, cell_frames.Over(over))


class EndedTerms:
    """Terms that are over, of which a host is told once there is a way to it.

    A host says that it runs one as soon as it sees a way, which may be before its home sees it; an
    answer would be lost then, and the term would run for ever.
    """

    def __init__(
        self, is_away: Callable[[str], bool], tell: Callable[[str, cell_frames.Ended], None]
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
            self._tell(host, cell_frames.Ended(which))

    def found(self, host: str) -> None:
        """Tell a host to which there is a way again."""
        for which in self._unheard.pop(host, {}):
            self._tell(host, cell_frames.Ended(which))


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


def _wishes(book: CellBook, catalogue: Catalogue) -> dict[str, _Wish]:
    """By name, the terms of a home's cells as they are to run."""
    wanted = {}
    for cell in book.cells.values():
        keys, standing = tuple(cell.keys), standing_of(catalogue, cell.keys)
        for term in (cell.serving, cell.coming):
            if term is not None:
                wish = _Wish(_which(cell, term), term.broker, keys, standing)
                wanted[wish.which.name] = wish
    return wanted


def _options(cell: Kept, options: BrokerOptions) -> dict[str, int]:
    """The options of a home that bear on results, as a host is told them."""
    said = {
        "lateness_ms": options.lateness_ms,
        "drift_ppm": options.drift_ppm,
        "idle_timeout_ms": options.idle_timeout_ms,
    }
    return said | {cell_frames.SPLITS: 1} if cell.splits else said
