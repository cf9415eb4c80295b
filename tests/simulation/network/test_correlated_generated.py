"""Whatever is detected, events that wait for partners leave what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at the brokers of a network, whose links fail and whose brokers end in two of three runs.
"""

from collections import Counter

import pytest
from msgspec.structs import replace

from tests.broker.core.operators.travels import closed
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.simulation.network.spread import Spread, network_case, plain

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
CLOSED_MS = (1_000, 2_000, 3_000, 5_000, 8_000)


class Waiting(Spread):
    """One run; all sources are behind two brokers, seen from the subscriptions' home."""

    def _before(self, at):
        return self.world.random.randrange(2, at) if at > 2 else at - 1

    def _home(self):
        return self.places[0]

    def _source_places(self, count):
        return [self.world.random.choice(self.places[2:]) for _ in range(count)]

    def _place(self, name):
        place = super()._place(name)
        machine = place.machine
        place.machine = replace(
            machine,
            options=replace(machine.options, correlate=True),
            limits=replace(machine.limits, uncertainty_ms_max=0),
        )
        return place

    @property
    def waited(self):
        return sum(place.counted("kept_back") for place in self.places)


def compare(construct, context, seed, faults):
    """(how many results both have, how many events waited); None: no case for a network."""
    spec, events = random_case(seed, construct, context)
    draw = SeededDraw(f"{construct}/{context}/{seed}")
    if draw.chance(70):
        spec = closed(spec, draw.pick(CLOSED_MS))
    case = network_case(spec, events)
    if case is None:
        return None
    text, events, expected = case
    if any(one.get("uncertainty") for one in events):  # these brokers would refuse it
        return None
    run = Waiting(seed, text, events, faults)
    run.run()
    assert plain(run.results) == expected, text
    return len(expected), run.waited


def some(seeds, each=1):
    """Every construct, in another context with each seed."""
    counts = Counter()
    for seed in seeds:
        for number, construct in [*enumerate(CONSTRUCTS)][::each]:
            context = CONTEXTS_WHOLE[(number + seed) % len(CONTEXTS_WHOLE)]
            found = compare(construct, context, seed, 0 if number % 3 == 0 else 15)
            counts["none" if found is None else "found" if found[0] else "empty"] += 1
            counts["waited"] += found is not None and found[1] > 0
    return counts


@pytest.mark.timeout(60)
def test_what_waits_leaves_what_one_engine_finds():
    counts = some([1], each=8)
    assert counts["found"] > 2
    assert counts["waited"] > 1


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(24))
def test_what_waits_leaves_what_one_engine_finds_in_many_more_runs(seed, record_property):
    counts = some([seed])
    runs = counts["found"] + counts["empty"]
    what = "specifications whose events wait for partners, held to one engine"
    record_property("generated", [what, "all", "all", runs, counts["found"]])
    assert counts["found"] > len(CONSTRUCTS) / 3
    assert counts["waited"] > 1
