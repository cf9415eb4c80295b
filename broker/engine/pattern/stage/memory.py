"""What spending operators of one partition have chosen, for when all is found anew.

Owns the choices that stand. Must not know how occurrences are found. Invariant: what was chosen by
the last report stays chosen, whatever is consumed afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.engine.event.event import Event, Order
from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, without
from broker.engine.pattern.stage.base import completion


class Memory:
    """Keep what a partition's spending operators chose, so that it stands when others are consumed.

    `past`: the order of the event that completed the last report; what is complete by then has been
    chosen or not, and is not chosen anew.
    """

    __slots__ = ("before", "chosen", "gone", "past")

    def __init__(self) -> None:
        # By the order of the completing event and not by a time: several may end at one instant,
        # and the ones before it in order have had their turn.
        self.past: Order | None = None
        # By identity, the consumed events that choices bind; kept, so that no other gets theirs.
        self.gone: dict[int, Event] = {}
        self.before: list[list[Occurrence]] = []  # of each operator, in the order they were made
        self.chosen: list[list[Occurrence]] = []

    def enter(self) -> tuple[list[Occurrence], list[Occurrence]]:
        """An operator's choices that stand, and the list to which it adds its choices."""
        # Operators enter in the order in which the tree is built, which is the same each time it is
        # built anew: their number is their name.
        number = len(self.chosen)
        before = self.before[number] if number < len(self.before) else []
        # A copy, as what stood before is still asked while new choices are added.
        self.chosen.append(list(before))
        return before, self.chosen[number]

    def after(self, reported: Sequence[Any], gone: set[int]) -> Memory:
        """The memory with which to look anew, without the consumed events.

        `reported` is what the last report binds, without what only fills lists: no operator chose
        that. Of what ends together an earlier start is reported first, whatever completes it.
        """
        made = Memory()
        past = completion(reported)
        # What ends together is reported in order of starts, so a report may complete before the
        # last one.
        made.past = past if self.past is None else max(past, self.past)
        made.before = [[one for one in some if made.is_past(one)] for some in self.chosen]
        # Only events that choices still bind are remembered: the others cannot be asked for again.
        bound = _bound(made.before)
        made.gone = {key: one for key, one in bound.items() if key in gone or key in self.gone}
        return made

    def forget(self, oldest: int) -> None:
        """Forget choices that ended before the time, but for the last of each operator."""
        for some in (*self.chosen, *self.before):
            # The last choice of each operator stays, however old: it says from where on its inputs
            # are unspent.
            if len(some) > 1 and end_of(some[0]) < oldest:
                some[:-1] = [one for one in some[:-1] if end_of(one) >= oldest]

    def state(self) -> list[Any]:
        """Return what stands, as orders, events and occurrences in lists."""
        # Identities are of this process alone; a snapshot holds the events themselves.
        gone = [event for key, event in _bound(self.chosen).items() if key in self.gone]
        return [[] if self.past is None else [self.past], gone, self.chosen]

    def restore(self, state: list[Any]) -> None:
        """Take that up again, once its operators have entered."""
        past, gone, chosen = state
        self.past = past[0] if past else None
        self.gone = {id(event): event for event in gone}
        for held, some in zip(self.chosen, chosen, strict=True):
            held[:] = some

    def is_past(self, occurrence: Occurrence) -> bool:
        """Tell whether its time to be chosen is over."""
        return self.past is not None and completion(flat(events_of(occurrence))) <= self.past

    def still(self, occurrences: list[Occurrence]) -> list[Occurrence]:
        """Those that bind nothing consumed."""
        return without(occurrences, self.gone)


def _bound(choices: Sequence[Sequence[Occurrence]]) -> dict[int, Event]:
    """The events that choices bind, by identity."""
    made = [event for some in choices for one in some for event in flat(events_of(one))]
    return {id(event): event for event in made}
