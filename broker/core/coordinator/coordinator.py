"""One broker's part in deciding where tasks run: words, changes and the time in, words out.

Owns the moments: when something is said, when it is planned with, when a task is asked to run
elsewhere. Must not know links, cells or clocks: they are `Around`. Invariant: what is agreed comes
about only by the home's `place`; and what a broker keeps and is told grows with what lies in its
vicinity, not with the network.

In short: each home states its submissions to those who may have their streams in view, and each
broker its limits to those around. Once all have been silent for a moment a broker lays the network
of what it knows, and states a digest of it; those who come to the same digest plan with each other.
Then the rounds agree on moves. The new host tells the home, which has the task run there and
states that. Whatever breaks (a session, a broker) makes a broker begin anew with what it knows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from broker.core.coordinator import bounds
from broker.core.coordinator.around import Around
from broker.core.coordinator.bounds import STAYS, CoordinatorSettings
from broker.core.coordinator.capacity import Capacity
from broker.core.coordinator.claims import HostClaim, HostClaims
from broker.core.coordinator.dissemination import Dissemination
from broker.core.coordinator.known import Known
from broker.core.coordinator.laying import Laid, lay
from broker.core.coordinator.metering import Metering, rates_of
from broker.core.coordinator.rounds_post import RoundsPost
from broker.core.coordinator.scope import Geography
from broker.core.coordinator.statement import (
    BrokerWord,
    Enclosed,
    HostingWord,
    Measured,
    MoveWord,
    Submission,
    Withdrawn,
    encoded,
    word_of,
)
from broker.core.coordinator.works import Works
from planner.rounds.machine import Rounds
from planner.rounds.units import scaled


class Coordinator:
    """Take one broker's part in deciding where tasks run.

    `life` ascends with each process; `rounds` is new. `untold` counts the submissions at home here
    of which too much would have to be said.
    """

    def __init__(
        self,
        me: str,
        life: int,
        settings: CoordinatorSettings,
        rounds: Rounds,
        around: Around,
    ) -> None:
        self.me = me
        self.settings = settings
        self.rounds = rounds
        self.known = Known()
        self.works = Works(me, STAYS * settings.measure_ms)
        self.claims = HostClaims(me)
        self.metering = Metering(settings, around.state_rate)
        self.capacity = Capacity(settings.capacity)
        self.drained = False
        self.untold = 0
        self.epoch = -1
        self.counts = dict.fromkeys(COUNTED, 0)
        self._around = around
        self._dissemination = Dissemination(me, around, self.known)
        self._post = RoundsPost(
            rounds,
            self.known,
            self._dissemination,
            around.say,
            moved=self._moved,
            changed=self._change,
        )
        self._life = life
        self._serial = 0
        self._now = 0
        self._look_at: int | None = 0
        self._changed: tuple[int, int] | None = None  # first and last since a network was laid
        self._is_void = True  # what is under way may have been lost on its way
        self._measure_at = 0
        # By the revision of what is known, the reach and the ways.
        self._running: tuple[tuple[int, int, Geography], Laid] | None = None

    # --- from outside -----------------------------------------------------------------------

    def touched(self, now: int) -> None:
        """Submissions, their inputs or their hosts may be others than before."""
        self._now = max(now, self._now)
        if self._look_at is None or self._look_at > self._now + bounds.LOOK_MS:
            self._look_at = self._now + bounds.LOOK_MS

    def stands(self, peer: str, now: int) -> None:
        """A session stands with a neighbour: it is told all that it is to know."""
        self.touched(now)
        self._dissemination.greet(peer)
        self._change()

    def gone(self, broker: str, now: int) -> None:
        """There is no way to a broker any more."""
        self.touched(now)
        self._post.forget(broker)
        if self.laid is not None and broker in self.laid.numbers:
            self._is_void = True
        if self.known.forget(broker) or self._is_void:
            self._change()

    def drain(self, now: int, *, drained: bool) -> None:
        """Nothing more is to be taken up here, and what runs here is to go; or that is over."""
        self._now = max(now, self._now)
        self.drained = drained
        self._state_limits()
        self._post.drain(self._now, drained=drained)

    def used(self, used_ms: int, granted_ms_per_s: int, now: int) -> None:
        """Measure anew, now that the process has used so much CPU since it began."""
        self._now = max(now, self._now)
        counts = self._around.counted()
        if self.capacity.look(counts, used_ms, granted_ms_per_s, self._now):
            self.rounds.limits = (scaled(self.capacity.bytes_per_s), self.rounds.limits[1])
            self._state_limits()

    def heard(self, peer: str, data: bytes, now: int) -> None:
        """A neighbour's word. Raises StatementError where it cannot be one."""
        self._now = max(now, self._now)
        word = word_of(data)
        if isinstance(word, BrokerWord | Submission | Withdrawn):
            home = word.broker if isinstance(word, BrokerWord) else word.home
            if not self._is_astray(peer, home):
                self._take(word, peer)
            return
        to = word.home if isinstance(word, Measured | HostingWord) else word.to or self.me
        if to != self.me:
            self._dissemination.relay(peer, to, data)
        elif isinstance(word, Measured):
            self._measured(word)
        elif isinstance(word, HostingWord):
            self._hosted(word)
        elif isinstance(word, Enclosed):
            inner = word_of(word.data)
            if isinstance(inner, BrokerWord | Submission | Withdrawn):
                self._take_enclosed(inner)
        elif not self._is_astray(peer, word.origin):
            others = [name for name in self._around.peers() if name != peer]
            self._post.hear(word, others, self._now)

    def wake(self, now: int) -> None:
        """The time that `next_wake` named has come, or may have."""
        self._now = max(now, self._now)
        if self._look_at is not None and self._look_at <= self._now:
            self._look()
        if self._measure_at <= self._now:
            self._measure()
        due = self._post.next_wake()
        if due is not None and due <= self._now:
            self._post.wake(self._now)
        lay_at = self._lay_at()
        if lay_at is not None and lay_at <= self._now:
            self._lay()

    def next_wake(self) -> int | None:
        """When to wake next; None: not before something happens."""
        times = (self._look_at, self._lay_at(), self._measure_at, self._post.next_wake())
        return min((time for time in times if time is not None), default=None)

    @property
    def laid(self) -> Laid | None:
        """The network that is planned."""
        return self._post.laid

    @property
    def quiet(self) -> bool:
        """Tell whether nothing is under way: nothing is to be laid, agreed on or asked."""
        return self._changed is None and self.rounds.quiet and not self.works.wishes

    @property
    def _reach(self) -> int:
        """Return the hops that this broker looks by now."""
        return self.settings.radius if self.laid is None else self.rounds.radius

    def running(self) -> Laid:
        """Return the network with all tasks where they run, or were asked to, for people."""
        geography, reach = self._dissemination.geography, self._reach
        key = self.known.revision, reach, geography
        if self._running is None or self._running[0] != key:
            laid = lay(self.known, geography, reach, lambda word: (word.host, word.term))
            self._running = key, laid
        return self._running[1]

    # --- what is said -----------------------------------------------------------------------

    def _is_astray(self, peer: str, broker: str) -> bool:
        astray = broker == self.me or self._around.via(broker) != peer
        self.counts["words_astray"] += astray
        return astray

    def _take(self, word: BrokerWord | Submission | Withdrawn, peer: str | None = None) -> None:
        """Know what is newer; it goes on where a neighbour said it, and not to this one alone."""
        if isinstance(word, BrokerWord):
            if self.known.put_broker(word):
                if peer is not None:
                    self._dissemination.pass_broker(word, peer)
                self._change()
            return
        piece = word.home, word.key
        before, content = self.known.submissions.get(piece), self.known.content(piece)
        if isinstance(word, Submission):
            is_newer = self.known.put(word)
        else:
            is_newer = self.known.withdraw(word) is not None
        if is_newer and peer is not None:
            self._dissemination.pass_submission(word, before, peer)
        is_kept = isinstance(word, Withdrawn) or self._dissemination.keeps(word, self._reach)
        if content != self.known.content(piece) or not is_kept:
            self._change()

    def _take_enclosed(self, word: BrokerWord | Submission | Withdrawn) -> None:
        """Take what came from farther than words travel, of brokers to whom there is a way."""
        home = word.broker if isinstance(word, BrokerWord) else word.home
        if home == self.me or self._around.via(home) is None:
            self.counts["words_astray"] += 1
        else:
            self._take(word)

    def _look(self) -> None:
        """Read what is at home here, and state what differs from what was stated last."""
        reached = self._around.overlay().hops
        self.works.put(self._around.works(), reached, self._now)
        self._look_at = self.works.due(self._now)
        if self.me not in self.known.brokers:
            self._state_limits()
        self._state()
        self._settle_hosts()

    def _state_limits(self) -> None:
        """Say what this broker may take and send, to all who may look as far as here."""
        self._serial += 1
        hops = min(max(2 * self.settings.radius, self.settings.radius + 1), bounds.HOPS_MAX)
        limits = (self.capacity.bytes_per_s, self.settings.egress, self.settings.link)
        word = BrokerWord(self.me, self._life, self._serial, hops, *limits, self.drained)
        self.counts["statements"] += 1
        self._take(word, "")

    def _state(self, key: str = "") -> None:
        """State each submission at home here, or that of a key, if it is other than stated."""
        if key and (self.me, key) not in self.known.submissions:
            return  # not stated yet, or left out: that is decided with all others
        reached = self._around.overlay().hops
        size = untold = 0
        for need in self.works.needs(key):
            claim = self.claims.settle(need.key, need.host, need.not_at, reached)
            word = Submission(
                self.me, self._life, 0, self.settings.radius, need.key, need.name, need.host,
                claim.host, claim.term, need.inputs, need.rates, need.sends, need.not_at,
                need.filters,
            )  # fmt: skip
            length = len(encoded(word))
            size += length
            is_long = length > bounds.SUBMISSION_BYTES_MAX or size > bounds.STATEMENT_BYTES_MAX
            if is_long or not self._restate(word):
                untold += 1
                self._withdraw(need.key)
        if not key:
            self.untold = self.works.untold + untold
            self.claims.keep(self.works)
            for home, gone in list(self.known.submissions):
                if home == self.me and gone not in self.works:
                    self._withdraw(gone)

    def _restate(self, word: Submission) -> bool:
        """State a submission, if anything of it is other than stated; False: no room is left."""
        before = self.known.submissions.get(word.piece)
        serial = self._serial if before is None else before.serial
        if before is None or before != msgspec.structs.replace(word, serial=serial):
            self._serial += 1
            word = msgspec.structs.replace(word, serial=self._serial)
            if not self.known.has_room(word):
                return False
            self.counts["statements"] += 1
            self._take(word, "")
        return True

    def _withdraw(self, key: str) -> None:
        if (self.me, key) in self.known.submissions:
            self._serial += 1
            self._take(Withdrawn(self.me, self._life, self._serial, key), "")

    # --- the network --------------------------------------------------------------------------

    def _change(self) -> None:
        """Something is other than planned with: a network is laid soon, with what holds then."""
        first = self._now if self._changed is None else self._changed[0]
        self._changed = first, self._now

    def _lay_at(self) -> int | None:
        if self._changed is None or not (self._is_void or self._post.ready):
            return None  # a turn is under way; its end wakes this broker
        first, last = self._changed
        return min(last + bounds.SETTLE_MS, first + bounds.SETTLE_MS_MAX)

    def tree_changed(self, now: int) -> None:
        """The tree of all brokers is another."""
        self.touched(now)
        self._is_void = True
        self._change()

    def _lay(self) -> None:
        """All have been silent: plan with what is known by now."""
        self._changed = None
        if self.me not in self.known.brokers:
            return
        reach = 0 if self._is_void else self._reach
        self.known.keep(lambda word: self._dissemination.keeps(word, reach))
        if self._is_void:
            self.counts["epochs"] += 1
            self.epoch = int(self._around.overlay().id, 16)
        is_void, self._is_void = self._is_void, False
        self._post.lay(self._now, afresh=is_void)

    def _moved(self, moves: Iterable[MoveWord]) -> None:
        """Brokers agreed on moves, this one among them: the homes of what comes here are told."""
        for home, key, whence, to, term in moves:
            if to == self.me:
                before = self.known.brokers.get(whence)
                urgent = before is not None and before.drained
                word = HostingWord(home, key, self.me, term, urgent)
                if home == self.me:
                    self._hosted(word)
                else:
                    self._dissemination.send(home, word)

    def _hosted(self, word: HostingWord) -> None:
        """A broker is to run what is at home here."""
        claim = HostClaim(word.term, word.host, urgent=word.urgent)
        if word.key in self.works and self.claims.take(word.key, claim):
            self._state(word.key)
            self._settle_hosts()

    def _settle_hosts(self) -> None:
        """Have what is at home here run where it is planned to."""
        hops = self._around.overlay().hops
        wanted: dict[str, str] = {}
        known = dict.fromkeys(hops, False)
        known |= {name: word.drained for name, word in self.known.brokers.items() if name in hops}
        for need in self.works.needs():
            claim = self.claims.get(need.key)
            if claim is not None and not claim.stands_in and claim.host in hops:
                wanted[need.key] = claim.host
                if claim.urgent and need.host in known and need.host != claim.host:
                    known[need.host] = True
        placed: list[str] = []

        def place(key: str, broker: str) -> None:
            placed.append(key)
            self._around.place(key, broker)

        self.works.want(wanted, known, place, self._now)
        self.counts["placed"] += len(placed)
        for key in placed:
            self._state(key)
        due = self.works.due(self._now)
        if due is not None and (self._look_at is None or due < self._look_at):
            self._look_at = due

    # --- rates ------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Look at what is and what runs here, and tell homes of rates that are others."""
        self._look()
        counts = self._around.counted()
        for word in self.metering.words(counts, self.known.submissions, self.me, self._now):
            if word.home == self.me:
                self._measured(word)
            else:
                self._dissemination.send(word.home, word)
        self._measure_at = self._now + self.metering.every_ms

    def _measured(self, word: Measured) -> None:
        """Take other rates of a submission at home here, and state them."""
        if word.key in self.works and self.works.host_of(word.key) == word.host:
            self.works.rate(word.key, rates_of(word))
            self.counts["rates"] += 1
            self._state(word.key)


COUNTED = ("epochs", "placed", "rates", "statements", "words_astray")
