"""Subscriptions that are over need nothing of any broker, wherever their tasks ran."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from simulation.network.cells import CellRun
from simulation.network.planned import PlannedRun
from simulation.network.scenario import BEGIN_MS, READY_S_MAX, Run, Shape

ENDS_S = (15, 60)  # after the first readings
SEEDS_FAST = 1
SEEDS_LONG = 60


def ending(kind, seed, events):
    """A run all of whose subscriptions end in the midst of it."""

    class Ending(kind):
        def _plan_askers(self):
            super()._plan_askers()
            for asker in self._askers:
                at_ms = BEGIN_MS + 1_000 * (READY_S_MAX + self.draw.randint(*ENDS_S))
                at = datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                (wish,) = asker._wishes
                text = wish.text.replace(" to alerts\n", f' to alerts until "{at}"\n')
                self._specifications[asker.name] = text
                asker._wishes[0] = replace(wish, text=text)

    run = Ending(seed, Shape(events=events))
    run.run()
    return run


def check(run):
    for place in run.places:
        network = place.process.core.network
        assert {one.state for one in place.process.core.subscriptions} <= {"ended"}
        assert not network.tasks(), "what is over still runs"
        assert not network.book.cells, "what is over still has a cell"
        assert not place.process.network.hosted
        assert not network.own.hosts, "readings are still sent for what is over"
        process = place.process.network
        assert all(not process.router.operators(name) for name in [*process.sessions.peers])
        network.check_invariants()
    if isinstance(run, PlannedRun):
        for one in run._plannings():
            assert not one.coordinator.known.submissions, "it is planned for"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [Run, CellRun, PlannedRun])
@pytest.mark.parametrize("seed", range(SEEDS_FAST))
def test_what_is_over_needs_nothing(kind, seed):
    run = ending(kind, seed, 300)
    check(run)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", [Run, CellRun, PlannedRun])
def test_what_is_over_needs_nothing_in_many_more_runs(kind):
    results = 0
    for seed in range(SEEDS_FAST, SEEDS_FAST + SEEDS_LONG):
        run = ending(kind, seed, 300)
        check(run)
        results += sum(len(place.machine.outbox.rows) for place in run.places)
    assert results > 1_000
