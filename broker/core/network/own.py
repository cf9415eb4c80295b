"""What happened at this origin that other brokers may have to hear of.

Owns positions, the events that are kept for hosts, and what each host has. Must not know how it is
brought to them. Invariant: an event is kept until every host that needs its type has stored all up
to its position, or the limit lets the oldest go; then `floor` tells how far that went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from broker.core.durable_events import packed, unpacked
from broker.core.event import Event
from broker.core.network.told import Attributes


class Interest(Struct):
    """What a host needs: types as it declares them; it has stored all up to `position`."""

    types: dict[str, Attributes]
    position: int


class OwnLog:
    """See the module. `position` is the last one that was given."""

    def __init__(self, retained_events_max: int) -> None:
        self.life = 0
        self.position = 0
        self.hosts: dict[str, Interest] = {}
        self.lapsed = 0  # how many events the limit took
        self.floor = 0  # events up to this position may be gone
        self._max = retained_events_max
        self._kept: deque[tuple[int, Event]] = deque()
        self._needed: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, events: Sequence[Event]) -> int:
        """Give positions to events that were admitted; the first of them."""
        first = self.position + 1
        self.position += len(events)
        if self._needed:
            kept, needed = self._kept, self._needed
            for position, event in enumerate(events, first):
                if event.event_type in needed:
                    kept.append((position, event))
            while len(kept) > self._max:
                self.floor = kept.popleft()[0]
                self.lapsed += 1
        return first

    def promise(self) -> int:
        """The position of a promise of watermarks."""
        self.position += 1
        return self.position

    def since(self, position: int) -> list[tuple[int, Event]]:
        """What is kept behind a position."""
        return [one for one in self._kept if one[0] > position]

    # --- hosts -----------------------------------------------------------------------------

    def interest(self, host: str, types: dict[str, Attributes], position: int | None) -> None:
        """What a host needs from now on; with no types nothing is kept for it."""
        if not types:
            self.hosts.pop(host, None)
        else:
            at = self.position if position is None else min(position, self.position)
            self.hosts[host] = Interest(types, at)
        self._changed()

    def stored(self, host: str, position: int) -> None:
        """A host has stored all up to there."""
        known = self.hosts.get(host)
        if known is not None and position > known.position:
            known.position = min(position, self.position)
            self._trim()

    def _changed(self) -> None:
        self._needed = frozenset(name for one in self.hosts.values() for name in one.types)
        self._trim()

    def _trim(self) -> None:
        """Let go of what all have; of what is behind the hindmost nothing is looked at."""
        least = min([one.position for one in self.hosts.values()], default=self.position)
        kept = self._kept
        while kept and kept[0][0] <= least:
            kept.popleft()

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "life": self.life,
            "position": self.position,
            "hosts": [[name, one.types, one.position] for name, one in self.hosts.items()],
            "lapsed": self.lapsed,
            "floor": self.floor,
            "positions": [position for position, _ in self._kept],
            "events": packed([event for _, event in self._kept]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.life, self.position = state["life"], state["position"]
        self.lapsed, self.floor = state["lapsed"], state["floor"]
        self.hosts = {name: Interest(types, at) for name, types, at in state["hosts"]}
        self._kept = deque(zip(state["positions"], unpacked(state["events"]), strict=True))
        self._changed()


def types_of(events: Iterable[Event]) -> dict[tuple[str, str], None]:
    """(source, type) of events, each once."""
    return dict.fromkeys([(one.source or "", one.event_type) for one in events])
