"""A home's memory of its cells: where each runs, its last snapshot, and what it has found since.

Owns terms, snapshots and the ids of results that may come again. Must not know frames, tasks or
outboxes. Invariant: an id is remembered until a snapshot was saved behind it of the one run that
goes on, so that whatever a cell begins anew from finds nothing a second time unnoticed.

A *term* of a cell is its time at one broker. While it moves there are two: the one that serves, and
the one that comes, which takes its place with its first snapshot. Within a term each process of
that broker is a *life*, which begins from the last snapshot; results are numbered within it.
A *revision* is a text in the place of the one before, see `revisions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from broker.network.placement.cell_messages import TextRevision
from broker.network.placement.home_records import (
    CellParted,
    CellResults,
    CellSaved,
    CellSettled,
    Row,
)
from broker.network.placement.revisions import RowApart

Key = tuple[str, str]

IDS_MAX = 200_000  # of one cell; a snapshot forgets them, and is asked for long before


class Term(Struct, array_like=True):
    """A cell at one broker. `next` is the number of the result that is to be taken next."""

    number: int
    broker: str
    life: int = 0
    run: int = 0  # tells lives of all terms apart
    next: int = 0


class Kept(Struct, array_like=True):
    """One cell; `ids`: by result, the number that each run gave it.

    `revision` is that of the snapshot, and `revisions` are those behind it.
    """

    name: str
    since: int
    keys: list[Key]
    serving: Term
    coming: Term | None = None
    terms: int = 1
    runs: int = 0
    active: bool = False
    run: int = 0  # of the snapshot
    end: int = 0  # of the results before the snapshot
    snapshot: bytes = b""
    reason: str = ""
    ids: dict[str, dict[int, int]] = field(default_factory=dict)
    origins: dict[str, list[str]] = field(default_factory=dict)  # with the types needed of them
    held: list[Row] = field(default_factory=list)  # found before it is active
    splits: bool = False  # its windows are split: see `cell_inputs`
    revision: int = 0
    revisions: list[TextRevision] = field(default_factory=list)
    apart: list[RowApart] = field(default_factory=list)

    @property
    def revision_asked(self) -> int:
        """Return the revision that it is to have."""
        return self.revisions[-1].number if self.revisions else self.revision

    def is_revised(self, key: Key) -> bool:
        """Tell whether a revision that is not stored changes a subscription."""
        return any(key in revision.keys for revision in self.revisions)

    def set_apart(self, term: Term, rows: list[RowApart]) -> list[RowApart]:
        """Set apart the results of a term that are not to be given out yet; return the others."""
        if not self.revisions:
            return rows
        others: list[RowApart] = []
        for result in rows:
            if self._is_of_before(result):
                continue
            # What no text has changed has the same ids under each, so that it need not wait.
            waits = any(
                revision.number <= result.revision and result.row[:2] in revision.keys
                for revision in self.revisions
            )
            # A term that comes is at the text before, and may not take the place of the other.
            (self.apart if waits or term is self.coming else others).append(result)
        return others

    def _is_of_before(self, result: RowApart) -> bool:
        """Tell whether a result is of a subscription that was cancelled, and not of its namesake.

        The namesake has come to the cell since; the host had not heard of the end.
        """
        return any(
            revision.joins and result.revision < revision.number and result.row[:2] in revision.keys
            for revision in self.revisions
        )

    def end_run(self, term: Term | None) -> None:
        """Let go of what was set apart of a term in its life: a snapshot of it never comes."""
        if term is not None and self.apart:
            self.apart = [result for result in self.apart if result.run != term.run]

    def term(self, number: int) -> Term | None:
        """The term of this number, if it is not over."""
        known = (self.serving, self.coming)
        return next((one for one in known if one is not None and one.number == number), None)


class _OfResult(Struct):
    id: str


_id_of = msgspec.json.Decoder(_OfResult).decode


class CellBook:
    """Remember a home's cells: where each runs, its last snapshot, and what it has found since.

    `cells` are by name; `of` tells which one a subscription belongs to.
    """

    def __init__(self, home: str) -> None:
        self.cells: dict[str, Kept] = {}
        self.of: dict[Key, str] = {}
        self.settled: dict[Key, int] = {}
        self.forgotten = 0  # ids that went for want of room
        self._home = home
        self._count = 0

    def host_of(self, key: Key) -> str:
        """Name the broker at which a subscription runs as part of a cell; "" where it does not."""
        cell = self.cells.get(self.of.get(key, ""))
        return "" if cell is None else cell.serving.broker

    def begin(self, keys: Sequence[Key], now: int, *, splits: bool = False) -> Kept:
        """These subscriptions of one submission are a cell from now on, at home at first."""
        self._count += 1
        name = f"{self._home}/{self._count}"
        one = self.cells[name] = Kept(name, now, list(keys), Term(1, self._home))
        one.splits = splits
        self.of.update(dict.fromkeys(keys, name))
        return one

    def drop(self, keys: Iterable[Key]) -> None:
        """These subscriptions are there no more, nor a cell that has no other."""
        for key in keys:
            cell = self.cells[self.of.pop(key)]
            self.settled.pop(key, None)
            cell.keys.remove(key)
            # A namesake that comes to the cell begins with nothing of this one.
            cell.ids = {result: runs for result, runs in cell.ids.items() if _key_of(result) != key}
            cell.apart = [result for result in cell.apart if result.row[:2] != key]
            if not cell.keys:
                del self.cells[cell.name]

    def revise(self, name: str, keys: Sequence[Key], text: bytes, *, begins: bool) -> None:
        """Have a cell go on under another text, which changes these subscriptions or adds them."""
        cell = self.cells[name]
        # By records alone, as `terms`: the same records give the same numbers.
        number = cell.revision_asked + 1
        cell.revisions.append(TextRevision(number, text, tuple(keys), begins))
        # First what is changed: its text has all of the cell's subscriptions, in whatever state.
        cell.keys = [*keys, *[key for key in cell.keys if key not in keys]]
        self.of.update(dict.fromkeys(keys, name))

    def join(self, name: str, keys: Sequence[Key], text: bytes) -> None:
        """Have subscriptions of another text run in a cell, beside those that it has."""
        self.revise(name, keys, text, begins=True)
        revisions = self.cells[name].revisions
        revisions[-1] = replace(revisions[-1], joins=True)

    def part(self, parted: CellParted, now: int) -> None:
        """Begin those as a cell of their own that were to join one with a revision, and have not.

        The revision stays, with nobody: a host may have taken it up.
        """
        cell = self.cells.get(parted.cell)
        revisions = () if cell is None else cell.revisions
        joined = [each for each in revisions if each.number == parted.revision and each.joins]
        for keys in [each.keys for each in joined]:
            if waiting := [key for key in keys if self.of.get(key) == parted.cell]:
                self.drop(waiting)
                self.begin(waiting, now)

    def lacks_results(self, name: str, life: int) -> bool:
        """Tell whether a life of the term that serves has yet to find again what was given out."""
        cell = self.cells[name]
        # A life of which no result has come has no run yet.
        run = cell.serving.run if cell.serving.life == life else -1
        return any(
            # Results of what was cancelled are not taken again, so that no run is known of them.
            run not in numbers and self.of.get(_key_of(result)) == name
            for result, numbers in cell.ids.items()
        )

    def count_on(self, number: int) -> None:
        """Begin no cell under a number up to this one: another home has those."""
        self._count = max(self._count, number)

    # --- terms -----------------------------------------------------------------------------

    def goes_to(self, name: str) -> str | None:
        """The broker where a cell runs or is about to; None where there is no such cell."""
        cell = self.cells.get(name)
        return None if cell is None else (cell.coming or cell.serving).broker

    def move(self, name: str, broker: str, reason: str) -> None:
        """Have a cell run at a broker."""
        cell = self.cells.get(name)
        if cell is None:
            return
        cell.reason = reason
        if cell.serving.broker == broker:
            # It runs there: a move to elsewhere that is under way is called off.
            cell.end_run(cell.coming)
            cell.coming = None
        elif cell.coming is None or cell.coming.broker != broker:
            cell.terms += 1
            term = Term(cell.terms, broker)
            if cell.active:
                cell.end_run(cell.coming)
                cell.coming = term
            else:
                # Nothing was given out yet and no state is stored: no term has to go on meanwhile.
                cell.serving = term

    def is_over(self, name: str, term: int) -> bool:
        """Tell whether that term of a cell will never be heard of again."""
        cell = self.cells.get(name)
        return cell is None or cell.term(term) is None

    # --- origins ---------------------------------------------------------------------------

    def name(self, name: str, origins: Mapping[str, Iterable[str]]) -> None:
        """A cell needs these types of these origins, wherever it runs."""
        cell = self.cells.get(name)
        if cell is not None:
            for origin, types in origins.items():
                known = cell.origins.setdefault(origin, [])
                known += [one for one in types if one not in known]

    def knows(self, name: str, origins: Mapping[str, Iterable[str]]) -> bool:
        """Tell whether these types of these origins are written down already."""
        known = self.cells[name].origins
        return all(set(types) <= set(known.get(origin, ())) for origin, types in origins.items())

    def needs(self, broker: str) -> bool:
        """Tell whether a cell needs something of a broker."""
        return any(broker in cell.origins for cell in self.cells.values())

    def forget_origin(self, broker: str) -> None:
        """Nobody is to wait for a broker any more."""
        for cell in self.cells.values():
            cell.origins.pop(broker, None)

    # --- results ---------------------------------------------------------------------------

    def takes(self, one: CellResults) -> int | None:
        """Count the rows that are known by number; None if they cannot be taken.

        Raises msgspec.DecodeError or UnicodeDecodeError where a row is no result: it is not to be
        journaled.
        """
        for row in one.rows:
            _id_of(row[3])
            str(row[3], "utf-8")  # what the decoder passes over it has not looked into
        return self._known(one)

    def _known(self, one: CellResults) -> int | None:
        place = self._place(one)
        if place is None or place < one.first:
            return None
        return min(place - one.first, len(one.rows))

    def results(self, one: CellResults) -> list[Row]:
        """Take results; those that are new and to be given out."""
        known = self._known(one)
        if known is None:
            return []
        cell = self.cells[one.cell]
        term = self._now_at(cell, one)
        # An earlier version knows no revisions: it is at that of the snapshot it began from.
        revision = cell.revision if one.revision < 0 else one.revision
        first = one.first + known
        rows = [
            RowApart(term.run, revision, number, row)
            for number, row in enumerate(one.rows[known:], first)
        ]
        term.next = first + len(rows)
        found = self._take(cell, cell.set_apart(term, rows))
        if not cell.active:
            # The subscriber was not told *active*: until then nothing counts for certain.
            cell.held += found
            return []
        return found

    def _take(self, cell: Kept, rows: Iterable[RowApart]) -> list[Row]:
        """Note results; those that no run has found since the last snapshot, so are new."""
        new = []
        for result in rows:
            row = result.row
            if self.of.get((row[0], row[1])) != cell.name:
                continue  # it was cancelled, or another text is in its place
            name = "\0".join((row[0], row[1], _id_of(row[3]).id))
            before = cell.ids.setdefault(name, {})
            if not before:
                new.append(row)
            before[result.run] = result.number
        while len(cell.ids) > IDS_MAX:
            del cell.ids[next(iter(cell.ids))]
            self.forgotten += 1
        return new

    def _place(self, one: CellResults | CellSaved) -> int | None:
        """The number of the next result of a run; None where it is of one that is over."""
        cell = self.cells.get(one.cell)
        term = None if cell is None else cell.term(one.term)
        if term is None or one.life < term.life:
            return None
        # A new process of the host counts from the snapshot on, and takes back nothing.
        return one.floor if one.life > term.life else term.next

    def _now_at(self, cell: Kept, one: CellResults | CellSaved) -> Term:
        """The term, in the life that is heard of now."""
        term = cell.term(one.term)
        assert term is not None
        if one.life > term.life:
            cell.end_run(term)
            cell.runs += 1
            term.life, term.run, term.next = one.life, cell.runs, one.floor
            if not cell.active:  # what it found before counts no more than if it had not begun
                cell.ids, cell.held = {}, []
        return term

    def settles(self, one: CellSettled) -> bool:
        """Tell whether that says more than was known, and all results before it were taken."""
        cell = self.cells.get(one.cell)
        if cell is None or not cell.active or one.term != cell.serving.number:
            return False
        if one.life != cell.serving.life or cell.serving.next < one.next:
            return False
        return any(
            self._may_settle(key, cell) and reached > self.settled.get(key, reached - 1)
            for key, reached in _by_key(one)
        )

    def _may_settle(self, key: Key, cell: Kept) -> bool:
        """Tell whether a subscription is the cell's, and under the text of which is said."""
        return self.of.get(key) == cell.name and not cell.is_revised(key)

    def settle(self, one: CellSettled) -> None:
        """Note how far a cell's subscriptions are settled."""
        if self.settles(one):
            cell = self.cells[one.cell]
            for key, reached in _by_key(one):
                if self._may_settle(key, cell):
                    self.settled[key] = max(reached, self.settled.get(key, reached))

    # --- snapshots of cells ----------------------------------------------------------------

    def saves(self, one: CellSaved) -> bool:
        """Tell whether a snapshot can take the place of the last one: what is before it was taken.

        While a cell moves, the last one is what the coming term begins from: until each origin has
        heard of that, none may forget what is behind it.
        """
        place = self._place(one)
        if place is None or place < one.end:
            return False
        cell = self.cells[one.cell]
        return cell.coming is None or one.term == cell.coming.number

    def save(self, one: CellSaved) -> tuple[list[Key], list[Row]]:
        """Take a snapshot: (subscriptions that are active from now on, results given out so)."""
        if not self.saves(one):
            return [], []
        cell = self.cells[one.cell]
        term = self._now_at(cell, one)
        if term is cell.coming:
            # It has a state of its own behind all origins' answers: the old term can end.
            cell.serving, cell.coming = term, None
            cell.reason = ""
        cell.run, cell.end, cell.snapshot = term.run, one.end, one.snapshot
        fresh, rows = self._put_in_force(cell, cell.revision if one.revision < 0 else one.revision)
        _let_go(cell)
        if cell.active:
            return fresh, rows
        rows, cell.held, cell.active = cell.held, [], True
        return list(cell.keys), rows

    def _put_in_force(self, cell: Kept, revision: int) -> tuple[list[Key], list[Row]]:
        """The last snapshot has this revision: (subscriptions that it ends a wait of, results)."""
        over = [earlier for earlier in cell.revisions if earlier.number <= revision]
        cell.revision = revision
        cell.revisions = [later for later in cell.revisions if later.number > revision]
        # What other runs have found goes: they are over, as none but this one is to go on.
        apart, cell.apart = cell.apart, []
        rows = [result for result in apart if result.run == cell.run]
        changed = dict.fromkeys([key for earlier in over for key in earlier.keys])
        fresh = [key for key in changed if key in cell.keys and not cell.is_revised(key)]
        return fresh, self._take(cell, cell.set_apart(cell.serving, rows))

    # --- the state -------------------------------------------------------------------------

    def state(self) -> list[Any]:
        """Plain data."""
        rows = [msgspec.to_builtins(one, builtin_types=(bytes,)) for one in self.cells.values()]
        settled = [[*key, reached] for key, reached in self.settled.items()]
        return [self._count, self.forgotten, rows, settled]

    def restore(self, state: Sequence[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._count, self.forgotten, rows, *settled = state
        self.settled = {(who, name): reached for who, name, reached in (settled or [()])[0]}
        found = msgspec.convert(rows, list[Kept], str_keys=False)
        self.cells.clear()
        self.cells.update({one.name: one for one in found})
        self.of.clear()
        self.of.update({key: one.name for one in found for key in one.keys})


def _key_of(result: str) -> Key:
    """Return the subscription of a result, by the name that `CellBook` gives it."""
    subscriber, name, _ = result.split("\0", 2)
    return subscriber, name


def _by_key(one: CellSettled) -> list[tuple[Key, int]]:
    return [((subscriber, name), reached) for subscriber, name, reached in one.reached]


def _let_go(cell: Kept) -> None:
    """Forget the results that nothing behind the last snapshot finds again."""
    # A result that the run of the snapshot numbered before its end is in the snapshot: whatever
    # begins from there does not find it again. One that only another run has found may come.
    run, end = cell.run, cell.end
    cell.ids = {name: at for name, at in cell.ids.items() if at.get(run, end) >= end}
