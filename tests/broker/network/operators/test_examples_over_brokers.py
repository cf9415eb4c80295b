"""The examples' recordings spread over six brokers give the results that were computed for them."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from language import check_text
from tests.broker.network.operators.overlay import Overlay
from tests.broker.network.operators.travels import World
from tests.examples.recordings import EXAMPLES, json_lines, readings
from tests.oracles.travelling import identity

BATCH = 200  # events that enter together, broker by broker
RECORDED = {
    "weather": (["grand_st_bernard.csv.gz", "singapore.csv.gz"], "station"),
    "fog": (["molene.csv.gz"], "station"),
    "people": (["people.jsonl.gz"], ""),
}


def recorded(name):
    files, source = RECORDED[name]
    if not source:
        return json_lines(*files)
    return [
        {"type": one.kind, "source": one.source, "timestamp": one.time, "value": one.value}
        | ({"position": list(one.place)} if one.place else {})
        for one in readings(*files, source=source)
    ]


def spread(world, count, seed):
    """The overlay after the recording went over it, and how many events entered elsewhere."""
    draw = random.Random(seed)
    overlay = Overlay(count, draw)
    at = {one: draw.randrange(count) for one in sorted({each.source for each in world.events})}
    for source, broker in at.items():
        overlay.advertise(broker, source)
    overlay.settle()
    overlay.want(world.operators())
    overlay.settle()
    for start in range(0, len(world.events), BATCH):
        batch = world.events[start : start + BATCH]
        for broker in range(count):
            some = [one for one in batch if at[one.source] == broker]
            if some:
                overlay.enter(broker, some)
        while draw.random() < 0.9 and overlay.step():
            pass
    overlay.settle()
    return overlay, sum(at[one.source] != overlay.home for one in world.events)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RECORDED)
def test_an_example_over_six_brokers(name):
    text = (EXAMPLES / f"{name}.hw").read_text(encoding="utf-8")
    world = World.over(check_text(text).demand(), recorded(name))
    world.events.sort(key=lambda one: one.end)
    overlay, elsewhere = spread(world, 6, 3)
    whole = world.results()
    given = {identity(one) for one in overlay.arrived}
    assert world.results(given) == whole
    expected = json.loads((EXAMPLES / "expected.json").read_text(encoding="utf-8"))
    assert Counter(one["subscription"] for one in whole) == expected[name]
    # Every beam counts people; of the weather much is of no use to anybody.
    assert len(given) == len(world.events) if name == "people" else len(given) < len(world.events)
    assert name != "weather" or overlay.over_links < elsewhere
