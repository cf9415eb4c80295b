"""Whatever is detected, events that wait for partners leave what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at the brokers of a network, whose links fail and whose brokers end in two of three runs.
"""

import json
import re
from collections import Counter

import pytest
from msgspec.structs import replace

import headwater
from language import check_text
from simulation.crashes.clients import Asker, Wish
from tests.broker.core.operators.travels import closed
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.server.spread import Source, Spread, moved

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
WHOLE_MS = 2**45
CLOSED_MS = (1_000, 2_000, 3_000, 5_000, 8_000)
# Counted from when the tasks begin, which is the first event of a recording.
FROM_THE_BEGINNING = {"absent", "for"}
TIMED = re.compile(r"\b(start|end|timestamp) = ")  # which is waited for for a week


class Waiting(Spread):
    """One run; all sources are behind two brokers, seen from the subscriptions' home."""

    def _before(self, at):
        return self.world.random.randrange(2, at) if at > 2 else at - 1

    def _plan_askers(self):
        found = check_text(self.text).demand()
        seqs = {name: one.seq for (_, name), one in found.subscriptions.items()}
        self._specifications["tester"] = self.text
        wish = Wish("submit", self.text, seqs)
        self._askers.append(Asker(self.places[0], "tester", [wish]))

    def _plan_sensors(self):
        names = sorted({event["source"] for event in self.events})
        places = [self.world.random.choice(self.places[2:]) for _ in names]
        for name, place in zip(names, places, strict=True):
            source = Source(place, name)
            source.begin()
            self._sensors.append(source)

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


def plain(results):
    return sorted(json.dumps(one, sort_keys=True) for one in results)


def detected(text, events):
    """What an engine finds that has all events; None if the end of all time decides some of it."""
    engine = headwater.Engine(text, lateness_ms=WHOLE_MS)
    found = engine.push(events) + engine.advance(WHOLE_MS)
    return None if engine.finish() else plain(found)


def compare(construct, context, seed, faults):
    """(how many results both have, how many events waited); None: no case for a network."""
    spec, events = random_case(seed, construct, context)
    draw = SeededDraw(f"{construct}/{context}/{seed}")
    if draw.chance(70):
        spec = closed(spec, draw.pick(CLOSED_MS))
    text, events = text_of(spec), moved(events)
    if not events or files_of(spec) or FROM_THE_BEGINNING & set(text.split()):
        return None
    if TIMED.search(text) or any(one.get("uncertainty") for one in events):
        return None
    if not check_text(text).ok:
        return None
    expected = detected(text, events)
    if expected is None:
        return None
    run = Waiting(seed, text, events, faults)
    run.run()
    assert plain(run.results) == expected, text
    return len(expected), run.waited


def some(seeds, each=1):
    """Every construct, in another context with each seed."""
    counts = Counter()
    for seed in seeds:
        for number, construct in enumerate(CONSTRUCTS[::each]):
            context = CONTEXTS_WHOLE[(number + seed) % len(CONTEXTS_WHOLE)]
            found = compare(construct, context, seed, 0 if number % 3 == 0 else 15)
            counts["none" if found is None else "found" if found[0] else "empty"] += 1
            counts["waited"] += 0 if found is None else found[1]
    return counts


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(24))
def test_what_waits_leaves_what_one_engine_finds(seed):
    counts = some([seed])
    assert counts["found"] > len(CONSTRUCTS) / 3
