"""The functions of the language: names, types of arguments, type of the result.

Owns the tables that the checker and the engine both read. Must not know how anything is computed.
Invariant: aggregates begin with a capital letter, scalar functions with a small one.

Types of arguments: "number" is int or float, "ordered" a number or text, "any" anything that an
attribute can be, "event" an alias. Results: a type, or "same", the common type of the arguments.
A null argument makes a scalar function null; aggregates skip nulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from language import tree

ArgumentType = Literal["number", "text", "ordered", "any", "event"]
ResultType = Literal["int", "float", "text", "bool", "same"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function's form: `arguments` in order; if `repeats`, the last one may stand again."""

    name: str
    arguments: tuple[ArgumentType, ...]
    result: ResultType
    meaning: str
    repeats: bool = False

    @property
    def form(self) -> str:
        """How it is called, for messages: `min(number, number, …)`."""
        dots = ", …" if self.repeats else ""
        return f"{self.name}({', '.join(self.arguments)}{dots})"


def _table(*functions: Function) -> dict[str, Function]:
    return {function.name: function for function in functions}


SCALARS: dict[str, Function] = _table(
    Function("abs", ("number",), "same", "the number without its sign"),
    Function("min", ("number", "number"), "same", "the least", repeats=True),
    Function("max", ("number", "number"), "same", "the greatest", repeats=True),
    Function("round", ("number",), "int", "the nearest whole number, of two the even one"),
    Function("floor", ("number",), "int", "the greatest whole number not above"),
    Function("ceil", ("number",), "int", "the least whole number not below"),
    Function("sqrt", ("number",), "float", "the square root; null of a negative number"),
    Function("lower", ("text",), "text", "in small letters"),
    Function("upper", ("text",), "text", "in capital letters"),
    Function("length", ("text",), "int", "how many characters"),
    Function("concat", ("text", "text"), "text", "one text after the other", repeats=True),
)


def is_aggregate(call: tree.Call) -> bool:
    """Whether a call is of an aggregate: a built-in one, or once resolved the user's own."""
    return call.function in AGGREGATES or getattr(call.own, "aggregate", False)


AGGREGATES: dict[str, Function] = _table(
    Function("Count", ("any",), "int", "how many events; of x.a, how many that are not null"),
    Function("Sum", ("number",), "same", "the sum; 0 of none"),
    Function("Avg", ("number",), "float", "the mean"),
    Function("Min", ("ordered",), "same", "the least"),
    Function("Max", ("ordered",), "same", "the greatest"),
    Function("StdDev", ("number",), "float", "the standard deviation of the population"),
    Function("Median", ("number",), "float", "the median, between two the middle"),
    Function("Quantile", ("number", "number"), "float", "the quantile q from 0 to 1, linear"),
    Function("First", ("any",), "same", "that of the first event in order"),
    Function("Last", ("any",), "same", "that of the last event in order"),
    Function("CountDistinct", ("any",), "int", "how many different values that are not null"),
)
