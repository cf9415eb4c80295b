"""The cells that begin with a text, and those that go on with it.

Owns both choices. Must not know where cells run. Invariant: a subscription that replaces another
goes on in a cell only with all that shares a definition with it, and only if the text has all that
is to stay in that cell: so the text alone is enough to begin the cell from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.core.networked.cell_parts import parts, sharing
from broker.core.preview import CellChange, Predecessors, TextChange, own_predecessors
from broker.core.recovery.durable_state import Source, StateError, source_of, tasks_of
from broker.engine.window.splitting import may_split

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue, Installed
    from broker.core.messages import SpecificationSubmitted
    from broker.core.options import BrokerOptions
    from broker.engine.limits import Limits
    from broker.engine.runtime.matcher import Matcher
    from broker.network.functions.register import FunctionRegister
    from broker.network.placement.book import CellBook, Kept
    from language import Task

PARTED_SHARE = 2  # of the cells that a broker may run: once so many are there, texts stay whole

Key = tuple[str, str]


class CellBeginnings:
    """Begin the cells of a text, or have those go on that run what it replaces.

    `texts` has, by subscription, the text that it came with; `functions` returns the functions that
    are given here.
    """

    def __init__(  # noqa: PLR0917  # what a part of the core is lent
        self,
        options: BrokerOptions,
        limits: Limits,
        book: CellBook,
        catalogue: Catalogue,
        matcher: Matcher,
        texts: Mapping[Key, tuple[Installed, Source]],
        functions: Callable[[], FunctionRegister],
    ) -> None:
        self._options = options
        self._limits = limits
        self._book = book
        self._catalogue = catalogue
        self._matcher = matcher
        self._texts = texts
        self._functions = functions

    # --- what goes on ----------------------------------------------------------------------

    def predecessors(self, change: TextChange, in_cells: bool) -> list[Predecessors]:
        """Return what subscriptions of a text may go on from; `in_cells`: those in cells, too."""
        own = [each.key for each in change.coming if not self._is_apart(each)]
        predecessors = [own_predecessors(own, self._catalogue, self._matcher, self._book.of)]
        apart = [each for each in change.coming if self._is_apart(each)] if in_cells else []
        for group in sharing(apart):
            cell = self._cell_of(group, change)
            if cell is not None and (tasks := self._tasks(cell, change)):
                keys = tuple([each.key for each in group])
                predecessors.append(Predecessors(tasks, cell.name, keys))
        return predecessors

    def _is_apart(self, subscription: Installed) -> bool:
        """Tell whether it runs as a cell; one with a `wait` does not: whom its home sees counts."""
        return self._options.cells and not subscription.clocks

    def _cell_of(self, group: Sequence[Installed], change: TextChange) -> Kept | None:
        """Return the one cell that runs all that these replace, if they may go on there."""
        members = dict.fromkeys([each.key for each in group])
        cells = self._book.of
        names = [cells.get(before.key, "") for before in change.leaving if before.key in members]
        if not names or len(dict.fromkeys(names)) > 1:
            return None
        cell = self._book.cells.get(names[0])
        if cell is None or not cell.active or cell.splits:
            return None
        if any(revision.begins for revision in cell.revisions):
            return None  # what has begun there may have missed what it should hold
        if any(key not in change.specification.subscriptions for key in cell.keys):
            return None
        return cell

    def _tasks(self, cell: Kept, change: TextChange) -> dict[str, Task]:
        """Return the tasks of a cell that go on; none where the text has other means than it."""
        given = self._functions()
        new = source_of(change.text, self._options.tables, given)
        sources = {id(source): source for source in [self._texts[key][1] for key in cell.keys]}
        tasks: dict[str, Task] = {}
        for source in sources.values():
            # A host has the tables and functions of the text that the cell began with.
            if source.functions != new.functions or not new.tables.items() <= source.tables.items():
                return {}
            try:
                tasks |= tasks_of(source, given)
            except StateError:
                return {}
        running = [self._catalogue.subscriptions[key] for key in cell.keys]
        wanted = {key: None for each in running for key in (*each.definitions, each.task)}
        for each in [each for each in running if each.suspended]:
            for key in (*each.definitions, each.task):  # what another one needs as well has stopped
                wanted.pop(key, None)
        return {key: tasks[key] for key in wanted}

    # --- what begins -----------------------------------------------------------------------

    def begin(
        self,
        fresh: Sequence[Key],
        changes: Iterable[CellChange],
        message: SpecificationSubmitted,
        now: int,
    ) -> None:
        """Write down where the subscriptions run that a text has just installed."""
        book = self._book
        going_on = {key: None for change in changes for key in change.keys}
        book.drop([key for key in fresh if key in book.of and key not in going_on])
        text = message.text.encode("utf-8", "surrogatepass")
        for change in changes:
            book.revise(change.cell, change.keys, text, begins=change.begins)
        if self._options.cells:
            self._begin([key for key in fresh if key not in going_on], message, now)

    def _begin(self, fresh: Sequence[Key], message: SpecificationSubmitted, now: int) -> None:
        room = self._limits.cells_max // PARTED_SHARE - len(self._book.cells)
        subscriptions, tasks = self._catalogue.subscriptions, self._matcher.tasks()
        installed = [subscriptions[key] for key in fresh if self._is_apart(subscriptions[key])]
        for part in parts(installed, tasks, message, room):
            needed = dict.fromkeys([key for each in part for key in (*each.definitions, each.task)])
            splits = message.split and may_split(message.text, {key: tasks[key] for key in needed})
            self._book.begin([each.key for each in part], now, splits=splits)
