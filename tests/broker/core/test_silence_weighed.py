"""Silences while times are uncertain: streams, moves, old states, and what is held."""

from __future__ import annotations

from typing import Any

import msgspec

import headwater

TEXT = """
event A()
event B()
subscription S from tester to out
detect absent A for 3 s
"""


def at(ident: str, second: float, off_s: float = 0, **more: Any) -> dict[str, Any]:
    said = {"type": ident[0].upper(), "id": ident, "timestamp": int(second * 1000), **more}
    return {**said, "uncertainty": int(off_s * 1000)} if off_s else said


def told(results: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(one["start"] // 1000, one["certainty"]) for one in results]


def test_a_silence_is_told_once_nothing_uncertain_can_fall_into_it() -> None:
    engine = headwater.Engine(TEXT)
    found = engine.push([at("a1", 1, 0.5)])
    # What has a time of up to 5 s may have been at 4.5 s, and 4.5 s is the latest end of silence.
    assert found + engine.push([at("b5", 5)]) == []
    assert told(engine.push([at("b6", 6)])) == [(1, "yes")]


def test_one_that_comes_nominally_too_late_makes_it_a_maybe() -> None:
    engine = headwater.Engine(TEXT)
    assert engine.push([at("a1", 1, 0.5), at("a5", 5, 0.5)]) == []
    assert told(engine.finish()) == [(1, "maybe"), (5, "yes")]


def test_what_waits_when_times_become_uncertain_is_weighed_from_then_on() -> None:
    engine = headwater.Engine(TEXT)
    assert engine.push([at("a1", 1)]) == []
    moved = headwater.Engine(TEXT)
    assert engine.push([at("a5", 4.5, 1)]) == []
    moved.restore(engine.state())
    for one in (engine, moved):
        assert told(one.finish()) == [(1, "maybe"), (4, "yes")]


def test_a_state_in_which_silences_went_by_stated_times_is_taken_up() -> None:
    """Until now a stage told of spans and instants alone, also where times were weighed."""
    engine = headwater.Engine(TEXT)
    engine.push([at("a1", 1, 1), at("b2", 2.5), at("a3", 3, 1), at("b4", 4.1)])
    state = msgspec.msgpack.decode(engine.state())
    (agents,) = state["pipeline"]["tasks"].values()
    _, _, facts, _ = root = agents[0]["partitions"][0][3]
    assert len(facts) == 4
    root[2] = [[[1_000, 1_000], [3_000, 3_000]], [3_000], 3_000]
    there = headwater.Engine(TEXT)
    there.restore(msgspec.msgpack.encode(state))
    assert told(there.push([at("a6", 6.5, 1)]) + there.finish()) == [(3, "maybe"), (6, "yes")]


def test_where_p_come_all_the_time_no_more_is_held_than_may_change_places() -> None:
    engine = headwater.Engine(TEXT)
    most = 0
    for number in range(2_000):
        engine.push([at(f"a{number}", number / 10, 0.25)])
        if number > 100:  # by when the beginning, for which all are kept, is decided
            most = max(most, engine._pipeline.matcher.held())
    # Six of them lie within the 501 ms by which one may seem to come before another, and each is
    # awaited and remembered; besides, those that the watermark has not passed.
    assert most <= 2 * 6 + 4


def test_the_drift_of_clocks_makes_the_time_of_silence_longer_and_shorter() -> None:
    events = [at("a10", 10), at("a13", 13.2), at("a20", 20)]
    engine = headwater.Engine(TEXT, drift=0.1, lateness_ms=None)
    engine.push(events)
    # 3.2 s are at most 3.3 s of a clock that is a tenth too fast, and not at most 2.7 s.
    assert told(engine.finish()) == [(10, "maybe"), (13, "yes"), (20, "yes")]


WINDOWED = """
event A()
define Quiet(k)
  detect absent A as x for 2 s then absent A as y for 1 s
  assign k = 3
define Last_(k) aggr range 20 s
  detect Quiet
  assign k = Last(Quiet.k)
subscription S from tester to out
  detect Last_
"""


def test_a_silence_that_may_not_have_been_is_kept_in_a_state_like_any_other() -> None:
    """Silences bind no event, so that their order is kept beside them."""
    whole, engine = headwater.Engine(WINDOWED), headwater.Engine(WINDOWED)
    results: list[list[Any]] = [[], []]
    for second in (1, 7, 13, 14, 19):
        event = at(f"a{second}", second, 1.5)
        results[0] += whole.push([event])
        results[1] += engine.push([event])
        state = engine.state()
        engine = headwater.Engine(WINDOWED)
        engine.restore(state)
    results[0] += whole.finish()
    results[1] += engine.finish()
    assert {one["certainty"] for one in results[0]} >= {"maybe"}
    assert results[0] == results[1]
