"""The same specification and events on 1, 6 and 20 brokers: the same results, the same ids.

The routers are the product's; links are reliable and as slow as chance has it. No network's
protocol is between: what a home is given is what routers let travel for its operators.
"""

from __future__ import annotations

import random

import pytest

from tests.broker.network.operators.overlay import Overlay
from tests.broker.network.operators.test_what_travels import WRITTEN
from tests.broker.network.operators.travels import World, drawn, written
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE
from tests.oracles.travelling import identity

COUNTS = (1, 6, 20)
PAIRS = [(construct, context) for construct in CONSTRUCTS_WHOLE for context in CONTEXTS_WHOLE]


def over_brokers(world: World, count: int, seed: int) -> Overlay:
    """The overlay after all events have gone where they are wanted."""
    draw = random.Random(f"{count}/{seed}")
    overlay = Overlay(count, draw)
    sources = sorted({one.source for one in world.events})
    at = {source: draw.randrange(count) for source in sources}
    for source in sources:
        overlay.advertise(at[source], source)
    operators = world.operators()
    if draw.random() < 0.3:
        overlay.want(operators)  # advertisements come late
        overlay.settle()
    else:
        overlay.settle()
        overlay.want(operators)
        overlay.settle()
    for event in draw.sample(world.events, len(world.events)):
        overlay.enter(at[event.source], [event])
        while draw.random() < 0.6 and overlay.step():
            pass
    overlay.settle()
    return overlay


def agree(world: World, seed: int) -> None:
    whole = world.results()
    sent = world.travelling(world.operators())
    for count in COUNTS:
        overlay = over_brokers(world, count, seed)
        given = {identity(one) for one in overlay.arrived}
        assert given >= sent, f"seed {seed}, {count} brokers"
        assert world.results(given) == whole, f"seed {seed}, {count} brokers"


@pytest.mark.parametrize("number", range(len(CONSTRUCTS_WHOLE)))
def test_on_one_on_six_and_on_twenty_brokers(number):
    construct = list(CONSTRUCTS_WHOLE)[number]
    world = drawn(3, construct, CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)])
    if world is not None:
        agree(world, number)


@pytest.mark.parametrize("detect", WRITTEN[::4])
def test_what_is_written_by_hand_on_one_on_six_and_on_twenty_brokers(detect):
    agree(written(1_000, detect), 0)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("construct", "context"), PAIRS)
def test_many_cases_on_one_on_six_and_on_twenty_brokers(construct, context):
    for seed in range(10, 40):
        world = drawn(seed, construct, context)
        if world is not None:
            agree(world, seed)
