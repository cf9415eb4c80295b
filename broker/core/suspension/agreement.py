"""The standing of subscriptions: which are suspended, and how often each has begun anew.

Owns the rows in which a host and a home tell each other of it, and what either makes of them. Must
not know frames or cells. Invariant: a home counts its new beginnings, so that a row from before one
changes nothing after it; once a host has followed, both have the same rows.

A home learns of what its host has suspended, writes it down, and says it to whatever host comes
next: so the work that was too much is not done again there. A host learns of new beginnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from broker.core import returned
from broker.core.catalogue import TOO_MUCH_WORK, Catalogue, Installed

if TYPE_CHECKING:
    from broker.core.effects import Publication
    from broker.core.notes import Notes
    from broker.engine.ledger import Ledger
    from broker.engine.runtime.matcher import Matcher

Key: TypeAlias = tuple[str, str]


class Suspension(Struct, array_like=True, frozen=True):
    """The standing of one subscription: what a step of it `exceeded`, "" where it runs."""

    subscriber: str
    name: str
    exceeded: str
    resumed: int

    @property
    def key(self) -> Key:
        """Return the subscription's key."""
        return self.subscriber, self.name


Rows: TypeAlias = tuple[Suspension, ...]


def standing_of(catalogue: Catalogue, keys: Iterable[Key], heard: Rows = ()) -> Rows:
    """Return the rows of those of `keys` that are suspended or have been, in order.

    Of subscriptions that are not in the catalogue, what was `heard` of them.
    """
    subscriptions = catalogue.subscriptions
    rows = [row for row in heard if row.key not in subscriptions]
    for key in keys:
        sub = subscriptions.get(key)
        if sub is not None and (sub.suspended or sub.resumed):
            rows.append(Suspension(sub.subscriber, sub.name, sub.suspended, sub.resumed))
    return tuple(sorted(rows, key=attrgetter("key")))


def unheard(catalogue: Catalogue, keys: Sequence[Key], rows: Rows) -> Rows:
    """Return those of a host's `rows` that tell the home of these `keys` something new."""
    subscriptions = catalogue.subscriptions
    own = {key: subscriptions[key] for key in keys if key in subscriptions}
    return tuple(
        [
            row
            for row in rows
            if row.exceeded
            and (sub := own.get(row.key)) is not None
            and not sub.suspended
            and sub.resumed == row.resumed
        ]
    )


def suspend(sub: Installed, exceeded: str, ledger: Ledger, notes: Notes, now: int) -> Publication:
    """Mark a subscription as suspended; what its subscriber is told."""
    sub.suspended = exceeded
    ledger.note(TOO_MUCH_WORK)
    words = {"subscriber": sub.subscriber, "name": sub.name, "exceeded": exceeded}
    notes.tell("warning", TOO_MUCH_WORK, **words)
    return returned.suspended(sub, now)


def mark(
    rows: Rows, catalogue: Catalogue, ledger: Ledger, notes: Notes, now: int
) -> list[Publication]:
    """Mark subscriptions as suspended that a host tells of; what their subscribers are told."""
    return [
        suspend(catalogue.subscriptions[row.key], row.exceeded, ledger, notes, now) for row in rows
    ]


def follow(rows: Rows, catalogue: Catalogue, matcher: Matcher, now: int) -> None:
    """Have tasks that run here begin anew, or be suspended, as their home's `rows` say.

    What is suspended here alone stays so: the home has yet to hear of it.
    """
    for row in rows:
        sub = catalogue.subscriptions.get(row.key)
        if sub is None:
            continue
        if row.resumed != sub.resumed:
            matcher.resume((*sub.definitions, sub.task), now)
            sub.resumed, sub.suspended = row.resumed, ""
        if row.exceeded:
            if sub.task not in matcher.suspensions.why:
                matcher.suspensions.suspend(sub.task, row.exceeded)
            sub.suspended = row.exceeded
