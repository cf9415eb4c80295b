"""One process of the broker: carries out what its core wants, as a real one does.

Owns the groups that are synced and committed, and the making of snapshots. Must not know what
clients want, or what waits for what (`broker.core.effects`). Invariant: what the gate lets go
is carried out in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from broker.core.broker import BrokerOptions
from broker.core.effects import (
    Acknowledge,
    Append,
    CommitGate,
    DisownResults,
    Effect,
    Emission,
    Emit,
    Enlist,
    Held,
    Publish,
    ReleaseResults,
    Reply,
)
from broker.core.messages import Message, Woken
from broker.core.recovery.durable import DurableBroker, head_of
from broker.core.recovery.records import Record
from broker.engine.limits import Limits
from broker.engine.runtime.budget import CANDIDATES_EACH, Slices
from broker.network.effects import Note, SendFrame
from broker.network.overlay.calls import CallArrived
from simulation.crashes.journal import SimulatedJournal
from simulation.crashes.outbox import OutboxGroup, SimulatedOutbox
from simulation.disk import Disk
from simulation.world import World

WAITING_MAX = 40  # records that are not durable, before clients have to wait
RETRY_MS = 100
SLICE_MS = 1  # after which the work on a message goes on
# Candidates of a slice: 1 is a turn for each agent that does anything, and for each result.
SLICES = (CANDIDATES_EACH, 1, 20)


class Machine(Struct, frozen=True):
    """Hold what a process finds itself on; times in ms are the most that something takes."""

    disk: Disk
    outbox: SimulatedOutbox
    options: BrokerOptions
    limits: Limits
    sync_ms: int
    commit_ms: int
    snapshot_records: int  # about so many records lie between two snapshots
    segment_bytes: int
    functions: dict[str, Any] = {}  # of one's own, that texts may call
    drift_ppm: int = 0  # by which its clock is faster than the world's time
    slice_max: int = CANDIDATES_EACH  # candidates, after which others have their turn


class ProcessWatcher(Protocol):
    """Watch a process, and get what leaves it."""

    def step(self) -> None:
        """Something is about to happen; the process may end here, by an exception."""

    def later(self, delay_ms: int, action: Any) -> None:
        """Do something after so long, if the process is still there."""

    def told(self, number: int, message: Message | None, now: int) -> None:
        """A record was made of a message (None: of the process's beginning)."""

    def leaves(self, effect: Effect) -> None:
        """An effect is carried out for good."""

    def delivered(self, rows: list[Emission]) -> None:
        """Results are in the outbox."""


class Process:
    """Run one process of the broker; making one is a start."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        around: ProcessWatcher,
        clock_ms: int,
        send: Callable[[SendFrame], None] | None = None,
    ) -> None:
        self._world = world
        self._machine = machine
        self._around = around
        self._clock_ms = clock_ms  # by how much its clock is ahead
        self._begin_ms = world.now
        self._gate = CommitGate()
        self._send = send or _send_nowhere
        self.on_release: Callable[[Sequence[Emission]], None] = lambda _results: None
        self._inbox: deque[Message] = deque()
        self._works = False  # on a message that takes several slices
        self._group = OutboxGroup()
        self.committing = OutboxGroup()
        self._syncing = False
        self._troubled = False
        self._wake_at: int | None = None
        self._snapshot: tuple[int, int, bytes] | None = None
        self.journal = SimulatedJournal(
            machine.disk, world.random, around.step, machine.segment_bytes
        )
        recovered = self.journal.open()
        self._gate.durable = self.journal.durable
        self.core, effects = DurableBroker.recover(
            machine.options,
            machine.limits,
            recovered.snapshot,
            recovered.records,
            machine.outbox.end,
            self._now(),
            machine.outbox.listed,
            machine.functions,
        )
        self.core.core.budget.cut(machine.slice_max)
        self._until_snapshot = self._until()
        self._perform(effects, None)

    def tell(self, message: Message) -> None:
        """Have the core handle a message, now or when there is room for it."""
        if self._troubled or self._works or self._inbox or self.journal.waiting > WAITING_MAX:
            self._inbox.append(message)
        else:
            self._advance(message, self._work(message))

    def set_fence(self, fence: int | None) -> None:
        """Have results from this offset on wait for a stand-in."""
        self._gate.fence = fence

    @property
    def idle(self) -> bool:
        """Tell whether nothing waits for the disk."""
        waits = len(self._gate) or self._works or self._inbox or self._group or self.committing
        return not (waits or self.journal.waiting)

    def _now(self) -> int:
        ran_ms = self._world.now - self._begin_ms
        return self._world.now + self._clock_ms + ran_ms * self._machine.drift_ppm // 1_000_000

    def _work(self, message: Message) -> Slices[list[Effect]]:
        return self.core.work(message, self._now())

    def _advance(self, message: Message, work: Slices[list[Effect]]) -> None:
        """Do a slice of the work on a message, behind whose end others have their turn."""
        try:
            next(work)
        except StopIteration as end:
            effects = end.value
        else:
            self._works = True
            self._around.later(SLICE_MS, lambda: self._go_on(message, work))
            return
        self._check()
        self._perform(effects, message)

    def _go_on(self, message: Message, work: Slices[list[Effect]]) -> None:
        self._around.step()
        self._works = False
        self._advance(message, work)
        self._read_on()

    def _check(self) -> None:
        self.core.check_invariants()

    # --- effects ---------------------------------------------------------------------------

    def _perform(self, effects: list[Effect], message: Message | None) -> None:
        for effect in effects:
            if not isinstance(effect, SendFrame):
                self._around.step()
            match effect:
                case Append(number, data):
                    self._around.told(number, message, self.core.now)
                    self.journal.append(Record(number, data))
                    self._until_snapshot -= 1
                    self._plan_writing()
                case Publish() | CallArrived():
                    self._around.leaves(effect)
                case Note():
                    pass
                case ReleaseResults() | DisownResults():
                    self._carry_out(self._gate.move_fence(effect))
                case _:
                    self._carry_out(self._gate.put(effect))
        self._take_snapshot()
        self._plan_waking()

    def _carry_out(self, released: Sequence[Held]) -> None:
        for effect in released:
            if isinstance(effect, SendFrame):
                self._send(effect)
                continue
            self._around.step()
            match effect:
                case Emit(results):
                    self.on_release(results)
                    self._group.rows += results
                    self._plan_commit()
                case Enlist():
                    self._group.listing.append(effect)
                    self._plan_commit()
                case Acknowledge() | Reply():
                    self._around.leaves(effect)

    def _read_on(self) -> None:
        """Handle what waits, as far as there is room."""
        while self._inbox and not (
            self._troubled or self._works or self.journal.waiting > WAITING_MAX
        ):
            message = self._inbox.popleft()
            self._advance(message, self._work(message))

    def _plan_waking(self) -> None:
        wake = self.core.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._around.later(max(1, wake - self._now()), lambda: self._woken(wake))

    def _woken(self, planned: int) -> None:
        if planned == self._wake_at:
            self._wake_at = None
            self.tell(Woken())

    # --- the journal -----------------------------------------------------------------------

    def _plan_writing(self) -> None:
        if not self._syncing:
            self._syncing = True
            self._around.later(0, self._write)

    def _write(self) -> None:
        try:
            number = self.journal.write()
        except OSError:
            self._fail()
            return
        self._around.later(self._takes(self._machine.sync_ms), lambda: self._sync(number))

    def _sync(self, number: int) -> None:
        try:
            self.journal.sync(number)
        except OSError:
            self._fail()
            return
        self._troubled = self._syncing = False
        self._carry_out(self._gate.commit(self.journal.durable))
        self._read_on()
        self._try_snapshot()
        if self.journal.waiting:
            self._plan_writing()

    def _fail(self) -> None:
        """Go on in another segment, if that can be; until then clients wait."""
        self._troubled = True
        try:
            self.journal.give_up()
        except OSError:
            self._around.later(RETRY_MS, self._fail)
            return
        self._around.later(RETRY_MS, self._write)

    def _takes(self, most_ms: int) -> int:
        """Draw how long something takes; mostly a fraction."""
        draw = self._world.random
        return draw.randint(0, most_ms if draw.random() < 0.1 else most_ms // 10)

    # --- the outbox ------------------------------------------------------------------------

    def _plan_commit(self) -> None:
        if not self.committing and self._group:
            self.committing, self._group = self._group, OutboxGroup()
            self._around.later(self._takes(self._machine.commit_ms), self._commit)

    def _commit(self) -> None:
        self._around.step()
        group = self.committing
        self._machine.outbox.commit(group)
        self.committing = OutboxGroup()
        self._around.step()
        if group.rows:
            self._around.delivered(group.rows)
        for _ in group.listing:
            self._carry_out(self._gate.listed())
        self._try_snapshot()
        self._plan_commit()

    # --- snapshots -------------------------------------------------------------------------

    def _until(self) -> int:
        """After how many records another snapshot is taken."""
        return self._world.random.randint(1, 2 * self._machine.snapshot_records)

    def _take_snapshot(self) -> None:
        if self._snapshot is None and self._until_snapshot <= 0:
            self._until_snapshot = self._until()
            data = self.core.snapshot()
            head = head_of(data)
            self._snapshot = (head.number, head.outbox_end, data)
            self._try_snapshot()

    def _try_snapshot(self) -> None:
        """Write a snapshot down once nothing that it stands for may be lost."""
        if self._snapshot is None:
            return
        number, outbox_end, data = self._snapshot
        if self._may_write(number, outbox_end):
            self._snapshot = None
            try:
                self.journal.write_snapshot(number, data)
            except OSError:
                return  # another one comes

    def _may_write(self, number: int, outbox_end: int) -> bool:
        durable = self.journal.durable >= number
        return durable and self._machine.outbox.end >= outbox_end


def _send_nowhere(frame: SendFrame) -> None:
    raise AssertionError(f"a broker without links sends a frame to {frame.link}")
