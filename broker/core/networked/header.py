"""The header of windows that others have folded: its part of the core of a broker.

Owns what comes of an origin as rows: whether it is the next of it, and whether it may be merged.
Must not know frames. Invariant: a row counts once; a window is told of only when all who may have
events of it have sent theirs, and no source has sent to two of them what cannot be told apart.

Rows are merged by the agents themselves (`window_panes`), pane by pane; `gathered` remembers whose
events they are. An origin that is doubted promises nothing, until it has sent its part as events.
One that was doubted and is in a new life is *unsure*: before it is asked again it has to say
whether that life shares what came of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from broker.core import returned
from broker.core.effects import Notes, Outgoing
from broker.core.intake import Intake
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest import reasons
from broker.engine.ingest.event_bytes import said_again
from broker.engine.ledger import Ledger
from broker.engine.runtime.budget import Slices
from broker.engine.runtime.matcher import Matcher
from broker.engine.runtime.seats import Seat
from broker.engine.window.agent import WindowAgent
from broker.engine.window.panes import PaneWindows
from broker.engine.window.splitting import KEY_CHARS, Rows, Sources, Split, sources_of, split_of
from broker.network.frames import fold_rows, told
from broker.network.host.gathered import Gathered, maker_of, origin_of
from broker.network.host.upstream import Upstream
from language.tree import Definition

CONFLICT = "a source was at two brokers in one window: its events travel as they are"
UNRESOLVED = "a source was at two brokers in one window, and one of these cannot say it again"


class HeaderTools(NamedTuple):
    """The parts of a broker's core that its header works with; `feed` gives tasks events."""

    intake: Intake
    matcher: Matcher
    ledger: Ledger
    notes: Notes
    upstream: Mapping[str, Upstream]  # by origin
    clock: Callable[[], int]
    feed: Callable[[Sequence[Event], Outgoing], Slices[None]]


class WindowHeader:
    """Merge folded windows. `to_ask` are origins that are to be asked anew, `unsure` as there."""

    def __init__(self, repeats_max: int, tools: HeaderTools) -> None:
        self.gathered = Gathered(repeats_max)
        self.to_ask: dict[str, None] = {}
        self.unsure: set[str] = set()
        self._intake, self._matcher, self._ledger, self._notes, self._upstream, *_ = tools
        self._now, self._feed = tools.clock, tools.feed
        self._split: tuple[tuple[str, ...], Split | None] = ((), None)
        self._digests: dict[str | None, bytes] = {}

    def split(self) -> Split | None:
        """Return the split of the tasks that run here."""
        tasks = self._matcher.tasks()
        keys = tuple(tasks)
        if self._split[0] != keys:
            self._split = keys, split_of(tasks)
        return self._split[1]

    # --- what an origin is asked -----------------------------------------------------------

    def is_raw(self, origin: str) -> bool:
        """Tell whether an origin is to send events as they are."""
        return self._maker(origin) in self.gathered.raw

    def doubted(self, origin: str) -> int | None:
        """Behind which position it is to send again what is not complete; None: it need not."""
        return None if origin in self.unsure else self.gathered.doubted.get(self._maker(origin))

    def take_doubted(self, reachable: Container[str]) -> list[str]:
        """Return those that are to be asked anew: their sources are shared, or are so no more."""
        to_ask, self.to_ask = self.to_ask, {}
        return [origin for origin in to_ask if origin in reachable]

    def safe(self, origin: str) -> int | None:
        """The position up to which an origin will never be asked again."""
        known = self._upstream.get(origin)
        if known is None or known.position is None:
            return None
        return self.gathered.safe(self._maker(origin), known.position)

    def complete_ms(self) -> int | None:
        """The end of the last pane that is complete; None: none is."""
        split, first = self.split(), self.gathered.first_open
        return None if split is None or first is None else split.grid.begins_at(first) - 1

    def wanted_as(self, types: Mapping[str, told.Attributes]) -> dict[str, told.Attributes]:
        """These types with the same attributes, as events have them here."""
        entries = self._intake.registry.entries
        return {
            name: {one: entries[name].attributes.get(one, "") for one in some}
            for name, some in types.items()
            if name in entries
        }

    def _maker(self, origin: str) -> str:
        known = self._upstream.get(origin)
        return maker_of(origin, 0 if known is None else known.life)

    # --- what comes of it ------------------------------------------------------------------

    def folded(self, one: told.Folded, out: Outgoing) -> Slices[None]:
        """Merge what an origin has folded, if it is the next of it and may be merged."""
        known, split = self._upstream.get(one.origin), self.split()
        if known is None or split is None or not self._goes_on(one, known):
            return
        rows, sources = fold_rows.unpacked(one.rows)
        events: list[Event] = []
        if one.raw:
            decoded = self._intake.from_mappings(said_again(one.events))
            events = decoded.events
            sources = sources_of(events, split.grid.pane_of, self._digests)
        maker = maker_of(one.origin, one.life)
        if self._conflicts(maker, known, sources, raw=one.raw):
            self._ledger.events.drop(reasons.REPEAT, len(events))
            return  # it comes again, as events
        self.gathered.take(maker, one.after, sources, raw=one.raw)
        known.begin(one.life, one.upto)
        self._merge(maker, rows)
        events = self._fresh(events, out)
        if one.whole:
            self._intake.clock.forget_origin(one.origin)
        if maker not in self.gathered.doubted:
            self._intake.clock.promise_of(one.origin, one.watermarks, self._now())
        yield from self._feed(events, out)
        if one.whole or None in one.watermarks.values():
            # Types without a source are waited for from now on.
            self._matcher.due(lambda name: self._intake.watermark(name, self._now()))

    def _goes_on(self, one: told.Folded, known: Upstream) -> bool:
        """Tell whether it is the next of an origin; an answer is, and what is missing is lost."""
        if one.whole:
            maker = maker_of(one.origin, one.life)
            if one.again and known.life != one.life:
                self.unsure.add(one.origin)
                self.to_ask[one.origin] = None
                return False
            self.unsure.discard(one.origin)
            if known.life != one.life and known.position == one.after:
                _live_on(self.gathered, self._seats(), self._maker(one.origin), maker)
                known.begin(one.life, one.after)
                self.to_ask |= {one.origin: None} if maker in self.gathered.doubted else {}
            if one.again and known.life == one.life:
                if one.after > self.gathered.doubted.get(maker, one.after):
                    self._unresolved(one.origin)  # a part of it has lapsed there
                    self.gathered.forget(maker)
                    self.to_ask[one.origin] = None
                    return False
                _take_back(self.gathered, self._seats(), maker)
                known.begin(one.life, min(one.after, known.position or one.after))
            if known.position is None or known.life != one.life:
                if self.gathered.forget(maker_of(one.origin, known.life)):
                    self._unresolved(one.origin)
                known.begin(one.life, one.after)
            if one.after > (known.position or 0):
                lost = one.after - (known.position or 0)
                known.lost += lost
                self._ledger.note("positions_lost", lost)
                known.begin(one.life, one.after)
        return known.life == one.life and known.position == one.after

    def _conflicts(self, maker: str, known: Upstream, sources: Sources, *, raw: bool) -> bool:
        """Doubt whoever has to send events for what came; whether that is this one, too."""
        again = False
        for other in self.gathered.sharing(maker, sources, raw=raw):
            origin, life = origin_of(other)
            one = self._upstream.get(origin)
            if other != maker and (one is None or one.life != life or one.position is None):
                self._unresolved(origin)
                continue
            if other in self.gathered.doubted:
                continue
            at = known if other == maker or one is None else one
            assert at.position is not None
            self.gathered.doubt(other, at.position)
            split = self.split()
            types = () if split is None else split.types
            waits = dict.fromkeys(types, WATERMARK_NONE)  # also where it has nothing more to say
            self._intake.clock.promise_of(origin, waits, self._now())
            self.to_ask[origin] = None
            self._ledger.note("split_conflicts")
            self._notes.once("info", "split_conflict", origin, broker=origin, reason=CONFLICT)
            again = again or other == maker
        return again or maker in self.gathered.doubted

    def _unresolved(self, origin: str) -> None:
        self._ledger.note("split_conflicts_unresolved")
        words = {"broker": origin, "reason": UNRESOLVED}
        self._notes.once("warning", "split_conflict_unresolved", origin, **words)

    def _seats(self) -> list[Seat]:
        """The places of the windows that are split."""
        split = self.split()
        keys = () if split is None else split.keys
        return [seat for key in keys for seat in self._matcher.seats_of(key)]

    def _merge(self, maker: str, rows: Rows) -> None:
        panes_of = dict(rows)
        late = 0
        for seat in self._seats():
            panes = panes_of.get((seat.task.key[:KEY_CHARS], _place(seat)))
            if panes is not None:
                some, uncertainty = _panes(seat).take_rows(maker, panes)
                late += some
                if uncertainty:
                    self._matcher.doubt()
                self._matcher.schedule(seat)
        self._ledger.note("late_from_afar", late)

    def _fresh(self, events: list[Event], out: Outgoing) -> list[Event]:
        """Those events that are no repeats, and of no pane that is complete."""
        complete_ms = self.complete_ms()
        bound = WATERMARK_NONE if complete_ms is None else complete_ms
        late = [one for one in events if one.end <= bound]
        fresh, repeats = self.gathered.repeats.admit([one for one in events if one.end > bound])
        account = self._ledger.events
        account.drop(reasons.LATE, len(late))
        conflicting = sum(conflict for _, conflict in repeats)
        account.drop(reasons.CONFLICTING_REPEAT, conflicting)
        account.drop(reasons.REPEAT, len(repeats) - conflicting)
        self._ledger.note("late_from_afar", len(late))
        if self.gathered.repeats.forgotten:
            self._ledger.note("repeat_memory_forgotten", self.gathered.repeats.forgotten)
            self.gathered.repeats.forgotten = 0
        out.publications += [returned.late(event) for event in late]
        return fresh

    def complete(self) -> None:
        """Forget what panes are of that are complete by now."""
        split = self.split()
        if split is None:
            return
        passed = min(map(self._intake.clock.passed, split.types))
        if passed <= WATERMARK_NONE:
            return
        for maker in self.gathered.complete(split.grid.pane_of(passed + 1)):
            origin, life = origin_of(maker)
            if origin in self._upstream and self._upstream[origin].life == life:
                self.to_ask[origin] = None
        if all(seat.agent.next_due() is None for seat in self._seats()):
            self.gathered.clear()  # what there was of is in no group
        complete_ms = self.complete_ms()
        if complete_ms is not None and self.gathered.repeats.count > self.gathered.repeats.prune_at:
            self.gathered.repeats.advance(complete_ms)

    def forget_what_is_late(self) -> None:
        """Forget repeats in panes that are complete."""
        complete_ms = self.complete_ms()
        if complete_ms is not None:
            self.gathered.repeats.advance(complete_ms)

    def forget(self, origin: str) -> None:
        """Wait for an origin no more."""
        if self.gathered.forget(self._maker(origin)):
            self._unresolved(origin)

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what was gathered as plain data, under its name in a whole state."""
        return {"gathered": self.gathered.state()} if self.gathered.began else {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what was gathered, of a whole state."""
        said = state.get("gathered")
        if said is not None:
            self.gathered.restore(said)
            self.to_ask = dict.fromkeys(origin_of(one)[0] for one in self.gathered.doubted)


def _take_back(gathered: Gathered, seats: Sequence[Seat], maker: str) -> None:
    for seat in seats:
        _panes(seat).drop_rows(maker, gathered.first_open)
    gathered.drop(maker)


def _live_on(gathered: Gathered, seats: Sequence[Seat], before: str, maker: str) -> None:
    """An origin is in a life that shares all that came of the one before."""
    for seat in seats:
        _panes(seat).rename(before, maker)
    gathered.rename(before, maker)


def _panes(seat: Seat) -> PaneWindows:
    agent = seat.agent
    assert isinstance(agent, WindowAgent)
    return agent.panes()


def _place(seat: Seat) -> int:
    """The place of a case in its definition."""
    node = seat.task.node
    assert isinstance(node, Definition)
    return next(at for at, case in enumerate(node.cases) if case is seat.case)
