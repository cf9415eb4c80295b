"""Windowed definitions: which windows there are, which groups stand, what they yield.

Owns: the reference meaning of all kinds of windows, of `outer`, `distinct`, `pre` and `post`.
Must not know: how other definitions and subscriptions are matched.
Invariant: a window is a set of events picked from the whole trace; nothing slides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Value, in_order
from tests.oracles.expressions import Scope, evaluate, parts_of
from tests.oracles.patterns import matches, same_keys
from tests.oracles.settings import Candidates


@dataclass(frozen=True)
class Frame:
    """One window: its key, the time [start, end) that it covers, and which events are inside."""

    key: Key
    start: int
    end: int
    inside: Callable[[Event], bool]

    def times(self) -> Mapping[str, Value]:
        """The values of `window.start` and `window.end`."""
        return {"start": self.start, "end": self.end}


@dataclass(frozen=True)
class Standing:
    """A group that stands in a window, with what it assigns."""

    frame: Frame
    group: tuple[tuple[str, Value], ...]
    events: tuple[tuple[str, tuple[Event, ...]], ...]
    assigned: tuple[tuple[str, Value], ...]

    @property
    def window(self) -> Key:
        """The key of the window."""
        return self.frame.key


@dataclass(frozen=True)
class Happening:
    """When the event of a window happens, and the ε of that."""

    start: int
    end: int
    uncertainty: int


def happening(definition: s.Definition, one: Standing) -> Happening | None:
    """The interval of a window's event; None if it starts after its end or leaves its window.

    It is the point of the window's last millisecond, of a session the span of its events. Assigned
    times come in the place of these; null leaves them. ε is 0, but that of the events where they
    say the time.
    """
    events = [event for _, bound in one.events for event in bound]
    spans = isinstance(definition.window, s.Session)
    start = end = one.frame.end - 1
    if spans:
        start, end = min(e.start for e in events), max(e.end for e in events)
    told = {name: value for name, value in one.assigned if value is not None}
    point = told.get("timestamp")
    start = _whole(told.get("start", start) if point is None else point)
    end = _whole(told.get("end", end) if point is None else point)
    if start > end or not one.frame.start <= start <= end < one.frame.end:
        return None
    (case,) = definition.cases
    assign = case.assign if definition.post is None else definition.post.assign
    partial = {} if definition.post is None else dict(case.assign)
    of_events = spans or any(
        name in told and _says_events(value, partial)
        for name, value in assign
        if name in ("timestamp", "start", "end")
    )
    return Happening(start, end, max(e.uncertainty for e in events) if of_events else 0)


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _says_events(value: s.Expr, partial: Mapping[str, s.Expr]) -> bool:
    """Whether a time comes of events; `partial` is what `pre` assigns where `post` asks."""
    match value:
        case s.Lit() | s.Duration() | s.Ref("window", _):
            return False
        case s.Aggregate(_, None, str(name)) if name in partial:
            return _says_events(partial[name], {})
        case s.Arith() | s.Call():
            return any(_says_events(part, partial) for part in parts_of(value))
    return True


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
        for frame in windows_over(definition.window, everything):
            here = tuple(
                (one.atom.name, one.left([event for event in events if frame.inside(event)]))
                for one, events in listed
            )
            if _stands(case.pattern, dict(here)):
                known = replace(grouped, events=dict(here), window=frame.times())
                found.append(Standing(frame, group, here, _assigned(case.assign, known)))
    return found if definition.post is None else _combined(definition.post, found, scope)


def windows_over(window: s.Window, events: Sequence[Event]) -> Iterator[Frame]:
    """Each window that can hold any of the events."""
    match window:
        case s.Trailing(range_ms):
            for closing in events:
                end, inside = closing.end, _trailing(closing, range_ms)
                yield Frame(closing.order, end - range_ms, end + 1, inside)
        case s.Session():
            for session in sessions(window, events):
                start = min(event.start for event in session)
                end = max(event.end for event in session)
                yield Frame(session[0].order, start, end + 1, _among(session))
        case s.Days():
            for k in sorted({_days(window, event) for event in events}):
                start, end = (_midnight(window, k + more) for more in (0, 1))
                yield Frame((k,), start, end, _in_days(window, k))
        case s.Every(ms, range_ms) if events:
            ends = [event.end for event in events]
            reach_ms = range_ms or ms
            for k in range(min(ends) // ms - 1, (max(ends) + reach_ms) // ms + 2):
                end = (k + 1) * ms if range_ms is None else k * ms
                yield Frame((k,), end - reach_ms, end, _in_time(end - reach_ms, end))


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


def _midnight(window: s.Days, k: int) -> int:
    """The beginning of the window with that number."""
    day = date(1970, 1, 1) + timedelta(days=k * window.count)
    local = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(window.zone))
    return round(local.timestamp() * 1000)


def _in_days(window: s.Days, k: int) -> Callable[[Event], bool]:
    return lambda event: _days(window, event) == k


def _trailing(closing: Event, range_ms: int) -> Callable[[Event], bool]:
    return lambda event: event.order <= closing.order and event.end >= closing.end - range_ms


def _in_time(start: int, end: int) -> Callable[[Event], bool]:
    return lambda event: start <= event.end < end


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
    for (_, group), listed in together.items():
        frame = listed[0].frame
        rows = [dict(one.assigned) for one in sorted(listed, key=_order_of)]
        events = _merged(listed)
        known = replace(scope, group=dict(group), events=dict(events), rows=rows)
        known = replace(known, window=frame.times())
        found.append(Standing(frame, group, events, _assigned(post.assign, known)))
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
