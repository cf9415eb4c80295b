"""Operators of neighbours, as this broker can judge them.

Owns what of an operator has to be well made. Must not know routers or frames. Invariant: an
operator that comes out of here never fails, and asks for all that the one that went in asks for.

A neighbour may be newer than this broker, or broken. Refusing what it says would lose events that
somebody behind it needs; to pass all of a type loses nothing, as whoever wants them judges anew.
"""

from __future__ import annotations

from math import isfinite, isnan

from broker.core.operators.conditions import compile_condition
from broker.core.routing.operator import Key, Operator, Range, Region

KEYS_MAX = 1_024  # a task has a key for each event that it binds, and few have more than ten
_NUMBERS = {"box": 4, "circle": 3}
_CORNERS_MIN = 3


def heard(operator: Operator) -> Operator:
    """The operator itself, or one that wants all events of its types, each by itself."""
    return operator if _sound(operator) else simple(operator)


def simple(operator: Operator) -> Operator:
    """What wants all events of the operator's types."""
    types = dict.fromkeys([key.type_name for key in operator.keys])
    keys = [Key(f"{number:06}", name) for number, name in enumerate(types)]
    return Operator(operator.id, tuple(keys), correlated=False)


def _sound(operator: Operator) -> bool:
    keys = operator.keys
    names = {key.name for key in keys}
    time, space = operator.delta_t_ms, operator.delta_l
    return (
        len(names) == len(keys) <= KEYS_MAX
        and (not operator.main or operator.main in names)
        and (time is None or time >= 0)
        and (space is None or (isfinite(space) and space >= 0))
        and all(map(_sound_key, keys))
    )


def _sound_key(key: Key) -> bool:
    attributes = [one.attribute for one in key.ranges]
    return (
        len(set(attributes)) == len(attributes)
        and all(map(_sound_range, key.ranges))
        and (key.region is None or _sound_region(key.region))
        and not any(isinstance(value, float) and isnan(value) for _, value in key.equals)
        and _readable(key.condition)
    )


def _sound_range(one: Range) -> bool:
    return not any(end is not None and isnan(end) for end in (one.low, one.high))


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
