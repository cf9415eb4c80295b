"""The functions of the language: names, types of arguments, type of the result.

Owns the tables that the checker and the engine both read. Must not know how anything is computed.
Invariant: aggregates begin with a capital letter, scalar functions with a small one.

Types of arguments: "number" is int or float, "ordered" a number or text, "any" anything that an
attribute can be, "event" an alias. Results: a type, or "same", the common type of the arguments.
A null argument makes a scalar function null; aggregates skip nulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from language import tree

ArgumentType = Literal["number", "text", "ordered", "any", "event"]
ResultType = Literal["int", "float", "text", "bool", "same"]
F = TypeVar("F", bound="Function")


@dataclass(frozen=True, slots=True)
class Function:
    """A function's form: `arguments` in order; if `repeats`, the last one may stand again.

    `chooses`: its result is always one of its arguments.
    """

    name: str
    arguments: tuple[ArgumentType, ...]
    result: ResultType
    meaning: str
    repeats: bool = False
    chooses: bool = False

    @property
    def form(self) -> str:
        """Return the form of a call, for messages: `min(number, number, …)`."""
        dots = ", …" if self.repeats else ""
        return f"{self.name}({', '.join(self.arguments)}{dots})"


@dataclass(frozen=True, slots=True)
class AggregateFunction(Function):
    """A function over the values of many events.

    `of_events`: it may be asked of events themselves. `over_none`: its value where there is none.
    `merges`: its results over parts of a window make that over the whole. `share`: of a quantile,
    how much lies beneath it; `takes_share`: that is its second argument. `spark`: what computes the
    same in pyspark.sql.functions, for a server's windows; None where nothing does.
    """

    of_events: bool = False
    over_none: int | None = None
    merges: bool = False
    share: Fraction | None = None
    takes_share: bool = False
    spark: str | None = None


def _table(*functions: F) -> dict[str, F]:
    return {function.name: function for function in functions}


SCALARS: dict[str, Function] = _table(
    Function("abs", ("number",), "same", "the number without its sign"),
    Function("min", ("number", "number"), "same", "the least", repeats=True, chooses=True),
    Function("max", ("number", "number"), "same", "the greatest", repeats=True, chooses=True),
    Function("round", ("number",), "int", "the nearest whole number, of two the even one"),
    Function("floor", ("number",), "int", "the greatest whole number not above"),
    Function("ceil", ("number",), "int", "the least whole number not below"),
    Function("sqrt", ("number",), "float", "the square root; null of a negative number"),
    Function("lower", ("text",), "text", "in small letters"),
    Function("upper", ("text",), "text", "in capital letters"),
    Function("length", ("text",), "int", "how many characters"),
    Function("concat", ("text", "text"), "text", "one text after the other", repeats=True),
)


AGGREGATES: dict[str, AggregateFunction] = _table(
    AggregateFunction(
        "Count",
        ("any",),
        "int",
        "how many events; of x.a, how many that are not null",
        of_events=True,
        over_none=0,
        merges=True,
        spark="count",
    ),
    AggregateFunction(
        "Sum", ("number",), "same", "the sum; 0 of none", over_none=0, merges=True, spark="sum"
    ),
    AggregateFunction("Avg", ("number",), "float", "the mean", merges=True, spark="avg"),
    AggregateFunction(
        "Min", ("ordered",), "same", "the least", chooses=True, merges=True, spark="min"
    ),
    AggregateFunction(
        "Max", ("ordered",), "same", "the greatest", chooses=True, merges=True, spark="max"
    ),
    AggregateFunction(
        "StdDev",
        ("number",),
        "float",
        "the standard deviation of the population",
        merges=True,
        spark="stddev_pop",
    ),
    AggregateFunction(
        "Median",
        ("number",),
        "float",
        "the median, between two the middle",
        share=Fraction(1, 2),
    ),
    AggregateFunction(
        "Quantile",
        ("number", "number"),
        "float",
        "the quantile q from 0 to 1, linear",
        takes_share=True,
    ),
    AggregateFunction(
        "First", ("any",), "same", "that of the first event in order", chooses=True, merges=True
    ),
    AggregateFunction(
        "Last", ("any",), "same", "that of the last event in order", chooses=True, merges=True
    ),
    AggregateFunction(
        "CountDistinct", ("any",), "int", "how many different values that are not null", over_none=0
    ),
)

MERGING = frozenset(each.name for each in AGGREGATES.values() if each.merges)
CHOOSING = frozenset(
    each.name for each in (*SCALARS.values(), *AGGREGATES.values()) if each.chooses
)


def is_aggregate(call: tree.Call) -> bool:
    """Return True for a call of an aggregate: a built-in one, or once resolved the user's own."""
    return call.function in AGGREGATES or getattr(call.own, "aggregate", False)


def share_of(call: tree.Call) -> Fraction | None:
    """Return the q of a quantile as it was written: 0.1 is a tenth, not the float nearest to it.

    None of what is none. Raises ValueError where it is no number from 0 to 1.
    """
    function = AGGREGATES.get(call.function)
    if function is None or not function.takes_share:
        return None if function is None else function.share
    value = getattr(call.arguments[1], "value", None)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"q of {call.function}(x, q) is a number from 0 to 1")
    return Fraction(repr(value))
