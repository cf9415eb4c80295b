"""Plans from which one small step, of a stream or of a piece, leads to a better one."""

import pytest

from tests.planner.test_search_best import hold_against_all

AROUND = {
    "nodes": [{"id": "b0"}, {"id": "b1", "capacity": 0}, {"id": "b2", "capacity": 3}],
    "links": [
        {"a": "b2", "b": "b1"},
        {"a": "b1", "b": "b0"},
        {"a": "b2", "b": "b0", "capacity": 25},
    ],
    "contents": [
        {"id": "C0", "rates": {"b2": 20}},
        {"id": "C2", "rates": {"b2": 5, "b1": 8}},
    ],
    "tasks": [
        {
            "id": "T1",
            "inputs": ["C0", "C2"],
            "mode": "sharded",
            "cost": 3,
            "rate": {"b1": 2.25, "b2": 20},
            "destinations": {"b1": ["b2"], "b2": []},
        },
        {"id": "T0", "inputs": ["C0"], "rate": 0.5, "destinations": ["b0"]},
    ],
}
ELSEWHERE = {
    "nodes": [{"id": "b0"}, {"id": "b1"}, {"id": "b2"}, {"id": "b3", "capacity": 1}],
    "links": [
        {"a": "b3", "b": "b0", "capacity": 10},
        {"a": "b0", "b": "b2", "capacity": 5},
        {"a": "b2", "b": "b1"},
        {"a": "b3", "b": "b1"},
    ],
    "contents": [{"id": "C1", "rates": {"b0": 2.25, "b2": 0.5, "b3": 10}}],
    "tasks": [
        {"id": "T0", "inputs": ["C1"], "mode": "sharded", "hosts": ["b1", "b0"], "rate": 1},
        {"id": "T1", "inputs": ["T0", "C1"], "cost": 1, "rate": 1},
        {
            "id": "T3",
            "inputs": ["T1"],
            "cost": 1,
            "rate": 5,
            "hosts": ["b3", "b2"],
            "destinations": ["b0", "b1", "b3"],
        },
    ],
}


@pytest.mark.parametrize("document", [AROUND, ELSEWHERE], ids=["a stream", "a piece"])
def test_what_was_laid_badly_at_first_is_looked_at_again(document):
    """A placement may be met anew with better trees than those it was judged by."""
    hold_against_all(document, 2500)
