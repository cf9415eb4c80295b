"""What an occurrence becomes where a definition asks: a detected event.

Owns assignment, spans and ids. Must not know how occurrences are found or who uses the event.
Invariant: an outcome depends on the task's text and the bound events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from broker.engine.event.event import Detected, Event, Order, slot_of
from broker.engine.event.expressions import Writer, as_float, held
from broker.engine.event.group_keys import shown_form
from broker.engine.event.identity import ENCODE, beginning_of, digests
from broker.engine.event.occurrence import (
    Absence,
    events_of,
    flat,
    ids_of,
    order_of,
)
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.engine.pattern.layout.scopes import PlaceScope
from broker.engine.pattern.uncertainty.uncertainty import WORDS
from broker.engine.pattern.uncertainty.verdicts import certainty_of
from broker.engine.window.constituents import Lazy
from language.tree import Atom, Attribute, Call, Case, Detect, Name

if TYPE_CHECKING:
    from language.taskgraph import Task

ATOMS_MAX = 4_096  # layouts of single events that are kept for subscriptions to come
Maker = Callable[[Any, tuple[Any, ...]], Any]
SPAN_CODE = {"timestamp": "end", "end": "end", "start": "start"}


class OccurrenceScope(PlaceScope):
    """Names in `assign`: aliases, `group`, and the occurrence's own span."""

    def __init__(self, layout: Layout, keys: tuple[str, ...], constants: Constants) -> None:
        super().__init__(layout, keys, lambda place: f"e{place}", constants, layout.silent)

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Return the code of a span or an attribute and whether it may be null."""
        if isinstance(node, Name):
            if node.name == "duration":
                return "(end - start)", False
            return SPAN_CODE[node.name], False
        return super().reference(node)


def silent(member: Any) -> bool:
    """Tell whether a place has an absence, or several if they were collected there."""
    first = member[0] if member.__class__ is tuple and member else member
    return first.__class__ is Absence


def bound_ids(names: Sequence[str], members: Sequence[Any], group: tuple[Any, ...]) -> list[Any]:
    """Alias → [(event id, end), …] of what is bound, in the order of the places.

    An `absent` stands there with its partition and the instant from which it holds.
    """
    bound: list[Any] = []
    for name, member in zip(names, members, strict=True):
        if member is None:
            continue
        if silent(member):
            absences = member if member.__class__ is tuple else (member,)
            bound.append((name, [(repr(group), absence.start) for absence in absences]))
        elif member.__class__ is tuple:
            bound.append((name, [(event.id, event.end) for event in member]))
        else:
            bound.append((name, [(member.id, member.end)]))
    return bound


def plain_end(order: Order) -> Order:
    """Return an order whose end is a plain number: it may be marked as that of a maybe."""
    return (int(order[0]), *order[1:])


class Lineage(Lazy):
    """The order of the occurrence that an event was made of; it is asked for where lists tie."""

    __slots__ = ("_occurrence",)

    def __init__(self, occurrence: Any) -> None:
        self._made = None
        self._occurrence = occurrence

    def _make(self) -> Order:
        return plain_end(order_of(self._occurrence))


class DefinitionOutcome:
    """Makes the events of one case of a definition.

    `dropped_inverted` counts those that an assignment gave a start after their end.
    """

    def __init__(self, task: Task, case: Case, layout: Layout, output: type[Event]) -> None:
        self.dropped_inverted = 0
        self._task = task
        self._case = case
        self._layout = layout
        self._shown = shown_form(case, task.types)
        self._names = [leaf.name for leaf in layout.leaves]
        self._tie = (task.name, case.number)
        # Where it need not span what it is made of, that may be the last to tell two apart.
        self._respans = any(item.name in _SPAN for item in case.assign)
        self._is_plain = not (layout.listed or layout.silent or layout.optional)
        self._make = self._build(output)

    def make_all(self, matches: Sequence[tuple[Any, tuple[Any, ...]]]) -> list[Detected]:
        """The events of occurrences with their groups; none (and counted) that starts after its
        end.
        """
        make, shown, messages = self._make, self._shown, list[bytes]()
        events: list[Detected | None]
        if shown is not None:
            matches = [(occurrence, shown(group)) for occurrence, group in matches]
        events = [make(occurrence, group, messages) for occurrence, group in matches]
        made = [event for event in events if event is not None]
        self.dropped_inverted += len(events) - len(made)
        for event, name in zip(made, digests(messages), strict=True):
            event.id = name
        return made

    def _settle(self, made: Detected, occurrence: Any, group: tuple[Any, ...]) -> None:
        """Put in what a certain event of several readings or events has as it is made."""
        if occurrence.__class__ is not tuple:
            made.constituents = occurrence.ids
            made.lineage = None
            if self._respans or occurrence.__class__ is Absence or not occurrence.primitive:
                made.lineage = occurrence.order
            silent = occurrence.__class__ is Absence
        else:
            silent = not made.constituents
        if silent:
            # Two groups may fall silent at one instant: no id is bound and their spans are equal.
            order = plain_end(order_of(occurrence))
            made.lineage = (*order, repr(group))  # nothing else tells them apart
        made.certainty = WORDS[certainty_of(occurrence)]

    def _build(self, output: type[Event]) -> Callable[..., Detected]:
        constants = self._constants = Constants()
        writer = Writer(OccurrenceScope(self._layout, self._case.group_by, constants), constants)
        constants.helper("output", output)
        constants.helper("as_float", as_float)
        constants.helper("held", held)
        lines = ["def make(o, g, messages):", *self._span_lines()]
        values = {item.name: writer.value(item.value) for item in self._case.assign}
        lines += span_assignment_lines(values)
        kinds = self._task.output.attributes if self._task.output is not None else {}
        fields = ["start=start", "end=end", "uncertainty=uncertainty"]
        for name, code in values.items():
            if name in ("timestamp", "start", "end"):
                continue
            if name in ("location", "source", "position"):
                fields.append(f"{name}={code}")
                continue
            slot = slot_of(name)
            carried = "as_float" if kinds.get(name) == "float" else "held"
            lines.append(f"    v_{slot} = {carried}({code})")
            fields.append(f"{slot}=v_{slot}")
        # A text may assign any times; an event that ends before it starts would be before and after
        # itself in the relations of paper 001 (table 1).
        lines.append("    if start > end: return None")
        lines += self._identity_lines(fields)  # none is digested before all of a batch are made
        lines.append(f"    made = output({', '.join(fields)})")
        settle = constants.helper("settle", self._settle)
        certain = "o.__class__ is tuple and o[0].__class__ is int and ids"
        return build(
            "\n".join(
                [*lines, f"    if not ({certain}): {settle}(made, o, g)", "    return made\n"]
            ),
            "make",
            constants,
        )

    def _identity_lines(self, fields: list[str]) -> list[str]:
        """Source lines of what an event's id is a digest of, and of its constituents.

        Where no place has a list both are written out, without a loop over places.
        """
        constants = self._constants
        tie = constants.helper("tie", (self._task.name, self._case.number))
        begun = constants.add(beginning_of(self._task.key, self._case.number))
        encode = constants.helper("encode", ENCODE)
        constants.helper("lineage", Lineage)
        ids = f"{constants.helper('ids_of', ids_of)}(o)"
        names = [leaf.name for leaf in self._layout.leaves]
        bound = f"{constants.helper('bound_ids', partial(bound_ids, names))}(events, g)"
        if self._is_plain:
            places = [f"e{leaf.low}" for leaf in self._layout.leaves]
            pairs = [
                f"({constants.add(name)}, (({e}.id, {e}.end),))"
                for name, e in zip(names, places, strict=True)
            ]
            bound = f"({', '.join(pairs)},)"
            # Others are put in order by their spans, or where these are equal by their whole
            # orders. Readings that end one after the other are in order as they stand.
            ends = " < ".join([f"{e}.end" for e in places])
            readings = " and ".join([f"{e}.primitive" for e in places])
            ids = f"({', '.join([f'{e}.id' for e in places])},) if {ends} and {readings} else {ids}"
        fields += ["constituents=ids", "lineage=lineage(o)", f"tie={tie}"]
        return [f"    ids = {ids}", f"    messages.append({begun} + {encode}({bound}))"]

    def _span_lines(self) -> list[str]:
        places = [leaf.low for leaf in self._layout.leaves]
        self._constants.helper("events_of", events_of)
        lines = ["    events = events_of(o)"]
        lines += [f"    {', '.join(f'e{place}' for place in places)}, = events"]
        plain = not (self._layout.listed or self._layout.silent)
        span = (("start", "min"), ("end", "max"), ("uncertainty", "max"))
        if len(places) == 1 and plain:
            return [*lines, *(f"    {n} = e0.{n}" for n, _ in span)]
        if self._is_plain:
            # Comparisons in place of calls: this is done for every event that is detected.
            first, *others = places
            for name, extreme in span:
                lines.append(f"    {name} = e{first}.{name}")
                for place in others:
                    lines.append(f"    x = e{place}.{name}")
                    lines.append(f"    if x {'<' if extreme == 'min' else '>'} {name}: {name} = x")
            return lines
        bound = "[e for e in events if e is not None]" if self._layout.optional else "events"
        if not plain:
            self._constants.helper("flat", flat)
            bound = "flat(events)"
        return [
            *lines,
            f"    bound = {bound}",
            "    start = min([e.start for e in bound])",
            "    end = max([e.end for e in bound])",
            "    uncertainty = max([e.uncertainty for e in bound])",
        ]


def span_assignment_lines(values: dict[str, str]) -> list[str]:
    """Source lines that put assigned times in place of the span's; null leaves the span's.

    `values` maps assigned names to code. All are evaluated on the span before any is put in place.
    """
    # All before any: `start = end, end = start` swaps, as every value is that of the span as it was
    # detected.
    times = [name for name in ("timestamp", "start", "end") if name in values]
    lines = [f"    t_{name} = {values[name]}" for name in times]
    for name in times:
        target = "start = end" if name == "timestamp" else name
        lines += [f"    if t_{name} is not None: {target} = t_{name}"]
    return lines


_SPAN = frozenset(("timestamp", "start", "end"))


def reported_layout(case: Case) -> Layout:
    """The layout of what is reported: of `collect` each place has a list."""
    pattern = case.detect.pattern
    if isinstance(pattern, Atom):
        return _of_atom(pattern.type, pattern.alias, case.detect.report)
    return _reported(case)


@lru_cache(maxsize=ATOMS_MAX)
def _of_atom(event_type: str, alias: str | None, report: Any) -> Layout:
    """The layout of a single event: what must hold of it decides nothing about its report."""
    return _reported(Case(0, Detect(Atom(event_type, (), alias), report=report)))


def _reported(case: Case) -> Layout:
    layout = lay_out(case)
    if case.detect.report != "collect":
        return layout
    return replace(layout, listed=frozenset(range(len(layout.leaves))))
