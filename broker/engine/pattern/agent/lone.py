"""A pattern of one atom: each of its events is an occurrence, decided as it comes.

Owns what becomes of such events. Must not know watermarks. Invariant: nothing is held, and what is
put out for an event depends on no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.agent import LeafEvents
from broker.engine.event.event import Event
from broker.engine.event.occurrence import sorted_events
from broker.engine.pattern.uncertainty.matching import Select
from broker.engine.runtime.subscribed import SubscriptionOutcome


class LoneAtom:
    """The one atom of a pattern, with what is made of its events."""

    def __init__(
        self, select: Select | None, key: Callable[[Event], Any] | None, outcome: Any
    ) -> None:
        """`select`: the events that pass, None: all; `key`: the group of an event."""
        self._select = select
        self._key = key
        self._outcome = outcome

    def feed(self, batch: Sequence[LeafEvents]) -> list[Any]:
        """Put out what a batch gives, in order."""
        if len(batch) == 1:
            return self.made(sorted_events(batch[0][1]))
        # A definition of several cases brings the atom more than once.
        return self.made(sorted_events([event for _, events in batch for event in events]))

    def made(self, events: Sequence[Event]) -> list[Any]:
        """Put out what these events give, in the order given."""
        key_of = self._key
        if self._select is not None:
            events = self._select(events)
        keyed = [(event, () if key_of is None else key_of(event)) for event in events]
        made: list[Any] = self._outcome.make_all([each for each in keyed if each[1] is not None])
        return made

    def maker(self) -> Callable[[Sequence[Event]], list[Any]]:
        """Return `made`, or what does the same faster."""
        plain = self._plain_outcome()
        return self.made if plain is None else plain.make_each

    def maker_of_one(self) -> Callable[..., Any] | None:
        """Return what makes the result of a primitive event; None where it may give none."""
        plain = self._plain_outcome()
        return None if plain is None else plain.maker_of_one()

    def _plain_outcome(self) -> SubscriptionOutcome | None:
        """The outcome where each event is a result, as it is."""
        plain = self._select is None and self._key is None
        return self._outcome if plain and isinstance(self._outcome, SubscriptionOutcome) else None
