"""Sessions worked out by hand: who joins, when they close, what they promise and hold."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import headwater
from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Detected
from broker.engine.event.identity import digest
from broker.engine.limits import make_limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from broker.engine.window.agent import WindowAgent
from language import check_text
from tests.broker.core.window_support import CLASSES, again, agent_of, task_of

DECLARED = (
    "event A(x: float, i: int, s: text, g: text)\nevent B(x: float, i: int, s: text, g: text)"
)
ALL = WATERMARK_END


def text_of(window: str, detect: str = "A", more: str = "", header: str = "n") -> str:
    return (
        f"{DECLARED}\ndefine W({header}) aggr session {window}\n"
        f"detect {detect} assign n = Count(A){more}\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )


def a(end: int, start: int | None = None, **more: Any) -> Any:
    begin = end if start is None else start
    return CLASSES["A"](**{"id": f"A{end}", "start": begin, "end": end, **more})


def feed(agent: WindowAgent, watermark: int, *events: Any) -> list[Detected]:
    return agent.feed([(0, list(events))] if events else [], watermark)


def spans(text: str, *events: Any) -> list[tuple[int, int]]:
    return [(made.start, made.end) for made in feed(agent_of(text), ALL, *events)]


def test_an_event_joins_that_begins_at_most_the_gap_after_the_end():
    assert spans(text_of("5 ms"), a(1), a(6), a(12), a(14)) == [(1, 6), (12, 14)]
    assert spans(text_of("5 ms"), a(1), a(20, 6), a(40, 19)) == [(1, 40)]


def test_an_event_joins_that_ends_at_most_max_after_the_beginning():
    points = [a(t) for t in range(0, 30, 3)]
    assert spans(text_of("5 ms max 12 ms"), *points) == [(0, 12), (15, 27)]
    assert spans(text_of("5 ms max 11 ms"), *points) == [(0, 9), (12, 21), (24, 27)]


def test_an_event_that_began_before_its_session_moves_the_beginning():
    text = text_of("5 ms max 10 ms")
    assert spans(text, a(10), a(12, 4), a(14)) == [(4, 14)]
    assert spans(text, a(10), a(12, 4), a(15)) == [(4, 12), (15, 15)]


def test_an_event_longer_than_max_has_a_session_of_its_own():
    assert spans(text_of("5 ms max 10 ms"), a(30, 0), a(31), a(33)) == [(0, 30), (31, 33)]


def test_a_session_is_over_when_the_next_has_begun():
    """What would have joined it, but comes after, joins the next or opens one."""
    text = text_of("5 ms max 20 ms")
    assert spans(text, a(1), a(10, 10), a(12, 2)) == [(1, 1), (2, 12)]


def test_the_order_of_arrival_does_not_show():
    events = [a(1), a(6), a(12), a(14, 8), a(20), a(26)]
    text = text_of("5 ms")
    whole = spans(text, *events)
    assert whole == [(1, 6), (8, 14), (20, 20), (26, 26)]
    agent = agent_of(text)
    made = feed(agent, 0, *events[::-1]) + feed(agent, ALL)
    assert [(one.start, one.end) for one in made] == whole


def test_it_tells_its_gap_its_group_and_its_first_event():
    text = text_of("5 ms", more=", g = group.g group by g", header="n, g")
    made = feed(agent_of(text), ALL, a(1, a_g="u"), a(3, a_g="v"), a(4, a_g="u"), a(5))
    assert [(one.a_g, one.a_n, one.a_interval) for one in made] == [("v", 1, 5), ("u", 2, 5)]
    assert made[1].tie == ("W", 0, "A1")
    assert made[1].id == digest("window", task_of(text).key, 0, ["A1", 1], ["u"])
    assert made[1].attribute_values() == {"n": 2, "g": "u", "interval": 5}


# --- closing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "detect", "closes"),
    [
        # The last event ends at 10 and began, as the session, at 8; events last at most 100 ms.
        ("5 ms", "A", 10 + 5 + 100),
        ("5 ms max 30 ms", "A", 8 + 30),
        ("5 ms max 1 h", "A", 115),
        ("5 ms", "A(duration = 0)", 15),
        ("5 ms", "A(i = 1 or duration = 0)", 115),
        ("5 ms", "A(duration <= 20 ms, i > 0)", 35),
        ("5 ms", "A(20 ms > duration)", 35),
        ("5 ms", "A(1 ms < duration < 20 ms and i = 1)", 35),
        ("5 ms", "A(duration >= 1 ms)", 115),
        ("5 ms", "A(duration <= 1 h)", 115),
    ],
)
def test_it_closes_when_the_watermark_proves_that_nothing_can_join(
    window: str, detect: str, closes: int
):
    agent = agent_of(text_of(window, detect), duration_max_ms=100)
    assert feed(agent, 9, a(10, 8)) == []
    assert feed(agent, 10) == []
    assert agent.next_due() == closes
    assert feed(agent, closes - 1) == []
    assert len(feed(agent, closes)) == 1
    assert agent.next_due() is None


def test_two_operands_close_by_the_one_that_may_last_longer():
    text = text_of("5 ms", "A(duration = 0) and outer B")
    agent = agent_of(text, duration_max_ms=100)
    assert feed(agent, 10, a(10)) == []
    assert agent.next_due() == 115


def test_of_detected_events_nobody_knows_how_long_they_last():
    text = (
        "event A(i: int)\ndefine D(i) detect A assign i = A.i\n"
        "define W(n) aggr session 5 ms{} detect D{} assign n = Count(D)\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )
    for window, detect, due in (
        ("", "", WATERMARK_END),
        (" max 9 ms", "", 19),
        ("", "(duration = 0)", 15),
    ):
        whole = text.format(window, detect)
        task = task_of(whole)
        agent = agent_of(whole, duration_max_ms=100)
        made_class = _detected(task)
        feed(agent, 10, made_class(id="d", start=10, end=10, constituents=("a",), tie=("D", 0)))
        assert agent.next_due() == due


def _detected(task: Any) -> Any:
    from broker.engine.event.event import event_class

    return event_class(f"D@{task.needs['D']}", {"i": "int"}, detected=True)


def test_sessions_of_readings_close_when_their_gap_has_passed():
    """As long as the type has brought readings alone; then they wait for the longest event."""
    text = text_of("5 ms", "A", "\n group by g")
    matcher = Matcher(make_limits(event_duration_ms_max=100))
    checked = check_text(text)
    assert checked.specification is not None
    for task in checked.specification.graph.tasks.values():
        matcher.install(task)

    def push(watermark: int, *events: Any) -> list[tuple[int, int]]:
        results = in_one_go(matcher.push(list(events), lambda _: watermark))
        return [(result.start, result.end) for result in results]  # type: ignore[attr-defined]

    assert push(3, a(3, a_g="u")) == []
    assert matcher.due(lambda _: 3) == {"A": 8}
    assert push(7) == []
    assert push(8) == [(3, 3)]
    assert push(20, a(20, a_g="u"), a(20, 19, a_g="v", id="B")) == []
    assert matcher.due(lambda _: 20) == {"A": 125}
    assert push(124) == []
    assert sorted(push(125)) == [(19, 20), (20, 20)]


def test_a_session_that_began_earlier_than_known_closes_earlier():
    agent = agent_of(text_of("5 ms max 50 ms"), duration_max_ms=1_000)
    feed(agent, 10, a(10))
    assert agent.next_due() == 60
    feed(agent, 12, a(12, 4))
    assert agent.next_due() == 54
    assert len(feed(agent, 54)) == 1


# --- what it promises and holds ---------------------------------------------------------------


def test_it_promises_nothing_before_the_end_of_an_open_session():
    agent = agent_of(text_of("5 ms", "A(duration = 0)"))
    assert agent.watermark_out(7) == 7
    feed(agent, 12, a(10), a(12))
    assert agent.watermark_out(12) == 11
    feed(agent, 16, a(16))
    assert agent.watermark_out(16) == 15
    feed(agent, 21)
    assert agent.watermark_out(21) == 21


def test_the_oldest_open_session_holds_the_promise():
    text = text_of("50 ms", "A(duration = 0)", " group by g")
    agent = agent_of(text)
    feed(agent, 40, a(10, a_g="u"), a(20, a_g="v"), a(30, a_g="u"), a(40, a_g="w"))
    assert agent.watermark_out(40) == 19
    feed(agent, 75, a(60, a_g="v"))
    assert agent.watermark_out(75) == 29
    feed(agent, 80)
    assert agent.watermark_out(80) == 39


def test_an_assigned_time_may_lie_at_the_first_event():
    text = text_of("50 ms", "A(duration = 0)", ", end = Min(A.end)", "n, end")
    agent = agent_of(text)
    feed(agent, 40, a(10), a(30))
    assert agent.watermark_out(40) == 9


def test_it_holds_one_thing_a_group_and_the_values_that_it_keeps():
    agent = agent_of(text_of("5 ms", "A", " group by g"))
    feed(agent, 3, a(1, a_g="u"), a(2, a_g="u"), a(3, a_g="v"), a(4, a_g="w"))
    assert agent.held() == 3  # two groups, and one that waits
    kept = text_of("5 ms", "distinct(i) A", ", m = Median(A.x)", "n, m")
    agent = agent_of(kept, events_max=6)
    feed(agent, 3, *[a(t, a_i=t, a_x=1.0) for t in (1, 2, 3)], a(3, a_i=1, id="B"))
    assert agent.held() == 7  # a group, and of each that counts a key and a value
    feed(agent, 5, a(4, a_i=9))
    assert agent.dropped()["window_events_overflow"] == 1
    assert [one.a_n for one in feed(agent, ALL)] == [3]
    assert agent.held() == 0


def test_groups_beyond_the_limit_are_refused_and_counted():
    agent = agent_of(text_of("2 ms", "A(duration = 0)", " group by g"), groups_max=2)
    made = feed(agent, 2, a(1, a_g="u"), a(1, id="B", a_g="v"), a(2, a_g="w"))
    assert made == []
    assert agent.dropped()["window_groups_overflow"] == 1
    assert len(feed(agent, 9, a(9, a_g="w"))) == 2  # there is room again
    assert len(feed(agent, ALL)) == 1


def test_a_snapshot_remembers_what_was_distinct_and_where_the_session_began():
    text = text_of("5 ms max 10 ms", "distinct(i) A")
    agent = agent_of(text)
    feed(agent, 4, a(1, a_i=1), a(4, -3, a_i=2))
    agent = again(agent, partial(agent_of, text))
    made = feed(agent, ALL, a(7, a_i=1), a(8, a_i=3))
    assert [(one.a_n, one.start, one.end) for one in made] == [(2, -3, 4), (1, 8, 8)]


@pytest.mark.parametrize("window", ["50 ms", "50 ms max 1 day"])
def test_closed_sessions_leave_nothing_behind(window: str):
    """One session that stays open, thousands that come and go beside it; nobody asks anything."""
    agent = agent_of(text_of(window, "A(duration = 0)", " group by g"))
    made = 0
    for t in range(0, 200_000, 40):
        made += len(feed(agent, t, a(t, a_g="u"), a(t, id=f"B{t}", a_g=f"v{t % 7}")))
    runs: Any = agent._windows
    assert made > 4_000
    assert agent.held() < 10
    assert len(runs._by_end) + len(runs._opened) + len(runs._lengths) < 400
    assert len(runs._waiting._line) < 10


CROWDED = """event A(k: text, j: int)
define Each(n) aggr session 100 ms detect A assign n = Count(A) group by k
define All(n) aggr session 100 ms detect A(j = 1) assign n = Count(A)
subscription S seq 1 from a to b detect All(n > 5) as every or Each(n > 5) as each
"""


def test_a_snapshot_changes_nothing_where_few_ids_are_kept_of_each_group():
    """With so many groups open, when a group is cut must hinge on its events alone."""
    many = [
        {"type": "A", "id": f"b{n}", "timestamp": 20, "k": f"h{n}", "j": 0} for n in range(8_000)
    ]
    tied = [{"type": "A", "id": f"a{n:02}", "timestamp": 21, "k": "g0", "j": 1} for n in range(20)]

    def found(*, is_asked):
        engine = headwater.Engine(CROWDED, 0)
        results = [*engine.push(many + tied)]
        results += engine.push([{"type": "A", "id": "d", "timestamp": 25, "k": "g1", "j": 0}])
        if is_asked:
            engine.state()
        for at in (26, 900):
            event = {"type": "A", "id": f"q{at}", "timestamp": at, "k": "g2", "j": 0}
            results += engine.push([event])
        return [(each["id"], list(each["values"])) for each in [*results, *engine.finish()]]

    asked = found(is_asked=True)
    assert len(asked) == 2
    assert found(is_asked=False) == asked
