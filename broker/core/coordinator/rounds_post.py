"""The planning rounds of this broker among those of others, who number nothing as it does.

Owns the way between words with names and messages with numbers, and which version of its tables
each broker has. Must not know links. Invariant: the rounds have a summary of another broker only
while its digest is the one that follows from what is known here, so that both mean the same tables.

No tables travel. Of a turn that is agreed its moves do, and each member lays its tables by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.core.coordinator.dissemination import Dissemination
from broker.core.coordinator.known import Known
from broker.core.coordinator.laying import Laid, lay, summary_of
from broker.core.coordinator.statement import (
    Body,
    MoveWord,
    Submission,
    Turned,
    TurnMoves,
    VersionWord,
    encoded,
)
from planner.rounds import messages as m
from planner.rounds.machine import Rounds
from planner.rounds.post import Agreed, Effect, Send
from planner.rounds.tables import HERE
from planner.rounds.view import Ground, Summary


class RoundsPost:
    """Carry one broker's rounds; `laid` is the network in the numbers that they have.

    `moved` is called with the moves of each turn in which this broker takes part, `changed` where
    another network is to be laid once that may be.
    """

    def __init__(
        self,
        rounds: Rounds,
        known: Known,
        dissemination: Dissemination,
        say: Callable[[str, bytes], None],
        *,
        moved: Callable[[Iterable[MoveWord]], None],
        changed: Callable[[], None],
    ) -> None:
        self.rounds = rounds
        self.me = dissemination.me
        self.laid: Laid | None = None
        self._known = known
        self._dissemination = dissemination
        self._say = say
        self._moved = moved
        self._changed = changed
        self._versions: dict[str, VersionWord] = {}
        self._stated: int | None = None  # this broker's digest, as it was said last
        self._epoch = 0
        self._agreed: tuple[MoveWord, ...] = ()
        self._unstated: tuple[MoveWord, ...] = ()  # agreed on since the last version was stated

    @property
    def ready(self) -> bool:
        """Tell whether another network can be laid without breaking a turn or a promise."""
        return self.laid is None or not self.rounds.busy

    def forget(self, broker: str) -> None:
        """There is no way to a broker; if it is back its versions begin again."""
        self._versions.pop(broker, None)

    # --- the network --------------------------------------------------------------------------

    def lay(self, now: int, *, afresh: bool, over: tuple[str, int] = ("", 0)) -> None:
        """Plan with what is known by now; `afresh`: whatever is under way is void.

        `over` is the turn (leader, number) that ends with it.
        """
        before = self.laid
        if before is not None and (afresh or over[0]):
            self._carry(self.rounds.withdraw(now), now)
        if afresh:
            self._dissemination.followers.clear()
        afresh = afresh or before is None
        reach = self.rounds.settings.radius if afresh else self.rounds.radius
        laid = lay(self._known, self._dissemination.geography, reach, self.planned)
        same = before is not None and (laid.digests, laid.names) == (before.digests, before.names)
        if same and not afresh and not over[0]:
            return
        if before is not None and not afresh and laid.names != before.names:
            self._carry(self.rounds.withdraw(now), now)
        leader = -1 if before is None else before.numbers.get(over[0], -1)
        self.laid = laid
        ground = self._ground(laid)
        if afresh:
            self._epoch += 1
            effects = self.rounds.stand(self._epoch, ground, now)
        else:
            is_other = laid.digests.get(self.me) != self._stated
            effects = self.rounds.shift(ground, now, is_other=is_other, over=(leader, over[1]))
        self._carry(effects, now)
        self._unstated = ()

    def planned(self, word: Submission) -> tuple[str, int]:
        """Return (host, term) of a submission as brokers agreed on last."""
        return self._known.planned(word.piece)

    def _ground(self, laid: Laid) -> Ground:
        summaries: dict[int, Summary] = {}
        unclear: list[int] = []
        for name, word in self._versions.items():
            number = laid.numbers.get(name)
            if number is not None and number in laid.tables:
                if word.digest == laid.digests.get(name):
                    summaries[number] = self._summary(laid, name, word)
                else:
                    unclear.append(number)
        me = laid.numbers[self.me]
        return Ground(me, laid.layout, laid.tree, laid.tables[me], summaries, unclear)

    def _summary(self, laid: Laid, name: str, word: VersionWord) -> Summary:
        number = laid.numbers[name]
        return summary_of(number, self._known.brokers[name], laid.tables[number], word.version)

    # --- what others say ------------------------------------------------------------------------

    def hear(self, word: Turned, peers: Iterable[str], now: int) -> None:
        """A word of another's rounds, for this broker; to be told to these peers, too."""
        body = word.body
        if isinstance(body, VersionWord):
            if body.hops and not word.to:
                onward = encoded(Turned(word.origin, "", self._nearer(body)))
                for peer in peers:
                    self._say(peer, onward)
            before = self._versions.get(word.origin)
            if before is None or before.version < body.version:
                self._versions[word.origin] = body
                if self._known.move(body.moves):
                    self._lay_soon(now)
                self._understand(word.origin, body, now)
        elif isinstance(body, TurnMoves):
            self._take_moves(word.origin, body, now)
        elif isinstance(body, m.Want):
            self._dissemination.follow(word.origin)
            if self.laid is not None:
                self._state(self.laid, word.origin)
        elif self.laid is not None and word.origin in self.laid.numbers:
            self._receive(word.origin, body, now)
        elif isinstance(body, m.Reserve):  # it is not planned with yet, and asks again
            self._answer(word.origin, m.Refuse(body.turn, stale=False))

    def _answer(self, to: str, body: Body) -> None:
        self._dissemination.send(to, Turned(self.me, to, body))

    def _state(self, laid: Laid, follower: str) -> None:
        """Tell one who looks as far as here of this broker's version."""
        self._answer(follower, VersionWord(self.rounds.version, laid.digests[self.me], 0))

    def _nearer(self, word: VersionWord) -> VersionWord:
        return VersionWord(word.version, word.digest, word.hops - 1, word.moves)

    def _understand(self, origin: str, word: VersionWord, now: int) -> None:
        """Have the rounds know a version, if the same follows from what is known here."""
        laid = self.laid
        number = None if laid is None else laid.numbers.get(origin)
        if laid is None or number is None or number not in laid.tables:
            return
        if word.digest == laid.digests.get(origin):
            self._receive(origin, m.Tell(self._summary(laid, origin, word), 0), now)
        else:
            self.rounds.unclear[number] = None

    def _take_moves(self, leader: str, word: TurnMoves, now: int) -> None:
        """A turn is agreed, also if what was promised here is void by now."""
        self._known.move(word.moves)
        self._moved(word.moves)
        self._unstated += word.moves
        if self.laid is not None:
            number = self.laid.numbers.get(leader, -1)
            held = self.rounds.promise.held
            if held is not None and held[:2] == (number, word.turn):
                self.lay(now, afresh=False, over=(leader, word.turn))
            else:
                self._lay_soon(now)

    def _lay_soon(self, now: int) -> None:
        """Lay with what brokers agreed on, or once the turn that is under way is over."""
        if self.ready:
            self.lay(now, afresh=False)
        else:
            self._changed()

    def _receive(self, origin: str, body: m.Body, now: int) -> None:
        assert self.laid is not None
        numbers = self.laid.numbers
        envelope = m.Envelope(self._epoch, numbers[origin], numbers[self.me], body)
        self._carry(self.rounds.receive(envelope, now), now)

    def next_wake(self) -> int | None:
        """When to wake next; None: not before something comes."""
        return None if self.laid is None else self.rounds.next_wake()

    def wake(self, now: int) -> None:
        """The time that the rounds named has come."""
        self._carry(self.rounds.wake(now), now)

    def drain(self, now: int, *, drained: bool) -> None:
        """Nothing more is to be taken up here, and what runs here is to go; or that is over."""
        self._carry(self.rounds.drain(now, drained=drained), now)

    # --- what the rounds say ----------------------------------------------------------------------

    def _carry(self, effects: list[Effect], now: int) -> None:
        """Send what is to be sent; that somebody hosts or leaves is the home's to bring about."""
        laid = self.laid
        is_agreed, is_stated = any(isinstance(effect, Agreed) for effect in effects), False
        for effect in effects if laid is not None else ():
            if isinstance(effect, Agreed) and laid is not None:
                self._agreed = tuple(self._named(laid, move) for move in effect.moves)
            elif isinstance(effect, Send) and laid is not None:
                body = effect.envelope.body
                if not (is_agreed and isinstance(body, m.Tell)):  # it follows with the new tables
                    is_stated = is_stated or isinstance(body, m.Tell)
                    self._send(laid, effect)
        if is_stated and laid is not None:
            for follower in self._dissemination.followers:
                self._state(laid, follower)
        if is_agreed:
            self._known.move(self._agreed)
            self._moved(self._agreed)
            self._unstated += self._agreed
            self._lay_soon(now)

    def _named(self, laid: Laid, move: tuple[int, int, int]) -> MoveWord:
        piece = laid.pieces[move[0]]
        term = self._known.planned(piece)[1] + 1 if piece in self._known.submissions else 0
        return (*piece, laid.names[move[1]], laid.names[move[2]], term)

    def _send(self, laid: Laid, effect: Send) -> None:
        to = "" if effect.envelope.to == HERE else laid.names[effect.envelope.to]
        body = self._body(laid, effect.envelope.body, to)
        self._say(laid.names[effect.neighbour], encoded(Turned(self.me, to, body)))

    def _body(self, laid: Laid, body: m.Body, to: str) -> Body:
        match body:
            case m.Tell(summary, hops):
                self._stated = laid.digests[self.me]
                return VersionWord(summary.version, self._stated, hops, self._unstated)
            case m.Commit(turn, _, moves):
                self._introduce(laid, moves, to)
                return TurnMoves(turn, self._agreed)
            case m.Want():
                for name in self._dissemination.geography.way(to) or ():
                    if name in self._known.brokers:
                        self._dissemination.enclose(to, self._known.brokers[name])
                return body
            case _:
                return body

    def _introduce(self, laid: Laid, moves: Iterable[tuple[int, int, int]], to: str) -> None:
        """Tell a member of what is moved to where nobody may have heard of it."""
        for number, whence, _ in moves:
            word = self._known.submissions.get(laid.pieces[number])
            hops = laid.tree.hops(whence).get(laid.numbers[to], 0)
            if word is not None and hops > word.scope:
                self._dissemination.enclose(to, word)
