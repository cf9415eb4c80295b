"""What a rehearsal is made of: network, text, events, settings; and which text goes to which home.

Owns these types. Must not know files or how a run goes. Invariant: events are in order of their
ends; each has an id and a source that enters somewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.engine.limits import Limits
from language import Specification, tree
from language.printing.items import item_text
from planner.problem import ProblemError
from simulation.rehearsal.network import Rehearsed

EVENTS_MAX = 200_000  # all are in memory, and each goes through several brokers: some minutes
LATENESS_MS = 1_000  # what brokers have by default
IDLE_MS = 60_000

Said = dict[str, Any]


class MaterialError(ValueError):
    """Network, text and events do not go together; the sentence tells why."""


@dataclass(frozen=True)
class Material:
    """The input of a rehearsal; `events` are as the formats write them, times in milliseconds.

    `moment_ms`: by the clock, between two moments of the recording, which then is in the past, as
    where it is played anew; 0: it goes as it was recorded. With a `coordinator` tasks may move.
    """

    network: Rehearsed
    specification: Specification
    events: Sequence[Said]
    tables: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    lateness_ms: int = LATENESS_MS
    idle_ms: int = IDLE_MS
    drift_ppm: int = 0
    correlate: bool = True
    stand_in: str = ""  # as `links.stand_in`: of every home
    limits: Limits = field(default_factory=Limits)
    moment_ms: int = 0
    coordinator: CoordinatorSettings | None = None

    @property
    def first_ms(self) -> int:
        """When the first event is sent, by the clock."""
        return self.sent()[0][0]

    @property
    def last_ms(self) -> int:
        """When the last event is sent."""
        return self.sent()[-1][0]

    def sent(self) -> list[tuple[int, list[Said]]]:
        """Return the events that are sent together, with when that is by the clock."""
        moments = [(end_ms, list(events)) for end_ms, events in groupby(self.events, end_of)]
        if not self.moment_ms:
            return moments
        over_ms = moments[-1][0] + 2 * LATENESS_MS  # nothing of it is in the future
        return [(over_ms + n * self.moment_ms, events) for n, (_, events) in enumerate(moments)]


def end_of(said: Said) -> int:
    """When an event ends, and is sent."""
    end_ms: int = said["end"] if "end" in said else said["timestamp"]
    return end_ms


def between(events: Sequence[Said], since_ms: int | None, until_ms: int | None) -> Sequence[Said]:
    """Those of the events, which are in order, that end from the one time to before the other."""
    low = 0 if since_ms is None else bisect_left(events, since_ms, key=end_of)
    high = len(events) if until_ms is None else bisect_left(events, until_ms, key=end_of)
    return events[low:high]


def located(events: Sequence[Said], network: Rehearsed) -> list[Said]:
    """The events with the locations that their sources' descriptions supply.

    Raises MaterialError where an event has no source, planner.problem.ProblemError where the
    network does not tell where one enters.
    """
    if not events:
        raise MaterialError(
            "no event is of a type that the specification declares, or of that time"
        )
    if len(events) > EVENTS_MAX:
        raise MaterialError(
            f"there are {len(events)} events, and a rehearsal takes {EVENTS_MAX}: choose a part of"
            " the recording, by --since and --until"
        )
    placed: list[Said] = []
    for event in events:
        name = event.get("source")
        if name is None:
            raise MaterialError(
                f"event {event['id']} has no source, which tells where it enters; --map"
                " source=COLUMN or source==NAME gives one"
            )
        if network.broker_of(name) is None:
            reason = (
                f"no broker is told for the source {name}: describe it there, or name under `entry`"
                " the broker for all that are not described"
            )
            raise ProblemError("sources", reason)
        source = network.sources.get(name)
        if source is not None and source.location is not None and event.get("location") is None:
            placed.append({**event, "location": source.location})
        else:
            placed.append(event)
    return placed


def texts_by_home(specification: Specification, network: Rehearsed) -> dict[str, str]:
    """The text that is submitted at each home: without the subscriptions of other homes.

    Raises planner.problem.ProblemError where the network does not tell a subscription's home.
    """
    homes = {key: network.described.home_of(*key) for key in specification.subscriptions}
    texts: dict[str, str] = {}
    for home in dict.fromkeys(homes.values()):
        kept = [
            item_text(item)
            for item in specification.file.items
            if not isinstance(item, tree.Subscription) or homes[item.subscriber, item.name] == home
        ]
        texts[home] = "\n\n".join(kept) + "\n"
    return texts
