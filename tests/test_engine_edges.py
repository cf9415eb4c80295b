"""Patterns at their edges, over many small traces in which times meet.

Owns patterns that generated cases seldom hold: bounds that begin at 0, choices made again after
consumption, what long events keep open. Each is run over hundreds of traces of a few events that
begin and end on a few instants, as streams; what must come out is the reference's.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.generate import primitive_types
from tests.oracles.matcher import run
from tests.oracles.render import text_of
from tests.streams import Bench

TYPES = tuple(s.EventType(name, (("n", "int"),)) for name in "ABC")
SECOND_MS = 1_000
LONG = ("without", "overlaps", "contains", "concat", "equals", "parallel")
TRACES_FAST, TRACES_LONG = range(60), range(60, 400)

A, B, C = s.Atom("A"), s.Atom("B"), s.Atom("C")


def pair(op: s.Relation, left: s.Pattern, right: s.Pattern, low=None, high=None, context=None):
    bounded = low is not None or high is not None
    return s.Pair(op, left, right, s.Bound(low, high) if bounded else None, context)


def within(pattern: s.Pattern, ms: int, anchor: str | None = None) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(ms, anchor),))


def where(pattern: s.Pattern, op: str, left: str, right: str) -> s.Suffixed:
    condition = s.Compare((op,), (s.Ref(left, "n"), s.Ref(right, "n")))
    return s.Suffixed(pattern, (s.Where(condition),))


def case(pattern: s.Pattern, *consuming: str, context: s.Context | None = None) -> s.Case:
    return s.Case(pattern, context, consuming=consuming)


def twice(kind: str) -> tuple[s.Atom, s.Atom]:
    return s.Atom(kind, (), "x"), s.Atom(kind, (), "y")


CASES = {
    "a gap of nothing is at least nothing": case(pair("and", A, B, 0, 1_000)),
    "a gap of at least nothing": case(within(pair("and", A, B, 0), 4_000)),
    "a gap under recent": case(pair("and", A, B, 0, 1_000), context="recent"),
    "a bound at both its ends": case(pair("then", A, B, 1_000, 2_000)),
    "a bound chooses an older one": case(pair("then", A, B, 2_000), context="recent"),
    "a condition chooses an older one": case(
        where(pair("and", A, B), "<", "A", "B"), context="recent"
    ),
    "a condition chooses an older one before": case(
        where(pair("then", A, B), "<", "A", "B"), context="recent"
    ),
    "within a longer within": case(within(within(pair("and", A, B), 4_000), 2_000)),
    "within a longer within in a chain": case(
        within(within(pair("then", s.Listed(A), B), 4_000), 2_000)
    ),
    "within lets an older one go": case(within(pair("and", A, B), 2_000), context="recent"),
    "what was chosen is chosen again": case(
        pair("and", pair("and", A, B, None, 2_000), C, None, 2_000), "A", context="recent"
    ),
    "what was chosen is chosen again in a chain": case(
        pair("then", pair("then", A, B, None, 2_000), C, None, 3_000), "B", context="recent"
    ),
    "consumption goes by order": case(within(pair("and", A, B), 3_000), "A", "B"),
    "consumption of one side": case(pair("then", A, B, None, 3_000), "A"),
    "consumption of a namesake": case(within(pair("and", *twice("A")), 3_000), "x"),
    "consumption waits for last": case(within(pair("then", A, s.Last(B)), 3_000), "A"),
    "consumption waits for two last": case(
        within(pair("then", pair("then", A, s.Last(B)), s.Last(C)), 3_000), "B"
    ),
    "last beneath a bound": case(pair("then", A, s.Last(B), None, 2_000)),
    "last of two places beneath a bound": case(
        pair("then", A, s.Last(pair("then", B, C, None, 3_000)), None, 1_000)
    ),
    "last of two places": case(within(pair("then", s.Last(pair("then", A, B)), C), 4_000)),
    "last from an anchor": case(within(pair("and", s.Last(B), A), 2_000, "A")),
    "an anchor in a composite": case(within(pair("and", pair("and", A, B), C), 2_000, "B")),
    "an anchor in a later composite": case(within(pair("and", C, pair("and", A, B)), 2_000, "A")),
    "a long one still needs it": case(within(pair("and", pair("then", A, B), C), 3_000)),
    "overlaps and another": case(within(pair("and", pair("overlaps", A, B), C), 8_000)),
    "equals or either": case(
        s.Or(pair("equals", A, s.Atom("B", (), "x")), pair("meets", s.Atom("B", (), "y"), C))
    ),
    "what contains": case(pair("contains", A, pair("and", B, C))),
    "in parallel under recent": case(within(pair("parallel", A, B), 4_000), context="recent"),
    "pairs in their turn": case(
        s.Pair("and", pair("and", A, B, context="unrestricted"), C, None, "chronicle")
    ),
    "pairs before another in their turn": case(
        s.Pair("then", pair("and", A, B, context="unrestricted"), C, None, "chronicle")
    ),
    "a silence beside another, of each number": s.Case(
        within(pair("and", B, s.Absent(A, 2_000)), 9_000), group_by=("n",)
    ),
    "a silence of each number": s.Case(s.Absent(A, 2_000), group_by=("n",)),
    "a chain in its turn": case(
        within(pair("then", pair("then", A, B), C), 5_000), context="chronicle"
    ),
    "the first runs": case(within(pair("then", pair("then", A, B), C), 4_000), context="first"),
    "the latest runs": case(within(pair("then", pair("then", A, B), C), 4_000), context="latest"),
    "the latest that meet a condition": case(
        where(within(pair("then", pair("then", A, B), C), 6_000), "<=", "A", "B"),
        context="latest",
    ),
    "nothing else in the midst": case(s.Without(A, B)),
    "nothing else in the midst of two": case(s.Without(pair("then", A, C), B)),
    "nothing else for a while": case(s.Without(A, B, 2_000)),
    "nothing for a while that goes on for longer": case(
        s.Without(A, pair("then", B, C, None, 4_000), 1_000)
    ),
    "what is spent is still in the midst": case(
        within(s.Without(pair("then", twice("A")[0], B, context="recent"), twice("A")[1]), 6_000),
        "x",
    ),
    "what is spent is still the next": case(
        within(pair("and", s.Pair("then", A, B, next=True), C, context="recent"), 6_000), "C"
    ),
    "a list between": case(
        within(pair("then", pair("then", A, s.Listed(B)), C), 4_000), context="recent"
    ),
    "a list at the end": case(within(pair("then", A, s.Listed(B)), 2_000)),
    "two lists side by side at the end": case(
        within(pair("then", pair("then", A, s.Listed(B)), s.Listed(C)), 4_000)
    ),
    "two lists side by side between two": case(
        pair(
            "then",
            pair("then", pair("then", twice("A")[0], s.Listed(B)), s.Listed(C, True)),
            twice("A")[1],
            None,
            3_000,
        ),
        context="recent",
    ),
    "two in a row": case(s.Times(A, 2)),
    "a run": case(s.Run(A, s.Bound(1_000, 2_000))),
    "a run with others": case(within(pair("then", s.Run(A, s.Bound(0, 1_000)), B), 6_000)),
    "the second after": case(within(pair("then", A, s.Nth(2, B)), 4_000)),
    "next to each other": case(within(s.Pair("then", A, B, next=True), 5_000)),
    "one for each end": s.Case(within(pair("and", A, B), 3_000), thin="one"),
    "all for each end": s.Case(within(pair("and", A, B), 3_000), thin="collect"),
    "one that is spent": s.Case(within(pair("then", A, B), 3_000), consuming=("A",), thin="one"),
    "concat within": case(within(pair("concat", A, B), 3_000)),
}

DEFINED = {
    "spent and told on": (
        s.Definition("X", (case(within(pair("and", A, B), 2_000), "A"),)),
        case(pair("then", s.Atom("X"), C, None, 3_000), context="recent"),
    ),
    "last and told on": (
        s.Definition("X", (case(within(pair("then", A, s.Last(B)), 2_000)),)),
        case(within(pair("and", s.Atom("X"), C), 4_000), context="recent"),
    ),
    "last, spent and told on": (
        s.Definition("X", (case(within(pair("then", A, s.Last(B)), 2_000), "A"),)),
        case(pair("then", s.Atom("X"), C), context="recent"),
    ),
    "one and told on": (
        s.Definition("X", (s.Case(within(pair("and", A, B), 2_000), thin="one"),)),
        case(pair("then", s.Atom("X"), C), context="recent"),
    ),
    "silent and told on": (
        s.Definition("X", (case(s.Without(*twice("B"), 2_000), "x"),)),
        case(within(pair("and", s.Atom("X"), C), 4_000), context="recent"),
    ),
    "a run told on": (
        s.Definition("X", (case(within(pair("and", C, s.Run(A, s.Bound(0, 1_000))), 4_000)),)),
        case(within(pair("and", s.Atom("X"), C), 4_000), context="recent"),
    ),
    "put back and told on": (
        s.Definition(
            "X",
            (s.Case(within(pair("and", A, B), 3_000), assign=(("timestamp", s.Ref("A", "end")),)),),
        ),
        case(pair("then", s.Atom("X"), C), context="recent"),
    ),
    "counted and told on": (
        s.Definition(
            "X",
            (s.Case(A, assign=(("n", s.Aggregate("Count", "A")),)),),
            s.Every(2_000, 3_000),
        ),
        case(where(pair("then", *twice("X")), "<", "x", "y"), context="recent"),
    ),
    "counted at each and told on": (
        s.Definition(
            "X",
            (s.Case(A, assign=(("n", s.Aggregate("Count", "A")),)),),
            s.Trailing(2_000),
        ),
        case(within(pair("and", s.Atom("X"), B), 2_000), context="recent"),
    ),
}


def small_trace(
    draw: random.Random, types: tuple[str, ...], *, long: bool, early: bool = False
) -> list[dict[str, Any]]:
    """A few events on a few instants; half of the traces have readings alone, unless `long`.

    `early`: some come a millisecond before, so that the watermark stands right before an instant.
    """
    lasting = draw.choice((2, 6) if long else (0, 0, 1, 3))
    events = []
    for number in range(draw.randint(5, 11)):
        start = draw.randint(0, 5)
        end = start + (draw.randint(0, lasting) if long or draw.random() < 0.5 else 0)
        before_ms = draw.randint(0, 1) if early else 0
        event = {"type": draw.choice(types), "id": f"e{number}", "n": draw.randint(0, 2)}
        event |= {"start": start * SECOND_MS - before_ms, "end": end * SECOND_MS - before_ms}
        events.append(event)
    return events


def agree(name: str, spec: s.Spec, traces: range) -> None:
    bench = Bench(text_of(spec))
    types = primitive_types(spec)
    long = any(f" {relation} " in text_of(spec) for relation in LONG)
    with_results = 0
    for number in traces:
        draw = random.Random(f"{name}/{number}")
        events = small_trace(draw, types, long=long, early=number % 3 == 1 and not long)
        wanted = run(spec, events)
        found = bench.run(events, draw, moving=number % 4 == 0)
        wrong = [said for said in compare(spec, wanted, found) if not said.endswith("was due")]
        assert wrong == [], f"trace {number} of {name}\n{text_of(spec)}\n{events}"
        with_results += bool(wanted)
    assert with_results >= (0.05 if long else 0.1) * len(traces)


def spec_of(name: str) -> s.Spec:
    if name in DEFINED:
        definition, told = DEFINED[name]
        return s.Spec(TYPES, (s.Subscription("S", told),), (definition,))
    return s.Spec(TYPES, (s.Subscription("S", CASES[name]),))


@pytest.mark.parametrize("name", [*CASES, *DEFINED])
def test_a_pattern_at_its_edges_gives_what_the_reference_gives(name):
    agree(name, spec_of(name), TRACES_FAST)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [*CASES, *DEFINED])
def test_a_pattern_at_its_edges_gives_that_over_many_traces(name):
    agree(name, spec_of(name), TRACES_LONG)


def test_all_of_a_list_lie_within_the_distance_and_not_only_neighbours():
    text = """
    event A(n: int)
    event B(n: int)
    subscription S from a to b detect (A+ then B) within 1 h spread 10 m
    """
    for last_m, results in ((10, 1), (11, 0)):
        engine = headwater.Engine(text, lateness_ms=None)
        places = (("A", 0), ("A", 5), ("A", 9), ("B", last_m))
        engine.push(
            {"type": kind, "id": f"e{at}", "timestamp": at, "position": {"x": x, "y": 0}}
            for at, (kind, x) in enumerate(places)
        )
        assert len(engine.finish()) == results


def streamed(detect: str, *events: tuple[str, str, float]) -> list[list[list[str]]]:
    """For each event of a stream in order, the ids of what its coming made known."""
    text = f"event A()\nevent B()\nevent C()\nsubscription S from tester to out\ndetect {detect}"
    engine = headwater.Engine(text)
    found = []
    for kind, name, hours in events:
        event = {"type": kind, "id": name, "timestamp": round(hours * 3_600_000)}
        results = engine.push([event])
        found.append([[i for ids in one["events"].values() for i in ids] for one in results])
    return found


def test_an_older_candidate_stays_for_a_bound_however_long():
    found = streamed(
        "A then[190 h.., recent] B",
        *(
            ("A", "a0", 0),
            ("A", "a3", 3),
            ("C", "c", 180),
            ("A", "a", 185),
            ("B", "b", 191),
            ("C", "d", 192),
        ),
    )
    assert found[-1] == [["a0", "b"]]


def test_what_may_still_be_in_time_is_there_where_all_is_found_again():
    """Each B finds the A consumed that the one before it has chosen, and takes an older one."""
    found = streamed(
        "A then[recent] B within 10 h consuming A",
        *(("A", f"a{at}", at) for at in (1, 3, 5)),
        *(("B", f"b{at}", at) for at in (9, 10, 10.5, 60)),
    )
    pairs = [pair for batch in found for pair in batch]
    assert pairs == [["a5", "b9"], ["a3", "b10"], ["a1", "b10.5"]]


def test_the_last_one_is_told_as_soon_as_no_other_can_come():
    found = streamed(
        "A then last B within 5 h",
        *(("A", "a", 0), ("B", "b1", 1), ("B", "b2", 2), ("C", "c", 5 + 1 / 3_600_000)),
    )
    assert found == [[], [], [], [["a", "b2"]]]


def test_the_last_of_two_is_told_as_soon_as_no_other_can_come():
    found = streamed(
        "A then[..5 h] last (B then[..2 h] C)",
        *(("A", "a", 0), ("B", "b", 1), ("C", "c", 2), ("A", "d", 7), ("A", "e", 7.1)),
    )
    assert found == [[], [], [], [], [["a", "b", "c"]]]


@pytest.mark.parametrize(
    "detect",
    [
        "A during B",
        "B contains A",
        "(A and C within 3 h) during B",
        "B contains (A and C within 3 h)",
        "A without[1 s] C during B",
    ],
)
def test_the_first_that_lasts_finds_what_came_while_it_lasted(detect):
    text = f"event A()\nevent B()\nevent C()\nsubscription S from tester to out\ndetect {detect}"
    events = [
        {"type": kind, "id": name, "start": start * 3_600_000, "end": end * 3_600_000}
        for kind, name, start, end in (
            ("A", "a", 5, 5),
            ("C", "c", 7, 7),
            ("A", "a8", 8, 8),
            ("C", "c9", 9, 9),
            ("B", "b", 0, 10),
            ("C", "c11", 11, 11),
        )
    ]
    stream, recording = headwater.Engine(text), headwater.Engine(text, lateness_ms=None)
    found = [one for event in events for one in stream.push([event])]
    recording.push(events)
    assert [one["events"] for one in found] == [one["events"] for one in recording.finish()] != []


def test_what_chronicle_has_spent_stays_spent_where_the_agent_is_moved():
    text = (
        "event A()\nevent B()\nevent C()\nsubscription S from tester to out\n"
        "detect (A and[unrestricted] B within 9 s) then[chronicle] C"
    )
    kinds = ("A", "B", "C", "B", "C")  # the second C has only a pair with the spent A
    events = [
        {"type": kind, "id": f"{kind}{at}", "timestamp": at * 1_000}
        for at, kind in enumerate(kinds)
    ]
    for moved_after in range(len(events) + 1):
        found = Bench(text).run_moving(events, moved_after)
        assert [one["events"] for one in found] == [{"A": ["A0"], "B": ["B1"], "C": ["C2"]}]


def test_a_choice_among_windows_outlasts_a_move_of_the_agent():
    text = """
    event A(n: int)
    event B(n: int)
    define Count(n) aggr every 2 s detect A assign n = Count(A)
    define Mean(n) aggr every 3 s detect B assign n = Avg(B.n)
    subscription S from tester to out
    detect last Count(n > 0) as counted and Mean as mean within 5 s from counted
    assign n = counted.n, mean = mean.n
    consuming mean
    """
    events = [
        {"type": kind, "id": f"{kind}{at}", "timestamp": at * 500, "n": at}
        for at in range(40)
        for kind in "AB"
    ]
    whole = headwater.Engine(text).push(events)
    assert len(whole) > 3
    for moved_after in range(0, len(events), 3):
        found = Bench(text).run_moving(events, moved_after)
        assert found[: len(whole)] == whole


def test_nothing_fits_into_a_list_of_a_chain_that_stands_for_other_times_alone():
    """By its nominal time c3 lies before a, and so does not come within 6 s from it."""
    text = (
        "event A()\nevent C()\nsubscription S from tester to out\n"
        "detect A then C as y then[..4 s] C* as z within 6 s from A"
    )
    events = [
        {"type": "C", "id": "c3", "timestamp": 3_000, "uncertainty": 1_000},
        {"type": "A", "id": "a4", "timestamp": 4_000, "uncertainty": 1_000},
        {"type": "C", "id": "c4", "timestamp": 4_000},
    ]
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    found = [(one["events"]["y"], one["events"].get("z", [])) for one in engine.finish()]
    assert sorted(found) == [(["c3"], []), (["c4"], [])]


@pytest.mark.parametrize("lateness_ms", [0, 1_000, 4_000, None])
def test_of_what_may_follow_the_older_is_chosen_where_the_latest_cannot(lateness_ms):
    """The second B has passed for certain before the C begins; the first may come after it."""
    text = "event B()\nevent C()\nsubscription S from a to b detect C then[recent] B"
    times = [("B", "b1", 1_000, 2_000), ("B", "b2", 1_000, 1_000), ("C", "c", 3_000, 1_000)]
    events = [
        {"type": kind, "id": name, "source": "s", "timestamp": at, "uncertainty": unsure}
        for kind, name, at, unsure in times
    ]
    engine = headwater.Engine(text, lateness_ms=lateness_ms)
    (result,) = engine.push(events) + engine.finish()
    assert result["events"] == {"C": ["c"], "B": ["b1"]}
    assert result["certainty"] == "maybe"


@pytest.mark.parametrize("since_ms", [-9_000, 9_000])
@pytest.mark.parametrize("named", ["x", "y"])
def test_of_an_event_beside_a_silence_and_alone_the_place_in_the_text_decides(named, since_ms):
    """Both end with the event and begin with it; `one` reports that which the text has first."""
    sides = {"x": "C as x", "y": "C as y and absent B for 2 s"}
    other = "y" if named == "x" else "x"
    detect = f"detect[one] {sides[named]} or {sides[other]}"
    text = f"event B()\nevent C()\nsubscription S from a to b {detect}"
    events: list[dict[str, Any]] = [
        {"type": "B", "id": "b", "source": "s", "timestamp": since_ms},
        {"type": "C", "id": "c", "source": "s", "start": since_ms, "end": since_ms + 3_000},
    ]
    engine = headwater.Engine(text, lateness_ms=None)
    results = engine.push(events) + engine.finish()
    found = [one for one in results if one["end"] == since_ms + 3_000]
    assert [one["events"] for one in found] == [{named: ["c"]}]
