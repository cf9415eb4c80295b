"""Windowed definitions: which windows there are, which groups stand, what they yield.

Owns: the reference meaning of all kinds of windows, of `outer`, `distinct`, `pre` and `post`.
Must not know: how other definitions and subscriptions are matched.
Invariant: a window is a set of events picked from the whole trace; nothing slides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Value, in_order
from tests.oracles.expressions import Scope, evaluate
from tests.oracles.patterns import matches, same_keys
from tests.oracles.settings import Candidates


@dataclass(frozen=True)
class Standing:
    """A group that stands in a window, with what it assigns."""

    window: Key
    group: tuple[tuple[str, Value], ...]
    events: tuple[tuple[str, tuple[Event, ...]], ...]
    assigned: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Operand:
    """An atom of a window; `keys` are those of `distinct`, None without it."""

    atom: s.Atom
    is_outer: bool = False
    keys: tuple[str, ...] | None = None

    def left(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """The events of one window, in order, less those that equal an earlier one."""
        ordered = in_order(events)
        if self.keys is None:
            return ordered
        return tuple(
            one
            for number, one in enumerate(ordered)
            if not any(self._alike(earlier, one) for earlier in ordered[:number])
        )

    def _alike(self, earlier: Event, one: Event) -> bool:
        return same_keys(self.keys, earlier, one) if self.keys else earlier.end == one.end


def operands(pattern: s.Pattern) -> list[Operand]:
    """What is joined by `and`."""
    match pattern:
        case s.Atom():
            return [Operand(pattern)]
        case s.Outer(operand):
            return [replace(one, is_outer=True) for one in operands(operand)]
        case s.Distinct(operand, keys):
            return [replace(one, keys=keys) for one in operands(operand)]
        case s.Pair("and", left, right, None, None):
            return operands(left) + operands(right)
    raise ValueError("a window takes atoms joined by `and`")


def standing_groups(
    definition: s.Definition,
    partitions: Sequence[tuple[tuple[tuple[str, Value], ...], Candidates]],
    scope: Scope,
) -> list[Standing]:
    """Every window and group that stands; each partition is (its key, its candidates by type)."""
    assert definition.window is not None
    (case,) = definition.cases
    found = []
    for group, candidates in partitions:
        grouped = replace(scope, group=dict(group))
        listed = [
            (one, tuple(e for e in candidates[one.atom.type] if matches(e, one.atom, grouped)))
            for one in operands(case.pattern)
        ]
        everything = in_order({event for _, events in listed for event in events})
        for window, inside in windows_over(definition.window, everything):
            here = tuple(
                (one.atom.name, one.left([event for event in events if inside(event)]))
                for one, events in listed
            )
            if _stands(case.pattern, dict(here)):
                assigned = _assigned(case.assign, replace(grouped, events=dict(here)))
                found.append(Standing(window, group, here, assigned))
    return found if definition.post is None else _combined(definition.post, found, scope)


def windows_over(
    window: s.Window, events: Sequence[Event]
) -> Iterator[tuple[Key, Callable[[Event], bool]]]:
    """Each window that can hold any of the events: its key, and which events are inside."""
    match window:
        case s.Trailing(range_ms):
            for closing in events:
                yield closing.order, _trailing(closing, range_ms)
        case s.Session():
            for session in sessions(window, events):
                yield session[0].order, _among(session)
        case s.Days():
            for k in sorted({_days(window, event) for event in events}):
                yield (k,), _in_days(window, k)
        case s.Every(ms, range_ms) if events:
            ends = [event.end for event in events]
            reach_ms = range_ms or ms
            for k in range(min(ends) // ms - 1, (max(ends) + reach_ms) // ms + 2):
                yield (k,), _every(window, k)


def sessions(window: s.Session, events: Sequence[Event]) -> list[list[Event]]:
    """The events in order, cut where one is too late for the session before it."""
    found: list[list[Event]] = []
    for event in events:
        last = found[-1] if found else []
        if last and _joins(window, last, event):
            last.append(event)
        else:
            found.append([event])
    return found


def _joins(window: s.Session, session: Sequence[Event], event: Event) -> bool:
    start = min(one.start for one in session)
    end = max(one.end for one in session)
    long = window.max_ms is not None and event.end - start > window.max_ms
    return event.start - end <= window.gap_ms and not long


def _among(session: Sequence[Event]) -> Callable[[Event], bool]:
    return lambda event: event in session


def _days(window: s.Days, event: Event) -> int:
    """The number of the window by the calendar of its zone, counted from that of 1970-01-01."""
    local = datetime.fromtimestamp(event.end / 1000, ZoneInfo(window.zone))
    return (local.date() - date(1970, 1, 1)).days // window.count


def _in_days(window: s.Days, k: int) -> Callable[[Event], bool]:
    return lambda event: _days(window, event) == k


def _trailing(closing: Event, range_ms: int) -> Callable[[Event], bool]:
    return lambda event: event.order <= closing.order and event.end >= closing.end - range_ms


def _every(window: s.Every, k: int) -> Callable[[Event], bool]:
    if window.range_ms is None:
        return lambda event: k * window.ms <= event.end < (k + 1) * window.ms
    range_ms = window.range_ms
    return lambda event: k * window.ms - range_ms <= event.end < k * window.ms


def _stands(pattern: s.Pattern, events: Mapping[str, tuple[Event, ...]]) -> bool:
    """Every operand that is not `outer` has an event; where all are, one has."""
    asked = [one.atom.name for one in operands(pattern) if not one.is_outer]
    return all(events[name] for name in asked) and any(events.values())


def _assigned(assign: s.Assignments, scope: Scope) -> tuple[tuple[str, Value], ...]:
    """What an `assign` yields; bare `timestamp`, `start`, `end` are the span's."""
    events = [event for bound in scope.events.values() for event in bound]
    start, end = min(event.start for event in events), max(event.end for event in events)
    span = {"timestamp": end, "start": start, "end": end}
    known = replace(scope, bare=lambda name: span[name])
    return tuple((name, evaluate(value, known)) for name, value in assign)


def _combined(post: s.Post, partials: Sequence[Standing], scope: Scope) -> list[Standing]:
    """`post`: the partial results of one window, grouped anew by what they assigned."""
    together: dict[tuple[Key, tuple[tuple[str, Value], ...]], list[Standing]] = {}
    for partial in partials:
        values = dict(partial.assigned)
        group = tuple((name, values.get(name)) for name in post.group_by)
        if all(value is not None for _, value in group):
            together.setdefault((partial.window, group), []).append(partial)
    found = []
    for (window, group), listed in together.items():
        rows = [dict(one.assigned) for one in sorted(listed, key=_order_of)]
        events = _merged(listed)
        known = replace(scope, group=dict(group), events=dict(events), rows=rows)
        found.append(Standing(window, group, events, _assigned(post.assign, known)))
    return found


def _order_of(partial: Standing) -> Key:
    events = in_order(event for _, bound in partial.events for event in bound)
    ids = tuple(one for event in events for one in event.primitive_ids)
    return (events[-1].end, min(event.start for event in events), ids)


def _merged(partials: Sequence[Standing]) -> tuple[tuple[str, tuple[Event, ...]], ...]:
    names = [name for name, _ in partials[0].events]
    return tuple(
        (name, in_order(event for one in partials for event in dict(one.events)[name]))
        for name in names
    )
