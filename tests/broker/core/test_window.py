"""Windows in cases worked out by hand: edges, standing groups, assigned times, limits, promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pytest

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.event import Detected, event_class
from broker.engine.event.identity import digest
from broker.engine.window.agent import WindowAgent
from language.tree import Case, Select, Window
from tests.broker.core.window_support import CLASSES, again, agent_of, task_of

pytestmark = pytest.mark.usefixtures("both_ways")

DECLARED = (
    "event A(x: float, i: int, s: text, g: text)\nevent B(x: float, i: int, s: text, g: text)"
)
ALL = WATERMARK_END


def text_of(header: str, body: str) -> str:
    return (
        f"{DECLARED}\ndefine W{header}\n{body}\nsubscription S seq 1 from tester to out\ndetect W\n"
    )


def a(end: int, x: float | None = None, **more: Any) -> Any:
    return _event("A", end, x, **more)


def b(end: int, x: float | None = None, **more: Any) -> Any:
    return _event("B", end, x, **more)


def _event(name: str, end: int, x: float | None, **more: Any) -> Any:
    fields = {f"a_{k}" if k in ("i", "s", "g") else k: v for k, v in more.items()}
    return CLASSES[name](**{"id": f"{name}{end}", "start": end, "end": end, "a_x": x, **fields})


def report(text: str, *events: Any) -> list[Detected]:
    """All that the events give; A comes to the first leaf, B to the second."""
    return feed(agent_of(text), ALL, *events)


def feed(agent: WindowAgent, watermark: int, *events: Any) -> list[Detected]:
    leaves = [[e for e in events if e.event_type == name] for name in "AB"]
    return agent.feed([(leaf, own) for leaf, own in enumerate(leaves) if own], watermark)


def spans(made: list[Detected]) -> list[tuple[int, int]]:
    return [(event.start, event.end) for event in made]


# --- which events a window has ----------------------------------------------------------------

COUNT = text_of("(n) aggr every 10 ms", "detect A assign n = Count(A)")
HOPPING = text_of("(n) aggr every 10 ms range 25 ms", "detect A assign n = Count(A)")
GAPS = text_of("(n) aggr every 10 ms range 4 ms", "detect A assign n = Count(A)")
SLIDING = text_of("(n) aggr range 10 ms", "detect A assign n = Count(A)")


def test_tumbling_windows_begin_at_multiples_of_their_length_also_before_the_epoch():
    made = report(COUNT, a(-11), a(-10), a(-1), a(0), a(9), a(10))
    assert [(e.tie[2], e.a_n) for e in made] == [(-2, 1), (-1, 2), (0, 2), (1, 1)]
    assert spans(made) == [(-11, -11), (-1, -1), (9, 9), (19, 19)]


GROUPED = "detect A assign n = Count(A), x = Sum(A.x) group by g"
RUNS = {
    "each pane of one window": "(n, x) aggr every 100 ms",
    "panes of several": "(n, x) aggr every 100 ms range 250 ms",
    "panes of none": "(n, x) aggr every 100 ms range 40 ms",
    "days": '(n, x) aggr every 1 days in "Europe/Zurich"',
}


@pytest.mark.parametrize("header", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("late", [0, 1, 7])
@pytest.mark.parametrize("groups_max", [3, 100])
def test_a_long_batch_gives_what_its_events_give_one_by_one(header, late, groups_max):
    """Of some panes it has many events, of others few; some of its events come out of order."""
    step = 4_000_000 if "days" in header else 1
    ends = [at * step + gap for at, gap in zip(range(0, 600, 2), [0, 0, 0, 90] * 75, strict=True)]
    ends = [end for end in sorted(ends) if not 300 * step <= end < 380 * step]
    for at in range(late):
        ends[30 * at], ends[30 * at + 29] = ends[30 * at + 29], ends[30 * at]
    events = [
        a(end, at / 8, id=f"e{at}", g=None if at % 11 == 0 else f"g{at % 5}")
        for at, end in enumerate(ends)
    ]
    found = []
    for size in (len(events), 70, 1):
        agent = agent_of(text_of(header, GROUPED), groups_max=groups_max)
        made = feed(agent, 30 * step)  # what ends by then is too late for a window that closed
        for at in range(0, len(events), size):
            made += feed(agent, 30 * step, *events[at : at + size])
        dropped = agent.dropped()
        made += feed(agent, ALL)
        found.append([[(e.id, e.start, e.end, e.a_n, e.a_x) for e in made], dropped])
    assert found[0] == found[1] == found[2]
    assert found[0][0]


def test_a_hopping_window_reaches_back_from_its_tick_and_leaves_the_tick_out():
    made = report(HOPPING, a(0), a(20))
    # k covers [10k - 25, 10k): 0 lies in 1 and 2, 20 in 3 and 4.
    assert [(e.tie[2], e.a_n) for e in made] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    made = report(HOPPING, a(5), a(6), a(29))
    assert [(e.tie[2], e.a_n) for e in made] == [(1, 2), (2, 2), (3, 3), (4, 1), (5, 1)]
    assert spans(made)[2] == (29, 29)


def test_an_event_between_windows_is_in_none_and_is_no_loss():
    agent = agent_of(GAPS)
    made = feed(agent, ALL, a(5), a(6), a(9), a(10), a(15))
    assert [(e.tie[2], e.a_n) for e in made] == [(1, 2)]
    assert set(agent.dropped().values()) == {0}


def test_a_sliding_window_reaches_back_its_whole_range_and_ends_with_each_event():
    made = report(SLIDING, a(0), a(10), a(11), a(21))
    assert [(e.tie[2], e.a_n) for e in made] == [("A0", 1), ("A10", 2), ("A11", 2), ("A21", 2)]
    assert spans(made) == [(0, 0), (10, 10), (11, 11), (21, 21)]


def test_of_events_at_one_instant_the_later_ones_in_order_see_the_earlier_ones():
    made = report(SLIDING, a(5, id="z"), a(5, id="b"), a(5, id="é"), a(5, id="c", start=4))
    by_id = {e.tie[2]: e.a_n for e in made}
    assert by_id == {"c": 1, "b": 2, "z": 3, "é": 4}


def test_an_event_of_two_operands_closes_one_sliding_window():
    text = text_of(
        "(p, q) aggr range 10 ms",
        "detect A as a1 and outer A(i > 0) as a2\n assign p = Count(a1), q = Count(a2)",
    )
    agent = agent_of(text)
    events = [a(1, i=1), a(2, i=0)]
    made = agent.feed([(0, events), (1, events[:1])], ALL)
    assert [(e.tie[2], e.a_p, e.a_q) for e in made] == [("A1", 1, 1), ("A2", 2, 1)]


def test_what_a_silent_group_still_holds_is_what_a_later_event_reaches():
    text = text_of("(n) aggr range 1 s", "detect A assign n = Count(A)")
    for end, wanted in ((1_005, 2), (1_006, 1)):
        agent = agent_of(text)
        feed(agent, 4)
        feed(agent, 1_004, a(5))
        (made,) = feed(agent, ALL, a(end))
        assert made.a_n == wanted


@pytest.mark.parametrize(
    ("every", "reach"), [(3, 30), (3, 31), (3, 32), (2, 25), (30, 90), (1, 40), (3, 101)]
)
@pytest.mark.parametrize("more", ["", ", m = Median(A.x)"])
def test_windows_of_many_panes_are_full(every: int, reach: int, more: str):
    """An event a millisecond, so every window is known; with and without values kept."""
    text = text_of(
        f"(n, s, f{', m' if more else ''}) aggr every {every} ms range {reach} ms",
        f"detect A assign n = Count(A), s = Sum(A.x), f = First(A.x){more}",
    )
    agent = agent_of(text)
    made = []
    for t in range(200):
        made += feed(agent, t, a(t, float(t)))
        if t % 37 == 0:
            agent = again(agent, partial(agent_of, text))
    assert len(made) == 200 // every
    for event in made:
        k = event.tie[2]
        inside = range(max(0, k * every - reach), k * every)
        assert (event.a_n, event.a_s, event.a_f) == (len(inside), sum(inside), inside[0])
        assert event.start == event.end == k * every - 1


# --- groups -----------------------------------------------------------------------------------


def test_a_group_stands_if_every_operand_that_is_not_outer_has_an_event():
    body = "detect {} and {} assign p = Count(A), q = Count(B) group by g"
    events = (a(1, g="u"), b(2, g="u"), a(3, g="v"), b(4, g="w"), a(5), b(6))
    standing = {
        ("A", "B"): [(1, 1)],
        ("A", "outer B"): [(1, 1), (1, 0)],
        ("outer A", "B"): [(1, 1), (0, 1)],
        ("outer A", "outer B"): [(1, 1), (1, 0), (0, 1)],
    }
    for operands, wanted in standing.items():
        made = report(text_of("(p, q) aggr every 10 ms", body.format(*operands)), *events)
        assert [(e.a_p, e.a_q) for e in made] == wanted


def test_a_group_is_the_values_of_all_its_keys():
    text = text_of(
        "(n, where, g) aggr every 10 ms",
        "detect A assign n = Count(A), where = group.location, g = group.g group by location, g",
    )
    made = report(
        text,
        *[a(t, location=p, g=g) for t, (p, g) in enumerate([("p", "u"), ("p", "v"), ("p", "u")])],
        a(3, location="p"),
        a(4, g="u"),
    )
    assert [(e.a_where, e.a_g, e.a_n) for e in made] == [("p", "u", 2), ("p", "v", 1)]
    assert made[0].location is None


def test_keys_that_are_equal_numbers_are_one_group_with_one_name():
    """Which of 1, 1.0, 0.0 and -0.0 comes first must not show."""
    text = (
        "event A(k: int)\nevent B(k: float)\n"
        "define W(k, n) aggr every 10 ms\n"
        "detect outer A and outer B assign k = group.k, n = Count(A) + Count(B) group by k\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    whole, real = event_class("A", {"k": "int"}), event_class("B", {"k": "float"})
    events = [whole(id="e", start=1, end=1, a_k=1), real(id="f", start=2, end=2, a_k=1.0)]
    events += [real(id="g", start=3, end=3, a_k=-0.0), real(id="h", start=4, end=4, a_k=0.0)]
    for order in (events, events[::-1]):
        agent = agent_of(text)
        for event in order:
            agent.feed([("AB".index(event.event_type), [event])], WATERMARK_NONE)
        made = agent.feed([], ALL)
        assert [(repr(e.a_k), e.a_n) for e in made] == [("1.0", 2), ("0.0", 2)]
        ids = [digest("window", task_of(text).key, 0, 0, [k]) for k in (1.0, 0.0)]
        assert [e.id for e in made] == ids


# --- aggregates and what surrounds them -------------------------------------------------------


def test_aggregates_over_none_and_over_nulls():
    functions = ["Count", "Sum", "Avg", "StdDev", "Min", "Max", "Median", "First", "Last"]
    functions.append("CountDistinct")
    names = ", ".join(f"v{at}" for at in range(len(functions)))
    values = ", ".join(f"v{at} = {name}(B.x)" for at, name in enumerate(functions))
    text = text_of(
        f"({names}, q) aggr every 10 ms",
        f"detect A and outer B assign {values}, q = Quantile(B.x, 0.3)",
    )
    for events in ([a(1)], [a(1), b(2), b(3)]):
        (event,) = report(text, *events)
        found = event.attribute_values()
        assert found == {"v0": 0, "v1": 0.0, "v9": 0}


def test_values_worked_out_by_hand():
    text = text_of(
        "(s, m, d, l, h, md, q, f, z, n, c) aggr every 1 s",
        "detect A assign s = Sum(A.x), m = Avg(A.x), d = StdDev(A.x), l = Min(A.x), h = Max(A.x),"
        " md = Median(A.x), q = Quantile(A.x, 0.75), f = First(A.x), z = Last(A.x),"
        " n = Count(A.x), c = CountDistinct(A.x)",
    )
    xs = [2.0, 4.0, 4.0, None, 4.0, 5.0, 5.0, 7.0, 9.0]
    (event,) = report(text, *[a(t, x) for t, x in enumerate(xs)])
    assert event.attribute_values() == {
        "s": 40.0, "m": 5.0, "d": 2.0, "l": 2.0, "h": 9.0, "md": 4.5, "q": 5.5,
        "f": 2.0, "z": 9.0, "n": 8, "c": 5,
    }  # fmt: skip


def test_q_is_the_number_as_written():
    """A tenth of the way through eleven values is exactly the second."""
    text = text_of("(q) aggr every 1 s", "detect A assign q = Quantile(A.x, 0.1)")
    (event,) = report(text, *[a(t, x) for t, x in enumerate([0.0, 0.0, *[1e18] * 9])])
    assert event.a_q == 0.0


def test_sums_do_not_depend_on_order():
    text = text_of("(s, m) aggr every 1 s", "detect A assign s = Sum(A.x), m = Avg(A.x)")
    for xs in ([1e16, 1.0, -1e16], [1.0, 1e16, -1e16], [-1e16, 1e16, 1.0]):
        (event,) = report(text, *[a(t, x) for t, x in enumerate(xs)])
        assert (event.a_s, event.a_m) == (1.0, 1 / 3)


def test_integers_stay_exact_and_are_null_where_no_event_carries_them():
    text = text_of(
        "(s, m, back, half) aggr every 1 s",
        "detect A assign s = Sum(A.i), m = Avg(A.i), back = Sum(A.i) - Max(A.i),"
        " half = Sum(A.i) / 2",
    )
    most = 2**63 - 1
    (event,) = report(text, a(1, i=most), a(2, i=most))
    assert event.attribute_values() == {"m": float(most), "back": most, "half": float(most)}


def test_what_no_float_reaches_is_null():
    text = text_of("(s, t) aggr every 1 s", "detect A assign s = Sum(A.x), t = Max(A.x) * 10")
    (event,) = report(text, a(1, 1e308), a(2, 1e308))
    assert event.attribute_values() == {}


def test_arguments_and_values_may_be_expressions():
    text = text_of(
        "(s, t, u, hot, w, age) aggr every 1 s",
        "detect A assign s = Sum(A.x * A.i + 0.5), t = max(Count(A), 7) - group.i,"
        " u = Sum(A.i * group.i), hot = Max(A.x) > 20, w = round(Avg(A.x)) / 0,"
        " age = timestamp - start group by i",
    )
    (event,) = report(text, a(1, 2.0, i=3), a(2, 4.5, i=3), a(4, None, i=3))
    values = {"s": 20.5, "t": 4, "u": 27, "hot": False, "age": 3}
    assert event.attribute_values() == values


def test_an_argument_past_a_floats_range_is_null():
    text = text_of(
        "(n, s) aggr every 1 s", "detect A assign n = Count(A.x * A.x), s = Sum(A.x * A.x)"
    )
    (event,) = report(text, a(1, 1e200), a(2, 2.0))
    assert event.attribute_values() == {"n": 1, "s": 4.0}


def test_of_the_same_argument_one_thing_is_kept():
    text = text_of(
        "(n, s, m, d, o) aggr every 1 s",
        "detect A assign n = Count(A.x), s = Sum(A.x), m = Avg(A.x), d = StdDev(A.x), o = Avg(A.i)",
    )
    shape = agent_of(text)._windows._shape
    assert len(shape.aggregation.keepings) == 2


def test_an_attribute_that_another_case_makes_a_float_is_one_here():
    text = (
        f"{DECLARED}\ndefine W(v) aggr every 1 s\n"
        "case 0: detect A assign v = Count(A)\ncase 1: detect B assign v = Avg(B.x)\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    (event,) = report(text, a(1))
    assert repr(event.a_v) == "1.0"


# --- the event --------------------------------------------------------------------------------


def test_a_windows_event_is_named_by_task_case_window_and_group():
    text = text_of("(n) aggr every 10 ms", "detect A assign n = Count(A) group by g")
    key = task_of(text).key
    (event,) = report(text, a(12, g="u", id="z"), a(13, g="u"), a(11, g="u", id="f"))
    assert event.id == digest("window", key, 0, 1, ["u"])
    assert (event.ids, event.tie) == (("f", "z", "A13"), ("W", 0, 1))
    text = text_of("(n) aggr range 10 ms", "detect A assign n = Count(A) group by g")
    made = report(text, a(12, g="u"), a(13, g="u"))
    closing = (["A12", 12], ["A13", 13])
    ids = [digest("window", task_of(text).key, 0, one, ["u"]) for one in closing]
    assert [event.id for event in made] == ids


@pytest.mark.parametrize(
    ("assign", "wanted"),
    [
        ("n = Count(A)", [0, 0]),
        ("n = Count(A), start = window.start", [0, 0]),
        ("n = Count(A), timestamp = Max(A.end)", [7, 1]),
        ("n = Count(A), start = start", [7, 1]),
        ("n = Count(A), timestamp = Max(B.end)", [0, 0]),  # null: the window's own time stands
        ("n = Count(A), start = window.start, end = Max(B.end)", [0, 0]),
        ("n = Count(A), start = min(window.start, start)", [7, 1]),
    ],
)
def test_a_window_is_certain_of_its_time_but_where_events_say_it(assign: str, wanted: list[int]):
    """Its edges are known; what comes of events is as uncertain as the worst of them."""
    events = [a(1, uncertainty=3), a(2, uncertainty=7), a(30, uncertainty=1)]
    names = ", ".join(part.split(" = ")[0].strip() for part in assign.split(", ") if " = " in part)
    text = text_of(f"({names}) aggr every 10 ms", f"detect A and outer B assign {assign}")
    assert [e.uncertainty for e in report(text, *events)] == wanted


def test_the_events_of_a_range_are_certain_of_their_time_and_those_of_a_session_are_not():
    events = [a(1, uncertainty=3), a(2, uncertainty=7), a(30, uncertainty=1)]
    assert [e.uncertainty for e in report(SLIDING, *events)] == [0, 0, 0]
    session = text_of("(n) aggr session 5 ms", "detect A assign n = Count(A)")
    assert [e.uncertainty for e in report(session, *events)] == [7, 1]


def test_what_comes_out_together_is_in_order():
    text = text_of("(n) aggr every 10 ms", "detect A assign n = Count(A) group by g")
    made = report(text, a(8, g="u"), a(3, g="v"), a(5, g="w"), a(12, g="u"), a(11, g="v"))
    assert [(e.end, *e.ids) for e in made] == [
        (9, "A3"), (9, "A5"), (9, "A8"), (19, "A11"), (19, "A12"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("assign", "span"),
    [
        ("", (9, 9)),
        (", timestamp = Min(A.timestamp)", (4, 4)),
        (", timestamp = start", (2, 2)),
        (", timestamp = Max(B.timestamp)", (9, 9)),  # null: the window's last instant stands
        (", start = start, end = timestamp + 1 ms", (2, 9)),
        (", start = Min(A.timestamp), end = Max(B.end)", (4, 9)),
        (", start = window.start", (0, 9)),
        (", start = window.start, end = window.end - 1 ms", (0, 9)),
        (", start = window.start, end = end", (0, 8)),
        (", timestamp = window.start + 3 ms", (3, 3)),
        (", start = end, end = start", "start_after_end"),
        (", end = Max(A.end)", "start_after_end"),  # it begins at 9
        (", start = start, end = timestamp + 2 ms", "outside_window"),
        (", timestamp = Max(A.end) + 2 ms", "outside_window"),
    ],
)
def test_assigned_times_take_the_place_of_the_windows(assign: str, span: tuple[int, int] | str):
    """What lies outside the window is dropped and counted."""
    if "timestamp = Max(A.end) + 2" in assign:
        assign = assign.replace("timestamp", "start = window.start, end")
    names = [part.split(" = ")[0].strip() for part in assign.split(",") if part.strip()]
    text = text_of(
        f"({', '.join(['n', *names])}) aggr every 10 ms",
        f"detect A and outer B assign n = Count(A){assign}",
    )
    agent = agent_of(text)
    made = feed(agent, ALL, a(4, start=2), a(6), a(8))
    assert spans(made) == ([] if isinstance(span, str) else [span])
    dropped = {reason: count for reason, count in agent.dropped().items() if count}
    assert dropped == ({span: 1} if isinstance(span, str) else {})


def test_an_event_that_began_before_its_window_may_put_that_of_the_window_outside():
    text = text_of(
        "(n, start) aggr every 10 ms", "detect A assign n = Count(A), start = Min(A.start)"
    )
    agent = agent_of(text)
    made = feed(agent, ALL, a(4, start=-1), a(12, start=10))
    assert (spans(made), agent.dropped()["outside_window"]) == ([(10, 19)], 1)
    assert again(agent, partial(agent_of, text)).dropped()["outside_window"] == 1


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        ("every 10 ms", [(0, 10), (10, 20)]),
        ("every 10 ms range 15 ms", [(-5, 10), (5, 20), (15, 30)]),
        ("range 8 ms", [(-4, 5), (4, 13), (10, 19)]),
        ("session 3 ms", [(1, 5), (12, 19)]),
        ('every 1 day in "UTC"', [(0, 86_400_000)]),
    ],
)
def test_a_window_has_a_start_and_an_end(window: str, wanted: list[tuple[int, int]]):
    """Half open: that of a session ends 1 ms after its last end."""
    text = text_of(
        f"(f, t) aggr {window}",
        "detect A and outer B(i > 0) assign f = window.start, t = window.end",
    )
    made = report(text, a(4, start=1), a(12), a(18, start=13))
    assert [(e.a_f, e.a_t) for e in made] == wanted


def test_post_knows_the_window_too():
    text = text_of(
        "(f, t, start) aggr every 10 ms",
        "pre detect A assign f = window.start group by g\n"
        "post where f = Min(f), t = window.end, start = window.start",
    )
    made = report(text, a(12, g="u"), a(13, g="v"))
    assert [(e.a_f, e.a_t, e.start, e.end) for e in made] == [(10, 20, 10, 19)]


def test_a_snapshot_of_an_earlier_release_goes_on_with_the_times_of_this_one():
    """Nothing of what is open has changed but what is counted besides."""
    agent = agent_of(COUNT)
    feed(agent, 3, a(1), a(2))
    state = agent.state()
    del state["outside"]
    other = agent_of(COUNT)
    other.restore(state)
    assert spans(feed(other, ALL, a(5))) == [(9, 9)]


@pytest.mark.parametrize("window", ["every 10 ms", "range 10 ms", "session 5 ms", "every 5 ms"])
def test_source_location_and_position_are_null_unless_assigned(window: str):
    plain = text_of(f"(n) aggr {window}", "detect A assign n = Count(A)")
    text = text_of(
        f"(n, source, location, position) aggr {window}",
        "detect A assign n = Count(A), source = First(A.source), location = Last(A.location),"
        " position = Last(A.position)",
    )
    here, there = [45.0, 7.0], [46.0, 7.5]
    events = [
        a(1, source="s", location="p", position=here),
        a(2, source="t", location="q", position=there),
        a(3),
    ]
    found = [(e.source, e.location, e.position) for e in report(plain, *events)]
    assert set(found) == {(None, None, None)}
    made = report(text, *events)[-1]
    assert (made.source, made.location, made.position) == ("s", "q", there)
    assert made.a_n == 3


def test_a_group_may_be_what_is_assigned():
    """As the source of an event, or its location: a key of these definitions' users."""
    text = text_of(
        "(n, source, location) aggr every 10 ms",
        "detect A assign n = Count(A), source = group.source, location = group.g"
        " group by source, g",
    )
    made = report(text, a(1, source="s", g="u"), a(2, source="s", g="v"))
    assert [(e.source, e.location, e.a_n) for e in made] == [("s", "u", 1), ("s", "v", 1)]


def test_a_windows_event_is_as_certain_as_the_weakest_inside():
    text = (
        "event T(v: int)\ndefine D(v) detect T assign v = T.v\n"
        "define W(n) aggr {} detect D assign n = Count(D)\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    wanted = {
        "range 10 ms": ["yes", "maybe", "maybe", "maybe", "yes"],
        "every 10 ms": ["maybe", "yes", "maybe", "yes"],
        "every 10 ms range 20 ms": ["maybe", "maybe", "maybe", "maybe", "yes", "yes"],
    }
    for window, certainties in wanted.items():
        whole = text.format(window)
        task = task_of(whole)
        made_class = event_class(f"D@{task.needs['D']}", {"v": "int"}, detected=True)
        events = [
            made_class(id=str(t), start=t, end=t, constituents=(str(t),), tie=("D", 0), certainty=c)
            for t, c in ((0, "yes"), (5, "maybe"), (10, "yes"), (20, "maybe"), (45, "yes"))
        ]
        agent = agent_of(whole)
        made = agent.feed([(0, events)], 7)
        made += again(agent, partial(agent_of, whole)).feed([], ALL)
        assert [event.certainty for event in made] == certainties


def test_maybe_drop_leaves_out_what_is_not_certain():
    text = (
        "event T(v: int)\ndefine D(v) detect T assign v = T.v\n"
        "define W(n) aggr every 10 ms detect D assign n = Count(D)\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    task = task_of(text)
    (case,) = task.node.cases  # type: ignore[union-attr]
    dropping = replace(case, detect=replace(case.detect, maybe_drop=True))
    agent = WindowAgent(task, dropping, event_class("W", {"n": "int"}, detected=True))
    made_class = event_class(f"D@{task.needs['D']}", {"v": "int"}, detected=True)
    events = [
        made_class(id=str(t), start=t, end=t, constituents=(str(t),), tie=("D", 0), certainty=c)
        for t, c in ((1, "maybe"), (12, "yes"))
    ]
    assert spans(agent.feed([(0, events)], ALL)) == [(19, 19)]


# --- pre and post -----------------------------------------------------------------------------

PEOPLE = """
event Tracking(direction: int, left: text, right: text)
define MoveIn(location, timestamp)
  detect Tracking(direction = 0)
  assign location = Tracking.left, timestamp = Tracking.timestamp
define MoveOut(location, timestamp)
  detect Tracking(direction = 1)
  assign location = Tracking.left, timestamp = Tracking.timestamp
define PeopleCount2Mins(location, count, timestamp) aggr every 2 mins
pre
  detect outer MoveIn and outer MoveOut
  assign location = group.location, count = Count(MoveIn) - Count(MoveOut),
         timestamp = Max(MoveOut.timestamp)
  group by location
post
  where location = group.location, count = Sum(count), timestamp = Max(timestamp)
  group by location
subscription S seq 1 from tester to out
detect PeopleCount2Mins
"""


def test_the_people_counter():
    """Who only came in has no last leaving: that event stays at the window's last instant."""
    task = task_of(PEOPLE, "PeopleCount2Mins")
    agent = agent_of(PEOPLE, "PeopleCount2Mins")

    def move(name: str, second: int, room: str) -> Any:
        made = event_class(f"{name}@{task.needs[name]}", {}, detected=True)
        ids = (f"{name}-{second}",)
        ms = second * 1000
        return made(id=ids[0], start=ms, end=ms, location=room, constituents=ids, tie=(name, 0))

    ins = [
        move("MoveIn", s, room)
        for s, room in [(10, "lab"), (50, "lab"), (70, "hall"), (130, "lab")]
    ]
    outs = [move("MoveOut", s, room) for s, room in [(20, "lab"), (121, "lab"), (125, "lab")]]
    made = agent.feed([(1, outs), (0, ins)], ALL)
    rows = [(e.location, e.a_count, e.start // 1000, e.end // 1000, e.tie[2]) for e in made]
    assert rows == [("lab", 1, 20, 20, 0), ("hall", 1, 119, 119, 0), ("lab", -1, 125, 125, 1)]
    assert made[0].ids == ("MoveIn-10", "MoveOut-20", "MoveIn-50")


def test_post_combines_the_partial_results_of_a_coarser_group():
    text = text_of(
        "(location, n, least, mean, rooms) aggr every 10 ms",
        "pre detect A and outer B\n"
        "assign location = group.location, n = Count(A), least = Min(A.x), room = group.g\n"
        "group by location, g\n"
        "post where location = group.location, n = Sum(n), least = Min(least),"
        " mean = Avg(n + 0.5), rooms = CountDistinct(room)\n"
        "group by location",
    )
    made = report(
        text,
        a(2, 3.0, location="p", g="v"),
        a(1, 5.0, location="p", g="u"),
        a(3, None, location="p", g="v"),
        a(4, None, location="q", g="u"),
        b(5, None, location="p", g="w"),  # stands nowhere: no A with it
    )
    values = [(e.location, e.attribute_values(), e.start, e.end, e.ids) for e in made]
    assert values == [
        ("p", {"n": 3, "least": 3.0, "mean": 2.0, "rooms": 2}, 9, 9, ("A1", "A2", "A3")),
        ("q", {"n": 1, "mean": 1.5, "rooms": 1}, 9, 9, ("A4",)),
    ]


def test_post_knows_no_group_of_null_and_no_value_past_a_floats_range():
    text = text_of(
        "(n, most) aggr every 10 ms",
        "pre detect A assign kind = First(A.s), t = Max(A.x) * 10 group by g\n"
        "post where n = Count(t), most = Max(t) group by kind",
    )
    made = report(text, a(1, 1e308, g="u", s="k"), a(2, 7.0, g="v", s="k"), a(3, 9.0, g="w"))
    assert [(e.a_n, e.a_most, e.end) for e in made] == [(1, 70.0, 9)]


# --- what it promises and what it holds -------------------------------------------------------


def promise(window: str, assign: str, watermark: int, *events: Any, **limits: int) -> int:
    name = assign.partition(" = ")[0]
    text = text_of(
        f"(n, {name}) aggr {window}", f"detect A and outer B assign n = Count(A), {assign}"
    )
    agent = agent_of(text, **limits)
    feed(agent, watermark, *events)
    return agent.watermark_out(watermark)


@pytest.mark.parametrize(
    ("window", "assign", "bound"),
    [
        # The window [100, 200) is open at watermark 150, with an event.
        # Its event is at 199; no event lies before its window.
        ("every 100 ms", "k = 1", 150),
        ("every 100 ms", "start = window.start", 150),
        ("every 100 ms", "end = window.end - 1 ms", 150),
        ("every 100 ms", "end = window.end - 40 ms", 111),
        ("every 100 ms", "timestamp = window.start", 99),
        ("every 100 ms", "timestamp = end", 99),
        ("every 100 ms", "timestamp = Max(B.timestamp)", 99),
        ("every 100 ms", "end = timestamp + 5 ms", 99),
        ("every 100 ms", "end = Min(A.start) + 5 ms", 99),
        ("every 100 ms", "timestamp = start", 99),
        ("every 100 ms", "timestamp = min(First(A.start), Last(A.end))", 99),
        # Nothing waits, and a window's newest event ends after the watermark.
        ("range 30 ms", "k = 1", 150),
        ("range 30 ms", "timestamp = timestamp", 150),
        ("range 30 ms", "timestamp = window.start", 120),
        ("range 30 ms", "timestamp = window.end - 10 ms", 141),
        ("range 30 ms", "end = 5 ms + timestamp", 150),
        ("range 30 ms", "timestamp = First(A.timestamp)", 120),
        ("range 30 ms", "end = 5 ms + Last(B.timestamp)", 120),
        ("range 30 ms", "timestamp = max(Min(A.start), Last(A.end))", 120),
        # A session is as long as its events, and one still to come may have begun long ago.
        ("session 30 ms", "k = 1", 139),
        ("session 30 ms", "timestamp = window.end - 1 ms", 139),
        ("session 30 ms", "timestamp = window.start", 139 - 1000),
    ],
)
def test_it_promises_no_more_than_assigned_times_allow(window: str, assign: str, bound: int):
    assert promise(window, assign, 150, a(20), a(140), duration_max_ms=1000) == bound


def test_a_promise_sees_through_post():
    for assigned, bound in (("end", 150), ("Min(A.end)", 120), ("Max(A.start)", 120)):
        text = text_of(
            "(n, timestamp) aggr range 30 ms",
            f"pre detect A assign n = Count(A), timestamp = {assigned}\n"
            "post where n = Sum(n), timestamp = Max(timestamp)",
        )
        agent = agent_of(text, duration_max_ms=1000)
        feed(agent, 150, a(140))
        assert agent.watermark_out(150) == bound


def test_with_nothing_open_the_promise_is_the_inputs_own():
    assert promise("every 100 ms", "k = 1", 199, a(140)) == 199
    assert promise("every 100 ms", "timestamp = start", ALL, a(140)) == ALL
    assert promise("range 30 ms", "timestamp = Min(A.start)", ALL, a(140)) == ALL


def test_it_says_when_the_next_window_closes():
    agent = agent_of(HOPPING)
    assert agent.next_due() is None
    feed(agent, 0, a(12))
    assert agent.next_due() == 19
    assert len(feed(agent, 19)) == 1
    assert agent.next_due() == 29
    feed(agent, 28)
    assert len(feed(agent, 29)) == 1
    assert agent.next_due() is None
    sliding = agent_of(SLIDING)
    feed(sliding, 0, a(12), a(15))
    assert (sliding.next_due(), sliding.held()) == (12, 2)
    assert len(feed(sliding, 14)) == 1
    assert (sliding.next_due(), sliding.held()) == (15, 2)
    feed(sliding, 5_000)
    assert (sliding.next_due(), sliding.held()) == (None, 0)


def test_an_event_whose_windows_are_closed_is_counted():
    for text in (COUNT, SLIDING):
        agent = agent_of(text)
        feed(agent, 20, a(5))
        assert feed(agent, 30, a(6)) == []
        assert agent.dropped()["window_closed"] == 1


def test_of_several_events_whose_windows_are_closed_each_is_counted():
    agent = agent_of(COUNT)
    feed(agent, 20, a(5))
    assert [event.a_n for event in feed(agent, 40, *map(a, (3, 6, 7, 12, 31, 35)))] == [2]
    assert agent.dropped()["window_closed"] == 4


@pytest.mark.parametrize("keys", ["", " group by g"])
def test_a_window_spans_its_events_in_whatever_order_they_come(keys: str):
    """Within a batch, behind what a batch before has brought, and where they have a duration."""
    text = text_of(
        "(n, x, y) aggr every 10 ms", f"detect A assign n = Count(A), x = start, y = end{keys}"
    )
    mixed = ((14, 18, 11), (3, 5, 16), (4, 9, 12, 1, 17), (2, 6), (7, 8, 10))
    behind = ((14, 18), (3, 5, 16), (1, 4, 9, 11, 12, 17), (2, 6), (7, 8, 10))
    for batches, lasts in product((mixed, behind), (0, 2)):
        agent = agent_of(text)
        for batch in batches:
            feed(agent, 0, *[a(end, start=end - (end > 2) * lasts, g="u") for end in batch])
        made = feed(agent, ALL)
        assert [(e.a_n, e.a_x, e.a_y) for e in made] == [(9, 1, 9), (7, 10 - lasts, 18)]


def test_groups_beyond_the_limit_are_refused_and_counted():
    for window in ("every 10 ms", "range 10 ms"):
        text = text_of(f"(n) aggr {window}", "detect A assign n = Count(A) group by g")
        agent = agent_of(text, groups_max=2)
        made = feed(agent, ALL, *[a(t, g=g) for t, g in enumerate("uvwvwu")])
        assert len(made) == (2 if "every" in window else 4)
        assert agent.dropped()["window_groups_overflow"] == 2


def test_without_keys_each_pane_is_a_group_and_each_event_counts():
    agent = agent_of(COUNT, groups_max=2)
    for k in range(4):
        feed(agent, 0, *[a(t) for t in range(10 * k + 1, 10 * k + 4)])
    assert agent.dropped()["window_groups_overflow"] == 6
    assert len(feed(agent, ALL)) == 2


def test_the_limit_of_groups_is_of_those_open_at_once():
    text = text_of("(n) aggr every 10 ms", "detect A assign n = Count(A) group by g")
    agent = agent_of(text, groups_max=1)
    for k, g in enumerate("uvw"):
        assert len(feed(agent, 10 * k + 9, a(10 * k, g=g))) == 1
    assert agent.held() == 0
    assert set(agent.dropped().values()) == {0}


def test_events_beyond_the_limit_are_refused_and_counted():
    agent = agent_of(SLIDING, events_max=3)
    feed(agent, 0, *[a(t) for t in range(1, 6)])
    assert agent.held() == 3
    assert agent.dropped()["window_events_overflow"] == 2


def test_values_kept_for_quantiles_count_as_held_and_are_limited():
    text = text_of(
        "(m, c) aggr every 10 ms", "detect A assign m = Median(A.x), c = CountDistinct(A.x)"
    )
    agent = agent_of(text, events_max=6)
    feed(agent, 0, a(1, 1.0), a(2, 2.0))
    assert agent.held() == 5  # two values, each kept twice, and a group
    feed(agent, 0, a(3, 3.0), a(4, 9.0))
    (event,) = feed(agent, 9)
    assert (event.a_m, event.a_c) == (2.0, 3)
    assert agent.dropped()["window_events_overflow"] == 1
    assert agent.held() == 0


def test_what_was_dropped_outlives_a_snapshot():
    text = text_of(
        "(n, start, end) aggr every 10 ms",
        "detect A assign n = Count(A), start = end, end = start group by g",
    )
    agent = agent_of(text, groups_max=1)
    feed(agent, 10, a(1, g="u"), a(2, start=0, g="u"), a(3, g="v"))
    feed(agent, 10, a(4, g="u"))
    restored = again(agent, lambda: agent_of(text, groups_max=1))
    assert restored.dropped() == agent.dropped()
    assert agent.dropped() == {
        "window_groups_overflow": 1,
        "window_events_overflow": 0,
        "window_closed": 1,
        "window_ids_cut": 0,
        "start_after_end": 1,
        "outside_window": 0,
    }


def test_a_state_of_another_version_is_refused():
    agent = agent_of(COUNT)
    with pytest.raises(ValueError, match="version 9"):
        agent.restore({**agent.state(), "version": 9})


def test_what_cannot_be_is_refused():
    task = task_of(COUNT)
    (case,) = task.node.cases  # type: ignore[union-attr]

    def with_window(case: Case, **window: Any) -> WindowAgent:
        node = replace(task.node, window=Window(aggregated=True, **window), cases=(case,))
        return WindowAgent(replace(task, node=node), case, event_class("W", {}, detected=True))

    consuming = replace(case, consuming=("A",))
    assert with_window(consuming, every_ms=5)
    for shared in ({"every_ms": 5, "range_ms": 7}, {"range_ms": 7}):
        with pytest.raises(ValueError, match="consuming"):
            with_window(consuming, **shared)
    with pytest.raises(ValueError, match="Mars"):
        with_window(case, every_days=1, zone="Mars/Olympus")
    with pytest.raises(ValueError, match="whole days"):
        with_window(case, every_days=1, range_ms=5, zone="UTC")
    twice = Select("distinct", Select("distinct", case.detect.pattern))
    with pytest.raises(ValueError, match="once"):
        with_window(replace(case, detect=replace(case.detect, pattern=twice)), every_ms=5)


def test_a_year_of_silence_costs_no_more_than_a_day():
    """Windows without events are not walked through."""
    text = text_of("(n) aggr every 1 ms range 3 ms", "detect A assign n = Count(A)")
    agent = agent_of(text)
    year_ms = 365 * 86_400_000
    assert len(feed(agent, year_ms - 1, a(0))) == 3
    assert len(feed(agent, ALL, a(year_ms))) == 3


def test_the_average_of_a_long_run_is_exact():
    """More events than are folded at once, from several batches."""
    text = text_of("(m, d) aggr every 1 day", "detect A assign m = Avg(A.x), d = StdDev(A.x)")
    agent = agent_of(text)
    xs = [((7 * t) % 1001 - 500) / 10 for t in range(5000)]
    for at in range(0, 5000, 700):
        feed(agent, 0, *[a(t, xs[t]) for t in range(at, min(at + 700, 5000))])
    (event,) = feed(agent, ALL)
    exact = sum(map(Fraction, xs)) / 5000
    assert event.a_m == exact.numerator / exact.denominator
