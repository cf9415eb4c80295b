"""A broker that keeps its word through crashes: the journal holds what it was told.

Owns the numbers of records, the offsets of results, and recovery. Must not know files, databases
or who carries effects out. Invariant: the core is deterministic, so that a snapshot and the records
behind it, handled again, give the state, the results, their ids and their offsets that the ended
process had; nothing that was promised is missing there, and nothing of it is promised twice.

What whoever drives it has to keep to:

1. `Append` comes first: its records are written in order. `Acknowledge`, `Emit`, `Enlist` and
   `Reply` are held back, in order, until the journal is durable up to `after`. `Publish` and `Note`
   wait for nothing.
2. Results go into the outbox at their offsets, in order, and from there to their consumers.
3. A snapshot is written down only once the journal is durable up to `number` and the outbox durably
   has all results before `outbox_end`, both as of the moment when the snapshot was taken. Records
   up to that number may then be dropped.
4. After a crash: the newest snapshot, the records behind it and the end of the outbox go to
   `recover`. What can be read of the journal is synced before anything is promised, as records that
   were read may be lost to the next crash otherwise (the first effect is a record, and all promises
   wait for it, so that a journal that syncs in order does this by itself).
5. The core's own time is `now` of the last record; a clock that is behind it is held there.

A message on which the core fails is in the journal all the same: handled again it fails again, and
leaves the same behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from broker.core import topics
from broker.core.broker import BrokerOptions
from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import (
    Acknowledge,
    Append,
    DisownResults,
    Effect,
    Emission,
    Emit,
    Enlist,
    Entry,
    Publication,
    Publish,
    Reply,
    disowned,
)
from broker.core.messages import CancelRequested, Message, ResumeRequested, SpecificationSubmitted
from broker.core.recovery import durable_told as told
from broker.core.recovery.durable_listed import RecoveryError, in_step, installed_again, refuse
from broker.core.recovery.durable_state import RestorableBroker, StateError
from broker.core.recovery.records import Record
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits, make_limits
from broker.engine.runtime.budget import Slices, in_one_go
from broker.network.effects import Note
from broker.network.functions.register import FunctionRegister, register_of

if TYPE_CHECKING:
    from broker.core.networked.networked import NetworkedBroker

SNAPSHOT_VERSION = 2
RETAINED = f"{topics.SOURCES}/"  # below this, what is retained is the core's to say

_encode = msgspec.msgpack.Encoder().encode


class CoreFaultError(Exception):
    """The core failed on a message; `effects` are to be carried out all the same."""

    def __init__(self, effects: list[Effect]) -> None:
        super().__init__("the core failed on a message")
        self.effects = effects


class Head(Struct, frozen=True):
    """State what a snapshot stands for: records up to `number`, results before `outbox_end`."""

    version: int
    number: int
    outbox_end: int


class _Snapshot(Struct, frozen=True):
    version: int
    number: int
    outbox_end: int
    options: dict[str, Any]
    limits: dict[str, int]
    retained: dict[str, bytes]
    state: dict[str, Any]


def head_of(snapshot: bytes) -> Head:
    """Read what a snapshot stands for. Raises RecoveryError where this version cannot read it."""
    try:
        head = msgspec.msgpack.decode(snapshot, type=Head)
    except msgspec.DecodeError as error:
        raise RecoveryError(f"this is no snapshot of a broker: {error}") from None
    if head.version > SNAPSHOT_VERSION:
        raise RecoveryError(
            f"the snapshot is of format {head.version}, and this version of Headwater knows formats"
            f" up to {SNAPSHOT_VERSION}: a newer one wrote it, which has to be used to read it"
        )
    return head


class DurableBroker:
    """Keep a broker's word through crashes; `recover` makes it, even with nothing to recover yet.

    `number` is that of the last record, `outbox_end` the offset of the next result.
    """

    def __init__(
        self,
        options: BrokerOptions,
        limits: Limits,
        functions: Mapping[str, Any] | FunctionRegister | None = None,
    ) -> None:
        self.number = 0
        self.outbox_end = 0
        self.unstored: tuple[Emission, ...] = ()  # results that the outbox lacked at the start
        self.given = register_of(functions)
        self.core = self._made(options, limits)
        self.network = cast("NetworkedBroker", self.core)  # of one that is networked
        self._retained: dict[str, bytes] = {}
        self._given_up: DisownResults | None = None  # by the last record, where it is read
        self._recorded_ms = 0  # the time of the last record; others leave no trace in the state

    def _made(self, options: BrokerOptions, limits: Limits) -> RestorableBroker:
        made = _linked if options.networked else RestorableBroker
        core = made(options, limits)
        core.given = self.given
        core.know(self.given.in_force)
        if options.networked:
            cast("NetworkedBroker", core).adoption.next_offset = lambda: self.outbox_end
        return core

    # --- work ------------------------------------------------------------------------------

    def handle(self, message: Message, now: int) -> list[Effect]:
        """Return what is to be done because of the message, `Append` first if it is written down.

        A time that lies before the last one counts as that. Raises CoreFaultError.
        """
        return in_one_go(self.work(message, now))

    def work(self, message: Message, now: int) -> Slices[list[Effect]]:
        """Handle a message in slices; before the end no other, and no snapshot is to be taken.

        Nothing of it is written down before its end: what a crash cuts off is done from the
        beginning by who sends it again, and a recovery does each record in one go.
        """
        core = self.core
        now = max(now, core.now)
        data = told.written(message, now)
        core.budget.message()
        try:
            effects = yield from core.work(message, now)
        except Exception as error:
            if not data:
                raise
            if core.budget.exceeded:
                data = told.bounded(data, core.budget.exceeded, now)
            raise CoreFaultError([self._append(data, now)]) from error
        if core.budget.exceeded:
            data = told.bounded(data, core.budget.exceeded, now)
        resumes = isinstance(message, ResumeRequested)
        is_request = isinstance(message, _REQUESTS) and not resumes
        if not data or (is_request and not (core.came or core.left)):
            return list(map(self._promised, effects))
        first: list[Effect] = [self._append(data, now)]
        if is_request or ((core.came or core.left) and told.enlists(message)):
            first.append(Enlist(tuple(core.entries(core.came)), core.left, self.number))
        return [*first, *map(self._promised, effects)]

    def next_wake(self) -> int | None:
        """When `Woken` is due, if no message comes before; None if time alone changes nothing."""
        return self.core.next_wake()

    def _append(self, data: bytes, now: int) -> Append:
        self.number += 1
        self._recorded_ms = now
        return Append(self.number, data)

    def _promised(self, effect: Effect) -> Effect:
        """The effect with what it has to wait for: all that was told up to now."""
        match effect:
            case Emit(results):
                begin, self.outbox_end = self.outbox_end, self.outbox_end + len(results)
                offsets = range(begin, self.outbox_end)
                return Emit(tuple(map(_numbered, results, offsets)), self.number)
            case Acknowledge(tokens, outcome, _, reasons):
                return Acknowledge(tokens, outcome, self.number, reasons)
            case Reply():
                return replace(effect, after=self.number)
            case Publish(publications):
                self._retain(publications)
        return effect

    def _retain(self, publications: tuple[Publication, ...]) -> None:
        for one in publications:
            if one.retain and one.topic.startswith(RETAINED):
                if one.payload:
                    self._retained[one.topic] = one.payload
                else:
                    self._retained.pop(one.topic, None)

    # --- snapshots -------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All state as of the last message, versioned; `head_of` tells what it stands for.

        See the module for when it may be written down.
        """
        core = self.core
        return _encode(
            _Snapshot(
                SNAPSHOT_VERSION,
                self.number,
                self.outbox_end,
                msgspec.to_builtins(core.options),
                msgspec.to_builtins(core.limits),
                self._retained,
                {**core.state(), "now": self._recorded_ms},
            )
        )

    def _take_up(self, data: bytes) -> None:
        head_of(data)
        try:
            found = msgspec.msgpack.decode(data, type=_Snapshot)
            options = msgspec.convert(found.options, BrokerOptions)
            self.core = self._made(options, make_limits(**found.limits))
            self.network = cast("NetworkedBroker", self.core)
            self.core.restore(found.state)
        except (msgspec.MsgspecError, StateError, ValueError, LookupError, TypeError) as error:
            raise RecoveryError(f"the snapshot cannot be taken up: {error}") from error
        self.number, self.outbox_end = found.number, found.outbox_end
        self._retained = dict(found.retained)
        self._recorded_ms = self.core.now

    # --- recovery --------------------------------------------------------------------------

    @classmethod
    def recover(  # noqa: PLR0917  # all that a disk holds, each its own kind
        cls,
        options: BrokerOptions,
        limits: Limits,
        snapshot: bytes | None,
        records: Iterable[Record],
        outbox_end: int,
        now: int,
        listed: Sequence[Entry] = (),
        functions: Mapping[str, Any] | FunctionRegister | None = None,
    ) -> tuple[DurableBroker, list[Effect]]:
        """The broker as the ended process left it, now with these settings, and what is to be done.

        `records` are those behind the snapshot, in order; ones before it are passed over.
        `outbox_end` is the offset of the next result in the outbox, `listed` what the catalogue on
        disk has: where there is no journal, it is installed again. `functions` are the configured
        ones, which are on no disk, or a register for them and for the given files that the disk
        has. The effects are a record that says that a process began, which everything else
        waits for; all that is retained below `sources/` (what is retained there besides is to be
        taken away); what brings the catalogue into step; and the results that the outbox does not
        have. Raises RecoveryError.
        """
        broker = cls(options, limits, functions)
        if snapshot is not None:
            broker._take_up(snapshot)
            if broker.outbox_end > outbox_end:
                raise RecoveryError(
                    f"the snapshot stands for the results before {broker.outbox_end}, and the"
                    f" outbox ends at {outbox_end}: they do not belong together; bring both back"
                    " from one moment, or move both away to begin anew"
                )
        missing: list[Emission] = []
        fresh = snapshot is None
        for record in records:
            if record.number <= broker.number:
                continue
            fresh = False
            missing += [one for one in broker._again(record) if one.offset >= outbox_end]
            if broker._given_up is not None:  # to a stand-in, which gives these out
                missing = list(disowned(tuple(missing), broker._given_up))
        notes: list[Effect] = []
        if fresh:
            broker.outbox_end = outbox_end
            if outbox_end:
                notes.append(Note("warning", "journal_missing", {"outbox_end": outbox_end}))
        elif broker.outbox_end < outbox_end:
            raise RecoveryError(
                f"the journal tells of the results before {broker.outbox_end}, and the outbox ends"
                f" at {outbox_end}: they do not belong together, or a part of the journal is lost;"
                " bring both back from one moment, or move both away to begin anew"
            )
        effects = broker._open(options, limits, now, new=fresh)
        if fresh and listed:
            effects += installed_again(broker, listed, broker.now)
        elif (step := in_step(broker.core.entries(), listed, broker.number)) is not None:
            effects.append(step)
        broker.unstored = tuple(missing)
        if missing:
            effects.append(Emit(tuple(missing), broker.number))
        return broker, effects + notes

    def _again(self, record: Record) -> list[Emission]:
        """Handle a record; its results, at their offsets."""
        if record.number != self.number + 1:
            raise RecoveryError(
                f"record {record.number} of the journal was found where {self.number + 1} is to"
                " come: a part of it is missing"
            )
        self.number, self._given_up = record.number, None
        try:
            message, now = told.read(record.data)
        except told.RecordError as error:
            raise RecoveryError(f"record {record.number} of the journal: {error}") from None
        steps: tuple[tuple[int, str], ...] = ()
        if isinstance(message, told.Bounded):
            steps, (message, now) = message.steps, told.read(message.what)
        assert not isinstance(message, told.Bounded), "one is never in another"
        if isinstance(message, told.Opened):
            self._begin(message)
            return []
        self.core.budget.message(steps)
        try:
            effects = self.core.handle(message, now)
        except Exception:  # noqa: BLE001  # as the process before did
            return []
        finally:
            self._recorded_ms = self.core.now
        if told.enlists(message) and self.core.left:
            self._given_up = self.network.adoption.disowns
        if isinstance(message, SpecificationSubmitted) and not (self.core.came or self.core.left):
            refuse(record.number, effects)  # what changed nothing has no record
        found: list[Emission] = []
        for effect in effects:
            done = self._promised(effect)
            if isinstance(done, Emit):
                found += done.results
        return found

    def _open(self, options: BrokerOptions, limits: Limits, now: int, *, new: bool) -> list[Effect]:
        """Begin a process: the record of that, and what is retained."""
        said = msgspec.to_builtins(options)
        tables = said.pop("tables")
        known = None if tables == self.core.options.tables and not new else tables
        now = max(now, self.core.now)
        one = told.Opened(now, said, msgspec.to_builtins(limits), known)
        self._begin(one)
        effects: list[Effect] = [self._append(told.opened(one), self.core.now)]
        if self._retained:
            publications = [
                Publication(topic, payload, retain=True)
                for topic, payload in self._retained.items()
            ]
            effects.append(Publish(tuple(publications)))
        return effects

    def _begin(self, one: told.Opened) -> None:
        """Go on with these settings; the same whether it happens or is handled again."""
        before = self.core
        tables = before.options.tables if one.tables is None else one.tables
        options = msgspec.convert({**one.options, "tables": tables}, BrokerOptions)
        limits = make_limits(**one.limits)
        if (options, limits) != (before.options, before.limits):
            self.core = self._made(options, limits)
            self.network = cast("NetworkedBroker", self.core)
            if before.now:
                plain = msgspec.msgpack.decode(_encode(before.state()))
                self.core.restore(plain)
        self.core.resume(one.now)
        self._recorded_ms = self.core.now

    # --- what is to be seen ----------------------------------------------------------------

    @property
    def now(self) -> int:
        """The time of the last message."""
        return self.core.now

    @property
    def options(self) -> BrokerOptions:
        """The settings."""
        return self.core.options

    @property
    def limits(self) -> Limits:
        """The limits."""
        return self.core.limits

    @property
    def functions(self) -> Mapping[str, Any]:
        """User functions that texts may call, by name, at this moment."""
        return self.core.functions

    def callers(self) -> dict[str, list[str]]:
        """Return the subscriptions that call functions of given files, by the file's digest."""
        return self.core.callers()

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of the core."""
        return self.core.ledger

    @property
    def catalogue(self) -> Catalogue:
        """Return the catalogue of the core."""
        return self.core.catalogue

    @property
    def subscriptions(self) -> list[Installed]:
        """Return what is installed, in the order of installation."""
        return self.core.subscriptions

    @property
    def remembered(self) -> int:
        """Count the events that the memory for repeats holds."""
        return self.core.remembered

    def held(self) -> int:
        """Count the events and partial results that the tasks hold."""
        return self.core.held()

    def dropped(self) -> dict[str, int]:
        """Count what the tasks dropped, by reason."""
        return self.core.dropped()

    def check_invariants(self) -> None:
        """Check the invariants of the core."""
        self.core.check_invariants()


_REQUESTS = (SpecificationSubmitted, CancelRequested)


def _numbered(one: Emission, offset: int) -> Emission:
    return Emission(
        one.id,
        one.end_ms,
        one.subscriber,
        one.subscription,
        one.actor,
        one.payload,
        offset,
        one.is_silent,
    )


def _linked(options: BrokerOptions, limits: Limits) -> NetworkedBroker:
    # Imported here, as a broker without links has no use for what would take a megabyte there.
    from broker.core.networked.networked import NetworkedBroker

    return NetworkedBroker(options, limits)
