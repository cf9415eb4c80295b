"""Values that come and go in any order, against plain sorted lists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.window import aggregates_moving
from broker.engine.window.aggregates import Bag
from broker.engine.window.aggregates_moving import Ascending, Greatest, Least, ScatteredEnds

A = event_class("A", {"x": "float"})
values = st.one_of(st.integers(-3, 3), st.floats(-3, 3, allow_nan=False))


def quantile_of(ordered: list[Any], over: int, under: int) -> float | None:
    bag = Bag()
    bag.take(ordered)
    return bag.quantile(over, under)


@pytest.mark.parametrize("block_max", [2, 3, 2_048])
@given(st.lists(st.tuples(values, st.booleans()), max_size=60), st.integers(0, 8))
def test_values_stay_ascending(block_max: int, steps: list[Any], over: int):
    """Each step adds a value, or takes one back if there is any."""
    before, aggregates_moving.BLOCK_MAX = aggregates_moving.BLOCK_MAX, block_max
    try:
        kept, least, greatest = Ascending(), Least(), Greatest()
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
        aggregates_moving.BLOCK_MAX = before


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40))
def test_the_first_and_the_last_go_by_order(steps: list[Any]):
    ends = ScatteredEnds()
    model: list[Any] = []
    for at, (end, removing) in enumerate(steps):
        if removing and model:
            gone = model.pop(end % len(model))
            ends.remove_of(gone.a_x, gone)
        else:
            event: Any = A(id=f"{at % 10}{at}", start=end, end=end, a_x=float(at))
            model.append(event)
            ends.add_of(event.a_x, event)
        ordered = sorted(model, key=lambda one: one.order)
        assert ends.first() == (ordered[0].a_x if ordered else None)
        assert ends.last() == (ordered[-1].a_x if ordered else None)
