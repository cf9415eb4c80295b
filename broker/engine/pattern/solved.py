"""Chains that are found among what waits, without stages: what completes one finds the others.

Owns the search in a group's readings for plain chains. Must not know agents. Invariant: it finds
what the stages of the pattern would pass on, in a group that has had readings alone.

Two shapes are looked for so, both with a `within` around all: `A then B then C` under `first`, and
`A then B+ then C` under `unrestricted`, with any number of elements and lists in between, each of a
type of its own, where nothing else is asked of them. What waits in a group then is all that a
later event may need: stages would hold the same, and cost ten times as much for each batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any

from broker.engine import native
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.gathered import SLICED
from broker.engine.pattern.operands import Gathered, Joint, Leaf, Operand, Padded, operands
from broker.engine.pattern.patience import FRESH_MAX, Entry, Group, Patience
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.prospects import NEVER, Prospect, Reach
from broker.engine.pattern.staged_partition import Partition
from broker.engine.runtime.budget import PLACE_BYTES, Budget
from language.relations import FOLLOWS

PLACES_MAX = 16  # of chains that the compiled pass takes
WITHIN_MS_MAX = 2**62 - 1
SOLVED_MIN = 1_024  # rows that may be found at once, whatever the budget

Solve = Callable[[Sequence[Entry], Event], list[Occurrence]]


@dataclass(frozen=True, slots=True)
class Solver:
    """What finds occurrences that an event of the `last` place completes.

    `spends`: an occurrence takes all with it that ends by its end.
    """

    last: int
    spends: bool
    solve: Solve


class Solving(Patience[Partition]):
    """Lets events wait, and finds what they complete, in groups without stages."""

    def __init__(
        self,
        prospect: Prospect,
        key: Callable[[Event], Any] | None,
        new: Callable[[Group, Reach], Partition],
        solver: Solver,
        slots: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(prospect, key, new)
        self._solver = solver
        self._pass = self._passing(slots, solver.last, 0)
        self._found: list[tuple[Occurrence, Group]] = []

    def found(self) -> list[tuple[Occurrence, Group]]:
        """What was found without stages, with the group; it is told once."""
        found, self._found = self._found, []
        return found

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        since: int | None = None,  # noqa: ARG002 - they are in order
        *,
        eager: bool,
    ) -> dict[Group, None]:
        """See Patience; groups with stages, or with what lasts, are left to those."""
        touched: dict[Group, None] = {}
        spent: dict[Group, int] = {}  # by group, of this time: what ended by then

        def ask(some: Sequence[Entry]) -> None:
            self._search(some, partitions, touched, spent, eager=eager)

        if eager or self._pass is None:
            ask(entries)
        else:
            waiting = self._pass(entries, partitions, touched, spent, ask)
            self.count += waiting  # beside what `ask` has added
        return touched

    def _search(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        touched: dict[Group, None],
        spent: dict[Group, int],
        *,
        eager: bool,
    ) -> None:
        """One after the other; find what they complete."""
        key_of, tests, last = self._key, self._prospect.tests, self._solver.last
        key: Any = ()
        for entry in entries:
            at, event = entry
            if key_of is not None:
                key = key_of(event)
                if key is None:
                    continue
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = self._new(key, self._prospect.reach())
            elif spent and event.end <= spent.get(key, NEVER):
                continue
            hopes = tests[at](partition.reach, event)
            if eager or partition.open or key in touched or event.start != event.end:
                partition.fresh.append(entry)
                self.count += 1
                if hopes or eager or not partition.open or len(partition.fresh) >= FRESH_MAX:
                    touched[key] = None
            elif at != last:
                partition.fresh.append(entry)
                self.count += 1
                if len(partition.fresh) >= partition.full:
                    self.forget(partition, event.end - 1)
                    partition.full = max(FRESH_MAX, 2 * len(partition.fresh))
            elif hopes:
                made = self._solver.solve(partition.fresh, event)
                self._found += [(one, key) for one in made]
                if made and self._solver.spends:
                    self.taken(partition)
                    spent[key] = event.end

    @property
    def in_vain(self) -> bool:
        """See Patience: what is found without stages is never so."""
        return False


def solver_of(layout: Layout) -> Solver | None:
    """What finds the occurrences of a pattern; None where it takes stages."""
    root = layout.root
    within_ms = root.within_ms
    types = [leaf.event_type for leaf in layout.leaves]
    if within_ms is None or len(set(types)) < len(types):
        return None
    parts = list(operands(root))
    if not all(one.within_ms in {None, within_ms} and _asks_nothing(one) for one in parts):
        return None
    if isinstance(root, Gathered):
        return _of_lists(root, within_ms, layout.budget)
    joints = [one for one in parts if isinstance(one, Joint)]
    alike = len({(one.operator, one.context) for one in joints}) == 1
    if not alike or joints[0].context.name != "first":  # what is compiled is the run of `first`
        return None
    if len(joints) + len(types) < len(parts):
        return None
    if any(one.closed for one in joints if one is not root):
        return None
    last = len(types) - 1
    solve = _compiled(within_ms, range(last + 1), (), _first(last, within_ms), first=True)
    return Solver(last, True, solve)


def _compiled(
    within_ms: int,
    elements: Sequence[int],
    lists: Sequence[tuple[int, int, int, bool]],
    solve: Solve,
    *,
    first: bool,
) -> Solve:
    """The same compiled; `elements`, `lists`: their places, and beside which ones a list stands."""
    many = len(elements) + len(lists) > PLACES_MAX or within_ms > WITHIN_MS_MAX
    if native.passes is None or many:
        return solve
    made: Solve = native.passes.Chain(within_ms, tuple(elements), tuple(lists), first, solve)
    return made


def _asks(operand: Operand) -> bool:
    """Whether it asks for more than order and time."""
    return bool(operand.conjuncts or operand.anchors or operand.denied) or (
        operand.spread_m is not None
    )


def _asks_nothing(operand: Operand) -> bool:
    if isinstance(operand, Leaf):
        return not (operand.anchors or operand.denied)  # what else it asks is asked at the door
    if isinstance(operand, Joint):
        plain = operand.operator in FOLLOWS and isinstance(operand.right, Leaf | Padded)
        limits = operand.bound or operand.next or operand.nth is not None
        return plain and not limits and not _asks(operand)
    if isinstance(operand, Gathered):
        return not _asks(operand)
    return isinstance(operand, Padded) and isinstance(operand.operand, Leaf)


def _since(entries: Sequence[Entry], since: int) -> list[Entry]:
    """Those of readings in order that begin at the time or later: as a rule the last few."""
    found = []
    for entry in reversed(entries):
        if entry[1].start < since:
            break
        found.append(entry)
    return found[::-1]


def _first(last: int, within_ms: int) -> Solve:
    """The earliest that can begin, then the earliest that follows, and so on."""

    def solve(entries: Sequence[Entry], event: Event) -> list[Occurrence]:
        since = event.end - within_ms
        filled: list[Event] = []
        before = since - 1
        for at, one in _since(entries, since):
            if at == len(filled) and one.start > before:
                filled.append(one)
                before = one.end
                if at == last - 1:
                    break
        if len(filled) < last or event.start <= before:
            return []
        return [(event.end, filled[0].start, *filled, event)]

    return solve


def _of_lists(root: Gathered, within_ms: int, budget: Budget) -> Solver | None:
    """Every choice of the elements, each with all that lies in the places of its lists."""
    elements = _elements(root.base)
    if elements is None or len(elements) < 2 or root.trailing:
        return None
    places = [one.low for one in elements]
    lists = []
    for one in root.members:
        plain = not (one.conjuncts or one.after_bound or one.before_bound)
        if not plain or one.after is None or one.before is None:
            return None
        if not isinstance(one.operand, Leaf):
            return None
        lists.append((one.operand.low, one.after.low, one.before.low, one.optional))
    *before, last = places
    size = root.high - root.low

    def solve(entries: Sequence[Entry], event: Event) -> list[Occurrence]:
        since = event.end - within_ms
        columns: list[list[Event]] = [[] for _ in range(size)]
        for at, one in _since(entries, since):
            if one.end < event.start:
                columns[at].append(one)
        ends = {place: [one.end for one in columns[place]] for place, *_ in lists}
        chosen: list[tuple[Event, ...]] = [()]
        for place in before:
            chosen = [
                (*some, one) for some in chosen for one in columns[place] if _follows(some, one)
            ]
        made: list[Occurrence] = []
        for some in chosen:
            members: list[Any] = [None] * size
            for place, one in zip(places, (*some, event), strict=True):
                members[place] = one
            for place, after, until, optional in lists:
                low = bisect_right(ends[place], members[after].end)
                high = bisect_left(ends[place], members[until].start)
                if low >= high and not optional:
                    break
                members[place] = tuple(columns[place][low:high])
            else:
                made.append((event.end, some[0].start, *members))
        return made

    search = _compiled(within_ms, places, lists, solve, first=False)
    filled = [place for place, *_ in lists]
    return Solver(last, False, _charged(search, before, filled, within_ms, budget))


def _charged(
    solve: Solve, before: list[int], lists: list[int], within_ms: int, budget: Budget
) -> Solve:
    """The same, charged before anything is made: compiled or not, all is found or nothing."""

    @wraps(solve)
    def charged(entries: Sequence[Entry], event: Event) -> list[Occurrence]:
        rows_max = (len(entries) // len(before) + 1) ** len(before)
        if rows_max > SOLVED_MIN:
            since = event.end - within_ms
            columns: dict[int, list[Event]] = {}
            for place, member in _since(entries, since):
                columns.setdefault(place, []).append(member)
            count = _chains([columns.get(place, []) for place in before])
            members = sum([len(columns.get(place, [])) for place in lists])
            budget.keep(count, len(before) + len(lists) + 1)
            budget.spend(count * (members // SLICED), count * members * PLACE_BYTES // 2)
        return solve(entries, event)

    return charged


def _chains(columns: Sequence[Sequence[Event]]) -> int:
    """Count the rows of readings, one of each column, each after the one before."""
    sums = list(range(len(columns[0]) + 1))  # of the rows that end with one of the first so many
    for left, right in pairwise(columns):
        ends = [event.end for event in left]
        rows = [sums[bisect_left(ends, event.start)] for event in right]
        sums = [0, *accumulate(rows)]
    return sums[-1]


def _follows(some: tuple[Event, ...], one: Event) -> bool:
    return not some or bool(some[-1].end < one.start)


def _elements(base: Operand) -> list[Leaf] | None:
    """The elements of a chain of `then` that chooses every combination."""
    found: list[Leaf] = []
    at = base
    while True:
        right = at.right if isinstance(at, Joint) else at
        element = right.operand if isinstance(right, Padded) else right
        if not isinstance(element, Leaf):
            return None
        found.insert(0, element)
        if not isinstance(at, Joint):
            return found
        if at.context.chooses:
            return None
        at = at.left
