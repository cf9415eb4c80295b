"""Worked cases of patterns, contexts and conditions. Letters are types, digits seconds."""

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    a,
    both,
    compare,
    event,
    found,
    own,
    ref,
    single,
    then,
    trace,
)

A, B, C, D = (s.Atom(name) for name in "ABCD")


def _suffixed(pattern: s.Pattern, *suffixes: s.Suffix) -> s.Suffixed:
    return s.Suffixed(pattern, suffixes)


def _bound(low_ms: int | None, high_ms: int | None) -> s.Bound:
    return s.Bound(low_ms, high_ms)


TIME = (
    single(
        "unrestricted reports every combination within the time",
        "detect A then B then D within 6 s",
        _suffixed(then(then(A, B), D), s.Within(6000)),
        trace("a1 b2 a3 c4 c5 b6 d7"),
        # Order is by end, then start, then ids: two start at a1 and differ in b2 and b6.
        found("a1 b2 d7", "a1 b6 d7", "a3 b6 d7"),
    ),
    single(
        "recent takes the latest at every step of a chain",
        "detect[recent] A then B then C then D within 6 s",
        _suffixed(then(then(then(A, B), C), D), s.Within(6000)),
        trace("a1 a2 b3 c4 c5 b6 d7"),
        found("a2 b3 c5 d7"),
        context="recent",
    ),
    single(
        "and[recent] pairs each newcomer with the latest of the other side",
        "detect A and[recent] B",
        both(A, B, context="recent"),
        trace("a1 b2 a3"),
        found("a1 b2", "a3 b2"),
    ),
    single(
        "a composite does not follow what lies inside its span",
        "detect B then (A then C)",
        then(B, then(A, C)),
        trace("a1 b2 c3"),
        (),
    ),
    single(
        "a bound is on the gap between the two",
        "detect A then[2 s..2500 ms] B",
        then(A, B, bound=_bound(2000, 2500)),
        [
            event("a1"),
            event("a2"),
            event("b2"),
            {"type": "B", "id": "b32", "source": "s1", "timestamp": 3200},
        ],
        (Expected({"A": ["a1"], "B": ["b32"]}, start=1000, end=3200),),
    ),
    single(
        "a bound includes its ends",
        "detect A then[2 s..3 s] B",
        then(A, B, bound=_bound(2000, 3000)),
        trace("a1 b2 b3 b4 b5"),
        found("a1 b3", "a1 b4"),
    ),
    single(
        "within includes its end",
        "detect A then B within 3 s",
        _suffixed(then(A, B), s.Within(3000)),
        trace("a1 b4 b5"),
        found("a1 b4", start=1000, end=4000),
    ),
    single(
        "and[..2 s] bounds the gap whichever comes first, and overlap is no gap",
        "detect A and[..2 s] B",
        both(A, B, bound=_bound(None, 2000)),
        [event("b1"), event("a3"), event("b6"), event("a10-20"), event("b12"), event("b22")],
        found("b1 a3", "b12 a10-20", "b22 a10-20"),
    ),
    single(
        "and[1 s..] needs a gap",
        "detect A and[1 s..] B",
        both(A, B, bound=_bound(1000, None)),
        trace("a1-3 b3 b4"),
        found("b4 a1-3"),
    ),
    single(
        "two readings of one instant never follow each other",
        "detect A then B",
        then(A, B),
        trace("a1 b1"),
        (),
    ),
    single(
        "nor do they inside composites",
        "detect (A and B) then C",
        then(both(A, B), C),
        trace("a1 b2 c2 c3"),
        found("a1 b2 c3"),
    ),
    single(
        "what is longer than a point may touch its neighbour",
        "detect A then B",
        then(A, B),
        trace("a1-3 b3 b3-4 b2-5"),
        found("a1-3 b3", "a1-3 b3-4"),
    ),
    single(
        "a reading may be followed by what begins at its instant",
        "detect A then B",
        then(A, B),
        trace("a3 b3-4"),
        found("a3 b3-4", start=3000, end=4000),
    ),
    single(
        "within from counts from the end of the named event and lets nothing before it",
        "detect A and B within 5 s from A",
        _suffixed(both(A, B), s.Within(5000, "A")),
        trace("a1-3 b2 b3 b8 b9"),
        found("b3 a1-3", "b8 a1-3"),
    ),
)

CHOICE = (
    single(
        "an event fills at most one place",
        "detect A as x and A as y",
        both(a("A", alias="x"), a("A", alias="y")),
        trace("a1 a2"),
        (Expected({"x": ["a1"], "y": ["a2"]}), Expected({"x": ["a2"], "y": ["a1"]})),
    ),
    single("or takes either side", "detect A or B", s.Or(A, B), trace("a1 b2"), found("a1", "b2")),
    single(
        "a comparison with the absent side of or is false and not inverts that",
        "detect A or B where not (A.n > 0)",
        _suffixed(s.Or(A, B), s.Where(s.Not(compare(ref("A.n"), ">", s.Lit(0))))),
        [event("a1", n=1), event("b2"), event("a3", n=0), event("a4")],
        found("b2", "a3", "a4"),
    ),
    single(
        "what fails where is no candidate for recent",
        "detect A then[recent] B where B.n > A.n",
        _suffixed(then(A, B, context="recent"), s.Where(compare(ref("B.n"), ">", ref("A.n")))),
        [event("a1", n=1), event("a2", n=5), event("b3", n=3)],
        found("a1 b3"),
    ),
    single(
        "a conjunct acts at the lowest operator that binds its names",
        "detect[recent] A then B then C where C.n = A.n and B.n > 0",
        _suffixed(
            then(then(A, B), C),
            s.Where(
                s.AllOf(
                    (
                        compare(ref("C.n"), "=", ref("A.n")),
                        compare(ref("B.n"), ">", s.Lit(0)),
                    )
                )
            ),
        ),
        [
            event("a1", n=1),
            event("b2", n=1),
            event("a3", n=2),
            event("b4", n=1),
            event("b5", n=0),
            event("c6", n=1),
            event("c7", n=2),
        ],
        found("a1 b2 c6", "a3 b4 c7"),
        context="recent",
    ),
    single(
        "what within forbids is no candidate for recent",
        "detect A and[recent] B within 4 s",
        _suffixed(both(A, B, context="recent"), s.Within(4000)),
        # b2-5 is the later of the two, but spans 5 s with a7, so it is no candidate.
        trace("b4 b2-5 a7"),
        found("b4 a7"),
    ),
    single(
        "recent judges spread among its candidates",
        "detect A and[recent] B spread 15 m",
        _suffixed(both(A, B, context="recent"), s.Spread(15)),
        [
            event("a1", position={"x": 0, "y": 0}),
            event("a2", position={"x": 50, "y": 0}),
            event("b3", position={"x": 5, "y": 10}),
        ],
        found("a1 b3"),
    ),
    single(
        "last takes the latest of those that agree in the other places",
        "detect last A and B within 5 s from A",
        _suffixed(both(s.Last(A), B), s.Within(5000, "A")),
        trace("a1 a2 b3 a4 b8 b9"),
        # b8 and b9 lie within 5 s of a4 alone.
        found("a2 b3", "a4 b8", "a4 b9"),
    ),
    single(
        "last at the end of a chain is the latest within the time",
        "detect A then last B within 3 s",
        _suffixed(then(A, s.Last(B)), s.Within(3000)),
        trace("a1 b2 b3 b5"),
        found("a1 b3"),
    ),
    single(
        "a consumed event is in no later occurrence",
        "detect A and B consuming B",
        both(A, B),
        trace("a1 a2 b3"),
        found("a1 b3"),
        consuming=("B",),
    ),
    single(
        "consumption leaves what is not named",
        "detect A then B consuming A",
        then(A, B),
        trace("a1 b2 b3 a4 b5"),
        found("a1 b2", "a4 b5"),
        consuming=("A",),
    ),
    single(
        "group by keeps partitions apart and a null key in none",
        "detect A then[recent] B group by location",
        then(A, B, context="recent"),
        [
            event("a1", location="lab"),
            event("a2", location="hall"),
            event("a3"),
            event("b4", location="lab"),
            event("b5"),
        ],
        (Expected({"A": ["a1"], "B": ["b4"]}, group={"location": "lab"}),),
        group_by=("location",),
    ),
)

_POSITIONS = [
    event("a1", position=[45.5, 7.0]),
    event("a2", position=[45.5, 7.25]),
    event("a3", position=[45.625, 7.125]),
    event("a4", position=[45.75, 7.125]),
    event("a5", position={"x": 45.6, "y": 7.1}),
    event("a6"),
]

CONDITIONS = (
    single(
        "chained comparison, ends left out, null false",
        "detect A(20 < v < 25)",
        a("A", s.Compare(("<", "<"), (s.Lit(20), own("v"), s.Lit(25)))),
        [event("a1", v=20), event("a2", v=22.5), event("a3", v=25), event("a4")],
        found("a2"),
    ),
    single(
        "not inverts what null makes false",
        "detect A(not (n > 2))",
        a("A", s.Not(compare(own("n"), ">", s.Lit(2)))),
        [event("a1", n=3), event("a2", n=2), event("a3")],
        found("a2", "a3"),
    ),
    single(
        "division gives a float and null by zero",
        "detect A(n / m = 0.5)",
        a("A", compare(s.Arith("/", own("n"), own("m")), "=", s.Lit(0.5))),
        [event("a1", n=1, m=2), event("a2", n=1, m=0), event("a3", n=1)],
        found("a1"),
    ),
    single(
        "conditions are joined by commas, membership of null is false",
        'detect A(n = 1 or n = 4, tag in {"p", "q"})',
        a(
            "A",
            s.AnyOf((compare(own("n"), "=", s.Lit(1)), compare(own("n"), "=", s.Lit(4)))),
            s.InSet(own("tag"), ("p", "q")),
        ),
        [
            event("a1", n=1, tag="p"),
            event("a2", n=2, tag="p"),
            event("a3", n=4, tag="r"),
            event("a4", n=4),
            event("a5", n=4, tag="q"),
        ],
        found("a1", "a5"),
    ),
    single(
        "a set of readers is one logical reader",
        "detect A(source in Dock)",
        a("A", s.InSet(own("source"), "Dock")),
        [event("a1", source="reader-1"), event("a2", source="reader-3")],
        found("a1"),
        declared='set Dock = {"reader-1", "reader-2"}\n',
        sets=(("Dock", ("reader-1", "reader-2")),),
    ),
    single(
        "a path holds by segment",
        'detect A(location in path("building-a"))',
        a("A", s.InRegion(own("location"), s.PathRegion("building-a"))),
        [
            event("a1", location="building-a"),
            event("a2", location="building-a/floor-1"),
            event("a3", location="building-ab"),
            event("a4"),
        ],
        found("a1", "a2"),
    ),
    single(
        "a box includes its border and what has no position on the globe is outside",
        "detect A in Pass",
        _suffixed(A, s.In("Pass")),
        _POSITIONS,
        found("a1", "a2", "a3"),
        declared="region Pass = box(45.5, 7.0, 45.625, 7.25)\n",
        regions=(("Pass", s.Box(45.5, 7.0, 45.625, 7.25)),),
    ),
    single(
        "a circle is by great circle",
        "detect A(position in Near)",
        a("A", s.InRegion(own("position"), "Near")),
        # A degree of latitude is 111.195 km, one of longitude at 45.5° about 77.9 km: a2 is 19.5 km
        # away, a3 17.0 km, a4 29.5 km.
        _POSITIONS,
        found("a1", "a3"),
        declared="region Near = circle(45.5, 7.0, 18 km)\n",
        regions=(("Near", s.Circle(45.5, 7.0, 18000)),),
    ),
    single(
        "spread includes its distance, counts height, and fails what is missing or mixed",
        "detect A and B spread 50 m",
        _suffixed(both(A, B), s.Spread(50)),
        [
            event("a1", position={"x": 0, "y": 0, "z": 0}),
            event("b2", position={"x": 30, "y": 40}),  # 50 m; one height alone counts nothing
            event("b3", position={"x": 30, "y": 40, "z": 1}),
            event("b4", position={"x": 0, "y": 30, "z": 40}),  # 50 m up and along
            event("b5"),
            event("b6", position=[0.0, 0.0]),
        ],
        found("a1 b2", "a1 b4"),
    ),
    single(
        "a repeat of (id, end) is ignored",
        "detect A",
        A,
        [event("a1"), event("b2"), event("a1")],
        found("a1"),
    ),
    single(
        "without assign a result carries the attributes that are not null",
        "detect A or B",
        s.Or(A, B),
        [event("a1", n=7, location="lab"), event("b2", tag="p", v=1.5)],
        (
            Expected({"A": ["a1"]}, values={"A": {"n": 7}}),
            Expected({"B": ["b2"]}, values={"B": {"v": 1.5, "tag": "p"}}),
        ),
    ),
)

PATTERN_CASES: tuple[WorkedCase, ...] = TIME + CHOICE + CONDITIONS
