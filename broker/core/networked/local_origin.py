"""A broker as an origin: what it keeps for hosts, and what it promises them.

Owns the events that hosts have not stored, which types are sent here and needed elsewhere, and the
watermarks that were promised. Must not know links, routes or tasks. Invariant: a promise has a
position behind all that it is about, and no event that comes later is before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from msgspec import Struct

from broker.core.effects import Notes
from broker.core.intake import ConflictError, Intake
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest import sources
from broker.engine.ledger import Ledger
from broker.engine.limits import LimitReachedError, Limits
from broker.network.actors.copies import Copies
from broker.network.frames import told
from broker.network.origin.own import OwnLog, types_of
from broker.network.placement.cell_view import is_cell
from broker.network.replication.local_sources import LocalSources
from broker.network.replication.time_promises import TimePromises
from broker.network.routing.advertisement.operator import Advertisement
from broker.network.routing.wants import HostWants, Wants
from language import EventType
from language.tree import AttributeType

PROMISE_MS = 50  # watermarks are promised anew at most so often
TERMS_EACH = 10  # for each cell that may run here, those elsewhere that need something of it


class Fresh(Struct, frozen=True):
    """Record what happened here at `first` and on that others may have to hear of."""

    first: int
    events: list[Event]
    watermarks: told.Watermarks = {}

    @property
    def last(self) -> int:
        """The last position of it; a promise has one of its own."""
        return self.first + max(len(self.events), 1) - 1


class OriginParts(NamedTuple):
    """The parts of a broker that it lends."""

    intake: Intake
    ledger: Ledger
    notes: Notes
    limits: Limits
    copies: Copies
    clock: Callable[[], int]


class LocalOrigin:
    """Keep what hosts need of this broker. `fresh` gathers what is to be spread (`spreads`)."""

    def __init__(self, parts: OriginParts) -> None:
        self._parts, limits = parts, parts.limits
        self.own = OwnLog(limits.retained_events_max)
        self.wants = Wants(limits.brokers_max + TERMS_EACH * limits.cells_max, told.declarable)
        self.sources = LocalSources(limits.sources_max)
        self.promises = TimePromises(limits.uncertainty_ms_max)
        self.told: told.Watermarks = {}  # what was promised last
        self.fresh: list[Fresh] = []
        self.spreads = False
        self._promised_at = 0

    def handlers(self) -> dict[type[Any], Callable[[Any, Any], None]]:
        """Return what it does with what happens in the network, by its type."""
        return {
            told.HostInterested: lambda interest, _: self.host_interested(interest),
            HostWants: lambda wants, _: self.wants.handle(wants),
            told.HostStored: lambda stored, _: self.own.stored(stored.host, stored.position),
            told.Incarnated: self._incarnated,
            told.SourceShown: lambda shown, _: self.sends(shown.source, shown.type_name),
            told.TypesAnswered: lambda answer, _: self.sources.answered(answer.types),
        }

    def _incarnated(self, incarnated: told.Incarnated, _out: Any) -> None:
        parts = self._parts
        self.own.incarnate(incarnated, parts.copies, parts.intake.clock)

    # --- what is sent here -----------------------------------------------------------------

    def take(self, events: list[Event]) -> bool:
        """Keep events of sources here; tell whether one has a type of which no time is told.

        Hosts would pass by such events, so that a promise is due.
        """
        begins = False
        for source, name in types_of(events):
            self.sends(source, name)
            begins |= name not in self.told and name in self.sources.senders
        for name, count in self.promises.observe(events).items():
            self._parts.ledger.note("promises_broken", count)
            self._parts.notes.once("warning", "promise_broken", name, type=name)
        lapsed = self.own.lapsed
        first = self.own.take(events)
        self._parts.ledger.note("retained_lapsed", self.own.lapsed - lapsed)
        if self.spreads:
            self.fresh.append(Fresh(first, events))
        return begins

    def take_fresh(self) -> list[Fresh]:
        """Return what is to be spread since this was asked last."""
        fresh, self.fresh = self.fresh, []
        return fresh

    def sends(self, source: str, type_name: str) -> None:
        """A source here sends a type, or says so."""
        new = type_name not in self.sources.senders
        if not self.sources.sends(source, type_name):
            self._parts.ledger.note("sources_not_advertised")
        for word in self.wants.due(type_name, self.own.hosts) if new else ():
            self.host_interested(told.HostInterested(*word))

    def advertised(self, stated: sources.Stated) -> None:
        """A source here has said what it sends."""
        advertised = stated.advertisement
        for name in advertised.types:
            self.sends(advertised.source, name)
        by_name = self.sources.by_name
        self.promises.advertise(by_name.get(advertised.source, ()), advertised)
        self.sources.changed[advertised.source] = None

    def advertisement(self, source: str) -> Advertisement | None:
        """Return what a source here says, or has shown, of itself; None if it sends nothing."""
        types = self.sources.by_name.get(source)
        if types is None:
            return None
        stated = self._parts.intake.advertisement(source)
        place = (None, None) if stated is None else (stated.location, stated.position)
        return Advertisement(source, tuple(sorted(types)), *place)

    # --- what is promised ------------------------------------------------------------------

    def is_due(self, now: int) -> bool:
        """Tell whether the last promise is long enough ago."""
        return now - self._promised_at >= PROMISE_MS

    def promise(self) -> None:
        """Tell hosts how far the types have come that are sent here."""
        if not self.own.hosts or self.own.is_asking:
            return
        self._promised_at = now = self._parts.clock()
        if changed := self._promises(self._parts.intake.clock.promised, now):
            self.told = {key: ms for key, ms in {**self.told, **changed}.items() if ms is not None}
            position = self.own.promise()
            self.fresh += [Fresh(position, [], changed)] if self.spreads else []

    def due_to_promise(self, now: int) -> bool:
        """Tell whether others would be told something new; asking changes nothing."""
        would_promise = self._parts.intake.clock.would_promise
        return bool(self.own.hosts) and bool(self._promises(would_promise, now))

    def _promises(self, promised: Callable[[str, int], int | None], now: int) -> told.Watermarks:
        senders = self.sources.senders
        names = dict.fromkeys([*senders, *self.told])
        reached = {name: promised(name, now) if name in senders else None for name in names}
        return {name: ms for name, ms in reached.items() if ms != self.told.get(name)}

    def left_off(self, types: Iterable[str]) -> dict[str, int]:
        """Return what was promised last of those types of which nothing is told any more."""
        last = self._parts.intake.clock.promised_last
        promised = {name: last(name) for name in types if name not in self.told}
        return {name: ms for name, ms in promised.items() if ms > WATERMARK_NONE}

    # --- who needs it ----------------------------------------------------------------------

    def host_interested(self, interest: told.HostInterested) -> None:
        """A host needs these types from now on; of none: nothing any more."""
        host, types = interest.host, interest.types
        if types and (limit := self._exceeded_by(host)):
            self._parts.ledger.note(limit)
            return
        self.declare(host, types)
        if not self.own.life:
            self.own.descent.begin(self._parts.clock(), 0)
        self.own.interest(host, types, interest.position)
        self.promise()

    def _exceeded_by(self, host: str) -> str:
        """Name the limit that keeps another host out; "" where there is room, or it is one."""
        hosts, limits = self.own.hosts, self._parts.limits
        cells = sum(map(is_cell, hosts))
        if host in hosts:
            return ""
        if is_cell(host):
            return "" if cells < TERMS_EACH * limits.cells_max else "too_many_cells"
        return "" if len(hosts) - cells < limits.brokers_max else "too_many_brokers"

    def forget(self, host: str) -> None:
        """Keep nothing for a host any more."""
        self.own.interest(host, {}, None)
        self.wants.handle(HostWants(host, 0, {}))
        self._release(host)

    def declare(self, host: str, types: Mapping[str, told.Attributes]) -> None:
        """Take events of these types in from now on, and of no others for this host."""
        owner = self._release(host)
        intake, declared = self._parts.intake, list[EventType]()
        for name, attributes in types.items():
            declaration = EventType(name, cast("dict[str, AttributeType]", dict(attributes)))
            try:
                intake.declare([*declared, declaration], owner)
            except (ConflictError, LimitReachedError) as error:
                self._parts.ledger.note("conflicting_types")
                which = f"{host} {name}"
                self._parts.notes.once("warning", "conflicting_type", which, reason=str(error))
            else:
                declared.append(declaration)

    def _release(self, host: str) -> str:
        """Take back what a host declared; return the name of that."""
        owner = f"broker {host}"
        self._parts.intake.release(owner)
        return owner

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "own": self.own.state(),
            "wants": self.wants.state(),
            **self.sources.state(),
            "told": self.told,
            "promised_at": self._promised_at,
            "promises": self.promises.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state."""
        self.own.restore(state["own"])
        self.wants.restore(state.get("wants", ()))
        self.sources.restore(state)
        kept = [events for _, events in self.own.since(0)]
        self.promises.restore(state.get("promises", ()), kept)
        self.told, self._promised_at = dict(state["told"]), state["promised_at"]
        for host, interest in self.own.hosts.items():
            self.declare(host, interest.types)
