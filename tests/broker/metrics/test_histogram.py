"""Distributions in fixed buckets, against a count of the plain values."""

import random
from math import inf

import pytest

from broker.metrics import Histogram
from broker.metrics.histogram import LATENCY_S


def test_a_bucket_counts_all_values_that_do_not_exceed_its_bound():
    """The definition, over values that lie on the bounds, between and beyond them."""
    rng = random.Random(1)
    values = [*LATENCY_S, *(rng.uniform(0, 100) ** 2 / 100 for _ in range(500))]
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    assert histogram.sum == pytest.approx(sum(values))
    expected = [(bound, sum(value <= bound for value in values)) for bound in (*LATENCY_S, inf)]
    assert histogram.cumulative() == expected


def test_a_value_measured_several_times_counts_as_often():
    histogram = Histogram((1.0, 2.0))
    histogram.observe(1.5, 3)
    assert (histogram.sum, histogram.cumulative()) == (4.5, [(1.0, 0), (2.0, 3), (inf, 3)])


def test_a_negative_value_counts_as_zero():
    """An event's clock may be ahead of the broker's; a sum that fell would be no counter."""
    histogram = Histogram((1.0,))
    histogram.observe(-5.0)
    assert (histogram.sum, histogram.cumulative()) == (0.0, [(1.0, 1), (inf, 1)])


def test_a_quantile_is_the_bound_that_so_many_do_not_exceed():
    histogram = Histogram((1.0, 2.0, 3.0))
    assert histogram.quantile(0.5) is None
    for value in [0.5] * 49 + [1.5] * 50 + [9.0]:
        histogram.observe(value)
    assert [histogram.quantile(share) for share in (0.49, 0.5, 0.99, 1.0)] == [1.0, 2.0, 2.0, inf]


def test_bounds_that_do_not_ascend_are_refused():
    with pytest.raises(ValueError, match="ascend"):
        Histogram((2.0, 1.0))
