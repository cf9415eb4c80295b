"""A cell: the tasks of one submission, wherever they run.

Owns a small broker of its own, without sources, links or a disk, and what its home has not got yet.
Must not know the broker in which it runs, but for its name: they are neighbours, and frames are all
that goes between them. Invariant: its disk is its home: an origin is told of a position only behind
the snapshot that the home has stored; results are kept until the home has them.

To an origin it is a host like any other, called as its term is; but that `Reoffer` tells where it
is, not what it has stored (see `cell_origins`), as it has to ask whether or not its home is there.
"""

from __future__ import annotations

from typing import Any

from broker.core import messages as core_messages
from broker.core.cells.cell_inputs import EventInputs, FoldedInputs
from broker.core.effects import Effect, Emit, Publish, Reply
from broker.core.exchange.linking import Linking
from broker.core.recovery.durable import CoreFaultError, DurableBroker
from broker.core.topics import is_of_suspended
from broker.engine.ingest.times import TIME_MAX_MS
from broker.network.effects import Note, SendFrame
from broker.network.frames import frames, told
from broker.network.frames.messages import FramesReceived
from broker.network.operators.times import Times
from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import TextRevision
from broker.network.placement.cell_view import CellCounts, is_cell
from broker.network.placement.compression import pressed
from broker.network.placement.home_records import CellStood, Reached
from broker.network.placement.home_reports import HomeReports
from broker.network.placement.result_queue import ResultQueue
from broker.network.placement.snapshot_pace import Saving
from broker.network.replication.progress import STORED_MS, Advanced, Awaited, StoredUpto


class Cell(Linking):
    """Run a submission's tasks at the broker `host`; `life` ascends with each beginning."""

    def __init__(
        self,
        durable: DurableBroker,
        hosted: cell_messages.Hosted,
        host: str,
        life: int,
        times: Times | None = None,
    ) -> None:
        counted = CellCounts()
        kind = FoldedInputs if hosted.options.get(cell_messages.SPLITS) else EventInputs
        fed = durable.network, counted.inputs, durable.now, hosted.revision
        self.inputs = inputs = kind(hosted.which.cell, *fed)
        super().__init__(durable, life, inputs, times)
        self.which, self.host, self.life, self.counted = hosted.which, host, life, counted
        self.faults = 0
        self.fault: BaseException | None = None  # of a message, until it is told
        self.replies: list[Reply] = []
        self._answered: dict[str, None] = {}
        results = ResultQueue(durable.outbox_end, hosted.revision)
        kept = results, inputs.saver, inputs.origins, durable.catalogue
        self.reports = HomeReports(hosted.which, life, *kept)
        self._on_frame |= dict.fromkeys(_OF_NO_CONCERN, lambda *_: None)
        self._on_frame[frames.Offered] = self._offered
        self._on_frame[frames.Doubted] = lambda _, one: self.hosting.ask_quietly(one.origin)
        self._on_frame[frames.Passed] = self._passed
        self._on_frame |= {frames.Folded: self._folded} if inputs.splits else {}
        self.noted(hosted.origins, self._now)
        for origin, types in hosted.origins.items():
            self.hosting.tell_network(told.OriginNamed(origin, types))
        self.hosting.look_at_needs()

    # --- what comes in ---------------------------------------------------------------------

    def hear(self, data: bytes, now: int) -> None:
        """A frame of the broker in which it runs."""
        self._now = max(now, self._now)
        self._frames_received(FramesReceived(self.host, (data,)))

    def tree_is(self, tree: str, now: int) -> None:
        """Sessions stand on this tree from now on."""
        self._now = max(now, self._now)
        if tree != self.sessions.tree or not self.sessions.peers:
            self._tree_changed((self.host,), tree)

    def request(self, message: core_messages.Message, now: int) -> None:
        """Have something installed or cancelled."""
        self._now = max(now, self._now)
        self._tell(message)
        self.hosting.look_at_needs()

    def keep_only(self, one: cell_messages.Wanted | cell_messages.Hosted, now: int) -> None:
        """End all subscriptions but these, and have these stand as their home says."""
        wanted = set(one.keys)
        for key in [key for key in self.durable.catalogue.subscriptions if key not in wanted]:
            self.request(core_messages.CancelRequested(key[0], "", key[1], proven=True), now)
        reports = self.reports
        if one.revision == reports.saver.revision:  # else it is said of others of these names
            if one.standing and one.standing != reports.standing():
                self.hosting.tell_network(CellStood("", one.standing))
            reports.confirmed = one.standing
        if not self.inputs.begun:
            self.inputs.begun = True
            self.hosting.look_at_needs()

    def revise(self, revision: TextRevision, by: core_messages.Message, now: int) -> None:
        """Take up another text by this message."""
        self.reports.revise(revision)
        self.request(by, now)
        self.reports.revised(revision)

    def forget(self, broker: str, now: int) -> None:
        """Nobody is to wait for this broker any more."""
        self._now = max(now, self._now)
        self.inputs.origins.forget(broker)
        self.hosting.forget(broker)

    def wake(self, now: int) -> None:
        """Time has passed."""
        self._now = max(now, self._now)
        due = self.durable.next_wake()
        if due is not None and due <= now:
            self._tell(core_messages.Woken())
        stored = self.hosting.stored_reports
        if now - stored.told_ms >= STORED_MS:
            stored.tell(self._now, self.durable.number)
        self.hosting.ask_again()

    def next_wake(self) -> int | None:
        """When `wake` is due."""
        wakes = [self.durable.next_wake(), *self.hosting.asks_again_at()]
        stored = self.hosting.stored_reports
        if self.inputs.unstored(self.ways.via, stored.positions):
            wakes.append(stored.told_ms + STORED_MS)
        if self.complete:
            wakes.append(self.inputs.saves_at(self.durable.outbox_end))
        return min([wake for wake in wakes if wake is not None], default=None)

    def take_out(self) -> tuple[list[bytes], list[Effect]]:
        """(frames for the broker in which it runs, what else is to be done)."""
        if self.probes.busy and not self.inputs.origins.waiting:  # else it has yet to ask an origin
            for peer, body in self.probes.due(self.sessions.neighbours(), self._now):
                self._say(peer, body)
            self.hosting.activate()
        out, self._sender.out = self._sender.out, []
        sent = [one.data for one in out if isinstance(one, SendFrame)]
        return sent, [one for one in out if not isinstance(one, SendFrame)]

    def _tell(self, message: core_messages.Message) -> None:
        if isinstance(message, core_messages.NetworkTold):
            self.inputs.came(message.what)
        try:
            effects = self.durable.handle(message, self._now)
        except CoreFaultError as error:
            self.faults += 1
            self.fault = error.__cause__ or error
            effects = error.effects
        for effect in effects:
            match effect:
                case Emit(results):
                    for one in results:
                        row = one.subscriber, one.subscription, one.actor, one.payload
                        self.reports.results.add(row)
                        self.counted.results.add(1, len(one.payload))
                case Reply():
                    self.replies.append(effect)
                case Publish(publications):  # its home tells who is suspended
                    told_here = [one for one in publications if not is_of_suspended(one.topic)]
                    self._sender.out += [Publish(tuple(told_here))] if told_here else []
                case Note():
                    self._sender.out.append(effect)

    # --- origins ---------------------------------------------------------------------------

    def _here(self, peer: str, one: frames.Here) -> None:
        if not is_cell(one.origin):  # another one is nothing to it
            super()._here(peer, one)

    def noted(self, origins: cell_messages.Origins, now: int) -> None:
        """The home knows of these."""
        self._now = max(now, self._now)
        for origin in self.inputs.origins.note(origins):
            if origin in self.ways.via:
                self.hosting.ask(origin)

    # --- events ----------------------------------------------------------------------------

    def _passed(self, peer: str, one: frames.Passed) -> None:
        if self.ways.via.get(one.what.origin) == peer:
            self.hosting.take(one.what)  # the broker in which it runs sends what it asked for alone

    def _offered(self, peer: str, one: frames.Offered) -> None:
        self.hosting.offered(peer, one)
        if one.last and one.what.origin not in self.hosting.needs.asked:
            self._has_answered(one.what.origin)

    def _folded(self, peer: str, one: frames.Folded) -> None:
        origin, hosting = one.what.origin, self.hosting
        known, asked = self.durable.network.upstream.get(origin), hosting.needs.asked.get(origin)
        if one.host != self.me or known is None or self.ways.via.get(origin) != peer:
            return
        if asked is not None and asked.serial != one.serial:
            self.counts["answers_stale"] += 1
        elif asked is None and (known.life, known.position) != (one.what.life, one.what.after):
            hosting.missed(origin)
        else:
            hosting.tell_network(one.what)
            if one.more:
                hosting.ask(origin)
            elif one.last and asked is not None:
                hosting.needs.answered(origin, one.serial)
                hosting.activate()
                self._has_answered(origin)
            for doubted in self.durable.network.header.take_doubted(self.ways.via):
                hosting.ask(doubted)

    def _has_answered(self, origin: str) -> None:
        self._answered[origin] = None
        stored = self.hosting.stored_reports
        stored.hurry(origin)  # it may have been lost on its way
        stored.tell(self._now, self.durable.number)

    # --- its state -------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Tell whether it is active, and every origin knows it by its name."""
        network, needs = self.durable.network, self.hosting.needs
        unasked = needs.waits or needs.asked or self.inputs.origins.waiting
        waits = unasked or network.activation.inactive()
        is_begun = len(network.catalogue) > 0
        return is_begun and not waits and all(name in self._answered for name in network.upstream)

    def save_if_due(self) -> None:
        """Make the next snapshot, if it is time for it."""
        inputs, end = self.inputs, self.durable.outbox_end
        due = inputs.saves_at(end) if self.complete else None
        if due is not None and due <= self._now:
            positions = inputs.positions()
            self.durable.network.forget_what_is_late()
            state = pressed(self.durable.snapshot())
            revision = inputs.saver.revision
            one = Saving(self.durable.number, end, positions, state, inputs.held(), revision)
            self.counted.saved.add(1, len(one.snapshot))
            self.reports.save(one, self._now)

    def stored(self, number: int, now: int) -> None:
        """The home has stored that snapshot."""
        self._now = max(now, self._now)
        if self.reports.stored(number):
            self.hosting.stored_reports.tell(self._now, self.durable.number)

    def to_say(self) -> list[cell_messages.Said]:
        """Return what the home has not been told yet."""
        return list(self.reports.say(self._settled()))

    def _settled(self) -> list[Reached]:
        """Up to when all results are known, where its home has asked and an answer can be given."""
        reports, core = self.reports, self.durable.core
        asked, reports.settle_asked = reports.settle_asked, False
        ends = reports.ends_said
        if not len(reports.results):  # an end is told behind all results
            ends = sum(at == TIME_MAX_MS for at in core.frontiers.reached.values())
        if not self.complete or not (asked or ends != reports.ends_said):
            return []
        reports.ends_said = ends
        if core.frontiers.is_due(self._now):
            self._tell(core_messages.Settling())
        return [(*key, reached) for key, reached in core.frontiers.reached.items()]


_OF_NO_CONCERN: tuple[type[Any], ...] = (
    frames.Listening,
    frames.Reoffer,
    frames.Stored,
    StoredUpto,
    Advanced,
    Awaited,
    frames.Planned,
)
