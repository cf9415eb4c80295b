"""One broker's part in deciding where tasks run: words, changes and the time in, words out.

Owns the moments: when something is said, when an epoch begins, when a task is asked to run
elsewhere. Must not know links, cells or clocks: they are `Around`. Invariant: two brokers in the
same epoch plan the same network, as an epoch's number is a digest of the tree and of every
statement; what is agreed comes about only by the home's `place`.

In short: each broker floods a statement (what is at home here, where it runs, its rates) along the
tree, as it floods who listens. Once all have been silent for a moment each begins the epoch of what
it knows: nobody has to be asked who runs what. Then the rounds agree on moves; the home hears of
each, and has the task run there. Whatever breaks (a session, a broker, a submission
that comes or goes) makes for another statement, and so for another epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from broker.core.coordinator import bounds
from broker.core.coordinator.around import Around
from broker.core.coordinator.bounds import STAYS, CoordinatorSettings
from broker.core.coordinator.capacity import Capacity
from broker.core.coordinator.checking import Numbers
from broker.core.coordinator.known import Known
from broker.core.coordinator.laying import Laid, amounts, lay, levels_of, rated
from broker.core.coordinator.measuring import measured, rates_of
from broker.core.coordinator.metering import Metering
from broker.core.coordinator.statement import (
    Measured,
    Part,
    Rated,
    Statement,
    Submission,
    Turned,
    Word,
    encoded,
    parts_of,
    word_of,
)
from broker.core.coordinator.works import Works
from planner.rounds.machine import Rounds
from planner.rounds.messages import Envelope
from planner.rounds.post import Send
from planner.rounds.units import scaled


class Coordinator:
    """Take one broker's part in deciding where tasks run.

    `life` ascends with each process; `rounds` is new.
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
        self.metering = Metering(settings, around.state_rate)
        self.capacity = Capacity(settings.capacity)
        self.drained = False
        self.laid: Laid | None = None
        self.epoch = -1
        self.counts = dict.fromkeys(COUNTED, 0)
        self._around = around
        self._life = life
        self._serial = 0
        self._now = 0
        self._anew = True
        self._numbers: Numbers
        self._stand_ins: set[str] = set()  # planned as if at home, as nothing is known of the host
        self._look_at: int | None = 0
        self._changed: tuple[int, int] | None = None  # first and last since the epoch began
        self._measure_at = 0
        self._early: deque[Envelope] = deque(maxlen=bounds.EARLY_MAX)
        self._past: deque[int] = deque(maxlen=bounds.PAST_EPOCHS)

    # --- from outside -----------------------------------------------------------------------

    def touched(self, now: int) -> None:
        """Submissions, their inputs or their hosts may be others than before."""
        self._now = max(now, self._now)
        if self._look_at is None or self._look_at > self._now + bounds.LOOK_MS:
            self._look_at = self._now + bounds.LOOK_MS

    def stands(self, peer: str, now: int) -> None:
        """A session stands with a neighbour: it is told all, and all begin anew."""
        self.touched(now)
        self._anew = True
        for broker in sorted(self.known.statements):
            if broker != self.me and self._around.via(broker) != peer:
                for word in self.known.words(broker):
                    self._around.say(peer, encoded(word))

    def gone(self, broker: str, now: int) -> None:
        """There is no way to a broker any more."""
        self.touched(now)
        if self.known.forget(broker):
            self._change()

    def drain(self, now: int, *, drained: bool) -> None:
        """Nothing more is to be taken up here, and what runs here is to go; or that is over."""
        self._now = max(now, self._now)
        self.drained = drained
        self._carry(self.rounds.drain(self._now, drained=drained))
        self._restate()

    def used(self, used_ms: int, granted_ms_per_s: int, now: int) -> None:
        """Measure anew, now that the process has used so much CPU since it began."""
        self._now = max(now, self._now)
        counts = self._around.counted()
        if self.capacity.look(counts, used_ms, granted_ms_per_s, self._now):
            self.rounds.limits = (scaled(self.capacity.bytes_per_s), self.rounds.limits[1])
            self._restate()

    def heard(self, peer: str, data: bytes, now: int) -> None:
        """A neighbour's word. Raises StatementError where it cannot be one."""
        self._now = max(now, self._now)
        word = word_of(data)
        match word:
            case Part(broker=broker):
                if self._is_astray(peer, broker):
                    return
                statement = self.known.take(word)
                if statement is not None:
                    self._pass_on(peer, parts_of(statement))
                    self._change()
            case Rated(home=home):
                if not self._is_astray(peer, home) and self.known.rate(word):
                    self._pass_on(peer, [word])
                    self._rate()
            case Measured(home=home):
                if home == self.me:
                    self._measured(word)
                elif (via := self._around.via(home)) is not None and via != peer:
                    self._around.say(via, data)
            case Turned(envelope):
                self._turned(envelope)

    def wake(self, now: int) -> None:
        """The time that `next_wake` named has come, or may have."""
        self._now = max(now, self._now)
        if self._look_at is not None and self._look_at <= self._now:
            self._look()
        if self._epoch_at() is not None and (self._epoch_at() or 0) <= self._now:
            self._begin()
        if self._measure_at <= self._now:
            self._measure()
        due = self.rounds.next_wake()
        if due is not None and due <= self._now:
            self._carry(self.rounds.wake(self._now))

    def next_wake(self) -> int | None:
        """When to wake next; None: not before something happens."""
        times = (self._look_at, self._epoch_at(), self._measure_at, self.rounds.next_wake())
        return min((at for at in times if at is not None), default=None)

    @property
    def quiet(self) -> bool:
        """Tell whether nothing is under way: no epoch is due, no rounds run and no wish waits."""
        return self._changed is None and self.rounds.quiet and not self.works.wishes

    # --- what is said -----------------------------------------------------------------------

    def _is_astray(self, peer: str, broker: str) -> bool:
        astray = broker == self.me or self._around.via(broker) != peer
        self.counts["words_astray"] += astray
        return astray

    def _pass_on(self, but: str, words: Iterable[Word]) -> None:
        some = [encoded(word) for word in words]
        for peer in self._around.peers():
            if peer != but:
                for data in some:
                    self._around.say(peer, data)

    def _look(self) -> None:
        """Read what is at home here, and state it again if it differs from the last statement."""
        self._look_at = None
        self.works.put(self._around.works(), self.known.statements, self._now)
        self._look_at = self.works.due(self._now)
        stated = self.known.statements.get(self.me)
        if stated is None or self._anew or self._shape(self._own()) != self._shape(stated):
            self._restate()
        self._settle_hosts()

    def _own(self) -> Statement:
        """Return the statement that would be made now, under the last number."""
        overlay = self._around.overlay()
        others = self.known.statements
        subs = self.works.submissions(lambda name: name in overlay.hops and name in others)
        limits = (self.capacity.bytes_per_s, self.settings.egress)
        place = self.me, self._life, self._serial
        return Statement(*place, *limits, self.drained, subs, self.settings.link)

    def _shape(self, statement: Statement) -> list[object]:
        """Return what of a statement makes for another epoch at once; hosts can wait."""
        return [statement.drained, [(one.key, one.not_at) for one in statement.submissions]]

    def _restate(self) -> None:
        """Say all that is at home here, as it is now."""
        own = self._own()
        while own.submissions and len(encoded(own)) > bounds.STATEMENT_BYTES_MAX:
            own = msgspec.structs.replace(
                own, submissions=own.submissions[: len(own.submissions) // 2]
            )
        self._anew = False
        self._serial += 1
        own = msgspec.structs.replace(own, serial=self._serial)
        self.counts["statements"] += 1
        self.known.put(own)
        self._pass_on("", parts_of(own))
        self._change()

    def _change(self) -> None:
        """Somebody's statement is another: an epoch begins soon, with what holds now."""
        first = self._now if self._changed is None else self._changed[0]
        self._changed = first, self._now
        if self._stale():
            self._restate()

    def _stale(self) -> bool:
        """Tell whether hosts or rates of what is at home here differ from the last statement."""
        stated = self.known.statements.get(self.me)
        return stated is not None and self._own().submissions[: len(stated.submissions)] != (
            stated.submissions
        )

    # --- epochs -----------------------------------------------------------------------------

    def _epoch_at(self) -> int | None:
        if self._changed is None:
            return None
        first, last = self._changed
        return min(last + bounds.SETTLE_MS, first + bounds.SETTLE_MS_MAX)

    def tree_changed(self, now: int) -> None:
        """The tree of all brokers is another."""
        self.touched(now)
        self._change()

    def _begin(self) -> None:
        """All have been silent: plan what is known by now."""
        if self.me not in self.known.statements:
            self._changed = None
            return
        if self._stale():
            self._restate()
            return
        self._changed = None
        overlay = self._around.overlay()
        epoch = self.known.epoch(overlay.id)
        if epoch == self.epoch:
            return
        self._past.append(self.epoch)
        self.epoch, self.laid = epoch, lay(self.known, overlay)
        layout = self.laid.standing.layout
        own = self.known.statements[self.me].submissions
        hosts = {one.key: one.host for one in own}
        self._stand_ins = {key for key, host in hosts.items() if self.works.host_of(key) != host}
        self._numbers = Numbers(self.laid.standing.tree, len(layout.pieces), len(layout.streams))
        self.counts["epochs"] += 1
        number = self.laid.numbers[self.me]
        self._carry(self.rounds.stand(number, epoch, self.laid.standing, self._now))
        self._rate()
        early = [one for one in self._early if one.epoch == epoch]
        self._early = deque(
            (one for one in self._early if one.epoch != epoch), maxlen=bounds.EARLY_MAX
        )
        for envelope in early:
            self._turned(envelope)
        self._settle_hosts()

    def _turned(self, envelope: Envelope) -> None:
        if envelope.epoch == self.epoch:
            if self._numbers.fit(envelope):
                self._carry(self.rounds.receive(envelope, self._now))
                self._settle_hosts()
            else:
                self.counts["words_malformed"] += 1
        elif envelope.epoch in self._past:
            self.counts["words_late"] += 1
        else:
            self.counts["words_lost"] += len(self._early) == self._early.maxlen
            self._early.append(envelope)

    def _carry(self, effects: Iterable[Send]) -> None:
        """Send what the rounds have to send."""
        for effect in effects:
            if self.laid is not None:
                peer = self.laid.names[effect.neighbour]
                self._around.say(peer, encoded(Turned(effect.envelope)))

    def _settle_hosts(self) -> None:
        """Have what is at home here run where the rounds say, or at home where they do not yet."""
        wanted: dict[str, str] = {}
        if self.laid is not None:
            for piece, broker in self.rounds.hosts.items():
                home, key = self.laid.pieces[piece]
                name = self.laid.names[broker]
                if home != self.me or (name == self.me and key in self._stand_ins):
                    continue
                if name == self.me or name in self.known.statements:
                    wanted[key] = name
        known = {name: one.drained for name, one in self.known.statements.items()}
        self.works.want(wanted, known, self._place, self._now)
        self._say_hosts()
        due = self.works.due(self._now)
        if due is not None and (self._look_at is None or due < self._look_at):
            self._look_at = due

    def _say_hosts(self) -> None:
        """Tell all of hosts that are others since this broker's statement."""
        statement = self.known.statements.get(self.me)
        for one in statement.submissions if statement is not None else ():
            if one.key in self.works and statement is not None:
                host, rates, sends = self.known.of(self.me, one)
                now = self.works.host_of(one.key)
                if now != host and now in self.known.statements:
                    said = Rated(self.me, *statement.place, one.key, now, rates, sends)
                    self.known.rate(said)
                    self._pass_on("", [said])

    def _place(self, key: str, broker: str) -> None:
        self.counts["placed"] += 1
        self._around.place(key, broker)

    # --- rates ------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Look at what is and what runs here, and tell homes of rates that are others."""
        self._look()
        counts = self._around.counted()
        for word in measured(self.metering, counts, self.known, self.me, self._now):
            if word.home == self.me:
                self._measured(word)
            elif (via := self._around.via(word.home)) is not None:
                self._around.say(via, encoded(word))
        self._measure_at = self._now + self.metering.every_ms

    def _measured(self, word: Measured) -> None:
        """Take other rates of a submission at home here, and send all of them on."""
        statement = self.known.statements.get(self.me)
        one = None if statement is None else _of(statement, word.key)
        if statement is None or one is None or self.works.host_of(word.key) != word.host:
            return  # of a host that is to run it no more
        self.works.rate(word.key, rates_of(word))
        self.counts["rates"] += 1
        rates = {place: rate for place, rate in rates_of(word).inputs.items() if rate}
        taken = tuple(rates.get(place, 0) for place in one.inputs)
        host = self.known.of(self.me, one)[0]
        said = Rated(self.me, *statement.place, word.key, host, taken, word.sends)
        if any(place not in one.inputs for place in rates):
            self._restate()
        elif self.known.rate(said):
            if self.laid is not None and self._regrouped(self.laid):
                self._restate()
            else:
                self._pass_on("", [said])
                self._rate()

    def _regrouped(self, laid: Laid) -> bool:
        """Tell whether rates group the takers of an input otherwise than in the epoch's network."""
        for place, some in levels_of(rated(self.known)).items():
            levels = laid.levels.get(place)
            if levels is not None and tuple(tuple(level) for level in some) != levels:
                return True
        return False

    def _rate(self) -> None:
        """Have the rounds know of rates as they are now."""
        if self.laid is not None and self._changed is None:
            rates, costs = amounts(self.laid, self.known)
            self._carry(self.rounds.measured(rates, costs, self._now))


COUNTED = (
    "epochs",
    "placed",
    "rates",
    "statements",
    "words_astray",
    "words_late",
    "words_lost",
    "words_malformed",
)


def _of(statement: Statement, key: str) -> Submission | None:
    return next((one for one in statement.submissions if one.key == key), None)
