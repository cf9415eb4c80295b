"""Worked cases of lists: `P+`, `P*`, `P{n}`, `P+[a..b]`. Letters are types, digits seconds."""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import Expected, WorkedCase, a, compare, event, ref, single, then, trace

A, B, C = (s.Atom(name) for name in "ABC")
SOME_B, ANY_B = s.Listed(B), s.Listed(B, may_be_empty=True)
NONE: list[str] = []


def _within(pattern: s.Pattern, ms: int) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(ms),))


def _where(pattern: s.Pattern, *parts: s.Expr) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Where(parts[0] if len(parts) == 1 else s.AllOf(parts)),))


def _found(*listed: str, **more: Any) -> tuple[Expected, ...]:
    """Results such as `a1 | b2 b3 | c4`, the types being A, B, C; empty between bars is empty."""
    return tuple(
        Expected(
            {
                name: part.split()
                for name, part in zip("ABC", text.split("|"), strict=False)
                if part != "-"
            },
            **more,
        )
        for text in listed
    )


def _case(
    name: str, detect: str, pattern: s.Pattern, tokens: str, *places: str, **more: Any
) -> WorkedCase:
    return single(name, detect, pattern, trace(tokens), _found(*places), **more)


CHAIN = (
    _case(
        "a list is all that fit between its neighbours",
        "detect A then B+ then C",
        then(then(A, SOME_B), C),
        "b0 a1 b2 b2-4 b4 c5 b5 c7",
        # To c5: b2, b2-4, b4, not b5 at the same instant; to c7 b5 too. In order by end and start.
        "a1|b2 b2-4 b4|c5",
        "a1|b2 b2-4 b4 b5|c7",
    ),
    _case(
        "a list that must not be empty gives nothing, and no older partner is tried",
        "detect A then[recent] B+ then[recent] C",
        then(then(A, SOME_B, context="recent"), C, context="recent"),
        "a1 b2 a3 c4",
    ),
    _case(
        "an empty list stands where it may",
        "detect A then B* then C",
        then(then(A, ANY_B), C),
        "a1 c2 b3 c4",
        "a1||c2",
        "a1|b3|c4",
    ),
    _case(
        "the bounds beside a list are asked of each member",
        "detect A then[2 s..] B+ then[..3 s] C",
        then(then(A, SOME_B, bound=s.Bound(2000, None)), C, bound=s.Bound(None, 3000)),
        "a1 b2 b3 b4 b5 c7",
        # 2 s after a1 or later, 3 s before c7 or less.
        "a1|b4 b5|c7",
    ),
    _case(
        "at the end of a chain members end in time",
        "detect A then B+ within 5 s",
        _within(then(A, SOME_B), 5000),
        "a1 b2 a3 b6 b8 b7-9",
        "a1|b2 b6",
        "a3|b6 b8",
    ),
    _case(
        "a bound closes a list at the end",
        "detect A then[..2 s] B+",
        then(A, SOME_B, bound=s.Bound(None, 2000)),
        "a1 b2 b3 b4 a9",
        "a1|b2 b3",
    ),
    _case(
        "within from closes a list at the end",
        "detect A then B+ within 2 s from A",
        s.Suffixed(then(A, SOME_B), (s.Within(2000, "A"),)),
        "a1-3 b4 b5 b4-6",
        "a1-3|b4 b5",
    ),
    _case(
        "a list at the beginning is all that come before",
        "detect A+ then B",
        then(s.Listed(A), B),
        "b0 a1 a2 b3 a4 b5",
        "a1 a2|b3",
        "a1 a2 a4|b5",
    ),
    _case(
        "within is asked of each member of a list at the beginning",
        "detect A+ then B within 2 s",
        _within(then(s.Listed(A), B), 2000),
        "a1 a2 b3 a4 b5",
        "a1 a2|b3",
        "a4|b5",
    ),
    _case(
        "the plain step for a list has the context of the link after it",
        "detect A then B+ then[first] C",
        then(then(A, SOME_B), C, context="first"),
        # a1 with c4 spends all up to 4; a5 with c7 is next, and takes b6 alone, for it is later.
        "a1 a2 b3 c4 a5 b6 c7 c8",
        "a1|b3|c4",
        "a5|b6|c7",
    ),
    _case(
        "the partners of an empty list are spent",
        "detect A then B+ then[chronicle] C",
        then(then(A, SOME_B), C, context="chronicle"),
        # c2 takes a1 and there is no B: both are spent, so c5 has a3.
        "a1 c2 a3 b4 c5 c6",
        "a3|b4|c5",
    ),
)

WHERE = (
    single(
        "a condition outside an aggregate is asked of each member",
        "detect A then B+ then C where B.n > A.n",
        _where(then(then(A, SOME_B), C), compare(ref("B.n"), ">", ref("A.n"))),
        [event("a1", n=1), event("b2", n=2), event("b3", n=1), event("b4", n=5), event("c5")],
        _found("a1|b2 b4|c5"),
    ),
    single(
        "a condition with an aggregate is asked of the occurrence",
        "detect A then B+ then C where Count(B) > 1 and Avg(B.n) <= 2",
        _where(
            then(then(A, SOME_B), C),
            compare(s.Aggregate("Count", "B"), ">", s.Lit(1)),
            compare(s.Aggregate("Avg", "B", "n"), "<=", s.Lit(2)),
        ),
        [
            *(event("a1"), event("b2", n=1), event("c3"), event("b4", n=3), event("c5")),
            *(event("b6", n=3), event("c7")),
        ],
        # One to c3; 1 and 3 to c5; 1, 3 and 3 to c7, whose average is more than 2.
        _found("a1|b2 b4|c5"),
    ),
    single(
        "spread is asked of the occurrence",
        "detect A then B+ then C spread 10 m",
        s.Suffixed(then(then(A, SOME_B), C), (s.Spread(10),)),
        [
            event("a1", position={"x": 0, "y": 0}),
            event("b2", position={"x": 6, "y": 0}),
            event("c3", position={"x": 0, "y": 8}),
            event("b4", position={"x": 60, "y": 0}),
            event("c5", position={"x": 0, "y": 8}),
        ],
        # b4 is far away: it is in the list to c5, so that the occurrence fails as a whole.
        _found("a1|b2|c3"),
    ),
    single(
        "values of a list are an array, and reserved keys are not among them",
        "detect A then B+ then C",
        then(then(A, SOME_B), C),
        [event("a1", n=7), event("b2", n=1, v=0.5), event("b3", location="x"), event("c4")],
        _found("a1|b2 b3|c4", values={"A": {"n": 7}, "B": [{"n": 1, "v": 0.5}, {}], "C": {}}),
    ),
    single(
        "aggregates of a list are assigned",
        "detect A then B+ as b then C assign k = Count(b), s = Sum(b.n), f = First(b.n)",
        then(then(A, s.Listed(a("B", alias="b"))), C),
        [event("a1"), event("b2", n=4), event("b3", n=1), event("c4")],
        (Expected({"A": ["a1"], "b": ["b2", "b3"], "C": ["c4"]}, values={"k": 2, "s": 5, "f": 4}),),
        assign=(
            ("k", s.Aggregate("Count", "b")),
            ("s", s.Aggregate("Sum", "b", "n")),
            ("f", s.Aggregate("First", "b", "n")),
        ),
    ),
)

_PAIRS = s.Times(then(A, B, bound=s.Bound(None, 2000)), 3)

BEFORE_NTH = (
    _case(
        "behind a list nth counts from the beginning, as it has no neighbour that is no list",
        "detect A+ then nth 2 B",
        then(s.Listed(A), s.Nth(2, B)),
        "a0 b1 b2 b3",
        "a0|b2",
    ),
    _case(
        "and the list is what came before that one",
        "detect A* then nth 3 B then C",
        then(then(s.Listed(A, may_be_empty=True), s.Nth(3, B)), C),
        "b0 a1 b2 a3 b4 a5 c6 b7 c8",
        "a1 a3|b4|c6",
        "a1 a3|b4|c8",
    ),
)

REPEATED = (
    _case(
        "three pairs in a row are one occurrence",
        "detect (A then[..2 s] B){3}",
        _PAIRS,
        "a1 b2 a5 b6 a9 b10",
        "a1 a5 a9|b2 b6 b10",
    ),
    _case(
        "runs of n slide",
        "detect A{3}",
        s.Times(A, 3),
        "a1 a2 a3 a4",
        "a1 a2 a3",
        "a2 a3 a4",
    ),
    _case(
        "under first they are disjoint",
        "detect[first] A{2}",
        s.Times(A, 2),
        "a1 a2 a3 a4 a5",
        "a1 a2",
        "a3 a4",
        context="first",
    ),
    _case(
        "in what must not be they slide under first as well",
        "detect[first] C without A{2}",
        s.Without(C, s.Times(A, 2)),
        # Inside c2-5 lie a3 and a4, though a0 and a3 are two in a row as well; in c6-7 is a6 alone.
        "a0 a3 a4 c2-5 a6 c6-7",
        "-|-|c6-7",
        context="first",
    ),
    _case(
        "under chronicle as well, and after a break they begin anew",
        "detect[chronicle] A{2}",
        s.Times(A, 2),
        # a2-4 begins before a3 ends, so that neither a3 a2-4 nor anything across them is a run.
        "a1 a3 a2-4 a5 a6",
        "a1 a3",
        "a2-4 a5",
        context="chronicle",
    ),
    _case(
        "an overlapping one breaks the run",
        "detect A{2}",
        s.Times(A, 2),
        # In order a1, a4, a3-5, a5, a6: a3-5 begins before a4 ends; a5 begins where a3-5 ends.
        "a1 a4 a3-5 a5 a6",
        "a1 a4",
        "a3-5 a5",
        "a5 a6",
    ),
    single(
        "a condition on the alias is asked of each before runs are formed",
        "detect A{2} as x where x.n > 0",
        _where(s.Times(a("A", alias="x"), 2), compare(ref("x.n"), ">", s.Lit(0))),
        [event("a1", n=1), event("a2", n=0), event("a3", n=1), event("a4", n=1)],
        (Expected({"x": ["a1", "a3"]}), Expected({"x": ["a3", "a4"]})),
    ),
    single(
        "a run of steady steps is one occurrence",
        "detect A+[900 ms..1100 ms]",
        s.Run(A, s.Bound(900, 1100)),
        trace("a1 a2 a3 a4"),
        (Expected({"A": ["a1", "a2", "a3", "a4"]}, start=1000, end=4000),),
    ),
    _case(
        "what comes too early or too late begins a new run, and one alone is a run",
        "detect A+[2 s..3 s]",
        s.Run(A, s.Bound(2000, 3000)),
        "a1 a3 a6 a7 a9 a20",
        # 2, 3, then 1 is too early, 2, then 11 is too late.
        "a1 a3 a6",
        "a7 a9",
        "a20",
    ),
    single(
        "the gap of a run is from end to start",
        "detect A+[1 s..1 s]",
        s.Run(A, s.Bound(1000, 1000)),
        trace("a1-3 a4 a5-6 a6"),
        _found("a1-3 a4 a5-6", "a6"),
    ),
    single(
        "runs are formed of what meets the condition on the alias",
        "detect A+[1 s..2 s] as x then B where x.n > 0 and Count(x) > 1",
        _where(
            then(s.Run(a("A", alias="x"), s.Bound(1000, 2000)), B),
            compare(ref("x.n"), ">", s.Lit(0)),
            compare(s.Aggregate("Count", "x"), ">", s.Lit(1)),
        ),
        [
            *(event("a1", n=1), event("a2", n=0), event("a3", n=1), event("a4", n=1)),
            *(event("a8", n=1), event("b9")),
        ],
        (Expected({"x": ["a1", "a3", "a4"], "B": ["b9"]}),),
    ),
    single(
        "a condition on the alias and on another place is asked of each of the run",
        "detect A{2} as x then B where x.n <= B.n",
        _where(
            then(s.Times(a("A", alias="x"), 2), B),
            compare(ref("x.n"), "<=", ref("B.n")),
        ),
        # Runs are a1 a2, a2 a3, a3 a4; a2 is more than the B, so that the first two have none.
        [
            *(event("a1", n=1), event("a2", n=3), event("a3", n=1), event("a4", n=2)),
            event("b5", n=2),
        ],
        (Expected({"x": ["a3", "a4"], "B": ["b5"]}),),
    ),
    single(
        "names of one of the run are taken together",
        "detect (A then[..1 s] B){2} then C where A.n + B.n <= C.n",
        _where(
            then(s.Times(then(A, B, bound=s.Bound(None, 1000)), 2), C),
            compare(s.Arith("+", ref("A.n"), ref("B.n")), "<=", ref("C.n")),
        ),
        # 0 + 3 and 3 + 0; that a3 and b2 would be 6 does not matter, as they are no pair.
        [
            *(event("a1", n=0), event("b2", n=3), event("a3", n=3), event("b4", n=0)),
            event("c5", n=3),
        ],
        (Expected({"A": ["a1", "a3"], "B": ["b2", "b4"], "C": ["c5"]}),),
    ),
)

LIST_CASES = CHAIN + WHERE + BEFORE_NTH + REPEATED
