"""A term of a cell as it goes from a home to a host: all of it, and the cell made of that.

Owns both directions, which have to fit. Must not know when either happens. Invariant: what bears on
results (the text or the snapshot, tables, options, versions of functions, origins) is all there.
"""

from __future__ import annotations

import json

import msgspec

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.cells.cell import Cell
from broker.core.recovery.durable import DurableBroker, head_of
from broker.core.recovery.durable_listed import RecoveryError
from broker.network.placement.book import Kept
from broker.network.placement.cell_messages import SPLITS, Hosted, TextRevision, Which
from broker.network.placement.compression import unpressed
from broker.network.placement.hosts import CellRefusedError
from broker.network.placement.suspension import standing_of


def contents(home: DurableBroker, cell: Kept, which: Which) -> Hosted:
    """Return all that a host needs to begin a term of a cell of this home."""
    source = home.network.source_of(cell.keys[0])
    text, tables = source.text.encode("utf-8", "surrogatepass"), source.tables
    origins = {name: tuple(types) for name, types in cell.origins.items()}
    # What is said of a changed subscription is of a text that begins only behind this snapshot.
    keys = [key for key in cell.keys if not cell.is_revised(key)]
    standing = standing_of(home.catalogue, keys)
    calls = home.given.versions(source.text, source.functions)
    terms = _options(cell, home.options), text, tables, origins
    kept = cell.snapshot, standing, calls, cell.revision
    return Hosted(which, tuple(cell.keys), *terms, *kept)


class CellMaker:
    """Make cells in a broker."""

    def __init__(self, durable: DurableBroker) -> None:
        self._durable = durable

    def make(self, hosted: Hosted, life: int, now: int) -> Cell:
        """Return a cell in a life. Raises CellRefusedError."""
        durable = self._durable
        return Cell(_core_of(hosted, durable, now), hosted, durable.options.name, life)

    def install(self, cell: Cell, hosted: Hosted, home: str, now: int) -> str:
        """Have it begin from its text; why that is refused, "" where it is not."""
        text = hosted.text.decode("utf-8", "surrogatepass")
        # Its home has weighed no more than that, and the rest of the text is not of this cell.
        asked = messages.SpecificationSubmitted(home, "", text, proven=True, only=hosted.keys)
        cell.request(asked, now)
        errors = _errors(cell)
        return f"its text is refused there: {errors}" if errors else ""

    def revise(self, cell: Cell, revision: TextRevision, now: int) -> str:
        """Have it take up another text; why that is refused, "" where it is not."""
        text = revision.text.decode("utf-8", "surrogatepass")
        installed = cell.durable.catalogue.subscriptions
        # Who submitted the text before may replace it; its home may be another by now.
        client = next((before.client for before in installed.values()), "")
        only = tuple(dict.fromkeys([*installed, *revision.keys]))
        asked = messages.SpecificationSubmitted(client, "", text, proven=True, only=only)
        for subscriber, name in revision.keys if revision.joins else ():
            if (subscriber, name) in installed:  # cancelled, of which this host has not heard
                gone = messages.CancelRequested(subscriber, "", name, proven=True)
                cell.request(gone, now)
        cell.replies.clear()  # those to cancellations
        cell.revise(revision, asked, now)
        return _errors(cell)


def _errors(cell: Cell) -> str:
    """Return why what was asked of a cell's core last was refused, "" where it was not."""
    replies, cell.replies = cell.replies, []
    answer = json.loads(replies[0].payload) if replies else {"errors": "no answer"}
    return "" if answer.get("ok") else str(answer.get("errors"))


def _core_of(hosted: Hosted, host: DurableBroker, now: int) -> DurableBroker:
    """The core of a cell, as its home has it. Raises CellRefusedError."""
    options = {**hosted.options, "name": hosted.which.name, "networked": True}
    options |= {"tables": hosted.tables, SPLITS: bool(hosted.options.get(SPLITS))}
    try:
        functions = host.given.for_versions(hosted.functions)
    except LookupError as error:
        raise CellRefusedError(f"{error.args[0]} at {host.options.name}") from None
    try:
        snapshot = unpressed(hosted.snapshot) if hosted.snapshot else None
        core, _ = DurableBroker.recover(
            msgspec.convert(options, BrokerOptions),
            host.limits,
            snapshot,
            (),
            0 if snapshot is None else head_of(snapshot).outbox_end,
            now,
            functions=functions,
        )
    except (RecoveryError, msgspec.MsgspecError, TypeError, ValueError) as error:
        raise CellRefusedError(f"its snapshot cannot be taken up there: {error}") from None
    return core


def _options(cell: Kept, options: BrokerOptions) -> dict[str, int]:
    """The options of a home that bear on results, as a host is told them."""
    shared = {
        "lateness_ms": options.lateness_ms,
        "drift_ppm": options.drift_ppm,
        "idle_timeout_ms": options.idle_timeout_ms,
    }
    return shared | {SPLITS: 1} if cell.splits else shared
