"""The search of a chain among what waits: what completes it finds the others, without operators.

Owns which chains are searched so, the search of each, and the waiting of groups that need no
operators for it. Must not know agents. Invariant: it finds what the chain's operator (sequence.py)
finds that is given the same, in a group that has had readings alone.

Two shapes are searched, both with a `within` around all: `A then B then C` under `first`, and
`A then B+ then C` under `unrestricted`, with any number of elements and lists in between, where
nothing else is asked of them. All that a later event may need waits with its group then. An
operator takes each event and drops most of them again; a search costs something only where a chain
may be complete. A run (`first`) is one loop; for lists it is generated, so that each chain has
columns, loops and limits of its own and none that another might need.

The same search in C was tried: it is a sixteenth faster for lists, and no more for runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.event.source import Constants, build
from broker.engine.pattern.agent.patience import Patience
from broker.engine.pattern.agent.staged_partition import FRESH_MAX, Entry, Group, Partition
from broker.engine.pattern.fused.members import leaf_of
from broker.engine.pattern.fused.sequence import Chain
from broker.engine.pattern.layout.operands import Gathered, Joint, Leaf, Operand, operands
from broker.engine.pattern.layout.prospects import NEVER, Prospect, Reach
from broker.engine.pattern.operators.gathered import SLICED
from broker.engine.runtime.budget import PLACE_BYTES, Budget

ROWS_MAX = 1_024  # rows that may be found at once, whatever the budget

Find = Callable[[Sequence[Entry], Event], list[Occurrence]]


@dataclass(frozen=True, slots=True)
class ChainSearch:
    """The matches that an event of the `last` place completes, among readings in order.

    `spends`: a match takes all with it that ends by its end.
    """

    last: int
    spends: bool
    find: Find


class Searching(Patience):
    """Lets events wait, and finds what they complete, in groups without operators."""

    def __init__(
        self,
        prospect: Prospect,
        key: Callable[[Event], Any] | None,
        new: Callable[[Group, Reach], Partition],
        search: ChainSearch,
        slots: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(prospect, key, new)
        self._search = search
        self._pass = self._passing(slots, search.last, 0)

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        since: int | None = None,  # noqa: ARG002 - they are in order
        *,
        eager: bool,
    ) -> dict[Group, None]:
        """Let events wait; groups with operators, or with what lasts, are left to those."""
        touched: dict[Group, None] = {}
        spent: dict[Group, int] = {}  # by group, of this time: what ended by then

        key_of, tests, last = self._key, self._prospect.tests, self._search.last

        def ask(entry: Entry) -> None:
            place, event = entry
            key: Any = () if key_of is None else key_of(event)
            if key is None:
                return
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = self._new(key, self._prospect.reach())
            elif spent and event.end <= spent.get(key, NEVER):
                return
            hopes = tests[place](partition.reach, event)
            if eager or partition.open or key in touched or event.start != event.end:
                partition.fresh.append(entry)
                self.count += 1
                if hopes or eager or not partition.open or len(partition.fresh) >= FRESH_MAX:
                    touched[key] = None
            elif place != last:
                partition.fresh.append(entry)
                self.count += 1
                if len(partition.fresh) >= partition.full:
                    self.forget(partition, event.end - 1)
                    partition.full = max(FRESH_MAX, 2 * len(partition.fresh))
            elif hopes:
                made = self._search.find(partition.fresh, event)
                self.matches += [(match, key) for match in made]
                if made and self._search.spends:
                    self.taken(partition)
                    spent[key] = event.end

        if eager or self._pass is None:
            for entry in entries:
                ask(entry)
        else:
            waiting = self._pass(entries, partitions, touched, spent, ask)
            self.count += waiting  # beside what `ask` has added
        return touched


# --- which chains are searched -----------------------------------------------------------


def search_of(chain: Chain, budget: Budget) -> ChainSearch | None:
    """Return the search of a chain; None where it takes an operator."""
    gathered = chain.gathered
    whole: Operand = chain.links[-1] if gathered is None else gathered
    within_ms = whole.within_ms
    parts = [*operands(whole)]
    if within_ms is None or not all(
        part.within_ms in {None, within_ms} and _asks_nothing(part) for part in parts
    ):
        return None
    places = [leaf_of(element).low for element in chain.elements]
    if gathered is None:
        if not chain.context.runs or chain.context.replaces or not chain.timeless:
            return None
        return ChainSearch(places[-1], True, _run(places[-1], within_ms))
    plain = not any(link.context.chooses for link in chain.links)
    if not plain or any(
        member.conjuncts or member.after_bound or member.before_bound for member in gathered.members
    ):
        return None
    lists = [_list_of(gathered, number) for number in range(len(gathered.members))]
    rows = RowsBudget(places[:-1], [listed.place for listed in lists], within_ms, budget)
    return ChainSearch(places[-1], False, _gathering(places, lists, rows))


def _asks_nothing(operand: Operand) -> bool:
    """Return True where it asks for order and `within` alone, or at the door, as an atom does."""
    if operand.anchors or operand.denied:
        return False
    if isinstance(operand, Leaf):
        return True
    asks = operand.conjuncts or operand.spread_m is not None
    return not asks and not (isinstance(operand, Joint) and operand.bound)


# --- the searches ------------------------------------------------------------------------


def _run(last: int, within_ms: int) -> Find:
    """Return the search for the earliest that can begin, the earliest that follows, and so on."""

    def find(entries: Sequence[Entry], event: Event) -> list[Occurrence]:
        since = event.end - within_ms
        near = []
        for entry in reversed(entries):
            if entry[1].start < since:
                break
            near.append(entry)
        filled: list[Event] = []
        before, wanted = since - 1, 0
        for place, reading in reversed(near):
            if place == wanted and reading.start > before:
                filled.append(reading)
                before = reading.end
                wanted += 1
                if wanted == last:
                    whole = (event.end, filled[0].start, *filled, event)
                    return [whole] if event.start > before else []
        return []

    return find


@dataclass(frozen=True, slots=True)
class Listed:
    """A list: its place, those of the elements beside it, and whether it may be empty."""

    place: int
    after: int
    before: int
    optional: bool


def _list_of(gathered: Gathered, number: int) -> Listed:
    member = gathered.members[number]
    assert member.after is not None
    assert member.before is not None
    after, before = leaf_of(member.after), leaf_of(member.before)
    return Listed(member.operand.low, after.low, before.low, member.optional)


class RowsBudget:
    """The budget of one chain with lists: charged before anything is made."""

    def __init__(
        self, elements: Sequence[int], lists: Sequence[int], within_ms: int, budget: Budget
    ) -> None:
        """`elements`: the places of those before the last."""
        self._elements, self._lists = elements, lists
        self._budget = budget
        self.within_ms = within_ms
        # With up to so many that wait, no choice of them can be too much.
        self.free = len(elements) * int((ROWS_MAX + 0.5) ** (1 / len(elements))) - 1

    def charge(self, entries: Sequence[Entry], since: int) -> None:
        """Charge for all rows that the entries from that time on may give."""
        columns: dict[int, list[Event]] = {}
        for place, reading in reversed(entries):
            if reading.start < since:
                break
            columns.setdefault(place, []).append(reading)
        for column in columns.values():
            column.reverse()
        count = _count_rows([columns.get(place, []) for place in self._elements])
        members = sum([len(columns.get(place, [])) for place in self._lists])
        self._budget.keep(count, len(self._elements) + len(self._lists) + 1)
        self._budget.spend(count * (members // SLICED), count * members * PLACE_BYTES // 2)


def _count_rows(columns: Sequence[Sequence[Event]]) -> int:
    """Count the rows of readings, one of each column, each after the one before."""
    sums = list(range(len(columns[0]) + 1))  # of the rows that end with one of the first so many
    for left, right in pairwise(columns):
        ends = [event.end for event in left]
        rows = [sums[bisect_left(ends, event.start)] for event in right]
        sums = [0, *accumulate(rows)]
    return sums[-1]


def _gathering(places: Sequence[int], lists: Sequence[Listed], rows: RowsBudget) -> Find:
    """Return the search for every choice of the elements, each with all that lies in its lists."""
    constants = Constants()
    constants.helper("bisect_left", bisect_left)
    constants.helper("bisect_right", bisect_right)
    charge = constants.helper("charge", rows.charge)
    free, within = constants.add(rows.free), constants.add(rows.within_ms)
    text = "\n".join(_lines(places, lists, f"if len(entries) > {free}: {charge}(entries, since)"))
    find: Find = build(text.replace("WITHIN", within), "find", constants)
    return find


def _lines(places: Sequence[int], lists: Sequence[Listed], charge: str) -> Iterator[str]:
    """Yield the text of such a search.

    `p1` are the readings at place 1 that are near enough, `n1` their ends where it is a list; `e0`
    is the reading chosen at place 0, `p1[l1:h1]` the list at place 1.
    """
    *before, last = places
    columns = [*before, *(listed.place for listed in lists)]
    yield "def find(entries, event):"
    yield "    end, until = event.end, event.start"
    yield "    since = end - WITHIN"
    yield f"    {charge}"
    for place in columns:
        yield f"    p{place} = []"
    yield "    for place, reading in reversed(entries):"
    yield "        if reading.start < since: break"
    yield "        if reading.end >= until: continue"
    for number, place in enumerate(columns):
        yield f"        {'elif' if number else 'if'} place == {place}: p{place}.append(reading)"
    needed = [*before, *(listed.place for listed in lists if not listed.optional)]
    yield f"    if not ({' and '.join(f'p{place}' for place in needed)}): return []"
    for place in columns:
        yield f"    p{place}.reverse()"
    for listed in lists:
        yield f"    n{listed.place} = [reading.end for reading in p{listed.place}]"
    yield f"    e{last}, made = event, []"
    indent = "    "
    for number, place in enumerate(before):
        yield f"{indent}for e{place} in p{place}:"
        indent += "    "
        if number:
            yield f"{indent}if e{before[number - 1]}.end >= e{place}.start: continue"
    for listed in lists:
        low, high, ends = f"l{listed.place}", f"h{listed.place}", f"n{listed.place}"
        yield f"{indent}{low} = bisect_right({ends}, e{listed.after}.end)"
        if listed.before == last:  # all that is near enough ends before that begins
            yield f"{indent}{high} = len({ends})"
        else:
            yield f"{indent}{high} = bisect_left({ends}, e{listed.before}.start, {low})"
        if not listed.optional:
            yield f"{indent}if {low} == {high}: continue"
    filled = {place: f"e{place}" for place in places} | {
        each.place: f"tuple(p{each.place}[l{each.place}:h{each.place}])" for each in lists
    }
    bound = ", ".join(filled[place] for place in sorted(filled))
    yield f"{indent}made.append((end, e{before[0]}.start, {bound}))"
    yield "    return made"
