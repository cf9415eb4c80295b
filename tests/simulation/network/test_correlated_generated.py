"""Whatever is detected, events that wait for partners leave what one engine finds.

Specifications are generated, of every construct and context; their events are spread over sources
at the brokers of a network, whose links fail and whose brokers end in two of three runs. In some
events grow less certain, and a first one long before lasts: so origins promise less and less.
"""

import json
from collections import Counter

import pytest
from msgspec.structs import replace

from broker.engine.limits import Limits
from broker.network.host.needs import Needs
from broker.network.replication.time_promises import POINTS, KnownPromises
from tests.broker.network.operators.travels import closed
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.simulation.network.spread import (
    ASSIGNED_MS,
    Spread,
    detected,
    end_of,
    moved,
    network_case,
    plain,
)

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
CLOSED_MS = (1_000, 2_000, 3_000, 5_000, 8_000)
LESS_CERTAIN = 25  # percent
SPAN_MS_MAX = 3_600_000
BROKEN_MS = 27_050
WITHIN_MS = 5_000
UNSURE_MS = 4_000
JOINED = """event A(n: int)
event B(n: int)
subscription S from tester to out
  detect A(n > 0) as a and B(n > 0) as b within 5 s
"""
UNCERTAIN_MS = (3, 40, 300, 1_000, 2_500)
HERALD_MS = 60_000


class Waiting(Spread):
    """One run; all sources are behind two brokers, seen from the subscriptions' home.

    `limits` are what its brokers allow.
    """

    correlate = True

    def __init__(self, seed, text, events, faults, limits):
        self.limits = limits
        super().__init__(seed, text, events, faults)

    def _before(self, at):
        return self.world.random.randrange(2, at) if at > 2 else at - 1

    def _home(self):
        return self.places[0]

    def _source_places(self, count):
        return [self.world.random.choice(self.places[2:]) for _ in range(count)]

    def _place(self, name):
        place = super()._place(name)
        options = replace(place.machine.options, correlate=self.correlate)
        place.machine = replace(place.machine, options=options, limits=self.limits)
        return place

    @property
    def waited(self):
        return sum(place.counted("kept_back") for place in self.places)


class Travelling(Waiting):
    """The same, of which all events travel that somebody asks for."""

    correlate = False


class Grown(Waiting):
    """One whose results are looked at by its test alone: some may be missing."""

    _judge = staticmethod(lambda *asked, **how: 0)


def drawn(construct, context, seed, closed_percent):
    """(specification, events, a draw for more)."""
    spec, events = random_case(seed, construct, context)
    draw = SeededDraw(f"{construct}/{context}/{seed}")
    if draw.chance(closed_percent):
        spec = closed(spec, draw.pick(CLOSED_MS))
    return spec, events, draw


def compare(construct, context, seed, faults):
    """(how many results both have, how many events waited); None: no case for a network."""
    spec, events, _ = drawn(construct, context, seed, 70)
    case = network_case(spec, events)
    if case is None:
        return None
    text, events, expected = case
    if any(one.get("uncertainty") for one in events):  # these brokers would refuse it
        return None
    limits = Limits(event_duration_ms_max=ASSIGNED_MS, uncertainty_ms_max=0)
    run = Waiting(seed, text, events, faults, limits)
    run.run()
    assert plain(run.results) == expected, text
    return len(expected), run.waited


def compare_growing(construct, context, seed, faults):
    """Likewise, of events whose times grow less certain, some of which last."""
    spec, events, draw = drawn(construct, context, seed, 100)
    case = network_case(spec, heralded(growing(events, draw)), lasting=True)
    if case is None:
        return None
    text, events, expected = case
    ends = [*map(end_of, events)]
    if max(ends) - min(ends) > SPAN_MS_MAX:  # days of a virtual world take long, too
        return None
    runs = [kind(seed, text, events, faults, Limits()) for kind in (Waiting, Travelling)]
    for run in runs:
        run.run()
        assert plain(run.results) == expected, text
    return len(expected), runs[0].waited


def growing(events, draw):
    """Events of which some are less certain than all before; what comes again says the same."""
    said = {(one["id"], end_of(one)): one for one in events}
    for number, one in enumerate(sorted(said.values(), key=end_of)):
        if draw.chance(LESS_CERTAIN):
            known = 1 + number * len(UNCERTAIN_MS) // len(said)
            key = one["id"], end_of(one)
            said[key] = one | {"uncertainty": draw.pick(UNCERTAIN_MS[:known])}
    return [said[one["id"], end_of(one)] for one in events]


def heralded(events):
    """Events with one that lasts, long before, of each type of which any lasts.

    A type whose events were points so far is taken to have points, by one engine as by brokers:
    both let partners of its first event that lasts go before it comes.
    """
    longest = {}
    for one in events:
        if "start" in one and one["end"] - one["start"] > longest.get(one["type"], (0,))[0]:
            longest[one["type"]] = one["end"] - one["start"], one
    if not longest:
        return events
    end = min(one.get("start", end_of(one)) for one in events) - HERALD_MS
    heralds = [
        one | {"id": f"herald {name}", "start": end - lasts, "end": end}
        for name, (lasts, one) in longest.items()
    ]
    return [{k: v for k, v in one.items() if k != "uncertainty"} for one in heralds] + events


def some(seeds, each=1, compared=compare):
    """Every construct, in another context with each seed."""
    counts = Counter()
    for seed in seeds:
        for number, construct in [*enumerate(CONSTRUCTS)][::each]:
            context = CONTEXTS_WHOLE[(number + seed) % len(CONTEXTS_WHOLE)]
            found = compared(construct, context, seed, 0 if number % 3 == 0 else 15)
            counts["none" if found is None else "found" if found[0] else "empty"] += 1
            counts["waited"] += found is not None and found[1] > 0
    return counts


@pytest.mark.timeout(60)
def test_what_waits_leaves_what_one_engine_finds():
    counts = some([1], each=8)
    assert counts["found"] > 2
    assert counts["waited"] > 1


def reading(name, at_ms, n, uncertainty=0):
    said = {"type": name, "source": f"s{name}", "id": f"{name}{at_ms}", "timestamp": at_ms, "n": n}
    return said | ({"uncertainty": uncertainty} if uncertainty else {})


def missed(seed):
    """When the partners began that are missing in what a network finds after a promise broke.

    At BROKEN_MS the first B comes that is less certain, and two that have partners follow.
    """
    events = [reading(name, at, 0) for name in "AB" for at in range(0, 60_000, 200)]
    events += [reading("A", at, 1) for at in (*range(20_010, 24_000, 100), 43_010)]
    events += [reading("B", BROKEN_MS, 0, UNSURE_MS)]
    events += [reading("B", at, 1, UNSURE_MS) for at in (29_550, 50_010)]
    events = moved(events)
    # Progress is said often, so that nothing is let go later than it may be.
    run = Grown(seed, JOINED, events, 0, Limits(progress_ms_max=100))
    run.run()
    results, expected = Counter(plain(run.results)), Counter(detected(JOINED, events))
    assert not results - expected
    began_ms = min(map(end_of, events))
    return [json.loads(one)["start"] - began_ms for one in (expected - results).elements()]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", [4, 9, 10])
def test_only_partners_that_were_let_go_before_a_promise_broke_are_missed(seed):
    """As docs/network.md says; those that were nearer by a little are not."""
    starts = missed(seed)
    assert starts
    assert max(starts) + WITHIN_MS < BROKEN_MS


def tasks_that_hear_of_no_promise(patch):
    """The event that breaks it passes no filter of theirs, and they forget by those that do."""
    patch.setattr(Needs, "_take_uncertainty", lambda self: None)


def events_that_are_taken_for_certain(patch):
    patch.setattr(KnownPromises, "of", lambda self, name: POINTS)


PLANTED = (tasks_that_hear_of_no_promise, events_that_are_taken_for_certain)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_has_others_be_missed(plant, monkeypatch):
    plant(monkeypatch)
    assert max(missed(4)) + WITHIN_MS >= BROKEN_MS


@pytest.mark.timeout(60)
def test_what_waits_leaves_what_one_engine_finds_while_promises_grow():
    counts = some([1], each=16, compared=compare_growing)
    assert counts["found"] > 2
    assert counts["waited"] > 0


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(24))
def test_the_same_while_promises_grow_in_many_more_runs(seed, record_property):
    counts = some([seed], compared=compare_growing)
    runs = counts["found"] + counts["empty"]
    what = "specifications whose events wait while promises grow, held to one engine"
    record_property("generated", [what, "all", "all", runs, counts["found"]])
    assert counts["found"] > len(CONSTRUCTS) / 3
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
