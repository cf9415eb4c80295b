"""A broker as a home that has a stand-in: what that one is told, and what waits for it.

Owns the joining of the feed, the lease and the fence of results with the core. Must not know the
copies of other homes. Invariant: a result is given out behind the stand-in's answer that it has it,
as far as `ResultFence` says; with a lease, while that holds, and never without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from broker.core import messages as core_messages
from broker.core.effects import DisownResults, Effect, Emission, Emit
from broker.core.recovery.durable import DurableBroker
from broker.core.standby.home_changes import HomeChanges
from broker.network.delivery.feed import LAZY_MS, NEIGHBOUR, HomeFeed
from broker.network.delivery.fence import ResultFence
from broker.network.delivery.lease import HomeLease
from broker.network.delivery.messages import LeaseAsked, LeaseGranted, StandInChosen
from broker.network.frames import told
from broker.network.frames.messages import ResultsDelivered, ResultsRead
from broker.network.placement import cell_messages
from broker.network.placement.mail import CellMail

DELIVERED_MS = 1_000  # what was given out in the last second may be given out again


class GuardedHome:
    """The home of `durable` in its process `epoch`; `neighbours` returns who can stand in."""

    def __init__(  # noqa: PLR0917  # what a part is lent, each its own kind
        self,
        durable: DurableBroker,
        epoch: int,
        mail: CellMail,
        via: Collection[str],
        tell: Callable[[told.Told], None],
        neighbours: Callable[[], list[str]],
    ) -> None:
        self._durable = durable
        self._network = durable.network
        self._mail = mail
        self._via = via
        self._tell = tell
        self._neighbours = neighbours
        self._delivered = 0
        self._read: int | None = None  # by all registered readers of the log
        self._changes = HomeChanges(durable.network, durable.unstored)
        self._lease = HomeLease()
        unstored = durable.unstored
        self._fence = ResultFence(unstored[0].offset if unstored else durable.outbox_end)
        self.is_fencing = False  # until then there is no stand-in, and nothing waits for one
        self._now = durable.now
        me = durable.options.name
        self.feed = HomeFeed(me, epoch, mail.tell, self._bring, self._changes.state)

    def set_up(self, setting: str, lease_ms: int, epoch: str = "") -> int | None:
        """Have a stand-in, a name or `NEIGHBOUR`; return the first offset that waits for it.

        `epoch` names the output log; `lease_ms` 0: a take-over is a person's word. None: no result
        waits. A lease that an earlier process gave its stand-in holds until that knows better.
        """
        chosen = self._network.adoption.chosen
        self.feed.setting = setting
        self._lease.lease_ms = lease_ms if setting else 0
        self._changes.epoch, self._changes.lease_ms = epoch, self._lease.lease_ms
        self.feed.is_bound = bool(chosen.lease_ms)
        if self.feed.is_bound or setting == NEIGHBOUR:
            self.feed.remember(chosen.broker)
        if not setting and not self.feed.is_bound:
            return None
        self.is_fencing = True
        if self._durable.unstored:
            self._fence.hold(0, self._durable.outbox_end, self._durable.now)
        return self._fence.upto

    def recall(self, unread: Sequence[Emission], first: int, end: int) -> None:
        """Take in what the log has from `first` to `end` that its readers have not read."""
        self._changes.recall(unread, first, end)

    def name_log(self, epoch: str) -> None:
        """Have the output log be another one."""
        self._changes.epoch = epoch
        self.feed.begin_again()

    def disown(self, by: DisownResults) -> None:
        """Forget results that the broker which took over finds again."""
        self._changes.disown(by)
        self.feed.begin_again()

    def change(self, message: core_messages.Message, effects: Sequence[Effect], now: int) -> None:
        """Have the stand-in know of what a message has changed, and of its results."""
        what = message.what if isinstance(message, core_messages.NetworkTold) else None
        if self.feed.stand_in:
            lazy_ms = LAZY_MS if isinstance(what, told.CopiesTaken) else 0
            self.feed.change(self._changes.of(message), now, lazy_ms=lazy_ms)
        if self.is_fencing:
            for effect in effects:
                if isinstance(effect, Emit) and effect.results:
                    self.feed.change(self._changes.given(effect.results), now)
                    self._fence.hold(self.feed.number, effect.results[-1].offset + 1, now)

    def note_delivered(self, message: ResultsDelivered) -> None:
        """Have the stand-in know before long that results need not be given out again."""
        self._delivered = message.offset

    def note_read(self, message: ResultsRead) -> None:
        """Have the stand-in know before long what is not to be read again."""
        self._read = message.offset

    def _bring(self, to: str, promise: bytes) -> None:
        self._mail.bring(to, cell_messages.decoded(promise))

    def look(self, now: int) -> int | None:
        """Say what is due; return the offset before which results may leave now."""
        self._now = now
        if not (self.feed.setting or self.feed.stand_in):
            # One that was forgotten leaves results behind that nobody is waited for with.
            return self._upto(now)
        delivered = self._delivered
        read = delivered if self._read is None else self._read
        self.feed.change(self._changes.delivered(delivered, read), now, lazy_ms=DELIVERED_MS)
        neighbours = self._neighbours()
        self.feed.choose(self._via, neighbours)
        self._remember()
        self.feed.look(now, self._via, neighbours)
        if self.feed.is_reachable and (number := self._lease.ask(now)) is not None:
            self._mail.tell(self.feed.stand_in, LeaseAsked(self.feed.run, number))
        return self._upto(now)

    def _upto(self, now: int) -> int | None:
        return self._fence.upto if self.is_fencing and self._moves_fence(now) else None

    def _remember(self) -> None:
        """Write down who stands in, ahead of what that one is told: another process asks it."""
        feed, chosen = self.feed, self._network.adoption.chosen
        # One that was never reached has heard of no lease, and another may take its place.
        binds = feed.is_bound or feed.stand_in in self._via
        lease_ms = self._lease.lease_ms if feed.stand_in and binds else 0
        if feed.stand_in == chosen.broker and feed.kept < 0:
            # It may count on the lease of before until it has the state that tells of another.
            lease_ms = max(lease_ms, chosen.lease_ms)
        if (feed.stand_in, lease_ms) != (chosen.broker, chosen.lease_ms):
            if feed.stand_in != chosen.broker:
                self._lease.lose()
            self._tell(StandInChosen(feed.stand_in, lease_ms))
        feed.is_bound = bool(lease_ms)

    def _moves_fence(self, now: int) -> bool:
        """Let results go that the stand-in has, or that nobody waits for."""
        feed = self.feed
        # Nobody has a copy where nobody stands in, so nobody takes over either.
        is_leased = bool(feed.stand_in) and (feed.is_bound or bool(self._lease.lease_ms))
        if is_leased:
            if not self._lease.lease_ms or not self._lease.holds(now):
                return False
            kept: int | None = feed.kept
        else:
            kept = feed.kept if feed.is_reachable else None
        return self._fence.look(now, kept, is_leased=is_leased)

    def lease_granted(self, sender: str, granted: LeaseGranted) -> None:
        """Count on the lease once more."""
        if (sender, granted.run) == (self.feed.stand_in, self.feed.run):
            self._lease.grant(granted.number)

    def forget(self, broker: str) -> None:
        """Have another stand-in, or none: this one will not come back, nor take over."""
        if broker == self.feed.stand_in:
            self.feed.is_bound = False
            self.feed.forget(broker)
            self._lease.lose()
            self._tell(StandInChosen("", 0))
            if not self.feed.setting:
                self._lease.lease_ms = self._changes.lease_ms = 0

    def status(self) -> dict[str, Any]:
        """Return it for people."""
        has_lease = bool(self._lease.lease_ms)
        held = len(self._fence)
        return {**self.feed.status(), "lease_ms": self._lease.lease_ms, "held": held} | (
            {"leased": self._lease.holds(self._now)} if has_lease else {}
        )

    def next_wake(self) -> int | None:
        """Return when `look` is due."""
        wakes = [self.feed.next_wake()]
        if self.feed.is_reachable:
            wakes.append(self._lease.next_wake())
        if self.is_fencing and not (self.feed.is_bound or self._lease.lease_ms):
            wakes.append(self._fence.next_wake())
        return min([wake for wake in wakes if wake is not None], default=None)
