"""Windowed definitions: which windows there are, which groups stand, what they yield.

Owns: the reference meaning of `aggr every`, `range`, `outer`, `pre` and `post`.
Must not know: how other definitions and subscriptions are matched.
Invariant: a window is a set of events picked from the whole trace; nothing slides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Value, in_order
from tests.oracles.expressions import Scope, evaluate
from tests.oracles.patterns import matches
from tests.oracles.settings import Candidates


@dataclass(frozen=True)
class Standing:
    """A group that stands in a window, with what it assigns."""

    window: Key
    group: tuple[tuple[str, Value], ...]
    events: tuple[tuple[str, tuple[Event, ...]], ...]
    assigned: tuple[tuple[str, Value], ...]


def operands(pattern: s.Pattern) -> list[tuple[s.Atom, bool]]:
    """The atoms joined by `and`, each with whether it is marked `outer`."""
    match pattern:
        case s.Atom():
            return [(pattern, False)]
        case s.Outer(operand):
            return [(operand, True)]
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
            (atom.name, tuple(e for e in candidates[atom.type] if matches(e, atom, grouped)))
            for atom, _ in operands(case.pattern)
        ]
        for window, inside in windows_over(definition.window, _all_events(listed)):
            here = tuple((name, in_order(filter(inside, events))) for name, events in listed)
            if _stands(case.pattern, dict(here)):
                assigned = _assigned(case.assign, replace(grouped, events=dict(here)))
                found.append(Standing(window, group, here, assigned))
    return found if definition.post is None else _combined(definition.post, found, scope)


def _all_events(listed: Sequence[tuple[str, tuple[Event, ...]]]) -> tuple[Event, ...]:
    return in_order({event for _, events in listed for event in events})


def windows_over(
    window: s.Every | s.Trailing, events: Sequence[Event]
) -> Iterator[tuple[Key, Callable[[Event], bool]]]:
    """Each window that can hold any of the events: its key, and which events are inside."""
    if isinstance(window, s.Trailing):
        for closing in events:
            yield closing.order, _trailing(closing, window.range_ms)
    elif events:
        ends = [event.end for event in events]
        reach_ms = window.range_ms or window.ms
        for k in range(min(ends) // window.ms - 1, (max(ends) + reach_ms) // window.ms + 2):
            yield (k,), _every(window, k)


def _trailing(closing: Event, range_ms: int) -> Callable[[Event], bool]:
    return lambda event: event.order <= closing.order and event.end >= closing.end - range_ms


def _every(window: s.Every, k: int) -> Callable[[Event], bool]:
    if window.range_ms is None:
        return lambda event: k * window.ms <= event.end < (k + 1) * window.ms
    range_ms = window.range_ms
    return lambda event: k * window.ms - range_ms <= event.end < k * window.ms


def _stands(pattern: s.Pattern, events: Mapping[str, tuple[Event, ...]]) -> bool:
    """Every operand that is not `outer` has an event; where all are, one has."""
    asked = [atom.name for atom, is_outer in operands(pattern) if not is_outer]
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
