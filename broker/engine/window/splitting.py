"""Windows whose events may be folded where they enter, and their partial results merged elsewhere.

Owns which tasks these are, and the folding. Must not know brokers, positions or frames. Invariant:
a window is split only where every way to part its events gives the same events of the window; all
tasks that need an event are split, or none is.

Of the window's events the first ids of each group decide their order (see constituents.py). Where
nobody looks at that order but among the groups of one window the first id alone is kept: no event
is in two groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

from msgspec import Struct

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event, event_class
from broker.engine.filter.filterer import Filterer
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.engine.pattern.agent.staged_partition import needs_stages
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.runtime.agents import output_name
from broker.engine.window.agent import WindowAgent
from broker.engine.window.assigners import Grid, grid_of
from broker.engine.window.bound import end_anchors
from broker.engine.window.code import Shape
from broker.engine.window.constituents import IDS_MAX
from broker.engine.window.panes import PaneWindows
from broker.engine.window.partials import PaneRows
from language import Task, check_text
from language.functions import MERGING, is_aggregate
from language.tree import Call, Case, Definition, Lookup, Subscription
from language.walk import descendants

TEXT_CHARS_MAX = 65_536  # it goes to each origin, in one frame
PANE_MS_MAX = 3_600_000  # origins keep events until their pane is complete
SOURCE_BYTES = 5  # of a source's digest: of 10,000 sources hardly two have the same
KEY_CHARS = 8  # of a task's key, in rows

Place: TypeAlias = tuple[str, int]  # of a window: its task's key, shortened, and the case's place
Rows: TypeAlias = list[tuple[Place, PaneRows]]
Sources: TypeAlias = dict[int, set[bytes]]  # by pane, the digests of sources


class Split(Struct, frozen=True):
    """Name what is folded: tasks' keys, the types that they need, their grid, a group's ids."""

    keys: tuple[str, ...]
    types: tuple[str, ...]
    grid: Grid
    ids: int


def split_of(tasks: Mapping[str, Task]) -> Split | None:
    """Return how these tasks, all that need their events, are split; None if they are not.

    Their panes and their types are the same, so that one word tells which are complete.
    """
    folded: list[Task] = []
    grids: set[Grid] = set()
    kinds: set[tuple[str, ...]] = set()
    for task in tasks.values():
        if all(name in task.needs for name in task.inputs):
            continue
        grid = _grid(task)
        if grid is None:
            return None
        folded.append(task)
        grids.add(grid)
        kinds.add(tuple(sorted(task.inputs)))
    if len(grids) != 1 or len(kinds) != 1:
        return None
    keys = {task.key for task in folded}
    users = [task for task in tasks.values() if keys.intersection(task.needs.values())]
    ids = 1 if all(map(_looks_at_one, users)) else IDS_MAX
    return Split(tuple(sorted(keys)), kinds.pop(), grids.pop(), ids)


def may_split(text: str, tasks: Mapping[str, Task]) -> bool:
    """Return True if these tasks of a text are split, and another broker can read them from it."""
    split = split_of(tasks)
    if split is None or len(text) > TEXT_CHARS_MAX:
        return False
    checked = check_text(text)  # tables and functions of one's own are at the home alone
    known = checked.specification
    return known is not None and set(split.keys) <= known.graph.tasks.keys()


def _grid(task: Task) -> Grid | None:
    """The grid of a window that may be split."""
    node = task.node
    if not isinstance(node, Definition) or task.needs or node.window is None:
        return None
    window = node.window
    if not window.aggregated or window.every_ms is None or window.runs:
        return None
    grid = grid_of(window)
    if grid is None or grid.days is not None or grid.every > PANE_MS_MAX:
        return None
    return grid if all(_merges(task, node, case) for case in node.cases) else None


def _merges(task: Task, node: Definition, case: Case) -> bool:
    shape = Shape(task, case)
    if shape.grows or shape.distinct or case.consuming:
        return False
    if "least start" in (end_anchors(node, case.assign) or ()):
        return False  # how long events last is learned where they are seen
    for one in descendants(case):
        if isinstance(one, Lookup):
            return False  # tables are at the home alone
        if isinstance(one, Call) and not _is_known(one):
            return False
    return True


def _is_known(one: Call) -> bool:
    return one.own is None and (not is_aggregate(one) or one.function in MERGING)


def _looks_at_one(task: Task) -> bool:
    """Return True if a task looks at each event alone, whatever comes before it."""
    node = task.node
    if not isinstance(node, Subscription) or node.case.consuming:
        return False
    layout = lay_out(node.case)
    return len(layout.leaves) == 1 and not needs_stages(node.case, layout, node)


class Folder:
    """Folds events of some windows into rows; see `split_of` for which may be."""

    def __init__(self, tasks: Iterable[Task], ids: int, limits: Limits) -> None:
        self._ids = ids
        self._filterer = Filterer(limits, Ledger())
        self._windows: dict[Place, PaneWindows] = {}
        self._routes: dict[int, list[tuple[PaneWindows, int]]] = {}
        self._sources: Sources = {}
        self._digests: dict[str | None, bytes] = {}
        pane_of: Callable[[int], int] | None = None
        for task in tasks:
            grid = _grid(task)
            if grid is None:
                raise ValueError(f"{task.name} is no window that is split")
            pane_of = grid.pane_of
            self._install(task, limits)
        if pane_of is None:
            raise ValueError("nothing is to be folded")
        self._pane_of = pane_of

    def _install(self, task: Task, limits: Limits) -> None:
        node, output = task.node, task.output
        assert isinstance(node, Definition), "windows are of definitions"
        assert output is not None, "a definition makes events"
        kind = event_class(output_name(task), output.attributes, detected=True)
        for at, case in enumerate(node.cases):
            agent = WindowAgent(
                task,
                case,
                kind,
                groups_max=limits.groups_max,
                events_max=limits.events_held_max,
                duration_max_ms=limits.event_duration_ms_max,
            )
            windows = self._windows[task.key[:KEY_CHARS], at] = agent.panes()
            for leaf, one in enumerate(lay_out(case).leaves):
                content = self._filterer.add(one.event_type, one.conditions)
                self._routes.setdefault(content, []).append((windows, leaf))

    def wanted(self, events: Sequence[Event]) -> list[Event]:
        """Those that a window wants, in the order given."""
        found = {id(one) for _, some in self._filterer.route(events) for one in some}
        return [one for one in events if id(one) in found]

    def take(self, events: Sequence[Event]) -> int:
        """Fold events; how many a window wanted, each counted once for each of its operands."""
        count = 0
        for content, matched in self._filterer.route(events):
            for windows, leaf in self._routes[content]:
                windows.feed([(leaf, matched)], WATERMARK_NONE)
                count += len(matched)
            self._note(matched)
        return count

    def _note(self, events: Sequence[Event]) -> None:
        for pane, some in sources_of(events, self._pane_of, self._digests).items():
            self._sources.setdefault(pane, set()).update(some)

    def held(self) -> int:
        """Return how many groups there are."""
        return sum(windows.held() for windows in self._windows.values())

    def harvest(self) -> tuple[Rows, Sources]:
        """Return what was folded since the last time, and whose events that was."""
        rows = [(place, windows.harvest(self._ids)) for place, windows in self._windows.items()]
        sources, self._sources = self._sources, {}
        return [(place, some) for place, some in rows if some], sources


def sources_of(
    events: Sequence[Event], pane_of: Callable[[int], int], digests: dict[str | None, bytes]
) -> Sources:
    """By pane, who sent these events; `digests` are those that are known."""
    found: Sources = {}
    for pane, source in dict.fromkeys([(pane_of(one.end), one.source) for one in events]):
        if source not in digests:
            if len(digests) >= 100_000:
                digests.clear()
            said = (source or "").encode("utf-8", "surrogatepass")
            digests[source] = blake2b(said, digest_size=SOURCE_BYTES).digest()
        found.setdefault(pane, set()).add(digests[source])
    return found
