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

import json
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from broker.core import messages as core_messages
from broker.core.broker import BrokerOptions
from broker.core.effects import Effect, Note, SendFrame
from broker.core.network import cell_frames
from broker.core.network.cell import Cell
from broker.core.network.cell_frames import SPLITS, Which
from broker.core.network.cell_homes import CellHomes
from broker.core.network.cell_packing import unpressed
from broker.core.network.cell_posting import SAY_AGAIN_MS
from broker.core.network.cell_view import is_cell
from broker.core.network.header_cell import HeaderCell
from broker.core.network.messages import FramesReceived
from broker.core.recovery.durable import DurableBroker, head_of
from broker.core.recovery.durable_listed import RecoveryError

RESULTS_WAITING_MAX = 100_000  # of a cell; past that it begins anew where its home can follow


class CellRefusedError(Exception):
    """A cell cannot run here; the sentence tells why."""


class CellHosts(CellHomes):
    """Run cells in this broker, each as one more neighbour."""

    def _begin_hosts(self) -> None:
        """Begin; to be called once."""
        self._cells: dict[str, Cell] = {}  # by the term's name
        self._last_life = 0
        self._say_again_at: int | None = None
        self._mail.on_said |= {
            cell_frames.Wanted: self._cell_wanted,
            cell_frames.Hosted: self._cell_hosted,
            cell_frames.Noted: self._origins_noted,
            cell_frames.Taken: self._results_taken,
            cell_frames.Stored: self._snapshot_stored,
            cell_frames.Settle: self._settle_asked,
            cell_frames.Ended: self._cell_ended,
        }

    # --- beginning and end -----------------------------------------------------------------

    def _of(self, home: str, which: Which, life: int | None = None) -> Cell | None:
        """The cell that a home speaks of, if it runs here, and in that life."""
        cell = self._cells.get(which.name)
        if cell is None or cell.which != which or self._mail.home_of(which.cell) != home:
            return None
        return cell if life is None or cell.life == life else None

    def _cell_wanted(self, home: str, one: cell_frames.Wanted) -> None:
        if self._mail.home_of(one.which.cell) != home:
            raise ValueError(f"{home} is not the home of {one.which.cell}")
        cell = self._cells.get(one.which.name)
        if cell is None or cell.which != one.which:
            if cell is not None:
                self._end_cell(cell)
            self._mail.tell(home, cell_frames.Missing(one.which))
            return
        with self._alone(cell):
            cell.keep_only(one, self._now)
            cell.say_again()

    def _cell_hosted(self, home: str, one: cell_frames.Hosted) -> None:
        if one.which.name in self._cells or self._mail.home_of(one.which.cell) != home:
            return
        try:
            self._begin_cell(one)
        except CellRefusedError as error:
            self._mail.tell(home, cell_frames.Refused(one.which, str(error)))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this cell's alone
            self._cell_failed(one.which, error)

    def _begin_cell(self, one: cell_frames.Hosted) -> None:
        maximum = self.durable.limits.cells_max
        if len(self._cells) >= maximum:
            raise CellRefusedError(f"at most {maximum} cells run there (cells_max)")
        self._last_life = max(self._now, self._last_life + 1)
        kind = HeaderCell if one.options.get(SPLITS) else Cell
        cell = kind(_core_of(one, self.durable, self._now), one, self.me, self._last_life)
        self._join(cell)
        if not one.snapshot:
            self._install(cell, one)
        cell.keep_only(one, self._now)
        for broker in self.topology.forgotten:
            cell.forget(broker, self._now)
        self.counts["cells_begun"] += 1
        self._run_cells()

    def _join(self, cell: Cell) -> None:
        """Make a cell a neighbour, and let the two say all to each other."""
        self._cells[cell.me] = cell
        self._inside[cell.me] = None
        self._routed(self.router.neighbour_added(cell.me))
        self._hello(cell.me, self.sessions.begin(cell.me))
        self._run_cells()

    def _install(self, cell: Cell, one: cell_frames.Hosted) -> None:
        """Have a cell begin from its text; it is to have heard of all origins before."""
        text = one.text.decode("utf-8", "surrogatepass")
        home = self._mail.home_of(one.which.cell)
        request = core_messages.SpecificationSubmitted(home, "", text, proven=True)
        cell.request(request, self._now)
        replies, cell.replies = cell.replies, []
        said = json.loads(replies[0].payload) if replies else {}
        if not said.get("ok"):
            self._end_cell(cell)
            raise CellRefusedError(f"its text is refused there: {said.get('errors')}")

    def _end_cell(self, cell: Cell) -> None:
        name = cell.me
        del self._cells[name], self._inside[name]
        self._sender.out = [one for one in self._sender.out if not _is_for(name, one)]
        self.sessions.end(name)
        self._leave(name)
        self._routed(self.router.neighbour_removed(name))
        for effect in [
            one for one in self._sender.out if isinstance(one, SendFrame) and one.link == name
        ]:
            self._sender.out.remove(effect)  # said before it was known that it ends
        self.counts["cells_ended"] += 1

    def _cell_ended(self, home: str, one: cell_frames.Ended) -> None:
        cell = self._of(home, one.which)
        if cell is not None:
            self._end_cell(cell)

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        for cell in list(self._cells.values()):
            if self._mail.home_of(cell.which.cell) == broker:
                self._end_cell(cell)
            else:
                cell.forget(broker, self._now)

    # --- what homes say --------------------------------------------------------------------

    def _results_taken(self, home: str, one: cell_frames.Taken) -> None:
        cell = self._of(home, one.which, one.life)
        if cell is not None:
            cell.taken(one.next)

    def _origins_noted(self, home: str, one: cell_frames.Noted) -> None:
        cell = self._of(home, one.which, one.life)
        if cell is not None:
            cell.noted(one.origins, self._now)

    def _snapshot_stored(self, home: str, one: cell_frames.Stored) -> None:
        cell = self._of(home, one.which, one.life)
        if cell is not None:
            cell.stored(one.number, self._now)

    def _settle_asked(self, home: str, one: cell_frames.Settle) -> None:
        cell = self._of(home, one.which)
        if cell is not None:
            cell.settle_asked = True

    def _found(self, origin: str) -> None:
        super()._found(origin)
        for cell in self._cells.values():
            if self._mail.home_of(cell.which.cell) == origin:
                cell.say_again()

    # --- what fails ------------------------------------------------------------------------

    @contextmanager
    def _alone(self, cell: Cell) -> Iterator[None]:
        """Let what a cell fails on be its own end and no more."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # see the module
            self._cell_failed(cell.which, error)

    def _cell_failed(self, which: Which, error: BaseException) -> None:
        """End it here; its home has it again."""
        self._tell_failed(which.name, error)
        cell = self._cells.get(which.name)
        if cell is not None:
            self._end_cell(cell)
        reason = f"it failed at {self.me}: {type(error).__name__}"
        self._mail.tell(self._mail.home_of(which.cell), cell_frames.Refused(which, reason))

    def _tell_failed(self, name: str, error: BaseException) -> None:
        self.counts["cells_failed"] += 1
        words: dict[str, str | int] = {"cell": name, "error": f"{type(error).__name__}: {error}"}
        self._sender.out.append(Note("error", "cell_failed", words))

    def _look_after(self, cell: Cell) -> None:
        """Check whether its core failed, and have it make a snapshot if it is time for one."""
        at_home = self._mail.home_of(cell.which.cell) == self.me
        fault, cell.fault = cell.fault, None
        if fault is not None:
            if not at_home:
                self._cell_failed(cell.which, fault)
                return
            self._tell_failed(cell.me, fault)
        try:
            cell.save_if_due()
        except Exception as error:
            if not at_home:
                raise
            cell.faults += 1
            cell.saver.put_off(self._now)
            self._tell_failed(cell.me, error)

    # --- at work ---------------------------------------------------------------------------

    def _wake_cells(self) -> None:
        for cell in list(self._cells.values()):
            with self._alone(cell):
                due = cell.next_wake()
                if due is not None and due <= self._now:
                    cell.wake(self._now)
        if self._say_again_at is not None and self._say_again_at <= self._now:
            self._say_again_at = None
            for cell in self._cells.values():
                cell.say_again()

    def _cells_wake(self) -> list[int]:
        """When something is due of them."""
        wakes = [cell.next_wake() for cell in self._cells.values()]
        return [wake for wake in (*wakes, self._say_again_at) if wake is not None]

    def _run_cells(self) -> None:
        """Bring what is under way between this broker, its cells and itself, until all is quiet."""
        while self._cells or self._mail.own:
            self._hand_in()
            moved = self._hand_out()
            while self._mail.own:
                moved = True
                self._mail.heard(self.me, self._mail.own.popleft())
            if not moved and not any(self._is_inside(one) for one in self._sender.out):
                return

    def _is_inside(self, effect: Effect) -> bool:
        return isinstance(effect, SendFrame) and is_cell(effect.link)

    def _hand_in(self) -> None:
        """Bring frames to the cells that they are for."""
        out, self._sender.out = self._sender.out, []
        for effect in out:
            if not isinstance(effect, SendFrame) or not is_cell(effect.link):
                self._sender.out.append(effect)
                continue
            cell = self._cells.get(effect.link)
            if cell is not None:
                with self._alone(cell):
                    cell.tree_is(self.sessions.tree, self._now)
                    cell.hear(effect.data, self._now)

    def _hand_out(self) -> bool:
        """Take what cells have for this broker and for their homes; whether there was anything."""
        moved = False
        for name, cell in list(self._cells.items()):
            with self._alone(cell):
                self._look_after(cell)
            if name not in self._cells:
                moved = True
                continue
            sent, effects = cell.take_out()
            self._sender.out += effects
            if sent:
                moved = True
                self._sender.behind = self.durable.number
                self._frames_received(FramesReceived(name, tuple(sent)))
                self._sender.behind = 0
            home = self._mail.home_of(cell.which.cell)
            if cell.results_waiting > RESULTS_WAITING_MAX:
                self.counts["cells_overflowed"] += 1
                self._end_cell(cell)
                self._mail.tell(home, cell_frames.Missing(cell.which))
                continue
            if home == self.me or home in self.ways.via:
                for said in cell.to_say():
                    moved = True
                    self._mail.tell(home, said)
            if cell.waits_for_home and self._say_again_at is None:
                self._say_again_at = self._now + SAY_AGAIN_MS
        return moved

    def cells_here(self) -> list[str]:
        """The names of the terms of cells that run here."""
        return list(self._cells)

    def cells_late(self) -> dict[str, int]:
        """By such a name: the events that came behind what its tasks had left behind."""
        return self.cells_noted("late_from_afar")

    def cells_noted(self, what: str) -> dict[str, int]:
        """By such a name: what its ledger has noted under another."""
        return {name: cell.durable.ledger.notes.get(what, 0) for name, cell in self._cells.items()}


def _core_of(hosted: cell_frames.Hosted, host: DurableBroker, now: int) -> DurableBroker:
    """The core of a cell, as its home has it. Raises CellRefusedError."""
    options = {**hosted.options, "name": hosted.which.name, "networked": True}
    options |= {"tables": hosted.tables, SPLITS: bool(hosted.options.get(SPLITS))}
    try:
        functions = host.given.for_versions(hosted.functions)
    except LookupError as error:
        raise CellRefusedError(f"{error.args[0]} at {host.options.name}") from None
    try:
        snapshot = unpressed(hosted.snapshot) if hosted.snapshot else None
        core, _ = DurableBroker.recover(
            msgspec.convert(options, BrokerOptions),
            host.limits,
            snapshot,
            (),
            0 if snapshot is None else head_of(snapshot).outbox_end,
            now,
            functions=functions,
        )
    except (RecoveryError, msgspec.MsgspecError, TypeError, ValueError) as error:
        raise CellRefusedError(f"its snapshot cannot be taken up there: {error}") from None
    return core


def _is_for(name: str, effect: Effect) -> bool:
    return isinstance(effect, SendFrame) and effect.link == name
