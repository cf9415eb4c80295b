"""Cells that run in this broker, each as one more neighbour.

Owns their beginning and end, and what goes between them and this broker. Must not know what their
home wants of them otherwise. Invariant: what a cell sends leaves this broker behind all that the
broker was told before, as a cell may have been fed what no disk holds yet; the tree, and the
sessions with true neighbours, stay as they are when a cell comes or goes.

A cell that fails is nobody's trouble but its own: it ends here, which is counted and told, and goes
on at its home from its last snapshot. At its home it goes on where it can: past a message on which
it fails, as a broker does, and without the snapshots that cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import Which
from broker.network.placement.home_reports import HomeReports
from broker.network.placement.mail import SAY_AGAIN_MS, CellMail

COME_FURTHER_MS = 2_000  # what is owed comes in that time, over some hops of busy brokers
RESULTS_WAITING_MAX = 100_000  # of a cell; past that it begins anew where its home can follow


class CellRefusedError(Exception):
    """A cell cannot run here; the sentence tells why."""


class HostedCell(Protocol):
    """A cell that runs here, as far as its host has to do with it; times are in ms."""

    which: Which
    life: int
    reports: HomeReports
    fault: BaseException | None  # on which its core failed last, until it is reported
    faults: int

    @property
    def me(self) -> str:
        """Return the name of its term."""

    def keep_only(self, one: cell_messages.Wanted | cell_messages.Hosted, now: int) -> None:
        """End all subscriptions but these."""

    def tree_is(self, tree: str, now: int) -> None:
        """Hold sessions on this tree."""

    def hear(self, data: bytes, now: int) -> None:
        """Take a frame of this broker."""

    def take_out(self) -> tuple[list[bytes], list[Any]]:
        """Return frames for this broker, and effects to be carried out."""

    def to_say(self) -> list[cell_messages.Said]:
        """Return what its home has not been told yet."""

    def noted(self, origins: cell_messages.Origins, now: int) -> None:
        """Take that the home knows of these origins."""

    def stored(self, number: int, now: int) -> None:
        """Take that the home has stored that snapshot."""

    def forget(self, broker: str, now: int) -> None:
        """Wait for a broker no more."""

    def save_if_due(self) -> None:
        """Make the next snapshot, if it is time for it."""

    def wake(self, now: int) -> None:
        """Take that time has passed."""

    def next_wake(self) -> int | None:
        """Return when `wake` is due."""


class InnerNeighbours(Protocol):
    """The cells of a broker as its neighbours: sessions and frames, but no links."""

    @property
    def tree(self) -> str:
        """Return the tree on which sessions stand."""

    def join(self, name: str) -> None:
        """Make a cell a neighbour."""

    def leave(self, name: str) -> None:
        """Forget a neighbour, and what was to be sent to it."""

    def frames(self) -> Iterator[tuple[str, bytes]]:
        """Iterate over what is to be sent to cells by now; it is sent with that."""

    def hear(self, name: str, frames: tuple[bytes, ...]) -> None:
        """Take frames of a cell."""

    def carry_out(self, effects: list[Any]) -> None:
        """Have effects of a cell carried out."""

    def is_sending(self) -> bool:
        """Tell whether something is to be sent to cells."""


Running = TypeVar("Running", bound=HostedCell)


class CellKind(Protocol[Running]):
    """The kind of cells that a host runs."""

    def make(self, hosted: cell_messages.Hosted, life: int, now: int) -> Running:
        """Return a cell in a life. Raises CellRefusedError."""

    def install(self, cell: Running, hosted: cell_messages.Hosted, home: str, now: int) -> str:
        """Have it begin from its text; why that is refused, "" where it is not."""

    def revise(self, cell: Running, revision: cell_messages.TextRevision, now: int) -> str:
        """Have it take up another text; why that is refused, "" where it is not."""


class HostTools(NamedTuple):
    """Tools that a broker lends its part as a host.

    `come_further` has all that is owed to a cell of progress be said, `note` writes a line into the
    log.
    """

    me: str
    mail: CellMail
    neighbours: InnerNeighbours
    via: Mapping[str, str]
    counts: dict[str, int]
    cells_max: int
    clock: Callable[[], int]
    forgotten: Callable[[], tuple[str, ...]]
    come_further: Callable[[str], None]
    note: Callable[[Literal["error"], str, dict[str, str | int]], None]


class CellHosts(Generic[Running]):
    """Run cells of a kind in this broker, each as one more neighbour."""

    def __init__(self, tools: HostTools, kind: CellKind[Running]) -> None:
        self.cells: dict[str, Running] = {}  # by the term's name
        self._lent = tools
        self._kind = kind
        self._mail, self._neighbours = tools.mail, tools.neighbours
        self._clock = clock = tools.clock
        self._last_life = 0
        self.say_again_at: int | None = None  # when cells are to say again what homes lack
        self._mail.on_said |= {
            cell_messages.Wanted: self._cell_wanted,
            cell_messages.Hosted: self._cell_hosted,
            cell_messages.Noted: self._of_life(lambda one, said: one.noted(said.origins, clock())),
            cell_messages.Taken: self._of_life(lambda one, said: one.reports.taken(said.next)),
            cell_messages.Stored: self._of_life(lambda one, said: one.stored(said.number, clock())),
            cell_messages.Settle: self._settle_asked,
            cell_messages.SaveAsked: self._save_asked,
            cell_messages.Revised: self._cell_revised,
            cell_messages.Ended: self._cell_ended,
        }

    # --- beginning and end -----------------------------------------------------------------

    def _of(self, home: str, which: Which, life: int | None = None) -> Running | None:
        """The cell that a home speaks of, if it runs here, and in that life."""
        cell = self.cells.get(which.name)
        if cell is None or cell.which != which or self._mail.home_of(which.cell) != home:
            return None
        return cell if life is None or cell.life == life else None

    def _cell_wanted(self, home: str, one: cell_messages.Wanted) -> None:
        if self._mail.home_of(one.which.cell) != home:
            raise ValueError(f"{home} is not the home of {one.which.cell}")
        cell = self.cells.get(one.which.name)
        if cell is None or cell.which != one.which:
            if cell is not None:
                # Of the same name, but of a home that has lost its disk since.
                self._end_cell(cell)
            self._mail.tell(home, cell_messages.Missing(one.which))
            return
        with self._alone(cell):
            cell.keep_only(one, self._clock())
            cell.reports.say_again()

    def _cell_hosted(self, home: str, one: cell_messages.Hosted) -> None:
        # It may have been asked for twice, as whoever asks cannot know what was lost.
        if one.which.name in self.cells or self._mail.home_of(one.which.cell) != home:
            return
        try:
            self._begin_cell(one)
        except CellRefusedError as error:
            self._mail.tell(home, cell_messages.Refused(one.which, str(error)))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this cell's alone
            self._cell_failed(one.which, error)

    def _begin_cell(self, one: cell_messages.Hosted) -> None:
        maximum = self._lent.cells_max
        if len(self.cells) >= maximum:
            raise CellRefusedError(f"at most {maximum} cells run there (cells_max)")
        # Lives ascend over processes too: the time does, and two in one ms differ by one.
        self._last_life = max(self._clock(), self._last_life + 1)
        cell = self._kind.make(one, self._last_life, self._clock())
        # A neighbour first: its text is to be read when it has heard of all origins.
        self._join(cell)
        if not one.snapshot:
            self._install(cell, one)
        cell.keep_only(one, self._clock())
        # Its snapshot may be from before a person said that these will not come back.
        for broker in self._lent.forgotten():
            cell.forget(broker, self._clock())
        self._lent.counts["cells_begun"] += 1
        self.run()

    def _join(self, cell: Running) -> None:
        """Make a cell a neighbour, and let the two say all to each other."""
        self.cells[cell.me] = cell
        self._neighbours.join(cell.me)
        self.run()

    def _install(self, cell: Running, one: cell_messages.Hosted) -> None:
        home = self._mail.home_of(one.which.cell)
        if refused := self._kind.install(cell, one, home, self._clock()):
            self._end_cell(cell)
            raise CellRefusedError(refused)

    def _end_cell(self, cell: Running) -> None:
        del self.cells[cell.me]
        self._neighbours.leave(cell.me)
        self._lent.counts["cells_ended"] += 1

    def _cell_ended(self, home: str, one: cell_messages.Ended) -> None:
        cell = self._of(home, one.which)
        if cell is not None:
            self._end_cell(cell)

    def forget(self, broker: str) -> None:
        """End the cells of a home that nobody is to wait for; others wait for it no more."""
        for cell in list(self.cells.values()):
            if self._mail.home_of(cell.which.cell) == broker:
                self._end_cell(cell)
            else:
                cell.forget(broker, self._clock())

    # --- what homes say --------------------------------------------------------------------

    def _of_life(self, take: Callable[[Running, Any], None]) -> Callable[[str, Any], None]:
        """Return a handler of what a home says to a cell, in the life that it names."""

        def handle(home: str, one: Any) -> None:
            cell = self._of(home, one.which, one.life)
            if cell is not None:
                take(cell, one)

        return handle

    def _settle_asked(self, home: str, one: cell_messages.Settle) -> None:
        cell = self._of(home, one.which)
        if cell is not None:
            cell.reports.settle_asked = True

    def _save_asked(self, home: str, one: cell_messages.SaveAsked) -> None:
        cell = self._of(home, one.which)
        if cell is not None:
            self._lent.come_further(cell.me)
            cell.reports.saver.ask(self._clock() + COME_FURTHER_MS)

    def _cell_revised(self, home: str, said: cell_messages.Revised) -> None:
        cell = self._of(home, said.which, said.life)
        # One that comes again, or without the one before, changes nothing: all are asked for again.
        if cell is None or said.revision.number != cell.reports.saver.revision + 1:
            return
        with self._alone(cell):
            # As a text with which a cell cannot begin: its home has the snapshot before.
            if refused := self._kind.revise(cell, said.revision, self._clock()):
                self._end_cell(cell)
                reason = f"a changed text is refused there: {refused}"
                self._mail.tell(home, cell_messages.Refused(said.which, reason))

    def found(self, origin: str) -> None:
        """Say all again to a home to which there is a way."""
        for cell in self.cells.values():
            if self._mail.home_of(cell.which.cell) == origin:
                cell.reports.say_again()

    # --- what fails ------------------------------------------------------------------------

    @contextmanager
    def _alone(self, cell: Running) -> Iterator[None]:
        """Let what a cell fails on be its own end and no more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # see the module
            self._cell_failed(cell.which, error)

    def _cell_failed(self, which: Which, error: BaseException) -> None:
        """End it here; its home has it again."""
        self._tell_failed(which.name, error)
        cell = self.cells.get(which.name)
        if cell is not None:
            self._end_cell(cell)
        reason = f"it failed at {self._lent.me}: {type(error).__name__}"
        self._mail.tell(self._mail.home_of(which.cell), cell_messages.Refused(which, reason))

    def _tell_failed(self, name: str, error: BaseException) -> None:
        self._lent.counts["cells_failed"] += 1
        words: dict[str, str | int] = {"cell": name, "error": f"{type(error).__name__}: {error}"}
        self._lent.note("error", "cell_failed", words)

    def _look_after(self, cell: Running) -> None:
        """Check whether its core failed, and have it make a snapshot if it is time for one."""
        at_home = self._mail.home_of(cell.which.cell) == self._lent.me
        fault, cell.fault = cell.fault, None
        if fault is not None:
            if not at_home:
                # Its state may be wrong from here on, and its home has the last that was not.
                self._cell_failed(cell.which, fault)
                return
            self._tell_failed(cell.me, fault)
        try:
            cell.save_if_due()
        except Exception as error:
            if not at_home:
                raise  # the home may be able to
            cell.faults += 1
            cell.reports.saver.put_off(self._clock())
            self._tell_failed(cell.me, error)

    # --- at work ---------------------------------------------------------------------------

    def wake(self) -> None:
        """Time has passed."""
        for cell in list(self.cells.values()):
            with self._alone(cell):
                due = cell.next_wake()
                if due is not None and due <= self._clock():
                    cell.wake(self._clock())
        if self.say_again_at is not None and self.say_again_at <= self._clock():
            self.say_again_at = None
            for cell in self.cells.values():
                cell.reports.say_again()

    def next_wake(self) -> list[int]:
        """Return when something is due of cells."""
        wakes = [cell.next_wake() for cell in self.cells.values()]
        return [wake for wake in wakes if wake is not None]

    def run(self) -> None:
        """Bring what is under way between this broker, its cells and itself, until all is quiet."""
        while self.cells or self._mail.own:
            self._hand_in()
            moved = self._hand_out()
            while self._mail.own:
                # This broker is the home of some that run here: no link lies between.
                moved = True
                self._mail.heard(self._lent.me, self._mail.own.popleft())
            if not moved and not self._neighbours.is_sending():
                return

    def _hand_in(self) -> None:
        """Bring frames to the cells that they are for."""
        for name, data in self._neighbours.frames():
            cell = self.cells.get(name)
            if cell is not None:
                with self._alone(cell):
                    cell.tree_is(self._neighbours.tree, self._clock())
                    cell.hear(data, self._clock())

    def _hand_out(self) -> bool:
        """Take what cells have for this broker and for their homes; whether there was anything."""
        moved = False
        for name, cell in list(self.cells.items()):
            with self._alone(cell):
                self._look_after(cell)
            if name not in self.cells:
                moved = True
                continue
            sent, effects = cell.take_out()
            self._neighbours.carry_out(effects)
            if sent:
                moved = True
                self._neighbours.hear(name, tuple(sent))
            home = self._mail.home_of(cell.which.cell)
            # Its home is away for long, or slower than what is found: memory has an end.
            if len(cell.reports.results) > RESULTS_WAITING_MAX:
                self._lent.counts["cells_overflowed"] += 1
                self._end_cell(cell)
                self._mail.tell(home, cell_messages.Missing(cell.which))
                continue
            if home == self._lent.me or home in self._lent.via:
                for said in cell.to_say():
                    moved = True
                    self._mail.tell(home, said)
            if cell.reports.waiting and self.say_again_at is None:
                self.say_again_at = self._clock() + SAY_AGAIN_MS
        return moved
