"""Worked cases of functions, tables, regions written in place, and assigned intervals."""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    a,
    compare,
    event,
    found,
    head,
    own,
    ref,
    single,
    types,
)

A, B, X = s.Atom("A"), s.Atom("B"), s.Atom("X")
V = s.Ref("A", "v")


def _call(function: str, *arguments: s.Expr) -> s.Call:
    return s.Call(function, arguments)


def _at(token: str, *position: float) -> dict[str, Any]:
    return event(token, position=list(position))


def _in(region: s.Region) -> s.Suffixed:
    return s.Suffixed(A, (s.In(region),))


FUNCTIONS = (
    single(
        "whole numbers from others: halves go to the even one",
        "detect A assign r = round(A.v), f = floor(A.v), c = ceil(A.v), a = abs(A.v)",
        A,
        [event("a1", v=2.5), event("a2", v=-1.5), event("a3", v=0.25), event("a4")],
        tuple(
            Expected({"A": [token]}, values={"r": r, "f": f, "c": c, "a": worth})
            for token, r, f, c, worth in (
                *(("a1", 2, 2, 3, 2.5), ("a2", -2, -2, -1, 1.5), ("a3", 0, 0, 1, 0.25)),
                ("a4", None, None, None, None),
            )
        ),
        assign=tuple(
            (name, _call(function, V))
            for name, function in (("r", "round"), ("f", "floor"), ("c", "ceil"), ("a", "abs"))
        ),
    ),
    single(
        "a root of what is negative is null, and a null makes a function null",
        "detect A assign q = sqrt(A.v), m = max(A.n, 2, A.m), l = min(A.n, 0)",
        A,
        [event("a1", v=6.25, n=7), event("a2", v=-1.0, n=-3, m=1)],
        (
            Expected({"A": ["a1"]}, values={"q": 2.5, "m": None, "l": 0}),
            Expected({"A": ["a2"]}, values={"q": None, "m": 2, "l": -3}),
        ),
        assign=(
            ("q", _call("sqrt", V)),
            ("m", _call("max", ref("A.n"), s.Lit(2), ref("A.m"))),
            ("l", _call("min", ref("A.n"), s.Lit(0))),
        ),
    ),
    single(
        "texts are joined, measured and written large",
        'detect A(length(concat(tag, "é")) = 3, upper(tag) != "PQ")',
        a(
            "A",
            compare(_call("length", _call("concat", own("tag"), s.Lit("é"))), "=", s.Lit(3)),
            compare(_call("upper", own("tag")), "!=", s.Lit("PQ")),
        ),
        [event("a1", tag="pq"), event("a2", tag="qr"), event("a3", tag="q"), event("a4")],
        found("a2"),
    ),
)

_TAGS = s.Table("Tags", "tags.csv", "tag", "tag,kind,size\np,near,2\nq,,7\nr,far,\n")


def _tables() -> WorkedCase:
    kind, size = (s.Lookup("Tags", ref("A.tag"), one) for one in ("kind", "size"))
    atom = a("A", s.Not(compare(s.Lookup("Tags", own("tag"), "kind"), "=", s.Lit("near"))))
    case = s.Case(atom, assign=(("k", kind), ("s", s.Arith("+", size, s.Lit(1)))))
    spec = s.Spec(types("A"), (s.Subscription("S", case),), tables=(_TAGS,))
    text = (
        f'{head("A")}table Tags from "tags.csv" key tag\n'
        'subscription S from tester to out\ndetect A(not (Tags[tag].kind = "near"))\n'
        "assign k = Tags[A.tag].kind, s = Tags[A.tag].size + 1\n"
    )
    events = [event(f"a{n}", tag=tag) for n, tag in enumerate("pqrx", 1)] + [event("a5")]
    # p is near. An empty cell is null, and so is what stands in no row; `not` inverts a false.
    expected = tuple(
        Expected({"A": [token]}, values={"k": told, "s": number})
        for token, told, number in (
            *(("a2", None, 8), ("a3", "far", None), ("a4", None, None), ("a5", None, None)),
        )
    )
    return WorkedCase("a table holds attributes of a key", text, spec, events, expected)


REGIONS = (
    single(
        "a box includes its border",
        "detect A in box(1.0, 2.0, 3.0, 4.0)",
        _in(s.Box(1.0, 2.0, 3.0, 4.0)),
        [_at("a1", 1.0, 2.0), _at("a2", 3.0, 3.0), _at("a3", 3.5, 3.0), _at("a4", 2.0, 4.5)],
        found("a1", "a2"),
    ),
    single(
        "a polygon may be dented",
        "detect A in polygon(0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 2.0, 1.0, 0.0, 4.0)",
        _in(s.Polygon(((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 1.0), (0.0, 4.0)))),
        # The dent reaches down to (2, 1); (2, 2) lies in it.
        [_at("a1", 2.0, 0.5), _at("a2", 2.0, 1.0), _at("a3", 2.0, 2.0), _at("a4", 4.0, 2.0)],
        found("a1", "a2", "a4"),
    ),
    single(
        "a circle goes by great circle",
        "detect A in circle(0.0, 0.0, 112 km)",
        _in(s.Circle(0.0, 0.0, 112_000)),
        # A degree of the equator is 111.195 km; of the meridian as much. 1.01 degrees are more.
        [_at("a1", 0.0, 1.0), _at("a2", -1.0, 0.0), _at("a3", 0.0, 1.01), event("a4")],
        found("a1", "a2"),
    ),
    single(
        "a path holds what is beneath it, by segment",
        'detect A in path("b/1")',
        _in(s.PathRegion("b/1")),
        [
            *(event("a1", location="b/1"), event("a2", location="b/1/x")),
            *(event("a3", location="b/10"), event("a4", location="b"), event("a5")),
        ],
        found("a1", "a2"),
    ),
)


def _held() -> WorkedCase:
    end = s.Arith("+", own("timestamp"), s.Duration(5000))
    definition = s.Definition("X", (s.Case(A, assign=(("end", end),)),))
    pattern = s.Pair("during", B, X)
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(pattern)),), (definition,))
    text = (
        f"{head('A B')}define X(end)\ndetect A\nassign end = timestamp + 5 s\n"
        "subscription S from tester to out\ndetect B during X\n"
    )
    # A reading at 1 holds until 6: b1 and b6 lie on its ends.
    events = [event(token) for token in ("a1", "b1", "b2", "b5", "b6")]
    expected = tuple(Expected({"B": [b], "X": ["a1"]}, start=1000, end=6000) for b in ("b2", "b5"))
    # Both span what X spans; it ends last, so that b2 and b5 decide.
    return WorkedCase(
        "a reading that holds for a while is an interval",
        text,
        spec,
        events,
        expected,
        frozenset({"X"}),
    )


VALUE_CASES = (*FUNCTIONS, *REGIONS, _held())
TABLE_CASES = (_tables(),)
