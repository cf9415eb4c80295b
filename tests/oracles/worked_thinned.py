"""Worked cases of `one`, `collect`, `at most`, `for`, `until` and actors of groups."""

from dataclasses import replace
from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    both,
    compare,
    event,
    found,
    own,
    single,
    then,
    trace,
)

A, B, C = (s.Atom(name) for name in "ABC")


def _told(case: WorkedCase, text: tuple[str, str], **more: Any) -> WorkedCase:
    """The case with more said of its subscription; `text` is what follows the actor and the end."""
    (subscription,) = case.spec.subscriptions
    spec = replace(case.spec, subscriptions=(replace(subscription, **more),))
    written = case.text.replace(" to out\n", f" to out{text[0]}\n") + text[1]
    return replace(case, text=written, spec=spec)


THINNED_CASES = (
    single(
        "one reports the first in order of those that one event completes",
        "detect[one] A then B",
        then(A, B),
        trace("a1 a2 b3 b4 a5 b6"),
        # a1 starts earlier than a2 and a5.
        found("a1 b3", "a1 b4", "a1 b6"),
        thin="one",
    ),
    single(
        "what completes is the last in order of the events bound",
        "detect[one] A and B",
        both(A, B),
        # (b1, a3) and (b2, a3) are completed by a3, (b1, a4) and (b2, a4) by a4, (a3, b5) by b5.
        trace("b1 b2 a3 a4 b5"),
        found("b1 a3", "b1 a4", "a3 b5"),
        thin="one",
    ),
    single(
        "of one event in either side of an or, the left side comes first",
        "detect[one] A as x or A as y",
        s.Or(s.Atom("A", (), "x"), s.Atom("A", (), "y")),
        trace("a1"),
        (Expected({"x": ["a1"]}),),
        thin="one",
    ),
    single(
        "the left side of an or is reported, and consumes, first",
        "detect A as x or A(n = 1) as y or B as z\nconsuming y",
        s.Or(
            s.Or(s.Atom("A", (), "x"), s.Atom("A", (compare(own("n"), "=", s.Lit(1)),), "y")),
            s.Atom("B", (), "z"),
        ),
        [event("a1", n=1), event("a2", n=2)],
        (Expected({"x": ["a1"]}), Expected({"y": ["a1"]}), Expected({"x": ["a2"]})),
        consuming=("y",),
    ),
    single(
        "consumption comes before one, and only what is reported consumes",
        "detect[one] A then B consuming A",
        then(A, B),
        # (a1, b3) consumes a1; (a2, b3) is not reported, so that a2 is left for b4.
        trace("a1 a2 b3 b4 b5"),
        found("a1 b3", "a2 b4"),
        thin="one",
        consuming=("A",),
    ),
    single(
        "collect makes one of all that one event completes",
        "detect[collect] A then B then C",
        then(then(A, B), C),
        [event("a1", n=1), event("b2"), event("a3", n=3), event("b4"), event("c5"), event("c6")],
        (
            Expected(
                {"A": ["a1", "a3"], "B": ["b2", "b4"], "C": ["c5"]},
                start=1000,
                end=5000,
                values={"A": [{"n": 1}, {"n": 3}], "B": [{}, {}], "C": [{}]},
            ),
            Expected({"A": ["a1", "a3"], "B": ["b2", "b4"], "C": ["c6"]}, start=1000, end=6000),
        ),
        thin="collect",
    ),
    single(
        "collect takes what first and last chose, whatever was reported before",
        "detect[collect] first B and A",
        both(s.First(B), A),
        # b0 is the first for a1 and a2, so that b3 and b4 complete nothing.
        trace("b0 a1 a2 b3 b4"),
        (Expected({"B": ["b0"], "A": ["a1"]}), Expected({"B": ["b0"], "A": ["a2"]})),
        thin="collect",
    ),
    single(
        "collect leaves out what is in none of them",
        "detect[collect] A then B then C within 4 s",
        s.Suffixed(then(then(A, B), C), (s.Within(4000),)),
        trace("a1 a2 b3 c5 c6"),
        (
            Expected({"A": ["a1", "a2"], "B": ["b3"], "C": ["c5"]}),
            Expected({"A": ["a2"], "B": ["b3"], "C": ["c6"]}),
        ),
        thin="collect",
    ),
    single(
        "collect takes together what one event completes, however late the choice of each is known",
        "detect[collect] A then last B within 6 s",
        s.Suffixed(then(A, s.Last(B)), (s.Within(6000),)),
        # What may come after b12 is known to be too late for a6 at 12 s, for a9 at 15 s.
        trace("a6 a9 b12 c13"),
        (Expected({"A": ["a6", "a9"], "B": ["b12"]}, start=6000, end=12000),),
        thin="collect",
    ),
    single(
        "one reports the first alone, however late it is known of the others that they are chosen",
        "detect[one] A then last B within 6 s",
        s.Suffixed(then(A, s.Last(B)), (s.Within(6000),)),
        trace("a6 a9 b12 c13"),
        found("a6 b12"),
        thin="one",
    ),
    single(
        "an absence completes nothing: one reports the first silence beside an event",
        "detect[one] A and absent C for 2 s",
        both(A, s.Absent(C, 2000)),
        # [3, 5] and [6, 8] are silent, not [1, 3]; both occurrences are completed by a1.
        trace("a1 c3 c6 b12"),
        (Expected({"A": ["a1"]}, start=1000, end=5000),),
        thin="one",
    ),
    single(
        "collect takes all silences beside an event together",
        "detect[collect] A and absent C for 2 s",
        both(A, s.Absent(C, 2000)),
        trace("a1 c3 c6 b12"),
        (Expected({"A": ["a1"]}, start=1000, end=8000),),
        thin="collect",
    ),
    single(
        "a silence before an event and one after it are completed by the same event",
        "detect[one] A and absent C for 6 s",
        both(A, s.Absent(C, 6000)),
        # [0, 6] from the beginning, [16, 22] from the end of the C.
        trace("b0-3 a7 c12-16"),
        (Expected({"A": ["a7"]}, start=0, end=7000),),
        thin="one",
    ),
    _told(
        single(
            "at most goes by the order of what was collected, whichever is whole first",
            "detect[collect] (A as x then last B within 6 s) or A as y",
            s.Or(
                s.Suffixed(then(s.Atom("A", (), "x"), s.Last(B)), (s.Within(6000),)),
                s.Atom("A", (), "y"),
            ),
            # (a1, b3) is known at 7 s only, and comes before a4, which is less than 2 s later.
            trace("a1 b3 a4"),
            (
                Expected({"x": [], "B": [], "y": ["a1"]}),
                Expected({"x": ["a1"], "B": ["b3"], "y": []}),
            ),
            thin="collect",
        ),
        ("", "at most 1 per 2 s\n"),
        at_most=(1, 2000),
    ),
    _told(
        single(
            "at most so many are reported in any stretch of time",
            "detect A",
            A,
            # a3 is less than 3 s after a1; a4 is not, and a5, a6 are too near to a4.
            trace("a1 a3 a4 a5 a6 a7"),
            found("a1", "a4", "a7"),
        ),
        ("", "at most 1 per 3 s\n"),
        at_most=(1, 3000),
    ),
    _told(
        single(
            "at most goes by group, and what is suppressed has consumed",
            "detect A then B consuming A group by n",
            then(A, B),
            [
                *(event("a1", n=1), event("a2", n=1), event("b3", n=1), event("b4", n=1)),
                *(event("a3", n=2), event("b4-5", n=2), event("b9", n=1)),
            ],
            # (a1, b3) is reported, (a2, b3) and any later pair of them suppressed: a2 is gone.
            (
                Expected({"A": ["a1"], "B": ["b3"]}, group={"n": 1}),
                Expected({"A": ["a3"], "B": ["b4-5"]}, group={"n": 2}),
            ),
            consuming=("A",),
            group_by=("n",),
        ),
        ("", "at most 1 per 5 s\n"),
        at_most=(1, 5000),
    ),
    _told(
        single(
            "for counts from the beginning of the input, and its end does not count",
            "detect A",
            A,
            trace("b1 a2 a4 a3-5 a5 a6"),
            found("a2", "a4"),
        ),
        (" for 4 s", ""),
        for_ms=4000,
    ),
    _told(
        single(
            "until is a time",
            "detect A",
            A,
            trace("a2 a5 a6 a7"),
            found("a2", "a5"),
        ),
        (' until "1970-01-01T00:00:06Z"', ""),
        until="1970-01-01T00:00:06Z",
    ),
    _told(
        single(
            "what comes after the end still decides what ended before it",
            "detect absent A for 2 s",
            s.Absent(A, 2000),
            trace("b0 a3 a9"),
            # [0, 2] counts; [3, 5] ends with the subscription and does not.
            (Expected({}, start=0, end=2000),),
        ),
        (" for 5 s", ""),
        for_ms=5000,
    ),
)
