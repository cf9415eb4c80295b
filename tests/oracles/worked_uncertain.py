"""Worked cases of uncertain times. Letters are types, digits seconds, `~` is an ε of one second.

So a1~ is an A somewhere in [0, 2].
"""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import (
    Expected,
    WorkedCase,
    both,
    event,
    head,
    own,
    ref,
    single,
    then,
    types,
)

A, B, C, X = (s.Atom(name) for name in "ABCX")


def _trace(tokens: str, **more: Any) -> list[dict[str, Any]]:
    return [
        event(token[:-1], uncertainty=1000, **more) if token[-1] == "~" else event(token, **more)
        for token in tokens.split()
    ]


def _found(*listed: str) -> tuple[Expected, ...]:
    """Results such as `a1 b2?`, the question mark saying maybe."""
    return tuple(
        Expected(
            {token[0].upper(): [token] for token in text.rstrip("?").split()},
            certainty="maybe" if text.endswith("?") else "yes",
        )
        for text in listed
    )


def _case(
    name: str, detect: str, pattern: s.Pattern, tokens: str, *places: str, **more: Any
) -> WorkedCase:
    return single(name, detect, pattern, _trace(tokens), _found(*places), **more)


def _within(pattern: s.Pattern, ms: int, start: str | None = None) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(ms, start),))


PATTERNS = (
    _case(
        "the uncertainty of one event lets no bound of others last longer",
        "detect[latest] C then A then[..0 s] B",
        then(then(C, A), B, bound=s.Bound(None, 0)),
        # a5 comes after a3's bound, and b6 is not before 5: the run is dropped.
        "c1 a3 a5 b6~",
        context="latest",
    ),
    _case(
        "a bound has not passed where one may be in time that seems not to be",
        "detect[latest] C then A then[..1 s] B",
        then(then(C, A), B, bound=s.Bound(None, 1000)),
        # a5 comes after 4, but b5 is in [4, 6] and goes with a3: so a5 takes its place.
        "c1 a3 a5 b5~",
        "c1 a5 b5?",
        context="latest",
    ),
    _case(
        "within is asked of the one that nth counted",
        "detect nth 2 A within 3 s",
        _within(s.Nth(2, A), 3000),
        # The second lasts for 1 s at least and for 5 s at most.
        "a1 a2-5~",
        "a2-5?",
    ),
    single(
        "silence begins at the end of what is only maybe",
        "detect absent (A without[2 s] B) for 3 s",
        s.Absent(s.Without(A, B, 2000), 3000),
        _trace("a1 b3~ b9"),
        (Expected({}, start=1000, end=4000),),
    ),
    single(
        "a silence is maybe where one may come in it, and none where one certainly does",
        "detect absent A for 3 s",
        s.Absent(A, 3000),
        # From 0 on: a1~ is in [0, 2] and may come later than 0. After it: a4~ comes 1 to 5 later,
        # in time if that is 3 at most. After a4~ in [3, 5] a9 comes 4 later at least.
        _trace("b0 a1~ a4~ a9"),
        (
            Expected({}, start=0, end=3000, certainty="maybe"),
            Expected({}, start=1000, end=4000, certainty="maybe"),
            Expected({}, start=4000, end=7000, certainty="yes"),
            Expected({}, start=9000, end=12_000, certainty="yes"),
        ),
    ),
    single(
        "a silence after what is only maybe, and one that only a maybe breaks, are maybes",
        "detect absent (A without[2 s] B) for 3 s",
        s.Absent(s.Without(A, B, 2000), 3000),
        # b3~ may lie in (1, 3], so that (a1) is a maybe.
        _trace("d0 a1 b3~ b9"),
        (
            Expected({}, start=0, end=3000, certainty="maybe"),
            Expected({}, start=1000, end=4000, certainty="maybe"),
        ),
    ),
    single(
        "one that seems to come before may come after",
        "detect absent A for 3 s",
        s.Absent(A, 3000),
        # a5~ and a6~ may change places; what comes after both of them is known from either.
        _trace("a5~ a6~"),
        (
            Expected({}, start=5000, end=8000, certainty="maybe"),
            Expected({}, start=6000, end=9000, certainty="maybe"),
        ),
    ),
    single(
        "what is in both is at one time in both",
        "detect absent (A and B) for 2 s",
        s.Absent(both(A, B), 2000),
        # (a1, b5~) and (a2, b5~) end at one time, whatever that is; both reach into [1, 3].
        _trace("a1 a2 b5~"),
        (Expected({}, start=5000, end=7000, certainty="yes"),),
    ),
    single(
        "a silence from one end at a time is as certain as the most certain, and weighed as that",
        "detect absent A for 2 s then B",
        then(s.Absent(A, 2000), B),
        # a1 and the beginning are exact, so the silence ends at 3, and b3 follows; that after a5~
        # ends in [6, 8].
        _trace("a1 b3 a5~ b7 b9"),
        (
            Expected({"B": ["b3"]}, start=1000, certainty="yes"),
            Expected({"B": ["b7"]}, start=1000, certainty="yes"),
            Expected({"B": ["b7"]}, start=5000, certainty="maybe"),
            Expected({"B": ["b9"]}, start=1000, certainty="yes"),
            Expected({"B": ["b9"]}, start=5000, certainty="yes"),
        ),
    ),
    _case(
        "then is maybe where some times hold and others do not",
        "detect A then B",
        then(A, B),
        # b2 may come before a1 does; b3 and b5 are later than 2 in any case, b5 with its own ε too.
        "a1~ b2 b3 b5~",
        "a1 b2?",
        "a1 b3",
        "a1 b5",
    ),
    _case(
        "what may be turned round is maybe, what can only touch is not",
        "detect A then B",
        then(A, B),
        # a5 is in [4, 6] and b4 in [3, 5]; b3 is in [2, 4], so that the two readings touch at best.
        "a5~ b4~ b3~",
        "b4 a5?",
    ),
    _case(
        "something longer may touch",
        "detect A then B",
        then(A, B),
        "a5~ b4-9",
        "a5 b4-9?",
    ),
    _case(
        "within is asked of the longest and of the shortest span",
        "detect A then B within 4 s",
        _within(then(A, B), 4000),
        # From a1 in [0, 2]: to b4 at most 4, to b5 from 3 to 5, to b7 5 at least.
        "a1~ b4 b5 b7",
        "a1 b4",
        "a1 b5?",
    ),
    _case(
        "one reading alone has no span",
        "detect A within 1 ms",
        _within(A, 1),
        "a1~",
        "a1",
    ),
    _case(
        "a bound is asked of the gap",
        "detect A then[2 s..4 s] B",
        then(A, B, bound=s.Bound(2000, 4000)),
        # Gaps: 0 to 2, 1 to 3, 2 to 4, 4 to 6, 5 to 7.
        "a1~ b2 b3 b4 b6 b7",
        "a1 b2?",
        "a1 b3?",
        "a1 b4",
        "a1 b6?",
    ),
    _case(
        "within from is asked of each event by itself",
        "detect A and B within 2 s from A",
        _within(both(A, B), 2000, "A"),
        # b2~ in [1, 3] is at or after 1 and at most 2 later; b3~ may be 3 later, b1~ before.
        "a1 b2~ b3~ b1~ b5~",
        "a1 b1?",
        "a1 b2",
        "a1 b3?",
    ),
    _case(
        "two uncertain times are never equal for certain",
        "detect A equals B",
        s.Pair("equals", A, B),
        "a1 b1 a4~ b5~ b7",
        "a1 b1",
        "a4 b5?",
    ),
    _case(
        "without is maybe where one may lie inside, and no where one certainly does",
        "detect A then B without C",
        s.Without(then(A, B), C),
        # c6~ is in [5, 7]: it may be in time for b5, and is for b7.
        "a1 b4 b5 b7 c6~",
        "a1 b4",
        "a1 b5?",
    ),
    _case(
        "an occurrence is as weak as its weakest relation",
        "detect A then B then C",
        then(then(A, B), C),
        "a1~ b2 c9",
        "a1 b2 c9?",
    ),
    _case(
        "recent takes the latest of those that may stand, by nominal times",
        "detect A then[recent] B",
        then(A, B, context="recent"),
        "a1 a3~ b3",
        "a3 b3?",
    ),
    _case(
        "a maybe spends",
        "detect A then[chronicle] B",
        then(A, B, context="chronicle"),
        "a1~ b2 b3 a5 b6",
        "a1 b2?",
        "a5 b6",
    ),
    _case(
        "maybe drop drops after the choice, and what it drops consumes nothing",
        "detect[maybe drop] A then B consuming A",
        then(A, B),
        # (a1, b2) is dropped, so that a1 is left for b3, and consumed by that.
        "a1~ b2 b3 b4",
        "a1 b3",
        maybe_drop=True,
        consuming=("A",),
    ),
    _case(
        "collect is as certain as the most certain of what it makes one",
        "detect[collect] A then B",
        then(A, B),
        "a1~ b2",
        "a1 b2?",
        thin="collect",
    ),
)


def _defined() -> WorkedCase:
    definition = s.Definition("X", (s.Case(then(A, B), assign=(("k", ref("A.n")),)),))
    spec = s.Spec(types("A B C"), (s.Subscription("S", s.Case(then(X, C))),), (definition,))
    text = (
        f"{head('A B C')}define X(k)\ndetect A then B\nassign k = A.n\n"
        "subscription S from tester to out\ndetect X then C\n"
    )
    # X has the greatest ε, that of a1, and (a1, b2) is a maybe by itself.
    events = _trace("a1~ b2 b3 c3 c5")
    # (a1, b3) ends in [2, 4] and may come before c3.
    expected = (
        Expected({"X": ["a1", "b2"], "C": ["c3"]}, certainty="maybe"),
        Expected({"X": ["a1", "b3"], "C": ["c3"]}, certainty="maybe"),
        Expected({"X": ["a1", "b2"], "C": ["c5"]}, certainty="maybe"),
        Expected({"X": ["a1", "b3"], "C": ["c5"]}, certainty="yes"),
    )
    name = "a detected event is as certain as its occurrence, and as uncertain in time as its worst"
    return WorkedCase(name, text, spec, events, expected, frozenset({"X"}))


def _windowed() -> WorkedCase:
    pair = s.Definition("X", (s.Case(then(A, B), assign=(("timestamp", own("timestamp")),)),))
    counted = s.Definition(
        "Y", (s.Case(X, assign=(("c", s.Aggregate("Count", "X")),)),), s.Every(10_000)
    )
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(s.Atom("Y"))),), (pair, counted))
    text = (
        f"{head('A B')}define X(timestamp)\ndetect A then B\nassign timestamp = timestamp\n"
        "define Y(c) aggr every 10 s\ndetect X\nassign c = Count(X)\n"
        "subscription S from tester to out\ndetect Y\n"
    )
    expected = (
        Expected({"Y": ["a1", "b2", "a1", "b4"]}, certainty="maybe", values={"Y": {"c": 2}}),
        Expected({"Y": ["a1", "b15"]}, certainty="yes", values={"Y": {"c": 1}}),
    )
    name = "a window is as certain as the events in it"
    return WorkedCase(name, text, spec, _trace("a1~ b2 b4 b15"), expected, frozenset({"Y"}))


UNCERTAIN_CASES = (*PATTERNS, _defined(), _windowed())
