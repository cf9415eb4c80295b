"""Operators and keys of other brokers, as this one can judge them.

Owns what of them has to be well made. Must not know routers or frames. Invariant: what comes out of
here never fails, and asks for all that went in asks for.

Another broker may be newer than this one, or broken. Refusing what it says would lose events that
somebody behind it needs; to pass all of a type loses nothing, as whoever wants them judges anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, isnan

from msgspec.structs import replace

from broker.engine.event.event import Event
from broker.network.operators.conditions import compile_condition
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Key, Operator, Range, Region
from broker.network.routing.matching.matching import plain
from broker.network.routing.matching.rows import Held, RowIndex, row_of

KEYS_MAX = 1_024  # a task has a key for each event that it binds, and few have more than ten
CHARS_MAX = 262_144  # of the keys that go with a question, written out: a part of a link's message
_NUMBERS = {"box": 4, "circle": 3}  # of a shape whose count is fixed
_CORNERS_MIN = 3  # fewer enclose nothing


def heard(operator: Operator) -> Operator:
    """The operator itself, or one that wants all events of its types, each by itself."""
    return operator if _sound(operator) else simple(operator)


def simple(operator: Operator) -> Operator:
    """Return an operator that wants all events of the operator's types."""
    types = dict.fromkeys([key.type_name for key in operator.keys])
    keys = [Key(f"{number:06}", name) for number, name in enumerate(types)]
    return Operator(operator.id, tuple(keys), correlated=False)


def keys_for(operators: Iterable[Operator], types: Iterable[str]) -> tuple[Key, ...] | None:
    """Return what operators ask of events of these types, each by itself; None: too much to say.

    A type for which they say nothing is wanted whole.
    """
    missing = dict.fromkeys(types)
    wanted = missing.copy()
    wanted_keys: dict[Key, None] = {}
    for key in (key for operator in operators for key in operator.keys if key.type_name in wanted):
        missing.pop(key.type_name, None)
        wanted_keys[replace(plain(key), name="")] = None
        if len(wanted_keys) > KEYS_MAX:
            return None
    every = (*wanted_keys, *[Key("", name) for name in missing])
    return every if sum(len(repr(key)) for key in every) <= CHARS_MAX else None


def judge(keys: Sequence[Key] | None) -> Callable[[Event], bool]:
    """A test of events: whether one of the keys wants it. It takes what it cannot judge."""
    if keys is None or not all(map(_sound_key, keys)):
        return lambda _: True
    rows: dict[str, RowIndex] = {}
    for slot, key in enumerate(keys):
        condition = compile_condition(key.condition) if key.condition else None
        rows.setdefault(key.type_name, RowIndex()).add(slot, row_of(key, condition=condition))

    def wanted(event: Event) -> bool:
        index = rows.get(event.event_type)
        return index is None or bool(index.lookup(Held(event, LOCAL)))

    return wanted


def _sound(operator: Operator) -> bool:
    keys = operator.keys
    names = {key.name for key in keys}
    time, space = operator.delta_t_ms, operator.delta_l
    return (
        len(names) == len(keys) <= KEYS_MAX
        and (not operator.main or operator.main in names)
        and names.issuperset(operator.silent)
        and not any(key.optional for key in keys if key.name in operator.silent)
        and (time is None or time >= 0)
        and (space is None or (isfinite(space) and space >= 0))
        and all(map(_sound_key, keys))
    )


def _sound_key(key: Key) -> bool:
    attributes = [bounds.attribute for bounds in key.ranges]
    return (
        len(set(attributes)) == len(attributes)
        and all(map(_sound_range, key.ranges))
        and (key.region is None or _sound_region(key.region))
        and not any(isinstance(value, float) and isnan(value) for _, value in key.equals)
        and _readable(key.condition)
    )


def _sound_range(bounds: Range) -> bool:
    return not any(end is not None and isnan(end) for end in (bounds.low, bounds.high))


def _sound_region(region: Region) -> bool:
    count = len(region.numbers)
    wanted = _NUMBERS.get(region.shape)
    fits = count == wanted if wanted else count >= 2 * _CORNERS_MIN and count % 2 == 0
    return fits and all(map(isfinite, region.numbers))


def _readable(condition: str) -> bool:
    try:
        compile_condition(condition)
    except (ValueError, ArithmeticError, LookupError, RecursionError, SyntaxError, TypeError):
        return False
    return True
