"""What a limit in time keeps and finds, beside a plain look at all pairs; the paper's relations."""

import pytest

from experiments.restriction import (
    FREE,
    LIMIT,
    RESTRICTED,
    UNIT_MS,
    WORDS,
    ambiguity,
    course,
    events,
    periods,
    relations,
)


def pairs(given, limit_ms=None):
    """All pairs of an A and a B behind it."""
    return [
        (one, other)
        for one in given
        for other in given
        if one["type"] == "A"
        and other["type"] == "B"
        # Where the two meet in one instant, something longer than a point has to.
        and (
            one["end"] < other["start"]
            or (one["end"] == other["start"] and other["end"] + one["end"] > 2 * one["start"])
        )
        and (limit_ms is None or other["start"] - one["end"] <= limit_ms)
    ]


@pytest.mark.parametrize("gap", [2, 8])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_is_every_pair_within_the_limit_and_no_other(seed, gap):
    given = events(seed, gap)
    everything = course(WORDS[FREE, "unrestricted"], given).found[-1]
    assert everything == len(pairs(given)) > 0
    within = course(WORDS[RESTRICTED, "unrestricted"], given).found[-1]
    assert within == len(pairs(given, LIMIT * UNIT_MS)) > 0
    partnered = {other["id"] for _, other in pairs(given)}
    assert course(WORDS[FREE, "recent"], given).found[-1] == len(partnered)
    near = {other["id"] for _, other in pairs(given, LIMIT * UNIT_MS)}
    assert course(WORDS[RESTRICTED, "recent"], given).found[-1] == len(near)


def test_a_limit_bounds_what_is_kept():
    given = events(1, 8)
    free = course(WORDS[FREE, "unrestricted"], given).kept
    within = course(WORDS[RESTRICTED, "unrestricted"], given).kept
    assert free[-1] > 3 * free[len(free) // 5]
    assert max(within) < 10 < max(free)


def test_each_relation_of_the_paper_is_found_with_the_time_that_it_has_there():
    rows = list(relations())
    assert len(rows) == 18
    for row in rows:
        assert row[3] == row[5], row
        assert row[6] == row[3], row  # a conjunction holds in every relation


def test_periods_and_ambiguous_situations_are_as_the_paper_has_them():
    apart = {row[0]: row[1:] for row in periods()}
    assert apart.pop("11") == ["no", "maybe"]  # `within` includes its end
    assert all(paper == here for paper, here in apart.values())
    assert {here for _, here in apart.values()} == {"yes", "maybe", "no"}
    assert all(wanted == here for _, _, wanted, here in ambiguity())
