"""Which brokers there are, how they are linked, and on which of these links messages travel.

Owns the links of every broker as last heard, and the tree. Must not know what links or messages
are. Invariant: brokers that have heard the same hold the same tree; a broker that was heard of once
stays known, reachable or not, until somebody says `ForgetRequested` anywhere.

Each broker floods its own links under an ascending number to all its neighbours, which pass on
what is newer than what they have (link state, as in OSPF: RFC 2328, section 13). A link counts once
both ends tell of it, so a broker that died needs no timer: its neighbours say so. Two that meet
anew tell each other all they have. As links lose nothing while they stand, nothing is told twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from broker.network.overlay.limits import TopologyLimits
from broker.network.overlay.state import LinkState, decode, encode
from broker.network.overlay.told import (
    DiskClaimed,
    Effect,
    ForgetRequested,
    KnownChanged,
    LinkDown,
    LinkUp,
    NameTaken,
    Objected,
    StatesReceived,
    Tell,
    Told,
    TreeChanged,
    Woken,
)
from broker.network.overlay.tree import Edge, Tree
from broker.network.replication.disk_claim import DiskClaim

OUTDO_MS_MAX = 3_600_000


class Topology:
    """Know which brokers there are, how they are linked, and on which links messages travel.

    `kept` is what `state` of an earlier process returned.

    `tree` has the ways; `known` all brokers; `unreachable` who is cut off and since when (ms);
    `wake_at` is when `Woken` is due, if nothing else happens before.
    """

    def __init__(
        self, me: str, epoch: int, limits: TopologyLimits | None = None, kept: bytes = b""
    ) -> None:
        self.me = me
        self.limits = limits or TopologyLimits()
        self.tree = Tree(me)
        self.unreachable: dict[str, int] = {}
        self.counts = {"stale": 0, "objected": 0}
        self._outdone = 0  # states under this broker's name that were not of this process
        self._claim = DiskClaim(me)
        self._rivals: dict[int, int] = {}  # by run: how often it outdid this process
        self._leaves_name = False  # another process was announced before
        self._to_outdo: LinkState | None = None
        self._outdo_at = 0
        self._links: dict[str, int] = {}  # to neighbours, with their cost
        self._down_ms: dict[str, int] = {}  # of these, cut since then
        self._states: dict[str, LinkState] = {}
        if kept:
            self._states = {one.origin: one for one in decode(kept, self.limits)}
        # A clock may have been set back since the process before: its own epoch on disk is
        # outdone all the same, or neighbours would take this process for an old one.
        before = self._states.get(me)
        floor = before.epoch + 1 if before is not None else 0
        self._states[me] = LinkState(me, max(epoch, floor), 0)
        # Who is known from before is cut off until heard of.
        self._changed_ms: int | None = 0 if kept else None
        self.wake_at = self.limits.settle_ms if kept else None
        self._on: dict[type[Any], Callable[[Any, int], list[Effect]]] = {
            LinkUp: self._up,
            LinkDown: self._down,
            StatesReceived: self._received,
            ForgetRequested: self._forget,
            Woken: self._woken,
        }

    def identify(self, run: int, disk: int = 0) -> None:
        """Tell others by these numbers which process it is, on which disk; before anything else."""
        own = self._states[self.me]
        self._claim.run, self._claim.disk = run, disk if run else 0
        self._states[self.me] = replace(own, run=run, disk=self._claim.told)

    def name_disk(self, disk: int, now_ms: int) -> list[Effect]:
        """Tell others of the disk, which is named since now."""
        if not self._claim.run or disk == self._claim.disk:
            return []
        self._claim.disk = disk
        effects = self._say_own(now_ms)
        self._set_wake()
        return effects

    def handle(self, told: Told, now_ms: int) -> list[Effect]:
        """Return what is to be done now that this was told."""
        effects = self._on[type(told)](told, now_ms)
        self._set_wake()
        return effects

    def _set_wake(self) -> None:
        due = [since + self.limits.down_after_ms for since in self._down_ms.values()]
        if self._changed_ms is not None:
            due.append(self._changed_ms + self.limits.settle_ms)
        if self._to_outdo is not None:
            due.append(self._outdo_at)
        self.wake_at = min(due, default=None)

    # --- what is known -------------------------------------------------------------------

    @property
    def known(self) -> tuple[str, ...]:
        """All brokers that were heard of and not forgotten, this one included; by name."""
        return tuple(sorted(n for n, one in self._states.items() if not one.forgotten))

    @property
    def forgotten(self) -> tuple[str, ...]:
        """Those of whom somebody said that they will not come back; by name."""
        return tuple(sorted(n for n, one in self._states.items() if one.forgotten))

    @property
    def links(self) -> tuple[str, ...]:
        """The neighbours of this broker, in the tree or not; by name."""
        return tuple(sorted(self._links))

    @property
    def whole(self) -> bool:
        """Tell whether the tree has all that is linked to this broker, and stays for now."""
        return self._changed_ms is None and all(peer in self.tree.hops for peer in self._links)

    def edges(self) -> list[Edge]:
        """All links that both ends tell of, in order; `cost` is the greater of the two."""
        # Both ends, as one alone may be wrong for long: a broker that died still tells of its
        # links in the states that others have of it. The greater cost, so that both compute the
        # same.
        found = []
        for name, state in self._states.items():
            for other, cost in state.links:
                if name < other and not state.forgotten:
                    far = self._states.get(other)
                    back = None if far is None or far.forgotten else dict(far.links).get(name)
                    if back is not None:
                        found.append(Edge(max(cost, back), name, other))
        return sorted(found)

    def state(self) -> bytes:
        """Return what has to outlast the process: who is known, and who was forgotten."""
        return encode([self._states[name] for name in sorted(self._states)])

    # --- links ---------------------------------------------------------------------------

    def _up(self, told: LinkUp, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        new = told.peer not in self._links
        if new and len(self._links) >= self.limits.links_max:
            return [self._object(told.peer, f"there are {len(self._links)} links already")]
        self._down_ms.pop(told.peer, None)
        changed = self._links.get(told.peer) != told.cost
        self._links[told.peer] = told.cost
        if changed:
            effects += self._say_own(now_ms, but=told.peer)
        if new or told.fresh:
            # What was told meanwhile went nowhere, or went down with the other's process.
            effects += self._tell(told.peer, [self._states[name] for name in sorted(self._states)])
        elif changed:
            effects += self._tell(told.peer, [self._states[self.me]])
        return effects

    def _down(self, told: LinkDown, now_ms: int) -> list[Effect]:
        # Nothing is told yet: a socket that is back within `down_after_ms` goes on with its
        # session, and a new tree for all would cost far more than the wait.
        if told.peer in self._links:
            self._down_ms.setdefault(told.peer, now_ms)
        return []

    def _say_own(self, now_ms: int, but: str = "") -> list[Effect]:
        """This broker's links are others: tell all neighbours."""
        own = self._states[self.me]
        claim = self._claim
        # Who yields leaves the tree, as others would wait for what it does not say.
        links = () if claim.yielded_to else tuple(sorted(self._links.items()))
        self._states[self.me] = replace(
            own, seq=own.seq + 1, links=links, run=claim.run, disk=claim.told
        )
        self._change(now_ms)
        return self._flood([self._states[self.me]], but)

    # --- what others tell ----------------------------------------------------------------

    def _received(self, told: StatesReceived, now_ms: int) -> list[Effect]:
        try:
            states = decode(told.data, self.limits)
        except ValueError as error:
            return [self._object(told.peer, str(error))]
        effects: list[Effect] = []
        newer: list[LinkState] = []
        older: list[LinkState] = []
        came: list[str] = []
        forgotten: list[str] = []
        for state in states:
            have = self._states.get(state.origin)
            if have is None and len(self._states) >= self.limits.brokers_max:
                why = f'"{state.origin}" is one broker too many, {len(self._states)} are known'
                effects.append(self._object(told.peer, why))
            # What is newer is taken and passed on; what is older is answered with what is known,
            # to the neighbour that told it alone: so a flood ends where all know the same.
            elif have is None or state.version > have.version:
                if state.origin == self.me:
                    effects += self._outdo_when_due(state, now_ms)
                    continue
                self._states[state.origin] = state
                newer.append(state)
                was, now = have is not None and not have.forgotten, not state.forgotten
                if was != now:
                    (came if now else forgotten).append(state.origin)
            elif state.version < have.version:
                self.counts["stale"] += 1
                older.append(have)
        if newer:
            self._change(now_ms)
            effects += self._flood(newer, told.peer)
        effects += self._tell(told.peer, older)
        if came or forgotten:
            effects.append(KnownChanged(tuple(came), tuple(forgotten)))
        return effects

    def _outdo_when_due(self, state: LinkState, now_ms: int) -> list[Effect]:
        """Others know a later life of this broker, or were told to forget it: it is here.

        Where that does not end, another broker has the same name and outdoes this one as well.
        """
        if self._leaves_name:
            return []
        run = self._claim.run
        if run and state.run and not state.forgotten and state.run != run:
            count = self._rivals[state.run] = self._rivals.get(state.run, 0) + 1
            if count > self.limits.rivals_max and state.run < run:
                self._leaves_name = True
                return [NameTaken(tuple(name for name, _ in state.links), earlier=True)]
        if state.forgotten or self._outdone < self.limits.outdone_max:
            self._outdone += not state.forgotten
            return self._outdo(state, now_ms)
        if self._to_outdo is None:
            longer = min(self._outdone - self.limits.outdone_max, 20)
            self._outdo_at = now_ms + min(self.limits.outdo_ms << longer, OUTDO_MS_MAX)
            self._outdone += 1
        self._to_outdo = state
        return []

    def _outdo(self, state: LinkState, now_ms: int) -> list[Effect]:
        own = self._states[self.me]
        self._states[self.me] = replace(own, epoch=max(own.epoch, state.epoch), seq=state.seq)
        return self._say_own(now_ms)

    def _forget(self, told: ForgetRequested, now_ms: int) -> list[Effect]:
        have = self._states.get(told.broker)
        if have is None or have.forgotten or told.broker == self.me:
            return []
        # Forgetting is a state like others and is kept: a broker that was away meanwhile would
        # else bring the forgotten one back with the old state that it still has.
        gone = LinkState(have.origin, have.epoch, have.seq, (), forgotten=True)
        self._states[told.broker] = gone
        self._change(now_ms)
        return [*self._flood([gone]), KnownChanged((), (told.broker,))]

    # --- telling -------------------------------------------------------------------------

    def _flood(self, states: list[LinkState], but: str = "") -> list[Effect]:
        """Tell all neighbours but one; one whose link is cut has it kept by the link."""
        found: list[Effect] = []
        for peer in sorted(self._links):
            if peer != but:
                found += self._tell(peer, states)
        return found

    def _tell(self, to: str, states: list[LinkState]) -> list[Effect]:
        many = self.limits.states_per_message
        parts = [states[at : at + many] for at in range(0, len(states), many)]
        return [Tell(to, encode(part)) for part in parts]

    def _object(self, peer: str, reason: str) -> Objected:
        self.counts["objected"] += 1
        return Objected(peer, reason)

    # --- the tree ------------------------------------------------------------------------

    def _change(self, now_ms: int) -> None:
        if self._changed_ms is None:
            self._changed_ms = now_ms

    def _woken(self, _told: Woken, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        limits = self.limits
        lost = [n for n, s in self._down_ms.items() if now_ms - s >= limits.down_after_ms]
        for peer in lost:
            del self._down_ms[peer], self._links[peer]
        if lost:
            effects += self._say_own(now_ms)
        if self._to_outdo is not None and now_ms >= self._outdo_at:
            state, self._to_outdo = self._to_outdo, None
            effects.append(NameTaken(tuple(name for name, _ in state.links)))
            if state.version > self._states[self.me].version:
                effects += self._outdo(state, now_ms)
        if self._changed_ms is not None and now_ms - self._changed_ms >= limits.settle_ms:
            effects += self._settle(now_ms)
        return effects

    def _settle(self, now_ms: int) -> list[Effect]:
        """Derive the tree anew from all that is known."""
        before, unreachable = self.tree, tuple(self.unreachable)
        self.tree = Tree(self.me, self.edges())
        effects: list[Effect] = []
        if not self._leaves_name and self._claim.look(self._states, self.tree.hops):
            effects += [DiskClaimed(self._claim.yielded_to), *self._say_own(now_ms)]
            self.tree = Tree(self.me, self.edges())
        self._changed_ms = None
        cut_off = [name for name in self.known if name not in self.tree.hops]
        self.unreachable = {name: self.unreachable.get(name, now_ms) for name in cut_off}
        if self.tree.id == before.id and tuple(cut_off) == unreachable:
            return effects
        return [*effects, TreeChanged(self.tree.neighbours, self.tree.id, tuple(cut_off))]
