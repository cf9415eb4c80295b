"""`headwater drain` and `headwater plan --broker`: what they ask for, and what they print."""

import json

import pytest

from broker.core.coordinator.seen import plan
from headwater.cli import main
from tests.broker.core.coordinator.town import Town


@pytest.fixture(scope="module")
def told() -> dict:
    town = Town(1, 3, [(0, 1), (1, 2)], {("b2", "A"): 1000.0})
    town.submit("b0", {("b2", "A"): 1.0}, 0.0)
    town.run(60)
    one = town.houses["b0"].coordinator
    assert one.laid is not None
    state = {"broker": "b0", "epoch": "0", "quiet": True, "drained": False, "infeasible": False}
    return state | plan(one.running(), one.known, 10)


def test_a_running_networks_plan_is_shown_with_reasons(face, told, capsys):
    face.broker.plans = told
    assert main(["plan", "--broker", face.url]) == 0
    shown = capsys.readouterr().out
    task = next(line for line in shown.splitlines() if line.startswith("b0/0"))
    assert task.split()[1:5] == ["b0", "b2", "1,000", "B/s"]
    assert "at b1, the next best, 1,000 bytes/s more would travel" in task
    assert "0 B/s travel over all links together; the plan is at rest" in shown
    assert main(["plan", "--url", face.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told


def test_who_merges_is_shown_with_those_who_fold(face, told, capsys):
    task = told["tasks"][0] | {"parts": ["b1", "b2"]}
    face.broker.plans = told | {"tasks": [task]}
    assert main(["plan", "--broker", face.url]) == 0
    assert "  b2 (of b1, b2)  " in capsys.readouterr().out


def test_a_plan_that_keeps_no_limits_is_status_1(face, told, capsys):
    face.broker.plans = told | {"infeasible": True}
    assert main(["plan", "--broker", face.url]) == 1
    assert "no plan is known that keeps the limits" in capsys.readouterr().out


def test_a_broker_without_a_coordinator_says_so(face, capsys):
    for command in (["plan"], ["drain"], ["drain", "--undo"]):
        assert main([*command, "--broker", face.url]) == 1
        assert "coordinator.enabled" in capsys.readouterr().err


def test_a_problem_and_a_broker_do_not_go_together(face, capsys):
    assert main(["plan", "x.json", "--broker", face.url]) == 2
    assert "either a problem" in capsys.readouterr().err


def test_draining_and_its_undoing(face, told, capsys):
    face.broker.plans = told | {"drained": True}
    assert main(["drain", "--broker", face.url]) == 0
    assert face.broker.drained
    assert main(["drain", "--broker", face.url, "--wait", "5"]) == 0
    assert "no task runs here any more" in capsys.readouterr().out
    assert main(["drain", "--broker", face.url, "--undo"]) == 0
    assert not face.broker.drained


def test_waiting_for_tasks_that_stay_ends_with_1(face, told, capsys):
    face.broker.plans = told | {"broker": "b2", "drained": True}
    assert main(["drain", "--broker", face.url, "--wait", "0.1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["tasks"] == 1
