"""A step of one agent is bounded: beyond its budget the agent is suspended, told of and resumed."""

import json

import pytest

from broker.core.messages import EventsReceived, Payload, ResumeRequested, SpecificationSubmitted
from broker.core.refusals import NOT_SUSPENDED
from broker.engine import native
from broker.engine.limits import make_limits
from broker.engine.runtime.budget import Budget, TooMuchWorkError
from headwater import Engine, WorkError
from headwater.cli import main
from tests.broker.core.machine import DECLARED, HOT, Machine, event, subscription
from tests.broker.core.test_durable import Disk
from tests.broker.engine.wild import CHAIN, LISTS, QUADRUPLES, WILD

SMALL = {"step_candidates_max": 2_000, "step_bytes_max": 1_000_000}
TRIPLES = DECLARED + subscription("Wild", "Temp as a and Temp as b and Temp as c", "anna")


def wild_machine(text=TRIPLES, **limits):
    machine = Machine(make_limits(**{**SMALL, **limits}), lateness_ms=0)
    assert machine.submit(text, "anna")["ok"]
    return machine


def send_until_suspended(machine, count=200):
    """How many events it took."""
    for at in range(count):
        machine.send(event(at * 1000))
        if machine.published("suspended/anna/Wild"):
            return at
    raise AssertionError("nothing was suspended")


def resume(machine, name="Wild", client="anna"):
    machine.tell(ResumeRequested(client, "1", name, "here", "token"))
    return machine.reply()


def test_a_step_beyond_its_budget_suspends_its_subscription_and_no_other():
    machine = wild_machine()
    assert machine.submit(HOT.replace("Hot", "Calm"), "bob")["ok"]
    at = send_until_suspended(machine)
    (told,) = machine.published("suspended/anna/Wild")
    assert told["reason"] == "too_much_work"
    assert "resume" in told["message"]
    assert [note.event for note in machine.notes()] == ["too_much_work"]
    by_name = {one.name: one for one in machine.broker.subscriptions}
    assert by_name["Wild"].suspended == "candidates"
    assert machine.broker.held() == 0, "what it held is gone"
    assert [one["subscription"] for one in machine.send(event(at * 1000 + 5, 40))] == ["Calm"]
    assert machine.ledger["notes"]["too_much_work"] == 1


def test_what_is_resumed_begins_anew_and_may_be_suspended_again():
    machine = wild_machine()
    at = send_until_suspended(machine)
    assert resume(machine)["ok"]
    assert [one.suspended for one in machine.broker.subscriptions] == [""]
    machine.send(event(at * 1000 + 1000))
    machine.send(event(at * 1000 + 2000))
    assert len(machine.send(event(at * 1000 + 3000))) == 6, "three events, in any order"
    machine.now += (at + 4) * 1000
    for _ in range(200):
        machine.now += 1
        machine.send(event(machine.now - 1_700_000_000_000))
    assert machine.ledger["notes"]["too_much_work"] == 2


def test_only_what_is_suspended_is_resumed_and_only_by_whose_it_is():
    machine = wild_machine()
    (error,) = resume(machine)["errors"]
    assert error["code"] == NOT_SUSPENDED
    send_until_suspended(machine)
    assert resume(machine, client="mallory")["ok"] is False
    assert machine.broker.subscriptions[0].suspended


def test_what_needs_a_suspended_definition_is_suspended_with_it_and_what_comes_later_begins():
    detect = "detect Temp as a and Temp as b and Temp as c"
    definition = f"define Many(val)\n{detect}\nassign val = a.val\n"
    machine = wild_machine(DECLARED + definition + subscription("Wild", "Many(val > 30)", "anna"))
    send_until_suspended(machine)
    later = subscription("Later", "Many(val > 40)", "anna")
    assert machine.submit(DECLARED + definition + later, "anna")["ok"]
    machine.send(event(500_000))
    assert [bool(one.suspended) for one in machine.broker.subscriptions] == [True, False]
    assert resume(machine)["ok"]
    assert [bool(one.suspended) for one in machine.broker.subscriptions] == [False, False]


def test_the_compiled_passes_and_the_plain_ones_suspend_at_the_same_event(monkeypatch):
    texts = [(text, {}) for text in WILD.values()]
    texts += [(text, SMALL) for text in WILD.values()]

    def suspended_at():
        found = []
        for text, limits in texts:
            machine = Machine(make_limits(**limits), lateness_ms=0)
            machine.submit(text, "anna")
            found.append(None)
            for at in range(100):
                machine.send(event(at * 1000))
                if at % 20 == 19:
                    machine.send({"timestamp": machine.now, "k": 50.0}, type_name="Key")
                if machine.broker.subscriptions[0].suspended:
                    found[-1] = at
                    break
        return found

    fast = suspended_at()
    monkeypatch.setattr(native, "passes", None)
    assert suspended_at() == fast
    assert None not in fast[3:5]


def wild_disk():
    disk = Disk()
    disk.limits = make_limits(**SMALL)
    disk.start()
    disk.submit(TRIPLES)
    disk.submit(HOT.replace("Hot", "Calm").replace("anna", "bob"), "bob")
    for at in range(60):
        disk.send(event(at * 1000, 40.0 if at % 7 == 0 else 1.0))
    assert [bool(one.suspended) for one in disk.broker.subscriptions] == [True, False]
    return disk


def test_a_suspended_subscription_stays_so_after_a_restart_and_its_work_is_not_repeated(
    monkeypatch,
):
    disk = wild_disk()
    results = disk.said()
    beyond = []
    spend = Budget.spend

    def spent(budget, candidates, size_bytes=0):
        try:
            spend(budget, candidates, size_bytes)
        except TooMuchWorkError:
            beyond.append(candidates)
            raise

    monkeypatch.setattr(Budget, "spend", spent)
    disk.start()
    assert [bool(one.suspended) for one in disk.broker.subscriptions] == [True, False]
    assert disk.said() == results
    assert beyond == [], "its suspension is in the journal"
    disk.snapshot = disk.broker.snapshot()
    disk.start()
    assert [bool(one.suspended) for one in disk.broker.subscriptions] == [True, False]
    disk.tell(ResumeRequested("anna", "9", "Wild", "here", "token"))
    for at in range(100, 103):
        disk.send(event(at * 1000, 1.0))
    again = [one for one in disk.said() if one["subscription"] == "Wild"][-6:]
    assert {name for one in again for name in one["events"]} == {"a", "b", "c"}
    before = disk.said()
    disk.start()
    assert disk.said() == before
    assert [bool(one.suspended) for one in disk.broker.subscriptions] == [False, False]


def test_a_step_that_did_not_exceed_its_budget_does_not_when_it_is_handled_again(monkeypatch):
    """A later version may charge more: what was decided stands, as results have left by it."""
    disk = Disk()
    disk.submit(TRIPLES)
    for at in range(20):
        disk.send(event(at * 1000, 1.0))
    results = disk.said()
    spend = Budget.spend
    monkeypatch.setattr(Budget, "spend", lambda self, n, b=0: spend(self, 3 * n, b))
    disk.start()
    assert disk.said() == results
    assert not disk.broker.subscriptions[0].suspended


@pytest.mark.parametrize("name", ["chain", "quadruples"])
def test_an_engine_tells_of_a_step_that_would_take_too_much_work(name):
    engine = Engine(WILD[name], step_candidates=100_000)
    events = [{"type": "Temp", "timestamp": at * 1000, "val": 1.0} for at in range(60)]
    with pytest.raises(WorkError, match="Wild"):
        engine.push(events)


def test_a_replay_ends_with_status_2_where_a_step_would_take_too_much_work(tmp_path, capsys):
    (tmp_path / "wild.hw").write_text(QUADRUPLES)
    lines = [{"type": "Temp", "timestamp": at * 1000, "val": 1.0} for at in range(40)]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = ["replay", str(tmp_path / "wild.hw"), "--events", str(tmp_path / "events.jsonl")]
    assert main([*words, "--step-candidates", "20000"]) == 2
    assert "Wild: one step" in capsys.readouterr().err


def test_a_batch_brings_its_own_allowance():
    """Many ordinary events at once are no more work than one after the other."""
    machine = Machine(make_limits(step_candidates_max=500), lateness_ms=0)
    text = subscription("Pair", "Temp(val > 30) as a then Temp(val < 10) as b within 2 s", "anna")
    machine.submit(DECLARED + text, "anna")
    events = [event(at * 1000, 40.0 if at % 2 else 1.0) for at in range(2_000)]
    data = json.dumps(events).encode()
    machine.tell(EventsReceived((Payload("Temp", "t1", data, "token"),)))
    assert not machine.broker.subscriptions[0].suspended
    assert machine.broker.subscriptions[0].results


def test_a_text_that_is_submitted_again_does_not_resume():
    disk = wild_disk()
    disk.tell(SpecificationSubmitted("anna", "5", TRIPLES, "here", "token"))
    assert disk.broker.subscriptions[0].suspended


@pytest.mark.parametrize("text", [CHAIN, QUADRUPLES, LISTS])
def test_the_three_texts_are_suspended_within_the_default_budget(text):
    machine = Machine(lateness_ms=0)
    machine.submit(text, "anna")
    for at in range(400):
        machine.send(event(at * 1000))
    machine.send({"timestamp": machine.now, "k": 50.0}, type_name="Key", source="k1")
    machine.wait(60_000)
    machine.send(event(400_000))
    assert text == LISTS or machine.broker.subscriptions[0].suspended
