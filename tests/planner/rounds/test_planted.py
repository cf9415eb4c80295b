"""Mistakes planted in the machines are found by the properties that the other tests hold."""

from collections.abc import Callable
from random import Random

import pytest

from experiments.trial import Conditions, Trial, tables_of
from planner.rounds import machine, turns, view
from planner.rounds.settings import Effort, Settings
from tests.planner.rounds.networks import generated

EVENTS_MAX = 4_000  # sound runs of these networks take less than half
SEEDS = range(8)


def fault_of(seed: int, radius: int = 2) -> str:
    """What is wrong with a run: nothing, or in a word."""
    random = Random(seed)
    problem = generated(random, 14, 14, (None, 3), ring=True)
    effort = Effort(total=5_000, at_once=5_000)
    conditions = Conditions(delay_ms=(2, 60), loss=0.2)
    # Brokers that look at about the same time ask for the same members.
    settings = Settings(radius=radius, price=0, effort=effort, spread_ms=200)
    trial = Trial(problem, settings, seed, conditions)
    try:
        for _ in range(EVENTS_MAX):
            if not trial.step():
                break
        else:
            return "no end"
    except (AssertionError, KeyError) as error:
        return f"stopped: {error!r}"
    return agreed(trial)


def agreed(trial: Trial) -> str:
    if trial.twice or -1 in trial.hosts:
        return "a piece at two brokers or none"
    laid = tables_of(trial.layout, trial.tree, trial.hosts, trial.amounts)
    for number, one in enumerate(trial.machines):
        if one.busy:
            return "a turn that does not end"
        if (one.tables.passing, one.tables.joined) != (laid[number].passing, laid[number].joined):
            return "streams that are not laid as pieces are"
    return ""


def test_sound_machines_have_no_fault() -> None:
    assert [fault_of(seed) for seed in SEEDS] == [""] * len(SEEDS)


def promise_everybody(self: turns.Promise, claim: turns.Claim) -> bool:
    self.held = claim
    return True


def leave_those_behind_waiting(self: turns.Promise, version: int):
    if self.held is None and self.queue:
        self.held = self.queue.pop(0)
        return self.held, [], []
    return None, [], []


def grant_any_version(self: machine.Rounds, claim: turns.Claim) -> None:
    leader, turn, _ = claim
    promised = self.promise.ask(claim)
    if promised is not None:
        body = machine.m.Grant(turn) if promised else machine.m.Refuse(turn, stale=False)
        self._post.send(leader, body)


def see_no_contradiction(*_: object) -> bool:
    return True


FAULTS: dict[str, tuple[object, str, Callable[..., object]]] = {
    "a member is promised to two leaders": (turns.Promise, "ask", promise_everybody),
    "leaders wait for those ahead of them": (turns.Promise, "next", leave_those_behind_waiting),
    "old knowledge is as good as new": (machine.Rounds, "_asked", grant_any_version),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, faulty = FAULTS[name]
    monkeypatch.setattr(owner, attribute, faulty)
    assert any(fault_of(seed) for seed in SEEDS)


def test_without_looking_for_contradictions_turns_ask_for_what_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Versions still keep such turns from being agreed: it costs refusals, and no more."""
    monkeypatch.setattr(view, "_agree", see_no_contradiction)
    assert [fault_of(seed) for seed in SEEDS[:4]] == [""] * 4
