"""The account of events at one broker: nothing gets lost between the counters.

Owns the counters and their invariant. Must not know who counts. Each event is counted where its
fate is decided, and by nobody else:

- *received*: by intake, once for every event that arrived in a payload (or was pushed), whatever
  became of it. A payload that cannot be read counts as one.
- *dropped[reason]*: by intake, once for every event that it refused (a reason of `reasons`), that
  was late, a repeat or of an undeclared type; by a buffer that had to let an event go.
- *filtered*: by the filterer, once for every event that no content wanted.
- *out*: by the filterer, once for every event that it handed to at least one content, however many
  agents are behind it. What agents then keep is theirs: `Matcher.held()` tells, not this account,
  since one event may be kept by many.
- *held*: not counted but asked for: how many events wait between intake and filterer at this
  moment (in a journal's queue, in a reorder buffer). Each such buffer is known here by a function.

Invariant, between any two messages: received = out + filtered + held + Σ dropped.

Events that definitions detect have an account of their own (*detected*): received as they leave
their agent, filtered or out at the filterer. They are not among the events that came in.
"""

from __future__ import annotations

from collections.abc import Callable


class ImbalanceError(Exception):
    """Events were lost, or counted twice: a defect of the program."""


class Account:
    """The counters of one kind of events."""

    __slots__ = ("_holders", "dropped", "filtered", "out", "received")

    def __init__(self) -> None:
        self.received = 0
        self.out = 0
        self.filtered = 0
        self.dropped: dict[str, int] = {}
        self._holders: dict[str, Callable[[], int]] = {}

    def drop(self, reason: str, count: int = 1) -> None:
        """Count events that were let go for a reason."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def holds(self, name: str, held: Callable[[], int]) -> None:
        """Name a buffer between intake and filterer, and how to ask what it holds."""
        self._holders[name] = held

    @property
    def held(self) -> int:
        """Events that wait between intake and filterer now."""
        return sum(held() for held in self._holders.values())

    @property
    def dropped_count(self) -> int:
        """Events dropped, for whatever reason."""
        return sum(self.dropped.values())

    def imbalance(self) -> int:
        """Received less all that became of them: 0."""
        return self.received - self.out - self.filtered - self.held - self.dropped_count


class Ledger:
    """Both accounts, and what is told besides; `notes` are counters that are no one's fate."""

    def __init__(self) -> None:
        self.events = Account()
        self.detected = Account()
        self.results = 0
        self.notes: dict[str, int] = {}

    def note(self, name: str, count: int = 1) -> None:
        """Count something that happened to events without being their end (`stamped`, …)."""
        if count:
            self.notes[name] = self.notes.get(name, 0) + count

    def check(self) -> None:
        """Raise ImbalanceError unless the invariant holds; to be asked between messages."""
        for name, account in (("events", self.events), ("detected", self.detected)):
            imbalance = account.imbalance()
            if imbalance:
                raise ImbalanceError(f"{name}: {imbalance} unaccounted for in {self.to_dict()}")

    def to_dict(self) -> dict[str, object]:
        """The counters as plain data, reasons in order of their names."""
        events, detected = self.events, self.detected
        return {
            "received": events.received,
            "out": events.out,
            "filtered": events.filtered,
            "held": events.held,
            "dropped": dict(sorted(events.dropped.items())),
            "detected": detected.received,
            "detected_filtered": detected.filtered,
            "detected_dropped": dict(sorted(detected.dropped.items())),
            "results": self.results,
            "notes": dict(sorted(self.notes.items())),
        }
