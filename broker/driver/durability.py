"""What a broker keeps on a disk, put together: journal, outbox, snapshots, and the core from them.

Owns the order of opening, recovery and closing. Must not know MQTT, HTTP or what a record means.
Invariant: whatever cannot be opened or does not fit together is a sentence before any client is
served; what is closed without trouble needs no recovery at the next start.
"""

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from broker import logs
from broker.backup.source import DATABASE, JOURNAL, Backup
from broker.config import Config
from broker.core.broker import BrokerOptions
from broker.core.effects import Effect
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_listed import RecoveryError
from broker.core.recovery.records import Record
from broker.driver.promises import IntakeGate, Promises, StoredOutbox, listed
from broker.driver.settled_log import Promised
from broker.driver.snapshots import Snapshots
from broker.errors import StartError
from broker.journal import Files, Journal, JournalContent, JournalError, JournalOptions, read
from broker.network.functions.register import FunctionRegister
from broker.store import RESULTS, Outbox, Part, Retention, Store, StoreError

if TYPE_CHECKING:
    from broker.driver.runner import Outside, Runner

PROGRESS_S = 2.0
SETTLE_S = 5.0  # at the end, for what was promised; longer only a failing disk takes


class Durability:
    """Made by `open`; `join` once there is a runner, `begin` once clients can be reached."""

    def __init__(
        self,
        store: Store,
        log: Outbox,
        found: JournalContent,
        core: DurableBroker,
        effects: list[Effect],
    ) -> None:
        self.store = store
        self.log = log
        self.core = core
        self.promises: Promises
        self.journal: Journal
        self.snapshots: Snapshots
        self.gate: IntakeGate
        self._found = found
        self._effects = effects

    @classmethod
    async def open(  # noqa: PLR0917  # what a site hands on
        cls,
        folder: Path,
        config: Config,
        options: BrokerOptions,
        now_ms: Callable[[], int],
        parts: Sequence[Part] = (),
        functions: FunctionRegister | None = None,
    ) -> "Durability":
        """The broker as it was left in this folder. Raises StartError."""
        url = config.data.database or f"sqlite:///{folder / DATABASE}"
        files = Files(config.journal.sync_delay_ms / 1000)
        try:
            store = Store.open(url, parts=(RESULTS, *parts))
            try:
                journal = await asyncio.to_thread(read, folder / JOURNAL, files)
                log = await Outbox.open(store, _retention(config))
                kept = (log.end, now_ms(), await listed(store), functions)
                recovered = await _recovered(journal, kept, config, options)
            except BaseException:
                await store.close()
                raise
        except (StoreError, JournalError, RecoveryError) as error:
            raise StartError(f"{error}; the data directory is {folder}") from None
        return cls(store, log, journal, *recovered)

    def join(self, outside: "Outside", now_ms: Callable[[], int]) -> Promises:
        """Return what a runner is to hand effects to instead of `outside`."""
        self.gate = IntakeGate(self._pause, self._resume)
        outbox = StoredOutbox(self.store, self.log, now_ms)
        self.promises = Promises(outside, outbox, self.gate)
        return self.promises

    def begin(self, runner: "Runner", config: Config) -> None:
        """Go on with the journal, and carry out what is left over from before."""
        self._runner = runner
        self.promised = Promised(runner, self.core, self.promises)
        self.log.promised = self.promised.settled
        section = config.journal
        self.promises.waiting_bytes_max = section.waiting_bytes_max
        self.journal = Journal(
            self._found,
            self.promises.durable,
            self.promises.trouble,
            JournalOptions(segment_bytes=section.segment_bytes),
        )
        self.promises.begin(self.journal)
        self.backup = Backup(
            self._found.folder.parent, config.broker.name, with_database=not config.data.database
        )
        self.snapshots = self.promises.snapshots = Snapshots(
            self.core,
            self.journal,
            self.promises,
            self.gate,
            every_bytes=section.snapshot_bytes,
            size_bytes_max=section.size_bytes_max,
            idle=runner.idle,
        )
        self.log.look_from_time_to_time(runner.now_ms)  # not before kept sessions have theirs
        self.store.on_trouble = lambda why: self.gate.put("database", why)
        self.store.on_room = self.promises.room
        self.gate.put("database", self.store.trouble)
        self._runner.perform(self._effects)
        self._effects = []

    def _pause(self) -> None:
        self._runner.pause()

    def _resume(self) -> None:
        self._runner.resume()

    def sizes(self) -> dict[str, int]:
        """Bytes of the journal on disk, of what waits for it, and of its last snapshot."""
        return {
            "segments": self.journal.size_bytes,
            "waiting": self.journal.waiting_bytes,
            "snapshot": self.snapshots.last_bytes,
        }

    def disk(self) -> dict[str, int]:
        """Bytes of the disk that the journal is on: free, and in all."""
        disk = shutil.disk_usage(self._found.folder)
        return {"free": disk.free, "size": disk.total}

    def counters(self) -> dict[str, int]:
        """Return what a person wants to know of the journal."""
        journal = self.journal
        disk = self.disk()
        return {
            "disk_free_bytes": disk["free"],
            "disk_size_bytes": disk["size"],
            "records": journal.last,
            "durable": journal.durable,
            "waiting_bytes": journal.waiting_bytes,
            "size_bytes": journal.size_bytes,
            "snapshots": self.snapshots.taken,
            "snapshot_bytes": self.snapshots.last_bytes,
            "promises": len(self.promises),
            "outbox_earliest": self.log.earliest,
            "outbox_end": self.log.end,
            "outbox_unread": self.log.unread,
            "outbox_waiting": self.store.waiting_items,
        }

    async def settle(self) -> bool:
        """Wait for all that was promised, unless the disk fails; whether all of it is durable."""
        try:
            async with asyncio.timeout(0 if self.gate.reasons() else SETTLE_S):
                await self.promises.settled(self.core.number)
        except (TimeoutError, StoreError):
            return False
        return True

    async def close(self) -> None:
        """The end: with a snapshot, so that the next start has nothing to handle again."""
        await self.snapshots.close()
        self.promised.close()
        final = self.core.snapshot() if await self.settle() else None
        if final is None:
            waiting = {"promises": len(self.promises), "results": self.store.waiting_items}
            logs.tell("warning", "ended_unsettled", **waiting)
        try:
            await self.journal.close(final)
        except JournalError as error:
            logs.tell("warning", "snapshot_failed", reason=str(error))
        await self.store.close()

    async def abandon(self) -> None:
        """The end of one that has not begun."""
        await self.store.close()


def _retention(config: Config) -> Retention:
    section = config.data
    return Retention(
        acked_age_ms=section.acked_age_ms,
        age_ms_max=section.age_ms_max,
        size_bytes_max=section.results_bytes_max,
    )


async def _recovered(
    found: JournalContent, kept: tuple[Any, ...], config: Config, options: BrokerOptions
) -> tuple[DurableBroker, list[Effect]]:
    """The core that the disk tells of; in a thread, so that signals are heard meanwhile."""
    began_s = perf_counter()
    stopping = threading.Event()
    records = _told(found, stopping)
    snapshot = found.snapshot.data if found.snapshot is not None else None
    arguments = (options, config.limits, snapshot, records, *kept)
    try:
        core, effects = await asyncio.to_thread(DurableBroker.recover, *arguments)
    finally:
        stopping.set()
    first = found.snapshot.number if found.snapshot is not None else 0
    if found.next_number > 1:
        logs.tell(
            "info", "recovered", snapshot=first, records=found.next_number - 1 - first,
            journal_bytes=found.size_bytes, torn_bytes=found.cut_bytes,
            took_s=round(perf_counter() - began_s, 3),
        )  # fmt: skip
    return core, effects


class _GivenUp(BaseException):
    """Nobody waits for the recovery any more."""


def _told(found: JournalContent, stopping: threading.Event) -> Iterator[Record]:
    """The records, with a line of the log every now and then."""
    first = found.snapshot.number if found.snapshot is not None else 0
    count = found.next_number - 1 - first
    next_s = perf_counter() + PROGRESS_S
    for record in found.records():
        if perf_counter() > next_s:
            next_s = perf_counter() + PROGRESS_S
            logs.tell("info", "recovering", records=record.number - first, of=count)
        if stopping.is_set():
            raise _GivenUp
        yield record
