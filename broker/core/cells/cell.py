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
from broker.core.cells.hosting import ASK_AGAIN_MS, Hosting
from broker.core.effects import Effect, Emit, Publish, Reply
from broker.core.messages import DecodedEvents
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
from broker.network.placement.result_queue import ResultQueue
from broker.network.placement.snapshot_pace import Saver, Saving
from broker.network.placement.suspension import Rows, standing_of
from broker.network.replication.progress import STORED_MS, Advanced, Awaited, StoredUpto


class Cell(Hosting):
    """Run a submission's tasks at the broker `host`; `life` ascends with each beginning."""

    def __init__(
        self,
        durable: DurableBroker,
        hosted: cell_messages.Hosted,
        host: str,
        life: int,
        times: Times | None = None,
    ) -> None:
        super().__init__(durable, life, times)
        self.which, self.host, self.life = hosted.which, host, life
        self.counted = CellCounts()
        self.faults = 0
        self.fault: BaseException | None = None  # of a message, until it is told
        self.replies: list[Reply] = []
        self.said = self.said_names = False  # of the snapshot that waits for its home; of origins
        self.settle_asked = False
        self._said_ends = 0  # how many ends its home was told of
        self._said_standing: Rows | None = None
        self._confirmed: Rows = ()  # how its subscriptions stand for its home
        kind = FoldedInputs if hosted.options.get(cell_messages.SPLITS) else EventInputs
        self.inputs = kind(hosted.which.cell, durable.network, self.counted.inputs)
        self.saver = Saver(self.inputs.positions(), self._now, hosted.revision)
        self._answered: dict[str, None] = {}
        self._noted: cell_messages.Origins = {}  # origins that its home knows of
        self._named: cell_messages.Origins = {}  # those that it has yet to write down
        self.results = ResultQueue(durable.outbox_end, hosted.revision)
        self._on_frame |= dict.fromkeys(_OF_NO_CONCERN, lambda *_: None)
        self._on_frame[frames.Doubted] = lambda _, one: self._ask_quietly(one.origin)
        self._on_frame[frames.Passed] = self._passed
        self._on_frame |= {frames.Folded: self._folded} if self.inputs.splits else {}
        self.noted(hosted.origins, self._now)
        for origin, types in hosted.origins.items():
            self._tell_network(told.OriginNamed(origin, types))
        self._look_at_needs()

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
        self._look_at_needs()

    def keep_only(self, one: cell_messages.Wanted | cell_messages.Hosted, now: int) -> None:
        """End all subscriptions but these, and have these stand as their home says."""
        wanted = set(one.keys)
        for key in [key for key in self.durable.catalogue.subscriptions if key not in wanted]:
            self.request(core_messages.CancelRequested(key[0], "", key[1], proven=True), now)
        if one.revision == self.saver.revision:  # else what is said is of others of these names
            if one.standing and one.standing != self._standing():
                self._tell_network(CellStood("", one.standing))
            self._confirmed = one.standing
        if not self.inputs.begun:
            self.inputs.begun = True
            self._look_at_needs()

    def revise(self, revision: TextRevision, by: core_messages.Message, now: int) -> None:
        """Take up another text by this message."""
        self.results.revision = self.saver.revision = revision.number
        self.request(by, now)
        self._said_standing = None
        # What is in another's place stands as it begins, and its home has heard of the others.
        self._confirmed = tuple([row for row in self._confirmed if row.key not in revision.keys])

    def _standing(self) -> Rows:
        catalogue = self.durable.catalogue
        return standing_of(catalogue, catalogue.subscriptions, self._confirmed)

    def forget(self, broker: str, now: int) -> None:
        """Nobody is to wait for this broker any more."""
        self._now = max(now, self._now)
        self._named.pop(broker, None)
        self._noted.pop(broker, None)
        self._forget(broker)

    def wake(self, now: int) -> None:
        """Time has passed."""
        self._now = max(now, self._now)
        due = self.durable.next_wake()
        if due is not None and due <= now:
            self._tell(core_messages.Woken())
        if now - self.stored_reports.told_ms >= STORED_MS:
            self.stored_reports.tell(self._now, self.durable.number)
        self._ask_again()

    def next_wake(self) -> int | None:
        """When `wake` is due."""
        wakes = [self.durable.next_wake()]
        wakes += [one.at + ASK_AGAIN_MS for one in self.needs.asked.values()]
        if self._unstored():
            wakes.append(self.stored_reports.told_ms + STORED_MS)
        if self.complete:
            end = self.durable.outbox_end
            wakes.append(self.saver.due_at(self.inputs.positions(), end, self.inputs.held()))
        return min([wake for wake in wakes if wake is not None], default=None)

    def take_out(self) -> tuple[list[bytes], list[Effect]]:
        """(frames for the broker in which it runs, what else is to be done)."""
        if self.probes.busy and not self._named:  # else it has yet to ask an origin
            for peer, body in self.probes.due(self.sessions.neighbours(), self._now):
                self._say(peer, body)
            self._activate()
        out, self._sender.out = self._sender.out, []
        sent = [one.data for one in out if isinstance(one, SendFrame)]
        return sent, [one for one in out if not isinstance(one, SendFrame)]

    def _tell(self, message: core_messages.Message) -> None:
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
                        self.results.add((one.subscriber, one.subscription, one.actor, one.payload))
                        self.counted.results.add(1, len(one.payload))
                case Reply():
                    self.replies.append(effect)
                case Publish(publications):  # its home tells who is suspended
                    told_here = [one for one in publications if not is_of_suspended(one.topic)]
                    self._sender.out += [Publish(tuple(told_here))] if told_here else []
                case Note():
                    self._sender.out.append(effect)

    # --- events ----------------------------------------------------------------------------

    def _passed(self, peer: str, one: frames.Passed) -> None:
        if self.ways.via.get(one.what.origin) == peer:
            self._take(one.what)  # the broker in which it runs sends what it asked for alone

    def _tell_network(self, what: told.Told, events: DecodedEvents = None) -> None:
        self.inputs.came(what, self.saver)
        super()._tell_network(what, events)

    def _offered(self, peer: str, one: frames.Offered) -> None:
        super()._offered(peer, one)
        if one.last and one.what.origin not in self.needs.asked:
            self._has_answered(one.what.origin)

    def _folded(self, peer: str, one: frames.Folded) -> None:
        origin = one.what.origin
        known, asked = self.durable.network.upstream.get(origin), self.needs.asked.get(origin)
        if one.host != self.me or known is None or self.ways.via.get(origin) != peer:
            return
        if asked is not None and asked.serial != one.serial:
            self.counts["answers_stale"] += 1
        elif asked is None and (known.life, known.position) != (one.what.life, one.what.after):
            self._missed(origin)
        else:
            self._tell_network(one.what)
            if one.more:
                self._ask(origin)
            elif one.last and asked is not None:
                self.needs.answered(origin, one.serial)
                self._activate()
                self._has_answered(origin)
            for doubted in self.durable.network.header.take_doubted(self.ways.via):
                self._ask(doubted)

    def _has_answered(self, origin: str) -> None:
        self._answered[origin] = None
        self.stored_reports.hurry(origin)  # it may have been lost on its way
        self.stored_reports.tell(self._now, self.durable.number)

    def _here(self, peer: str, one: frames.Here) -> None:
        if not is_cell(one.origin):  # another one is nothing to it
            super()._here(peer, one)

    def _ask(self, origin: str) -> None:
        """Ask an origin, once its home knows of it: whatever begins in its place waits for it."""
        wanted = self.durable.network.wanted()
        types = tuple(name for name in self.ways.types[origin] if name in wanted)
        if self.inputs.begun and set(types) <= set(self._noted.get(origin, ())):
            super()._ask(origin)
        elif self.inputs.begun and self._named.get(origin) != types:
            self._named[origin] = types
            self.said_names = False

    def _question(
        self, origin: str, serial: int, types: dict[str, told.Attributes]
    ) -> frames.Sealed:
        fold = self.inputs.question(self.me, origin, serial, types)
        return fold or super()._question(origin, serial, types)

    def _look_at_needs(self) -> None:
        if not isinstance(self.inputs, FoldedInputs):
            super()._look_at_needs()
        elif self.inputs.begun:
            self._ask_for_needs(self.inputs.changed(), always=True)

    def noted(self, origins: cell_messages.Origins, now: int) -> None:
        """The home knows of these."""
        self._now = max(now, self._now)
        for origin, types in origins.items():
            self._noted[origin] = tuple(dict.fromkeys([*self._noted.get(origin, ()), *types]))
            if self._named.pop(origin, None) is not None and origin in self.ways.via:
                self._ask(origin)

    # --- its state -------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Tell whether it is active, and every origin knows it by its name."""
        network = self.durable.network
        waits = self.needs.waits or self.needs.asked or self._named or network.activation.inactive()
        is_begun = len(network.catalogue) > 0
        return is_begun and not waits and all(name in self._answered for name in network.upstream)

    def save_if_due(self) -> None:
        """Make the next snapshot, if it is time for it."""
        end, positions = self.durable.outbox_end, self.inputs.positions()
        due = self.saver.due_at(positions, end, self.inputs.held()) if self.complete else None
        if due is not None and due <= self._now:
            self.durable.network.forget_what_is_late()
            state = pressed(self.durable.snapshot())
            revision = self.saver.revision
            one = Saving(self.durable.number, end, positions, state, self.inputs.held(), revision)
            self.counted.saved.add(1, len(one.snapshot))
            self.saver.save(one, self._now)
            self.said = False

    def stored(self, number: int, now: int) -> None:
        """The home has stored that snapshot."""
        self._now = max(now, self._now)
        if self.saver.done(number):
            self.stored_reports.tell(self._now, self.durable.number)
            self._said_ends = 0  # a home hears of ends from a term that serves alone

    def _unstored(self) -> list[tuple[str, int, int]]:
        return self.inputs.unstored(self.ways.via, self.stored_reports.positions, self.saver)

    def taken(self, next_: int) -> None:
        """The home has all results before this number."""
        self.results.take(next_)
        self.said = False  # a snapshot may have waited for that

    def say_again(self) -> None:
        """Begin to say all again, as what was told may be lost."""
        self.results.tell_again()
        self._said_ends, self._said_standing = 0, None
        self.said = self.said_names = False

    def to_say(self) -> list[cell_messages.Said]:
        """Return what the home has not been told yet."""
        found: list[cell_messages.Said] = []
        settled, standing, me = self._settled(), self._standing(), (self.which, self.life)
        if standing != self._said_standing:
            self._said_standing = standing
            found.append(cell_messages.Running(*me, standing, self.saver.revision))
        if self._named and not self.said_names:
            self.said_names = True
            found.append(cell_messages.Named(*me, dict(self._named)))
        found += self.results.say(*me)
        if settled:
            found.append(cell_messages.Settled(*me, self.results.next_told, settled))
        saving = self.saver.waiting
        if saving is not None and not self.said and saving.end <= self.results.first:
            self.said = True
            found.append(_saved((*me, self.results.first), saving))
        return found

    def _settled(self) -> list[Reached]:
        """Up to when all results are known, where its home has asked and an answer can be given."""
        asked, self.settle_asked = self.settle_asked, False
        core, ends = self.durable.core, self._said_ends
        if not len(self.results):  # an end is told behind all results
            ends = sum(at == TIME_MAX_MS for at in core.settled.values())
        if not self.complete or not (asked or ends != self._said_ends):
            return []
        self._said_ends = ends
        if core.due_to_settle(self._now):
            self._tell(core_messages.Settling())
        return [(*key, reached) for key, reached in core.settled.items()]

    @property
    def waits_for_home(self) -> bool:
        """Tell whether there is something that the home has not taken."""
        waits = len(self.results) or self._named or self._standing() != self._confirmed
        return bool(waits) or self.saver.waiting is not None


def _saved(place: tuple[cell_messages.Which, int, int], saving: Saving) -> cell_messages.Saved:
    kept = saving.end, saving.snapshot, saving.revision
    return cell_messages.Saved(*place, saving.number, *kept)


_OF_NO_CONCERN: tuple[type[Any], ...] = (
    frames.Listening,
    frames.Reoffer,
    frames.Stored,
    StoredUpto,
    Advanced,
    Awaited,
    frames.Planned,
)
