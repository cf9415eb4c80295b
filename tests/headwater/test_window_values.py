"""Windows over what functions of one's own and tables give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater

DECLARED = "event A(x: float, tag: text, n: int)\n"
EVENTS = [
    {"type": "A", "id": f"a{t}", "timestamp": t, "x": float(t), "tag": "xyz"[t % 3], "n": 2**60 + t}
    for t in range(6)
]
FUNCTIONS = {
    "half": headwater.Function(lambda value: value / 2),
    "weight": headwater.Function(lambda event: len(event["tag"]) + int(event["x"]), "int"),
    "twice": headwater.Function(lambda event: event["tag"] * 2, "text"),
}


def values(definition: str, **more: Any) -> list[Any]:
    text = f"{DECLARED}{more.pop('tables', '')}{definition}\nsubscription S from u to a detect W"
    engine = headwater.Engine(text, lateness_ms=None, **more)
    engine.push(EVENTS)
    return [result["values"]["W"] for result in engine.finish()]


@pytest.mark.parametrize(
    ("definition", "last"),
    [
        ("define W(s) aggr every 10 ms detect A assign s = Sum(half(A.x))", {"s": 7.5}),
        ("define W(s) aggr every 10 ms detect A assign s = half(Sum(A.x))", {"s": 7.5}),
        ("define W(s) aggr every 10 ms detect A as b assign s = Sum(weight(b))", {"s": 21}),
        ("define W(s) aggr range 1 ms detect A assign s = Sum(weight(A))", {"s": 11}),
        ("define W(s) aggr session 5 ms detect A assign s = Max(twice(A))", {"s": "zz"}),
        ("define W(s) aggr every 10 ms detect A assign s = CountDistinct(twice(A))", {"s": 3}),
        (
            (
                "define W(s) aggr every 10 ms pre detect A assign k = Sum(A.x) group by tag"
                " post where s = Max(half(k))"
            ),
            {"s": 3.5},
        ),
    ],
)
def test_functions_of_ones_own(definition: str, last: dict[str, Any]):
    found = values(definition, functions=FUNCTIONS)[-1]
    found.pop("interval", None)
    assert found == last


def test_tables(tmp_path: Path):
    """Integers of a column stay exact, as those of events do; what is not found is null."""
    most = 2**62 + 1
    file = tmp_path / "tags.csv"
    file.write_text(f"tag,kind,amount,price\nx,box,{most},1.5\ny,bag,3,2\n")
    where = {"file": str(tmp_path / "a.hw"), "tables": 'table Tags from "tags.csv" key tag\n'}
    definition = (
        "define W(s, m, k) aggr every 10 ms detect A(x < 3)"
        " assign s = Sum(Tags[A.tag].amount), m = Avg(Tags[A.tag].price), k = Max(Tags[A.tag].kind)"
    )
    assert values(definition, **where) == [{"s": most + 3, "m": 1.75, "k": "box"}]
    grouped = (
        "define W(k, n) aggr every 10 ms detect A assign k = Tags[group.tag].kind, n = Count(A)"
        " group by tag"
    )
    assert values(grouped, **where) == [{"k": "box", "n": 2}, {"k": "bag", "n": 2}, {"n": 2}]
