"""Worked cases of `without`, `absent`, `next`, `nth`, `first`, `last` and `distinct`."""

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    a,
    both,
    compare,
    event,
    found,
    ref,
    single,
    then,
    trace,
)

A, B, C, D = (s.Atom(name) for name in "ABCD")


def _within(pattern: s.Pattern, ms: int) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(ms),))


def _same(left: str, right: str) -> s.Where:
    return s.Where(compare(ref(left), "=", ref(right)))


def _one(name: str) -> s.Where:
    return s.Where(compare(ref(name), "=", s.Lit(1)))


def _case(name: str, detect: str, pattern: s.Pattern, tokens: str, *places: str) -> WorkedCase:
    return single(name, detect, pattern, trace(tokens), found(*places))


WITHOUT = (
    _case(
        "without looks inside the span, its ends included",
        "detect A then B without C",
        s.Without(then(A, B), C),
        "c1 a2 b3 a4 b5 c5 a6 c7 b8 a9 b10",
        # Clean are (a2, b3) and (a9, b10); c5 spoils what ends at 5 as it does what goes past it.
        "a2 b3",
        "a9 b10",
    ),
    _case(
        "what reaches out of the span does not count",
        "detect A without B",
        s.Without(A, B),
        "a1-5 b0-2 b4-6 a7-9 b8-9",
        "a1-5",
    ),
    single(
        "an event of the occurrence does not stand in its own way",
        "detect A as x then B without A as y",
        s.Without(then(a("A", alias="x"), B), a("A", alias="y")),
        trace("a1 b2 a3 b4"),
        # From a1 to b4 there is a3; from a1 to b2 and from a3 to b4 there is only x itself.
        (Expected({"x": ["a1"], "B": ["b2"]}), Expected({"x": ["a3"], "B": ["b4"]})),
    ),
    _case(
        "without for a time looks at what starts after the beginning",
        "detect A without[2 s] B",
        s.Without(A, B, 2000),
        "a1 b1 a3 b5 a6 b9",
        # b1 starts with a1, not after; b5 starts 2 s after a3; b9 starts 3 s after a6.
        "a1",
        "a6",
    ),
    _case(
        "without for a time asks only when it starts, not when it ends",
        "detect A without[2 s] B",
        s.Without(A, B, 2000),
        "a1 b2-9 a4 b7-8",
        "a4",
    ),
    _case(
        "without a composite",
        "detect A then D without (B then C)",
        s.Without(then(A, D), then(B, C)),
        "a1 c2 b3 d4 c5 d6",
        # Up to d4 there is no C after b3; up to d6 there is.
        "a1 d4",
    ),
    single(
        "a condition on what must not be restricts what counts",
        "detect A then B without C where C.n = A.n",
        s.Suffixed(s.Without(then(A, B), C), (_same("C.n", "A.n"),)),
        [event("a1", n=1), event("c2", n=2), event("b3"), event("c4", n=1), event("b5")],
        found("a1 b3"),
    ),
    single(
        "a condition on one side of what must not be asks nothing of the rest",
        "detect A without[3 s] (B or C) where B.n = 1",
        s.Suffixed(s.Without(A, s.Or(B, C), 3000), (_one("B.n"),)),
        # A C has no B whose n could be 1: it does not count.
        [event("a1"), event("c2"), event("a5"), event("b6", n=1), event("a9"), event("b9", n=1)],
        found("a1", "a9"),
    ),
    single(
        "a condition on both sides of what must not be asks nothing of the rest",
        "detect A without[3 s] (B or C) where not (B.n = C.n)",
        s.Suffixed(
            s.Without(A, s.Or(B, C), 3000), (s.Where(s.Not(_same("B.n", "C.n").condition)),)
        ),
        [event("a1"), event("a3"), event("b5", n=1), event("a9")],
        found("a1", "a9"),
    ),
    single(
        "a condition on what must not be in one side of an or asks nothing of the other",
        "detect D or A without B where B.n = 1",
        s.Suffixed(s.Or(D, s.Without(A, B)), (_one("B.n"),)),
        [event("d1"), event("a2-4"), event("b3", n=1), event("a5-7"), event("b6", n=2)],
        found("d1", "a5-7"),
    ),
    single(
        "consumed events still count for without",
        "detect A then B without C as z or C as y\nconsuming y",
        s.Or(s.Without(then(A, B), a("C", alias="z")), a("C", alias="y")),
        trace("a1 c2 b3"),
        (Expected({"y": ["c2"]}),),
        consuming=("y",),
    ),
    single(
        "a list in what must not be is asked as a whole",
        "detect A without (B then C+ then D where Count(C) > 1)",
        s.Without(
            A,
            s.Suffixed(
                then(then(B, s.Listed(C)), D),
                (s.Where(compare(s.Aggregate("Count", "C"), ">", s.Lit(1))),),
            ),
        ),
        trace("a0-5 b1 c2 d3 a6-11 b7 c8 c9 d10"),
        # Between b1 and d3 is one C, between b7 and d10 are two.
        found("a0-5"),
    ),
)

FURTHER_OUT = (
    single(
        "the condition may name what comes after",
        "detect A without[3 s] B then C where B.n = C.n",
        s.Suffixed(then(s.Without(A, B, 3000), C), (_same("B.n", "C.n"),)),
        [event("a1"), event("b2", n=1), event("c5", n=1), event("c6", n=2)],
        found("a1 c6"),
    ),
)

ABSENT = (
    single(
        "absent from the beginning and after each one",
        "detect absent A for 2 s",
        s.Absent(A, 2000),
        trace("b0 a3 a4 a6"),
        # None comes until 2. a4 comes after a3, a6 after a4, at the very end of the time.
        (Expected({}, start=0, end=2000), Expected({}, start=6000, end=8000)),
    ),
    single(
        "what must be absent has a condition and a reach of its own",
        "detect absent (A then B within 1 s from A where A.n = B.n) for 3 s",
        s.Absent(
            s.Suffixed(then(A, B), (s.Within(1000, "A"), _same("A.n", "B.n"))),
            3000,
        ),
        # Of the pairs only (a5, b6) has the same n within 1 s.
        [event("a1", n=1), event("b2", n=2), event("b3", n=1), event("a5", n=1), event("b6", n=1)],
        (Expected({}, start=1000, end=4000), Expected({}, start=6000, end=9000)),
    ),
    single(
        "what began before and goes on is not absent",
        "detect absent A for 2 s",
        s.Absent(A, 2000),
        trace("a0-5 a1 a9"),
        # The beginning, 0, and the end of a1 lie within a0-5. From 5 until 7 there is none.
        (Expected({}, start=5000, end=7000), Expected({}, start=9000, end=11_000)),
    ),
    single(
        "once for several that end together",
        "detect absent A for 1 s",
        s.Absent(A, 1000),
        trace("a2 a1-2 a9"),
        # The input begins at 1, with a1-2 and then a2 in the time after.
        (Expected({}, start=2000, end=3000), Expected({}, start=9000, end=10_000)),
    ),
    single(
        "an absence has its place in a chain",
        "detect A then absent B for 2 s",
        then(A, s.Absent(B, 2000)),
        # The absences are [1, 3], [4, 6] and [9, 11]; the first touches a1, which is allowed.
        [event("a1"), event("b4"), event("a3"), event("b9")],
        (
            Expected({"A": ["a1"]}, start=1000, end=3000),
            Expected({"A": ["a1"]}, start=1000, end=6000),
            Expected({"A": ["a3"]}, start=3000, end=6000),
            Expected({"A": ["a1"]}, start=1000, end=11_000),
            Expected({"A": ["a3"]}, start=3000, end=11_000),
        ),
    ),
    single(
        "each partition begins with its first event",
        "detect absent A for 2 s\ngroup by n",
        s.Absent(A, 2000),
        [event("a1", n=1), event("a6", n=2), event("a3", n=1)],
        (
            Expected({}, start=3000, end=5000, group={"n": 1}),
            Expected({}, start=6000, end=8000, group={"n": 2}),
        ),
        group_by=("n",),
    ),
)

NEXT = (
    _case(
        "next lets nothing that the detect names lie between",
        "detect A then[next] B",
        then(A, B, next=True),
        "a1 c2 b3 a4 a5 b6 b7",
        # C is not named. a5 lies between a4 and b6, b6 between a5 and b7.
        "a1 b3",
        "a5 b6",
    ),
    _case(
        "next asks for what lies wholly and strictly between",
        "detect A then[next] B then C",
        then(then(A, B, next=True), C),
        "a1 c1 c0-2 b3 c3 c4",
        # c1 and c3 lie on the ends, c0-2 reaches out.
        "a1 b3 c4",
    ),
    _case(
        "and[next] looks between the two, whichever comes first",
        "detect A and[next] B",
        both(A, B, next=True),
        "b1 a2 a3 b4-6 a5",
        # Between b1 and a3 lies a2, between b1 and a5 lie both; a5 is inside b4-6.
        "b1 a2",
        "a3 b4-6",
        "a5 b4-6",
    ),
    single(
        "next goes by type, whatever the conditions",
        "detect A then[next] B(n > 1)",
        then(A, a("B", compare(s.Ref(None, "n"), ">", s.Lit(1))), next=True),
        [event("a1"), event("b2", n=1), event("b3", n=2), event("a4"), event("b5", n=2)],
        found("a4 b5"),
    ),
)

NTH = (
    _case(
        "in a chain nth counts from its left neighbour",
        "detect A then nth 2 B",
        then(A, s.Nth(2, B)),
        "b0 a1 b2 a3 b4 b5",
        "a1 b4",
        "a3 b5",
    ),
    _case(
        "elsewhere nth counts from the beginning",
        "detect nth 2 A and B",
        both(s.Nth(2, A), B),
        "a1 b2 a3 a4 b5",
        "b2 a3",
        "a3 b5",
    ),
    _case(
        "beside and the place of nth is for the one that was counted alone",
        "detect A and[first] B and[first] nth 2 C",
        both(both(A, B, context="first"), s.Nth(2, C), context="first"),
        "a1 c2 b3 c4",
        "a1 b3 c4",
    ),
    _case(
        "within tests the one that was counted",
        "detect A then nth 2 B within 3 s",
        _within(then(A, s.Nth(2, B)), 3000),
        "a1 b2 b6 b7",
        # The second after a1 is b6, too late; there is no other.
    ),
    single(
        "where tests the one that was counted, a condition what is counted",
        "detect A then nth 2 B(m = 0) where B.n = 1",
        s.Suffixed(
            then(A, s.Nth(2, a("B", compare(s.Ref(None, "m"), "=", s.Lit(0))))),
            (s.Where(compare(ref("B.n"), "=", s.Lit(1))),),
        ),
        [
            *(event("a1"), event("b2", m=0, n=0), event("b3", m=5, n=1)),
            *(event("b4", m=0, n=1), event("a5"), event("b6", m=0, n=1), event("b7", m=0, n=0)),
        ],
        # After a1 the second with m = 0 is b4. After a5 it is b7, which has another n.
        found("a1 b4"),
    ),
    single(
        "in a region tests the one that was counted",
        'detect A then nth 2 B in path("hall")',
        s.Suffixed(then(A, s.Nth(2, B)), (s.In(s.PathRegion("hall")),)),
        [
            event(token, location="yard" if token in {"b2", "b6", "b8"} else "hall")
            for token in ["a1", "b2", "b3", "a4", "b5", "b6", "b7", "a7", "b8", "b9"]
        ],
        # After a4 the second is b6, which lies in the yard; b2 and b8 are counted all the same.
        found("a1 b3", "a7 b9"),
    ),
    single(
        "in a region tests the one counted from the beginning, whichever side of an or it is",
        'detect nth 2 (A or B) in path("hall")',
        s.Suffixed(s.Nth(2, s.Or(A, B)), (s.In(s.PathRegion("hall")),)),
        [event("a1", location="yard"), event("b2", location="hall"), event("b3", location="hall")],
        found("b2"),
    ),
    single(
        "spread tests the one that was counted",
        "detect nth 1 (A and B) spread 5 m",
        s.Suffixed(s.Nth(1, both(A, B)), (s.Spread(5.0),)),
        [event(token, position={"x": x, "y": 0}) for token, x in (("a1", 0), ("b2", 9), ("b3", 0))],
        (),
    ),
    _case(
        "nth counts composites in order",
        "detect nth 2 (A then B)",
        s.Nth(2, then(A, B)),
        "a1 a2 b3 b4",
        # (a1, b3) starts earlier than (a2, b3).
        "a2 b3",
    ),
)

CHOSEN = (
    _case(
        "first is the earliest of those that agree in the other places",
        "detect first A and B within 3 s",
        _within(both(s.First(A), B), 3000),
        "a1 a2 b4 b5 a6",
        # a2 is the first within 3 s of b5; a6 is later than a1 and a2.
        "a1 b4",
        "a2 b5",
    ),
    _case(
        "first and last are judged each by itself",
        "detect first A then B then last C within 9 s",
        _within(then(then(s.First(A), B), s.Last(C)), 9000),
        "a1 a2 b3 c4 c5",
        # Of those with b3 and c5 the first A is a1; of those with a1 and b3 the last C is c5.
        "a1 b3 c5",
    ),
)

DISTINCT = (
    single(
        "distinct drops what equals an earlier one within the time",
        "detect distinct(n, tag) A within 5 s",
        _within(s.Distinct(A, ("n", "tag")), 5000),
        [
            *(event("a1", n=1, tag="p"), event("a2", n=1, tag="q"), event("a3", n=1, tag="p")),
            *(event("a8", n=1, tag="p"), event("a9", n=1, tag="p"), event("a10")),
            event("a11"),
        ],
        # a8 is 5 s after a3, which counts though it was dropped itself; null equals nothing.
        found("a1", "a2", "a10", "a11"),
    ),
    _case(
        "distinct by the end",
        "detect distinct (A and B) within 2 s",
        _within(s.Distinct(both(A, B)), 2000),
        "a1 a2 b3 b4",
        # (a1, b3) and (a2, b3) end together; the earlier start is the earlier one. Then (a2, b4).
        "a1 b3",
        "a2 b4",
    ),
    single(
        "what is dropped is no candidate",
        "detect distinct(n) A then B within 9 s",
        _within(then(s.Distinct(A, ("n",)), B), 9000),
        [event("a1", n=1), event("a2", n=1), event("a3", n=2), event("b4")],
        found("a1 b4", "a3 b4"),
    ),
)

NEGATION_CASES = WITHOUT + ABSENT + NEXT + NTH + CHOSEN + DISTINCT
