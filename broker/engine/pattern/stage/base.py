"""What a stage is: one operator of one partition.

Owns the promise between stages and the helpers that all share. Must not know any operator.
Invariant: what a stage passes on depends on the events and on the order of time alone, never on
how they were batched.

With W the watermark of the last `advance`: every occurrence that a stage passes on later ends after
min(W, hold()) and begins at or after the floor of its view(). What it passes on in one `advance`
need not be in order, so whoever needs order takes only what ends at or before min(W, hold()) (see
Inbox).

For what is decided, a stage goes by its view(), which knows of each type how long its events last.
For what is dropped it goes by begins(), which is never later, and may be earlier than need be.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Event, Order
from broker.engine.event.occurrence import Occurrence, end_of, sort_in_order, start_of, without
from broker.engine.pattern.stage.asked import Ahead, View, WaitingView
from broker.engine.pattern.times.durations import Foresight
from broker.engine.pattern.times.timing import Span
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, Maybe
from broker.engine.pattern.uncertainty.verdicts import certainty_of
from broker.engine.runtime.budget import Budget

if TYPE_CHECKING:
    from broker.engine.pattern.stage.memory import Memory


class Stage(Protocol):
    """One operator of one partition; see the module for what it promises."""

    # Most operators pass on out of order and their Inbox sorts, and many hold something open; an
    # atom does neither, so that plain chains pay for no sorting, and atoms are not asked in vain.
    is_atom: bool

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return what is decided by now and was not passed on before."""

    def hold(self) -> int:
        """Return the time after which later occurrences end, as far as what is open decides."""

    def view(self) -> Ahead:
        """View what may yet be passed on, as it stands now (see asked.py)."""

    def begins(self) -> int:
        """Nothing that is passed on later begins before this time."""

    def eldest(self) -> int:
        """When the eldest begins of what it and those beneath hold to make something of."""

    def origin(self) -> int:
        """Nothing that it or those beneath hold, or are yet to pass on, begins before this time."""

    def due(self) -> int | None:
        """The next watermark that may decide something without more events; None if none."""

    def held(self) -> int:
        """Count the occurrences that it and those beneath it hold."""

    def idle(self) -> bool:
        """Tell whether it knows nothing that a new one would not know."""

    def shed(self, count: int) -> int:
        """Drop up to so many of the oldest; how many were dropped."""

    def forget(self, gone: set[int]) -> None:
        """Take consumed events (by identity) out of every candidate."""

    def state(self) -> Any:
        """Return what it holds, as events, occurrences and plain values in lists."""

    def restore(self, state: Any) -> None:
        """Take that up again."""


Make = Callable[["Site"], Stage]

SWEEP_MS = 60_000  # silent partitions are looked at for what has expired so often, or rarer
ASK_SHARE = 8  # what is looked through is looked through once in so many parts of its number


@dataclass(slots=True)
class Site:
    """Hold what the stages of one partition share."""

    group: tuple[Any, ...]
    durations: Foresight
    begin: int | None  # when the task began, for `absent`
    at_once: bool = False  # nothing waits for the watermark, which says what expires alone
    exact: bool = True  # no time is uncertain
    budget: Budget = field(kw_only=True)
    # The agent puts events straight into these, so that no event is handed down the tree.
    leaves: list[Any] = field(default_factory=list)  # the stages of the atoms, by place
    # One list for all `next` of a partition: each of them asks about the same types, those named in
    # the `detect`.
    named: list[Event] = field(default_factory=list)  # for `next`: all of the types named, by end
    named_ends: list[int] = field(default_factory=list)  # theirs
    memory: Memory | None = None  # where events are consumed
    # By who asks, as the slowest of them decides what may be forgotten.
    needs: dict[int, int] = field(default_factory=dict)  # who asks `named`: from which end on

    def anew(self) -> Site:
        """Share the same among new stages."""
        # The leaves and what was named are left out on purpose: the new stages fill their own.
        return Site(self.group, self.durations, self.begin, exact=self.exact, budget=self.budget)

    def name(self, events: list[Event]) -> None:
        """Take in more events for `next`, each ending after those before it."""
        self.named += events
        self.named_ends += [event.end for event in events]

    def forget_named(self) -> None:
        """Forget of these what nobody asks for any more."""
        oldest = min(self.needs.values(), default=WATERMARK_NONE)
        # Looked at first: most calls forget nothing, and a slice assignment copies what stays.
        if self.named_ends and self.named_ends[0] < oldest:
            dead = bisect_left(self.named_ends, oldest)
            del self.named_ends[:dead], self.named[:dead]


def completion(members: Sequence[Any]) -> Order:
    """The order of what comes last."""
    last: Order = max([member.order for member in members])
    return last


def weakest_end(parts: list[Occurrence], end: int) -> int:
    """The end of what is made of the parts: marked if one of them is not certain."""
    if MAYBE in map(certainty_of, parts):
        return Maybe(end)
    return int(end)


def least(times: list[int | None]) -> int | None:
    """The earliest of the times that there are."""
    return min([time for time in times if time is not None], default=None)


def next_of(times: Iterable[int], watermark: int) -> int | None:
    """The next of the times after the watermark: what is past has decided what it could."""
    # What is past has been decided by the advance that reached it; naming it again would wake the
    # task without end.
    return min([time for time in times if watermark < time < WATERMARK_END], default=None)


class Inbox:
    """Keep what a stage beneath has passed on and is not yet taken, to be taken in order."""

    __slots__ = ("_budget", "is_atom", "items", "limit", "stage")

    def __init__(self, stage: Stage, budget: Budget) -> None:
        self.stage = stage
        self.is_atom = stage.is_atom
        self._budget = budget  # of the stage that takes from it
        self.items: list[Occurrence] = []
        self.limit = WATERMARK_NONE

    def fill(self, watermark: int) -> int:
        """Let the stage go on; up to where its occurrences are all here."""
        # Pulled and not pushed: each operator asks beneath when its own turn comes, so that all
        # sides are at one watermark when it decides.
        new = self.stage.advance(watermark)
        if new:
            self.items += new
            if not self.is_atom and len(self.items) > 1:
                self._budget.spend(len(self.items))
                sort_in_order(self.items, tied=self._budget.tie)
        # Never back: a later hold may be earlier than a former one where something new has been
        # opened, but what was passed on up to the limit stays all that ends by then.
        until = watermark if self.is_atom else min(watermark, self.stage.hold())
        self.limit = max(self.limit, until)
        return self.limit

    def take(self, limit: int) -> list[Occurrence]:
        """Take what ends at or before the limit, in order."""
        items = self.items
        if not items:
            return []
        # The common case takes everything, and no list is copied.
        if end_of(items[-1]) <= limit:
            self.items = []
            return items
        # From the front and one by one: what is left is short, as whatever could go has gone.
        count = 0
        while end_of(items[count]) <= limit:
            count += 1
        self.items = items[count:]
        return items[:count]

    def floor(self, above: int = WATERMARK_NONE) -> int:
        """Of what comes later and begins after `above`: nothing begins before this time."""
        return self.view().floor(above)

    def clear_at(self, above: int, until: int) -> int:
        """The watermark from which what begins after `above` does so after `until`, too."""
        return self.view().clear_at(above, until)

    def view(self) -> Ahead:
        """As the stage's, with what waits here."""
        beneath = self.stage.view()
        return WaitingView(beneath, list(map(start_of, self.items))) if self.items else beneath

    def begins(self) -> int:
        """As the stage's, with what waits here."""
        begins = self.stage.begins()
        return min([begins, *map(start_of, self.items)]) if self.items else begins

    def eldest(self) -> int:
        """As the stage's, with what waits here."""
        return min([self.stage.eldest(), *map(start_of, self.items)])

    def origin(self) -> int:
        """As the stage's, with what waits here."""
        return min([self.stage.origin(), *map(start_of, self.items)])

    def forget(self, gone: set[int]) -> None:
        """Take consumed events (by identity) out of what is here and beneath."""
        self.stage.forget(gone)
        self.items = without(self.items, gone)

    def state(self) -> Any:
        """Return what is not yet taken, the limit and the state of the stage beneath."""
        return [self.items, self.limit, self.stage.state()]

    def restore(self, state: Any) -> None:
        """Take up such a state again."""
        self.items, self.limit, beneath = state
        self.stage.restore(beneath)


class Over:
    """Base of the stages over others; `inboxes` are of those beneath."""

    is_atom = False
    __slots__ = ("_asked", "_begins", "inboxes", "site", "span", "watermark")

    def __init__(self, site: Site, inboxes: tuple[Inbox, ...], span: Span | None) -> None:
        """`span`: of what it passes on; None where nothing is known of it."""
        self.site = site
        self.inboxes = inboxes
        self.span = span
        self.watermark = WATERMARK_NONE
        self._begins = WATERMARK_NONE
        # How many types lasted when that was found, how often it still does, and until when.
        self._asked = (-1, 0, WATERMARK_NONE)

    # What a stage itself keeps; each says of these what it must.

    def kept(self) -> list[list[Occurrence]]:
        """The lists of occurrences that it holds, oldest first."""
        return []

    def bound(self) -> list[list[Occurrence]]:
        """Those of `kept` of which it may be that something to come is made."""
        return self.kept()

    def feeding(self) -> tuple[Inbox, ...]:
        """Those of `inboxes` of whose occurrences something to come may be made."""
        return self.inboxes

    def keep(self, kept: list[list[Occurrence]]) -> None:
        """Hold these lists in place of those of `kept`."""

    def facts(self) -> list[Any]:
        """Return what else it knows, as plain values and occurrences."""
        return []

    def know(self, facts: list[Any]) -> None:
        """Take that up again."""

    # What follows from that.

    def hold(self) -> int:
        """Return the least hold of the stages beneath."""
        beneath = [inbox.stage.hold() for inbox in self.inboxes if not inbox.is_atom]
        return min(beneath, default=WATERMARK_END)

    def view(self) -> Ahead:
        """Return what may yet be passed on, by what is known of the types and what it keeps."""
        likely_ms = None if self.span is None else self.span.likely_ms(self.site.durations)
        starts = [start for items in self.bound() for start in map(start_of, items)]
        feeding = [inbox.view() for inbox in self.feeding()]
        return View(self.watermark, self.hold(), likely_ms, starts, feeding)

    def begins(self) -> int:
        """Return a time before which nothing begins that is passed on later.

        What was found once holds from then on, so it is found again only now and then: the more is
        kept, the more seldom, and the longer it is kept. So others, who keep by this, keep a part
        more than they need, however much comes at a time.
        """
        if self.watermark >= WATERMARK_END:
            return WATERMARK_END
        lasting, times, until = self._asked
        changes = self.site.durations.durations.changes
        if times and self.watermark <= until and lasting == changes:
            self._asked = (lasting, times - 1, until)
            return self._begins
        kept = [min(map(start_of, items)) for items in self.kept() if items]
        self._begins = min([inbox.begins() for inbox in self.inboxes] + kept)
        exact = self.site.exact and self.span is not None
        span_ms = self.span.most_ms(self.site.durations) if exact and self.span else None
        if span_ms is not None:
            self._begins = max(self._begins, min(self.watermark, self.hold()) + 1 - span_ms)
        held = sum(map(len, self.kept()))
        until = self.watermark + max(0, self.watermark - self._begins) // ASK_SHARE
        self._asked = (changes, held // ASK_SHARE, until)
        return self._begins

    def eldest(self) -> int:
        """Return when the eldest begins of what it and those beneath hold to make something of."""
        bound = [start for items in self.bound() for start in map(start_of, items)]
        return min([inbox.eldest() for inbox in self.feeding()] + bound)

    def origin(self) -> int:
        """Return a time before which nothing begins that is held or still to be passed on."""
        kept = [start for items in self.kept() for start in map(start_of, items)]
        return min([inbox.origin() for inbox in self.inboxes] + kept)

    def due(self) -> int | None:
        """Return the next watermark at which a stage beneath may decide something; None if none."""
        times = [inbox.stage.due() for inbox in self.inboxes if not inbox.is_atom]
        return least(times) if times else None

    def held(self) -> int:
        """Count the occurrences that it and those beneath it hold."""
        own = sum([len(items) for items in self.kept()])
        return own + sum([len(inbox.items) + inbox.stage.held() for inbox in self.inboxes])

    def idle(self) -> bool:
        """Tell whether it holds nothing and those beneath are idle."""
        return not self.held() and all(one.stage.idle() for one in self.inboxes)

    def shed(self, count: int) -> int:
        """Drop up to so many of the oldest, longest lists first; return how many were dropped."""
        shed = 0
        kept = self.kept()
        for items in sorted(kept, key=len, reverse=True):
            part = min(count - shed, len(items))
            del items[:part]
            shed += part
        if shed:
            self.keep(kept)
            self._asked = (-1, 0, WATERMARK_NONE)  # it may begin later now
        for inbox in self.inboxes:
            if shed < count:
                shed += inbox.stage.shed(count - shed)
        return shed

    def forget(self, gone: set[int]) -> None:
        """Take consumed events (by identity) out of what it and those beneath hold."""
        for inbox in self.inboxes:
            inbox.forget(gone)
        self.keep([without(items, gone) for items in self.kept()])

    def state(self) -> Any:
        """Return what it and those beneath hold, as events, occurrences and plain values."""
        inboxes = [inbox.state() for inbox in self.inboxes]
        return [self.watermark, self.kept(), self.facts(), inboxes]

    def restore(self, state: Any) -> None:
        """Take up such a state again."""
        self.watermark, kept, facts, inboxes = state
        self._asked = (-1, 0, WATERMARK_NONE)
        self.keep(kept)
        self.know(facts)
        for inbox, part in zip(self.inboxes, inboxes, strict=True):
            inbox.restore(part)
