"""The broker's machine: what a changed text keeps of what was going on, and what begins anew."""

import pytest

from tests.broker.core.machine import NOW, Machine

TYPES = "event A(n: int)\nevent B(n: int)\n"
PAIR = """
define Pair(n)
detect A as a then B as b within 1 min where a.n = b.n
assign n = a.n
"""
WITHIN_2 = PAIR.replace("1 min", "2 mins")


def told(seq=1, condition="", name="Told"):
    return f"subscription {name} seq {seq} from anna to alerts\ndetect Pair{condition}\n"


@pytest.fixture
def machine():
    return Machine()


def send(machine, type_name, at, n=1):
    """One event, when it happens; the results."""
    machine.wait(NOW + at - machine.now)
    one = {"timestamp": NOW + at, "n": n, "id": f"{type_name}{at}"}
    return machine.send(one, type_name=type_name, source=type_name)


def submitted(machine, text):
    reply = machine.submit(text)
    assert reply["ok"] is True, reply


def test_a_sequence_half_done_survives_a_changed_text_that_keeps_its_definition(machine):
    submitted(machine, TYPES + PAIR + told())
    send(machine, "A", 0)
    submitted(machine, TYPES + PAIR + told(2, "(n > 0)"))
    (result,) = send(machine, "B", 1_000)
    assert result["seq"] == 2
    assert (result["start"], result["end"]) == (NOW, NOW + 1_000)


def test_a_sequence_half_done_is_gone_with_the_definition_that_held_it(machine):
    submitted(machine, TYPES + PAIR + told())
    send(machine, "A", 0)
    submitted(machine, TYPES + WITHIN_2 + told(2))
    assert send(machine, "B", 1_000) == []
    send(machine, "A", 2_000)
    assert len(send(machine, "B", 3_000)) == 1


def test_a_text_laid_out_otherwise_keeps_everything(machine):
    """What counts is the canonical text: neither blanks, comments nor the order in the file."""
    submitted(machine, TYPES + PAIR + told())
    send(machine, "A", 0)
    laid_out = "# moved\n" + PAIR.replace("then", "\n  then") + TYPES + told(2, "( n>0 )")
    submitted(machine, laid_out)
    assert len(send(machine, "B", 1_000)) == 1


def test_what_the_other_subscriptions_of_the_file_hold_goes_on(machine):
    """Only what was changed begins anew."""
    twice = "subscription Twice seq {} from anna to alerts\ndetect A as x then A as y within {}\n"
    other = twice.replace("Twice", "Other").format(1, "1 min")
    submitted(machine, TYPES + twice.format(1, "1 min") + other)
    send(machine, "A", 0)
    submitted(machine, TYPES + twice.format(2, "2 mins") + other)
    results = send(machine, "A", 1_000)
    assert [one["subscription"] for one in results] == ["Other"]
    assert [one.results for one in machine.broker.subscriptions] == [1, 0]


def test_a_subscription_goes_on_under_its_next_seq(machine):
    """What it reports from then on bears the new number."""
    text = "event A(n: int)\nsubscription T seq {} from anna to x\ndetect A as x then A as y\n"
    submitted(machine, text.format(1))
    send(machine, "A", 0)
    submitted(machine, text.format(2))
    (result,) = send(machine, "A", 1_000)
    assert (result["seq"], result["start"]) == (2, NOW)


def test_a_window_keeps_what_it_has_counted(machine):
    counting = "define Counted(n) aggr every 1 min\ndetect A\nassign n = Count(A)\n"
    report = "subscription Many seq {} from anna to alerts\ndetect Counted(n > {})\n"
    submitted(machine, TYPES + counting + report.format(1, 100))
    first = 60_000 - NOW % 60_000
    send(machine, "A", first)
    send(machine, "A", first + 10_000)
    submitted(machine, TYPES + counting + report.format(2, 2))
    assert send(machine, "A", first + 20_000) == []
    (result,) = send(machine, "A", first + 70_000)
    assert (result["seq"], result["values"]) == (2, {"Counted": {"n": 3}})


def test_a_silence_that_goes_on_is_told_of_its_whole_length(machine):
    silent = "define Silent(n)\ndetect absent A for 1 min\nassign n = 1\n"
    report = "subscription S seq {} from anna to alerts\ndetect Silent{}\n"
    submitted(machine, TYPES + silent + report.format(1, ""))
    send(machine, "A", 0)
    machine.wait(40_000)
    submitted(machine, TYPES + silent + report.format(2, "(n > 0)"))
    machine.wait(100_000)
    (result,) = machine.results()
    assert (result["start"], result["end"]) == (NOW, NOW + 60_000)


def test_a_refused_text_leaves_a_sequence_half_done(machine):
    submitted(machine, TYPES + PAIR + told(2))
    send(machine, "A", 0)
    assert machine.submit(TYPES + PAIR + told(1, "(n > 5)"))["ok"] is False
    assert machine.submit(TYPES + PAIR + told(3) + told(1, name="Bad").replace("Pair", "Pear"))[
        "errors"
    ]
    (result,) = send(machine, "B", 1_000)
    assert result["seq"] == 2
