"""The standing of subscriptions, as a home and the hosts of its cells say it to each other.

Owns the rows, and which of them are news. Must not know what either end makes of them
(`broker.core.suspension`). Invariant: a home counts the new beginnings of a subscription, so that a
row from before one changes nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol, TypeAlias

from msgspec import Struct

Key: TypeAlias = tuple[str, str]


class SubscriptionStanding(Protocol):
    """An installed subscription: what a step of it exceeded, and how often it began again."""

    subscriber: str
    name: str
    suspended: str
    resumed: int


class StandingCatalogue(Protocol):
    """The subscriptions that are installed, by key."""

    @property
    def subscriptions(self) -> Mapping[Key, SubscriptionStanding]:
        """Return them."""


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


def standing_of(catalogue: StandingCatalogue, keys: Iterable[Key], heard: Rows = ()) -> Rows:
    """Return the rows of those of `keys` that are suspended or have been, in order.

    Of subscriptions that are not in the catalogue, what was `heard` of them.
    """
    subscriptions = catalogue.subscriptions
    # Home and host may be apart by a cancellation: what the other end says of it is not news.
    rows = [row for row in heard if row.key not in subscriptions]
    for key in keys:
        sub = subscriptions.get(key)
        if sub is not None and (sub.suspended or sub.resumed):
            rows.append(Suspension(sub.subscriber, sub.name, sub.suspended, sub.resumed))
    # Sorted, as either end compares the rows of the other with its own as a whole.
    return tuple(sorted(rows, key=attrgetter("key")))


def unheard(catalogue: StandingCatalogue, keys: Sequence[Key], rows: Rows) -> Rows:
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
