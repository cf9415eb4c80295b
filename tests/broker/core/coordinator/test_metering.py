"""Rates are told when they are others, and not when they merely go up and down."""

from collections.abc import Callable
from random import Random

import pytest

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.metering import Counts, Meter, Metering, Rates

SETTINGS = CoordinatorSettings(measure_ms=6_000)
PLACE = ("o", "Temp")
NAME = ("home", "home/1")


def told_of(bytes_at: Callable[[int], float], for_s: int) -> list[tuple[int, int]]:
    """(second, bytes a second) whenever the rate of an input is told."""
    metering = Metering(SETTINGS, lambda _takes, _size: 0)
    came, told, found = 0.0, Rates({}, 0), []
    for second in range(for_s):
        came += bytes_at(second)
        counts = {NAME: Counts(1, {PLACE: round(came)}, 0, 1_000)}
        new = metering.look(counts, {NAME: told}, second * 1_000).get(NAME)
        if new is not None:
            told = new
            found.append((second, new.inputs[PLACE]))
    return found


def test_a_steady_rate_is_told_once_and_a_step_soon_and_as_it_is() -> None:
    told = told_of(lambda second: 1_000 if second < 60 else 2_000, 120)
    assert [rate for _, rate in told] == [1_000, 2_000]
    assert 60 < told[1][0] <= 66


@pytest.mark.parametrize("every_ms", [200, 500, 1_000, 2_000])
def test_a_steady_rate_is_never_taken_for_another_not_even_by_the_first_looks(every_ms) -> None:
    """Where it were, what is known of it would be thrown away, and its mean were less exact."""
    meter = Meter(SETTINGS, lambda _takes, _size: 0, 0, 0, Counts(1, {PLACE: 0}, 0, 1_000))
    weights = []
    for now in range(0, 60_000, every_ms):
        meter.look(Counts(1, {PLACE: now}, 0, 1_000), Rates({}, 0), now)
        weights += [one.weight for one in meter.means.values()]
    assert len(weights) > 20
    assert weights == sorted(weights)


@pytest.mark.parametrize("part", [1.0, 0.3])
def test_an_input_that_ends_is_told_of(part: float) -> None:
    draw = Random(3)
    told = told_of(lambda second: (draw.random() < part) * (1_000 if second < 120 else 0), 240)
    assert [rate for second, rate in told if second < 120][-1] > 0
    assert told[-1][1] == 0
    assert told[-1][0] <= 180


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("kind", ["bursts", "seldom", "drawn"])
def test_what_goes_up_and_down_is_told_a_few_times_and_then_no_more(kind: str, seed: int) -> None:
    draw = Random(f"{kind} {seed}")
    each = {
        "bursts": lambda second: 4_000 if second % 4 == 3 else 0,
        "seldom": lambda _: 1_000 * (draw.random() < 0.3) * draw.randint(1, 3),
        "drawn": lambda _: draw.uniform(0, 2_000),
    }[kind]
    told = told_of(each, 900)
    mean = {"bursts": 1_000, "seldom": 600, "drawn": 1_000}[kind]
    assert 1 <= len(told) <= 10  # as they become exact, and by chance
    assert 0.5 * mean < told[-1][1] < 2 * mean


def test_where_a_rate_doubles_amid_bursts_it_is_told_within_some_of_them() -> None:
    told = told_of(lambda second: (3_000 if second < 100 else 6_000) * (second % 3 == 2), 200)
    assert 700 < [rate for second, rate in told if second < 100][-1] < 1_400
    assert 1_500 < [rate for second, rate in told if second < 130][-1] < 2_600


def test_what_is_not_surely_another_is_not_told_because_something_else_is() -> None:
    """Nor are snapshots that follow from it: what a plan is made with would go up and down."""
    other = ("o", "Wind")
    metering = Metering(SETTINGS, lambda takes, _size: takes // 10)
    steady = bursts = 0
    told, found = Rates({}, 0), []
    for second in range(400):
        steady += 1_000 if second < 200 else 3_000
        bursts += 4_000 if second % 4 == 3 else 0
        counts = {NAME: Counts(1, {PLACE: steady, other: bursts}, 0, 1_000)}
        new = metering.look(counts, {NAME: told}, second * 1_000).get(NAME)
        if new is not None:
            told = new
            found.append((second, new))
    late = [one for second, one in found if second >= 195]
    assert late  # the step was told
    assert late[-1].inputs[PLACE] == 3_000
    before = [one for second, one in found if second < 195][-1]
    assert all(one.inputs[other] == before.inputs[other] for one in late)
    assert late[-1].sends == pytest.approx((3_000 + before.inputs[other]) / 10, rel=0.01)


def test_an_input_is_not_told_to_have_ended_before_it_has_been_silent_for_long() -> None:
    """It may come seldom; a host that has just begun a task has seen nothing of it."""
    metering = Metering(SETTINGS, lambda _takes, _size: 0)
    told = Rates({PLACE: 500}, 0)
    seen = []
    for second in range(60):
        came = 0 if second < 18 else 8_000 * (1 + (second - 18) // 16)
        counts = {NAME: Counts(2, {PLACE: came} if came else {}, 0, 1_000)}
        new = metering.look(counts, {NAME: told}, second * 1_000).get(NAME)
        if new is not None:
            told = new
            seen.append(new.inputs.get(PLACE, 0))
    assert 0 not in seen
