"""The cells that begin with a text, and those that go on with it.

Owns both choices. Must not know where cells run. Invariant: a subscription that replaces another
goes on in a cell only with all that shares a definition with it, and only if the text has all that
is to stay in that cell: so the text alone is enough to begin the cell from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
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

MEMBERS_MAX = 64  # of a cell that others join: one host bears all of them
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
        replaced = [before.key for before in change.leaving if before.key in members]
        began = [revision.keys for revision in cell.revisions if revision.begins]
        if any(key in keys for keys in began for key in replaced):
            return None  # what has begun there may have missed what it should hold
        if change.apart:
            return cell
        # An earlier version had one text in a cell, with all of it.
        has_all = all(key in change.specification.subscriptions for key in cell.keys)
        return cell if has_all and not began else None

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
        keys: Iterable[Key],
        changes: Iterable[CellChange],
        message: SpecificationSubmitted,
        now: int,
    ) -> None:
        """Write down where the subscriptions run that a text has just installed."""
        book, subscriptions = self._book, self._catalogue.subscriptions
        # The message that installs a subscription tells only afterwards that it was the one.
        before = {key: self._texts[key][0] for key in keys if key in self._texts}
        fresh = [key for key in keys if before.get(key) is not subscriptions[key]]
        going_on = {key: None for change in changes for key in change.keys}
        anew = [key for key in fresh if key not in going_on]
        # What a host still runs there of those before is not theirs.
        left = {book.of[key] for key in anew if key in book.of}
        book.drop([key for key in anew if key in book.of])
        text = message.text.encode("utf-8", "surrogatepass")
        for change in changes:
            book.revise(change.cell, change.keys, text, begins=change.begins)
        if self._options.cells:
            self._begin(anew, left, message, now)

    def _begin(
        self,
        anew: Sequence[Key],
        left: Container[str],
        message: SpecificationSubmitted,
        now: int,
    ) -> None:
        """Have these join cells that run what they need, but those of `left`; else begin cells."""
        book = self._book
        room = self._limits.cells_max // PARTED_SHARE - len(book.cells)
        subscriptions, tasks = self._catalogue.subscriptions, self._matcher.tasks()
        installed = [subscriptions[key] for key in anew if self._is_apart(subscriptions[key])]
        users = self._users(left) if message.apart else {}
        text = message.text.encode("utf-8", "surrogatepass")
        for part in parts(installed, tasks, message, room):
            needed = dict.fromkeys([key for each in part for key in (*each.definitions, each.task)])
            splits = message.split and may_split(message.text, {key: tasks[key] for key in needed})
            keys = [each.key for each in part]
            shared = [cell for key in needed for cell in users.get(key, ())]
            cell = None if splits else self._joined(len(keys), shared, message.text)
            if cell is None:
                book.begin(keys, now, splits=splits)
            else:
                book.join(cell.name, keys, text)

    def _users(self, left: Container[str]) -> dict[str, list[Kept]]:
        """Return by definition the cells that run it and may be joined."""
        users: dict[str, dict[str, Kept]] = {}
        for name, cell in self._book.cells.items():
            if cell.active and not cell.splits and name not in left:
                for each in [self._catalogue.subscriptions[key] for key in cell.keys]:
                    for definition in each.definitions:
                        users.setdefault(definition, {})[name] = cell
        return {definition: list(cells.values()) for definition, cells in users.items()}

    def _joined(self, count: int, cells: Iterable[Kept], text: str) -> Kept | None:
        """Return the first of some cells that takes so many subscriptions of a text, if any."""
        new = source_of(text, self._options.tables, self._functions())
        for cell in cells:
            # A host has the tables and functions of the text that the cell began with.
            sources = [self._texts[key][1] for key in cell.keys if key in self._texts]
            alike = all(
                (each.tables, each.functions) == (new.tables, new.functions) for each in sources
            )
            if alike and len(cell.keys) + count <= MEMBERS_MAX:
                return cell
        return None
