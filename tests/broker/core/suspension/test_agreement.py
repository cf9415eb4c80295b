"""What a home and a host tell each other of suspended subscriptions brings both into step."""

from types import SimpleNamespace

from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import Notes
from broker.core.suspension.agreement import follow, mark
from broker.engine.ledger import Ledger
from broker.network.placement.suspension import Suspension, standing_of, unheard

KEY = ("anna", "Wild")


def catalogue(suspended="", resumed=0):
    made = Catalogue()
    one = Installed("anna", "Wild", 1, "alerts", "task", "anna", ("needed",), "declared", 0)
    one.suspended, one.resumed = suspended, resumed
    made.add(one)
    return made


class Tasks:
    """What is asked of a matcher, and of whoever begins tasks anew."""

    def __init__(self, *suspended):
        self.begun = []
        self.suspensions = SimpleNamespace(why=dict.fromkeys(suspended, "bytes"), suspend=self._end)

    def resume(self, sub, begin):
        self.begun.append((sub.key, begin))
        self.suspensions.why.clear()

    def _end(self, key, why):
        self.suspensions.why[key] = why


def row(exceeded, resumed):
    return Suspension(*KEY, exceeded, resumed)


def test_what_runs_and_never_did_otherwise_is_not_told():
    assert standing_of(catalogue(), [KEY]) == ()


def test_what_is_suspended_or_has_been_is_told_in_order():
    assert standing_of(catalogue("bytes"), [KEY]) == (row("bytes", 0),)
    assert standing_of(catalogue("", 2), [KEY]) == (row("", 2),)


def test_what_was_heard_of_others_is_said_again_so_that_nobody_asks_for_ever():
    other = Suspension("anna", "Gone", "bytes", 1)
    assert standing_of(catalogue("bytes"), [KEY], (other,)) == (other, row("bytes", 0))


def test_a_home_hears_of_what_was_suspended_since_it_last_began():
    assert unheard(catalogue("", 1), [KEY], (row("bytes", 1),)) == (row("bytes", 1),)


def test_a_row_from_before_a_new_beginning_tells_a_home_nothing():
    """Else the wish to resume would be lost where the two pass each other."""
    assert unheard(catalogue("", 1), [KEY], (row("bytes", 0),)) == ()


def test_a_home_hears_of_it_once():
    assert unheard(catalogue("bytes", 1), [KEY], (row("bytes", 1),)) == ()


def test_a_home_does_not_hear_of_what_is_of_another_cell():
    assert unheard(catalogue(), [], (row("bytes", 0),)) == ()


def test_a_home_marks_and_tells():
    own, ledger = catalogue(), Ledger()
    (told,) = mark((row("bytes", 0),), own, ledger, Notes(), 7)
    assert told.topic == "suspended/anna/Wild"
    assert own.subscriptions[KEY].suspended == "bytes"
    assert ledger.notes == {"too_much_work": 1}


def test_a_host_that_has_to_begin_anew_does_so_once():
    own, tasks = catalogue("bytes", 1), Tasks("task", "needed")
    for _ in range(2):
        follow((row("", 2),), own, tasks, tasks, 9)
    assert tasks.begun == [(KEY, 9)]
    assert (own.subscriptions[KEY].suspended, own.subscriptions[KEY].resumed) == ("", 2)
    assert tasks.suspensions.why == {}


def test_a_host_does_not_do_the_work_again_that_its_home_knows_of():
    own, tasks = catalogue(), Tasks()
    follow((row("bytes", 0),), own, tasks, tasks, 9)
    assert tasks.suspensions.why == {"task": "bytes"}
    assert own.subscriptions[KEY].suspended == "bytes"


def test_a_host_that_began_anew_and_was_suspended_again_elsewhere_is_so_here():
    own, tasks = catalogue("bytes", 1), Tasks("task")
    follow((row("candidates", 2),), own, tasks, tasks, 9)
    assert (own.subscriptions[KEY].suspended, own.subscriptions[KEY].resumed) == ("candidates", 2)


def test_what_is_suspended_at_a_host_alone_stays_so_until_its_home_has_heard():
    own, tasks = catalogue("bytes", 1), Tasks("task")
    follow((row("", 1),), own, tasks, tasks, 9)
    assert (own.subscriptions[KEY].suspended, tasks.begun) == ("bytes", [])
