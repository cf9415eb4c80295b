"""A request to another broker ends in a bounded time, and what was confirmed holds for good."""

import pytest

from broker.core.effects import Reply
from broker.network.overlay.calls import RemoteCall
from simulation.crashes.process import Process
from simulation.network import remote
from tests.simulation.planted import found_from


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(10))
def test_what_was_confirmed_is_ended_and_every_request_has_an_end(seed):
    """Links are cut and processes end between the question, the journal and the reply."""
    remote.run(seed)


def test_runs_have_replies_and_requests_without_one():
    """Else the checks above would hold of nothing."""
    runs = [remote.run_of(seed)[1] for seed in range(3)]
    assert sum(run.confirmed for run in runs) > 2
    assert sum(run.unknown for run in runs) > 2


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("part", range(10))
def test_what_was_confirmed_is_ended_in_many_runs(part):
    for seed in range(part * 100, (part + 1) * 100):
        remote.run(seed)


def a_home_that_confirms_before_its_journal_has_it(patch):
    perform = Process._perform

    def early(self, effects, message):
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.reply_to, RemoteCall):
                self._around.leaves(effect)
        rest = [
            effect
            for effect in effects
            if not (isinstance(effect, Reply) and isinstance(effect.reply_to, RemoteCall))
        ]
        perform(self, rest, message)

    patch.setattr(Process, "_perform", early)


def a_call_that_nobody_gives_up(patch):
    patch.setattr(remote.CallingPlace, "_give_up", lambda *_: None)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "mistake", [a_home_that_confirms_before_its_journal_has_it, a_call_that_nobody_gives_up]
)
def test_a_mistake_is_found(mistake, monkeypatch):
    mistake(monkeypatch)
    found_from(remote.run, "remote")
