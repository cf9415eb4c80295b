"""Windows against a naive recomputation, over generated events, orders, watermarks, snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.core.window_support import (
    AGGREGATES,
    Defined,
    Leaf,
    agent_of,
    alike,
    expected,
    histories,
    run,
    told,
    traces,
)

A = Leaf("A", "A")
SHAPES = {
    "one operand, no group": ((A,), ()),
    "one operand, one key": ((A,), ("g",)),
    "one outer operand": ((Leaf("outer A", "A", outer=True),), ("location",)),
    "two operands, two keys": ((A, Leaf("B", "B")), ("location", "g")),
    "one operand outer": ((A, Leaf("outer B as b", "B", outer=True)), ("location",)),
    "the first outer": ((Leaf("outer A", "A", outer=True), Leaf("B", "B")), ()),
    "all outer": (
        (Leaf("outer A", "A", outer=True), Leaf("outer B", "B", outer=True)),
        ("location",),
    ),
    "an event at two operands": (
        (
            Leaf("A as A", "A"),
            Leaf("outer A(i > 0) as q", "A", outer=True, own=lambda e: (e.a_i or 0) > 0),
        ),
        ("g",),
    ),
}
WINDOWS = [
    ("every 7 ms", 7, None),
    ("every 10 ms range 10 ms", 10, 10),
    ("every 10 ms range 4 ms", 10, 4),
    ("every 10 ms range 30 ms", 10, 30),
    ("every 7 ms range 23 ms", 7, 23),
    ("every 2 ms range 25 ms", 2, 25),
    ("every 3 ms range 30 ms", 3, 30),
    ("range 1 ms", None, 1),
    ("range 12 ms", None, 12),
]
# What grows with the events is merged in another way than what does not.
GROWING = ("Median", "Quantile", "CountDistinct")
WITHOUT_VALUES = tuple(
    name for name, (text, *_) in AGGREGATES.items() if not text.startswith(GROWING)
)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_windows_are_what_a_naive_recomputation_gives(shape: str, data: st.DataObject) -> None:
    """Whatever the order of arrival, the batches, the watermarks and the snapshots."""
    leaves, group_by = SHAPES[shape]
    assign = data.draw(st.sampled_from([tuple(AGGREGATES), WITHOUT_VALUES]))
    defined = Defined(*data.draw(st.sampled_from(WINDOWS)), leaves, group_by, assign)
    events = data.draw(traces())
    history = data.draw(histories(events))
    made = run(defined, history, lambda: agent_of(defined.text))
    wanted = [(window, *rest) for window, _, *rest in expected(defined, events)]
    assert alike(told(defined, made)) == alike(wanted)
    ids = [event.id for event in made]
    assert len(set(ids)) == len(ids)
