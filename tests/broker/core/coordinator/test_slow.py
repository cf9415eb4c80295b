"""Brokers that are slow, each in its own way, come to rest as others do, and where others do."""

from random import Random

import pytest

from tests.broker.core.coordinator.slow import SlowTown
from tests.broker.core.coordinator.town import best, drawn

REST_S = 120  # four times what brokers take that are not slow: to measure, to agree and to move
STAYS_S = 60
NEAR = 1.15  # times the least flow: a move has to gain its price, 0.1 of the inputs
SEEDS_FAST = 4
SEEDS_LONG = 150


def rest(town: SlowTown) -> None:
    """All are to be done in time, though they go on being slow, and to stay as they are."""
    town.run(REST_S)
    moves = town.moves
    town.run(STAYS_S)
    assert town.moves == moves
    assert len({house.coordinator.epoch for house in town.alive}) == 1
    for house in town.alive:
        assert not house.coordinator.works.wishes
        assert not house.coordinator.rounds.busy, "a broker is promised to a turn that never ends"
        assert not house.coordinator.rounds.unclear


def rest_near_the_best(town: SlowTown) -> None:
    rest(town)
    assert town.flow() <= NEAR * best(town)[1]


def drain(town: SlowTown, name: str, *, drained: bool) -> None:
    house = town.houses[name]
    house.do(lambda: house.coordinator.drain(town.world.now, drained=drained))


def check(seed: int) -> int:
    """A rate doubles, a broker is drained and taken up again, dies and is back; the refusals."""
    draw = Random(f"slow {seed}")
    town = drawn(seed, draw.randint(3, 8), draw.randint(1, 5), kind=SlowTown)
    assert isinstance(town, SlowTown)
    rest_near_the_best(town)
    place = draw.choice(list(town.rates))
    town.rate({place: 2 * town.rates[place]})
    rest_near_the_best(town)
    name = draw.choice(town.names)
    for drained in (True, False):
        drain(town, name, drained=drained)
        rest(town)
        assert not (drained and any(job.host == name for job in town.jobs.values()))
    name = draw.choice(town.names)
    town.die(name)
    town.run(draw.randint(1, 30))
    town.revive(name)
    rest_near_the_best(town)
    return sum(house.coordinator.rounds.refused for house in town.alive)


@pytest.mark.parametrize("seed", range(SEEDS_FAST))
def test_slow_brokers_come_to_rest_whatever_happens(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_slow_brokers_come_to_rest_in_many_more_networks() -> None:
    assert sum(check(seed) for seed in range(SEEDS_FAST, SEEDS_LONG)) > 10
