"""Virtual time."""

from random import Random

import pytest

from simulation import world as worlds
from simulation.world import World


@pytest.fixture
def world():
    return World(Random(1), 1_000)


def test_actions_happen_in_the_order_of_their_times_and_of_their_planning(world):
    seen = []
    for time_ms, name in [(1_005, "c"), (1_001, "a"), (1_005, "d"), (1_003, "b"), (900, "0")]:
        world.at(time_ms, lambda name=name: seen.append((world.now, name)))
    world.run()
    assert seen == [(1_000, "0"), (1_001, "a"), (1_003, "b"), (1_005, "c"), (1_005, "d")]


def test_what_is_planned_meanwhile_happens_too(world):
    seen = []

    def again():
        seen.append(world.now)
        if len(seen) < 4:
            world.after(10, again)

    world.after(5, again)
    world.run(1_025)
    assert seen == [1_005, 1_015, 1_025]
    assert world.now == 1_025
    world.run()
    assert seen[3:] == [1_035]


def test_a_run_that_does_not_end_is_ended(world, monkeypatch):
    monkeypatch.setattr(worlds, "ACTIONS_MAX", 100)

    def again():
        world.after(0, again)

    again()
    with pytest.raises(RuntimeError, match="no end"):
        world.run()
