"""A group's partial result, however it was taken, merged and put away, against a plain list."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import Event, event_class
from broker.engine.window import partials
from broker.engine.window.code import Shape
from broker.engine.window.partials import Partial, are_instants
from headwater import Engine, Function
from tests.broker.core.window_support import task_of

TEXT = """event A(x: float)
event B(x: float)
define W(n, v1, v2, v3, v4, v5, v6) aggr every 1 s
  detect {operands}
  assign n = Count(A), v1 = Sum(A.x), v2 = Median(A.x), v3 = First(A.x), v4 = Last(A.x),
    v5 = CountDistinct(A.x), v6 = Max(A.x)
subscription S from t to o
  detect W
"""
A = event_class("A", {"x": "float"})

readings = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from([0.5, 1.5, -2.0, 7.25])),
    min_size=1,
    max_size=6,
)
runs = st.lists(readings, min_size=1, max_size=9)


def shape_of(operands: str) -> Shape:
    task = task_of(TEXT.format(operands=operands))
    return Shape(task, task.node.cases[0])  # type: ignore[union-attr]


def events_of(run: Sequence[tuple[int, int, float]], at: int) -> list[Event]:
    return [
        A(id=f"e{at}-{number}", start=end - lasting, end=end, a_x=value)
        for number, (end, lasting, value) in enumerate(run)
    ]


def told(partial: Partial) -> list[Any]:
    """What is told of a group: counts, span, first ids, and what each accumulator keeps."""
    span = partial.start, partial.end, partial.uncertainty, partial.maybe
    ids = partial.constituents().made()
    return [partial.counts, span, ids, [results(kept) for kept in partial.kept]]


def results(kept: Any) -> Any:
    if hasattr(kept, "quantile"):
        return kept.quantile(1, 2)
    if hasattr(kept, "first"):
        return kept.first(), kept.last()
    return kept.sum_float() if hasattr(kept, "sum_float") else kept.result()


def expected(events: Sequence[Event], partial: Partial) -> list[Any]:
    ordered: list[Any] = sorted(events, key=lambda event: event.order)
    values = [event.a_x for event in ordered]
    by_kind = {
        "Moments": sum(values),
        "Bag": median(values),
        "Ends": (values[0], values[-1]),
        "Distinct": len(set(values)),
        "Extreme": max(values),
    }
    ends = [event.end for event in events]
    starts = [event.start for event in events]
    counts = [len(events), *[0] * (len(partial.counts) - 1)]
    ids = tuple([event.id for event in ordered[: partial.most]])
    kept = [by_kind[type(one).__name__] for one in partial.kept]
    return [counts, (min(starts), max(ends), 0, False), ids, kept]


def taken(shape: Shape, run: Sequence[Event], *, at_once: bool) -> Partial:
    ends = [event.end for event in run]
    ascending, instants = ends == sorted(ends), are_instants(run)
    if at_once and shape.simple and ascending and instants:
        return Partial(shape, list(run))
    partial = Partial(shape)
    partial.take(0, run, ascending=ascending, instants=instants)
    return partial


@pytest.mark.parametrize("operands", ["A", "A and outer B"])
@given(runs, st.data())
def test_a_group_tells_of_its_events_whatever_way_they_came(
    operands: str, given_runs: list[list[tuple[int, int, float]]], data: st.DataObject
):
    """Some are read, put away and taken up before they are merged; a few ids are kept of some."""
    shape = SHAPES[operands]
    before = partials.WHOLE_MAX
    partials.WHOLE_MAX = data.draw(st.sampled_from([0, 3, before]))
    try:
        parts, events = [], list[Event]()
        for at, run in enumerate(given_runs):
            some = events_of(run, at)
            events += some
            if parts and data.draw(st.booleans()):
                ends = [event.end for event in some]
                ascending = ends == sorted(ends)
                parts[-1].take(0, some, ascending=ascending, instants=are_instants(some))
            else:
                parts.append(taken(shape, some, at_once=data.draw(st.booleans())))
            what = data.draw(st.sampled_from(["", "", "read", "restored", "crowded"]))
            if what == "read":
                told(parts[-1])
            elif what == "restored":
                parts[-1] = Partial.of_plain(shape, parts[-1].plain())
            elif what == "crowded":
                parts[-1].crowd(2)
        whole = parts[0].merged(parts[1:]) if len(parts) > 1 else parts[0]
        assert told(whole) == expected(events, whole)
        again = Partial.of_plain(shape, whole.plain())
        assert told(again) == expected(events, whole)
    finally:
        partials.WHOLE_MAX = before


SHAPES = {operands: shape_of(operands) for operands in ("A", "A and outer B")}


def test_a_function_of_the_users_own_is_called_once_for_an_event():
    """Six windows of 30 s have each of the events, of which the first pane is read alone."""
    asked: list[float] = []

    def twice(value: float) -> float:
        asked.append(value)
        return 2 * value

    text = (
        "event A(x: float)\ndefine W(total) aggr every 5 s range 30 s\n  detect A\n"
        "  assign total = Sum(Twice(A.x))\nsubscription S from t to o\n  detect W\n"
    )
    engine = Engine(text, 0, functions={"Twice": Function(twice, "float")})
    events = [{"type": "A", "timestamp": 1_000 * at, "x": float(at)} for at in range(40)]
    results = [result for event in events for result in engine.push([event])]
    results += engine.finish()
    assert asked == [event["x"] for event in events]
    ends = [5_000 * window for window in range(1, 14)]
    inside = [[e["x"] for e in events if end - 30_000 <= e["timestamp"] < end] for end in ends]
    totals = [result["values"]["W"]["total"] for result in results]
    assert totals == [2 * sum(values) for values in inside if values]
