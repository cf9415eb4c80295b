"""The door: from payloads to events that are typed, named, on time and new.

Owns the way of an event until the filterer gets it. Must not know topics, sockets or tasks.
Invariant: every event of a payload leaves in exactly one way: admitted, refused, skipped, late or a
repeat; each is counted in the ledger under its reason.

`decode` makes events of a payload and judges each by itself. `admit` judges them among the others
that came, in the order of arrival: first whether one is late, then whether it is a repeat. Between
the two an event may wait (for the journal, say); whoever lets it wait tells the ledger.

Where a topic names type or source and the payload too, they have to agree: rights are given by
topic, so a payload must not speak for another source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from broker.engine.clock_names import SEPARATOR
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import ByClass, Event, MetricPosition, Position
from broker.engine.filter.filterer import sorted_by_class
from broker.engine.ingest import reasons
from broker.engine.ingest.advertised import Advertised, Advertisement
from broker.engine.ingest.clocks import Clock, StreamClock
from broker.engine.ingest.decode import Decoded, PayloadDecoder
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.engine.ingest.network_clocks import NetworkClocks
from broker.engine.ingest.normalise import Normaliser, Origin
from broker.engine.ingest.registry import ConflictError, Format, TypeRegistry
from broker.engine.ingest.repeats import Repeats
from broker.engine.ingest.source_clocks import SourceClocks, Split
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.network.replication.waiting_clocks import WaitingClocks

if TYPE_CHECKING:
    from language.specification import EventType

__all__ = ["Admitted", "ConflictError", "Decoded", "Intake", "IntakeOptions", "to_mapping"]


class ClockReading(Protocol):
    """Tells how far a clock is."""

    def __call__(self, name: str, /, now: int = 0) -> int:
        """Return its watermark."""


class IntakeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Set how input is taken.

    `lateness_ms` is how far an event may lie behind its source's newest and be on time; None is a
    recording of which all is on time. `by_source` gives each source its clock, as a live broker
    needs; otherwise the whole input is one stream. `idle_timeout_ms` (with `by_source`): a source
    silent for so long is not waited for; None waits. `require_timestamp` refuses readings without
    a time instead of stamping them with their arrival. `networked` (with `by_source`): events come
    from other brokers, too. `typed`: each type is declared but once, and readings may come as
    `typed.typed` makes them.
    """

    lateness_ms: int | None = 0
    by_source: bool = False
    idle_timeout_ms: int | None = None
    require_timestamp: bool = False
    networked: bool = False
    typed: bool = False


class Admitted(msgspec.Struct):
    """Hold what became of events at the door; all but `events` are counted already.

    `repeats` come with whether they say something else than the event that stands.
    """

    events: list[Event]
    late: list[Event] = msgspec.field(default_factory=list)
    repeats: list[tuple[Event, bool]] = msgspec.field(default_factory=list)
    refused: list[Event] = msgspec.field(default_factory=list)


class Intake:
    """One broker's door (or one engine's)."""

    def __init__(
        self,
        options: IntakeOptions | None = None,
        limits: Limits | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        options = options or IntakeOptions()
        limits = limits or Limits()
        self.ledger = ledger or Ledger()
        self.registry = TypeRegistry(limits, shared=options.typed)
        self._advertised = Advertised(limits)
        normaliser = Normaliser(
            limits, self._advertised, require_timestamp=options.require_timestamp
        )
        self._decoder = PayloadDecoder(self.registry, normaliser, limits)
        self._repeats = Repeats(limits.repeat_memory_events_max)
        self._forgotten = 0
        self._clock = _clock(options, limits)
        self._by_name: Clock | WaitingClocks = self._clock  # also clocks that have a wait
        if isinstance(self._clock, NetworkClocks):
            self._by_name = WaitingClocks(self._clock, options.lateness_ms or 0)
        # Every event of a type that will be admitted ends after its watermark; asking gives it out,
        # and asking what is foreseen changes nothing.
        self.watermark = _by_wait(self._clock.watermark, self._by_name.watermark)
        self.foreseen = _by_wait(self._clock.foreseen, self._by_name.foreseen)
        self._ahead_ms = 0

    # --- types ---------------------------------------------------------------------------

    def declare(
        self, event_types: EventType | Iterable[EventType], owner: str = "specification"
    ) -> bool:
        """Declare event types for a specification, all or none; whether classes were replaced.

        Declaring again replaces what the owner declared of these types. Raises ConflictError (two
        specifications see an attribute differently) and LimitReachedError; then nothing changed.
        """
        several = event_types if isinstance(event_types, Iterable) else [event_types]
        return self.registry.declare(several, owner)

    def release(self, owner: str) -> bool:
        """Take back a specification's declarations; whether classes were replaced or dropped."""
        return self.registry.release(owner)

    # --- sources -------------------------------------------------------------------------

    def advertise(self, advertisement: Advertisement, now: int) -> None:
        """A source says what it is; that holds for events that arrive from now on.

        Raises ValueError where it says what cannot be, LimitReachedError.
        """
        self._advertised.advertise(advertisement)
        self._clock.advertise(advertisement.source, advertisement.types, now)

    def withdraw(self, source: str, now: int) -> None:
        """A source says that it sends no more; what its advertisement supplied is forgotten."""
        self._advertised.withdraw(source)
        self._clock.withdraw(source, now)

    def advertisement(self, source: str) -> Advertisement | None:
        """Return what a source said last, while that holds."""
        return self._advertised.of(source)

    # --- events --------------------------------------------------------------------------

    def decode(
        self,
        payload: bytes,
        *,
        type_name: str | None = None,
        source: str | None = None,
        arrival_ms: int | None = None,
        format: Format = "json",  # noqa: A002 - the word of the formats
    ) -> Decoded:
        """The events of a payload: one object, or an array of them.

        `type_name` and `source` are what its topic says. Without `arrival_ms` it is a recording:
        there is no future, and an event needs a time.
        """
        origin = Origin(type_name=type_name, source=source, arrival_ms=arrival_ms)
        return self._counted(self._decoder.decode(payload, origin, format))

    def decode_lines(self, lines: Sequence[bytes], arrival_ms: int | None = None) -> Decoded:
        """The events of JSON lines; `index` of a rejection is that of its line, empty ones count.

        A line may be an array.
        """
        return self._counted(self._decoder.lines(lines, Origin(arrival_ms=arrival_ms)))

    def from_mappings(
        self, items: Sequence[Mapping[str, Any] | Event], arrival_ms: int | None = None
    ) -> Decoded:
        """The events that mappings with the keys of the formats say, by the same measure."""
        plain = [to_mapping(item) if isinstance(item, Event) else item for item in items]
        return self._counted(self._decoder.mappings(plain, Origin(arrival_ms=arrival_ms)))

    def from_mapping(
        self, item: Mapping[str, Any] | Event, arrival_ms: int | None = None
    ) -> Decoded:
        """The one event that a mapping says: in `events`, `rejections`, or `skipped`."""
        return self.from_mappings([item], arrival_ms)

    def from_typed(self, events: list[Any], by_class: ByClass | None = None) -> Decoded | None:
        """Readings that `typed.typed` has made; None where one is of no declared type as it is.

        `by_class`: the same by their class, where that is known.
        """
        if self._advertised.describing:
            return None
        if by_class is None:
            by_class = sorted_by_class(events)
        if not self.registry.exact().issuperset(by_class):
            return None
        return self._counted(Decoded(events, by_class=by_class))

    def admit(self, events: list[Event], now: int = 0, source: str | None = None) -> Admitted:
        """Judge decoded events among all that came before: late, repeated, or new.

        `source` is given where all are known to be of that source.
        """
        return self._admitted(self._clock.split(events, now, source), now)

    def admit_judged(self, events: list[Event], now: int) -> Admitted:
        """The same of events that another broker has judged: behind what was given out, or new."""
        return self._admitted(self.clock.behind(events, now), now)

    def forget_late(self, types: Iterable[str]) -> None:
        """Forget events that another broker judged and that would be late if they came again.

        All that comes is to be of these types: what comes is told apart by id and end alone.
        """
        passed = min(map(self.clock.passed, types), default=WATERMARK_NONE)
        if passed > WATERMARK_NONE:
            self._repeats.advance(passed)

    def _admitted(self, split: Split, now: int) -> Admitted:
        fresh, repeats = self._repeats.admit(
            split.on_time,
            ordered=split.ordered,
            apart=split.apart,
            newest=split.newest,
            ends=split.ends,
            floor=split.floor,
        )
        if self._repeats.count > self._repeats.prune_at:
            self._repeats.advance(self._clock.floor(now))
        if split.late or repeats or split.refused:
            account = self.ledger.events
            account.drop(reasons.LATE, len(split.late))
            account.drop(reasons.TOO_MANY_SOURCES, len(split.refused))
            conflicting = sum(conflict for _, conflict in repeats)
            account.drop(reasons.CONFLICTING_REPEAT, conflicting)
            account.drop(reasons.REPEAT, len(repeats) - conflicting)
        if self._repeats.forgotten != self._forgotten:
            self.ledger.note("repeat_memory_forgotten", self._repeats.forgotten - self._forgotten)
            self._forgotten = self._repeats.forgotten
        return Admitted(fresh, split.late, repeats, split.refused)

    def _counted(self, decoded: Decoded) -> Decoded:
        account = self.ledger.events
        account.received += len(decoded.events)
        if decoded.rejections or decoded.skipped:
            account.received += len(decoded.rejections) + decoded.skipped
            for rejection in decoded.rejections:
                account.drop(rejection.reason)
            account.drop(reasons.UNDECLARED_TYPE, decoded.skipped)
        if decoded.stamped:
            self.ledger.note("stamped_on_arrival", decoded.stamped)
        return decoded

    def set_ahead(self, ahead_ms: int) -> None:
        """The time of day is `ahead_ms` ahead of `now` from now on."""
        self._ahead_ms = ahead_ms

    def time_of_day(self, now: int) -> int:
        """Return the time of day at `now`, with which readings are stamped."""
        return now + self._ahead_ms

    # --- time ----------------------------------------------------------------------------

    def hindmost(self, type_name: str, now: int = 0) -> str:
        """Whose clock holds the type's watermark, for people; empty where nobody's does."""
        return self._by_name.hindmost(type_name, now)

    def next_wake(self, now: int, due: Mapping[str, int]) -> int | None:
        """When time alone may bring a type to the watermark in `due`; None if never."""
        return self._by_name.next_wake(now, due)

    def pass_over(self, due: Mapping[str, int], now: int) -> bool:
        """Take types whose last source was withdrawn past what is open; whether any moved."""
        return self._by_name.pass_over(due, now)

    def finish(self) -> None:
        """Nothing more will come: watermarks are at their end, and events would be late."""
        self._clock.finish()

    # --- snapshots -----------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data; declarations are not in it.

        The whole memory for repeats is: a source that comes anew is behind what others have
        reached, and its repeats are not late.
        """
        return {
            "advertised": self._advertised.state(),
            "clock": self._by_name.state(),
            "ahead_ms": self._ahead_ms,
            "repeats": packed(self._repeats.events()),
            "prune_at": self._repeats.prune_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._advertised.restore(state["advertised"])
        self._by_name.restore(state["clock"])
        self._ahead_ms = state.get("ahead_ms", 0)
        self._repeats.restore(unpacked(state["repeats"]), state.get("prune_at"))

    def resume(self, before: int, now: int) -> None:
        """Let what was silent or waited for from `before` until now be so from now on instead."""
        self._by_name.resume(before, now)
        self._ahead_ms = 0  # a process that begins tells how far it is

    @property
    def clock(self) -> NetworkClocks:
        """The clocks of one that is networked."""
        assert isinstance(self._clock, NetworkClocks)
        return self._clock

    @property
    def waiting(self) -> WaitingClocks:
        """The clocks that have a wait, of one that is networked."""
        assert isinstance(self._by_name, WaitingClocks)
        return self._by_name

    @property
    def remembered(self) -> int:
        """Count the events that the memory for repeats holds."""
        return len(self._repeats)


def _clock(options: IntakeOptions, limits: Limits) -> Clock:
    if not options.by_source:
        return StreamClock(options.lateness_ms)
    if options.lateness_ms is None:
        raise ValueError("clocks by source need a lateness")
    clocks = NetworkClocks if options.networked else SourceClocks
    return clocks(options.lateness_ms, options.idle_timeout_ms, sources_max=limits.sources_max)


def _by_wait(plain: ClockReading, waiting: ClockReading) -> ClockReading:
    """Return what asks a clock by its name: one with a wait, or a type's own."""
    if plain == waiting:
        return plain
    return lambda name, now=0: (waiting if SEPARATOR in name else plain)(name, now)


def to_mapping(event: Event) -> dict[str, Any]:
    """An event as the formats write it; what is null is left out.

    A reading has `timestamp`, a durative event `start` and `end`. Bytes stay bytes.
    """
    said: dict[str, Any] = {"type": event.event_type}
    if event.id:
        said["id"] = event.id
    if event.source is not None:
        said["source"] = event.source
    if event.location is not None:
        said["location"] = event.location
    if event.position is not None:
        said["position"] = _plain(event.position)
    said |= _times(event)
    said["uncertainty"] = event.uncertainty
    return said | event.attribute_values()


def _plain(position: Position) -> list[float] | dict[str, float]:
    if not isinstance(position, MetricPosition):
        return list(position)
    said = {"x": position.x, "y": position.y}
    return said if position.z is None else {**said, "z": position.z}


def _times(event: Event) -> dict[str, Any]:
    if event.start is None and event.end is None:
        return {} if event.timestamp is None else {"timestamp": event.timestamp}
    if event.start == event.end:
        return {"timestamp": event.end}
    return {"start": event.start, "end": event.end}
