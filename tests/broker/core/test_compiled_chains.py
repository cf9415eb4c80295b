"""Chains are found among what waits alike by the compiled pass and by Python."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine import native
from broker.engine.event.event import event_class
from broker.engine.pattern.pattern import lay_out
from broker.engine.pattern.solved import solver_of
from language import check_text
from tests.pure import python_alone

FEWER = settings(max_examples=settings.default.max_examples // 2)
passes = native.passes
pytestmark = pytest.mark.skipif(passes is None, reason="the passes are not compiled")

DECLARED = "event A(x: int) event B(x: int) event C(x: int) event D(x: int) event E(x: int)\n"
CHAINS = {
    "first": "detect[first] A then B then C within 9 ms",
    "first of five": "detect[first] A then B then C then D then E within 9 ms",
    "list": "detect A then B+ then C within 9 ms",
    "list that may be empty": "detect A then B* then C within 9 ms",
    "two lists": "detect A then B+ then C then D* then E within 9 ms",
    "two lists in one place": "detect A then B* then C* then D within 9 ms",
    "elements without lists between": "detect A then B then C+ then D within 9 ms",
}
Reading = event_class("Reading", {"x": "int"})


def solvers(pattern: str, declared: str = DECLARED) -> tuple[Any, Any]:
    """Of one pattern: compiled, and of Python alone."""
    text = f"{declared}\nsubscription S seq 1 from me to log\n{pattern}"
    (task,) = check_text(text).demand().graph.tasks.values()
    layout = lay_out(task.node.case)
    with python_alone():
        alone = solver_of(layout)
    return solver_of(layout), alone


def reading(name: str, end: int, start: int | None = None) -> Any:
    return Reading(id=name, start=end if start is None else start, end=end)


@pytest.mark.parametrize("pattern", CHAINS.values(), ids=CHAINS)
@FEWER
@given(data=st.data(), at=st.integers(-3, 14), far=st.sampled_from([0, -(2**61), 10**15]))
def test_chains_are_found_alike(pattern, data, at, far):
    """Also where several end together, and where some are before or behind what completes them."""
    solver, alone = solvers(pattern)
    inner = getattr(solver.solve, "__wrapped__", solver.solve)  # a budget may be charged around it
    assert type(inner) is passes.Chain
    assert (solver.last, solver.spends) == (alone.last, alone.spends)
    drawn = data.draw(
        st.lists(st.tuples(st.integers(0, 14), st.integers(0, solver.last)), max_size=30)
    )
    entries = [(place, reading(f"{n}", far + end)) for n, (end, place) in enumerate(sorted(drawn))]
    event = reading("last", far + at)
    found, wanted = solver.solve(entries, event), alone.solve(entries, event)
    assert found == wanted
    assert repr(found) == repr(wanted)  # of what kinds, too


@pytest.mark.parametrize("doors", [200, 254, 255, 300])
def test_more_than_there_is_room_for_is_left_to_python(doors):
    solver, alone = solvers("detect A then B+ then C within 9 s")
    entries = [(0, reading("a", 0)), *((1, reading(f"b{at}", 1 + at)) for at in range(doors))]
    event = reading("c", 1_000)
    found = solver.solve(entries, event)
    assert found == alone.solve(entries, event)
    assert [len(one[3]) for one in found] == [doors]


@pytest.mark.parametrize(
    "odd",
    [
        (0, reading("a", 2**62)),
        (0, reading("a", 5, 2**70)),
        [0, reading("a", 5)],
        (True, reading("a", 5)),
        (0, reading("a", 5), None),
    ],
)
def test_what_is_out_of_the_common_is_left_to_python(odd):
    asked = []

    def slow(entries: Any, event: Any) -> list[Any]:
        asked.append((entries, event))
        return ["said"]

    chain = passes.Chain(9, (0, 1), (), True, slow)
    entries, event = [odd], reading("b", 6)
    assert chain(entries, event) == ["said"]
    assert chain(tuple(entries), event) == ["said"]
    assert chain([], reading("b", 2**62)) == ["said"]
    assert len(asked) == 3
    one = reading("a", 5)
    assert chain([(0, one)], event) == [(6, 5, one, event)]


@pytest.mark.parametrize(
    ("within_ms", "elements", "lists"),
    [
        (9, (0,), ()),
        (9, (0, 0), ()),
        (9, (0, 2), ()),
        (9, (0, -1), ()),
        (9, (0, 1), ((1, 0, 1, True),)),
        (9, (0, 2), ((1, 0, 1, True),)),
        (9, (0, 2), ((1, 0, 40, True),)),
        (9, (0, 1), ((3, 0, 1, True),)),
        (9, tuple(range(17)), ()),
        (-1, (0, 1), ()),
        (2**62, (0, 1), ()),
    ],
)
def test_a_chain_has_each_place_once(within_ms, elements, lists):
    with pytest.raises(ValueError, match="a chain has"):
        passes.Chain(within_ms, elements, lists, False, print)


@pytest.mark.parametrize(("count", "is_compiled"), [(16, True), (17, False)])
def test_long_chains_are_left_to_python(count, is_compiled):
    names = [f"T{at}" for at in range(count)]
    declared = " ".join(f"event {name}(x: int)" for name in names)
    solver, _ = solvers(f"detect[first] {' then '.join(names)} within 99 ms", declared)
    assert (type(solver.solve) is passes.Chain) == is_compiled
    entries = [(at, reading(str(at), at)) for at in range(count - 1)]
    event = reading("last", count)
    assert solver.solve(entries, event) == [(count, 0, *(one for _, one in entries), event)]


def test_as_many_references_go_as_come():
    _, alone = solvers("detect A then B+ then C within 9 s")
    event, before = reading("c", 1_000), reading("a", 10)
    entries = [(0, before), *((1, reading(f"b{at}", 20 + at)) for at in range(5))]
    shared = (event, before, entries[1], entries[1][1])

    def counts(solve: Any) -> list[int]:
        for _ in range(1_000):
            solve(entries, event)
            solve([*entries, None], event)
        return [sys.getrefcount(one) for one in shared]

    def failing(*_: Any) -> None:
        """In Python's place."""

    chain = passes.Chain(9_000, (0, 2), ((1, 0, 2, False),), False, failing)
    assert len(chain(entries, event)) == len(alone.solve(entries, event)) == 1
    assert counts(chain) == counts(chain) == counts(failing)
