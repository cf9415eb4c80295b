"""What expressions are worth: null, comparisons, arithmetic, aggregates.

Owns: the reference meaning of conditions, of assigned expressions and of every aggregate.
Must not know: how patterns choose their events.
Invariant: None is null; a comparison or `in` with null is False, arithmetic with null is None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from tests.oracles import spec as s
from tests.oracles.events import Event, Value
from tests.oracles.functions import Row, call, look_up
from tests.oracles.places import Position, beneath, inside

Number: TypeAlias = int | float

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Scope:
    """What names mean where an expression stands.

    `events`: alias -> the events bound to it. `bare`: what a name without alias is worth.
    `rows`: what an aggregate over a bare name runs over (`post`), in order. `members`: the one of a
    list that is asked about at the moment. `tables`: the name of
    the key and the rows of each. `window`: the `start` and `end` of the window, where there is one.
    """

    events: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    bare: Callable[[str], Value] = lambda _: None
    group: Mapping[str, Value] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Value]] = ()
    members: Mapping[str, Event] = field(default_factory=dict)
    sets: Mapping[str, Sequence[s.Scalar]] = field(default_factory=dict)
    regions: Mapping[str, s.Region] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, Sequence[Row]]] = field(default_factory=dict)
    window: Mapping[str, Value] = field(default_factory=dict)

    def look_up(self, ref: s.Ref) -> Value:
        """The value of a reference; null where its name stands for no event."""
        if ref.alias is None:
            return self.bare(ref.name)
        if ref.alias == "group":
            return self.group[ref.name]
        if ref.alias in self.members:
            return self.members[ref.alias].value(ref.name)
        if ref.alias == "window" and self.window:
            return self.window[ref.name]
        bound = self.events[ref.alias]
        assert len(bound) <= 1, "a list has no single value"
        return bound[0].value(ref.name) if bound else None


def parts_of(expr: s.Expr) -> tuple[s.Expr, ...]:
    """What an expression is directly made of."""
    match expr:
        case s.Arith(_, left, right):
            return (left, right)
        case s.Negative(operand) | s.Not(operand):
            return (operand,)
        case s.Compare(_, operands) | s.AllOf(operands) | s.AnyOf(operands):
            return operands
        case s.InSet(item, _) | s.InRegion(item, _) | s.Lookup(_, item, _):
            return (item,)
        case s.Call(_, arguments):
            return arguments
    return ()


def names_in(expr: s.Expr) -> frozenset[str]:
    """The aliases that an expression names outside aggregates; `group` is none."""
    if isinstance(expr, s.Ref):
        return frozenset({expr.alias} - {None, "group"}) if expr.alias else frozenset()
    return frozenset().union(*(names_in(part) for part in parts_of(expr)))


def names_aggregated(expr: s.Expr) -> frozenset[str]:
    """The aliases that an expression's aggregates run over."""
    if isinstance(expr, s.Aggregate):
        return frozenset({expr.alias}) if expr.alias else frozenset()
    return frozenset().union(*(names_aggregated(part) for part in parts_of(expr)))


def holds(expr: s.Expr, scope: Scope) -> bool:
    """Whether a condition holds; a null truth value does not."""
    return evaluate(expr, scope) is True


def evaluate(expr: s.Expr, scope: Scope) -> Value:
    """What an expression is worth."""
    match expr:
        case s.Lit(value):
            return value
        case s.Duration(ms):
            return ms
        case s.Ref():
            return scope.look_up(expr)
        case s.Negative(operand):
            number = _number(evaluate(operand, scope))
            return None if number is None else -number
        case s.Arith(op, left, right):
            return _arith(op, _number(evaluate(left, scope)), _number(evaluate(right, scope)))
        case s.Aggregate():
            return aggregate(expr, scope)
        case s.Call() | s.Lookup():
            return _found(expr, scope)
    return _truth(expr, scope)


def _found(expr: s.Call | s.Lookup, scope: Scope) -> Value:
    if isinstance(expr, s.Call):
        value: Value = call(expr.function, [evaluate(one, scope) for one in expr.arguments])
    else:
        key, rows = scope.tables[expr.table]
        value = look_up(rows, key, evaluate(expr.key, scope), expr.column)
    return value


def _truth(expr: s.Expr, scope: Scope) -> bool:
    match expr:
        case s.Compare(ops, operands):
            values = [evaluate(operand, scope) for operand in operands]
            steps = zip(ops, values, values[1:], strict=False)
            return all(_compare(op, left, right) for op, left, right in steps)
        case s.InSet(item, members):
            listed = scope.sets[members] if isinstance(members, str) else members
            value = evaluate(item, scope)
            return value is not None and value in listed
        case s.InRegion(item, region):
            where = scope.regions[region] if isinstance(region, str) else region
            return _in_region(evaluate(item, scope), where)
        case s.Not(operand):
            return not holds(operand, scope)
        case s.AllOf(parts):
            return all(holds(part, scope) for part in parts)
        case s.AnyOf(parts):
            return any(holds(part, scope) for part in parts)
    raise AssertionError(expr)


def _compare(op: str, left: Value, right: Value) -> bool:
    if left is None or right is None:
        return False
    return _COMPARISONS[op](left, right)


def _in_region(value: Value, region: s.Region) -> bool:
    if isinstance(region, s.PathRegion):
        return isinstance(value, str) and beneath(value, region.path)
    return isinstance(value, Position) and inside(value, region)


def event_in_region(event: Event, region: s.Region) -> bool:
    """`in R` for one event: a path asks for its location, the others for its position."""
    asked = event.location if isinstance(region, s.PathRegion) else event.position
    return _in_region(asked, region)


def _number(value: Value) -> Number | None:
    assert value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    return value


def _arith(op: str, left: Number | None, right: Number | None) -> Number | None:
    if left is None or right is None:
        return None
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return None if right == 0 else left / right


# --- aggregates -------------------------------------------------------------------------------


def aggregate(expr: s.Aggregate, scope: Scope) -> Value:
    """An aggregate over the events of an alias, or over the partial results in `post`."""
    if expr.alias is None:
        assert expr.attribute is not None
        given = [row[expr.attribute] for row in scope.rows]
    elif expr.attribute is None:
        assert expr.function == "Count"
        return len(scope.events[expr.alias])
    else:
        given = [event.value(expr.attribute) for event in scope.events[expr.alias]]
    return AGGREGATES[expr.function]([value for value in given if value is not None], expr)


def exact_sum(values: Iterable[Value]) -> Fraction:
    """The sum without any rounding."""
    total = Fraction(0)
    for value in values:
        number = _number(value)
        assert number is not None
        total += Fraction(number)
    return total


def rounded_root(exact: Fraction) -> float:
    """The float nearest to the square root of an exact number."""
    guess = math.sqrt(exact)
    for _ in range(4):  # the guess is at most a few floats off; walk to the nearest
        above, below = math.nextafter(guess, math.inf), math.nextafter(guess, 0.0)
        if exact > _middle(guess, above) ** 2:
            guess = above
        elif guess > 0 and exact < _middle(below, guess) ** 2:
            guess = below
        elif exact == _middle(guess, above) ** 2:
            return guess if _is_even(guess) else above
        elif guess > 0 and exact == _middle(below, guess) ** 2:
            return guess if _is_even(guess) else below
    return guess


def _is_even(number: float) -> bool:
    """Whether the last bit of the significand is 0, as the rounding of a middle wants it."""
    return int(Fraction(number) / Fraction(math.ulp(number))) % 2 == 0


def _middle(a: float, b: float) -> Fraction:
    return (Fraction(a) + Fraction(b)) / 2


def _sum(values: list[Value], _: s.Aggregate) -> Value:
    total = exact_sum(values)
    return int(total) if all(isinstance(value, int) for value in values) else float(total)


def _avg(values: list[Value], _: s.Aggregate) -> Value:
    return float(exact_sum(values) / len(values)) if values else None


def _std_dev(values: list[Value], _: s.Aggregate) -> Value:
    if not values:
        return None
    mean = exact_sum(values) / len(values)
    squares = ((Fraction(number) - mean) ** 2 for number in _numbers(values))
    return rounded_root(sum(squares, Fraction(0)) / len(values))


def _numbers(values: list[Value]) -> list[Number]:
    numbers = [_number(value) for value in values]
    return [number for number in numbers if number is not None]


def _quantile(values: list[Value], expr: s.Aggregate) -> Value:
    """Linear between the closest ranks, of (n - 1) q, q being the decimal number as written; exact,
    then rounded once.
    """
    if not values:
        return None
    ordered = sorted(_numbers(values))
    q = Fraction(1, 2) if expr.quantile is None else Fraction(str(expr.quantile))
    rank = (len(ordered) - 1) * q
    low = math.floor(rank)
    below, above = Fraction(ordered[low]), Fraction(ordered[min(low + 1, len(ordered) - 1)])
    return float(below + (rank - low) * (above - below))


def _distinct(values: list[Value], _: s.Aggregate) -> Value:
    return sum(value not in values[:i] for i, value in enumerate(values))


AGGREGATES: dict[str, Callable[[list[Value], s.Aggregate], Value]] = {
    "Count": lambda values, _: len(values),
    "Sum": _sum,
    "Avg": _avg,
    "Min": lambda values, _: min(_numbers(values), default=None),
    "Max": lambda values, _: max(_numbers(values), default=None),
    "StdDev": _std_dev,
    "Median": _quantile,
    "Quantile": _quantile,
    "First": lambda values, _: values[0] if values else None,
    "Last": lambda values, _: values[-1] if values else None,
    "CountDistinct": _distinct,
}
