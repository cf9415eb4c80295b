"""What one replay gave: results with their events, and a sample of all that came and was detected.

Owns the collecting. Must not know patterns. Invariant: memory is bounded by the limits here, and
what exceeds them is counted.

The events come by subscriptions of our own, one for each type, which are put behind the text: so
every event is seen as the engine sees it, the detected ones among them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broker.engine.event.event import Event
from broker.engine.runtime.subscribed import OccurrenceResult
from language import Specification
from language.printing.expressions import name_text

OWN = "headwater-explain"  # the subscriber of our own subscriptions
EVENTS_MAX = 20_000  # of each type, from the beginning: so many are kept to look at
RESULTS_MAX = 1_000  # of each subscription


def extended(text: str, specification: Specification) -> str:
    """The text with a subscription to each event type behind it."""
    lines = [
        f"subscription {OWN}-{number} from {OWN} to {OWN} detect {name_text(name)}"
        for number, name in enumerate(specification.event_types)
    ]
    return "\n".join([text, *lines, ""])


@dataclass(slots=True)
class EventSample:
    """Those of one type: how many there were, and the first of them."""

    count: int = 0
    kept: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class ResultSample:
    """Those of one subscription."""

    count: int = 0
    kept: list[OccurrenceResult] = field(default_factory=list)


class ReplayRecord:
    """Takes what a replay of the extended text gives."""

    def __init__(self, specification: Specification) -> None:
        """`specification` is that of the text as it was."""
        self._types = list(specification.event_types)
        self.events = {name: EventSample() for name in self._types}
        self.results = {key: ResultSample() for key in specification.subscriptions}
        self.readings: dict[str, Event] = {}  # by id, of those kept
        self.uncertain = False  # whether an event's time is
        self.first: int | None = None
        self.last: int | None = None

    def take(self, results: list[Any]) -> None:
        """Results as they leave the replay."""
        for result in results:
            node = result.template.subscription
            if node.subscriber != OWN:
                self._result((node.subscriber, node.name), result)
                continue
            name = self._types[int(node.name.removeprefix(f"{OWN}-"))]
            (event,) = result.events
            self._event(name, event)

    def _result(self, key: tuple[str, str], result: OccurrenceResult) -> None:
        results = self.results[key]
        results.count += 1
        if len(results.kept) < RESULTS_MAX:
            results.kept.append(result)

    def _event(self, name: str, event: Event) -> None:
        events = self.events[name]
        events.count += 1
        self.uncertain = self.uncertain or bool(event.uncertainty)
        self.first = event.start if self.first is None else min(self.first, event.start)
        self.last = event.end if self.last is None else max(self.last, event.end)
        if len(events.kept) < EVENTS_MAX:
            events.kept.append(event)
            if event.id not in self.readings:
                self.readings[event.id] = event


def members(result: OccurrenceResult) -> list[tuple[str, list[Event]]]:
    """By alias, the events that made a result."""
    bound = result.template.bound(result.events).items()
    return [
        (name, list(event_or_list) if isinstance(event_or_list, tuple) else [event_or_list])
        for name, event_or_list in bound
    ]
