"""Compiled passes at the edges of what they take: very far times, and collections of garbage."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine import native
from broker.engine.event.event import Event as CoreEvent
from broker.engine.event.event import event_class
from broker.engine.pattern.agent.patience import Patience
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.layout.prospects import prospect_of
from headwater import Engine, Event
from headwater.events import taken_out
from language import check_text
from tests.pure import python_alone

passes = native.passes
pytestmark = pytest.mark.skipif(passes is None, reason="the passes are not compiled")


class Group:
    """What an agent keeps of a group, as far as is asked here."""

    __slots__ = ("fresh", "reach")

    def __init__(self, _: Any, reach: list[int]) -> None:
        self.fresh: list[Any] = []
        self.reach = reach


def prospect(pattern: str) -> Any:
    text = (
        "event A(x: int) event B(x: int) event C(x: int)\n"
        f"subscription S seq 1 from u to a detect {pattern}"
    )
    (task,) = check_text(text).demand().graph.tasks.values()
    found = prospect_of(lay_out(task.node.case), in_order=True)
    assert found is not None
    return found


PATTERNS = (
    "[first] A then B then C within 60 ms",
    "[first] A and B and C within 40 ms",
    "[chronicle] (A and B) then C within 50 ms",
    "A then B+ then C within 60 ms",
    "[first] A then B then C",
)
far = [0, 1, 60, *(sign * (2**62 + by) for sign in (-1, 1) for by in (-1, 0, 1)), 2**63, -(2**63)]
moments = st.integers(0, 200) | st.sampled_from(far)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.lists(st.tuples(st.integers(0, 2), moments, moments), max_size=8))
def test_times_however_far_are_told_apart_as_in_python(pattern, times):
    """Of the greatest that a pass takes, the difference is no number of 64 bits."""
    tests = prospect(pattern)
    entries = [
        (leaf, CoreEvent(id=str(at), start=min(pair), end=max(pair)))
        for at, (leaf, *pair) in enumerate(times)
    ]
    found = []
    for alone in (False, True):
        groups: dict[Any, Group] = {}
        if alone:
            with python_alone():
                waiting: Any = Patience(tests, None, Group, ())
        else:
            waiting = Patience(tests, None, Group, ())
        touched = waiting.put(entries, groups, eager=False)
        found.append(
            (touched, waiting.count, {key: (one.fresh, one.reach) for key, one in groups.items()})
        )
    assert found[0] == found[1]


def test_a_group_that_goes_while_it_is_looked_at_is_kept_until_then():
    """A text of a class of its own may do anything when it is compared with another."""

    class Kept:
        __slots__ = ("fresh", "full", "open", "reach")

        def __init__(self, fresh: list[Any]) -> None:
            self.fresh, self.full, self.open, self.reach = fresh, 9, False, [-(2**63)]

    class Place(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            groups.clear()
            return False

        def __hash__(self) -> int:
            return 1

    def never(_: Any) -> None:
        raise AssertionError("asked")

    there: Any = Place("hall")
    fresh: list[Any] = []
    groups: dict[Any, Kept] = {(there,): Kept(fresh)}
    patience = passes.Patience(("location",), 1, (((0, 0, 0), (5, 0, 0)),), 1, 0)
    entry = (0, CoreEvent(id="1", location=there, start=1, end=1))
    assert patience([entry], groups, {(Place("yard"),): None}, {}, never) == 1
    assert fresh == [entry]
    assert not groups


def test_a_result_is_told_right_whatever_is_collected_meanwhile():
    """A collection runs where objects are made, and may run events of very many classes.

    Where a Python collects between its own steps alone, as 3.12 does, it runs less often here.
    """
    text = "event A(x: int, y: int)\nsubscription S seq 1 from u to a detect A"
    engine, other = Engine(text), Engine(text)._pipeline
    others = [
        event_class(f"T{at}", dict.fromkeys("abcdefg"[: at % 7], "int"))(id="o", start=at, end=at)
        for at in range(1_000)
    ]
    in_between: list[Any] = []
    events = [Event("A", id=f"e{at}", timestamp=at, x=at, y=-at) for at in range(200)]

    taken = taken_out(events)

    class Loud:
        """Rubbish that leaves further rubbish, so that each collection finds some."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            in_between.append(passes.course(others, -1, None, 0))
            if going_on:
                Loud()

    going_on = True
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        Loud()
        results = engine.push(events)
        alone = [one.to_dict() for one in other.admit(other.intake.from_typed(*taken).events)]
    finally:
        going_on = False
        gc.set_threshold(*before)
        gc.collect()
    assert [one["values"]["A"] for one in results] == [{"x": at, "y": -at} for at in range(200)]
    assert alone == results
    assert in_between


FAR = 10**12  # so that no end is one of the integers that Python keeps


def test_garbage_that_takes_the_events_away_changes_nothing():
    """A collection runs whatever anybody has to say of what goes, and may come at any object."""

    def late() -> list[Any]:
        return [CoreEvent(id=f"e{at:03}", start=FAR + at, end=FAR + at) for at in range(99, -1, -1)]

    class Greedy:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            given.clear()

    wanted = passes.course(late(), FAR, None, 10**6)[4]
    before, collects = gc.get_threshold(), gc.isenabled()
    gc.freeze()  # what other tests hold need not be looked at again and again
    try:
        for _ in range(20):
            given = late()
            taken: list[list[Any]] = [[] for _ in range(200)]  # Python keeps none for the next
            gc.disable()
            Greedy()
            gc.set_threshold(1)
            gc.enable()
            try:
                found = passes.course(given, FAR, None, 10**6)[4]
            finally:
                gc.set_threshold(*before)
                (gc.enable if collects else gc.disable)()
            gc.collect()
            assert given == []
            assert len(taken) == 200
            assert found == wanted
    finally:
        gc.unfreeze()
