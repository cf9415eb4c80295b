"""Which parts of an input pieces share: by what they ask for, and by how much they take."""

from itertools import combinations
from random import Random

import pytest

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.laying import SharedPart, shared_parts
from broker.network.operators.filters import covers, filter_of
from broker.network.routing.advertisement.operator import Key, Operator, Range
from tests.broker.core.coordinator.test_seen import seen
from tests.broker.core.coordinator.town import Town

WHOLE = ()
A, B, C = ("b0", "a"), ("b1", "b"), ("b2", "c")
ENDS = range(0, 21, 5)


def between(low: float | None, high: float | None) -> Key:
    return Key("", "T", ranges=(Range("v", low, high, high_open=True),))


BELOW, ABOVE = (between(None, 4),), (between(4, None),)


def told(parts: list[SharedPart]) -> list[tuple[int, list[str]]]:
    return sorted((part.rate, sorted(key for _, key in part.takers)) for part in parts)


def test_disjoint_filters_are_counted_both() -> None:
    parts = shared_parts({A: 12_000, B: 13_500}, {A: BELOW, B: ABOVE})
    assert told(parts) == [(12_000, ["a"]), (13_500, ["b"])]


def test_a_filter_that_another_covers_lies_within_it() -> None:
    parts = shared_parts({A: 4_000, B: 13_500}, {A: (between(0, 2),), B: BELOW})
    assert told(parts) == [(4_000, ["a", "b"]), (9_500, ["b"])]


def test_who_asks_for_both_of_two_parts_takes_both_and_nothing_besides() -> None:
    asked = {A: BELOW, B: ABOVE, C: filter_of((*BELOW, *ABOVE), "T")}
    parts = shared_parts({A: 12_000, B: 13_500, C: 25_500}, asked)
    assert told(parts) == [(12_000, ["a", "c"]), (13_500, ["b", "c"])]


def test_who_asks_for_all_takes_what_others_take_and_the_rest() -> None:
    parts = shared_parts({A: 1_000, B: 2_000, C: 10_000}, {A: BELOW, B: ABOVE, C: WHOLE})
    assert told(parts) == [(1_000, ["a", "c"]), (2_000, ["b", "c"]), (7_000, ["c"])]


def test_filters_of_which_neither_covers_the_other_are_counted_both_as_far_as_there_is_room() -> (
    None
):
    asked = {A: (between(0, 10),), B: (between(5, 15),), C: WHOLE}
    parts = shared_parts({A: 6_000, B: 7_000, C: 10_000}, asked)
    assert told(parts) == [(3_000, ["c"]), (6_000, ["a"]), (7_000, ["b", "c"])]


def test_rates_of_one_filter_that_are_nearly_the_same_are_of_the_same_events() -> None:
    parts = shared_parts({A: 1_000, B: 1_200, C: 1_100}, {A: BELOW, B: BELOW, C: (between(0, 3),)})
    assert told(parts) == [(100, ["a", "b"]), (1_100, ["a", "b", "c"])]
    parts = shared_parts({A: 1_000, C: 1_100}, {A: BELOW, C: (between(0, 3),)})
    assert told(parts) == [(1_100, ["a", "c"])]


@pytest.mark.parametrize("seed", range(60))
def test_parts_come_to_what_each_takes_and_no_more_is_counted_than_all_take(seed: int) -> None:
    """Against events: each interval of values has a rate, and a filter takes those in it."""
    draw = Random(seed)
    rates = {low: draw.randrange(1_000, 9_000) for low in ENDS[:-1]}
    pieces = [("b", str(number)) for number in range(draw.randint(1, 7))]
    asked, takes = {}, {}
    for piece in pieces:
        low, high = sorted(draw.sample(ENDS, 2))
        asked[piece] = (between(low, high),)
        takes[piece] = {each for each in rates if low <= each < high}
    by_piece = {piece: sum(rates[each] for each in takes[piece]) for piece in pieces}
    parts = shared_parts(by_piece, asked)
    room = 1.25 if any(takes[a] & takes[b] for a, b in combinations(pieces, 2)) else 1.0
    for piece in pieces:
        total = sum(part.rate for part in parts if piece in part.takers)
        assert by_piece[piece] <= total <= by_piece[piece] * room
    union = sum(rates[each] for each in set().union(*takes.values()))
    counted = sum(part.rate for part in parts)
    assert counted >= union
    nested = all(
        covers(asked[a], asked[b]) or covers(asked[b], asked[a]) or not takes[a] & takes[b]
        for a, b in combinations(pieces, 2)
    )
    if nested:
        assert counted == union


def test_brokers_that_hear_of_submissions_in_another_order_lay_the_same() -> None:
    draw = Random(3)
    rates = {("b", str(number)): draw.randrange(100, 9_000) for number in range(9)}
    asked = {piece: (between(*sorted(draw.sample(ENDS, 2))),) for piece in rates}
    parts = shared_parts(rates, asked)
    for _ in range(5):
        others = draw.sample(sorted(rates), len(rates))
        assert shared_parts({piece: rates[piece] for piece in others}, asked) == parts


def test_brokers_plan_with_what_two_filters_take_on_a_link() -> None:
    """Only their home has room, behind two links: over each travels what both take together."""
    full = {name: CoordinatorSettings(measure_ms=6_000, capacity=1) for name in ("b0", "b1")}
    town = Town(1, 3, [(0, 1), (1, 2)], {("b0", "T"): 10_000.0}, full)
    for part, asked in ((0.6, BELOW), (0.4, ABOVE)):
        job = town.submit("b2", {("b0", "T"): part}, 0.0)
        job.asked = (Operator("", asked, correlated=False),)
    town.run(120)
    told_of = seen(town)
    assert {task["host"] for task in told_of["tasks"]} == {"b2"}
    assert told_of["flow_bytes_per_s"] == pytest.approx(2 * 10_000, rel=0.01)
    assert len({house.coordinator.epoch for house in town.alive}) == 1
    assert not any(house.coordinator.rounds.unclear for house in town.alive)
