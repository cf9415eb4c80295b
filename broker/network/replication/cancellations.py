"""Subscriptions that a home has cancelled, kept by its neighbours as its positions are.

Owns what a home and its neighbours remember of cancellations, and what they say of that to each
other. Must not know links, sessions or what a subscription is. Invariant: behind the beginning of a
session nothing of others comes to a home through a neighbour before that has handed back the
cancellations which the home's own disk does not tell of.

A disk that went back behind a cancellation has the subscription still. A home says what it has
cancelled at the beginning of each session, and then each cancellation once it is durable; whoever
keeps more of that home than it says hands this back at once. A subscription goes by when it was
installed, too: one that was submitted since under the same name is another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct

# Of each home, and homes: the oldest go. A copy from before a thousand cancellations is rare, and
# what it revives is to be seen in `headwater ls`.
CANCELLATIONS_MAX = 1_000
HOMES_MAX = 1_000

Cancellation = tuple[str, str, int, int]
"""Subscriber, name, seq, and when it was installed, in ms."""


class Generation(Protocol):
    """A subscription, as far as it is needed to tell it from all others."""

    @property
    def subscriber(self) -> str:
        """Whom it is for."""

    @property
    def name(self) -> str:
        """Its name, which the subscriber may use again."""

    @property
    def seq(self) -> int:
        """Its number among texts of that name."""

    @property
    def since(self) -> int:
        """When it was installed, in ms."""


class SubscriptionsCancelled(Struct, array_like=True, frozen=True, tag="cancelled"):
    """These subscriptions of a home are cancelled; `whole`: they are all that the home knows of."""

    outlasts: ClassVar[bool] = True  # it is in the journal

    home: str
    subscriptions: tuple[Cancellation, ...]
    whole: bool = False


class CancellationLog:
    """The last cancellations of some homes, one of which is this broker; in the core's state."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.fresh: list[Cancellation] = []  # of this home, not yet said to neighbours
        self._by_home: dict[str, dict[Cancellation, None]] = {}

    def cancel(self, subscription: Generation) -> None:
        """Take in that this home has cancelled a subscription."""
        each = subscription
        row = (each.subscriber, each.name, each.seq, each.since)
        self.fresh.append(row)
        self.handle(SubscriptionsCancelled(self.me, (row,)))

    def handle(self, message: SubscriptionsCancelled) -> None:
        """Take in cancellations of a home."""
        rows = self._by_home.setdefault(message.home, {})
        rows |= dict.fromkeys(message.subscriptions)
        # A dict keeps the order in which keys came first, so the oldest are in front.
        for row in list(rows)[: max(0, len(rows) - CANCELLATIONS_MAX)]:
            del rows[row]
        if len(self._by_home) > HOMES_MAX:
            # This home's own are never let go for those of others.
            others = [home for home in self._by_home if home not in {self.me, message.home}]
            del self._by_home[others[0]]

    def forget(self, home: str) -> None:
        """Keep nothing of a home any more."""
        self._by_home.pop(home, None)

    def of(self, home: str) -> tuple[Cancellation, ...]:
        """Return what is kept of a home, the oldest first."""
        return tuple(self._by_home.get(home, ()))

    def unknown(self, message: SubscriptionsCancelled) -> tuple[Cancellation, ...]:
        """Return those of a message that are not kept."""
        kept = self._by_home.get(message.home, {})
        return tuple([row for row in message.subscriptions if row not in kept])

    def lacking(self, message: SubscriptionsCancelled) -> tuple[Cancellation, ...]:
        """Return what is kept of a home and is not in its message."""
        stated = dict.fromkeys(message.subscriptions)
        return tuple([row for row in self.of(message.home) if row not in stated])

    def state(self) -> list[Any]:
        """Return plain data."""
        return [[home, list(rows)] for home, rows in self._by_home.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self._by_home = {
            home: {(str(row[0]), str(row[1]), row[2], row[3]): None for row in rows}
            for home, rows in state
        }


class CancellationExchange:
    """Exchanges cancellations between a broker and its neighbours.

    `installed` are the subscriptions of this home, by subscriber and name. `say` sends a message to
    a neighbour once the journal has what it follows from, `keep` has the core take one in, and
    `cancel` ends a subscription of this home.
    """

    def __init__(
        self,
        log: CancellationLog,
        installed: Mapping[tuple[str, str], Generation],
        say: Callable[[str, SubscriptionsCancelled], None],
        keep: Callable[[SubscriptionsCancelled], None],
        cancel: Callable[[Generation], None],
    ) -> None:
        self._log = log
        self._installed = installed
        self._say = say
        self._keep = keep
        self._cancel = cancel
        self._keepers: dict[str, None] = {}

    def begin(self, peer: str, *, keeps: bool = True) -> None:
        """State all to a neighbour with whom a session stands since now; also if it is nothing.

        One that is no broker, or of an older version, does not keep anything.
        """
        # A neighbour may have begun again with another version.
        self._keepers.pop(peer, None)
        if keeps:
            self._keepers[peer] = None
            me = self._log.me
            self._say(peer, SubscriptionsCancelled(me, self._log.of(me), whole=True))

    def spread(self, peers: Iterable[str]) -> None:
        """State what was cancelled since the last time."""
        # Not whole: an answer to each would bring back all that was let go of here.
        if self._log.fresh:
            fresh = SubscriptionsCancelled(self._log.me, tuple(self._log.fresh))
            self._log.fresh.clear()
            for peer in peers:
                if peer in self._keepers:
                    self._say(peer, fresh)

    def hear(self, peer: str, message: SubscriptionsCancelled) -> None:
        """Take in a neighbour's message. Raises ValueError where it can know nothing of that."""
        home, log = message.home, self._log
        if home not in {peer, log.me}:
            raise ValueError(f"{peer} tells of cancellations of {home}")
        unknown, lacking = log.unknown(message), log.lacking(message)
        # The answer leaves before any event that the home asks for behind its statement.
        if home == peer and message.whole and lacking:
            self._say(peer, SubscriptionsCancelled(home, lacking))
        # What is kept already makes no record in the journal.
        if unknown:
            self._keep(SubscriptionsCancelled(home, unknown))
        for subscriber, name, seq, since in unknown if home == log.me else ():
            # A later subscription of this name has another time of installation.
            same = self._installed.get((subscriber, name))
            if same is not None and (same.seq, same.since) == (seq, since):
                self._cancel(same)
