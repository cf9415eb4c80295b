"""The core of a home whose submissions run as cells.

Owns what a subscription's home keeps while its tasks run in a cell: who asked for it, whether it is
active, and its results. Must not know frames or where a cell is. Invariant: a task runs in this
core's own matcher exactly while a subscription needs it that is of no cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.effects import Emission, Outgoing
from broker.core.networked.activating import ActivatingBroker, Key
from broker.core.networked.cell_beginnings import CellBeginnings
from broker.core.recovery.durable_state import Source
from broker.core.refusals import Answer
from broker.core.suspension.agreement import follow, mark
from broker.engine.ingest.times import TIME_MAX_MS
from broker.engine.limits import Limits
from broker.engine.runtime.matcher import WatermarkOf
from broker.network.placement import home_records
from broker.network.placement.book import CellBook

_decode = msgspec.json.decode
_encode = msgspec.json.encode


class CellKeepingBroker(ActivatingBroker):
    """Keep the book of the cells in which a home's submissions run."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        super().__init__(options, limits)
        self.book = CellBook(self.options.name)
        self._elsewhere = self.installer.elsewhere = self.book.of
        self._beginnings = CellBeginnings(
            self.options,
            self.limits,
            self.book,
            self.catalogue,
            self._matcher,
            self._texts,
            lambda: self.given,
        )
        self.installer.predecessors = self._beginnings.predecessors

    def source_of(self, key: Key) -> Source:
        """The text that a subscription came with."""
        return self._texts[key][1]

    # --- requests --------------------------------------------------------------------------

    def _activate(
        self, message: messages.SpecificationSubmitted, answer: Answer, out: Outgoing
    ) -> None:
        fresh = [key for key in answer.keys if self._is_new(key)]
        self._beginnings.begin(fresh, answer.cells, message, self.now)
        if self.book.of:
            self._stop_what_runs_elsewhere()
        super()._activate(message, answer, out)

    def _is_new(self, key: Key) -> bool:
        """Tell whether a subscription was installed by this very message."""
        known = self._texts.get(key)  # which tells of it only afterwards
        return known is None or known[0] is not self.catalogue.subscriptions[key]

    def _cancel_requested(self, message: messages.CancelRequested, out: Outgoing) -> None:
        super()._cancel_requested(message, out)
        if self.book.of:
            subscriptions = self.catalogue.subscriptions
            self.book.drop([key for key in self.book.of if key not in subscriptions])
            self._stop_what_runs_elsewhere()

    def _stop_what_runs_elsewhere(self) -> None:
        """Run the tasks of those subscriptions alone that are of no cell."""
        needed = {
            name
            for key, one in self.catalogue.subscriptions.items()
            if key not in self.book.of and one.state != "ended"
            for name in (*one.uses, one.task)
        }
        for name in reversed(list(self._matcher.running)):  # users first
            if name not in needed:
                self._matcher.remove(name)

    # --- what cells say --------------------------------------------------------------------

    def _cell_stood(self, one: home_records.CellStood, out: Outgoing) -> None:
        if one.cell:
            told = mark(one.rows, self.catalogue, self.ledger, self._notes, self.now)
            out.publications += told
        else:
            follow(one.rows, self.catalogue, self._matcher, self.installer.shared, self.now)

    def _cell_results(self, one: home_records.CellResults, out: Outgoing) -> None:
        forgotten = self.book.forgotten
        self._hand_out(self.book.results(one), out)
        self.ledger.note("cell_ids_forgotten", self.book.forgotten - forgotten)

    def _cell_saved(self, one: home_records.CellSaved, out: Outgoing) -> None:
        fresh, rows = self.book.save(one)
        if fresh:
            self._now_active(fresh, out)
        self._hand_out(rows, out)

    def _cell_settled(self, one: home_records.CellSettled, _out: Outgoing) -> None:
        self.book.settle(one)
        over = [
            (subscriber, name)
            for subscriber, name, reached in one.reached
            if reached >= TIME_MAX_MS and self.book.of.get((subscriber, name)) == one.cell
        ]
        for key in over:
            if self.book.settled.get(key) == TIME_MAX_MS:  # all results before it are here
                self.book.drop([key])
                self._end(self.catalogue.subscriptions[key])

    def _frontiers(self, watermark_of: WatermarkOf) -> dict[Key, int]:
        return {**super()._frontiers(watermark_of), **self.book.settled}

    def waits_for(self, key: Key) -> str:
        """Return what keeps a subscription from being settled further; for a cell, its broker."""
        cell = self.book.cells.get(self.book.of.get(key, ""))
        return super().waits_for(key) if cell is None else f"what runs at {cell.serving.broker}"

    def _hand_out(self, rows: Sequence[home_records.Row], out: Outgoing) -> None:
        """Give results out as if they had been detected here."""
        found = []
        for subscriber, name, actor, payload in rows:
            installed = self.catalogue.subscriptions.get((subscriber, name))
            if installed is None:
                continue
            installed.results += 1
            said = _decode(payload)
            if installed.nearest:
                nearest = self._nearest(actor)
                if nearest != actor:
                    payload = _encode({**said, "actor": nearest})  # noqa: PLW2901
                    actor = nearest  # noqa: PLW2901
            found.append(Emission(said["id"], said["end"], subscriber, name, actor, payload))
        self.ledger.results += len(found)
        self._given(found, out)

    def _given(self, results: Sequence[Emission], out: Outgoing) -> None:
        out.results += results

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the whole state as plain data, cells included."""
        return {**super().state(), "cells": self.book.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state, cells included."""
        said = state.get("cells")
        if said is not None:
            self.book.restore(said)
        super().restore(state)
