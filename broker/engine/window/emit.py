"""The event of a window: what a group becomes: an event, or a partial result that `post` combines.

Owns assignment, `post`, and the events' identity. Must not know how windows move or what they
hold. Invariant: an event depends on the task's text, the window and the group's events alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from broker.engine.event.event import Detected, Event
from broker.engine.event.expressions import Scope, attribute_code
from broker.engine.event.group_keys import form_of, shown_form
from broker.engine.event.identity import digests, said_of_window
from broker.engine.runtime.budget import Budget
from broker.engine.window.bound import says_events
from broker.engine.window.code import (
    HEADER_TIMES,
    Assigning,
    EventForm,
    compile_fold,
    compile_new,
    group_of,
)
from broker.engine.window.constituents import Constituents, Lineage
from broker.engine.window.plan import Aggregation, OperandNames, kind_of
from language.lexicon import COMMON_ATTRIBUTES
from language.taskgraph import Task
from language.tree import (
    Assignment,
    Attribute,
    Call,
    Case,
    Definition,
    Expression,
    Name,
    Post,
)

TIMES = ("timestamp", "start", "end", "duration")
CLOSING = 16  # candidates that each group of a closing window costs
PUT_BYTES = 256  # of the event that is made of it

_summary, _maybe, _start, _end, _uncertainty, _events = map(
    attrgetter, ("summary", "maybe", "start", "end", "uncertainty", "events")
)

# A window's number, the event that closes it, or the id and end of the one that opens it: an id may
# come again with another end.
WindowKey = int | tuple[str, int] | Event
Frame: TypeAlias = tuple[WindowKey, int, int]  # a window, its first instant, that after its last
Standing: TypeAlias = tuple[Frame, Any, "Summary"]  # a group in a window, by its key or as shown


class Told(Protocol):
    """Return what is known of a group's events: their span, greatest ε and weakest certainty."""

    start: int
    end: int
    uncertainty: int

    @property
    def maybe(self) -> bool:
        """Return True if an event is of less than full certainty."""

    def constituents(self) -> Constituents:
        """The ids of the events, which later changes must not touch."""


class Summary(Told, Protocol):
    """Besides, what is kept of the events; `counts` are those of each leaf."""

    counts: list[int]
    lacking: tuple[str, ...]  # aggregates of which nothing is known: they were asked for too late

    @property
    def kept(self) -> list[Any]:
        """Return what aggregates keep."""

    @property
    def events(self) -> list[Any]:
        """Return the events that come first, and perhaps more."""


@dataclass(slots=True)
class Row:
    """The partial result of a group, as `post` meets it: `v` holds what `pre` assigned."""

    v: tuple[Any, ...]
    summary: Summary

    @property
    def start(self) -> int:
        """The least start."""
        return self.summary.start

    @property
    def end(self) -> int:
        """The greatest end."""
        return self.summary.end

    @property
    def order(self) -> tuple[Any, ...]:
        """Rows go by their spans, then by their constituents."""
        ids, end, start = self.summary.constituents(), self.end, self.start
        return (end, start, ids, (), ((end, start, Lineage(ids)),), ())


class RowNames:
    """The names in `post`: what `pre` assigned; other times are those of the row's span."""

    def __init__(self, assigned: dict[str, tuple[int, str]]) -> None:
        self._assigned = assigned

    def leaf_of_operand(self, name: str) -> int | None:  # noqa: ARG002  # rows have one leaf
        """Implement plan.Names: rows are no operand."""
        return None

    def leaf_of_argument(self, value: Expression) -> int:  # noqa: ARG002
        """Implement plan.Names: all rows are of one leaf."""
        return 0

    def kind(self, node: Name | Attribute) -> str:
        """Implement plan.Names."""
        assigned = self._assigned.get(node.name)
        return COMMON_ATTRIBUTES[node.name] if assigned is None else assigned[1]

    def argument_scope(self) -> Scope:
        """Implement plan.Names."""
        return self

    def scattered(self, leaf: int) -> bool:  # noqa: ARG002
        """Implement plan.Names."""
        return False

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Implement expressions.Scope. A part of the group's key is what the row assigned."""
        if isinstance(node, Call):
            return None
        if node.name in self._assigned:
            return f"e.v[{self._assigned[node.name][0]}]", True
        if node.name in TIMES:
            return attribute_code("e", node.name)
        return "None", True


@dataclass(slots=True)
class RowsTogether:
    """The rows of one group as one, with what `post` keeps of them (see Summary)."""

    kept: list[Any]
    ids: Constituents
    start: int
    end: int
    uncertainty: int
    maybe: bool
    counts: list[int] = field(default_factory=list)
    lacking: tuple[str, ...] = ()

    @property
    def events(self) -> list[Any]:
        """Implement Summary."""
        return self.ids.events()

    def constituents(self) -> Constituents:
        """Implement Summary."""
        return self.ids


class PostStage:
    """`post`: groups the rows of one window anew, and keeps of them what its aggregates ask."""

    def __init__(self, post: Post, pre: tuple[Assignment, ...], names: OperandNames) -> None:
        kinds = [kind_of(item.value, names.kind) for item in pre]
        assigned = {item.name: (place, kinds[place]) for place, item in enumerate(pre)}
        rows = RowNames(assigned)
        self.aggregation = Aggregation(post.assign, rows)
        self._fold = compile_fold(self.aggregation, rows, 0)
        self._new = compile_new(self.aggregation, "in_pane")
        keys = [assigned.get(name) for name in post.group_by]
        self._keys = [None if key is None else (key[0], form_of({key[1]})) for key in keys]

    def combined(self, rows: Sequence[Row]) -> list[tuple[tuple[Any, ...], RowsTogether]]:
        """The rows of each key that they assigned, as one; a row whose key is null is in none."""
        if not self._keys:
            return [((), self._together(rows))] if rows else []
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            key = tuple([None if part is None else part[1](row.v[part[0]]) for part in self._keys])
            if None not in key:
                groups.setdefault(key, []).append(row)
        return [(group, self._together(together)) for group, together in groups.items()]

    def _together(self, rows: Sequence[Row]) -> RowsTogether:
        kept = self._new()
        if self._fold is not None:
            self._fold(kept, rows)
        summaries = list(map(_summary, rows))
        if len(summaries) == 1:
            ids = summaries[0].constituents()
        else:
            ids = Constituents(list(chain.from_iterable(map(_events, summaries))))
        return RowsTogether(
            kept,
            ids,
            min(map(_start, summaries)),
            max(map(_end, summaries)),
            max(map(_uncertainty, summaries)),
            any(map(_maybe, summaries)),
        )


class WindowOutcome:
    """Makes the events of one case of a windowed definition.

    `dropped_inverted` counts those that an assignment gave a start after their end,
    `dropped_outside` those that it put outside their window.
    """

    def __init__(
        self, task: Task, case: Case, output: type[Event], names: OperandNames, pre: Aggregation
    ) -> None:
        assert isinstance(task.node, Definition), "windows are of definitions"
        self.dropped_inverted = 0
        self.budget = Budget()
        self.dropped_outside = 0
        self._unnamed: list[tuple[Detected, bytes]] = []  # with what their ids are digests of
        self._task = task.key
        self._name = task.name
        self._case = case.number
        self._names = names
        self._single = len(names.keys) == 1
        self._shown = shown_form(case, task.types)
        self._certain_only = case.detect.maybe_drop
        post = task.node.post
        self._post = None if post is None else PostStage(post, case.assign, names)
        kinds = task.output.attributes if task.output is not None else {}
        rows = Assigning(case.assign, pre, names.keys)
        assigning, before = rows, dict[str, Expression]()
        if post is not None and self._post is not None:
            assigning = Assigning(post.assign, self._post.aggregation, post.group_by)
            before = {item.name: item.value for item in case.assign}
        window = task.node.window
        session_ms = None if window is None else window.session_ms
        given = {} if session_ms is None else {"interval": session_ms}
        spans = window is not None and window.runs
        times = [item for item in assigning.assignments if item.name in HEADER_TIMES]
        of_events = frozenset({item.name for item in times if says_events(item.value, before)})
        form = EventForm(assigning, output, kinds, given, spans, of_events)
        # Both by the aggregates that are lacking.
        self._make = lru_cache(form.compile)
        self._assign = lru_cache(rows.compile)
        self._is_timed = bool(times)

    def events(self, frame: Frame, standing: Collection[tuple[Any, Summary]]) -> list[Detected]:
        """The events of the (key, summary) that stand in a window, in no promised order."""
        self.budget.spend(1 + CLOSING * len(standing), PUT_BYTES * len(standing))
        if self._post is None:
            return self._of_groups([(frame, *each) for each in standing])
        rows = self._rows(frame, self._grouped([(frame, *each) for each in standing]))
        return self._put_all([(frame, *each) for each in self._post.combined(rows)])

    def each(self, closed: Sequence[Standing]) -> list[Detected]:
        """The events of groups of which each stands alone in its window, in no promised order."""
        if self._post is None:
            return self._of_groups(closed)
        return [event for frame, *group in closed for event in self.events(frame, (tuple(group),))]

    def _of_groups(self, standing: Sequence[Standing]) -> list[Detected]:
        """Return the events of groups; making each is charged beside the window that closes."""
        self.budget.spend(CLOSING * len(standing), PUT_BYTES * len(standing))
        return self._put_all(self._grouped(standing))

    def _grouped(self, standing: Sequence[Standing]) -> list[Standing]:
        """Return each group as it is shown in the place of its key."""
        shown = self._shown
        if self._single and shown is None:
            return [(frame, (key,), summary) for frame, key, summary in standing]
        names = self._names
        groups = [(frame, group_of(key, names), summary) for frame, key, summary in standing]
        if shown is None:
            return groups
        return [(frame, shown(group), summary) for frame, group, summary in groups]

    def _rows(self, frame: Frame, groups: Sequence[Standing]) -> list[Row]:
        """Return the rows that `post` combines."""
        _, opens, closes = frame
        rows = []
        lacking: tuple[str, ...] = ()
        assign = self._assign(lacking)
        for _, group, summary in groups:
            if summary.lacking != lacking:
                lacking = summary.lacking
                assign = self._assign(lacking)
            rows.append(Row(assign(summary, group, opens, closes), summary))
        return rows

    def _put_all(self, groups: Iterable[Standing]) -> list[Detected]:
        """Return the events of groups, each with its window."""
        made: list[Detected] = []
        unnamed, task, case, budget = self._unnamed, self._task, self._case, self.budget
        lacking: tuple[str, ...] = ()
        make = self._make(lacking)
        last: Frame | None = None
        opens = closes = 0
        closing: Event | None = None
        named: Any = None
        tie: tuple[Any, ...] = ()
        for frame, group, summary in groups:
            if frame is not last:
                last = frame
                window, opens, closes = frame
                tied: Any
                named, tied, closing = window, window, None
                if isinstance(window, Event):
                    named, tied, closing = [window.id, window.end], window.id, window
                elif isinstance(window, tuple):
                    named, tied = list(window), window[0]
                tie = (self._name, self._case, tied)
            if summary.maybe and self._certain_only:
                continue
            if summary.lacking != lacking:
                lacking = summary.lacking
                make = self._make(lacking)
            event: Detected = make(summary, group, opens, closes, closing, tie, budget)
            if event.start > event.end:
                self.dropped_inverted += 1
            elif self._is_timed and (event.start < opens or event.end >= closes):
                self.dropped_outside += 1
            else:
                made.append(event)
                unnamed.append((event, said_of_window(task, case, named, group)))
        return made

    def name_all(self) -> None:
        """Give the events made since the last call their ids, which are digested together."""
        unnamed, self._unnamed = self._unnamed, []
        messages = [message for _, message in unnamed]
        for (event, _), name in zip(unnamed, digests(messages), strict=True):
            event.id = name
