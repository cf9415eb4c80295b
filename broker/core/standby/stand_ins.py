"""A broker as a home that has a stand-in, and as the stand-in of other homes.

Owns the joining of both with the broker that it is a part of. Must not know tasks or MQTT.
Invariant: what the core has handled is told here in order; what others are to hear of it leaves
behind the record that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from broker.core import messages as core_messages
from broker.core.effects import Effect, ReleaseResults, Reply
from broker.core.recovery.durable import DurableBroker
from broker.core.refusals import ITSELF, LEASED, NO_COPY, REACHABLE, refused, trouble
from broker.core.standby.adoption import answer_of
from broker.core.standby.guarded_home import GuardedHome
from broker.engine.runtime.budget import Slices
from broker.network.delivery.lease import LeaseGrants
from broker.network.delivery.messages import (
    HomeChanged,
    HomeEntrusted,
    HomeKept,
    LeaseAsked,
    LeaseGranted,
)
from broker.network.delivery.succession import HomeTaken, Succeeded, SuccessionExchange
from broker.network.effects import Note
from broker.network.frames import told
from broker.network.frames.messages import ResultsDelivered, ResultsRead, TakeOverRequested
from broker.network.neighbours.sessions import FrameSender
from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import Which
from broker.network.placement.cell_view import is_cell
from broker.network.placement.mail import CellMail

_OF_HOME = (cell_messages.Wanted, cell_messages.Hosted, cell_messages.Ended)
EARLY_MAX = 1_000
SUCCESSIONS_SINCE = 4  # the version of frames that has them


class SessionView(Protocol):
    """The neighbours with whom sessions are established."""

    @property
    def standing(self) -> list[str]:
        """Return their names."""

    def version(self, peer: str) -> int:
        """Return the version of a neighbour's frames."""


class StandIns:
    """The part of a broker in its process `epoch`.

    `tell` has the core handle a message; `look_at_needs` and `look_at_cells` have the broker see
    what is needed and what runs where, and `leave` has no cell stay at a broker, for a reason.
    """

    def __init__(  # noqa: PLR0913, PLR0917  # what a part is lent, each its own kind
        self,
        durable: DurableBroker,
        epoch: int,
        mail: CellMail,
        sender: FrameSender[Effect],
        sessions: SessionView,
        tell: Callable[[told.Told], None],
        look_at_needs: Callable[[], None],
        look_at_cells: Callable[[], None],
        leave: Callable[[str, str], None],
    ) -> None:
        network = durable.network
        self.me = durable.options.name
        self._durable = durable
        self._network = network
        self._mail = mail
        self._via = sender.via
        self._sender = sender
        self._sessions = sessions
        self._tell = tell
        self._look_at_needs = look_at_needs
        self._look_at_cells = look_at_cells
        self._leave = leave
        self.effects: list[Effect] = []  # to be carried out behind what the core wants
        self.home = GuardedHome(durable, epoch, mail, self._via, tell, self._neighbours)
        self.feed = self.home.feed
        self.grants = LeaseGrants()
        self._asked: dict[str, LeaseAsked] = {}  # for their leases, by these homes, just now
        self._wanted: list[TakeOverRequested] = []  # just now, too
        self._exchange = SuccessionExchange(network.successions, self._say, tell)
        mail.withholds, mail.home_of = self._withholds, network.successions.home_of
        mail.on_said |= {
            HomeEntrusted: self._entrusted,
            HomeChanged: self._entrusted,
            HomeKept: self.feed.heard,
            LeaseAsked: self._lease_asked,
            LeaseGranted: self.home.lease_granted,
        }
        # What an heir said that is not known as such here yet.
        self._early: dict[tuple[str, Which, type], Callable[[], None]] = {}
        for kind in _OF_HOME:
            mail.on_said[kind] = partial(self._of_home, mail.on_said[kind])

    def join(
        self,
        on_message: dict[type[Any], Callable[[Any], Slices[None] | None]],
        on_frame: dict[type[Any], Callable[[str, Any], None]],
    ) -> None:
        """Take messages and frames that are for this part alone."""
        on_message[TakeOverRequested] = self.take_over
        on_message[ResultsDelivered] = self.home.note_delivered
        on_message[ResultsRead] = self.home.note_read
        on_frame[Succeeded] = self._hear

    def _say(self, peer: str, frame: Succeeded, rests: bool) -> None:
        self._sender.say(peer, frame, self._durable.number if rests else 0)

    # --- as a home -------------------------------------------------------------------------

    def told(self, message: core_messages.Message, effects: Sequence[Effect], now: int) -> None:
        """Have the stand-in hear of what a message has changed, and of its results."""
        what = message.what if isinstance(message, core_messages.NetworkTold) else None
        if self.home.is_fencing:
            self.home.change(message, effects, now)
        if isinstance(what, Succeeded | HomeTaken):
            rests = isinstance(what, HomeTaken)
            self._exchange.spread(self._sessions.standing, rests=rests)
            self._succeeded(what)

    def _of_home(self, hear: Callable[[str, Any], None], home: str, said: Any) -> None:
        """Hear what a home says of a cell; of an heir, once it is known as such.

        Control passes what is said of cells on its way, but where a journal holds it up.
        """
        if self._network.successions.home_of(said.which.cell) == home:
            hear(home, said)
            return
        self._early[home, said.which, type(said)] = partial(hear, home, said)
        if len(self._early) > EARLY_MAX:
            del self._early[next(iter(self._early))]

    def _hear_early(self) -> None:
        for key in list(self._early):
            if self._network.successions.home_of(key[1].cell) == key[0]:
                self._early.pop(key)()

    def _succeeded(self, what: Succeeded | HomeTaken) -> None:
        words: dict[str, str | int] = {"home": what.home}
        if isinstance(what, HomeTaken):
            words["subscriptions"] = len(self._network.adoption.last.subscriptions)
            self.effects.append(Note("warning", "took_over", words))
        elif what.home == self.me:
            words |= {"by": what.heir, "subscriptions": len(self._network.left)}
            self.effects.append(Note("warning", "taken_over", words))
            self.effects.append(self._network.adoption.disowns)
            self.home.disown(self._network.adoption.disowns)
        self._look_at_needs()
        self._look_at_cells()
        if isinstance(what, HomeTaken):
            self._leave(what.home, "its home was taken over")
        self._hear_early()

    def _withholds(self, to: str, said: cell_messages.Said) -> bool:
        if not self.feed.stand_in:
            return False
        return self.feed.withholds(to, cell_messages.encoded(said), cell_messages.line_of(said))

    def look(self, now: int) -> list[Effect]:
        """Say what is due; what is to be done besides."""
        if self.home.is_fencing and (upto := self.home.look(now)):
            self.effects.append(ReleaseResults(upto))
        if self._asked:
            self._grant(now)
        if self._wanted:
            self._look_at_wanted(now)
        if self._network.standing_in.homes or self.grants.homes:
            self._look_at_lapsed(now)
        effects, self.effects = self.effects, []
        return effects

    def _neighbours(self) -> list[str]:
        """Return the neighbours that can stand in."""
        return [peer for peer in self._sessions.standing if self._understands(peer)]

    def _understands(self, peer: str) -> bool:
        return not is_cell(peer) and self._sessions.version(peer) >= SUCCESSIONS_SINCE

    def next_wake(self) -> int | None:
        """Return when `look` is due."""
        wakes = [self.home.next_wake(), self.grants.next_wake()]
        return min([wake for wake in wakes if wake is not None], default=None)

    # --- as a stand-in ---------------------------------------------------------------------

    def _entrusted(self, home: str, message: HomeEntrusted | HomeChanged) -> None:
        """Take in what a home says of itself. Raises ValueError where another says it."""
        if message.home != home or home == self.me:
            raise ValueError(f"{home} tells of the subscriptions of {message.home}")
        kept = self._network.standing_in
        lacks = isinstance(message, HomeChanged) and not kept.follows(message)
        if not lacks and not kept.knows(message):
            self._tell(message)
        if not isinstance(message, HomeEntrusted) or message.state:
            self._mail.tell(home, kept.reached(home, lacks=lacks))

    def _lease_asked(self, home: str, asked: LeaseAsked) -> None:
        self._asked[home] = asked  # it is answered as of the time of this message, by `look`

    def _grant(self, now: int) -> None:
        asked, self._asked = self._asked, {}
        for home, question in asked.items():
            copy = self._network.standing_in.homes.get(home)
            is_followed = copy is not None and copy.run == question.run
            if is_followed and self.grants.grant(home, now):
                self._mail.tell(home, LeaseGranted(question.run, question.number))

    def _look_at_lapsed(self, now: int) -> None:
        """Take over the homes whose leases have lapsed: they give out nothing by now."""
        homes = self._network.standing_in.homes
        leases = [(name, copy.lease_ms) for name, copy in homes.items() if copy.lease_ms]
        for home in self.grants.look(leases, now):
            copy, inherited = homes[home], self._network.adoption.inherited
            if copy.rows or copy.given.end > inherited.upto(copy.epoch):
                self._tell(HomeTaken(home))
            else:  # nobody would notice
                self.grants.grant(home, now)

    def take_over(self, message: TakeOverRequested) -> None:
        """Take over a home, or say why not: as of the time of this message, by `look`."""
        self._wanted.append(message)

    def _look_at_wanted(self, now: int) -> None:
        wanted, self._wanted = self._wanted, []
        for message in wanted:
            self._take_over(message, now)

    def _take_over(self, message: TakeOverRequested, now: int) -> None:
        home = message.home
        refusal = self._refusal(home, now, is_forced=message.is_forced)
        if refusal is not None:
            payload = refused([refusal]).payload()
        else:
            self._tell(HomeTaken(home))
            payload = msgspec.json.encode(answer_of(self._network.adoption.last))
        after = self._durable.number
        self.effects.append(
            Reply(message.reply_to, message.client, "take-over", payload, after=after)
        )

    def _refusal(self, home: str, now: int, *, is_forced: bool) -> Any:
        if home == self.me:
            return trouble(ITSELF, home=f"`{home}`")
        if home not in self._network.standing_in.homes:
            return trouble(NO_COPY, home=f"`{home}`", me=f"`{self.me}`")
        if home in self._via and not is_forced:
            return trouble(REACHABLE, home=f"`{home}`")
        if (left_ms := self._lease_left_ms(home, now)) and not is_forced:
            words = {"home": f"`{home}`", "me": f"`{self.me}`"}
            return trouble(LEASED, **words, left_s=-(-left_ms // 1_000))
        return None

    def _lease_left_ms(self, home: str, now: int) -> int:
        """Return how long a home may count on its lease; one just heard of for all of it."""
        lease_ms = self._network.standing_in.homes[home].lease_ms
        left_ms = self.grants.left_ms(home, now)
        return min(lease_ms, lease_ms if left_ms is None else left_ms)

    # --- successions -----------------------------------------------------------------------

    def stands(self, peer: str) -> None:
        """State all successions to a neighbour, ahead of anything else."""
        self._exchange.begin(peer, understands=self._understands(peer))

    def _hear(self, peer: str, frame: Succeeded) -> None:
        self._exchange.hear(peer, frame)

    def status(self) -> dict[str, Any]:
        """Return it for people."""
        return {
            **self.home.status(),
            "stands_in_for": self._network.standing_in.status(),
            "taken_over": self._network.successions.heirs(),
        }
