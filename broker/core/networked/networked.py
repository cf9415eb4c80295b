"""The core of a broker among others: what of the network it has to remember.

Owns the positions at other origins, what hosts need of this one, and the order in which events from
afar come to tasks. Must not know links, routes or frames. Invariant: its state is a function of
what the journal holds (but that more may be kept for others than need be); an event from afar is
fed once, as an origin's positions are passed in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from broker.core import messages, returned
from broker.core.broker import BrokerOptions, Work
from broker.core.effects import Emission, Outgoing
from broker.core.intake import Admitted, Decoded
from broker.core.messages import DecodedEvents
from broker.core.networked.activation import Activation, Key
from broker.core.networked.actor_delivery import ActorDelivery
from broker.core.networked.cell_beginnings import CellBeginnings
from broker.core.networked.header import HeaderTools, WindowHeader
from broker.core.networked.home_cells import HomeCells
from broker.core.networked.local_origin import LocalOrigin, OriginParts
from broker.core.recovery.durable_state import RestorableBroker, Source
from broker.core.refusals import Answer
from broker.core.standby.adoption import Adoption
from broker.core.standby.copies_kept import CopiesKept
from broker.core.suspension.agreement import follow, mark
from broker.engine.clock_names import by_wait
from broker.engine.event.agent import WATERMARK_NONE, Result
from broker.engine.ingest import sources
from broker.engine.ingest.faults import Rejection
from broker.engine.limits import Limits
from broker.engine.runtime.budget import Slices
from broker.engine.runtime.seats import next_report
from broker.network.delivery.succession import SuccessionLog
from broker.network.frames import told
from broker.network.host.needs import primitives
from broker.network.host.upstream import Upstream
from broker.network.placement import home_records
from broker.network.placement.book import CellBook
from broker.network.placement.cell_view import is_cell
from broker.network.replication import absence
from broker.network.replication.cancellations import CancellationLog, SubscriptionsCancelled
from language.taskgraph import Task

if TYPE_CHECKING:
    pass

_end = attrgetter("end")
_OF_ABSENCE: tuple[type[Any], ...] = (absence.OriginAway, absence.OriginBack)


class NetworkedBroker(RestorableBroker):
    """Keep what of the network a broker has to remember."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        super().__init__(options, limits)
        self.frontiers.keeps_on = is_cell(self.options.name)
        self.upstream: dict[str, Upstream] = {}
        self.cancellations = CancellationLog(self.options.name)
        self.successions, self.standing_in = SuccessionLog(), CopiesKept()
        keeps = self._actors, self.ledger, self._notes, lambda: self.now
        self.delivery = ActorDelivery(self.options.name, self.limits.copies_max, *keeps)
        self.copies, self.roaming = self.delivery.copies, self.delivery.roaming
        parts = self._intake, self.ledger, self._notes, self.limits, self.copies, lambda: self.now
        self.origin = LocalOrigin(OriginParts(*parts))
        self.own, self.wants = self.origin.own, self.origin.wants
        self.sources, self.promises = self.origin.sources, self.origin.promises
        self.book = CellBook(self.options.name)
        self.activation = Activation(self.catalogue, self.book.of, super()._activate)
        self.frontiers.elsewhere = lambda: self.book.settled
        self.frontiers.host_of = self.book.host_of
        lent = self.book, self.catalogue, self._matcher
        does = self.ledger, self.activation.activate, self.frontiers.end, self._nearest, self._give
        self.cells = HomeCells(*(*lent, *does))
        given = self._texts, lambda: self.given
        self._beginnings = CellBeginnings(self.options, self.limits, *lent, *given)
        self.installer.elsewhere, self.installer.on_cancel = self.book.of, self.cancellations.cancel
        self.installer.predecessors = self._beginnings.predecessors
        takes = self._matcher, self.cells.stop_idle, self._cancel_requested, self.cells.hand_out
        self.adoption = Adoption(self, self._texts, *takes)
        self.is_host = False  # whether it ever needed something of another
        self.newest = 0  # no event of this broker, or from afar, ended later
        self._handlers[messages.NetworkTold] = self._network_told
        self.clocks = self._intake.waiting
        self.absent, self._matcher.passed = self.clocks.absent, self.clocks.passed
        folds = self._intake, self._matcher, self.ledger, self._notes, self.upstream
        tools = HeaderTools(*folds, lambda: self.now, self._feed)
        self.header = WindowHeader(self.limits.repeat_memory_events_max, tools)
        self._by_what: dict[type[Any], Any] = {
            told.OriginNamed: self._origin_named,
            told.TimesPromised: lambda one, _: self._matcher.doubt(most_ms=one.uncertainty_ms),
            **self.origin.handlers(),
            told.Activated: self._activated,
            told.BrokerForgotten: self._broker_forgotten,
            told.CopiesTaken: lambda one, _: self.copies.taken(one.broker, one.life, one.serial),
            told.CopyUnheard: self.delivery.unheard,
            told.OutOfReach: lambda one, _: self._actors.cut_off(one.brokers),
            **dict.fromkeys(_OF_ABSENCE, lambda one, _: self.absent.handle(one)),
            SubscriptionsCancelled: lambda message, _: self.cancellations.handle(message),
            home_records.CellParted: lambda one, _: self.book.part(one, self.now),
            home_records.CellStood: self._cell_stood,
            **self.cells.handlers(),
            told.Folded: self.header.folded,
            **self.adoption.handlers(),
        }

    def _network_told(self, message: messages.NetworkTold, out: Outgoing) -> Work:
        if isinstance(message.what, told.Forwarded):
            return self._forwarded(message.what, message.events, out)
        return cast("Work", self._by_what[type(message.what)](message.what, out))

    # --- as an origin ----------------------------------------------------------------------

    def _let_in(self, admitted: Admitted, out: Outgoing) -> Slices[None]:
        events, begins = admitted.events, False
        if events:
            begins = self.origin.take(events)
            self.newest = max(self.newest, *map(_end, events))
        yield from super()._let_in(admitted, out)
        if begins or self.origin.is_due(self.now):
            self.origin.promise()

    def _woken(self, message: messages.Woken, out: Outgoing) -> Slices[None]:
        yield from super()._woken(message, out)
        self.origin.promise()

    def awaited(self) -> dict[int | None, dict[str, int]]:
        """Return, by wait and type, how far that has to come before tasks here report more."""
        due = self._matcher.due(self._foreseen, ends=True, due_of=next_report)
        return by_wait(due) if due else {}

    def _advertise(self, stated: sources.Stated) -> Rejection | None:
        wrong = super()._advertise(stated)
        if wrong is None:
            self.origin.advertised(stated)
        return wrong

    def _withdraw(self, source: str, why: str, out: Outgoing) -> None:
        super()._withdraw(source, why, out)
        self.sources.gone(source)

    def _not_all_taken(self, payload: messages.Payload, decoded: Decoded, out: Outgoing) -> None:
        super()._not_all_taken(payload, decoded, out)
        if decoded.skipped:  # somebody elsewhere may want the type
            self.origin.sends(payload.source, payload.type_name)

    # --- requests --------------------------------------------------------------------------

    def source_of(self, key: Key) -> Source:
        """The text that a subscription came with."""
        return self._texts[key][1]

    def tasks(self) -> dict[str, Task]:
        """The tasks that run here, by key."""
        return self._matcher.tasks()

    def _activate(
        self, message: messages.SpecificationSubmitted, answer: Answer, out: Outgoing
    ) -> None:
        self._beginnings.begin(answer.keys, answer.cells, message, self.now)
        if self.book.of:
            self.cells.stop_idle()
        self.activation.begin(message, answer, out)

    def _activated(self, one: told.Activated, out: Outgoing) -> None:
        subscriptions = self.catalogue.subscriptions
        subs = [subscriptions[key] for key in one.subscriptions if key in subscriptions]
        self.installer.begin_anew(subs, self._intake.time_of_day(self.now), apart=one.apart)
        # Types without a source are waited for from now on.
        self._matcher.due(self._watermark_of, ends=True)
        self.activation.activate(one.subscriptions, out)

    def _cell_stood(self, one: home_records.CellStood, out: Outgoing) -> None:
        to = one.rows, self.catalogue
        if one.cell:
            out.publications += mark(*to, self.ledger, self._notes, self.now)
        else:
            follow(*to, self._matcher, self.installer.shared, self.now)

    def _emissions(self, results: Sequence[Result]) -> list[Emission]:
        active = self.activation.of_active(results) if self.activation.dormant else results
        return super()._emissions(active)

    def _cancel_requested(self, message: messages.CancelRequested, out: Outgoing) -> None:
        super()._cancel_requested(message, out)
        self.activation.look()
        self.cells.forget_cancelled()

    # --- as a host -------------------------------------------------------------------------

    def wanted(self) -> dict[str, told.Attributes]:
        """The types that tasks here need, as they are declared."""
        entries = self._intake.registry.entries
        return {name: dict(entries[name].attributes) for name in self._matcher.wanted()}

    def watermarks_of(self, origin: str) -> dict[str, int]:
        """Return what an origin has promised."""
        return {
            name: watermark
            for name in sorted(self._intake.clock.types_of(origin))
            for watermark, other in self._intake.clock.waited_for(name)
            if other == origin
        }

    def forget_what_is_late(self) -> None:
        """Let go of events that would be late, and so no repeats, if they came again.

        Where no source is here nothing depends on them, and a snapshot is smaller without them.
        """
        self._intake.forget_late(self._matcher.wanted())
        self.header.forget_what_is_late()

    def wanted_by(self, key: Key, tasks: Mapping[str, Task] | None = None) -> set[str]:
        """The primitive types that a subscription needs; `tasks`: those that run here."""
        tasks = tasks or self.tasks()
        return set(primitives(tasks[self.catalogue.subscriptions[key].task], tasks))

    def _origin_named(self, one: told.OriginNamed, _out: Outgoing) -> None:
        if not one.types:
            self.upstream.pop(one.origin, None)
            self._intake.clock.forget_origin(one.origin)
            return
        if one.origin not in self.upstream and len(self.upstream) >= self.limits.brokers_max:
            self.ledger.note("too_many_brokers")
            return
        self.is_host = True
        known = self.upstream.setdefault(one.origin, Upstream())
        known.types = tuple(dict.fromkeys([*known.types, *one.types]))
        clock = self._intake.clock
        fresh = [name for name in one.types if not clock.hears(name, one.origin)]
        clock.promise_of(one.origin, dict.fromkeys(fresh, WATERMARK_NONE), self.now)

    def _forwarded(self, one: told.Forwarded, events: DecodedEvents, out: Outgoing) -> Slices[None]:
        known, clock = self.upstream.get(one.origin), self._intake.clock
        if known is None or (taken := known.take(one, clock.passed, events)) is None:
            return
        new, counts = taken
        for name, count in counts.items():
            self.ledger.note(name, count)
        admitted = self._intake.admit_judged(self._intake.from_mappings(new).events, self.now)
        if one.whole:
            clock.forget_origin(one.origin)
        clock.promise_of(one.origin, one.watermarks, self.now)
        if admitted.late:
            self.ledger.note("late_from_afar", len(admitted.late))
            out.publications += map(returned.late, admitted.late)
        self.newest = max([self.newest, *map(_end, admitted.events)])
        self._repeats(admitted.repeats)
        yield from self._feed(admitted.events, out)
        if one.whole or None in one.watermarks.values():
            # Types without a source are waited for from now on.
            self._matcher.due(self._watermark_of, ends=True)

    def _broker_forgotten(self, one: told.BrokerForgotten, out: Outgoing) -> Slices[None]:
        self.header.forget(one.broker)
        self.origin.forget(one.broker)
        self.book.forget_origin(one.broker)
        self.upstream.pop(one.broker, None)
        self._intake.clock.forget_origin(one.broker)
        self.absent.come_back(one.broker)
        self.cancellations.forget(one.broker)
        self._actors_listening(messages.ActorsListening(one.broker, 0, (), anew=True), out)
        self.delivery.forget(one.broker, out)
        return self._feed((), out)

    def _fed(self, out: Outgoing, before: int) -> None:
        super()._fed(out, before)
        if len(out.results) > before and (self._actors.known or self.roaming.gone):
            self.delivery.copy(out.results[before:])
        if self.header.gathered.began:
            self.header.complete()

    def _give(self, results: Sequence[Emission], out: Outgoing) -> None:
        out.results += results
        self.delivery.copy(results)

    def _nearest(self, actor: str) -> str:
        stands = self.delivery.stand_for(actor)
        return super()._nearest(actor) if stands is None else stands

    def _actors_listening(self, message: messages.ActorsListening, out: Outgoing) -> None:
        _, before = self._actors.of(message.broker)
        super()._actors_listening(message, out)
        self.delivery.listening(message, before, out)

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data, that of the network included."""
        said = {
            **self.origin.state(),
            "upstream": [[name, *one.state()] for name, one in self.upstream.items()],
            "newest": self.newest,
            "is_host": self.is_host,
            "cancelled": self.cancellations.state(),
            "successions": self.successions.state(),
            "standing_in": self.standing_in.state(),
            **self.adoption.state(),
        }
        giving, cells = self.delivery.state(), self.book.state()
        network = {"giving": giving, "cells": cells, "network": said, **self.header.state()}
        return {**super().state(), **network}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state, that of the network included."""
        if (cells := state.get("cells")) is not None:
            self.book.restore(cells)
        super().restore(state)
        self.activation.look()
        self.delivery.restore(state)
        said = state.get("network")
        if said is None:  # it was not one of several before
            for source, name in self._intake.clock.sending():
                self.origin.sends(source, name)
            return
        self.origin.restore(said)
        self.newest = said.get("newest", self.now + self.limits.future_ms_max)  # it is new
        self.upstream.update({name: Upstream.of(*rest) for name, *rest in said["upstream"]})
        self.header.restore(state)
        self.cancellations.restore(said.get("cancelled", ()))
        self.successions.restore(said.get("successions", ()))
        self.standing_in.restore(said.get("standing_in", ()))
        self.adoption.restore(said)
        self.is_host = said["is_host"]
