"""Worked cases of the contexts that spend: `first`, `latest`, `chronicle`."""

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
X, Y = a("A", alias="x"), a("A", alias="y")


def _within(pattern: s.Pattern, ms: int) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(ms),))


def _case(
    name: str,
    detect: str,
    pattern: s.Pattern,
    tokens: str,
    places: tuple[str, ...],
    context: s.Context | None = None,
) -> WorkedCase:
    return single(name, detect, pattern, trace(tokens), found(*places), context=context)


FIRST = (
    _case(
        "first takes the earliest at every step",
        "detect[first] A then B then C then D within 6 s",
        _within(then(then(then(A, B), C), D), 6000),
        "a1 a2 b3 c4 c5 b6 d7",
        ("a1 b3 c4 d7",),
        "first",
    ),
    _case(
        "first spends all that ends by the run's end",
        "detect[first] A then B",
        then(A, B),
        # (a1, b3) spends a2 as well; b4 finds nothing; a5 begins anew.
        "a1 a2 b3 b4 a5 b6",
        ("a1 b3", "a5 b6"),
        "first",
    ),
    _case(
        "first spends what ends with the run, not what ends later",
        "detect[first] A then B",
        then(A, B),
        # b3 and a3 end together, so a3 is spent; a2-4 ends later and begins the next run.
        "a1 b3 a3 a2-4 b5 b6",
        ("a1 b3", "a2-4 b5"),
        "first",
    ),
    _case(
        "a run whose window has passed is dropped and spends nothing",
        "detect[first] A then B then C within 5 s",
        _within(then(then(A, B), C), 5000),
        # From a1 the run takes b3 and has no C by 6; from a2 it takes b3 again and c7 ends it.
        "a1 a2 b3 c7 c8",
        ("a2 b3 c7",),
        "first",
    ),
    _case(
        "a run never goes back to a partner that it passed over",
        "detect[first] A then B then[..1 s] C",
        then(then(A, B), C, bound=s.Bound(None, 1000)),
        # The run from a1 has b2, whose bound passes at 3: b4 would have had c5. From a3 it does.
        "a1 b2 a3 b4 c5",
        ("a3 b4 c5",),
        "first",
    ),
    single(
        "a run that the end of the input leaves open gives way to the next start",
        "detect[first] A then B then C where A.n = C.n",
        s.Suffixed(then(then(A, B), C), (s.Where(compare(ref("A.n"), "=", ref("C.n"))),)),
        [event("a1", n=1), event("a2", n=2), event("b3"), event("c4", n=2)],
        found("a2 b3 c4"),
        context="first",
    ),
    _case(
        "and[first] begins with either and takes the first of the other",
        "detect A and[first] B",
        both(A, B, context="first"),
        "b1 b2 a3 a4 b5",
        ("b1 a3", "a4 b5"),
    ),
    _case(
        "links of one context are one chain, another context begins another",
        "detect A then[first] B then[unrestricted] C",
        then(then(A, B, context="first"), C, context="unrestricted"),
        # The runs are (a1, b3) and (a4, b5); every C after them is a combination.
        "a1 a2 b3 a4 b5 c6 c7",
        ("a1 b3 c6", "a4 b5 c6", "a1 b3 c7", "a4 b5 c7"),
    ),
)

FIRST_OF_ONE_EVENT = (
    single(
        "an absence beside an event does not part them: the event fills the first of two places",
        "detect[first] (A as x and absent D for 1 s within 3 s) and A as y",
        both(_within(both(X, s.Absent(D, 1000)), 3000), Y),
        # Nothing came from 2 to 3. Of a2-4 and that silence x is made, and a2-4 itself fits y: x
        # stands first in the text.
        trace("a2-4 d5 a7"),
        (Expected({"x": ["a2-4"], "y": ["a7"]}, start=2000, end=7000),),
        context="first",
    ),
)

LATEST = (
    _case(
        "latest never goes back",
        "detect[latest] A then B then C",
        then(then(A, B), C),
        "a1 b2 a3 b4 c5",
        ("a1 b4 c5",),
        "latest",
    ),
    _case(
        "latest takes the newest of those in a row, and the first of the last step",
        "detect[latest] A then B",
        then(A, B),
        "a1 a2 b3 b4 a5 b6",
        ("a2 b3", "a5 b6"),
        "latest",
    ),
    single(
        "an event that fits both steps advances",
        "detect[latest] A as x then A as y then B",
        then(then(X, Y), B),
        # a2 could replace a1, but it is a y as well; a3 fits the step of y alone.
        trace("a1 a2 a3 b4"),
        (Expected({"x": ["a1"], "y": ["a3"], "B": ["b4"]}),),
        context="latest",
    ),
    _case(
        "a run whose bound has passed is dropped before a newer one could replace",
        "detect[latest] A then B then[..1 s] C",
        then(then(A, B), C, bound=s.Bound(None, 1000)),
        # The run (a1, b2) ends at 3; no other A begins one, so b4 and c5 have no run.
        "a1 b2 b4 c5",
        (),
        "latest",
    ),
    _case(
        "what starts within the bound and ends after it advances the run",
        "detect[latest] A then[..1 s] D",
        then(A, D, bound=s.Bound(None, 1000)),
        "a1 d2-5 a7 d9-10",
        ("a1 d2-5",),
        "latest",
    ),
    _case(
        "no event between drops a run that goes on in time, though it ends later",
        "detect[latest] C then A then[..2 s] B",
        then(then(C, A), B, bound=s.Bound(None, 2000)),
        # c5 comes after 4, by which a B must begin; b3-6 does.
        "c1 a2 c5 b3-6",
        ("c1 a2 b3-6",),
        "latest",
    ),
    _case(
        "a newer one in time replaces",
        "detect[latest] A then B then[..2 s] C",
        then(then(A, B), C, bound=s.Bound(None, 2000)),
        "a1 b2 b4 c5",
        ("a1 b4 c5",),
        "latest",
    ),
)

CHRONICLE = (
    single(
        "an event is in one occurrence at most, whatever its role",
        "detect A as x then[chronicle] A as y",
        then(X, Y, context="chronicle"),
        trace("a1 a2 a3 a4"),
        (Expected({"x": ["a1"], "y": ["a2"]}), Expected({"x": ["a3"], "y": ["a4"]})),
    ),
    _case(
        "chronicle takes the oldest that is not spent",
        "detect A then[chronicle] B",
        then(A, B, context="chronicle"),
        "a1 a2 b3 b4 b5",
        ("a1 b3", "a2 b4"),
    ),
    _case(
        "and[chronicle] completes with either",
        "detect A and[chronicle] B",
        both(A, B, context="chronicle"),
        "b1 b2 a3 a4 a5 b6",
        ("b1 a3", "b2 a4", "a5 b6"),
    ),
    _case(
        "chronicle passes over a candidate that fails",
        "detect A then[chronicle] B within 2 s",
        _within(then(A, B, context="chronicle"), 2000),
        # b4 is too late for a1 and takes a3; b5 is within 2 s of a3, but that is spent.
        "a1 a3 b4 b5",
        ("a3 b4",),
    ),
    _case(
        "each operator spends for itself",
        "detect[chronicle] A then B then C",
        then(then(A, B), C),
        # The inner pairs are (a1, b3) and (a2, b4); c5 takes the older one, c6 the other.
        "a1 a2 b3 b4 c5 c6",
        ("a1 b3 c5", "a2 b4 c6"),
        "chronicle",
    ),
)

SPENT_AND_CONSUMED = (
    single(
        "consumption frees nothing that a run has spent",
        "detect[first] A then B\nconsuming B",
        then(A, B),
        # (a1, b2) is one run; that b2 is consumed does not give a1 back to b3.
        trace("a1 b2 b3 a4 b5"),
        found("a1 b2", "a4 b5"),
        context="first",
        consuming=("B",),
    ),
    single(
        "nor does it where a list stands between",
        "detect A then B* then[chronicle] C consuming C",
        then(then(A, s.Listed(B, may_be_empty=True)), C, context="chronicle"),
        # Both As and both Cs are spent, whatever fills the lists.
        trace("a1 b2 c3 a4 c5 c6"),
        (
            Expected({"A": ["a1"], "B": ["b2"], "C": ["c3"]}),
            Expected({"A": ["a4"], "B": [], "C": ["c5"]}),
        ),
        consuming=("C",),
    ),
    single(
        "a consumed event is no candidate for what completes later",
        "detect A as x then[chronicle] B or A as y then[chronicle] C\nconsuming x",
        s.Or(then(X, B, context="chronicle"), then(Y, C, context="chronicle")),
        # b2 takes a1 and consumes it, so that c4 is left with a3.
        trace("a1 b2 a3 c4"),
        (Expected({"x": ["a1"], "B": ["b2"]}), Expected({"y": ["a3"], "C": ["c4"]})),
        consuming=("x",),
    ),
)

CONTEXT_CASES = FIRST + FIRST_OF_ONE_EVENT + LATEST + CHRONICLE + SPENT_AND_CONSUMED
