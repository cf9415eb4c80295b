"""What passes a broker on its way from an origin to hosts.

Owns which events go to whom at once, which wait for a partner, and what is claimed and promised of
an origin meanwhile. Must not know subscriptions. Invariant: what is kept back is neither claimed
nor passed by a promise; it is let go only when no partner can come any more, by the promises of all
who may send one; whatever else ends the waiting has it travel. So more may travel, and no event
that is needed is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import cast

from broker.core.network import frames, told
from broker.core.network.knowing import Knowing
from broker.core.network.networked import PROMISE_MS, Fresh
from broker.core.network.sending import Row, forwarded
from broker.core.network.ways import Claim
from broker.core.recovery.durable_events import unpacked
from broker.core.routing import messages as routing
from broker.core.routing.matching import Waiting
from broker.core.routing.messages import LOCAL
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event

TICK_MS = 500  # how soon it is looked whether time alone lets something be promised
SPAN_MAX = 65_536  # positions from the first that is kept back: hosts remember those that came
BEHIND_MS = 1_000  # an event's own type goes on so much longer than its partners may take
_END = 2**62


class Relaying(Knowing):
    """See the module."""

    def _begin_relaying(self) -> None:
        """Begin; to be called once."""
        self._begin_knowing()
        self._tick_at: int | None = None
        self._tick_ms = TICK_MS
        self._told_before: told.Watermarks = dict(self.durable.network.told)
        self._forgotten_ms = WATERMARK_NONE  # what began before is not remembered as a partner
        self._places: dict[str, dict[int, tuple[str, int]]] = {}  # of what is kept back
        self._on_frame[frames.Passed] = self._passed

    def _tick_soon(self, wait_ms: int) -> None:
        due = self._now + wait_ms
        self._tick_at = due if self._tick_at is None else min(self._tick_at, due)

    # --- events ----------------------------------------------------------------------------

    def _spread_own(self, fresh: list[Fresh]) -> None:
        """Pass on what happened here, all in one."""
        rows = [row for one in fresh for row in enumerate(one.events, one.first)]
        watermarks: told.Watermarks = {}
        for one in fresh:
            watermarks.update(one.watermarks)
        claim = (fresh[0].first - 1, fresh[-1].last)
        if self._lacking(fresh):  # a claim with a gap before it, which all are to see at once
            claim = (fresh[-1].last, fresh[-1].last)
            watermarks = dict(self.durable.network.told)
        life = self.durable.network.own.life
        what = told.Forwarded(self.me, life, *claim, [], b"", watermarks)
        self._spread(LOCAL, what, rows, self._told_before)
        self._told_before = dict(self.durable.network.told) if self.correlates else {}
        if rows:  # time may stand still for long, too
            self._tick_soon(PROMISE_MS)
            self._tick_ms = TICK_MS

    def _lacking(self, fresh: list[Fresh]) -> bool:  # noqa: ARG002
        """Whether somebody may want some of this who could not ask for it yet."""
        return False

    def _passed(self, peer: str, one: frames.Passed) -> None:
        what = one.what
        if self.ways.via.get(what.origin) != peer:
            self.counts["frames_astray"] += 1
            return
        came = self.ways.came[what.origin]
        if not came.goes_on(what.after, one.serial):
            self._not_all_came(what.origin)
        came.life = what.life
        came.upto, came.complete = max(what.upto, came.upto or 0), what.complete
        before = dict(came.watermarks) if self.correlates else {}
        came.watermarks.update(what.watermarks)
        rows = list(zip(what.positions, unpacked(what.events), strict=True))
        self._spread(peer, what, rows, before)

    def _not_all_came(self, origin: str) -> None:
        """Something of an origin was lost: all beyond are to see that, and hosts ask again."""
        self._certainty.missed(origin)
        self._be_uncertain()
        for toward, claim in self.ways.claims(origin):
            if toward == LOCAL:
                self._missed(origin)
            else:
                claim.serial += 1

    def _spread(
        self, came_from: str, what: told.Forwarded, rows: list[Row], before: told.Watermarks
    ) -> None:
        """Pass on what hosts beyond each neighbour, or this one, need of an origin.

        `before` is what was promised before these events.
        """
        wanted, waiting = self._wanted(came_from, [event for _, event in rows])
        place = {id(event): position for position, event in rows}
        here: list[told.Forwarded] = []
        for toward, claim in self.ways.claims(what.origin):
            if toward == came_from:
                continue
            claim.extend(what.after, what.upto, what.watermarks)
            some = [
                (place[id(event)], event) for event in wanted.get(toward, ()) if id(event) in place
            ]
            for one in waiting.get(toward, ()):
                position = place[id(one.held.event)]
                if self._may_wait(toward, one, before):
                    claim.back[position] = one
                    self._places.setdefault(toward, {})[id(one.held.event)] = what.origin, position
                    self.counts["kept_back"] += 1
                else:
                    one.held.sent |= self.router.bit(toward)
                    some.append((position, cast("Event", one.held.event)))
            here += self._say_claim(what.origin, toward, claim, some)
        for toward, events in wanted.items():
            self._find_partners(toward, [event for event in events if id(event) not in place])
        for part in here:
            self._take(part)
        self._let_go()

    def _say_claim(
        self, origin: str, toward: str, claim: Claim, rows: list[Row], *, anyhow: bool = False
    ) -> list[told.Forwarded]:
        """Say what is to be said of an origin; what is for this broker itself is returned."""
        if not rows and not anyhow and not (claim.watermarks and claim.sayable()):
            return []
        after, upto, promised = claim.take()
        life, complete, behind = self.durable.network.own.life, upto, self.durable.number
        if origin != self.me:
            came = self.ways.came[origin]
            life, complete, behind = came.life, came.complete, 0
        complete = claim.complete(complete)
        held_after = complete if complete < upto else None
        parts = forwarded(origin, life, (after, upto), rows, promised, held_after)
        if toward == LOCAL:
            return parts
        for part in parts:
            claim.serial += 1
            self._say(toward, frames.Passed(part, claim.serial), behind, len(part.positions))
        return []

    def _wanted(
        self, came_from: str, events: list[Event]
    ) -> tuple[dict[str, list[Event]], dict[str, list[Waiting]]]:
        """By neighbour what goes there now, and what of these events waits for a partner."""
        found: dict[str, list[Event]] = {}
        for send in self.router.events(came_from, events) if events else ():
            match send.message:
                case routing.Events(some, _):
                    found.setdefault(send.to, []).extend(some)
                case routing.Results(rows):
                    found.setdefault(send.to, []).extend([event for event, _ in rows])
        return found, self.router.waiting()

    # --- what waits ------------------------------------------------------------------------

    def _may_wait(self, toward: str, one: Waiting, before: told.Watermarks) -> bool:
        """Whether nothing speaks against keeping an event back."""
        bound = self._bound(toward)
        if bound is None or one.delta_t_ms > self.durable.limits.kept_back_ms_max:
            return False
        # A partner ends later than that, and is then known here, or comes.
        if one.held.end - one.delta_t_ms < max(bound, self._forgotten_ms):
            return False
        promised = before.get(one.held.event.event_type)
        return promised is not None and promised < one.held.end  # else nobody would wait for it

    def _promised(self, origin: str) -> told.Watermarks:
        return self.durable.network.told if origin == self.me else self.ways.came[origin].watermarks

    def _all_travel(self, toward: str) -> None:
        """Let all that waits travel."""
        if not self._places.pop(toward, None):
            return
        for origin, claim in self.ways.toward(toward):
            if claim.back:
                self._send_back(origin, toward, claim, claim.back.take(list(claim.back)))

    def _find_partners(self, toward: str, events: Sequence[Event]) -> None:
        """These have found partners: those that wait travel."""
        found: dict[str, list[int]] = {}
        places = self._places.get(toward, {})
        for event in events:
            origin, position = places.pop(id(event), ("", 0))
            if origin:
                found.setdefault(origin, []).append(position)
        claims = dict(self.ways.toward(toward)) if found else {}
        for origin, positions in found.items():
            if origin in claims:
                claim = claims[origin]
                self._send_back(origin, toward, claim, claim.back.take(positions))

    def _send_back(
        self, origin: str, toward: str, claim: Claim, some: list[tuple[int, Waiting]]
    ) -> None:
        """Let travel what was kept back until now."""
        rows: list[Row] = []
        for position, one in some:
            one.held.sent |= self.router.bit(toward)
            self._places.get(toward, {}).pop(id(one.held.event), None)
            rows.append((position, cast("Event", one.held.event)))
        if rows:
            self.counts["kept_back_sent"] += len(rows)
            self._say_claim(origin, toward, claim, rows)

    # --- time ------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Let go of what no partner can come for; what waited for too long travels."""
        for toward in self._keeping():
            origins = self._origins(toward)
            reached: dict[tuple[str, ...], float] = {}
            for origin, claim in self.ways.toward(toward):
                if claim.back:
                    self._look_through(origin, toward, claim, (origins, reached))
        self._forget_partners()

    def _look_through(
        self,
        origin: str,
        toward: str,
        claim: Claim,
        known: tuple[dict[str, tuple[str, ...]], dict[tuple[str, ...], float]],
    ) -> None:
        origins, reached = known
        own = self._promised(origin)

        def reached_ms(name: str, types: tuple[str, ...]) -> float:
            if types not in reached:
                reached[types] = self._reached(types, origins)
            at = own.get(name, WATERMARK_NONE)
            return max(reached[types], inf if at is None else at - BEHIND_MS)

        over = claim.back.take_over(reached_ms)
        gone = [one for _, one in over if reached[one.types] >= one.over_ms]
        going = [row for row in over if reached[row[1].types] < row[1].over_ms]
        most = self.durable.limits.kept_back_events_max
        going += claim.back.take_first(most, claim.upto - SPAN_MAX)
        for one in gone:
            self._places.get(toward, {}).pop(id(one.held.event), None)
        self.counts["kept_back_let_go"] += len(gone)
        if going:
            self._send_back(origin, toward, claim, going)
        elif gone:
            self._say_claim(origin, toward, claim, [], anyhow=not claim.back)

    def _reached(self, types: tuple[str, ...], origins: dict[str, tuple[str, ...]]) -> float:
        """The time that all events of these types have passed, as promised by all who send them."""
        least = inf
        for origin, sent in origins.items():
            promised = self._promised(origin)
            for name in types:
                at = promised.get(name, WATERMARK_NONE if name in sent else None)
                if at is not None:
                    least = min(least, at)
        return least

    def _forget_partners(self) -> None:
        """Forget what no event that is still to come can have for a partner."""
        if not self.correlates:
            self.router.expire(_END)
            return
        joined = [self._joined_of(name) for name in self.router.neighbours]
        types = dict.fromkeys([name for one in joined for name in one.types])
        if not types:
            self.router.expire(_END)
            return
        origins = {self.me: self.durable.network.types(), **self.ways.types}
        reached = self._reached(tuple(types), origins)
        if WATERMARK_NONE < reached < inf:
            before = int(reached) - max(one.delta_t_ms for one in joined)
            if before > self._forgotten_ms:
                self._forgotten_ms = before
                self.router.expire(before)

    def _keeping(self) -> list[str]:
        return [toward for toward, some in self._places.items() if some]

    # --- what ends -------------------------------------------------------------------------

    def _leave(self, peer: str) -> None:
        self._places.pop(peer, None)
        super()._leave(peer)

    def _gone(self, origin: str, peer: str) -> None:
        for toward, claim in self.ways.claims(origin):
            places = self._places.get(toward, {})
            for one in claim.back.values():
                places.pop(id(one.held.event), None)
        super()._gone(origin, peer)
