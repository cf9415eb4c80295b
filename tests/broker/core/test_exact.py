"""Exact sums: no order, no split and no way back shows in a rounded value."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.window.exact import Moments, WholeMoments, ratio, root_ratio
from tests.broker.core.window_support import NASTY, deviation, nearest, nearest_root

pytestmark = pytest.mark.usefixtures("both_ways")

floats = st.one_of(
    st.sampled_from(NASTY),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-4000, 4000).map(lambda n: n / 10),
)
runs = st.lists(st.lists(floats, min_size=1, max_size=30), min_size=1, max_size=5)


def exact(values: list[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def told(moments: Moments) -> tuple[object, ...]:
    return (moments.n, moments.sum_float(), moments.mean(), moments.deviation())


def wanted(values: list[float]) -> tuple[object, ...]:
    return (
        len(values),
        nearest(exact(values)),
        nearest(exact(values) / len(values)),
        deviation(values),
    )


@given(runs)
def test_runs_taken_one_after_the_other_give_the_correctly_rounded_values(runs):
    moments = Moments(squared=True)
    for run in runs:
        moments.take(run)
    assert repr(told(moments)) == repr(wanted([v for run in runs for v in run]))


@given(runs)
def test_a_sum_without_squares_is_the_same_however_long_its_runs(runs):
    """Short and long runs go different ways."""
    values = [v for run in runs for v in run]
    in_runs, at_once, singly = (Moments(squared=False) for _ in range(3))
    for run in runs:
        in_runs.take(run)
    at_once.take(values)
    for value in reversed(values):
        singly.add(value)
    sums = [nearest(exact(values))] * 3
    assert [m.sum_float() for m in (in_runs, at_once, singly)] == sums
    means = [nearest(exact(values) / len(values))] * 3
    assert [m.mean() for m in (in_runs, at_once, singly)] == means


@given(runs)
def test_parts_merged_are_the_whole(runs):
    parts = []
    for run in runs:
        part = Moments(squared=True)
        part.take(run)
        parts.append(part)
    merged = parts[0].merged(parts[1:])
    assert repr(told(merged)) == repr(wanted([v for run in runs for v in run]))


@given(runs, st.lists(floats, min_size=1, max_size=8))
def test_what_is_taken_back_leaves_no_trace(runs, stays):
    moments = Moments(squared=True)
    gone = [v for run in runs for v in run]
    for value in [*gone, *stays]:
        moments.add(value)
    for value in gone:
        moments.remove(value)
    assert repr(told(moments)) == repr(wanted(stays))


@given(runs, runs)
def test_a_snapshot_goes_on_as_the_original(before, after):
    original, restored = Moments(squared=True), Moments(squared=True)
    for run in before:
        original.take(run)
    restored.restore(original.plain())
    for run in after:
        original.take(run)
        restored.take(run)
    assert repr(told(restored)) == repr(told(original))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_integers_sum_to_an_integer_however_great(values):
    moments = WholeMoments(squared=True)
    moments.take(values[:-1])
    moments.add(values[-1])
    assert moments.sum_int() == sum(values)
    assert moments.mean() == nearest(Fraction(sum(values), len(values)))
    assert moments.deviation() == deviation(values)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1e16, 1.0, -1e16], 1.0),
        ([0.1] * 10, 1.0),
        ([1e308, 1e308, -1e308], 1e308),  # past a float's range on the way, not at the end
        ([1e308, 1e308], None),
        ([5e-324, 5e-324], 1e-323),
        ([1.7e308, 5e-324, -1.7e308], 5e-324),
        ([-0.0], 0.0),
        ([], 0.0),
        ([1e308] * 9 + [-1e308] * 8, 1e308),  # long enough to be condensed
    ],
)
def test_sums_worked_out_by_hand(values, total):
    for order in (values, values[::-1]):
        moments = Moments(squared=False)
        moments.take(order)
        assert repr(moments.sum_float()) == repr(total)


def test_what_condensing_a_run_rounds_off_is_kept():
    """1e16 + 99 is no float; what rounding leaves shows once 1e16 is gone."""
    moments = Moments(squared=False)
    moments.take([1e16, *[1.0] * 99])
    assert moments.sum_float() == 1e16 + 100  # 99 is no float at that height
    moments.take([-1e16, *[0.0] * 99])
    assert moments.sum_float() == 99.0


def test_over_none_there_is_no_mean_and_no_deviation():
    assert Moments(squared=True).mean() is None
    assert Moments(squared=True).deviation() is None


def test_the_deviation_of_equal_values_is_exactly_zero():
    moments = Moments(squared=True)
    moments.take([0.1] * 7)
    assert moments.deviation() == 0.0


@given(st.integers(0, 2**200), st.integers(1, 2**120))
def test_a_root_is_rounded_once(radicand, denominator):
    assert root_ratio(radicand, denominator) == nearest_root(Fraction(radicand, denominator**2))


@given(st.floats(2.0**-500, 2.0**500), st.sampled_from([-1, 0, 1]))
def test_a_root_beside_the_middle_of_two_floats_goes_to_the_right_one(low, offset):
    """The hardest cases: squares of middles, and what lies beside them by almost nothing."""
    middle = (Fraction(low) + Fraction(math.nextafter(low, math.inf))) / 2
    square = middle**2 + offset * Fraction(1, 2**3000)
    up = math.nextafter(low, math.inf)
    even = low if int(math.frexp(low)[0] * 2**53) % 2 == 0 else up
    nearest_float = {-1: low, 0: even, 1: up}[offset]
    root = root_ratio(square.numerator * square.denominator, square.denominator)
    assert root == nearest_float


def test_what_no_float_reaches_is_null():
    assert ratio(10**400, 1) is None
    assert root_ratio(10**700, 1) is None
    assert ratio(1, 10**400) == 0.0
