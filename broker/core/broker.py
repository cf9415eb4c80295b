"""One broker as one state machine: messages in, effects out.

Owns the order in which the parts see a message, and what leaves. Must not know sockets, files,
clocks, randomness or logging: `now` comes in, in integer milliseconds since the epoch that never go
back. Invariant: the same messages at the same times give the same effects, byte for byte; and
between two messages every event that came in is accounted for (`check_invariants`).

Effects come in one order: what concerns nobody in particular (late, rejected, retained), results,
replies, acknowledgements, log lines; each kind at most once, but for replies and log lines. So a
sensor hears that its event is taken after all that follows from it at once has been handed out. How
a journal will hold results, replies and acknowledgements back is said in `broker.core.effects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec

from broker.core import messages, returned, topics
from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import Effect, Emission, Notes, Outgoing, Publication, Reply
from broker.core.installer import Installer
from broker.core.intake import Admitted, Decoded, Intake, IntakeOptions
from broker.core.messages import Message, Request
from broker.core.options import BrokerOptions
from broker.core.refusals import Answer, refused, trouble
from broker.engine.event.agent import Result
from broker.engine.event.event import Event
from broker.engine.ingest import reasons, sources
from broker.engine.ingest.actors import Actors
from broker.engine.ingest.faults import Rejection, rejection
from broker.engine.ledger import Ledger
from broker.engine.limits import LimitReachedError, Limits
from broker.engine.runtime.budget import Slices, in_one_go
from broker.engine.runtime.matcher import Matcher

_encode = msgspec.json.Encoder().encode

__all__ = ["Broker", "BrokerOptions"]

PASSES_MAX = 100_000  # each decides something open; what opens itself without end stops here

Work: TypeAlias = Slices[None] | None  # None: all is done


class Broker:
    """One broker: `handle` takes a message, then `next_wake` tells when `Woken` is due."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        self.options = options or BrokerOptions()
        self.limits = limits or Limits()
        self.ledger = Ledger()
        self.catalogue = Catalogue()
        self._intake = Intake(
            IntakeOptions(
                lateness_ms=self.options.lateness_ms,
                by_source=True,
                idle_timeout_ms=self.options.idle_timeout_ms,
                require_timestamp=self.options.require_timestamp,
                networked=self.options.networked,
            ),
            self.limits,
            self.ledger,
        )
        self._matcher = Matcher(self.limits, self.ledger, strict=False)
        self.budget = self._matcher.budget
        if self.options.drift_ppm:
            self._matcher.doubt(Fraction(self.options.drift_ppm, 1_000_000))
        self.installer = Installer(
            self.catalogue, self._intake, self._matcher, self.limits, self.options.tables
        )
        self.functions: Mapping[str, Any] = {}
        self.stated = self._intake.advertisement  # what a source said last, while it holds
        self._lives = sources.Lives()
        self._actors = Actors(self.limits.actors_max)
        self._notes = Notes()
        self.now = 0  # the time of the last message
        # Stop what nothing can come of any more; a broker without a disk lets it run.
        self._end_over: Callable[[], None] = lambda: None
        self._overdue = False  # a state was taken up, and nothing was decided since
        self._handlers: dict[type[Any], Callable[[Any, Outgoing], Work]] = {
            messages.EventsReceived: self._events_received,
            messages.TopicRefused: self._topic_refused,
            messages.SourceAdvertised: self._source_advertised,
            messages.SourceWithdrawn: self._source_withdrawn,
            messages.ActorsListening: self._actors_listening,
            messages.SpecificationSubmitted: self._specification_submitted,
            messages.CancelRequested: self._cancel_requested,
            messages.ResumeRequested: self._cancel_requested,
            messages.RequestRefused: lambda one, out: self._answer(one, _refusal(one), out),
            messages.Started: lambda _, out: out.publications.append(self._status("ready")),
            messages.Stopped: self._stopped,
            messages.Woken: self._woken,
            messages.ClockSet: lambda one, _: self._intake.set_ahead(one.ahead_ms),
        }

    def know(self, functions: Mapping[str, Any]) -> None:
        """Functions of one's own that texts may call, by name (`broker.engine.event.own`)."""
        self.functions = self.installer.functions = functions

    def handle(self, message: Message, now: int) -> list[Effect]:
        """Return what is to be done because of the message. `now` must not go back."""
        return in_one_go(self.work(message, now))

    def work(self, message: Message, now: int) -> Slices[list[Effect]]:
        """Handle a message in slices, before whose end no other is to be handled."""
        if now < self.now:
            raise ValueError(f"time went back from {self.now} to {now}")
        self.now = now
        out = Outgoing()
        yield from self._handlers[type(message)](message, out) or ()
        if self.installer.shared.beside:
            self.installer.shared.look(self._intake.time_of_day(now))
        return [*out.effects(), *self._notes.take()]

    def next_wake(self) -> int | None:
        """When `Woken` is due, if no message comes before; None if time alone changes nothing.

        To be asked after a message; the answer is later than that message. Asking changes nothing,
        so that a journal of messages tells all that a broker's state depends on.
        """
        if self._overdue:  # other settings may move time on
            return self.now + 1
        wake = self._lives.due[0][0] if self._lives.due else None
        due = self._matcher.due(self._foreseen, ends=True)
        by_clock = self._intake.next_wake(self.now, due) if due else None
        if wake is None or (by_clock is not None and by_clock < wake):
            wake = by_clock
        return None if wake is None else max(wake, self.now + 1)

    # --- events --------------------------------------------------------------------------

    def _events_received(self, message: messages.EventsReceived, out: Outgoing) -> Slices[None]:
        """Decode each payload, judge all events together, and feed them."""
        payloads = message.payloads
        events: list[Event] = []
        heard: dict[str, None] = {}
        arrival_ms = self._intake.time_of_day(self.now)
        for payload in payloads:
            decoded = self._intake.decode(
                payload.data,
                type_name=payload.type_name,
                source=payload.source,
                arrival_ms=arrival_ms,
                format=payload.format,
            )
            if decoded.events:
                events = events + decoded.events if events else decoded.events
                heard[payload.source] = None
            if decoded.rejections or decoded.skipped:
                self._not_all_taken(payload, decoded, out)
            bad = decoded.rejections and not (decoded.events or decoded.skipped)
            reason = decoded.rejections[0].message if bad and payload.explain else ""
            out.acknowledge(payload.token, "refused" if bad else "taken", reason)
        if self._lives.ends:
            self._lives.heard(heard, self.now)
        source = payloads[0].source if len(payloads) == 1 else None
        self._overdue = False
        return self._let_in(self._intake.admit(events, self.now, source), out)

    def _let_in(self, admitted: Admitted, out: Outgoing) -> Slices[None]:
        """Tell of those that are not let in, and feed the others."""
        if admitted.late or admitted.refused or admitted.repeats:
            self._late(admitted.late, out)
            self._crowded_out(admitted.refused, out)
            self._repeats(admitted.repeats)
        return self._feed(admitted.events, out)

    def _feed(self, events: Sequence[Event], out: Outgoing) -> Slices[None]:
        """Give events to the tasks, and the time that has come; what they report goes out."""
        results = yield from self._matcher.push(events, self._watermark_of, self._foreseen)
        before, each = len(out.results), self.budget.slice_results
        for begin in range(0, len(results), each):
            if begin:
                yield
            out.results += self._emissions(results[begin : begin + each])
        self._fed(out, before)

    def _fed(self, out: Outgoing, _before: int) -> None:
        """Follow up what tasks reported, from that place on among what goes out."""
        suspensions = self._matcher.suspensions
        if suspensions.told != len(suspensions.why):
            out.publications += self.installer.tell_suspended(self._notes, self.now)
        if self._matcher.endings.domains:
            self._end_over()

    def _feed_passed_over(self, out: Outgoing) -> Slices[None]:
        """Decide all that waited only for types of which no source is left."""
        yield from self._feed((), out)
        for _ in range(PASSES_MAX):
            if not self._intake.pass_over(self._matcher.due(self._watermark_of), self.now):
                return
            yield from self._feed((), out)

    def _watermark_of(self, type_name: str) -> int:
        return self._intake.watermark(type_name, self.now)

    def _foreseen(self, type_name: str) -> int:
        return self._intake.foreseen(type_name, self.now)

    def _emissions(self, results: Sequence[Result]) -> list[Emission]:
        self.ledger.results += len(results)
        return list(map(self._emission, results))

    def _emission(self, one: Result) -> Emission:
        said = one.to_dict() | {"detected_at": self._intake.time_of_day(self.now)}
        key = said["subscriber"], said["subscription"]
        installed = self.catalogue.subscriptions[key]
        installed.results += 1
        if installed.clocks and self.options.networked:
            said.update(self._intake.waiting.mark(installed, one, self.now))
        if installed.nearest:
            said["actor"] = self._nearest(said["actor"])
        return Emission(said["id"], said["end"], *key, said["actor"], _encode(said))

    def _nearest(self, actor: str) -> str:
        found = self._actors.nearest(actor)
        if found is None:
            self.ledger.note("no_actor_listens")
            self._notes.once("warning", "no_actor_listens", actor, actor=actor)
            return actor
        return found

    # --- what does not go in -------------------------------------------------------------

    def _not_all_taken(self, payload: messages.Payload, decoded: Decoded, out: Outgoing) -> None:
        type_name, source = payload.type_name, payload.source
        if decoded.rejections:
            self._reject(topics.events(type_name, source), payload.data, decoded.rejections, out)
        if decoded.skipped:
            self._notes.once("warning", "undeclared_type", type_name, type=type_name, source=source)

    def _reject(
        self, topic: str, data: bytes, rejections: Sequence[Rejection], out: Outgoing
    ) -> None:
        """Tell of a payload that was refused; one log line for each reason."""
        out.publications.append(returned.rejected(topic, data, rejections, self.now))
        for one in rejections:
            self._notes.once(
                "warning", "rejected", one.reason, reason=one.reason, topic=topic,
                message=one.message,
            )  # fmt: skip

    def _late(self, events: Sequence[Event], out: Outgoing) -> None:
        out.publications += [returned.late(event) for event in events]
        for event in events:
            source = event.source or ""
            self._notes.once("warning", "late", source, source=source, type=event.event_type)

    def _crowded_out(self, events: Sequence[Event], out: Outgoing) -> None:
        by_source: dict[tuple[str, str], list[Event]] = {}
        for event in events:
            by_source.setdefault((event.event_type, event.source or ""), []).append(event)
        reason = reasons.TOO_MANY_SOURCES
        for key, own in by_source.items():
            topic = topics.events(*key)
            out.publications.append(returned.crowded_out(topic, own, reason, self.now))
            self._notes.once("warning", "rejected", reason, reason=reason, topic=topic)

    def _repeats(self, repeats: Sequence[tuple[Event, bool]]) -> None:
        for event, conflicting in repeats:
            if conflicting:
                words = {"source": (source := event.source or ""), "id": event.id}
                self._notes.once("warning", "conflicting_repeat", source, **words)

    def _topic_refused(self, message: messages.TopicRefused, out: Outgoing) -> None:
        code, mapping, found = "unknown_topic", message.mapping, message.found
        if mapping:
            code = "not_mapped"
        else:
            found = f"nothing is published to {message.topic} from outside"
        self.ledger.note("payloads_not_mapped" if mapping else "topics_refused")
        self._reject(message.topic, message.data, [Rejection(code, found[:400])], out)
        out.acknowledge(message.token, "refused" if mapping else "no_such_topic")

    # --- sources -------------------------------------------------------------------------

    def _source_advertised(self, message: messages.SourceAdvertised, out: Outgoing) -> Work:
        stated = sources.read(message.source, message.data, self.limits)
        wrong = stated if isinstance(stated, Rejection) else self._advertise(stated)
        topic = topics.source(message.source)
        if wrong is not None:
            self.ledger.note("advertisements_refused")
            self._reject(topic, message.data, [wrong], out)
            out.acknowledge(message.token, "refused")
            return None
        out.publications.append(Publication(topic, message.data, retain=True))
        out.acknowledge(message.token)
        return self._feed((), out)

    def _advertise(self, stated: sources.Stated) -> Rejection | None:
        one = stated.advertisement
        try:
            self._intake.advertise(one, self.now)
        except LimitReachedError as error:
            return rejection(reasons.TOO_MANY_SOURCES, str(error))
        except ValueError as error:
            return Rejection(sources.BAD_ADVERTISEMENT, str(error))
        self._lives.begin(one.source, stated.ttl_ms, self.now)
        self._notes.once("debug", "source_advertised", one.source, source=one.source)
        return None

    def _source_withdrawn(self, message: messages.SourceWithdrawn, out: Outgoing) -> Slices[None]:
        self._withdraw(message.source, "withdrawn", out)
        out.acknowledge(message.token)
        return self._feed_passed_over(out)

    def _withdraw(self, source: str, why: str, out: Outgoing) -> None:
        self._intake.withdraw(source, self.now)
        self._lives.end(source)
        out.publications.append(Publication(topics.source(source), b"", retain=True))
        self._notes.once("debug", "source_ended", source, source=source, why=why)

    def _woken(self, _message: messages.Woken, out: Outgoing) -> Slices[None]:
        self._matcher.due(self._watermark_of, ends=True)  # what is waited for is asked for now
        ended = self._lives.ended(self.now)
        for source in ended:
            self._withdraw(source, "its time to live has run out", out)
        self._overdue = False
        return self._feed_passed_over(out) if ended else self._feed((), out)

    def _actors_listening(self, message: messages.ActorsListening, _out: Outgoing) -> None:
        ignored = self._actors.tell(
            message.broker, message.hops, message.came, message.gone, anew=message.anew
        )
        if ignored:
            self.ledger.note("actors_full", ignored)
            self._notes.once("warning", "actors_full", message.broker, broker=message.broker)

    # --- requests ------------------------------------------------------------------------

    def _specification_submitted(
        self, message: messages.SpecificationSubmitted, out: Outgoing
    ) -> None:
        answer = self.installer.submit(message, self._intake.time_of_day(self.now))
        if answer.changed:
            self._notes.tell(
                "info", "installed", client=message.client, count=answer.changed,
                subscriptions=", ".join(answer.subscriptions),
            )  # fmt: skip
        if answer.begun:  # types without a source are waited for from now on
            self._matcher.due(self._watermark_of, ends=True)
        self._answer(message, answer, out)
        if answer.ok:
            self._activate(message, answer, out)

    def _activate(
        self, message: messages.SpecificationSubmitted, answer: Answer, out: Outgoing
    ) -> None:
        """All of it runs here, and nothing else is to be waited for."""
        if (active := self.installer.activated(answer)) is not None:
            _reply(message, active, out)

    def _cancel_requested(self, message: messages.CancelRequested, out: Outgoing) -> None:
        answer = self.installer.asked(message, self.now)
        if answer.ok:
            self._notes.tell("info", message.done, client=message.client, name=message.name)
        self._answer(message, answer, out)

    def _answer(self, message: Request, answer: Answer, out: Outgoing) -> None:
        if not answer.ok:
            first = answer.troubles[0]
            self._notes.once(
                "info", "request_refused", f"{message.client} {first.code}",
                client=message.client, code=first.code, message=first.message,
            )  # fmt: skip
        _reply(message, answer, out)
        out.acknowledge(message.token)

    # --- beginning and end ---------------------------------------------------------------

    def _stopped(self, _message: messages.Stopped, out: Outgoing) -> None:
        out.publications.append(self._status("stopped"))
        account = self.ledger.events
        self._notes.tell(
            "info", "account", received=account.received, out=account.out,
            filtered=account.filtered, dropped=account.dropped_count, results=self.ledger.results,
        )  # fmt: skip

    def _status(self, state: str) -> Publication:
        said = _encode({"state": state, "at": self._intake.time_of_day(self.now)})
        return Publication(topics.status(self.options.name), said, retain=True)

    # --- what is to be seen --------------------------------------------------------------

    @property
    def subscriptions(self) -> list[Installed]:
        """Return what is installed, in the order of installation."""
        return list(self.catalogue.subscriptions.values())

    def held(self) -> int:
        """Count the events and partial results that the tasks hold."""
        return self._matcher.held()

    def dropped(self) -> dict[str, int]:
        """Count what the tasks dropped, by reason."""
        return self._matcher.dropped()

    @property
    def remembered(self) -> int:
        """Count the events that the memory for repeats holds."""
        return self._intake.remembered

    def check_invariants(self) -> None:
        """Raise unless every event is accounted for and exactly what is needed runs."""
        self.ledger.check()
        self.installer.check_invariants()
        assert sum(one.results for one in self.subscriptions) <= self.ledger.results


def _reply(message: Request, answer: Answer, out: Outgoing) -> None:
    """Answer a request; another answer follows one that tells of what was accepted alone."""
    to, final = message.reply_to, answer.state != "accepted"
    out.replies.append(Reply(to, message.client, message.request, answer.payload(), final))


def _refusal(message: messages.RequestRefused) -> Answer:
    return refused([trouble(message.code)])
