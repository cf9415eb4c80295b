"""Worked cases of definitions, windows, aggregates and results. Letters are types, digits seconds.

The people counter is the language's own example, with its times worked out by hand.
"""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    a,
    both,
    compare,
    event,
    head,
    own,
    ref,
    then,
    trace,
    types,
)

A, B, C = (s.Atom(name) for name in "ABC")
X, Y = s.Atom("X"), s.Atom("Y")


def _defined(
    name: str,
    texts: tuple[str, str],
    parts: tuple[tuple[s.Definition, ...], s.Case],
    events: list[dict[str, Any]],
    expected: tuple[Expected, ...],
) -> WorkedCase:
    """Definitions and one subscription S, each as text and as data."""
    definitions, case = parts
    spec = s.Spec(types("A B C D"), (s.Subscription("S", case),), definitions)
    text = f"{head('A B C D')}{texts[0]}\nsubscription S from tester to out\n{texts[1]}\n"
    made = frozenset(one.name for one in definitions)
    return WorkedCase(name, text, spec, events, expected, made)


def _count(name: str, attribute: str | None = None) -> s.Aggregate:
    return s.Aggregate("Count", name, attribute)


def _lab(token: str, **more: Any) -> dict[str, Any]:
    return event(token, location="lab", **more)


def _x(ids: str, **more: Any) -> Expected:
    return Expected({"X": ids.split()}, **more)


DEFINITIONS = (
    _defined(
        "cases detect each on its own: two that fire give two events",
        (
            (
                "define X(k)\ncase 0:\ndetect A(n >= 0)\nassign k = 0\n"
                "case 1:\ndetect A(n >= 1)\nassign k = 1"
            ),
            "detect X",
        ),
        (
            (
                s.Definition(
                    "X",
                    (
                        s.Case(
                            a("A", compare(own("n"), ">=", s.Lit(0))), assign=(("k", s.Lit(0)),)
                        ),
                        s.Case(
                            a("A", compare(own("n"), ">=", s.Lit(1))), assign=(("k", s.Lit(1)),)
                        ),
                    ),
                ),
            ),
            s.Case(X),
        ),
        [event("a1", n=0), event("a2", n=1)],
        (
            _x("a1", values={"X": {"k": 0}}),
            _x("a2", values={"X": {"k": 0}}),
            _x("a2", values={"X": {"k": 1}}),
        ),
    ),
    _defined(
        "an assigned timestamp makes a point, a null one leaves the span",
        (
            "define X(timestamp)\ndetect A and B or C\nassign timestamp = A.timestamp",
            "detect X",
        ),
        (
            (
                s.Definition(
                    "X",
                    (s.Case(s.Or(both(A, B), C), assign=(("timestamp", ref("A.timestamp")),)),),
                ),
            ),
            s.Case(X),
        ),
        trace("a1 b4 c5-6"),
        (_x("a1 b4", start=1000, end=1000), _x("c5-6", start=5000, end=6000)),
    ),
    _defined(
        "an assigned interval holds on, and one that would end before it starts is dropped",
        (
            (
                "define X(end)\ndetect A\nassign end = timestamp + 5 mins\n"
                "define Y(start, end)\ndetect B and C\n"
                "assign start = C.timestamp, end = B.timestamp"
            ),
            "detect X or Y",
        ),
        (
            (
                s.Definition(
                    "X",
                    (
                        s.Case(
                            A,
                            assign=(("end", s.Arith("+", own("timestamp"), s.Duration(300_000))),),
                        ),
                    ),
                ),
                s.Definition(
                    "Y",
                    (
                        s.Case(
                            both(B, C),
                            assign=(("start", ref("C.timestamp")), ("end", ref("B.timestamp"))),
                        ),
                    ),
                ),
            ),
            s.Case(s.Or(X, Y)),
        ),
        trace("a1 b2 c3 b4"),
        # Y over b2 c3 would run from 3 s to 2 s; over b4 c3 it runs from 3 s to 4 s.
        (
            Expected({"Y": ["c3", "b4"]}, start=3000, end=4000),
            _x("a1", start=1000, end=301_000),
        ),
    ),
    _defined(
        "location is null unless assigned, and a null key is in no group",
        (
            (
                "define X(location)\ndetect A\nassign location = A.location\n"
                "define Y(k)\ndetect B\nassign k = B.n"
            ),
            "detect X or Y\ngroup by location",
        ),
        (
            (
                s.Definition("X", (s.Case(A, assign=(("location", ref("A.location")),)),)),
                s.Definition("Y", (s.Case(B, assign=(("k", ref("B.n")),)),)),
            ),
            s.Case(s.Or(X, Y), group_by=("location",)),
        ),
        [_lab("a1"), _lab("b2", n=1)],
        (_x("a1", group={"location": "lab"}, values={"X": {}}),),
    ),
    _defined(
        "a definition stands on another, and each event of it fills one place",
        (
            (
                "define X(k)\ndetect A then B\nassign k = A.n + B.n\n"
                "define Y(k)\ndetect X as p and X as q within 3 s where p.k < q.k\n"
                "assign k = q.k - p.k"
            ),
            "detect Y(k > 1)",
        ),
        (
            (
                s.Definition(
                    "X",
                    (
                        s.Case(
                            then(A, B),
                            assign=(("k", s.Arith("+", ref("A.n"), ref("B.n"))),),
                        ),
                    ),
                ),
                s.Definition(
                    "Y",
                    (
                        s.Case(
                            s.Suffixed(
                                both(a("X", alias="p"), a("X", alias="q")),
                                (
                                    s.Within(3000),
                                    s.Where(compare(ref("p.k"), "<", ref("q.k"))),
                                ),
                            ),
                            assign=(("k", s.Arith("-", ref("q.k"), ref("p.k"))),),
                        ),
                    ),
                ),
            ),
            s.Case(a("Y", compare(own("k"), ">", s.Lit(1)))),
        ),
        [event("a1", n=1), event("b2", n=1), event("b3", n=3), event("b5", n=9), event("b6")],
        # X: (a1,b2) 2, (a1,b3) 4, (a1,b5) 10, (a1,b6) null. Y within 3 s: the first two alone.
        (Expected({"Y": ["a1", "b2", "a1", "b3"]}, start=1000, end=3000),),
    ),
)


def _window(
    name: str,
    window: tuple[str, s.Every | s.Trailing],
    detect: tuple[str, s.Pattern],
    assign: tuple[str, s.Assignments],
    trace_and_expected: tuple[list[dict[str, Any]], tuple[Expected, ...]],
) -> WorkedCase:
    """One windowed definition X, grouped by location, and all that it yields."""
    events, expected = trace_and_expected
    names = ", ".join(one for one, _ in assign[1])
    definition = s.Definition(
        "X", (s.Case(detect[1], assign=assign[1], group_by=("location",)),), window[1]
    )
    text = (
        f"define X({names}) aggr {window[0]}\ndetect {detect[0]}\n"
        f"assign {assign[0]}\ngroup by location"
    )
    return _defined(name, (text, "detect X"), ((definition,), s.Case(X)), events, expected)


def _of_n(function: str, quantile: float | None = None) -> s.Aggregate:
    return s.Aggregate(function, "A", "n", quantile)


def _of_v(function: str) -> s.Aggregate:
    return s.Aggregate(function, "A", "v")


_COUNTED = ("count = Count(A)", (("count", _count("A")),))

WINDOWS = (
    _window(
        "tumbling windows begin at multiples and leave their end out",
        ("every 10 s", s.Every(10_000)),
        ("A", A),
        _COUNTED,
        (
            [_lab("a0"), _lab("a9"), _lab("a10"), _lab("a8-20"), event("a11")],
            (
                _x("a0 a9", start=9_999, end=9_999, values={"X": {"count": 2}}),
                _x("a10", start=19_999, end=19_999, values={"X": {"count": 1}}),
                _x("a8-20", start=29_999, end=29_999, values={"X": {"count": 1}}),
            ),
        ),
    ),
    _window(
        "every with range looks back from each multiple",
        ("every 10 s range 20 s", s.Every(10_000, 20_000)),
        ("A", A),
        _COUNTED,
        (
            [_lab("a5"), _lab("a10"), _lab("a30")],
            # [-10,10): a5; [0,20): a5 a10; [10,30): a10; [20,40) and [30,50): a30.
            (
                _x("a5", values={"X": {"count": 1}}),
                _x("a5 a10", start=19_999, end=19_999, values={"X": {"count": 2}}),
                _x("a10", start=29_999, end=29_999, values={"X": {"count": 1}}),
                _x("a30", values={"X": {"count": 1}}),
                _x("a30", values={"X": {"count": 1}}),
            ),
        ),
    ),
    _window(
        "a range ends at each input event and includes its beginning",
        ("range 5 s", s.Trailing(5000)),
        ("A", A),
        _COUNTED,
        (
            [_lab("a1"), _lab("a6"), _lab("a7"), event("a8"), event("b8", location="lab")],
            (
                _x("a1", values={"X": {"count": 1}}),
                _x("a1 a6", values={"X": {"count": 2}}),
                _x("a6 a7", values={"X": {"count": 2}}),
            ),
        ),
    ),
    _window(
        "an outer operand may have no event: Count and Sum are 0, the others null",
        ("every 10 s", s.Every(10_000)),
        ("A and outer B", both(A, s.Outer(B))),
        (
            "c = Count(B), t = Sum(B.n), g = Avg(B.v), a = Count(A)",
            (
                ("c", _count("B")),
                ("t", s.Aggregate("Sum", "B", "n")),
                ("g", s.Aggregate("Avg", "B", "v")),
                ("a", _count("A")),
            ),
        ),
        (
            [_lab("a1"), _lab("b12", n=1, v=1.0)],
            (_x("a1", values={"X": {"c": 0, "t": 0, "a": 1}}),),
        ),
    ),
    _window(
        "if all are outer one event is enough",
        ("every 10 s", s.Every(10_000)),
        ("outer A and outer B", both(s.Outer(A), s.Outer(B))),
        (
            "d = Count(A) - Count(B)",
            (("d", s.Arith("-", _count("A"), _count("B"))),),
        ),
        (
            [_lab("a1"), _lab("b12"), _lab("b13")],
            (_x("a1", values={"X": {"d": 1}}), _x("b12 b13", values={"X": {"d": -2}})),
        ),
    ),
    _window(
        "sums are exact and rounded once",
        ("every 10 s", s.Every(10_000)),
        ("A", A),
        ("t = Sum(A.v), g = Avg(A.v)", (("t", _of_v("Sum")), ("g", _of_v("Avg")))),
        (
            # In plain addition the first sum is 1.0 and the second 0.9999999999999999.
            [_lab("a1", v=1e16), _lab("a2", v=1.0), _lab("a3", v=-1e16), _lab("a4", v=1.0)]
            + [_lab(f"a1{i}", v=0.1) for i in range(10)],
            (
                _x("a1 a2 a3 a4", values={"X": {"t": 2.0, "g": 0.5}}),
                _x(" ".join(f"a1{i}" for i in range(10)), values={"X": {"t": 1.0, "g": 0.1}}),
            ),
        ),
    ),
    _window(
        "aggregates pass over nulls",
        ("every 100 s", s.Every(100_000)),
        ("A", A),
        (
            (
                "c = Count(A), k = Count(A.n), t = Sum(A.n), lo = Min(A.n), hi = Max(A.n), "
                "med = Median(A.n), q = Quantile(A.n, 0.25), f = First(A.n), l = Last(A.n), "
                "d = CountDistinct(A.n)"
            ),
            (
                ("c", _count("A")),
                ("k", _count("A", "n")),
                ("t", _of_n("Sum")),
                ("lo", _of_n("Min")),
                ("hi", _of_n("Max")),
                ("med", _of_n("Median")),
                ("q", _of_n("Quantile", 0.25)),
                ("f", _of_n("First")),
                ("l", _of_n("Last")),
                ("d", _of_n("CountDistinct")),
            ),
        ),
        (
            [
                _lab("a1"),
                _lab("a2", n=3),
                _lab("a3", n=10),
                _lab("a4", n=1),
                _lab("a5", n=1),
                _lab("a6"),
            ],
            # Sorted 1 1 3 10: the median lies half-way between 1 and 3, rank 3/4 between 1 and 1.
            (
                _x(
                    "a1 a2 a3 a4 a5 a6",
                    values={
                        "X": {
                            "c": 6,
                            "k": 4,
                            "t": 15,
                            "lo": 1,
                            "hi": 10,
                            "med": 2.0,
                            "q": 1.0,
                            "f": 3,
                            "l": 1,
                            "d": 3,
                        }
                    },
                ),
            ),
        ),
    ),
    _window(
        "the standard deviation is the population's",
        ("every 100 s", s.Every(100_000)),
        ("A", A),
        ("sd = StdDev(A.n)", (("sd", _of_n("StdDev")),)),
        (
            [_lab(f"a1{i}", n=n) for i, n in enumerate([2, 4, 4, 4, 5, 5, 7, 9])],
            (_x(" ".join(f"a1{i}" for i in range(8)), values={"X": {"sd": 2.0}}),),
        ),
    ),
)
