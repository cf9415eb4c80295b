"""What a run with faults came to beside one engine, and beside the same run without faults.

Owns what counts as the same result and the figures of delays. Must not know how a run goes.
Invariant: each expected result is found or missing, each found one expected, surplus or a repeat.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from broker.core import topics
from language import Specification
from simulation.rehearsal.run import RehearsalOutcome

LATER_MS = 100  # by less two runs may differ for what a disk takes
IDS_MAX = 20  # of missing and surplus results, that are told

Said = Mapping[str, Any]
Key = tuple[str, str]


class Delays(Struct, frozen=True):
    """The `count` results that came later than without faults: their median and most delay."""

    count: int
    median_ms: int
    most_ms: int


class Compared(Struct):
    """One subscription, or one actor at one broker; `later` is None without another run."""

    broker: str
    expected: int
    found_count: int
    twice: int
    missing: list[str]
    surplus: list[str]
    missing_count: int = 0
    surplus_count: int = 0
    later: Delays | None = None

    @property
    def whole(self) -> bool:
        """Tell whether it got what it was to get, and nothing else."""
        return not (self.missing_count or self.surplus_count)

    @property
    def equal(self) -> bool:
        """The same, and each once."""
        return self.whole and not self.twice


class RehearsalComparison(Struct):
    """By subscription (subscriber, name) and by (actor, broker); `lines` are the results found.

    `delays` are (when, by how much later) of each result that came in both runs.
    """

    subscriptions: dict[Key, Compared]
    actors: dict[Key, Compared]
    lines: list[bytes]
    delays: list[tuple[int, int]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Tell whether nobody lacks anything, and each result stands once at its home.

        To an actor elsewhere one may come twice where a broker has ended, as with QoS 1.
        """
        homes, elsewhere = self.subscriptions.values(), self.actors.values()
        return all(each.equal for each in homes) and all(each.whole for each in elsewhere)


def compared(
    specification: Specification,
    homes: Mapping[Key, str],
    expected: Sequence[Said],
    outcome: RehearsalOutcome,
    plain: RehearsalOutcome | None,
) -> RehearsalComparison:
    """`expected` are one engine's results, in order; `plain` is the run without faults."""
    nearest = {
        key
        for key, subscription in specification.subscriptions.items()
        if subscription.actor.nearest
    }
    wanted: dict[Key, list[str]] = {key: [] for key in specification.subscriptions}
    order: dict[str, int] = {}
    for result in expected:
        key = _whose(result)
        text = _text(result, bare=key in nearest)
        wanted[key].append(text)
        order.setdefault(text, len(order))
    reported, times, payloads = _found(outcome, nearest)
    before = _found(plain, nearest)[1] if plain is not None else None
    delays: list[tuple[int, int]] = []
    subscriptions = {}
    for key, texts in wanted.items():
        comparison = _compared(homes[key], texts, reported.get(key, []))
        if before is not None:
            comparison.later = _later(reported.get(key, []), times, before, delays)
        subscriptions[key] = comparison
    at_end = len(order)
    lines = sorted(payloads.items(), key=lambda item: (order.get(item[0], at_end), item[0]))
    actors = _actors(outcome, plain)
    return RehearsalComparison(subscriptions, actors, [line for _, line in lines], sorted(delays))


def _compared(broker: str, wanted: Sequence[str], found: Sequence[str]) -> Compared:
    once, all_wanted = Counter(dict.fromkeys(found, 1)), Counter(wanted)
    missing, surplus = list((all_wanted - once).elements()), list((once - all_wanted).elements())
    return Compared(
        broker=broker,
        expected=len(wanted),
        found_count=len(found),
        twice=len(found) - len(once),
        missing=[json.loads(text)["id"] for text in missing[:IDS_MAX]],
        surplus=[json.loads(text)["id"] for text in surplus[:IDS_MAX]],
        missing_count=len(missing),
        surplus_count=len(surplus),
    )


def _found(
    outcome: RehearsalOutcome, nearest: set[Key]
) -> tuple[dict[Key, list[str]], dict[str, int], dict[str, bytes]]:
    """By subscription its results; when each was there first; and each as it is written."""
    reported: dict[Key, list[str]] = {}
    times: dict[str, int] = {}
    payloads: dict[str, bytes] = {}
    for detection in outcome.detected:
        result = json.loads(detection.row.payload)
        key = _whose(result)
        text = _text(result, bare=key in nearest)
        reported.setdefault(key, []).append(text)
        times[text] = min(times.get(text, detection.at_ms), detection.at_ms)
        result.pop("detected_at", None)
        payloads.setdefault(text, msgspec.json.encode(result))
    return reported, times, payloads


def _actors(outcome: RehearsalOutcome, plain: RehearsalOutcome | None) -> dict[Key, Compared]:
    """Each actor that listens at another broker than where its results are detected."""
    by_actor: dict[Key, Compared] = {}
    for broker, actor in _listening(outcome):
        wanted = [
            _text(json.loads(detection.row.payload), bare=False)
            for detection in outcome.detected
            if detection.row.actor == actor and detection.broker != broker
        ]
        came, times = _came(outcome, broker, actor)
        if wanted or came:
            comparison = by_actor[actor, broker] = _compared(broker, wanted, came)
            if plain is not None:
                comparison.later = _later(came, times, _came(plain, broker, actor)[1], [])
    return by_actor


def _listening(outcome: RehearsalOutcome) -> Iterable[Key]:
    """(broker, actor) of all that may have got something."""
    actors = dict.fromkeys(detection.row.actor for detection in outcome.detected)
    return [
        (broker, actor)
        for broker, listen in outcome.listening.items()
        for actor in actors
        if actor in listen
    ]


def _came(outcome: RehearsalOutcome, broker: str, actor: str) -> tuple[list[str], dict[str, int]]:
    texts: list[str] = []
    times: dict[str, int] = {}
    for arrival in outcome.arrived[broker]:
        if arrival.topic == topics.actor(actor):
            text = _text(json.loads(arrival.payload), bare=False)
            texts.append(text)
            times.setdefault(text, arrival.at_ms)
    return texts, times


def _later(
    found: Sequence[str],
    times: Mapping[str, int],
    before: Mapping[str, int],
    delays: list[tuple[int, int]],
) -> Delays:
    by = []
    for text in dict.fromkeys(found):
        if text in before:
            later_ms = times[text] - before[text]
            delays.append((times[text], later_ms))
            if later_ms >= LATER_MS:
                by.append(later_ms)
    by.sort()
    return Delays(len(by), by[len(by) // 2], by[-1]) if by else Delays(0, 0, 0)


def _whose(said: Said) -> Key:
    return said["subscriber"], said["subscription"]


def _text(said: Said, *, bare: bool) -> str:
    """All that a result says but for when it was detected; `bare`: and for which actor."""
    left_out = {"detected_at", "actor"} if bare else {"detected_at"}
    kept = {name: value for name, value in said.items() if name not in left_out}
    return json.dumps(kept, sort_keys=True)
