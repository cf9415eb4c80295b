"""What must hold of a run with crashes, checked against one without any.

Owns the checks. Must not know files or processes. Invariant: nothing here is read from the disk;
what the broker was told, what left it and what is in the outbox is all that is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from broker.core.effects import Emission, Emit, Publish
from broker.core.messages import EventsReceived, SourceAdvertised, SourceWithdrawn
from broker.core.recovery.durable_state import RestorableBroker
from broker.core.topics import SOURCES
from broker.engine.limits import Limits
from language import Specification
from simulation import checkers
from simulation.account import CheckFailedError, Key, Said, key_of
from simulation.crashes.clients import AskingClient, PublishingSensor
from simulation.crashes.site import CrashingSite, HandledMessage

PLACE = ("location", "position")  # what an advertisement supplies to events


class Undisturbed:
    """A broker that never ends, told the same at the same times."""

    def __init__(self, first: HandledMessage, limits: Limits) -> None:
        self.core = RestorableBroker(first.options, limits)
        self.results: list[tuple[int, Emission]] = []
        self.retained: dict[str, bytes] = {}
        self.arrived: list[Said] = []
        self.let_in: dict[Key, Said] = {}  # what was in time, each once, as it was then
        self._places: dict[str, Said] = {}

    def run(self, site: CrashingSite) -> None:
        """Tell it all."""
        for heard in site.history:
            if heard.message is None:
                self._begin(heard)
                continue
            match heard.message:
                case SourceAdvertised(source, data):
                    advertisement = json.loads(data)
                    self._places[source] = {
                        name: advertisement[name] for name in PLACE if name in advertisement
                    }
                case SourceWithdrawn(source):
                    self._places.pop(source, None)
            arrived, late = len(self.arrived), set()
            if isinstance(heard.message, EventsReceived):
                for payload in heard.message.payloads:
                    self._arrive(payload.data, payload.type_name, payload.source)
            for effect in self.core.handle(heard.message, heard.now):
                if isinstance(effect, Emit):
                    self.results += [(heard.now, result) for result in effect.results]
                elif isinstance(effect, Publish):
                    late |= self._published(effect)
            for event in self.arrived[arrived:]:
                # One that is late may be in time when it comes again: its source may have left
                # meanwhile, and begun anew, without a place.
                if key_of(event) not in late:
                    self.let_in.setdefault(key_of(event), event)

    def _begin(self, one: HandledMessage) -> None:
        """Begin as a process that goes on with what another did, perhaps otherwise set."""
        if one.options != self.core.options:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(self.core.state()))
            self.core = RestorableBroker(one.options, self.core.limits)
            self.core.restore(state)
        self.core.resume(one.now)

    def _arrive(self, data: bytes, type_name: str, source: str) -> None:
        document = json.loads(data)
        for event in document if isinstance(document, list) else [document]:
            place = self._places.get(source, {})
            self.arrived.append({"type": type_name, "source": source, **place, **event})

    def _published(self, effect: Publish) -> set[Key]:
        """Keeps what is retained; which events were late."""
        late = set()
        for publication in effect.publications:
            if publication.topic.startswith("late/"):
                late.add(key_of(json.loads(publication.payload)))
            elif publication.retain and publication.payload:
                self.retained[publication.topic] = publication.payload
            elif publication.retain:
                self.retained.pop(publication.topic, None)
        return late


def check_all(
    site: CrashingSite,
    sensors: Iterable[PublishingSensor],
    askers: Iterable[AskingClient],
    stays: Specification,
) -> tuple[int, int]:
    """All that must hold at the end; how many results there are, and how many events."""
    undisturbed = Undisturbed(site.history[0], site.machine.limits)
    undisturbed.run(site)
    rows = site.machine.outbox.rows
    check_outbox(rows, [result for _, result in undisturbed.results])
    checkers.check_no_result_twice(enumerate(rows))
    arrived = {(event["source"], *key_of(event)) for event in undisturbed.arrived}
    for sensor in sensors:
        for event in sensor.acknowledged:
            if (sensor.name, *key_of(event)) not in arrived:
                raise CheckFailedError(f"{event} of {sensor.name} was acknowledged, and is lost")
    let_in = undisturbed.let_in.values()
    excused = _excused(let_in)
    checkers.check_replay(stays, enumerate(rows), let_in, excused)
    check_state(site, undisturbed)
    for asker in askers:
        check_holds(site, asker)
    return len(rows), len(undisturbed.arrived)


def _excused(let_in: Collection[Said]) -> Callable[[Mapping[str, Any]], bool]:
    """Which results may be missing, with crashes and without: those of events that last.

    How far such may reach back a broker learns from those that came before.
    """
    points = {event["id"] for event in let_in if "timestamp" in event}

    def excused(result: Mapping[str, Any]) -> bool:
        ids = {event_id for bound in result["events"].values() for event_id in bound}
        return not ids <= points

    return excused


def check_outbox(rows: list[Emission], expected: list[Emission]) -> None:
    """Every result stands there once, at its place, as without any crash."""
    for offset, (row, other) in enumerate(zip(rows, expected, strict=False)):
        wanted = (other.subscriber, other.subscription, other.actor, other.payload)
        if (row.subscriber, row.subscription, row.actor, row.payload) != wanted:
            raise CheckFailedError(
                f"at offset {offset} stands {row.payload!r}, without crashes {other.payload!r}"
            )
        if row.offset != offset:
            raise CheckFailedError(f"offset {row.offset} stands at place {offset}")
    if len(rows) != len(expected):
        raise CheckFailedError(f"{len(rows)} results, without crashes {len(expected)}")


def check_state(site: CrashingSite, undisturbed: Undisturbed) -> None:
    """Check that what is installed, counted and retained is what it would be without any crash.

    What agents hold may be less: one that was restored has let go of what can matter no more.
    """
    assert site.process is not None
    core, other = site.process.core, undisturbed.core
    pairs = {
        "installed": (core.subscriptions, other.subscriptions),
        "listed": (
            [
                (*subscription.key, subscription.seq, subscription.since)
                for subscription in site.machine.outbox.listed
            ],
            [
                (*subscription.key, subscription.seq, subscription.since)
                for subscription in other.subscriptions
            ],
        ),
        "counted": (core.ledger.to_dict(), other.ledger.to_dict()),
        "dropped": (core.dropped(), other.dropped()),
        "remembered": (core.remembered, other.remembered),
        "retained": (
            {
                topic: payload
                for topic, payload in site.retained.items()
                if topic.startswith(SOURCES)
            },
            undisturbed.retained,
        ),
        "next waking": (core.next_wake(), other.next_wake()),
    }
    for name, (actual, expected) in pairs.items():
        if actual != expected:
            raise CheckFailedError(f"{name}: {actual}, without crashes {expected}")


def check_holds(site: CrashingSite, asker: AskingClient) -> None:
    """Check that what a client was told is so."""
    assert site.process is not None
    catalogue = site.process.core.catalogue.subscriptions
    for name, seq in asker.holds.items():
        listed = catalogue.get((asker.name, name))
        held = None if listed is None else listed.seq
        if held != seq:
            raise CheckFailedError(f"{name} of {asker.name} has seq {held}, not {seq}")
