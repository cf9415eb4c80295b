"""The agent of a chain of `then` that is given a small store.

Owns the order in which a bounded store sees events, and when what it holds is looked through. Must
not know how partners are found: an agent without that limit does it, for each instant at which a
chain can be complete. Invariant: what it reports depends on the events and on the order of time
alone; each result is one that the unlimited agent reports too.

The store is one for all groups of the agent. What fits the last place is not stored: it completes
what is there, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, LeafEvents
from broker.engine.event.event import Event
from broker.engine.pattern.chain_store import ChainStore, Group, Link
from broker.engine.pattern.durations import Foresight
from broker.engine.pattern.matching import key_function, leaf_select
from broker.engine.pattern.operands import Joint, Leaf, Operand
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.promises import Promise
from broker.engine.pattern.staged_agent import StagedAgent
from broker.engine.runtime.pending import Entry, Pending
from broker.engine.runtime.shelf import Shelf
from language.relations import FOLLOWS
from language.tree import Case

STATE_VERSION = 1
OVERWRITTEN = "chain_overwritten"


def _end_of(entry: Entry) -> int:
    end: int = entry[1].end
    return end


def links_of(case: Case, layout: Layout) -> list[Link] | None:
    """The links of a chain of atoms that reports every combination; None of any other pattern."""
    found: list[Link] = []
    at: Operand = layout.root
    while isinstance(at, Joint):
        plain = at.operator in FOLLOWS and not at.context.chooses
        if not plain or at.next or at.nth is not None or not isinstance(at.right, Leaf):
            return None
        bound = at.bound
        found.insert(0, Link() if bound is None else Link(bound.low_ms, bound.high_ms))
        at = at.left
    chosen = layout.last or layout.first or case.consuming or case.detect.report != "all"
    return found if isinstance(at, Leaf) and found and not chosen else None


class ChainAgent:
    """One case whose detect is a chain, with a bounded store (see agent.Agent)."""

    waits = True

    def __init__(
        self,
        case: Case,
        inner: StagedAgent,
        classes: Mapping[str, type[Event]],
        *,
        capacity: int,
        foresight: Foresight | None = None,
    ) -> None:
        layout = inner.plan.layout
        links = links_of(case, layout)
        assert links is not None, "the pattern is no chain"
        self.inner = inner
        self.layout = layout
        self._blank = inner.state()
        self._classes = classes
        self._final = len(links)
        self._selects = [leaf_select(leaf) for leaf in layout.leaves]
        self._key = key_function(case.group_by) if case.group_by else None
        self._promise = Promise(case, layout, foresight)
        # How long events last matters to what is promised alone.
        self._foresight = foresight if self._promise.lags else None
        self.store = ChainStore(links, layout.root.within_ms, capacity)
        self._pending = Pending(self.layout.budget)
        self._watermark = WATERMARK_NONE
        self._dropped: dict[str, int] = {}

    # --- the door ------------------------------------------------------------------------

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        self._watermark = max(self._watermark, watermark)
        for leaf, events in batch:
            select = self._selects[leaf]
            passed = events if select is None else select(events)
            if self._foresight is not None:
                self._foresight.observe(((leaf, passed),))
            self._pending.add(leaf, passed)
        made: list[Any] = []
        for end, entries in groupby(self._pending.release(self._watermark), key=_end_of):
            made += self._instant(end, entries)
        return made

    def watermark_out(self, watermark: int) -> int:
        """See agent.Agent."""
        if not self._promise.lags:
            return watermark
        stored = [one.event.start for own in self.store.groups.values() for one in own]
        return self._promise.out(watermark, watermark, min(stored, default=WATERMARK_END))

    def next_due(self) -> int | None:
        """See agent.Agent."""
        return self._pending.first_end

    def held(self) -> int:
        """See agent.Agent."""
        return len(self._pending) + self.store.size

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        known = dict.fromkeys(self.inner.dropped(), 0)
        return {**known, **self._dropped, OVERWRITTEN: self.store.overwritten}

    def state(self) -> Any:
        """See agent.Agent."""
        shelf = Shelf(self._classes)
        return {
            "version": STATE_VERSION,
            "watermark": self._watermark,
            "pending": [[leaf, shelf.put(event)] for leaf, event in self._pending.entries],
            "chain": [
                [list(group), one.place, shelf.put(one.event)]
                for group, entries in self.store.groups.items()
                for one in entries
            ],
            "overwritten": self.store.overwritten,
            "dropped": dict(self._dropped),
            "events": shelf.packed(),
        }

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        if "chain" not in state:
            self._restore_unlimited(state)
            return
        if state["version"] != STATE_VERSION:
            raise ValueError(f"agent state of version {state['version']} cannot be read")
        shelf = Shelf(self._classes, state["events"])
        self._watermark = state["watermark"]
        self._pending = Pending(self.layout.budget)
        for leaf, at in state["pending"]:
            self._pending.add(leaf, (shelf.get(at),))
        self.store.restore(
            [(tuple(group), place, shelf.get(at)) for group, place, at in state["chain"]]
        )
        self.store.overwritten = state["overwritten"]
        self._dropped = dict(state["dropped"])

    def _restore_unlimited(self, state: Any) -> None:
        """Go on where an agent without this store has stopped: in order, as if events came now."""
        self.inner.restore(state)
        self._watermark = state["watermark"]
        for group, place, event in self.inner.members():
            self.store.take(group, place, event)
        self.inner.restore(self._blank)

    def unlimited(self) -> StagedAgent:
        """Return an agent without such a store that holds the same; this one is done with."""
        batch: dict[int, list[Event]] = {}
        for entries in self.store.groups.values():
            for one in entries:
                batch.setdefault(one.place, []).append(one.event)
        found = self.inner.feed(list(batch.items()), self._watermark)
        assert not found, "what completes a chain is never stored"
        self.inner.wait_for(self._pending.entries)
        return self.inner

    # --- taking events -------------------------------------------------------------------

    def _instant(self, end: int, events: Iterable[Entry]) -> list[Any]:
        """Events of one end: first those that are stored, then those that complete."""
        self.store.expire(end)
        closing: dict[Group, list[Event]] = {}
        for leaf, event in events:
            group = () if self._key is None else self._key(event)
            if group is None:
                continue
            if leaf == self._final:
                closing.setdefault(group, []).append(event)
            else:
                self.store.take(group, leaf, event)
        batch: dict[int, list[Event]] = {}
        for group, own in closing.items():
            entries = self.store.groups.get(group)
            if entries is not None:
                for one in entries:
                    batch.setdefault(one.place, []).append(one.event)
                batch.setdefault(self._final, []).extend(own)
        return self._completed(list(batch.items())) if batch else []

    def _completed(self, batch: Sequence[LeafEvents]) -> list[Any]:
        """Look through what is stored; nothing of it stays behind."""
        found = self.inner.feed(batch, self._watermark)
        for name, count in self.inner.dropped().items():
            self._dropped[name] = self._dropped.get(name, 0) + count
        self.inner.restore(self._blank)
        return found
