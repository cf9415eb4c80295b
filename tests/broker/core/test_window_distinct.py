"""`distinct` operands of windows, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from broker.engine.event.agent import WATERMARK_END
from tests.broker.core.window_support import CLASSES, agent_of

DECLARED = (
    "event A(x: float, i: int, s: text, g: text)\nevent B(x: float, i: int, s: text, g: text)"
)


def text_of(window: str, detect: str, assign: str = "n = Count(A), ids = Sum(A.x)") -> str:
    names = ", ".join(part.split(" = ")[0].strip() for part in assign.split(","))
    return (
        f"{DECLARED}\ndefine W({names}) aggr {window}\ndetect {detect} assign {assign}\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )


def a(end: int, i: int | None = None, **more: Any) -> Any:
    """Its x tells it from all others in a sum."""
    fields = {"a_x": float(2**end), "a_i": i, **more}
    return CLASSES["A"](**{"id": f"A{end}", "start": end, "end": end, **fields})


def sums(text: str, *events: Any) -> list[list[int]]:
    """The ends of the events that count in each window."""
    made = agent_of(text).feed([(0, list(events))], WATERMARK_END)
    found = [[bit for bit in range(60) if int(event.a_ids) >> bit & 1] for event in made]
    assert [event.a_n for event in made] == list(map(len, found))
    return found


ALIKE = [a(1, 7), a(4, 7), a(6, 7), a(9, 7), a(12, 7), a(13, 8)]


def test_in_a_tumbling_window_the_first_of_each_counts():
    assert sums(text_of("every 10 ms", "distinct(i) A"), *ALIKE) == [[1], [12, 13]]


def test_in_a_hopping_window_the_next_counts_when_the_first_is_left_behind():
    # k covers [5k - 10, 5k).
    text = text_of("every 5 ms range 10 ms", "distinct(i) A")
    assert sums(text, *ALIKE) == [[1], [1], [6, 13], [12, 13]]


def test_in_a_sliding_window_the_next_counts_when_the_first_has_gone():
    text = text_of("range 7 ms", "distinct(i) A")
    assert sums(text, *ALIKE) == [[1], [1], [1], [4], [6], [6, 13]]


def test_in_a_session_the_first_of_each_counts_though_others_make_it_last():
    text = text_of("session 3 ms", "distinct(i) A")
    assert sums(text, *ALIKE) == [[1, 13]]
    assert sums(text, a(1, 7), a(4, 7), a(8, 7)) == [[1], [8]]


def test_without_keys_the_end_is_the_key():
    events = [a(1, 7), a(2, 7), a(2, 8, id="B2", a_x=0.0), a(3, 9)]
    assert sums(text_of("every 10 ms", "distinct A"), *events) == [[1, 2, 3]]


@pytest.mark.parametrize("window", ["every 10 ms", "every 10 ms range 10 ms", "range 9 ms"])
def test_null_equals_nothing(window: str):
    events = [a(1), a(2), a(3, 5, a_g="u"), a(4, 5), a(5, 5), a(6, 5, a_g="u")]
    assert sums(text_of(window, "distinct(i) A"), *events)[-1] == [1, 2, 3]
    assert sums(text_of(window, "distinct(i, g) A"), *events)[-1] == [1, 2, 3, 4, 5]


def test_positions_may_be_keys():
    here, there = [45.0, 7.0], [45.0, 7.5]
    events = [a(1, position=here), a(2, position=list(here)), a(3, position=there)]
    for window in ("every 10 ms", "every 5 ms range 10 ms"):
        assert sums(text_of(window, "distinct(position) A"), *events)[0] == [1, 3]


def test_what_is_dropped_is_no_constituent():
    """Neither the span, nor ε, nor the ids know of it."""
    events = [a(3, 7), a(5, 7, start=1, uncertainty=9), a(8, 6), a(9, 7)]
    times = "n = Count(A), ids = Sum(A.x), start = start, end = end"
    text = text_of("every 10 ms", "distinct(i) A", times)
    (made,) = agent_of(text).feed([(0, events)], WATERMARK_END)
    assert (made.start, made.end, made.uncertainty) == (3, 8, 0)
    assert tuple(made.ids) == ("A3", "A8")


@pytest.mark.parametrize("window", ["range 5 ms", "every 5 ms range 15 ms"])
def test_first_and_last_are_told_by_order_and_not_by_when_they_began_to_count(window: str):
    assign = (
        "n = Count(A), f = First(A.x), z = Last(A.x), l = Min(A.x), h = Max(A.x), m = Median(A.x)"
    )
    events = [a(0, 7), a(2, 7), a(4, 6), a(5, 5), a(6, 6), a(7, 8)]
    made = agent_of(text_of(window, "distinct(i) A", assign)).feed([(0, events)], WATERMARK_END)
    last = next(e for e in made if e.end == (7 if window == "range 5 ms" else 9))
    bits = [2, 4, 5, 7] if window == "range 5 ms" else [0, 4, 5, 7]
    values = [float(2**bit) for bit in bits]
    assert (last.a_n, last.a_f, last.a_z) == (4, values[0], values[-1])
    assert (last.a_l, last.a_h, last.a_m) == (values[0], values[-1], (values[1] + values[2]) / 2)


def test_an_operand_is_distinct_on_its_own():
    text = text_of("every 10 ms", "distinct(i) A as p and A as q", "n = Count(p), m = Count(q)")
    events = [a(1, 7), a(2, 7)]
    agent = agent_of(text)
    (made,) = agent.feed([(0, events), (1, events)], WATERMARK_END)
    assert (made.a_n, made.a_m, tuple(made.ids)) == (1, 2, ("A1", "A1", "A2"))
