"""The event that completes an occurrence, and from when on it completes no other.

Owns until when what a completing event completes may end. Must not know how occurrences are found,
nor how long operators go on (see timing.py). Invariant: never earlier than is possible.

Only an `absent` goes on after all events, as it binds none: `A and absent C for 2 s` is completed
by A, and may end long after it.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.occurrence import Occurrence, bound_events, end_of
from broker.engine.pattern.layout.operands import Operand
from broker.engine.pattern.times.timing import KnownTimes, Timing
from broker.engine.pattern.uncertainty.verdicts import Doubt
from language.tree import Case


def completing(one: Occurrence) -> Any:
    """Return the last in order of the events bound; None if none is."""
    bound = bound_events(one)
    ends = [event.end for event in bound]
    last = max(ends, default=0)
    if ends.count(last) == 1:  # nearly always the end says it
        return bound[ends.index(last)]
    return max(bound, key=lambda event: event.order, default=None)


def spans_of_reported(case: Case, root: Operand) -> int:
    """Return how many times as long as an occurrence what is reported of the case may be.

    What `collect` joins has one event in common, and may end or begin long before or after it.
    """
    lingers = case.detect.report == "collect" and Completion(root).lingers
    return 2 if lingers else 1


def _unknown(_: str) -> int | None:
    """Return no limit: what completes has ended, however long it has lasted."""
    return None


class Completion:
    """The times for which a completing event is waited; `doubt`: where times are weighed."""

    __slots__ = ("_doubt", "_found", "_root", "lingers")

    def __init__(self, root: Operand, doubt: Doubt | None = None) -> None:
        self._root = root
        self._doubt = doubt
        # Whether an occurrence may go on after its last event at all.
        self.lingers = Timing(KnownTimes(_unknown)).of(root).lingers
        self._found: tuple[int, int | None, int | None] | None = None

    def over_at(self, last: Any) -> int:
        """Return the time by which everything has ended that an event completes.

        An occurrence that binds no event is completed by itself, and nothing else is.
        """
        # Mostly: without an `absent` the completing event ends last by its place in the order.
        if not self.lingers or last.__class__ is tuple:
            return int(end_of(last))
        after_ms, within_ms = self._limits()
        ends = [WATERMARK_END]
        if after_ms is not None:
            ends.append(last.end + after_ms)
        if within_ms is not None:
            # The whole began before its last event did, so that it is over no later than that.
            ends.append(last.start + within_ms)
        return min(ends)

    def after_ms(self) -> int | None:
        """Return how long an occurrence goes on after its last event ends; None: for ever."""
        return self._limits()[0] if self.lingers else 0

    def _limits(self) -> tuple[int | None, int | None]:
        """That, and how long it may be as a whole."""
        most_ms = -1 if self._doubt is None else self._doubt.most_ms
        if self._found is None or self._found[0] != most_ms:  # doubt may have grown
            known, within_ms = KnownTimes.of(_unknown, self._doubt), self._root.within_ms
            whole_ms = None if within_ms is None else known.longer(within_ms)
            self._found = (most_ms, Timing(known).of(self._root).tail_ms, whole_ms)
        return self._found[1], self._found[2]
