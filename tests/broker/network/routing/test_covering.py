"""Exact covering against an oracle that looks at every point that can matter."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.network.routing.covering.boxes import Box
from broker.network.routing.covering.covering import covered, decide, pairwise
from tests.broker.network.routing.covering_support import (
    Side,
    Written,
    box,
    generated,
    oracle,
    partition_case,
)

SEEDS_FAST, SEEDS_LONG = 2_500, 100_000


def judged(seed: int) -> bool:
    """Check one generated case; whether it is covered."""
    asked, held = generated(seed)
    truth = oracle(asked, held)
    found = decide(box(asked), [box(each) for each in held])
    assert not found.over_budget, seed
    assert found.covered == truth, (seed, asked, held)
    if truth:
        assert oracle(asked, [held[place] for place in found.places]), seed
    alone = pairwise(box(asked), [box(each) for each in held])
    assert alone == any(oracle(asked, each) for each in ([], *([one] for one in held))), seed
    return truth


def test_covering_is_what_all_points_say() -> None:
    truths = [judged(seed) for seed in range(SEEDS_FAST)]
    assert 0.3 < sum(truths) / len(truths) < 0.7  # both answers are asked for often


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(10))
def test_covering_is_what_all_points_say_in_a_hundred_thousand_cases(part: int) -> None:
    each = SEEDS_LONG // 10
    for seed in range(SEEDS_FAST + part * each, SEEDS_FAST + (part + 1) * each):
        judged(seed)


def test_the_oracle_finds_a_planted_fault() -> None:
    """One that takes open ends for closed ones is told apart within a few cases."""

    def closed(written: Written) -> Box:
        return box(tuple(side._replace(low_open=False, high_open=False) for side in written))

    cases = (partition_case(random.Random(seed)) for seed in range(200))
    wrong = [
        covered(box(asked), [closed(each) for each in held]) and not oracle(asked, held)
        for asked, held in cases
    ]
    assert any(wrong)


# --- properties -------------------------------------------------------------------------------

AXES = 3
# Ends among large integers are widened or drawn in; they have a test of their own.
small, large = st.floats(-1e15, 1e15), st.floats(1e19, 1e300)
numbers = st.one_of(
    st.none(), st.integers(-4, 4).map(float), small, large, large.map(lambda value: -value)
)


@st.composite
def sides(draw):
    low, high = draw(numbers), draw(numbers)
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Side(low, high, draw(st.booleans()), draw(st.booleans()), draw(st.integers(0, 9)) == 0)


boxes = st.tuples(*[sides()] * AXES)


@given(boxes, st.lists(boxes, max_size=12))
def test_any_ends_are_judged_as_by_all_points(asked, held) -> None:
    assert covered(box(asked), [box(each) for each in held]) == oracle(asked, held)


@given(boxes, st.lists(boxes, max_size=8), boxes, st.randoms(use_true_random=False))
def test_more_boxes_in_another_order_cover_no_less(asked, held, more, seeded) -> None:
    made = [box(each) for each in held]
    before = covered(box(asked), made)
    seeded.shuffle(made)
    assert covered(box(asked), made) == before
    assert covered(box(asked), [*made, box(more)]) >= before


@given(boxes, boxes)
def test_a_box_covers_itself_and_what_it_shares_with_another(one, other) -> None:
    first, second = box(one), box(other)
    shared = Box(
        tuple(map(max, first.lows, second.lows)), tuple(map(min, first.highs, second.highs))
    )
    assert covered(first, [first])
    assert covered(shared, [first])
    assert pairwise(shared, [second])


@given(boxes, st.integers(0, AXES - 1), st.integers(-3, 3).map(float), st.booleans())
def test_two_halves_cover_their_whole_and_neither_does_alone(whole, axis, at, left) -> None:
    def half(side: Side) -> Written:
        return (*whole[:axis], side, *whole[axis + 1 :])

    low, high, low_open, high_open, anything = whole[axis]
    inside = (low is None or low < at) and (high is None or at < high) and not anything
    if not inside or box(whole).empty:
        return
    halves = [half(Side(low, at, low_open, left)), half(Side(at, high, not left, high_open))]
    assert covered(box(whole), [box(each) for each in halves])
    assert not any(covered(box(whole), [box(each)]) for each in halves)
    apart = [half(Side(low, at, low_open, True)), half(Side(at, high, True, high_open))]
    assert not covered(box(whole), [box(each) for each in apart])


# --- single cases -----------------------------------------------------------------------------


def ranges(*ends: tuple[float, float]) -> Box:
    return box(tuple(Side(float(low), float(high), True, True) for low, high in ends))


def test_the_papers_table_one() -> None:
    """No subscription has the keys of the third; its parts at the sensors are all covered, that of
    the sensor b by the first two together only.
    """
    assert covered(ranges((55, 75)), [ranges((50, 80))])  # a: of s1
    assert covered(ranges((5, 15)), [ranges((2, 20))])  # c: of s2
    both = [ranges((10, 30)), ranges((20, 40))]
    assert covered(ranges((15, 35)), both)
    assert not pairwise(ranges((15, 35)), both)
    assert not covered(ranges((20, 40), (2, 20)), [ranges((10, 30), (2, 20))])  # s2 is not by s1


def test_open_ends_that_meet_leave_a_gap_and_closed_ones_none() -> None:
    whole = box((Side(0.0, 2.0),))
    left = Side(0.0, 1.0, high_open=True)
    assert not covered(whole, [box((left,)), box((Side(1.0, 2.0, low_open=True),))])
    assert covered(whole, [box((left,)), box((Side(1.0, 2.0),))])


def test_ranges_without_bounds_do_not_cover_events_without_the_attribute() -> None:
    anything = box((Side(None, None, anything=True),))
    every_number = box((Side(None, None),))
    assert covered(every_number, [anything])
    assert not covered(anything, [every_number])
    assert not covered(anything, [box((Side(None, 5.0),)), box((Side(5.0, None),))])
    assert covered(every_number, [box((Side(None, 5.0),)), box((Side(5.0, None),))])


@pytest.mark.parametrize("end", [2**53, 2**60, 2**63 - 1024, -(2**53), -(2**60), -(2**63)])
def test_integers_between_neighbouring_floats_are_never_lost(end: int) -> None:
    """An integer is compared as it is, so that ranges which seem to touch may have one between."""
    below, above = Side(None, float(end)), Side(float(end), None, low_open=True)
    near = [below, above, Side(None, end - 2048.0), Side(end + 2048.0, None)]
    whole = Side(None, None)
    for held in ([a, b] for a in near for b in near):
        if covered(box((whole,)), [box((side,)) for side in held]):
            assert all(
                any(side.takes(value) for side in held) for value in range(end - 9000, end + 9000)
            )
    assert covered(box((Side(end + 4096.0, None),)), [box((above,))])


def test_ends_far_out_keep_their_order() -> None:
    far = 1e300
    whole = box((Side(None, None), Side(0.0, 1.0)))
    held = [box((Side(far, None), Side(0.0, 1.0))), box((Side(None, -far), Side(0.0, 1.0)))]
    assert not covered(whole, held)
    assert covered(whole, [*held, box((Side(-far, far), Side(0.0, 1.0)))])
    most = 1.7976931348623157e308
    assert covered(box((Side(-most, most),)), [box((Side(-most, 0.0),)), box((Side(0.0, most),))])
    assert not covered(box((Side(-most, most),)), [box((Side(-most, 0.0),))])


def test_without_axes_one_box_covers_every_other() -> None:
    assert covered(box(()), [box(())])
    assert not covered(box(()), [])


def test_a_box_with_crossing_ends_holds_nothing_and_covers_nothing() -> None:
    """Its volume is negative, or positive if it is empty twice: neither may count."""
    whole = box((Side(0.0, 10.0), Side(0.0, 10.0)))
    halves = [box((Side(0.0, 10.0), Side(0.0, 5.0))), box((Side(0.0, 10.0), Side(5.0, 10.0)))]
    nothing = [
        box((Side(7.0, 2.0), Side(0.0, 10.0))),
        box((Side(9.0, 1.0), Side(9.0, 1.0))),
        box((Side(3.0, 3.0, low_open=True), Side(0.0, 10.0))),
    ]
    found = decide(whole, [*nothing, *halves])
    assert found.covered
    assert found.places == (3, 4)
    assert not covered(whole, [*nothing, halves[0]])
    assert covered(nothing[0], [])


def test_over_the_budget_nothing_is_covered_and_it_is_told() -> None:
    cells = [
        box((Side(float(x), x + 1.0), Side(float(y), y + 1.0))) for x in range(6) for y in range(6)
    ]
    whole = box((Side(0.0, 6.0), Side(0.0, 6.0)))
    enough = decide(whole, cells)
    assert enough.covered
    assert not enough.over_budget
    assert len(enough.places) == len(cells)
    short = decide(whole, cells, budget=enough.parts - 1)
    assert (short.covered, short.over_budget) == (False, True)
    assert decide(whole, cells, budget=enough.parts).covered


def test_twelve_axes_of_keys_with_places_are_searched_within_the_budget() -> None:
    """Four keys, each with a value and a region: halves of a region on every key."""
    whole = Side(0.0, 8.0)
    halves = (Side(0.0, 4.0), Side(4.0, 8.0))
    asked = (whole,) * 12
    held = [asked]
    for axis in range(6):  # 64 boxes
        held = [(*each[:axis], half, *each[axis + 1 :]) for each in held for half in halves]
    made = [box(each) for each in held]
    assert decide(box(asked), made).covered
    without = decide(box(asked), made[:-1])
    assert (without.covered, without.over_budget) == (False, False)
