"""The subscriptions of the scenarios, written once more as plain data for the reference matcher.

Owns that. Must not import the product: whether both writings are the same is a test's to see.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracles import spec as s

TYPES = tuple(
    s.EventType(name, (("val", "float"),)) for name in ("Temp", "Humidity", "Wind", "Rain")
)
SECOND_MS = 1_000


def val(op: str, number: float, alias: str | None = None) -> s.Compare:
    return s.Compare((op,), (s.Ref(alias, "val"), s.Lit(number)))


def atom(kind: str, op: str = "", number: float = 0, alias: str | None = None) -> s.Atom:
    return s.Atom(kind, (val(op, number),) if op else (), alias)


def pair(op: s.Relation, left: s.Pattern, right: s.Pattern, *bound_s: int | None) -> s.Pair:
    bound = None
    if bound_s:
        low, high = (None if one is None else one * SECOND_MS for one in bound_s)
        bound = s.Bound(low, high)
    return s.Pair(op, left, right, bound)


def within(pattern: s.Pattern, seconds: int, *more: s.Suffix) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(seconds * SECOND_MS), *more))


def top(op: str, number: float) -> tuple[s.Compare]:
    return (s.Compare((op,), (s.Ref(None, "top"), s.Lit(number))),)


WARM = s.Definition(
    "Warm", (s.Case(atom("Temp", ">", 5), assign=(("val", s.Ref("Temp", "val")),)),)
)
SHOWER = s.Definition(
    "Shower",
    (
        s.Case(
            pair("overlaps", atom("Rain", ">", 1, "a"), atom("Rain", alias="b")),
            assign=(
                ("val", s.Ref("a", "val")),
                ("top", s.Ref("b", "val")),
                ("location", s.Ref("a", "location")),
            ),
        ),
    ),
)
MEAN = s.Definition(
    "Mean",
    (
        s.Case(
            atom("Temp"),
            assign=(
                ("source", s.Ref("group", "source")),
                ("val", s.Aggregate("Avg", "Temp", "val")),
                ("n", s.Aggregate("Count", "Temp")),
            ),
            group_by=("source",),
        ),
    ),
    s.Every(10 * SECOND_MS),
)
RECENT = s.Definition(
    "Recent",
    (s.Case(atom("Wind"), assign=(("top", s.Aggregate("Max", "Wind", "val")),)),),
    s.Trailing(8 * SECOND_MS),
)
STORM = s.Definition(
    "Storm",
    (
        s.Case(atom("Wind", ">", 7, "w"), assign=(("top", s.Ref("w", "val")),)),
        s.Case(s.Atom("Recent", top(">", 8), "r"), assign=(("top", s.Ref("r", "top")),)),
    ),
)
HERE = ("Here", s.Circle(46, 7, 3_000))

# By name: the definitions, each before its users, and the case.
CASES: dict[str, tuple[tuple[s.Definition, ...], s.Case]] = {
    "Hot": ((), s.Case(atom("Temp", ">", 7))),
    "Damp": (
        (),
        s.Case(
            within(
                pair("and", atom("Temp", "<=", 3, "t"), atom("Humidity", ">", 4, "h")),
                5,
                s.Spread(2_000),
            ),
            assign=(("t", s.Ref("t", "val")), ("h", s.Ref("h", "val"))),
        ),
    ),
    "Valley": (
        (),
        s.Case(
            within(
                pair(
                    "and",
                    pair("and", atom("Temp", "<", 6, "t"), atom("Humidity", ">", 3, "h")),
                    atom("Wind", "<", 6, "w"),
                ),
                6,
                s.Spread(4_000),
                s.In("Here"),
            )
        ),
    ),
    "Rise": (
        (),
        s.Case(
            s.Suffixed(
                pair("then", atom("Temp", "<", 4, "a"), atom("Temp", ">", 6, "b"), 1, 6),
                (
                    s.Where(
                        s.Compare(
                            (">",),
                            (s.Ref("b", "val"), s.Arith("+", s.Ref("a", "val"), s.Lit(2))),
                        )
                    ),
                ),
            ),
            group_by=("source",),
        ),
    ),
    "Latest": (
        (),
        s.Case(
            within(pair("and", atom("Humidity", ">", 3, "h"), atom("Wind", ">", 3, "w")), 10),
            "recent",
        ),
    ),
    "Spent": (
        (),
        s.Case(
            within(pair("and", atom("Wind", ">", 4, "w"), atom("Humidity", "<", 5, "h")), 8),
            consuming=("h",),
        ),
    ),
    "Either": (
        (),
        s.Case(
            s.Suffixed(
                s.Or(atom("Temp", "=", 9, "t"), atom("Wind", "=", 9, "w")),
                (s.Where(s.AnyOf((val(">", 0, "t"), val(">", 0, "w")))),),
            )
        ),
    ),
    "After": (
        (),
        s.Case(
            s.Suffixed(
                pair("and", atom("Wind", alias="w"), atom("Humidity", ">", 6, "h")),
                (s.Within(4 * SECOND_MS, "w"),),
            )
        ),
    ),
    "Warmth": (
        (WARM,),
        s.Case(pair("then", atom("Warm", ">", 6, "x"), atom("Warm", alias="y"), None, 5)),
    ),
    "Means": (
        (MEAN,),
        s.Case(s.Atom("Mean", (s.Compare((">",), (s.Ref(None, "n"), s.Lit(1))),), "m")),
    ),
    "Falling": (
        (MEAN,),
        s.Case(
            pair("then", atom("Mean", alias="m"), atom("Mean", "<", 5, "n"), None, 30),
            group_by=("source",),
        ),
    ),
    "Soaked": ((), s.Case(pair("contains", atom("Rain", ">", 3, "r"), atom("Wind", ">", 5, "w")))),
    "Showers": (
        (),
        s.Case(
            within(
                pair("parallel", atom("Rain", ">", 2, "a"), atom("Rain", "<", 7, "b")),
                6,
                s.Where(s.Compare((">=",), (s.Ref("a", "val"), s.Ref("b", "val")))),
            )
        ),
    ),
    "Drying": (
        (SHOWER,),
        s.Case(pair("then", atom("Shower", alias="s"), atom("Humidity", "<", 5, "h"), None, 10)),
    ),
    "Gaps": (
        (),
        s.Case(
            within(pair("and", atom("Rain", alias="a"), atom("Rain", alias="b"), 1, 3), 8),
            group_by=("location",),
        ),
    ),
    "Storms": (
        (RECENT, STORM),
        s.Case(
            within(pair("and", s.Atom("Storm", top(">", 8), "s"), atom("Temp", "<", 2, "t")), 9)
        ),
    ),
}


def spec_of(names: Sequence[str], subscriber: str) -> s.Spec:
    """The specification of these subscriptions."""
    used = dict.fromkeys(one for name in names for one in CASES[name][0])
    return s.Spec(
        TYPES,
        tuple(s.Subscription(name, CASES[name][1], 1, subscriber, "alerts") for name in names),
        tuple(used),
        regions=(HERE,),
    )
