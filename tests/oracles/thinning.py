"""What is left out of what was found: `one`, `collect`, `at most`, the end of a subscription.

Owns: the reference meaning of all that thins results without changing what is chosen.
Must not know: patterns and how occurrences are found.
Invariant: what is left keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from tests.oracles import spec as s
from tests.oracles.events import Event, Occurrence, in_order


def completed_by(one: Occurrence) -> Event | None:
    """The last in order of the events bound; None where only absences are."""
    return in_order(one.events)[-1] if one.events else None


def is_completed_anew(one: Occurrence, reported: Iterable[Occurrence]) -> bool:
    """Whether nothing that was reported was completed by the same event."""
    event = completed_by(one)
    return event is None or all(completed_by(other) != event for other in reported)


def only_first(found: Sequence[Occurrence]) -> list[Occurrence]:
    """`one`: of those completed by the same event the first in order."""
    kept: list[Occurrence] = []
    for one in found:
        if is_completed_anew(one, kept):
            kept.append(one)
    return kept


def collected(found: Sequence[Occurrence]) -> list[Occurrence]:
    """`collect`: those completed by the same event as one, each place a list; as certain as the
    most certain of them.
    """
    together: dict[object, list[Occurrence]] = {}
    for number, one in enumerate(found):
        event = completed_by(one)
        together.setdefault(number if event is None else event, []).append(one)
    return sorted((_as_one(some) for some in together.values()), key=lambda one: one.order)


def _as_one(some: Sequence[Occurrence]) -> Occurrence:
    names = some[0].names
    places = tuple(in_order({e for one in some for e in one.bound(name)}) for name in names)
    absences = {
        name for one in some for name in names if any(e.is_absence for e in one.bound(name))
    }
    listed = frozenset(names) - absences
    return Occurrence(names, places, listed, max(one.certainty for one in some))


def not_too_many(found: Sequence[Occurrence], at_most: tuple[int, int] | None) -> list[Occurrence]:
    """`at most N per T`: one is left out if N were reported less than T before its end."""
    if at_most is None:
        return list(found)
    most, ms = at_most
    kept: list[Occurrence] = []
    for one in found:
        if sum(one.end - other.end < ms for other in kept) < most:
            kept.append(one)
    return kept


def ends_before(subscription: s.Subscription, beginning: int | None) -> int | None:
    """The time before which a result must end to count; None if the subscription lasts."""
    if subscription.for_ms is not None:
        return None if beginning is None else beginning + subscription.for_ms
    if subscription.until is not None:
        return round(datetime.fromisoformat(subscription.until).timestamp() * 1000)
    return None
