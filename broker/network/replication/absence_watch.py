"""Who is away and waited for: noticed by a host, and told to people.

Owns the moments at which an origin without a way counts as away, and what a person hears of it.
Must not know frames, nor what tasks compute. Invariant: an origin is told to be away once for each
absence, and to be back once; between the two one line of the log says who waits for it.

That an origin has no way may be a change of the tree, over in a moment: all ways begin again then.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from broker.engine.clock_names import parts_of
from broker.network.replication.absence import (
    AbsentOrigins,
    Key,
    OriginAway,
    OriginBack,
    WaitingSubscription,
)

AWAY_MS = 2_000  # a new tree has all its sessions within a second, where brokers are not too busy
NAMES_MAX = 10  # of subscriptions in one line of the log


class AbsenceNews(NamedTuple):
    """A line for the log."""

    level: Literal["info", "warning"]
    event: str
    fields: dict[str, str | int]


class Needed(Protocol):
    """An origin that tasks here need."""

    types: tuple[str, ...]


class Questions(Protocol):
    """The questions to origins that are open, and which subscription waits for whose answer."""

    @property
    def asked(self) -> Container[str]:
        """The origins that have not answered."""

    @property
    def waits(self) -> Mapping[Key, MutableMapping[str, int]]:
        """By subscription: the origins that it waits for before it becomes active."""


class HostState(Protocol):
    """The core of a host, as far as it is needed here."""

    absent: AbsentOrigins

    @property
    def upstream(self) -> Mapping[str, Needed]:
        """The origins that tasks here need."""

    @property
    def subscriptions(self) -> Sequence[WaitingSubscription]:
        """All that are at home here."""

    def tasks(self) -> Container[str]:
        """Return the tasks that run here."""

    def wanted_by(self, key: Key) -> set[str]:
        """Return the event types that a subscription needs."""


class AbsenceWatch:
    """Notices origins that are away; `absent` is what the core has been told of them."""

    def __init__(self, absent: AbsentOrigins, needed: Iterable[str], now: int) -> None:
        self.absent = absent
        self.news: list[AbsenceNews] = []
        # A process that begins has no ways yet: all that it needs counts as lost since now.
        self._lost = dict.fromkeys(needed, now)
        # When somebody may count as away, or have broken a promise.
        self.wake_at = now + AWAY_MS if self._lost else None
        self._promised: dict[str, int] = {}  # how soon it said that it would be back, in ms
        # Who has had a line in the log: one with a promise gets another when that is over.
        self._announced: dict[str, None] = {}  # with a promise, in the log
        self._overdue: dict[str, None] = {}  # without one, or after it

    def lose(self, origin: str, now: int, back_within_ms: int = 0) -> None:
        """Take in that there is no way to an origin, and what it promised; 0: nothing."""
        self._lost.setdefault(origin, now)
        self.wake_at = min(self.wake_at or now + AWAY_MS, now + AWAY_MS)
        if back_within_ms:
            self._promised[origin] = back_within_ms

    def find(self, origin: str) -> list[OriginBack]:
        """Take in that an origin has answered; return what the core is to be told."""
        self._lost.pop(origin, None)
        self._promised.pop(origin, None)
        self._announced.pop(origin, None)
        self._overdue.pop(origin, None)
        if origin not in self.absent.by_origin:
            return []  # it was gone for a moment, which nobody was told
        self.news.append(AbsenceNews("info", "waited_for_no_more", {"broker": origin}))
        return [OriginBack(origin)]

    def forget(self, origin: str) -> None:
        """Take in that a person has said that an origin will not come back."""
        for memory in (self._lost, self._promised, self._announced, self._overdue):
            memory.pop(origin, None)

    def handle(
        self, now: int, host: HostState, reachable: Container[str], needs: Questions
    ) -> list[OriginAway | OriginBack]:
        """Return what the core is to be told of who is away by `now`, or back.

        Subscriptions that are not active yet wait no longer than they say; see `take_lines`.
        """
        messages = self._due(now, host.upstream, reachable, needs.asked)
        # Nearly always nobody is away, and then nothing costs anything.
        if self.absent.by_origin:
            self._look(now, host)
            by_key = {waiter.key: waiter for waiter in host.subscriptions}
            _stop_waiting(needs.waits, by_key, self.absent, now)
        return messages

    def take_lines(self) -> list[AbsenceNews]:
        """Return the lines for the log since the last time."""
        lines, self.news = self.news, []
        return lines

    def _due(
        self,
        now: int,
        needed: Mapping[str, Needed],
        reachable: Container[str],
        asked: Container[str],
    ) -> list[OriginAway | OriginBack]:
        """Return what the core is to be told by `now` of origins that are away or needed no more.

        `asked` are those that have not answered a question yet: they count as back when they have.
        """
        news: list[OriginAway | OriginBack] = []
        # When to look again: at the end of each promise, and when somebody has been gone for long.
        times = [absence.back_by for absence in self.absent.by_origin.values()]
        for origin in [name for name in self.absent.by_origin if name not in needed]:
            news += self.find(origin)
        for origin, since in list(self._lost.items()):
            if origin in reachable:
                # One that nobody asks, as nothing of it is needed, is back without an answer.
                news += [] if origin in asked else self.find(origin)
            elif now - since < AWAY_MS:
                times.append(since + AWAY_MS)
            elif origin not in needed:
                self.forget(origin)  # nobody here needs it: it may stay away
            elif origin not in self.absent.by_origin:
                # A promise counts from when it left, not from when that was noticed.
                within_ms = self._promised.get(origin, 0)
                news.append(OriginAway(origin, since, since + within_ms if within_ms else 0))
                times.append(since + within_ms)
        self.wake_at = min((time for time in times if time > now), default=None)
        return news

    def _look(self, now: int, host: HostState) -> None:
        """Have a line for each origin that is away: one that keeps its promise raises no alarm."""
        for origin, absence in self.absent.by_origin.items():
            promised = absence.back_by > now
            if origin in self._overdue or (promised and origin in self._announced):
                continue
            names = [name for _, name in waiting_for(host, now)[origin]]
            fields: dict[str, str | int] = {"broker": origin, "count": len(names)}
            fields["subscriptions"] = ", ".join(names[:NAMES_MAX])
            if promised:
                self._announced[origin] = None
                fields["back_in_s"] = (absence.back_by - now) // 1000
            else:
                self._overdue[origin] = None
            line = AbsenceNews("info" if promised else "warning", "waited_for", fields)
            self.news.append(line)


def waiting_for(host: HostState, now: int) -> dict[str, list[Key]]:
    """Return, by origin that is away, the subscriptions at home at a host that wait for it."""
    tasks, subscriptions = host.tasks(), host.subscriptions
    waiting: dict[str, list[Key]] = {}
    for origin in host.absent.by_origin:
        types = host.upstream[origin].types if origin in host.upstream else ()
        keys = waiting[origin] = []
        for subscription in subscriptions if types else ():
            wait_ms = wait_of(subscription)
            # Whom it has passed over it waits for no more.
            gone = wait_ms is not None and origin in host.absent.passed_over(wait_ms, now)
            if gone or subscription.task not in tasks:
                continue  # it goes on without that one, or its tasks run elsewhere
            if not host.wanted_by(subscription.key).isdisjoint(types):
                keys.append(subscription.key)
    return waiting


def away(host: HostState, now: int) -> dict[str, dict[str, Any]]:
    """Return the origins that are away, with their promises and who waits for them, for people."""
    waiting = waiting_for(host, now)
    return {
        origin: {
            "since": absence.since,
            "back_by": absence.back_by or None,
            "overdue": absence.back_by <= now,
            "subscriptions": [name for _, name in waiting[origin]],
        }
        for origin, absence in host.absent.by_origin.items()
    }


def wait_of(subscription: WaitingSubscription) -> int | None:
    """Return how long a subscription waits for those away; None: without end."""
    return parts_of(subscription.clocks[0])[1] if subscription.clocks else None


def _stop_waiting(
    waits: Mapping[Key, MutableMapping[str, int]],
    subscriptions: Mapping[Key, WaitingSubscription],
    absent: AbsentOrigins,
    now: int,
) -> None:
    for key, origins in waits.items():
        wait_ms = wait_of(subscriptions[key]) if key in subscriptions else None
        # It asks again when they are back; until then nothing of theirs is late for it.
        for origin in [] if wait_ms is None else absent.passed_over(wait_ms, now):
            origins.pop(origin, None)
