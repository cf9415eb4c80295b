"""What an occurrence becomes: a detected event, or a subscription's result.

Owns assignment, spans and ids. Must not know how occurrences are found or where results go.
Invariant: an outcome depends on the task's text and the bound events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from broker.core.choices import WORDS
from broker.core.event import Detected, Event, Head, Order, slot_of
from broker.core.expressions import Writer, finite
from broker.core.identity import ENCODE, begun_of, bound_ids_of
from broker.core.occurrence import (
    Absence,
    events_of,
    flat,
    head_of,
    member_order,
    order_of,
)
from broker.core.pattern import Layout
from broker.core.scopes import PlaceScope
from broker.core.selection import has_last_leaf
from broker.core.source import Constants, build
from broker.core.verdicts import certainty_of
from language.tree import Assignment, Attribute, Call, Case, Expression, Name, Subscription

if TYPE_CHECKING:
    from language.taskgraph import Task

Maker = Callable[[Any, tuple[Any, ...]], Any]
AS_JSON = frozenset((int, str, bool, type(None)))  # what stands in JSON as it is
SPAN_CODE = {"timestamp": "end", "end": "end", "start": "start"}


class OccurrenceScope(PlaceScope):
    """Names in `assign`: aliases, `group`, and the occurrence's own span."""

    def __init__(self, layout: Layout, keys: tuple[str, ...], constants: Constants) -> None:
        super().__init__(layout, keys, lambda place: f"e{place}", constants, layout.silent)

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """See expressions.Scope."""
        if isinstance(node, Name):
            if node.name == "duration":
                return "(end - start)", False
            return SPAN_CODE[node.name], False
        return super().reference(node)


def silent(member: Any) -> bool:
    """Whether a place has an absence, or where they were collected several."""
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


class DefinitionOutcome:
    """Makes the events of one case of a definition.

    `dropped_inverted` counts those that an assignment gave a start after their end.
    """

    def __init__(self, task: Task, case: Case, layout: Layout, output: type[Event]) -> None:
        self.dropped_inverted = 0
        self._task = task
        self._case = case
        self._layout = layout
        self._names = [leaf.name for leaf in layout.leaves]
        self._tie = (task.name, case.number)
        # Where it need not span what it is made of, that may be the last to tell two apart.
        self._respans = any(item.name in _SPAN for item in case.assign)
        self._id_of = bound_ids_of(task.key, case.number)
        self._assign = self._build(output)

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> Detected | None:
        """The detected event; None (and counted) where its start would be after its end."""
        events = events_of(occurrence)
        made: Detected = self._assign(events, group)
        if made.start > made.end:
            self.dropped_inverted += 1
            return None
        if occurrence.__class__ is not tuple:
            made.constituents = occurrence.ids
            if self._respans:
                made.by_place = (member_order(occurrence),)
        else:
            order = order_of(occurrence)
            made.constituents, made.by_place = order[2], order[4]
        made.certainty = WORDS[certainty_of(occurrence)]
        made.tie = self._tie
        made.id = self._id_of(bound_ids(self._names, events, group))
        return made

    def _build(self, output: type[Event]) -> Callable[..., Detected]:
        constants = self._constants = Constants()
        writer = Writer(OccurrenceScope(self._layout, self._case.group_by, constants), constants)
        constants.helper("output", output)
        constants.helper("finite", finite)
        lines = ["def make(events, g):", *self._span_lines()]
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
            lines.append(f"    v_{slot} = finite({code})")
            if kinds.get(name) == "float":
                lines.append(f"    if v_{slot} is not None: v_{slot} = float(v_{slot})")
            fields.append(f"{slot}=v_{slot}")
        lines.append(f"    return output({', '.join(fields)})")
        return build("\n".join(lines) + "\n", "make", constants)

    def _span_lines(self) -> list[str]:
        places = [leaf.low for leaf in self._layout.leaves]
        lines = [f"    {', '.join(f'e{place}' for place in places)}, = events"]
        plain = not (self._layout.listed or self._layout.silent)
        if len(places) == 1 and plain:
            return [*lines, *(f"    {n} = e0.{n}" for n in ("start", "end", "uncertainty"))]
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
    times = [name for name in ("timestamp", "start", "end") if name in values]
    lines = [f"    t_{name} = {values[name]}" for name in times]
    for name in times:
        target = "start = end" if name == "timestamp" else name
        lines += [f"    if t_{name} is not None: {target} = t_{name}"]
    return lines


_SPAN = frozenset(("timestamp", "start", "end"))


def assigned_lag(case: Case, layout: Layout) -> bool:
    """Whether an assigned time may end the event before the end of its occurrence."""
    for item in case.assign:
        if item.name in ("timestamp", "end") and not _at_end(item, layout):
            return True
    return False


def _at_end(item: Assignment, layout: Layout) -> bool:
    value: Expression = item.value
    if isinstance(value, Name):
        return value.name in ("timestamp", "end")
    if isinstance(value, Attribute) and value.base != "group":
        ends = value.name in ("timestamp", "end")
        return ends and has_last_leaf(layout.root, layout.places[value.base])
    return False


def _places(layout: Layout) -> str:
    """The left side of an assignment of an occurrence's events to their names."""
    return "".join(f"e{leaf.low}, " for leaf in layout.leaves).rstrip()


class SubscriptionTemplate:
    """What all results of one subscription share.

    `plain` makes a result as other programs meet it: in one go, where each place of the pattern
    binds one event.
    """

    def __init__(self, task: Task, layout: Layout) -> None:
        node = task.node
        if not isinstance(node, Subscription):
            raise TypeError("a template is made of a subscription")
        self.task = task.key
        self.place = task.place
        self.subscription = node
        self.keys = node.case.group_by
        self.names = [leaf.name for leaf in layout.leaves]
        self.id_of = bound_ids_of(task.key, 0)
        # Whether each place binds one event, always: then there is nothing to look for.
        single = not (layout.optional or layout.listed or layout.silent)
        self._values = self._build_values(layout) if node.case.assign else None
        self.plain = self._build_plain(layout) if single else self._plain_of

    def _assigned(self, layout: Layout, constants: Constants) -> list[str]:
        writer = Writer(OccurrenceScope(layout, self.keys, constants), constants)
        constants.helper("plain", plain)
        return [
            f"{constants.add(item.name)}: plain({writer.value(item.value)})"
            for item in self.subscription.case.assign
        ]

    def _build_values(self, layout: Layout) -> Callable[..., dict[str, Any]]:
        constants = Constants()
        codes = self._assigned(layout, constants)
        text = (
            f"def values(events, g, start, end):\n    {_places(layout)} = events\n"
            f"    return {{{', '.join(codes)}}}\n"
        )
        return build(text, "values", constants)

    def _build_plain(self, layout: Layout) -> Callable[[OccurrenceResult], dict[str, Any]]:
        constants = Constants()
        node = self.subscription
        named = [(constants.add(leaf.name), f"e{leaf.low}") for leaf in layout.leaves]
        values = self._assigned(layout, constants) or [
            f"{name}: {event}.attribute_values()" for name, event in named
        ]
        ends = ", ".join(f"({name}, [({event}.id, {event}.end)])" for name, event in named)
        group = ", ".join(f"{constants.add(key)}: g[{at}]" for at, key in enumerate(self.keys))
        begun = constants.helper("begun", begun_of(self.task, 0).copy)
        encode = constants.helper("encode", ENCODE)
        constants.helper("actor", self.actor)
        actor = "actor(g)" if node.actor.group_key is not None else constants.add(node.actor.name)
        parts = {
            "subscription": constants.add(node.name),
            "seq": constants.add(node.seq),
            "id": "hashed.hexdigest()",
            "subscriber": constants.add(node.subscriber),
            "actor": actor,
            "start": "start",
            "end": "end",
            "certainty": "result.certainty",
            "group": f"{{{group}}}",
            "values": f"{{{', '.join(values)}}}",
            "events": f"{{{', '.join(f'{name}: [{event}.id]' for name, event in named)}}}",
        }
        text = (
            "def plain_of(result):\n"
            "    g, start, end = result.group, result.start, result.end\n"
            f"    {_places(layout)} = result.events\n"
            f"    hashed = {begun}()\n    hashed.update({encode}([{ends}]))\n"
            f"    return {{{', '.join(f'{key!r}: {code}' for key, code in parts.items())}}}\n"
        )
        return build(text, "plain_of", constants)

    def _plain_of(self, result: OccurrenceResult) -> dict[str, Any]:
        node, group, events = self.subscription, result.group, result.events
        bound = {
            name: member
            for name, member in zip(self.names, events, strict=True)
            if member is not None and not silent(member)
        }
        if self._values is not None:
            values = self._values(events, group, result.start, result.end)
        else:
            values = {name: attribute_values(member) for name, member in bound.items()}
        return {
            "subscription": node.name,
            "seq": node.seq,
            "id": self.id_of(bound_ids(self.names, events, group)),
            "subscriber": node.subscriber,
            "actor": self.actor(group),
            "start": result.start,
            "end": result.end,
            "certainty": result.certainty,
            "group": dict(zip(self.keys, group, strict=True)),
            "values": values,
            "events": {
                name: [event.id for event in member] if member.__class__ is tuple else [member.id]
                for name, member in bound.items()
            },
        }

    def actor(self, group: tuple[Any, ...]) -> str:
        """The actor's name; of a group: with the key as the last level."""
        actor = self.subscription.actor
        if actor.group_key is None:
            return actor.name
        return f"{actor.name}/{group[self.keys.index(actor.group_key)]}"


class OccurrenceResult(msgspec.Struct, eq=False, gc=False):
    """One occurrence that a subscription reports; its id is made only when asked for."""

    template: SubscriptionTemplate
    start: int
    end: int
    events: tuple[Any, ...]  # by place: an event, a list of events, or None
    group: tuple[Any, ...]
    occurrence: Any
    certainty: str = "yes"

    @property
    def head(self) -> Head:
        """The order of the occurrence without its places."""
        return head_of(self.occurrence)

    @property
    def order(self) -> Order:
        """The order of the occurrence."""
        return order_of(self.occurrence)

    @property
    def subscription(self) -> str:
        """The subscription's name."""
        return self.template.subscription.name

    @property
    def place(self) -> int:
        """The subscription's place in its file."""
        return int(self.template.place)

    @property
    def id(self) -> str:
        """The digest that is the same wherever and whenever this is detected."""
        template = self.template
        return template.id_of(bound_ids(template.names, self.events, self.group))

    def to_dict(self) -> dict[str, Any]:
        """The result as other programs meet it (without `detected_at`)."""
        return self.template.plain(self)


def attribute_values(member: Any) -> Any:
    """The attributes that are not null, of an event or of each of a list."""
    if member.__class__ is tuple:
        return [event.attribute_values() for event in member]
    return member.attribute_values()


def plain(value: Any) -> Any:
    """A value as JSON data: a metric position becomes an object, a float that is no number null."""
    kind = value.__class__
    if kind is float:
        return value if isfinite(value) else None
    return value if kind in AS_JSON else msgspec.to_builtins(value)


class SubscriptionOutcome:
    """Makes the results of one subscription."""

    dropped_inverted = 0

    def __init__(self, template: SubscriptionTemplate) -> None:
        self._template = template

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> OccurrenceResult:
        """The result of an occurrence."""
        if occurrence.__class__ is not tuple:
            return self._of_event(occurrence, group)
        end, start = occurrence[:2]
        certainty = "yes" if end.__class__ is int else WORDS[certainty_of(occurrence)]
        events = occurrence[2:]
        return OccurrenceResult(
            self._template, start, int(end), events, group, occurrence, certainty
        )

    def _of_event(self, event: Event, group: tuple[Any, ...]) -> OccurrenceResult:
        certainty = "yes" if event.primitive else WORDS[certainty_of(event)]
        return OccurrenceResult(
            self._template, event.start, event.end, (event,), group, event, certainty
        )

    def make_each(self, events: Sequence[Event]) -> list[OccurrenceResult]:
        """The results of events of one type, each of which is an occurrence, without a group."""
        if events and not events[0].primitive:
            return [self._of_event(event, ()) for event in events]
        made, template = OccurrenceResult, self._template
        return [made(template, one.start, one.end, (one,), (), one) for one in events]
