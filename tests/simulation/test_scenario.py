"""One broker's core in seeded scenarios, the same as in a real process."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from broker.engine.pattern.agent.staged_agent import StagedAgent
from broker.engine.runtime.matcher import Matcher
from simulation import scenario, texts
from simulation.account import CheckFailedError
from simulation.checkers import check_visit
from simulation.malformed import BAD
from simulation.scenario import Scenario, ScenarioFailedError

ROOT = Path(__file__).resolve().parent.parent.parent
FAST_SEEDS = 40
LONG_SEEDS = 5_000
PART = 20


@pytest.mark.parametrize("first", range(0, FAST_SEEDS, PART))
def test_scenarios_hold_what_they_must(first):
    for seed in range(first, first + PART):
        scenario.run(seed)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(FAST_SEEDS, FAST_SEEDS + LONG_SEEDS, 250))
def test_many_more_scenarios_hold_what_they_must(first):
    for seed in range(first, first + 250):
        scenario.run(seed)


def test_scenarios_meet_what_they_are_there_for():
    """Checks of runs in which nothing happens would show nothing."""
    results, dropped = Counter(), Counter()
    compared = visited = judged = 0
    for seed in range(60):
        one = Scenario(seed)
        outcome = one.run()
        compared += outcome.compared
        visited += outcome.visited
        judged += outcome.judged
        results.update(emission.subscription for _, emission in one.broker.results)
        dropped.update(one.broker.core.ledger.to_dict()["dropped"])
    assert compared > 1_000
    assert visited > 100
    assert judged > 5_000
    assert set(results) == set(texts.SUBSCRIPTIONS)
    reasons = {reason for _, reason in BAD}
    assert {*reasons, "late", "repeat", "conflicting_repeat", "undeclared_type"} == set(dropped)
    assert min(dropped.values()) > 10
    assert min(dropped["late"], dropped["repeat"], dropped["conflicting_repeat"]) > 100


def test_the_same_seed_gives_the_same_effects_byte_for_byte():
    first, second, other = Scenario(3), Scenario(3), Scenario(4)
    outcomes = [one.run() for one in (first, second, other)]
    assert first.broker.log == second.broker.log
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].digest != outcomes[2].digest


@pytest.mark.timeout(150)
def test_the_effects_do_not_depend_on_the_hash_seed():
    script = "from simulation.scenario import run\nprint([run(seed).digest for seed in range(4)])"
    said = set()
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        said.add(done.stdout)
    assert len(said) == 1
    assert len(json.loads(said.pop().replace("'", '"'))) == 4


# --- the checks can fail ----------------------------------------------------------------------


def failing_seeds(count=20):
    """What runs say that do not hold what they must."""
    found = {}
    for seed in range(count):
        try:
            scenario.run(seed)
        except ScenarioFailedError as error:
            found[seed] = str(error)
    for seed, text in found.items():
        assert text.startswith(f"seed {seed} (repeat it: python -m simulation.scenario {seed}): ")
    return list(found.values())


def test_a_result_that_is_lost_is_found(monkeypatch):
    push = Matcher.push

    def first(self, *given):
        return (yield from push(self, *given))[:1]

    monkeypatch.setattr(Matcher, "push", first)
    assert any("missing" in text for text in failing_seeds())


def test_a_result_that_is_given_twice_is_found(monkeypatch):
    push = Matcher.push

    def twice(self, *given):
        results = yield from push(self, *given)
        return results + results[:1]

    monkeypatch.setattr(Matcher, "push", twice)
    assert any("reported more than once" in text for text in failing_seeds())


def test_an_event_that_is_lost_is_found(monkeypatch):
    push = Matcher.push
    monkeypatch.setattr(
        Matcher, "push", lambda self, events, *of: push(self, list(events)[:1], *of)
    )
    assert any("unaccounted" in text for text in failing_seeds())


def test_an_event_that_is_late_for_no_reason_is_found(monkeypatch):
    from broker.engine.ingest import clocks, source_clocks

    def strict(events, newest, given, lateness_ms):
        return clocks.sifted(events, newest, given, lateness_ms - 300)

    monkeypatch.setattr(source_clocks, "sifted", strict)
    assert any("told to be late" in text for text in failing_seeds())


def test_a_reason_that_is_not_the_right_one_is_found(monkeypatch):
    from broker.engine.ingest import reasons

    monkeypatch.setattr(reasons, "CONFLICTING_REPEAT", "repeat")
    assert any("dropped by reason" in text for text in failing_seeds())


def test_a_refusal_that_nobody_is_told_of_is_found(monkeypatch):
    from broker.core.broker import Broker

    monkeypatch.setattr(Broker, "_reject", lambda self, *given: None)
    assert any("told: {}" in text for text in failing_seeds())


def test_a_subscription_that_outlives_its_cancelling_is_found(monkeypatch):
    remove = Matcher.remove

    def forgetful(self, key):
        if self._by_task[key][0].task.kind == "definition":
            remove(self, key)

    monkeypatch.setattr(Matcher, "remove", forgetful)
    assert failing_seeds()


def test_what_a_visitor_must_get_and_must_not_get():
    for seed in range(60):
        one = Scenario(seed)
        one.run()
        results = one.broker.results
        for visit in one.visitors.visits:
            if visit.name not in texts.ALONE or not check_visit(visit, results, one.account):
                continue
            with pytest.raises(CheckFailedError, match="missing"):
                check_visit(visit, [], one.account)
            one.account.taken.clear()
            with pytest.raises(CheckFailedError, match="surplus"):
                check_visit(visit, results, one.account)
            return
    raise AssertionError


def test_an_agent_that_forgets_too_early_is_found(monkeypatch):
    feed = StagedAgent.feed
    monkeypatch.setattr(
        StagedAgent, "feed", lambda self, batch, watermark: feed(self, batch, watermark + 4_000)
    )
    assert any("missing" in text for text in failing_seeds())


def test_a_publisher_who_is_not_answered_is_found(monkeypatch):
    from broker.core.effects import Outgoing

    acknowledge = Outgoing.acknowledge

    def forgetful(self, token, outcome="taken", reason=""):
        if outcome == "taken":
            acknowledge(self, token, outcome, reason)

    monkeypatch.setattr(Outgoing, "acknowledge", forgetful)
    assert any("answers" in text for text in failing_seeds())


def test_a_core_that_sleeps_through_its_waking_is_found(monkeypatch):
    from broker.core.broker import Broker

    monkeypatch.setattr(Broker, "next_wake", lambda self: None)
    assert any("missing" in text for text in failing_seeds())


def test_the_engine_gives_the_same_results_for_what_was_let_in():
    """A program that embeds the engine and a broker are two ways to the same results."""
    from headwater import Engine

    for seed in range(20):
        one = Scenario(seed)
        one.run()
        engine = Engine(one.stays, lateness_ms=None)
        results = engine.push(list(one.account.taken.values())) + engine.finish()
        names = {(result["subscriber"], result["subscription"]) for result in results}
        found = Counter(
            json.loads(emission.payload)["id"]
            for _, emission in one.broker.results
            if (emission.subscriber, emission.subscription) in names
        )
        assert found == Counter(result["id"] for result in results)
