"""Worked cases of sessions, windows of days, `distinct` in windows, and `every` without `aggr`.

Windows are over A, grouped by location, unless said. 2023-10-29 has 25 hours in Zurich: it begins
at 1 698 530 400 s and ends at 1 698 620 400 s, and it is the 19 659th day after 1970-01-01.
"""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.render import expression
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
    types,
)

A, B, X = s.Atom("A"), s.Atom("B"), s.Atom("X")
_COUNT = (("c", s.Aggregate("Count", "A")),)
_MIDNIGHT_MS, _NEXT_MIDNIGHT_MS = 1_698_530_400_000, 1_698_620_400_000


def _lab(tokens: str, **more: Any) -> list[dict[str, Any]]:
    return [event(token, location="lab", **more) for token in tokens.split()]


def _at(ident: str, ms: int) -> dict[str, Any]:
    return {"type": "A", "id": ident, "source": "s1", "location": "lab", "timestamp": ms}


def _x(ids: str, count: int, **more: Any) -> Expected:
    return Expected({"X": ids.split()}, values={"X": {"c": count, **more}})


def _over(
    name: str,
    window: tuple[str, s.Window],
    events: list[dict[str, Any]],
    expected: tuple[Expected, ...],
    *,
    operands: tuple[str, s.Pattern] = ("A", A),
    detect: tuple[str, s.Pattern] = ("X", X),
) -> WorkedCase:
    case = s.Case(operands[1], assign=_COUNT, group_by=("location",))
    definition = s.Definition("X", (case,), window[1])
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(detect[1])),), (definition,))
    text = (
        f"{head('A B')}define X(c) aggr {window[0]}\ndetect {operands[0]}\n"
        f"assign c = Count(A)\ngroup by location\n"
        f"subscription S from tester to out\ndetect {detect[0]}\n"
    )
    return WorkedCase(name, text, spec, events, expected, frozenset({"X"}))


SESSIONS = (
    _over(
        "a session goes on while the next one starts soon enough",
        ("session 2 s", s.Session(2000)),
        _lab("a1 a3 a6 a7-9 a11 a20"),
        # a6 starts 3 s after a3; a7-9 starts 1 s after a6, a11 2 s after its end.
        (
            _x("a1 a3", 2, interval=2000),
            _x("a6 a7-9 a11", 3, interval=2000),
            _x("a20", 1, interval=2000),
        ),
    ),
    _over(
        "a session is no longer than its max",
        ("session 2 s max 4 s", s.Session(2000, 4000)),
        _lab("a1 a3 a5 a6 a8"),
        # a6 would make 5 s of it.
        (_x("a1 a3 a5", 3, interval=2000), _x("a6 a8", 2, interval=2000)),
    ),
    _over(
        "the interval of a session is an attribute like others",
        ("session 2 s", s.Session(2000)),
        _lab("a1"),
        (_x("a1", 1, interval=2000),),
        detect=(
            "X(interval = 2 s, c < 5)",
            a(
                "X",
                compare(own("interval"), "=", s.Duration(2000)),
                compare(own("c"), "<", s.Lit(5)),
            ),
        ),
    ),
    _over(
        "all operands keep a session alive",
        ("session 2 s", s.Session(2000)),
        [*_lab("a1 b3 a5 b9")],
        # b9 has no A with it.
        (_x("a1 b3 a5", 2, interval=2000),),
        operands=("A and outer B", both(A, s.Outer(B))),
    ),
)

DAYS = (
    _over(
        "a day goes from midnight to midnight, also where it has 25 hours",
        ('every 1 day in "Europe/Zurich"', s.Days(1, "Europe/Zurich")),
        [
            _at("before", _MIDNIGHT_MS - 1),
            _at("begins", _MIDNIGHT_MS),
            _at("ends", _NEXT_MIDNIGHT_MS - 1),
            _at("next", _NEXT_MIDNIGHT_MS),
        ],
        (_x("before", 1), _x("begins ends", 2), _x("next", 1)),
    ),
    _over(
        "several days are counted from the first day of 1970",
        ('every 2 days in "Europe/Zurich"', s.Days(2, "Europe/Zurich")),
        [
            _at("before", _MIDNIGHT_MS - 1),
            _at("ends", _NEXT_MIDNIGHT_MS - 1),
            _at("next", _NEXT_MIDNIGHT_MS),
        ],
        (_x("before ends", 2), _x("next", 1)),
    ),
)

DISTINCT = (
    _over(
        "distinct in a window drops what equals an earlier one in it",
        ("every 10 s", s.Every(10_000)),
        [
            *_lab("a1", n=1),
            *_lab("a2", n=1),
            *_lab("a3", n=2),
            *_lab("a4 a5"),
            *_lab("a11", n=1),
        ],
        (_x("a1 a3 a4 a5", 4), _x("a11", 1)),
        operands=("distinct(n) A", s.Distinct(A, ("n",))),
    ),
    _over(
        "distinct by the end in a window",
        ("range 5 s", s.Trailing(5000)),
        _lab("a1 a0-1 a3"),
        # a0-1 and a1 end together and a0-1 is the earlier; a1 closes a window all the same.
        (_x("a0-1", 1), _x("a0-1", 1), _x("a0-1 a3", 2)),
        operands=("distinct A", s.Distinct(A)),
    ),
)

_QUANTILES = (
    ("m", s.Aggregate("Median", "A", "n")),
    ("q", s.Aggregate("Quantile", "A", "n", 0.9)),
    ("low", s.Aggregate("Quantile", "A", "n", 0.1)),
)


def _quantiles() -> WorkedCase:
    definition = s.Definition("X", (s.Case(A, assign=_QUANTILES),), s.Every(100_000))
    spec = s.Spec(types("A"), (s.Subscription("S", s.Case(X)),), (definition,))
    text = (
        f"{head('A')}define X(m, q, low) aggr every 100 s\ndetect A\n"
        "assign m = Median(A.n), q = Quantile(A.n, 0.9), low = Quantile(A.n, 0.1)\n"
        "subscription S from tester to out\ndetect X\n"
    )
    events = [event(f"a{n}", n=n) for n in (1, 2, 3, 4)] + [event("a5", n=10), event("a6")]
    # Ranks 2, 3.6 and 0.4 of 1 2 3 4 10: 3, 4 + 0.6 * 6 = 7.6, and 1.4.
    expected = Expected(
        {"X": ["a1", "a2", "a3", "a4", "a5", "a6"]},
        values={"X": {"m": 3.0, "q": 7.6, "low": 1.4}},
    )
    return WorkedCase(
        "a quantile lies linearly between two", text, spec, events, (expected,), frozenset({"X"})
    )


_EDGES = (("f", ref("window.start")), ("t", ref("window.end")))
_LAST_MS = s.Arith("-", ref("window.end"), s.Duration(1))
_AS_LONG = (("start", ref("window.start")), ("end", _LAST_MS))
_FROM_START = (("start", ref("window.start")), ("end", s.Aggregate("Max", "A", "end")))


def _timed(
    name: str,
    window: tuple[str, s.Window],
    assign: s.Assignments,
    tokens: str,
    expected: tuple[Expected, ...],
    *,
    detect: tuple[str, s.Pattern] = ("X", X),
) -> WorkedCase:
    """A window over A without groups that says when its events happen."""
    definition = s.Definition("X", (s.Case(A, assign=assign),), window[1])
    spec = s.Spec(types("A"), (s.Subscription("S", s.Case(detect[1])),), (definition,))
    names = ", ".join(one for one, _ in assign)
    values = ", ".join(f"{one} = {expression(value)}" for one, value in assign)
    text = (
        f"{head('A')}define X({names}) aggr {window[0]}\ndetect A\nassign {values}\n"
        f"subscription S from tester to out\ndetect {detect[0]}\n"
    )
    events = [event(token) for token in tokens.split()]
    return WorkedCase(name, text, spec, events, expected, frozenset({"X", "x", "y"}))


def _at_edges(ids: str, start: int, end: int, **values: Any) -> Expected:
    return Expected({"X": ids.split()}, start=start, end=end, values={"X": values})


TIMES = (
    _timed(
        "a window's event is its last instant, whenever its events were",
        ("every 10 s", s.Every(10_000)),
        _EDGES,
        "a1 a2 a25",
        (
            _at_edges("a1 a2", 9_999, 9_999, f=0, t=10_000),
            _at_edges("a25", 29_999, 29_999, f=20_000, t=30_000),
        ),
    ),
    _timed(
        "that of a range is the end of the event that closes it",
        ("range 5 s", s.Trailing(5_000)),
        _EDGES,
        "a1 a4-6",
        (
            _at_edges("a1", 1_000, 1_000, f=-4_000, t=1_001),
            _at_edges("a1 a4-6", 6_000, 6_000, f=1_000, t=6_001),
        ),
    ),
    _timed(
        "that of a session spans its events, and the session ends 1 ms after the last",
        ("session 2 s", s.Session(2_000)),
        _EDGES,
        "a1-3 a4 a9",
        (
            _at_edges("a1-3 a4", 1_000, 4_000, f=1_000, t=4_001, interval=2_000),
            _at_edges("a9", 9_000, 9_000, f=9_000, t=9_001, interval=2_000),
        ),
    ),
    _timed(
        "with start and end assigned it is the interval of its window",
        ("every 10 s", s.Every(10_000)),
        _AS_LONG,
        "a12",
        (_at_edges("a12", 10_000, 19_999),),
    ),
    _timed(
        "with start alone the end stays",
        ("every 10 s", s.Every(10_000)),
        _AS_LONG[:1],
        "a12",
        (_at_edges("a12", 10_000, 19_999),),
    ),
    _timed(
        "what lies outside its window is dropped",
        ("every 10 s", s.Every(10_000)),
        (("start", s.Aggregate("Min", "A", "start")),),
        # a8-12 ends in [10, 20) and began before it.
        "a8-12 a21-22",
        (_at_edges("a21-22", 21_000, 29_999),),
    ),
    _timed(
        "windows one after the other follow each other, and those of one instant meet",
        ("every 10 s", s.Every(10_000)),
        _FROM_START[:1],
        "a1 a12",
        (),  # [0, 9.999] and [10, 19.999] are 1 ms apart: no gap of nothing
        detect=(
            "X as x then[..0 s] X as y",
            then(a("X", alias="x"), a("X", alias="y"), bound=s.Bound(None, 0)),
        ),
    ),
)


def _reported() -> WorkedCase:
    case = s.Case(then(A, B), assign=(("k", ref("A.n")),))
    definition = s.Definition("X", (case,), reported_ms=10_000)
    spec = s.Spec(types("A B"), (s.Subscription("S", s.Case(X)),), (definition,))
    text = (
        f"{head('A B')}define X(k) every 10 s\ndetect A then B\nassign k = A.n\n"
        "subscription S from tester to out\ndetect X\n"
    )
    events = [event("a1", n=1), event("b2"), event("b3"), event("b12")]
    expected = tuple(
        Expected({"X": ["a1", b]}, start=1000, end=end, values={"X": {"k": 1}})
        for b, end in (("b2", 2000), ("b3", 3000), ("b12", 12_000))
    )
    name = "every without aggr reports each by itself, with its own span"
    return WorkedCase(name, text, spec, events, expected, frozenset({"X"}))


MORE_WINDOWS = (*SESSIONS, *DAYS, *DISTINCT, *TIMES, _quantiles(), _reported())
