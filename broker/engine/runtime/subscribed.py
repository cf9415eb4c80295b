"""What an occurrence becomes where a subscription asks: a result.

Owns results, what all of one subscription share, and how other programs meet them. Must not know
how occurrences are found or where results go. Invariant: a result depends on the subscription's
text and the bound events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from sys import intern
from typing import TYPE_CHECKING, Any

import msgspec

from broker.engine import native
from broker.engine.event.event import Event, Head, Order
from broker.engine.event.expressions import Writer, held
from broker.engine.event.group_keys import shown_form, text_of
from broker.engine.event.identity import ENCODE, Bound, beginning_of, begun_of
from broker.engine.event.occurrence import (
    events_of,
    head_of,
    ids_of,
    lead_of,
    order_of,
    sort_in_order,
    span_of_first,
)
from broker.engine.event.source import Constants, Parameters, build, shared
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.uncertainty.uncertainty import WORDS
from broker.engine.pattern.uncertainty.verdicts import certainty_of
from broker.engine.runtime.budget import Budget
from broker.engine.runtime.outcome import OccurrenceScope, bound_ids, reported_layout
from language.tree import Subscription

if TYPE_CHECKING:
    from language.taskgraph import Task

AS_JSON = frozenset((int, str, bool, type(None)))  # what stands in JSON as it is


def _places(layout: Layout) -> str:
    """The left side of an assignment of an occurrence's events to their names."""
    return "".join(f"e{leaf.low}, " for leaf in layout.leaves).rstrip()


class Told:
    """Code that tells what is bound by name: ids with ends, ids, and attributes.

    Where each place binds one event, always, there is nothing to look for. `assigned`: the values
    are assigned, so that nobody asks for attributes.
    """

    def __init__(self, layout: Layout, constants: Constants, *, assigned: bool) -> None:
        self.lines = _members(layout)
        named = [(constants.add(leaf.name), f"e{leaf.low}") for leaf in layout.leaves]
        if layout.listed or layout.optional:
            self.bound, self.values, self.events = "bound", "values", "events"
            self.lines += "    bound, values, events = [], {}, {}\n"
            of_each, of_one = ("", "") if assigned else (_VALUES_OF_EACH, _VALUES_OF_ONE)
            code = _SEVERAL.format(of_each, of_one, name="{name}", e="{e}")
            self.lines += "".join(code.format(name=name, e=event) for name, event in named)
            return
        pairs = [f"({name}, [({event}.id, {event}.end)])" for name, event in named]
        self.bound = f"[{', '.join(pairs)}]"
        values = [f"{name}: {event}.attribute_values()" for name, event in named]
        self.values = f"{{{', '.join(values)}}}"
        self.events = f"{{{', '.join(f'{name}: [{event}.id]' for name, event in named)}}}"


_SEVERAL = """\
    if {e}.__class__ is tuple:
        events[{name}] = ids = [e.id for e in {e}]
        bound.append(({name}, list(zip(ids, [e.end for e in {e}]))))
{}\
    elif {e} is not None:
        events[{name}] = [{e}.id]
        bound.append(({name}, [({e}.id, {e}.end)]))
{}\
"""
_VALUES_OF_EACH = """\
        values[{name}] = [e.attribute_values() for e in {e}]
"""
_VALUES_OF_ONE = """\
        values[{name}] = {e}.attribute_values()
"""


def _members(layout: Layout) -> str:
    """A line that names what a result's places bind."""
    if len(layout.leaves) > 1:
        return f"    _, _, {_places(layout)} = result.occurrence\n"
    # Of a single event, what may or may not be is said of a tuple around it.
    event = f"e{layout.leaves[0].low}"
    return f"    {event} = o if (o := result.occurrence).__class__ is not tuple else o[2]\n"


class SubscriptionTemplate:
    """Hold what all results of one subscription share.

    `plain` makes a result as other programs meet it. That is written with the first result: of
    thousands of subscriptions most report seldom, and what writes results is larger than the rest.
    """

    __slots__ = ("_words", "constants", "place", "plain", "subscription", "task", "types")

    def __init__(self, task: Task) -> None:
        node = task.node
        if not isinstance(node, Subscription):
            raise TypeError("a template is made of a subscription")
        self.task = task.key
        self.types = task.types
        self.place = task.place
        self.subscription = node
        self.constants: tuple[Any, ...] = ()  # of `plain`, which those of one shape share
        self.plain: Callable[[OccurrenceResult], dict[str, Any]] = _written
        self._words: ResultWords | None = None

    @property
    def words(self) -> ResultWords:
        """Give the words of its results, made with the first; `plain` is in place then."""
        words = self._words
        if words is None:
            layout = reported_layout(self.subscription.case)
            words = self._words = ResultWords(self.task, self.subscription, layout)
            self.constants, self.plain = words.constants, words.plain
        return words

    @property
    def names(self) -> list[str]:
        """The alias, or the type without one, of each place."""
        return self.words.names

    def bound(self, events: Sequence[Any]) -> dict[str, Any]:
        """By name what is bound; what `without` and `absent` name never is, in lists neither."""
        return self.words.bound(events)


def _written(result: OccurrenceResult) -> dict[str, Any]:
    """Write the first result of a subscription."""
    return result.template.words.plain(result)


def _in_words(result: OccurrenceResult) -> dict[str, Any]:
    """Write a result part by part; a function, as what is compiled must not hold its owner."""
    return result.template.words.put(result)


class ResultWords:
    """The words in which the results of one subscription are written.

    `plain` makes one as other programs meet it: in one go, where each place of the pattern binds
    one event. `constants` are what it takes from the template.
    """

    __slots__ = (
        "_shown", "_values", "constants", "keys", "names", "plain", "subscription", "task",
    )  # fmt: skip

    def __init__(self, task: str, subscription: Subscription, layout: Layout) -> None:
        self.task = task
        self.subscription = node = subscription
        self.keys = node.case.group_by
        self.names = [intern(leaf.name) for leaf in layout.leaves]  # many have the same
        silent = layout.silent
        self._shown = [leaf.name if leaf.low not in silent else None for leaf in layout.leaves]
        self.constants: tuple[Any, ...] = ()  # of `plain`, which those of one shape share
        self._values = self._build_values(layout) if node.case.assign else None
        # Assigned values run the text's own code, which the compiled pass does not know: it
        # declines the whole subscription.
        special = bool(node.case.assign) or node.actor.group_key is not None
        self.plain: Callable[[OccurrenceResult], dict[str, Any]]
        if native.passes is not None and not special and silent.isdisjoint(layout.listed):
            self.plain = self._teller(layout)  # which declines what is `absent`, result by result
        else:
            self.plain = _in_words if silent else self._build_plain(layout)

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
        constants = Parameters()
        node = self.subscription
        told = Told(layout, constants, assigned=bool(node.case.assign))
        values = f"{{{', '.join(self._assigned(layout, constants))}}}"
        group = ", ".join(f"{constants.add(key)}: g[{at}]" for at, key in enumerate(self.keys))
        begun = constants.add(begun_of(self.task, 0).copy)  # half of what is digested is the key
        encode = constants.helper("encode", ENCODE)
        by_group = node.actor.group_key is not None
        actor = f"{constants.add(self.actor)}(g)" if by_group else constants.add(node.actor.name)
        # Written out in one display: a result is a dict of eleven keys, and each that was put in by
        # itself would be a look-up more for every result.
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
            "values": values if node.case.assign else told.values,
            "events": told.events,
        }
        types = ", ".join([leaf.event_type for leaf in layout.leaves])  # each with its own code
        text = (
            f"def plain_of(result):  # {types!a}\n"
            f"    {', '.join(constants.values)}, = result.template.constants\n"
            "    g, start, end = result.group, result.start, result.end\n"
            f"{told.lines}"
            f"    hashed = {begun}()\n    hashed.update({encode}({told.bound}))\n"
            f"    return {{{', '.join(f'{key!r}: {code}' for key, code in parts.items())}}}\n"
        )
        self.constants = tuple(constants.values.values())
        return shared(text, "plain_of", constants.helpers)

    def _teller(self, layout: Layout) -> Callable[[OccurrenceResult], dict[str, Any]]:
        """The same compiled, where nothing is assigned; what it declines is put in words."""
        node, passes = self.subscription, native.passes
        assert passes is not None
        made: Callable[[OccurrenceResult], dict[str, Any]] = passes.Teller(
            OccurrenceResult,
            (node.name, node.seq, node.subscriber, node.actor.name),
            beginning_of(self.task, 0),
            tuple([b"\x92" + ENCODE(name) for name in self.names]),
            tuple(self.names),
            tuple(self.keys),
            _in_words,
            bool(layout.listed or layout.optional or layout.silent),
        )
        return made

    def put(self, result: OccurrenceResult) -> dict[str, Any]:
        """Write a result of any pattern, part by part."""
        node, group, events = self.subscription, result.group, result.events
        bound = self.bound(events)
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

    def bound(self, events: Sequence[Any]) -> dict[str, Any]:
        """By name what is bound; what `without` and `absent` name never is, in lists neither."""
        pairs = zip(self._shown, events, strict=True)
        return {name: one for name, one in pairs if name is not None and one is not None}

    def id_of(self, bound: Bound) -> str:
        """Return the id of an occurrence, as that of a definition has it."""
        hashed = begun_of(self.task, 0)
        hashed.update(ENCODE(bound))
        return hashed.hexdigest()

    def actor(self, group: tuple[Any, ...]) -> str:
        """The actor's name; of a group: with the key as the last level."""
        actor = self.subscription.actor
        if actor.group_key is None:
            return actor.name
        return f"{actor.name}/{text_of(group[self.keys.index(actor.group_key)])}"


class OccurrenceResult(msgspec.Struct, eq=False, gc=False):
    """One occurrence that a subscription reports; its id is made only when asked for."""

    template: SubscriptionTemplate
    start: int
    end: int
    group: tuple[Any, ...]
    occurrence: Any
    certainty: str = "yes"

    @property
    def events(self) -> tuple[Any, ...]:
        """By place: an event, a list of events, or None."""
        return events_of(self.occurrence)

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
        return self.template.place

    @property
    def id(self) -> str:
        """The digest that is the same wherever and whenever this is detected."""
        template = self.template
        return template.words.id_of(bound_ids(template.names, self.events, self.group))

    def to_dict(self) -> dict[str, Any]:
        """The result as other programs meet it (without `detected_at`)."""
        return self.template.plain(self)


def attribute_values(member: Any) -> Any:
    """The attributes that are not null, of an event or of each of a list."""
    if member.__class__ is tuple:
        return [event.attribute_values() for event in member]
    return member.attribute_values()


def plain(value: Any) -> Any:
    """A value as JSON data: a metric position becomes an object, what no event holds null."""
    kind = value.__class__
    if kind is float or kind is int:
        return held(value)
    return value if kind in AS_JSON else msgspec.to_builtins(value)


class SubscriptionOutcome:
    """Makes the results of one subscription."""

    __slots__ = ("_maker", "_shown", "_template", "dropped_inverted")

    def __init__(self, template: SubscriptionTemplate) -> None:
        self.dropped_inverted = 0  # as definitions count; a subscription assigns no times
        self._template = template
        self._shown = shown_form(template.subscription.case, template.types)
        passes = native.passes
        self._maker = None if passes is None else passes.Maker(OccurrenceResult, template)

    def make_all(self, found: list[tuple[Any, tuple[Any, ...]]]) -> list[OccurrenceResult]:
        """The results of occurrences with their groups."""
        if self._maker is not None and self._shown is None:
            made: list[OccurrenceResult] | None = self._maker.pairs(found)
            if made is not None:
                return made
        make = self.make
        return [make(occurrence, group) for occurrence, group in found]

    def make(self, occurrence: Any, group: tuple[Any, ...]) -> OccurrenceResult:
        """The result of an occurrence."""
        if self._shown is not None:
            group = self._shown(group)
        if occurrence.__class__ is not tuple:
            return self._of_event(occurrence, group)
        end, start = occurrence[:2]
        # A certain occurrence ends at a plain integer; one that may not be carries a marked one.
        if end.__class__ is int:
            return OccurrenceResult(self._template, start, end, group, occurrence)
        certainty = WORDS[certainty_of(occurrence)]
        return OccurrenceResult(self._template, start, int(end), group, occurrence, certainty)

    def _of_event(self, event: Event, group: tuple[Any, ...]) -> OccurrenceResult:
        certainty = "yes" if event.primitive else WORDS[certainty_of(event)]
        return OccurrenceResult(self._template, event.start, event.end, group, event, certainty)

    def maker_of_one(self) -> Callable[[int, int, tuple[Any, ...], Event], OccurrenceResult]:
        """Return what makes a primitive event's result: from start, end, group and the event."""
        return self._maker or partial(OccurrenceResult, self._template)

    def make_each(self, events: Sequence[Event]) -> list[OccurrenceResult]:
        """The results of events of one type, each of which is an occurrence, without a group."""
        if events and not events[0].primitive:
            return [self._of_event(event, ()) for event in events]
        if self._maker is not None and events.__class__ is list:
            found: list[OccurrenceResult] | None = self._maker.each(events)
            if found is not None:
                return found
        made, template = OccurrenceResult, self._template
        return [made(template, one.start, one.end, (), one) for one in events]


def _of_occurrence(key: Callable[[Any], Any]) -> Callable[[tuple[Any, Any]], Any]:
    return lambda found: key(found[0])


IN_ORDER = (span_of_first, *map(_of_occurrence, (lead_of, ids_of, order_of)))


def put_in_order(found: list[tuple[Any, tuple[Any, ...]]], budget: Budget) -> None:
    """Sort occurrences with their groups, and charge that and what is to be made of them."""
    if found:
        budget.report(found)
    if len(found) > 1:
        sort_in_order(found, *IN_ORDER)
