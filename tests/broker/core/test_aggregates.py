"""Values that come and go in any order, against plain sorted lists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.window import aggregates
from broker.engine.window.aggregates import Ascending, Bag, Ordered
from broker.engine.window.exact import quantile

A = event_class("A", {"x": "float"})
values = st.one_of(st.integers(-3, 3), st.floats(-3, 3, allow_nan=False))


def quantile_of(ordered: list[Any], over: int, under: int) -> float | None:
    return quantile(len(ordered), sorted(ordered).__getitem__, over, under)


@pytest.mark.parametrize("block_max", [2, 3, 2_048])
@given(st.lists(st.tuples(values, st.booleans()), max_size=60), st.integers(0, 8))
def test_values_stay_ascending(block_max: int, steps: list[Any], over: int):
    """Each step adds a value, or takes one back if there is any."""
    before, aggregates.BLOCK_MAX = aggregates.BLOCK_MAX, block_max
    try:
        kept, least, greatest = Ascending(), Ascending(), Ascending(greatest=True)
        model: list[Any] = []
        for value, removing in steps:
            if removing and model:
                gone = model.pop(int(abs(value) * 7) % len(model))
                for one in (kept, least, greatest):
                    one.remove(gone)
            else:
                model.append(value)
                for one in (kept, least, greatest):
                    one.add(value)
            ordered = sorted(model)
            assert [one for block in kept.blocks for one in block] == ordered
            assert [kept.value_at(rank) for rank in range(len(ordered))] == ordered
            assert kept.quantile(over, 8) == quantile_of(ordered, over, 8)
            assert least.result() == min(model, default=None)
            assert greatest.result() == max(model, default=None)
            assert all(kept.blocks)
            assert max(map(len, kept.blocks), default=0) <= block_max
    finally:
        aggregates.BLOCK_MAX = before


@given(st.lists(st.lists(values, max_size=9), max_size=6), st.integers(0, 8))
def test_runs_of_values_and_merged_ones_are_ascending_when_they_are_read(
    runs: list[list[Any]], over: int
):
    """Whatever of them was read, and so sorted, before more came or they were merged."""
    taken, parts = Bag(), []
    for at, run in enumerate(runs):
        taken.take(run)
        part = Bag()
        part.take(run)
        if at % 2:
            taken.quantile(over, 8)
            part.quantile(0, 1)
        parts.append(part)
    flat = sorted(value for run in runs for value in run)
    merged = Bag().merged(parts)
    for one in (taken, merged):
        assert sorted(one.plain()) == flat
        assert one.quantile(over, 8) == quantile_of(flat, over, 8)
        assert one.plain() == flat


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40))
def test_the_first_and_the_last_go_by_order(steps: list[Any]):
    ends = Ordered()
    model: list[Any] = []
    for at, (end, removing) in enumerate(steps):
        if removing and model:
            gone = min(model, key=lambda one: one.order)  # the oldest leaves first
            model.remove(gone)
            ends.remove(gone.a_x)
        else:
            event: Any = A(id=f"{at % 10}{at}", start=end, end=end, a_x=float(at))
            model.append(event)
            ends.add_of(event.a_x, event)
        ordered = sorted(model, key=lambda one: one.order)
        assert ends.first() == (ordered[0].a_x if ordered else None)
        assert ends.last() == (ordered[-1].a_x if ordered else None)
