"""The broker's machine: submitting and cancelling, all or nothing."""

import pytest

from broker.core.messages import RequestRefused, SpecificationSubmitted
from broker.driver.requests import listed
from broker.engine.limits import Limits
from language import check_text
from tests.broker.core.machine import DECLARED, HOT, NOW, Machine, event, subscription

WARMER = """
define Warm(val)
detect Temp(val > 20)
assign val = Temp.val
"""


@pytest.fixture
def machine():
    return Machine()


def installed(machine):
    return [(one.subscriber, one.name, one.seq) for one in machine.broker.subscriptions]


def code(reply):
    assert reply["ok"] is False
    (error,) = reply["errors"]
    assert set(error) >= {"code", "message", "hint"}
    return error["code"]


def test_what_is_submitted_is_told(machine):
    reply = machine.submit(HOT + WARMER + subscription("Many", "Warm as w"))
    done = {"ok": True, "subscriptions": ["Hot", "Many"], "definitions": ["Warm"]}
    assert machine.replies() == [{**done, "state": state} for state in ("accepted", "active")]
    assert reply == machine.replies()[-1]
    assert installed(machine) == [("anna", "Hot", 1), ("anna", "Many", 1)]


def test_a_text_that_was_checked_before_is_not_checked_again(machine, monkeypatch):
    checked = check_text(HOT)
    monkeypatch.setattr("broker.core.installer.check_text", lambda text: pytest.fail("checked"))
    machine.tell(SpecificationSubmitted("me", "1", HOT, "here", checked=checked))
    assert machine.reply()["ok"] is True


def test_what_was_checked_must_be_the_text(machine):
    """Somebody else's check must not install another text."""
    machine.tell(SpecificationSubmitted("me", "1", HOT, "here", checked=check_text("nonsense")))
    assert machine.reply()["ok"] is True


def test_the_same_text_again_changes_nothing(machine):
    first = machine.submit(HOT)
    before = machine.replies()
    machine.send(event(0, 31, id="a"))
    again = machine.submit(HOT.replace("\n", "\n\n# a comment\n"), client="other")
    assert again == first
    assert machine.replies() == before
    assert machine.notes() == []
    (one,) = machine.broker.subscriptions
    assert (one.results, one.client) == (1, "me")


def test_a_text_may_bring_what_is_new_beside_what_is_there(machine):
    machine.submit(HOT)
    more = HOT + subscription("Cold", "Temp(val < 0)")
    assert machine.submit(more)["subscriptions"] == ["Hot", "Cold"]
    assert installed(machine) == [("anna", "Hot", 1), ("anna", "Cold", 1)]


@pytest.mark.parametrize("seq", [1, 2])
def test_another_text_needs_a_higher_seq(machine, seq):
    machine.submit(DECLARED + subscription(seq=2))
    other = DECLARED + subscription("New") + subscription(pattern="Temp(val > 40)", seq=seq)
    reply = machine.submit(other)
    assert code(reply) == "HW501"
    assert (reply["errors"][0]["line"], reply["errors"][0]["column"]) == (4, 1)
    assert reply["errors"][0]["seq"] == 2
    assert installed(machine) == [("anna", "Hot", 2)]
    assert len(machine.send(event(0, 31))) == 1


@pytest.mark.parametrize("client", ["me", "anna"])
def test_another_text_with_a_higher_seq_replaces(machine, client):
    """Of who submitted it, or of its subscriber."""
    machine.submit(HOT)
    reply = machine.submit(DECLARED + subscription(pattern="Temp(val > 40)", seq=2), client=client)
    assert reply["ok"] is True
    assert installed(machine) == [("anna", "Hot", 2)]
    assert machine.send(event(0, 35)) == []
    (result,) = machine.send(event(1, 45))
    assert result["seq"] == 2


def test_names_are_unique_for_each_subscriber(machine):
    machine.submit(HOT)
    machine.submit(DECLARED + subscription(subscriber="bert", pattern="Temp(val > 40)"))
    assert installed(machine) == [("anna", "Hot", 1), ("bert", "Hot", 1)]
    assert [one["subscriber"] for one in machine.send(event(0, 45))] == ["anna", "bert"]


def test_of_a_faulty_text_every_error_is_told_and_nothing_is_installed(machine):
    text = HOT + subscription("Bad", "Tmep(val > 1)") + subscription("Worse", "Temp(val > 'x')")
    reply = machine.submit(text)
    assert reply["ok"] is False
    assert len(reply["errors"]) >= 2
    assert all(error["line"] > 3 and error["column"] >= 1 for error in reply["errors"])
    assert installed(machine) == []
    assert machine.send(event(0, 31)) == []
    assert machine.ledger["dropped"] == {"undeclared_type": 1}


def test_conflicting_declarations_install_nothing_and_leave_the_types_as_they_were(machine):
    machine.submit(HOT)
    clash = "event Other(x: int)\n event Temp(val: text)\n" + subscription("B", "Temp as t")
    reply = machine.submit(clash)
    assert code(reply) == "HW503"
    assert "event Temp" in reply["errors"][0]["message"]
    assert (reply["errors"][0]["line"], reply["errors"][0]["column"]) == (2, 2)
    assert "`Hot` (seq 1) of anna" in reply["errors"][0]["message"]
    assert installed(machine) == [("anna", "Hot", 1)]
    assert len(machine.send(event(0, 31))) == 1
    machine.send({"timestamp": 1, "x": 1}, type_name="Other")
    assert machine.ledger["dropped"] == {"undeclared_type": 1}


def test_a_replacement_may_declare_otherwise_than_what_it_replaces(machine):
    machine.submit(HOT)
    changed = "event Temp(val: text)\n" + subscription(pattern='Temp(val = "hot")', seq=2)
    assert machine.submit(changed)["ok"] is True
    assert len(machine.send(event(0, "hot"))) == 1


def test_a_replacement_may_not_where_another_subscription_still_needs_the_declaration(machine):
    machine.submit(HOT + subscription("Stays"))
    changed = "event Temp(val: text)\n" + subscription(pattern='Temp(val = "hot")', seq=2)
    assert code(machine.submit(changed)) == "HW503"
    assert [one["subscription"] for one in machine.send(event(0, 31))] == ["Hot", "Stays"]


def test_a_type_gains_an_attribute_while_events_of_it_are_held(machine):
    both = "Temp(val > 30) as a and Temp(val < 0) as b within 1 min"
    machine.submit(DECLARED + subscription("Both", both))
    machine.send(event(0, 31, id="a"))
    wider = "event Temp(val: float, unit: text)\n"
    machine.submit(wider + subscription("Unit", 'Temp(unit = "C")'))
    results = machine.send(event(1, -1, id="b", unit="C"))
    assert sorted(one["subscription"] for one in results) == ["Both", "Unit"]


def test_equal_definitions_are_shared_and_run_while_they_are_needed(machine):
    one = DECLARED + WARMER + subscription("A", "Warm as w")
    two = DECLARED + WARMER + subscription("B", "Warm(val > 25) as w", subscriber="bert")
    machine.submit(one)
    machine.submit(two)
    assert len(machine.broker.catalogue.definitions) == 1
    assert len(machine.send(event(0, 30))) == 2
    machine.cancel("A")
    assert len(machine.broker.catalogue.definitions) == 1
    assert len(machine.send(event(1, 30))) == 1
    machine.cancel("B")
    assert len(machine.broker.catalogue.definitions) == 0
    assert machine.send(event(2, 30)) == []
    assert machine.ledger["detected"] == 2


def test_different_definitions_of_one_name_do_not_meet(machine):
    machine.submit(DECLARED + WARMER + subscription("A", "Warm as w"))
    other = DECLARED + WARMER.replace("20", "50") + subscription("B", "Warm as w")
    machine.submit(other)
    assert [one["subscription"] for one in machine.send(event(0, 30))] == ["A"]
    assert [one["subscription"] for one in machine.send(event(1, 60))] == ["A", "B"]


def test_definitions_alone_are_good_and_run_nothing(machine):
    reply = machine.submit(DECLARED + WARMER)
    nothing = {"subscriptions": [], "definitions": ["Warm"]}
    assert reply == {"ok": True, **nothing, "state": "active"}
    machine.send(event(0, 30))
    assert machine.ledger["dropped"] == {"undeclared_type": 1}


def test_a_subscription_sees_the_events_that_come_after_it(machine):
    machine.submit(HOT)
    machine.send(event(0, 31, id="a"))
    machine.submit(DECLARED + subscription("Pair", "Temp as x then Temp as y within 1 min"))
    machine.send(event(1, 32, id="b"))
    (pair,) = [r for r in machine.send(event(2, 33, id="c")) if r["subscription"] == "Pair"]
    assert pair["events"] == {"x": ["b"], "y": ["c"]}


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"specification_bytes_max": 50}, "specification_bytes_max"),
        ({"subscriptions_max": 1}, "subscriptions_max"),
        ({"definitions_max": 0}, "definitions_max"),
        ({"contents_max": 2}, "contents_max"),
        ({"types_max": 0}, "types_max"),
        ({"attributes_max": 0}, "attributes_max"),
    ],
)
def test_past_a_limit_nothing_is_installed(limits, named):
    machine = Machine(Limits(**limits))
    pattern = "Temp(val > 20) as a and Temp(val > 30) as b and Warm as c within 1 min"
    reply = machine.submit(DECLARED + WARMER + subscription("A") + subscription("B", pattern))
    assert code(reply) == "HW504"
    assert named in reply["errors"][0]["message"]
    assert installed(machine) == []
    machine.send(event(0, 31))
    assert machine.ledger["dropped"] == {"undeclared_type": 1}


def test_a_replacement_that_fails_leaves_what_it_would_have_replaced(machine):
    machine = Machine(Limits(contents_max=2))
    machine.submit(HOT)
    wanting = "Temp(val > 1) as a and Temp(val > 2) as b and Temp(val > 3) as c within 1 min"
    changed = "event Temp(val: float, unit: text)\n" + subscription(pattern=wanting, seq=2)
    assert code(machine.submit(changed)) == "HW504"
    assert installed(machine) == [("anna", "Hot", 1)]
    assert len(machine.send(event(0, 31))) == 1


def test_a_fault_of_the_program_while_installing_leaves_nothing_behind(machine, monkeypatch):
    machine.submit(HOT)
    matcher = machine.broker._matcher
    install = matcher.install

    def failing(task, *others):
        if task.kind == "subscription":
            raise RuntimeError("planted")
        install(task, *others)

    monkeypatch.setattr(matcher, "install", failing)
    with pytest.raises(RuntimeError, match="planted"):
        machine.submit(DECLARED + WARMER + subscription("B", "Warm as w"))
    machine.broker.check_invariants()
    assert installed(machine) == [("anna", "Hot", 1)]
    assert len(machine.send(event(0, 31))) == 1


# --- who may ----------------------------------------------------------------------------------


def test_the_subscriber_cancels_and_so_does_who_submitted(machine):
    for client in ("anna", "me"):
        machine.submit(HOT, client="me")
        assert code(machine.cancel("Hot", client="stranger")) == "HW505"
        assert machine.cancel("Hot", client=client) == {
            "ok": True,
            "subscriptions": ["Hot"],
            "definitions": [],
        }
        assert installed(machine) == []
        assert code(machine.cancel("Hot", client=client)) == "HW505"


def test_ones_own_subscription_comes_before_those_submitted_for_others(machine):
    machine.submit(HOT, client="bert")
    machine.submit(DECLARED + subscription(subscriber="bert"), client="carl")
    machine.cancel("Hot", client="bert")
    assert installed(machine) == [("anna", "Hot", 1)]


def test_a_name_submitted_for_several_has_to_be_told_apart(machine):
    machine.submit(HOT + subscription(subscriber="bert"), client="me")
    reply = machine.cancel("Hot", client="me")
    assert code(reply) == "HW506"
    assert "`anna`, `bert`" in reply["errors"][0]["message"]
    assert machine.cancel("Hot", client="bert")["ok"] is True


def test_who_logs_in_replaces_only_what_is_ones_own(machine):
    changed = DECLARED + subscription(pattern="Temp(val > 40)", seq=2)
    machine.submit(HOT, client="anna", proven=True)
    assert code(machine.submit(changed, client="bert", proven=True)) == "HW502"
    assert installed(machine) == [("anna", "Hot", 1)]
    assert machine.submit(changed, client="anna", proven=True)["ok"] is True


@pytest.mark.parametrize("proven", [False, True])
def test_a_stranger_replaces_nothing(machine, proven):
    machine.submit(HOT, client="me", proven=proven)
    changed = DECLARED + subscription(pattern="Temp(val > 40)", seq=2)
    assert code(machine.submit(changed, client="stranger", proven=proven)) == "HW502"
    assert installed(machine) == [("anna", "Hot", 1)]
    assert len(machine.send(event(0, 31))) == 1


@pytest.mark.parametrize("client", ["me", "anna"])
def test_what_a_user_submitted_is_not_changed_on_trust(machine, client):
    """A name that nobody has checked must not undo what one with a password has done."""
    machine.submit(HOT, client="me", proven=True)
    changed = DECLARED + subscription(pattern="Temp(val > 40)", seq=2)
    assert code(machine.submit(changed, client=client)) == "HW502"
    assert code(machine.cancel("Hot", client=client)) == "HW502"
    assert installed(machine) == [("anna", "Hot", 1)]
    assert machine.submit(changed, client=client, proven=True)["ok"] is True


def test_what_was_taken_on_trust_a_user_of_that_name_may_change(machine):
    machine.submit(HOT, client="me")
    assert machine.cancel("Hot", client="anna", proven=True)["ok"] is True


def test_a_request_that_cannot_be_read_is_answered(machine):
    machine.tell(RequestRefused("me", "1", "HW507", "here", "t"))
    assert code(machine.reply()) == "HW507"


def test_when_a_subscription_ends_is_known(machine):
    one, other, third = subscription("One"), subscription("Other"), subscription("Third")
    machine.submit(
        DECLARED
        + one.replace("to alerts", "to alerts for 5 s")
        + other.replace("to alerts", 'to alerts until "1970-01-01T00:00:01Z"')
        + third
    )
    ends = {one.name: one.ends for one in machine.broker.subscriptions}
    assert ends == {"One": NOW + 5_000, "Other": 1_000, "Third": None}
    assert [row.get("ends") for row in listed(machine.broker)] == [NOW + 5_000, 1_000, None]
    assert "ends" not in listed(machine.broker)[-1]
