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
)
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.uncertainty.uncertainty import WORDS
from broker.engine.pattern.uncertainty.verdicts import certainty_of
from broker.engine.runtime.budget import Budget
from broker.engine.runtime.outcome import OccurrenceScope, bound_ids, reported_layout
from language.tree import Subscription

if TYPE_CHECKING:
    from language.taskgraph import Task

AS_JSON = frozenset((int, str, bool, type(None)))  # what stands in JSON as it is


class SubscriptionTemplate:
    """Hold what all results of one subscription share.

    `plain` makes a result as other programs meet it. That is written with the first result: of
    thousands of subscriptions most report seldom, and what writes results is larger than the rest.
    """

    __slots__ = ("_words", "place", "plain", "subscription", "task", "types")

    def __init__(self, task: Task) -> None:
        node = task.node
        if not isinstance(node, Subscription):
            raise TypeError("a template is made of a subscription")
        self.task = task.key
        self.types = task.types
        self.place = task.place
        self.subscription = node
        self.plain: Callable[[OccurrenceResult], dict[str, Any]] = _written
        self._words: ResultWords | None = None

    @property
    def words(self) -> ResultWords:
        """Give the words of its results, made with the first; `plain` is in place then."""
        words = self._words
        if words is None:
            layout = reported_layout(self.subscription.case)
            words = self._words = ResultWords(self.task, self.subscription, layout)
            self.plain = words.plain
        return words

    @property
    def names(self) -> list[str]:
        """The alias, or the type without one, of each place."""
        return self.words.names

    def bound(self, events: Sequence[Any]) -> dict[str, Any]:
        """By name what is bound; what `without` and `absent` name never is, in lists neither."""
        places = zip(self.names, self.words.shown, events, strict=True)
        return {name: one for name, shown, one in places if shown and one is not None}


def _written(result: OccurrenceResult) -> dict[str, Any]:
    """Write the first result of a subscription."""
    return result.template.words.plain(result)


def _in_words(result: OccurrenceResult) -> dict[str, Any]:
    """Write a result part by part; a function, as what is compiled must not hold its owner."""
    return result.template.words.put(result)


class ResultWords:
    """The words in which the results of one subscription are written.

    `plain` makes one as other programs meet it.
    """

    __slots__ = (
        "_begun", "_values", "keys", "names", "plain", "shown", "subscription",
    )  # fmt: skip

    def __init__(self, task: str, subscription: Subscription, layout: Layout) -> None:
        self._begun = begun_of(task, 0)  # half of what is digested is the key
        self.subscription = node = subscription
        self.keys = node.case.group_by
        self.names = [intern(leaf.name) for leaf in layout.leaves]  # many have the same
        silent = layout.silent
        self.shown = [leaf.low not in silent for leaf in layout.leaves]
        self._values = self._build_values(layout) if node.case.assign else None
        self.plain: Callable[[OccurrenceResult], dict[str, Any]] = _in_words
        # Assigned values run the text's own code, which the compiled pass does not know: it
        # declines the whole subscription, and of others what is `absent`, result by result.
        special = bool(node.case.assign) or node.actor.group_key is not None
        if native.passes is not None and not special and silent.isdisjoint(layout.listed):
            self.plain = self._teller(task, layout)

    def _build_values(self, layout: Layout) -> Callable[..., dict[str, Any]]:
        constants = Constants()
        writer = Writer(OccurrenceScope(layout, self.keys, constants), constants)
        constants.helper("plain", plain)
        codes = [
            f"{constants.add(item.name)}: plain({writer.value(item.value)})"
            for item in self.subscription.case.assign
        ]
        places = "".join(f"e{leaf.low}, " for leaf in layout.leaves)
        text = (
            f"def values(events, g, start, end):\n    {places} = events\n"
            f"    return {{{', '.join(codes)}}}\n"
        )
        return build(text, "values", constants)

    def _teller(self, task: str, layout: Layout) -> Callable[[OccurrenceResult], dict[str, Any]]:
        """`put`, compiled, where nothing is assigned; what it declines is put in words."""
        node, passes = self.subscription, native.passes
        assert passes is not None
        made: Callable[[OccurrenceResult], dict[str, Any]] = passes.Teller(
            OccurrenceResult,
            (node.name, node.seq, node.subscriber, node.actor.name),
            beginning_of(task, 0),
            tuple([b"\x92" + ENCODE(name) for name in self.names]),
            tuple(self.names),
            tuple(self.keys),
            _in_words,
            bool(layout.listed or layout.optional or layout.silent),
        )
        return made

    def put(self, result: OccurrenceResult) -> dict[str, Any]:
        """Write a result part by part.

        What `without` and `absent` name is never told, in lists neither.
        """
        node, group, occurrence = self.subscription, result.group, result.occurrence
        events = occurrence[2:] if occurrence.__class__ is tuple else (occurrence,)
        bound: list[Any] = []
        values: dict[str, Any] = {}
        ids: dict[str, list[str]] = {}
        # One walk for all that is told of each place: a result is as dear as ten events.
        for name, shown, member in zip(self.names, self.shown, events, strict=True):
            if member is None:
                continue
            if not shown:
                bound += bound_ids((name,), (member,), group)
            elif member.__class__ is tuple:
                ids[name] = [event.id for event in member]
                bound.append((name, [(event.id, event.end) for event in member]))
                if self._values is None:
                    values[name] = [event.attribute_values() for event in member]
            else:
                ids[name] = [member.id]
                bound.append((name, ((member.id, member.end),)))
                if self._values is None:
                    values[name] = member.attribute_values()
        if self._values is not None:
            values = self._values(events, group, result.start, result.end)
        return {
            "subscription": node.name,
            "seq": node.seq,
            "id": self.id_of(bound),
            "subscriber": node.subscriber,
            "actor": self.actor(group),
            "start": result.start,
            "end": result.end,
            "certainty": result.certainty,
            "group": dict(zip(self.keys, group, strict=True)) if group else {},
            "values": values,
            "events": ids,
        }

    def id_of(self, bound: Bound) -> str:
        """Return the id of an occurrence, as that of a definition has it."""
        hashed = self._begun.copy()
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


def plain(value: Any) -> Any:
    """A value as JSON data: a metric position becomes an object, what no event holds null."""
    kind = value.__class__
    if kind is float or kind is int:
        return held(value)
    return value if kind in AS_JSON else msgspec.to_builtins(value)


class SubscriptionOutcome:
    """Makes the results of one subscription."""

    __slots__ = ("_shown", "_template", "dropped_inverted")

    def __init__(self, template: SubscriptionTemplate) -> None:
        self.dropped_inverted = 0  # as definitions count; a subscription assigns no times
        self._template = template
        self._shown = shown_form(template.subscription.case, template.types)

    def make_all(self, found: list[tuple[Any, tuple[Any, ...]]]) -> list[OccurrenceResult]:
        """The results of occurrences with their groups."""
        make = self.make
        if self._shown is not None:
            return [make(occurrence, group) for occurrence, group in found]
        made, template = OccurrenceResult, self._template
        return [
            made(template, one[1], one[0], group, one)
            if one.__class__ is tuple and one[0].__class__ is int
            else make(one, group)
            for one, group in found
        ]

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
        if native.passes is None:
            return partial(OccurrenceResult, self._template)
        made: Callable[..., OccurrenceResult] = native.passes.Maker(
            OccurrenceResult, self._template
        )
        return made

    def make_each(self, events: Sequence[Event]) -> list[OccurrenceResult]:
        """The results of events of one type, each of which is an occurrence, without a group."""
        if events and not events[0].primitive:
            return [self._of_event(event, ()) for event in events]
        made, template = OccurrenceResult, self._template
        return [made(template, one.start, one.end, (), one) for one in events]


def _span(found: tuple[Any, Any]) -> tuple[int, int]:
    occurrence = found[0]  # said anew, as it is asked of each that is found
    if occurrence.__class__ is tuple:
        span: tuple[int, int] = occurrence[:2]
        return span
    return (occurrence.end, occurrence.start)


def _of_occurrence(key: Callable[[Any], Any]) -> Callable[[tuple[Any, Any]], Any]:
    return lambda found: key(found[0])


IN_ORDER = (_span, *map(_of_occurrence, (lead_of, ids_of, order_of)))


def put_in_order(found: list[tuple[Any, tuple[Any, ...]]], budget: Budget) -> None:
    """Sort occurrences with their groups, and charge that and what is to be made of them."""
    if found:
        budget.report(found)
    if len(found) > 1:
        sort_in_order(found, *IN_ORDER)
