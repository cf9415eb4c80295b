"""Which events an operator lets travel, by its definition alone.

Owns: brute force over all matches of an operator.
Must not know: how a router finds matches, nor over how many brokers the events are spread.
Invariant: an event travels exactly if it is wanted by itself or belongs to a complete match of
distinct events, one for each key that is not optional, together with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from tests.oracles import spec as s
from tests.oracles.places import Position, distance_m, inside

Key = Operator = Region = Any  # what is said of them is read by name
ConditionOf = Callable[[str], Callable[[Any], bool]]
Identity = tuple[str, int]


def identity(event: Any) -> Identity:
    """What makes an event the same as another."""
    return (event.id, event.end)


def travelling(
    operator: Operator, events: Sequence[Any], condition_of: ConditionOf
) -> set[Identity]:
    """The events of those given that the operator lets travel.

    `condition_of` gives the test of a condition's text: what it says is another oracle's part.
    """
    passing = [[e for e in events if passes(key, e, condition_of)] for key in operator.keys]
    if not operator.correlated:
        return {identity(event) for some in passing for event in some}
    asked = list(zip(operator.keys, passing, strict=True))
    found: set[Identity] = set()
    for match in _matches(operator, [some for key, some in asked if not key.optional]):
        found |= {identity(event) for event in match}
        for event in (event for key, some in asked if key.optional for event in some):
            if _together(operator, (*match, event)):
                found.add(identity(event))
    return found


def _matches(operator: Operator, passing: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Every choice of one event per key of which all lie together."""
    for match in product(*passing):
        if _together(operator, match):
            yield match


def _together(operator: Operator, match: Sequence[Any]) -> bool:
    if len({identity(event) for event in match}) < len(match):
        return False
    # One that lasts too long, or is nowhere where it matters, is not even near itself.
    return all(_near(operator, a, b) for i, a in enumerate(match) for b in match[: i + 1])


def _near(operator: Operator, a: Any, b: Any) -> bool:
    span_ms = max(a.end, b.end) - min(a.start, b.start)
    if operator.delta_t_ms is not None and not _below(operator, span_ms, operator.delta_t_ms):
        return False
    if operator.delta_l is None:
        return True
    away = distance_m(position_of(a), position_of(b))
    return away is not None and _below(operator, away, operator.delta_l)


def _below(operator: Operator, value: float, limit: float) -> bool:
    return value < limit if operator.strict else value <= limit


def passes(key: Key, event: Any, condition_of: ConditionOf) -> bool:
    """Whether an event passes a key, all of its fields and its condition."""
    said = [event.event_type == key.type_name, key.source in (None, event.source)]
    if key.location is not None:
        place = (event.location or "").split("/")
        under = key.location.split("/")
        said.append(event.location is not None and place[: len(under)] == under)
    if key.region is not None:
        said.append(inside(position_of(event), region_of(key.region)))
    if not all(said):
        return False
    for one in key.ranges:
        value = event.attribute_values().get(one.attribute)
        if value is None or not _in_range(one.low, value, is_open=one.low_open):
            return False
        if one.high is not None and not _in_range(-one.high, -value, is_open=one.high_open):
            return False
    values = [(event.attribute_values().get(name), value) for name, value in key.equals]
    if not all(type(found) is type(value) and found == value for found, value in values):
        return False
    return not key.condition or condition_of(key.condition)(event)


def _in_range(low: float | None, value: float, *, is_open: bool) -> bool:
    return low is None or value > low or (value == low and not is_open)


def position_of(event: Any) -> Position | None:
    """The position of an event, in the oracle's words."""
    given = event.position
    if given is None:
        return None
    if isinstance(given, list):
        return Position(True, given[0], given[1], given[2] if len(given) > 2 else None)
    return Position(False, given.x, given.y, given.z)


def region_of(region: Region) -> s.Region:
    """A key's region in the oracle's words, which know the globe alone."""
    assert not region.metric
    numbers = region.numbers
    if region.shape == "circle":
        return s.Circle(*numbers)
    if region.shape == "box":
        return s.Box(*numbers)
    return s.Polygon(tuple(zip(numbers[::2], numbers[1::2], strict=True)))
