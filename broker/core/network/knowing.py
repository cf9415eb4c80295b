"""How certain it is that a partner that has not come here is not there.

Owns what is certain toward each neighbour, as sessions, ways, operators and answers go by. Must not
know events. Invariant: whatever happens that `certainty` names as a reason to be uncertain is told
it before anything else is kept back; what waits then travels.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.core.network import frames
from broker.core.network.cell_hosts import CellHosts
from broker.core.network.cell_view import is_cell
from broker.core.network.certainty import Certainty
from broker.core.network.kept_back import Withholding
from broker.core.routing import messages as routing
from broker.core.routing.growing import Joined
from broker.core.routing.messages import LOCAL
from broker.engine.event.agent import WATERMARK_NONE

ASK_MS = 1_000  # hosts are asked to ask again, if that could make something certain, …
ASK_MS_MAX = 64_000  # … each time twice as late as before


class Knowing(CellHosts):
    """See the module."""

    _withheld: Withholding  # what waits, of which whoever relays takes care

    def _begin_knowing(self) -> None:
        """Begin; to be called once."""
        self._certainty = Certainty()
        self._bounds: dict[str, int | None] = {}  # by neighbour, until something changes
        self._joined: dict[str, Joined] = {}  # likewise
        self._ask_at: int | None = None
        self._ask_ms = ASK_MS
        self._on_frame[frames.Doubted] = self._doubted

    def _bound(self, toward: str) -> int | None:
        """What ends later than this has partners of which is heard here; None: nothing is sure."""
        if toward not in self._bounds:
            self._bounds[toward] = self._certain_after(toward)
        return self._bounds[toward]

    def _certain_after(self, toward: str) -> int | None:
        if not self.correlates or toward == LOCAL or toward in self._inside:
            return None
        types = self._joined_of(toward).types
        return self._certainty.certain_after(toward, types, self._origins(toward))

    def _joined_of(self, toward: str) -> Joined:
        """What a neighbour's operators join."""
        if toward not in self._joined:
            self._joined[toward] = self.router.joined(toward)
        return self._joined[toward]

    def _origins(self, toward: str) -> dict[str, tuple[str, ...]]:
        """The origins that are not beyond that neighbour, with their types."""
        ways = self.ways
        found = {name: ways.types[name] for name, via in ways.via.items() if via != toward}
        return {self.me: self.durable.network.types(), **found}

    def _be_uncertain(self) -> None:
        """Something has changed; what waits where nothing is sure any more travels."""
        self._bounds.clear()
        for toward in self._withheld.keeping():
            if self._bound(toward) is None:
                self._withheld.send_all(toward)

    # --- what is certain -------------------------------------------------------------------

    def _routed(self, sends: Sequence[routing.Send]) -> None:
        self._joined.clear()
        super()._routed(sends)
        for send in sends:
            if isinstance(send.message, routing.Events):
                self._withheld.find_partners(send.to, send.message.events)

    def _routed_here(self, peer: str, one: frames.Routed) -> None:
        if isinstance(one.message, routing.Want) and one.message.operator.correlated:
            self._certainty.changed(peer)
            self._be_uncertain()
        super()._routed_here(peer, one)
        self._bounds.clear()
        self._ask_soon()

    def _leave(self, peer: str) -> None:
        self._certainty.left(peer)
        super()._leave(peer)

    def _here(self, peer: str, one: frames.Here) -> None:
        if self.ways.via.get(one.origin, peer) == peer:
            self._certainty.here(one.origin)
        super()._here(peer, one)
        self._be_uncertain()
        self._ask_soon()

    def _gone(self, origin: str, peer: str) -> None:
        types = () if is_cell(origin) else self.ways.types.get(origin, ())
        claims = self.ways.claims(origin)
        hosts = [(toward, claim.hosts) for toward, claim in claims if toward != LOCAL]
        self._certainty.gone(origin, types, hosts)
        super()._gone(origin, peer)
        self._be_uncertain()

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        self._certainty.forget(broker)
        self.ways.promises.forget(broker)
        self._be_uncertain()

    def _asked_of(self, peer: str, one: frames.Reoffer) -> None:
        """A host beyond a neighbour asks an origin."""
        reachable = one.origin == self.me or one.origin in self.ways.via
        self._certainty.asked(peer, one, reachable=reachable)
        self._be_uncertain()

    def _answered(self, peer: str, one: frames.Offered) -> None:
        """An origin answers a host beyond a neighbour."""
        self._certainty.answers(peer, one)
        if one.what.origin != self.me and one.what.origin in self.ways.came:
            came = self.ways.came[one.what.origin]
            came.life = one.what.life
            heard = one.what.watermarks.items()
            came.watermarks |= {name: at for name, at in heard if at != WATERMARK_NONE}
        self._bounds.clear()
        self._ask_soon()

    def _offered(self, peer: str, one: frames.Offered) -> None:
        via = self.ways.via.get(one.host)
        if one.host != self.me and via is not None and via != peer:
            self._answered(via, one)
        super()._offered(peer, one)

    def _doubted(self, peer: str, one: frames.Doubted) -> None:
        if self.ways.via.get(one.origin) == peer:
            for toward, _ in self.ways.claims(one.origin):
                if toward == LOCAL:
                    self._ask_quietly(one.origin)
                else:
                    self._say(toward, one)

    # --- asking for questions --------------------------------------------------------------

    def _ask_soon(self) -> None:
        """Have hosts ask again before long, where that may make something certain."""
        if self.correlates and self._ask_at is None:
            self._ask_at, self._ask_ms = self._now + ASK_MS, ASK_MS

    def _ask_for_questions(self) -> None:
        """Where a neighbour's operators join events and nothing is certain: who asks anew says
        whom it waits for, and the answers say how far they have come.
        """
        if self._ask_at is None or self._ask_at > self._now:
            return
        self._ask_at = None
        for peer in self.sessions.standing:
            if peer in self._inside or not self._joined_of(peer).types:
                continue
            if self._certain_after(peer) is not None:
                continue
            self._ask_at = self._now + self._ask_ms
            if self._certainty.may_ask(peer, [self.me, *self.ways.via]):
                for origin, _ in self.ways.toward(peer):
                    self._say(peer, frames.Doubted(origin))
        self._ask_ms = min(2 * self._ask_ms, ASK_MS_MAX)
