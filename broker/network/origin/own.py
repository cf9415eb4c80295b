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

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.engine.ingest.network_clocks import NetworkClocks
from broker.engine.limits import Limits
from broker.network.actors.copies import Copies
from broker.network.effects import Note
from broker.network.frames.told import Attributes, Incarnated
from broker.network.placement.cell_view import is_cell
from broker.network.replication.descent import Descent
from broker.network.replication.incarnation import Incarnation, Settlement

RUN_BITS = 16  # drawn, where two processes began in the same millisecond
UNHEARD_NAMED_MAX = 20  # brokers in one line of the log


class Interest(Struct):
    """Record what a host needs: types as it declares them; it has stored all up to `position`."""

    types: dict[str, Attributes]  # that it needs
    position: int  # all up to it is on its disk


class OwnLog:
    """Keep what happened at this origin that other brokers may have to hear of.

    `position` is the last one that was given.
    """

    def __init__(self, retained_events_max: int) -> None:
        self.descent = Descent()  # which lives share which positions
        self.is_asking = False  # in which life to go on: nothing is promised meanwhile
        self.position = 0  # of the last event or promise
        self.hosts: dict[str, Interest] = {}  # by name, cells included
        self.lapsed = 0  # how many events the limit took
        self.floor = 0  # events up to this position may be gone
        self.trimmed = 0  # the last that all hosts had stored
        self._max = retained_events_max
        self._kept: deque[tuple[int, Event]] = deque()  # by position; the oldest go first
        self._needed: frozenset[str] = frozenset()  # types, of all hosts

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def life(self) -> int:
        """The present life; 0: it has none yet."""
        return self.descent.life

    def incarnate(self, what: Incarnated, copies: Copies, clock: NetworkClocks) -> None:
        """Go on in a life; what others were promised in the lives before holds in this one."""
        self.is_asking = not what.life
        if self.is_asking:
            return
        self.descent.begin(what.life, what.position)
        if what.rewound and copies.life:
            copies.life = what.life  # numbers of copies went back as positions did
        for name, reached in what.watermarks.items():
            if reached > WATERMARK_NONE:
                clock.give(name, reached)

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
        """Return what is kept behind a position."""
        return [one for one in self._kept if one[0] > position]

    # --- hosts -----------------------------------------------------------------------------

    def interest(self, host: str, types: dict[str, Attributes], position: int | None) -> None:
        """Note what a host needs from now on; with no types nothing is kept for it."""
        if not types:
            self.hosts.pop(host, None)
        else:
            at = self.position if position is None else min(position, self.position)
            self.hosts[host] = Interest(types, at)
        self._changed()

    def place(self, host: str, life: int, position: int | None) -> int | None:
        """Behind which position of this life a host is to be offered all; None: it begins."""
        interest = self.hosts.get(host)
        if position is None:  # it may have wanted what came before it could ask
            return None if interest is None else interest.position
        shared = self.descent.shared(life, position)
        if interest is None:
            return shared
        # A host's own disk may have gone back, behind what it had said to be stored.
        return (
            interest.position
            if shared is None
            else max(shared, min(self.trimmed, interest.position))
        )

    def fold_place(self, host: str, life: int, position: int | None) -> int | None:
        """Return the same for what a host has folded here, which may be asked for again.

        In the same life that is wherever it says, also before what all hosts have stored.
        """
        return position if life == self.life else self.place(host, life, position)

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
            self.trimmed = kept.popleft()[0]

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "life": self.life,
            "position": self.position,
            "hosts": [[name, one.types, one.position] for name, one in self.hosts.items()],
            "asking": self.is_asking,
            "lives": self.descent.state(),
            "lapsed": self.lapsed,
            "trimmed": self.trimmed,
            "floor": self.floor,
            "positions": [position for position, _ in self._kept],
            "events": packed([event for _, event in self._kept]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.descent.restore(state["life"], state.get("lives", []))
        self.is_asking = state.get("asking", False)
        self.position, self.trimmed = state["position"], state.get("trimmed", 0)
        self.lapsed, self.floor = state["lapsed"], state["floor"]
        self.hosts = {name: Interest(types, at) for name, types, at in state["hosts"]}
        self._kept = deque(zip(state["positions"], unpacked(state["events"]), strict=True))
        self._changed()


def types_of(events: Iterable[Event]) -> dict[tuple[str, str], None]:
    """(source, type) of events, each once."""
    return dict.fromkeys([(one.source or "", one.event_type) for one in events])


def run_of(epoch: int, identity: int) -> int:
    """Return the number by which brokers tell processes of one name; a later one's is greater."""
    return epoch << RUN_BITS | identity & (1 << RUN_BITS) - 1 if identity else 0


def incarnation_of(identity: int, own: OwnLog, limits: Limits) -> Incarnation:
    """Make the beginning of a process on this disk."""
    hosts = [name for name in own.hosts if not is_cell(name)]
    return Incarnation(identity, own.descent, own.position, hosts, limits.recall_ms_max)


def incarnated(settlement: Settlement) -> Incarnated:
    """Return the message by which the core goes on as was settled."""
    rewound = settlement.gap is not None
    watermarks = settlement.watermarks if rewound else {}
    return Incarnated(settlement.life, settlement.shared, watermarks, rewound)


def noted(settlement: Settlement, broker: str, counts: dict[str, int]) -> list[Note]:
    """Count how a process goes on; a disk that went back is an error in the log."""
    gap = settlement.gap
    counts["rewound"] += gap is not None
    counts["lives_begun"] += settlement.is_new
    if gap is None:
        if not settlement.is_new or not settlement.unheard:
            return []
        unheard = ", ".join(settlement.unheard[:UNHEARD_NAMED_MAX])
        return [Note("info", "life_begun", {"broker": broker, "unheard": unheard})]
    words: dict[str, str | int] = {
        "broker": broker,
        "positions_from": gap.first,
        "positions_to": gap.last,
        "seen_by": gap.seen_by,
    }
    return [Note("error", "rewound", words)]
