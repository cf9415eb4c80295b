"""Events that are kept back from neighbours until partners of theirs come.

Owns these events, the orders in which they are looked for, and when each of them travels or is let
go. Must not know frames or subscriptions. Invariant: what is let go has no partner that is still to
come, by the promises of all who may send one; whatever else ends the waiting has it travel. What a
question costs depends on what it finds and on how many types there are, not on how much waits.

Each order is a heap. What has gone stays in there until it comes to the top, or until more has gone
than waits.

An event that waits costs nobody time: a task beyond that cannot report before its type has come so
far says so (`broker.network.replication.progress`), and then it travels. To a neighbour of an
earlier version, which does not say so, it travels a second after its partners could have come.

    came --nothing is known of a partner, and that is certain--> waits
    waits --a partner comes, a task waits for it, or too much waits--> travels
    waits --all who may send partners have passed their time--> let go
    waits --no operator asks for it any more--> let go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.limits import Limits
from broker.network.replication.progress import ProgressLedger
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.matching.matching import Joined, Waiting
from broker.network.routing.matching.rows import EventView

if TYPE_CHECKING:
    from broker.network.frames.told import Watermarks
    from broker.network.neighbours.ways import Claim, Ways

SPAN_MAX = 65_536  # positions from the first that is kept back: hosts remember those that came
BEHIND_MS = 1_000  # an event's own type goes on so much longer than its partners may take
_END = 2**62
SPARE = 64  # so that few are not ordered anew again and again

Row: TypeAlias = tuple[int, Waiting]
Types: TypeAlias = tuple[str, ...]
Kind: TypeAlias = tuple[str, Types, Types]
"""An event's type, those of its partners, and which of these are told."""
Heap: TypeAlias = list[tuple[int, int]]
"""Of (a value, the position that has it), the least first."""


class KeptBack(dict[int, Waiting]):
    """By position."""

    def __init__(self) -> None:
        super().__init__()
        self._order_anew()

    def __setitem__(self, position: int, one: Waiting) -> None:
        super().__setitem__(position, one)
        self._ordered += 1
        if self._ordered > 2 * len(self) + SPARE:
            self._order_anew()
        else:
            self._order(position, one)

    def _order_anew(self) -> None:
        self._ordered = len(self)  # entries of the heaps, gone ones included
        self._positions: Heap = []
        self._ends: dict[str, Heap] = {}  # by type: what a task may wait for
        self._overs: dict[Kind, Heap] = {}  # by kind: what may be let go
        for position, one in self.items():
            self._order(position, one)

    def _order(self, position: int, one: Waiting) -> None:
        name, end = one.held.event.event_type, one.held.end
        heappush(self._positions, (position, position))
        heappush(self._ends.setdefault(name, []), (end, position))
        heappush(self._overs.setdefault((name, one.types, one.silent), []), (one.over_ms, position))

    # --- questions -------------------------------------------------------------------------

    def _least(self, heap: Heap) -> int | None:
        while heap and heap[0][1] not in self:
            heappop(heap)
        return heap[0][0] if heap else None

    def first(self) -> int | None:
        """The least position."""
        return self._least(self._positions)

    def ends(self) -> dict[str, int]:
        """By type the least end."""
        found = {name: self._least(heap) for name, heap in self._ends.items()}
        return {name: end for name, end in found.items() if end is not None}

    # --- what goes -------------------------------------------------------------------------

    def take(self, positions: Iterable[int]) -> list[Row]:
        """Take out what waits of these; it waits no more."""
        return [(position, self.pop(position)) for position in positions if position in self]

    def take_first(self, events_max: int, before: int) -> list[Row]:
        """The least positions: those of more than so many, and those before a position."""
        found: list[Row] = []
        first = self.first()
        while first is not None and (len(self) > events_max or first < before):
            found.append((first, self.pop(first)))
            first = self.first()
        return found

    def judge_anew(self, still: Mapping[int, Waiting]) -> list[Row]:
        """Take out what is not among these, by identity of the event; have the others wait so."""
        gone = self.take([place for place, each in self.items() if id(each.held) not in still])
        self.update({place: still[id(each.held)] for place, each in self.items()})
        self._order_anew()
        return gone

    def take_until(self, times: Mapping[str, int]) -> list[Row]:
        """Take what ends, of these types, at these times or before."""
        taken: list[Row] = []
        for name, time in times.items():
            heap = self._ends.get(name, [])
            while (end := self._least(heap)) is not None and end <= time:
                position = heappop(heap)[1]
                taken.append((position, self.pop(position)))
        return taken

    def take_over(self, reached_ms: Callable[[str, Types, Types], float]) -> list[Row]:
        """Take out what has no partner that begins behind the time that is reached for its kind."""
        found: list[Row] = []
        for kind, heap in self._overs.items():
            if self._least(heap) is None:
                continue
            limit_ms = reached_ms(*kind)
            while (least_ms := self._least(heap)) is not None and least_ms <= limit_ms:
                position = heappop(heap)[1]
                found.append((position, self.pop(position)))
        return found


Origins: TypeAlias = dict[str, Types]
Place: TypeAlias = tuple[str, int]  # (origin, position)


class SpeaksProgress(Protocol):
    """Progress among neighbours, as far as it matters here."""

    ledger: ProgressLedger  # who waits for which time

    def speaks(self, peer: str) -> bool:
        """Return if a neighbour says what is waited for."""


class KnowsPartners(Protocol):
    """Tells how certain it is toward a neighbour that a partner is not there."""

    def bound(self, toward: str) -> int | None:
        """Return behind which time partners are heard of here; None: nothing is sure."""

    def bound_of(self, toward: str, waiting: Waiting) -> int | None:
        """Return the same for an event, of which more may be unsure than of others."""

    def origins(self, toward: str) -> Origins:
        """Return the origins that are not beyond a neighbour, with their types."""

    def joined(self, toward: str) -> Joined:
        """Return what a neighbour asks for only with partners."""


class KnowsLeads(Protocol):
    """Tells what neighbours have told of what leads."""

    def since(self, toward: str, types: Types) -> int | None:
        """Return behind which end a neighbour has told all of these types; None: that is unsure."""

    def reached(self, toward: str, types: Types) -> float:
        """Return up to which time a neighbour has told all of these types."""

    def comes(self, toward: str, types: Types) -> float:
        """Return up to which time a neighbour was told that all of these types have come."""


class SaysClaim(Protocol):
    """Says a claim of an origin to a neighbour, with these events."""

    def __call__(
        self, origin: str, toward: str, claim: Claim, rows: list[tuple[int, Event]], *, anyhow: bool
    ) -> object:
        """Say it; `anyhow`: even if nothing is to be promised."""


class WithholdingTools(NamedTuple):
    """Parts of a broker that `Withholding` uses; `promised`: the times that origins promised."""

    ways: Ways  # where origins are
    router: GrowingRouter  # who wants what
    counts: dict[str, int]  # for the status
    limits: Limits  # how much may wait
    progress: SpeaksProgress  # what tasks beyond wait for
    partners: KnowsPartners  # whether all that may come would come here
    leads: KnowsLeads  # what neighbours told of partners that do not come here
    promised: Callable[[str], Watermarks]  # by origin
    say: SaysClaim  # a neighbour is told at once


class Withholding:
    """Keep events from neighbours until partners of theirs come; see the module."""

    def __init__(self, tools: WithholdingTools) -> None:
        self._tools = tools
        # By neighbour, and identity of the event.
        self.places: dict[str, dict[int, Place]] = {}
        self._forgotten_ms = WATERMARK_NONE  # what began before is not remembered as a partner
        self._asks_less: dict[str, None] = {}  # neighbours whose operators are not those of before

    def keep(
        self, toward: str, claim: Claim, row: tuple[str, int, Waiting], before: Watermarks
    ) -> bool:
        """Keep an event back if nothing speaks against it; return if it is kept.

        `row` is (origin, position, event); `before` what was promised before it came.
        """
        origin, position, event = row
        if not self._may_wait(toward, claim, event, before):
            return False
        claim.back[position] = event
        self.places.setdefault(toward, {})[id(event.held.event)] = origin, position
        self._tools.counts["kept_back"] += 1
        return True

    def _may_wait(self, toward: str, claim: Claim, event: Waiting, before: Watermarks) -> bool:
        bound = self._tools.partners.bound_of(toward, event)
        if bound is None or event.delta_t_ms > self._tools.limits.kept_back_ms_max:
            return False
        if event.silent:
            lead_bound = self._tools.leads.since(toward, event.silent)
            if lead_bound is None:
                return False
            bound = max(bound, lead_bound)
        # A partner ends later than that, and is then known here, or comes.
        if event.held.end - event.delta_t_ms < max(bound, self._forgotten_ms):
            return False
        name = event.held.event.event_type
        promised = before.get(name)
        if promised is None:
            # The first of a source that was passed over, or of a new one: hosts wait for the type
            # from now on, as its time is said with this step, short of what is kept back.
            return claim.watermarks.get(name) is not None
        return promised < event.held.end  # else nobody would wait for it

    def keeping(self) -> list[str]:
        """Return the neighbours from whom something is kept back."""
        return [toward for toward, places in self.places.items() if places]

    def ask_less(self, toward: str) -> None:
        """Note that a neighbour takes operators back: it is told when there is time.

        Partners that nobody asks for any more are promised by nobody either, so what waits for them
        would wait for ever.
        """
        if self.places.get(toward):
            self._asks_less[toward] = None

    # --- what travels ----------------------------------------------------------------------

    def send_unsure(self) -> None:
        """Let all travel that waits before neighbours toward whom nothing is sure any more."""
        for toward in self.keeping():
            if self._tools.partners.bound(toward) is None:
                self.send_all(toward)

    def send_wanted(self, toward: str, wanted: Callable[[Waiting], bool]) -> None:
        """Let travel what of that which waits before a neighbour is wanted there now."""
        if not self.places.get(toward):
            return
        for origin, claim in self._tools.ways.toward(toward):
            places = [position for position, row in claim.back.items() if wanted(row)]
            if places:
                self._send(origin, toward, claim, claim.back.take(places))

    def send_all(self, toward: str) -> None:
        """Let all travel that waits before a neighbour."""
        if not self.places.pop(toward, None):
            return
        for origin, claim in self._tools.ways.toward(toward):
            if claim.back:
                self._send(origin, toward, claim, claim.back.take(list(claim.back)))

    def find_partners(self, toward: str, events: Sequence[EventView]) -> None:
        """Let those of these events that wait before a neighbour travel: they found partners."""
        by_origin: dict[str, list[int]] = {}
        places = self.places.get(toward, {})
        for event in events:
            origin, position = places.pop(id(event), ("", 0))
            if origin:
                by_origin.setdefault(origin, []).append(position)
        claims = dict(self._tools.ways.toward(toward)) if by_origin else {}
        for origin, positions in by_origin.items():
            if origin in claims:
                claim = claims[origin]
                self._send(origin, toward, claim, claim.back.take(positions))

    def _send(self, origin: str, toward: str, claim: Claim, waited: list[Row]) -> None:
        rows: list[tuple[int, Event]] = []
        for position, event in waited:
            event.held.sent |= self._tools.router.releases.bits[toward]
            self.places.get(toward, {}).pop(id(event.held.event), None)
            rows.append((position, cast("Event", event.held.event)))
        if rows:
            self._tools.counts["kept_back_sent"] += len(rows)
            self._tools.say(origin, toward, claim, rows, anyhow=False)

    # --- time ------------------------------------------------------------------------------

    def let_go(self, now: int) -> None:
        """Let go of events for which no partner can come; what is waited for travels."""
        for toward in self.keeping():
            reached: dict[tuple[Types, Types], float] = {}
            self._forget_unasked(toward, now)
            for origin, claim in self._tools.ways.toward(toward):
                if claim.back:
                    self._look_through(origin, toward, claim, reached, now)
        if self._tools.router.releases.keeps():
            self._forget_partners()

    def _forget_unasked(self, toward: str, now: int) -> None:
        """Let go of what operators that are gone asked for, where some of a neighbour's are."""
        if toward not in self._asks_less:
            return
        del self._asks_less[toward]
        still = self._tools.router.matcher(toward).still_waiting()
        for origin, claim in self._tools.ways.toward(toward):
            self._go(origin, toward, claim, claim.back.judge_anew(still), now)

    def _look_through(  # one claim of those toward a neighbour
        self,
        origin: str,
        toward: str,
        claim: Claim,
        reached: dict[tuple[Types, Types], float],
        now: int,
    ) -> None:
        tools = self._tools
        own, speaks = tools.promised(origin), tools.progress.speaks(toward)

        def reached_ms(name: str, types: Types, silent: Types) -> float:
            if (types, silent) not in reached:
                reached[types, silent] = self._reached(toward, types, silent)
            own_ms = own.get(name, WATERMARK_NONE)
            late_ms = -inf if speaks else inf if own_ms is None else own_ms - BEHIND_MS
            return max(reached[types, silent], late_ms)

        over = claim.back.take_over(reached_ms)
        gone = [row for row in over if reached[row[1][2:]] >= row[1].over_ms]
        going = [row for row in over if reached[row[1][2:]] < row[1].over_ms]
        going += claim.back.take_until(tools.progress.ledger.awaited_by(toward))
        events_max = tools.limits.kept_back_events_max
        going += claim.back.take_first(events_max, claim.upto - SPAN_MAX)
        if going:
            self._forget(toward, gone)
            self._send(origin, toward, claim, going)
        else:
            self._go(origin, toward, claim, gone, now)

    def _forget(self, toward: str, gone: Sequence[Row]) -> None:
        for _, event in gone:
            self.places.get(toward, {}).pop(id(event.held.event), None)
        self._tools.counts["kept_back_let_go"] += len(gone)

    def _go(self, origin: str, toward: str, claim: Claim, gone: Sequence[Row], now: int) -> None:
        """Let these go, and owe what may be claimed without them."""
        self._forget(toward, gone)
        if gone and self._tools.progress.speaks(toward):
            self._tools.progress.ledger.owe(toward, now)
        elif gone:
            self._tools.say(origin, toward, claim, [], anyhow=not claim.back)

    def _forget_partners(self) -> None:
        """Forget what no event that is still to come can have for a partner."""
        tools = self._tools
        joined = {name: tools.partners.joined(name) for name in tools.router.neighbours}
        joined = {name: each for name, each in joined.items() if each.types}
        leading = tools.router.releases.probing.joined()
        if not (joined or leading):
            tools.router.expire(_END)
            return
        come = [
            self._reached(name, each.types, each.silent) - each.delta_t_ms
            for name, each in joined.items()
        ]
        come += [tools.leads.comes(name, each.types) - each.delta_t_ms for name, each in leading]
        before = min(come)
        if self._forgotten_ms < before < inf:
            self._forgotten_ms = int(before)
            tools.router.expire(self._forgotten_ms)

    def _reached(self, toward: str, types: Types, silent: Types) -> float:
        """Return the time that types have passed here, those that are silent where it tells."""
        tools = self._tools
        promised_ms = _reached(types, tools.partners.origins(toward), tools.promised)
        return min(promised_ms, tools.leads.reached(toward, silent))

    # --- what ends -------------------------------------------------------------------------

    def leave(self, peer: str) -> None:
        """Forget what waits before a neighbour, whose session has ended."""
        self.places.pop(peer, None)
        self._asks_less.pop(peer, None)

    def lose(self, claims: Iterable[tuple[str, Claim]]) -> None:
        """Forget what waits of an origin to which there is no way any more."""
        for toward, claim in claims:
            places = self.places.get(toward, {})
            for event in claim.back.values():
                places.pop(id(event.held.event), None)


def _reached(types: Types, origins: Origins, promised: Callable[[str], Watermarks]) -> float:
    """Return the time that all of these types have passed, as promised by all who send them."""
    least = inf
    for origin, sent in origins.items():
        by_type = promised(origin)
        for name in types:
            reached = by_type.get(name, WATERMARK_NONE if name in sent else None)
            if reached is not None:
                least = min(least, reached)
    return least
