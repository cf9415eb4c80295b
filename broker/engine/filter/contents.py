"""Contents and where they are found: groups of rows, by hash and by ranges.

Owns contents, their compiled tests and the index of one event type. Must not know who wants a
content. Invariant: a content gets an event exactly if its compiled conditions hold for it; hash and
ranges only spare the asking.

The index of a type hashes on attributes that contents compare with constants for equality, source,
location and location prefixes first; behind each value, and for contents without such a condition,
is a group of rows (alternatives of contents) under range indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from broker.engine import native
from broker.engine.event.event import Event
from broker.engine.event.expressions import AtomScope, Writer
from broker.engine.event.source import Constants, Parameters, build
from broker.engine.filter.candidates import ListedLayer, chosen_term
from broker.engine.filter.cells import CellIndex, Ranges, columns_for, slots_of
from broker.engine.filter.conditions import (
    PATH,
    Alternative,
    Choice,
    Term,
    alternatives_of,
    slot_read,
    spanned,
)
from broker.engine.filter.content import Content, Found
from broker.engine.filter.scale import Scale, scale_of
from language.tree import Expression
from language.walk import conjuncts

# So few tests cost no more than the bisections in several columns would.
ROWS_PLAIN = 8  # a group of so few rows is asked row by row
LATER_SHARE = 8  # rows that no index covers: at most ROWS_PLAIN and a part in so many
SHAPES_MAX = 4_096  # compiled tests kept for contents to come
TABLES_MAX = 8  # hashed terms of one type; each costs every event a look-up
# Not one table of all combinations (source, location, type), as the minimal perfect hash of paper
# 003 (3.3.1) has it: that is built for a fixed set of keys, and here contents come and go. Several
# tables with one part each answer the same, and a dict needs no rebuilding.
BUCKET_FULL = 8  # rows behind one value before another term is hashed as well


class Shapes:
    """Compiled tests by their text; they take the event and then the constants."""

    def __init__(self) -> None:
        self._known: dict[str, Callable[..., bool]] = {}

    def test(
        self, conditions: tuple[Expression, ...]
    ) -> tuple[Callable[..., bool], tuple[Any, ...]]:
        """(test, constants) of a conjunction, whose parts are tested in the order of their shapes:
        what differs in its constants and the order of its parts alone shares a test.
        """
        parts = [part for condition in conditions for part in conjuncts(condition)]
        # `x > 1, y < 2` and `y < 5, x > 3` are one text after sorting, so one compiled function.
        if len(parts) > 1:
            parts.sort(key=_shape)
        constants = Parameters()
        code = Writer(AtomScope("e"), constants).conditions(tuple(parts))
        parameters = "".join(f", {name}" for name in constants.values)
        text = f"def test(e{parameters}):\n    return {code}\n"
        test = self._known.get(text)
        if test is None:
            if len(self._known) >= SHAPES_MAX:
                self._known.clear()  # those in use stay with their contents
            test = self._known[text] = build(text, "test", constants.helpers)
        return test, tuple(constants.values.values())


def _shape(part: Expression) -> str:
    return Writer(AtomScope("e"), Constants()).condition(part)


class Row:
    """One alternative of a content in one group."""

    __slots__ = ("content", "group", "layer", "ranges", "slot")

    def __init__(self, content: Content, ranges: Ranges, group: Group) -> None:
        self.content = content
        self.ranges = ranges
        self.group = group
        self.layer: Layer | ListedLayer | None = None
        self.slot = -1


class Layer:
    """Rows under one range index; dead ones are masked until the group is built anew."""

    __slots__ = ("alive", "index", "rows")

    def __init__(
        self, rows: list[Row], keys: list[str], terms: dict[str, Term], cells: int
    ) -> None:
        self.index = CellIndex([row.ranges for row in rows], keys, terms, cells)
        self.rows = rows
        self.alive = (1 << len(rows)) - 1
        for slot, row in enumerate(rows):
            row.layer, row.slot = self, slot

    def covers(self, row: Row) -> bool:
        """Return whether some column restricts the row."""
        return self.index.covers(row.ranges)

    def has(self, row: Row) -> bool:
        """Return whether the row stands here."""
        return row.layer is self and bool(self.alive >> row.slot & 1)

    def remove(self, row: Row) -> None:
        """Mask a row."""
        # Masked and not taken out: a row's bit stands in hundreds of cells. The group is built
        # anew when more slots are dead than alive, so removing costs little in the long run.
        self.alive &= ~(1 << row.slot)

    def append(self, row: Row) -> None:
        """Take a further row."""
        row.layer, row.slot = self, len(self.rows)
        self.rows.append(row)
        self.alive |= 1 << row.slot
        self.index.append(row.slot, row.ranges)

    def matched(self, event: Event) -> list[Content]:
        """The contents whose conditions hold; one for each of its rows that may."""
        bits = self.index.lookup(event) & self.alive
        if not bits:
            return []
        rows = self.rows
        # The cells are coarse where a column has more ends than cells, so what is found is asked
        # again.
        candidates = [rows[slot].content for slot in slots_of(bits)]
        return [one for one in candidates if one.test(event, *one.args)]


class Group:
    """Rows that the hash cannot tell apart; `home` is the hashed term and its value."""

    def __init__(
        self,
        terms: dict[str, Term],
        cells_max: int,
        home: tuple[str, Any] | None,
        scales: dict[Any, Any] | None = None,
    ) -> None:
        """`scales`: where it shows the compiled scale of its contents, under its value."""
        self.home = home
        # A string is equal to itself alone; 1 is to true and 1.0, which the test tells apart.
        self._settled = home is None or isinstance(home[1], str)
        self._scales = scales
        self._terms = terms
        self._cells_max = cells_max
        self._plain: dict[Row, None] = {}  # asked one by one,
        self._asked: list[tuple[Callable[..., bool], tuple[Any, ...], Content]] = []  # by these
        self._layers: list[Layer | ListedLayer] = []
        self._scale: Scale | None = None  # in the place of all others, where it can be
        self._count = 0
        self._built = 0  # rows when the layers were built
        self._dead = 0  # slots of the layers whose rows are gone
        self._unranged = 0  # plain rows that no range restricts: no index would help
        self._stale = False

    def __len__(self) -> int:
        return self._count

    def add(self, row: Row) -> None:
        """Take a row."""
        self._count += 1
        # The first layer that bounds one of its terms will do: each row stands in one place only.
        for layer in self._layers:
            if layer.covers(row):
                layer.append(row)
                break
        else:
            self._plain[row] = None
            self._unranged += not row.ranges
        self._change()

    def remove(self, row: Row) -> None:
        """Let a row go."""
        self._count -= 1
        if row.layer is None:
            del self._plain[row]
            self._unranged -= not row.ranges
        else:
            row.layer.remove(row)
            self._dead += 1
            if self._dead > self._count + ROWS_PLAIN:
                self._build()
        self._change()

    def _change(self) -> None:
        self._stale = True
        if self._scales is not None and self.home is not None:
            self._scales.pop(self.home[1], None)

    def match(self, event: Event, found: Found) -> int:
        """Give the event to the contents whose conditions hold; how many rows held."""
        # With the first event after a change, not with the change: a text with a thousand
        # subscriptions builds each group once.
        if self._stale:
            self._settle()
        if self._scale is not None:
            exactly = self._scale.contents(event)
            if exactly:
                found.give(exactly, event)
            return len(exactly)
        asked = self._asked
        holding = [content for test, args, content in asked if test(event, *args)] if asked else []
        for layer in self._layers:
            holding += layer.matched(event)
        if holding:
            found.give(holding, event)
        return len(holding)

    def _settle(self) -> None:
        """Build the layers anew where they have grown or do not cover enough."""
        self._stale = False
        waiting = len(self._plain) - self._unranged
        # Doubling bounds all building together by twice the last one.
        grown = self._count > 2 * self._built and self._count > ROWS_PLAIN
        if grown or waiting > ROWS_PLAIN + self._built // LATER_SHARE:
            self._build()
        self._scale = self._scaled()
        scale = None if self._scale is None else self._scale.compiled
        if scale is not None and self._scales is not None and self.home is not None:
            self._scales[self.home[1]] = scale
        contents = [row.content for row in self._plain]
        self._asked = [(content.test, content.args, content) for content in contents]

    def _scaled(self) -> Scale | None:
        """The cells of its contents, where these are few and the hash has left but one term."""
        # Then a cell can hold the contents themselves: one bisection tells all that an event meets,
        # nothing is tested and no bit is looked for.
        exact = all(row.content.says_all for row in self._plain)
        if self._layers or not exact or not self._settled:
            return None
        return scale_of([(row.ranges, row.content) for row in self._plain], self._terms)

    def _build(self) -> None:
        rows = list(self._plain)
        for layer in self._layers:
            rows += [row for row in layer.rows if layer.has(row)]
        for row in rows:
            row.layer = None
        self._layers = []
        self._plain = {}
        rest = [row for row in rows if row.ranges]
        while len(rest) > ROWS_PLAIN:
            chosen = chosen_term(rest)
            ranges = [row.ranges for row in rest]
            keys = columns_for(ranges) if chosen is None else [chosen[0]]
            wanted = frozenset(keys)
            covered = [row for row in rest if not wanted.isdisjoint(row.ranges[::3])]
            rest = [row for row in rest if wanted.isdisjoint(row.ranges[::3])]
            if chosen is None:
                self._layers.append(Layer(covered, keys, self._terms, self._cells_max))
            else:
                term = self._terms[chosen[0]]
                listed = ListedLayer(covered, term, chosen[1], settled=self._settled)
                self._layers.append(listed)
        self._plain = dict.fromkeys(rest)
        self._plain.update(dict.fromkeys(row for row in rows if not row.ranges))
        self._unranged = len(self._plain) - len(rest)
        self._built = self._count
        self._dead = 0


def prefixes(location: str) -> Iterable[str]:
    """The location and all that it is beneath, by segments."""
    found = [location]
    end = location.rfind("/")
    while end >= 0:
        found.append(location[:end])
        end = location.rfind("/", 0, end)
    return found


class TypeIndex:
    """All contents of one type, found by hash and ranges."""

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self._terms: dict[str, Term] = {}
        self._tables: dict[str, dict[Any, Group]] = {}
        self._scales: dict[str, dict[Any, Any]] = {}  # of groups that have a compiled one
        self._rest = Group(self._terms, cells_max, None)
        self._route: Callable[[list[Event], Found], int] | None = None

    def add(self, content: Content) -> None:
        """Take a content."""
        rows = []
        for alternative in alternatives_of(content.conditions):
            choices, ranges = self._combined(alternative)
            key = self._table_for(choices)
            if key is None:
                groups = [self._rest]
            else:
                groups = [self._group(key, value) for value in choices[key].values]
                ranges = _without(ranges, key)
            rows += [Row(content, ranges, group) for group in groups]
        for row in rows:
            row.group.add(row)
        content.rows = tuple(rows)
        content.settle()
        self._route = None

    def remove(self, content: Content) -> None:
        """Let a content go."""
        for row in content.rows:
            row.group.remove(row)
            if row.group.home is not None and not row.group:
                key, value = row.group.home
                self._tables[key].pop(value, None)
                if not self._tables[key]:
                    del self._tables[key], self._scales[key]
        content.rows = ()
        self._route = None

    def route(self, events: list[Event], found: Found) -> int:
        """Give events to contents; how many events no content wanted."""
        if self._route is None:
            self._route = self._giving(self._compiled())
        return self._route(events, found)

    def _combined(self, alternative: Alternative) -> tuple[dict[str, Choice], Ranges]:
        """The choices by term, and for each term one range, from all that is said of it."""
        choices: dict[str, Choice] = {}
        spans: dict[str, list[Any]] = {}
        for literal in alternative:
            key = literal.term.key
            self._terms.setdefault(key, literal.term)
            if isinstance(literal, Choice):
                before = choices.get(key)
                if before is None or len(literal.values) < len(before.values):
                    choices[key] = literal
                span = spanned(literal)
                if span is None:
                    continue
                # A choice that was not hashed still bounds its term; of `kind in {1, 3}` the range
                # 1..3 spares the test for 4.
                literal = span  # noqa: PLW2901 - from here on it is a range as the others
            low, high = spans.setdefault(key, [None, None])
            if literal.low is not None and (low is None or literal.low > low):
                spans[key][0] = literal.low
            if literal.high is not None and (high is None or literal.high < high):
                spans[key][1] = literal.high
        return choices, tuple(part for key, span in spans.items() for part in (key, *span))

    def _table_for(self, choices: dict[str, Choice]) -> str | None:
        """The term to hash a row by; None if it is compared with nothing."""
        if not choices:
            return None
        # The emptiest bucket wins: a content with a location and a source goes where fewer others
        # would be asked with it.
        best: tuple[int, str] | None = None
        for key, choice in choices.items():
            table = self._tables.get(key)
            if table is not None:
                load = max(len(table.get(value, ())) for value in choice.values)
                if best is None or load < best[0]:
                    best = (load, key)
        unhashed = [key for key in choices if key not in self._tables]
        full = best is None or best[0] >= BUCKET_FULL
        if unhashed and full and len(self._tables) < TABLES_MAX:
            key = min(unhashed, key=_preference)
            self._tables[key], self._scales[key] = {}, {}
            return key
        return None if best is None else best[1]

    def _group(self, key: str, value: Any) -> Group:
        table = self._tables[key]
        group = table.get(value)
        if group is None:
            home, scales = (key, value), self._scales[key]
            group = table[value] = Group(self._terms, self._cells_max, home, scales)
        return group

    def _giving(
        self, asked: Callable[[list[Event], Found], int]
    ) -> Callable[[list[Event], Found], int]:
        """The compiled pass, where all contents stand behind one slot; it asks about the others."""
        keys = [] if self._rest else list(self._tables)
        slot = slot_read(self._terms[keys[0]].node) if len(keys) == 1 and keys[0] != PATH else None
        if slot is None or native.passes is None:
            return asked
        give, scales, groups = native.passes.give, self._scales[keys[0]], self._tables[keys[0]]

        def given(events: list[Event], found: Found) -> int:
            missed: int = give(events, slot, scales, groups, found.made, lambda e: asked(e, found))
            return missed

        return given

    def _compiled(self) -> Callable[[list[Event], Found], int]:
        constants = Constants()
        lines = ["def route(events, found):", "    missed = 0", "    for e in events:"]
        lines.append("        n = 0")
        for place, (key, table) in enumerate(self._tables.items()):
            look_up = constants.helper(f"table{place}", table.get)
            if key == PATH:
                constants.helper("prefixes", prefixes)
                lines += [
                    "        if (v := e.location) is not None:",
                    "            for prefix in prefixes(v):",
                    f"                if (g := {look_up}(prefix)) is not None:",
                    "                    n += g.match(e, found)",
                ]
            else:
                value = self._terms[key].code(constants)
                lines += [
                    f"        if (g := {look_up}({value})) is not None:",
                    "            n += g.match(e, found)",
                ]
        if self._rest:
            constants.helper("rest", self._rest.match)
            lines.append("        n += rest(e, found)")
        lines += ["        if not n:", "            missed += 1", "    return missed"]
        return build("\n".join(lines) + "\n", "route", constants)


_PREFERRED = ("source", "location", PATH)


def _preference(key: str) -> int:
    return _PREFERRED.index(key) if key in _PREFERRED else len(_PREFERRED)


def _without(ranges: Ranges, key: str) -> Ranges:
    """The ranges less that of a term that the hash has settled."""
    return tuple(
        part
        for place in range(0, len(ranges), 3)
        if ranges[place] != key
        for part in ranges[place : place + 3]
    )
