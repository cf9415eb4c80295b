"""What brokers promise to be settled is: with events of others, links that fail, tasks that move.

A reader asks every broker again and again. What it is told, which is what the disk holds, is held
against all results that come behind.
"""

import json
from collections import Counter
from functools import partial

import pytest

from broker.core.messages import Settling
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.simulation.network.spread import CellSpread, Spread, network_case

CONSTRUCTS = list(CONSTRUCTS_WHOLE)
ASKED_MS = 700
ASKED_MAX = 200  # some events lie days apart
TOLD_MS = 300  # as long the disk has


class Asked:
    """Of a run: the promises that were told, with the offset from which on they hold."""

    def __init__(self, *args):
        self.promises = []  # (place, offset, by subscription)
        super().__init__(*args)

    def _plan_readings(self):
        end_ms = super()._plan_readings()
        until_ms = end_ms + self._silent_ms
        each_ms = max(ASKED_MS, (until_ms - self.world.now) // ASKED_MAX)
        for at in range(self.world.now, until_ms, each_ms):
            self.world.at(at, self._ask)
        return end_ms

    def _ask(self):
        for place in self.places:
            place.hear(Settling())
            process = place.process
            if process is not None and process.core.core.frontiers.reached:
                core = process.core
                promise = (place, core.outbox_end, dict(core.core.frontiers.reached))
                told = partial(self._told, process, core.number, promise)
                self.world.after(TOLD_MS, told)

    def _told(self, process, number, promise):
        """Only what rests on records that the disk has by now."""
        if promise[0].process is process and process.journal.durable >= number:
            self.promises.append(promise)

    def held(self):
        """How many (results, promises) there were; every result must be behind every promise."""
        for place, offset, promised in self.promises:
            for row in place.machine.outbox.rows:
                until_ms = promised.get((row.subscriber, row.subscription))
                if row.offset >= offset and until_ms is not None:
                    assert json.loads(row.payload)["end"] > until_ms, "it was said to be settled"
        latest = {}
        for *_, promised in self.promises:
            for key, until_ms in promised.items():
                assert until_ms >= latest.get(key, until_ms), "a promise was taken back"
                latest[key] = until_ms
        return latest


class AskedAtHome(Asked, Spread):
    """Tasks run at home, with events of other brokers."""


class AskedInCells(Asked, CellSpread):
    """Tasks run in cells, which move."""


def hold(kind, construct, context, seed, faults):
    """What came of a case; nothing where it is none for a network."""
    case = network_case(*random_case(seed, construct, context))
    if case is None:
        return Counter()
    text, events, _ = case
    run = kind(seed, text, events, faults)
    run.run()
    latest = run.held()
    last_ms = max(one["timestamp"] for one in events)
    reached = any(until_ms >= last_ms - 10_000 for until_ms in latest.values())
    return Counter(
        runs=1,
        results=len(run.results),
        found=bool(run.results),
        promises=len(run.promises),
        reached=reached,
    )


def some(kind, seeds, each=1):
    counts = Counter()
    for seed in seeds:
        for number, construct in enumerate(CONSTRUCTS[seed % each :: each]):
            context = CONTEXTS_WHOLE[(number + seed) % len(CONTEXTS_WHOLE)]
            counts += hold(kind, construct, context, seed, 0 if number % 3 == 0 else 15)
    return counts


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [AskedAtHome, AskedInCells])
def test_no_result_comes_behind_what_the_log_promised(kind):
    counts = some(kind, [0], each=12)
    assert counts["results"] > 5
    assert counts["promises"] > 5 * counts["runs"]
    assert counts["reached"] > counts["runs"] / 2


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", [AskedAtHome, AskedInCells])
@pytest.mark.parametrize("seed", range(1, 12))
def test_no_result_comes_behind_what_the_log_promised_in_many_more_runs(
    kind, seed, record_property
):
    counts = some(kind, [seed])
    what = "runs of brokers that are held to their promises"
    record_property("generated", [what, kind.__name__, "all", counts["runs"], counts["found"]])
    assert counts["reached"] > counts["runs"] / 3


class PromptlyAsked(AskedAtHome):
    """How long after all readings each log has promised up to the last of them."""

    def __init__(self, *args):
        self.last_ms = self.late_ms = None
        super().__init__(*args)

    def _plan_readings(self):
        self.readings_end_ms = super()._plan_readings()
        return self.readings_end_ms

    def _ask(self):
        super()._ask()
        if self.world.now < self.readings_end_ms or self.late_ms is not None:
            return
        processes = [place.process for place in self.places if place.process]
        settled = [process.core.core.frontiers.reached for process in processes]
        promised = [max(one.values()) for one in settled if one]
        if promised and min(promised) >= self.last_ms - 10_000:
            self.late_ms = self.world.now - self.readings_end_ms


@pytest.mark.timeout(60)
def test_who_reads_by_event_time_does_not_wait_until_progress_is_sent_anyway():
    late_ms = []
    for seed in range(6):
        for construct in ("atom", "relations", "definition-twice"):
            context = CONTEXTS_WHOLE[seed % len(CONTEXTS_WHOLE)]
            case = network_case(*random_case(seed, construct, context))
            if case is None:
                continue
            text, events, _ = case
            run = PromptlyAsked(seed, text, events, 0)
            run.last_ms = max(one["timestamp"] for one in events)
            run.run()
            if run.late_ms is not None:
                late_ms.append(run.late_ms)
    assert len(late_ms) > 8
    assert sorted(late_ms)[len(late_ms) // 2] < 2_000
