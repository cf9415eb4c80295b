"""What leads is told to neighbours that keep back what waits for it; and what they told here.

Owns the events that are to be told, and each neighbour's *word* of leads: behind which end, and up
to which times, it has told all of a type. Must not know who leads, or frames of origins. Invariant:
a word is true when it is said, of all operators that had been asked for by then: whoever may send
what leads has promised as much, and all of it has come to whoever says so. So what is let go by a
word has no partner, and a word that is lost, late or old lets nothing go that is needed.

A neighbour counts the operators with silent keys that it was asked with, and passes over a word
that was said before the last of them: words go with events, and control overtakes these.

    asked with silent keys ──▶ stale: nothing new waits ──▶ its word: sure, since a time
            ▲                                                   │ what begins before travels
            └──── one more operator ◀───────────────────────────┘
    a word of nothing, or the end of the session: all that waits for it travels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.network.frames.frames import Led
from broker.network.frames.told import Watermarks
from broker.network.neighbours.ways import Ways
from broker.network.routing.advertisement.messages import LOCAL, LeadEvents, Send, Want
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.matching.matching import Waiting

_END = 2**62


class KnowsSure(Protocol):
    """Tells since when all that a neighbour asks for comes here; `changes` counts its changes."""

    changes: int

    def sure_since(self, other: str) -> int | None:
        """Return behind which end all partners of it are heard of here."""


class LetsWait(Protocol):
    """Has events travel that wait for partners."""

    def send_wanted(self, toward: str, wanted: Callable[[Waiting], bool]) -> None:
        """Let travel what of that which waits before a neighbour is wanted there now."""

    def let_go(self, now: int) -> None:
        """Let go of what can find no partner any more."""


class LeadTools(NamedTuple):
    """Parts of a broker that `LeadWords` uses.

    `absent` returns whom this broker itself waits for in vain, `newest` the last end of all that it
    has; `stands` tells if a session does; `released` takes what the router lets go.
    """

    me: str
    ways: Ways
    router: GrowingRouter
    partners: KnowsSure
    types: Callable[[], tuple[str, ...]]  # of own sources
    promised: Callable[[str], Watermarks]  # by origin
    absent: Callable[[], Sequence[str]]
    newest: Callable[[], int]
    stands: Callable[[str], bool]
    released: Callable[[Sequence[Send]], None]
    withheld: Callable[[], LetsWait]
    say: Callable[[str, Led, int], None]
    pause_ms: int  # between words that nobody waits for


class _Word(Struct):
    """Hold all of these types told that ends behind `since`, up to a time; None: it is not sure."""

    since: int | None = None
    times: dict[str, int] = field(default_factory=dict)


class _Telling(Struct):
    """Hold what a neighbour that was asked with silent keys is to be told."""

    wants: int = 0  # operators with silent keys that it was asked with in this session
    began_ms: int = WATERMARK_NONE  # what ended until then may not have been told
    events: list[Event] = field(default_factory=list)
    last: _Word | None = None  # that was said
    changes: int = -1  # of what is sure, when that was looked at
    local: int | None = None
    due_at: int = 0  # when it is looked how far all has come, …
    owes: bool = False  # … if anything has come since


class _Told(Struct):
    """Hold what a neighbour told that asks with silent keys."""

    wants: int = 0  # as in `_Telling`
    stale: bool = True  # its word is of before the last of them
    word: _Word = field(default_factory=_Word)


class LeadWords:
    """Tell neighbours what leads, and take what they tell."""

    def __init__(self, tools: LeadTools) -> None:
        self._tools = tools
        self.telling: dict[str, _Telling] = {}  # by neighbour; nothing is due to others
        self._told: dict[str, _Told] = {}  # likewise
        self._passed_ms = WATERMARK_NONE  # the last end of all that passed here
        self._local: int | None = None  # since when all comes that this broker itself asks for

    def leave(self, peer: str) -> None:
        """Forget what a neighbour was told, and what it told."""
        self.telling.pop(peer, None)
        self._told.pop(peer, None)
        if not self.telling:  # nobody looks what becomes of it
            self._local = None

    # --- what neighbours are told ----------------------------------------------------------

    def passed(self, events: Iterable[Event]) -> None:
        """Take in that events have passed here, or time has."""
        for telling in self.telling.values():
            telling.owes = True
        for event in events:
            self._passed_ms = max(self._passed_ms, event.end)

    def sent(self, sends: Iterable[Send]) -> None:
        """Take in what the router says to others."""
        for to, message in sends:
            if isinstance(message, LeadEvents):
                self.telling.setdefault(to, _Telling()).events += message.events
            elif isinstance(message, Want) and message.operator.silent and self._tools.stands(to):
                telling = self.telling.setdefault(to, _Telling())
                telling.wants += 1
                telling.began_ms, telling.last = self._passed_ms, None

    def look(self, now: int) -> int:
        """Tell neighbours what is due; return in how many ms something will be."""
        due_at = _END
        if self._tools.absent():
            self._local = None
        elif self._local is None:
            self._local = self._tools.newest()
        for peer, telling in self.telling.items():
            self._tell(peer, telling, now)
            if telling.owes:
                due_at = min(due_at, telling.due_at)
        return due_at - now

    def _tell(self, peer: str, telling: _Telling, now: int) -> None:
        seen = self._tools.partners.changes, self._local
        is_due = telling.owes and now >= telling.due_at
        is_new = telling.last is None or seen != (telling.changes, telling.local)
        if not (telling.events or is_new or is_due):
            return
        word = self._word(peer, telling)
        telling.changes, telling.local = seen
        before = telling.last
        is_other = before is None or word.since != before.since
        if telling.events or is_other or (is_due and word != before):
            body = Led(packed(telling.events), telling.wants, word.since, word.times)
            self._tools.say(peer, body, len(telling.events))
            telling.events, telling.last = [], word
            is_due = True
        if is_due:
            telling.due_at, telling.owes = now + self._tools.pause_ms, False

    def _word(self, peer: str, telling: _Telling) -> _Word:
        """Return what holds now of all types that are silent for a neighbour."""
        word = _Word(telling.began_ms)
        for name, askers in self._tools.router.led(peer).items():
            reached = inf
            for asker, is_silent in askers.items():
                since = self._local if asker == LOCAL else self._tools.partners.sure_since(asker)
                if is_silent:  # who asks tells of them, too
                    heard = self._told.get(asker, _Told())
                    reached = min(reached, heard.word.times.get(name, WATERMARK_NONE))
                    told_since = None if heard.stale else heard.word.since
                    since = None if since is None or told_since is None else max(since, told_since)
                if since is None or word.since is None:
                    return _Word()
                word.since = max(word.since, since)
                reached = min(reached, self._reached(name, (peer, asker)))
            if reached < inf:
                word.times[name] = int(reached)
        return word

    def _reached(self, type_name: str, beyond: tuple[str, str]) -> float:
        """Return the time that a type has passed at all origins that are not beyond these."""
        tools, ways = self._tools, self._tools.ways
        origins = {tools.me: (tools.types(), "")}
        origins |= {name: (ways.types[name], via) for name, via in ways.via.items()}
        least = inf
        for origin, (types, via) in origins.items():
            if via and via in beyond:
                continue
            sent = WATERMARK_NONE if type_name in types else None
            reached = tools.promised(origin).get(type_name, sent)
            least = least if reached is None else min(least, reached)
        return least

    # --- what neighbours tell --------------------------------------------------------------

    def asked(self, peer: str) -> None:
        """Take in that a neighbour asks with silent keys, before the router does."""
        heard = self._told.setdefault(peer, _Told())
        heard.wants += 1
        heard.stale = True

    def hear(self, peer: str, led: Led, now: int) -> None:
        """Take what a neighbour tells of leads. Raises ValueError."""
        tools, heard = self._tools, self._told.setdefault(peer, _Told())
        events = unpacked(led.events)
        self.passed(events)
        if peer in tools.router.neighbours:
            tools.released(tools.router.probes(peer, events))
        if led.wants >= heard.wants:
            heard.word, heard.stale = _Word(led.since, led.times), False
            tools.withheld().send_wanted(peer, _unsure(heard.word))
        tools.withheld().let_go(now)

    def since(self, toward: str, types: Sequence[str]) -> int | None:
        """Return behind which end a neighbour has told all of these types; None: that is unsure."""
        heard = self._told.get(toward)
        if heard is None or heard.stale or any(name not in heard.word.times for name in types):
            return None
        return heard.word.since

    def reached(self, toward: str, types: Sequence[str]) -> float:
        """Return up to which time a neighbour has told all of these types."""
        times: Mapping[str, int] = self._told[toward].word.times if toward in self._told else {}
        return min([times.get(name, WATERMARK_NONE) for name in types], default=inf)

    def comes(self, toward: str, types: Sequence[str]) -> float:
        """Return up to which time a neighbour was told that all of these types have come."""
        word = self.telling[toward].last if toward in self.telling else None
        times: Mapping[str, int] = {} if word is None else word.times
        return min([times.get(name, WATERMARK_NONE) for name in types], default=inf)

    def is_sure(self, toward: str, types: Sequence[str]) -> bool:
        """Tell if a neighbour's word lets events wait for those of these types."""
        return not types or self.since(toward, types) is not None


def _unsure(word: _Word) -> Callable[[Waiting], bool]:
    """Return a test of what waits: whether a word does not say that its partners are told."""

    def test(waiting: Waiting) -> bool:
        if not waiting.silent:
            return False
        if word.since is None or any(name not in word.times for name in waiting.silent):
            return True
        return waiting.held.end - waiting.delta_t_ms < word.since

    return test
