"""A home alone, with no broker around it: whom it asks for its cells, and what hosts are answered.

Times, ways and what is recorded come in as they do in a broker; messages to hosts are a list.
"""

from types import SimpleNamespace

import pytest

from broker.network.placement import cell_messages as said
from broker.network.placement import home_records as records
from broker.network.placement.book import CellBook
from broker.network.placement.cell_messages import Which
from broker.network.placement.departures import LEAVES_MS, STATE_BYTES_MAX
from broker.network.placement.homes import HOST_LOST_MS, MOVING_MS_MAX, CellHomes, HomeTools
from broker.network.placement.mail import CellMail
from broker.network.placement.suspension import Suspension

KEY = ("x", "Hot")


class Home:
    """The home `a` of one cell, with ways to `b` and `c` as long as nobody cuts them."""

    def __init__(self):
        self.now = 1_000
        self.via = {"b": "b", "c": "b"}
        self.sent = []
        self.notes = []
        self.touched = 0
        self.counts = dict.fromkeys(("cells_not_placed", "cells_moved", "cells_refused"), 0)
        self.book = CellBook("a")
        self.book.begin([KEY], 1)
        self.mail = SimpleNamespace(
            on_said={},
            tell=lambda to, what: self.sent.append((to, what)),
            home_of=lambda name: name.partition("/")[0],
        )
        catalogue = SimpleNamespace(subscriptions={})
        self.homes = CellHomes(
            HomeTools(
                "a",
                self.book,
                catalogue,
                self.mail,
                self.via,
                self.counts,
                lambda: self.now,
                self.record,
                lambda cell, which: ("contents", cell.name, which.term),
                lambda *line: self.notes.append(line),
                self.touch,
            )
        )
        self.homes.look()

    def touch(self):
        self.touched += 1

    def record(self, what):
        book = self.book
        match what:
            case records.CellMoved():
                book.move(what.cell, what.broker, what.reason)
            case records.CellNamed():
                book.name(what.cell, what.origins)
            case records.CellResults():
                book.results(what)
            case records.CellSaved():
                book.save(what)
            case records.CellSettled():
                book.settle(what)

    def hear(self, host, what):
        self.mail.on_said[type(what)](host, what)

    def take(self):
        sent, self.sent = self.sent, []
        return sent

    def which(self, term=1):
        return Which("a/1", 1, term)

    def saved(self, host, term=1, number=1):
        self.hear(host, said.Saved(self.which(term), 5, 0, number, 0, b"state"))

    def place(self, broker):
        """Have the cell run there, with the snapshot that there is."""
        self.homes.place("a/1", broker)
        asked = [to for to, what in self.sent if isinstance(what, said.SaveAsked)]
        self.sent = [row for row in self.sent if not isinstance(row[1], said.SaveAsked)]
        if asked:
            self.wait(LEAVES_MS)

    def lose(self, host):
        del self.via[host]
        self.homes.lost(host)

    def wait(self, ms):
        self.now += ms
        self.homes.wake()


@pytest.fixture
def home():
    return Home()


def wanted(sent):
    return [(to, what.which.term) for to, what in sent if isinstance(what, said.Wanted)]


def kinds(sent):
    return [(to, type(what).__name__) for to, what in sent]


def test_a_cell_is_asked_for_at_home_first_and_then_where_it_is_placed(home):
    assert wanted(home.take()) == [("a", 1)]
    home.saved("a")
    home.take()
    home.place("b")
    assert wanted(home.take()) == [("b", 2)]
    assert home.book.cells["a/1"].serving.broker == "a"  # until the new term has a state


def test_before_it_moves_its_state_comes_home(home):
    home.saved("a")
    home.take()
    home.homes.place("a/1", "b")
    assert home.take() == [("a", said.SaveAsked(home.which()))]
    assert home.book.goes_to("a/1") == "a"
    home.saved("a", number=2)
    sent = home.take()
    assert ("a", said.Stored(home.which(), 5, 2)) in sent
    assert wanted(sent) == [("b", 2)]
    home.wait(LEAVES_MS)
    assert wanted(home.take()) == []
    assert home.counts["cells_moved"] == 1


def test_a_host_that_does_not_save_it_is_not_waited_for_long(home):
    home.saved("a")
    home.homes.place("a/1", "b")
    home.take()
    assert min(home.homes.next_wake()) == home.now + LEAVES_MS
    home.wait(LEAVES_MS - 1)
    assert home.take() == []
    home.wait(1)
    assert wanted(home.take()) == [("b", 2)]


def test_it_goes_where_it_was_to_go_last_or_stays(home):
    home.saved("a")
    home.homes.place("a/1", "b")
    home.homes.place("a/1", "c")
    home.saved("a", number=2)
    assert home.book.goes_to("a/1") == "c"
    home.saved("c", term=2)
    home.homes.place("a/1", "b")
    home.homes.place("a/1", "c")
    home.saved("c", term=2, number=3)
    home.wait(LEAVES_MS)
    assert home.book.goes_to("a/1") == "c"


def test_a_broker_that_is_lost_meanwhile_does_not_get_it(home):
    home.saved("a")
    home.homes.place("a/1", "b")
    home.lose("b")
    home.saved("a", number=2)
    assert home.book.goes_to("a/1") == "a"


def test_a_broker_that_is_away_when_the_state_is_home_does_not_get_it_and_that_is_counted(home):
    home.saved("a")
    home.homes.place("a/1", "b")
    home.lose("b")
    home.wait(LEAVES_MS)
    assert home.book.goes_to("a/1") == "a"
    assert home.counts["cells_not_placed"] == 1


def test_a_cell_that_ended_while_it_leaves_is_not_placed(home):
    home.saved("a")
    home.homes.place("a/1", "b")
    home.book.drop([KEY])
    home.homes.place("a/1", "c")
    assert home.counts["cells_not_placed"] == 1
    assert "a/1" not in home.book.cells


def test_a_large_state_goes_as_it_was_saved_last(home):
    large = b"x" * (STATE_BYTES_MAX + 1)
    home.hear("a", said.Saved(home.which(), 5, 0, 1, 0, large))
    home.take()
    home.homes.place("a/1", "b")
    assert wanted(home.take()) == [("b", 2)]


@pytest.mark.parametrize(("cell", "broker"), [("a/1", "nobody"), ("a/9", "b")])
def test_what_cannot_be_placed_is_counted_and_stays(home, cell, broker):
    home.take()
    home.homes.place(cell, broker)
    assert home.counts["cells_not_placed"] == 1
    assert home.take() == []


def test_the_old_term_ends_with_the_first_snapshot_of_the_new_one(home):
    home.saved("a")
    home.place("b")
    home.take()
    home.saved("b", term=2)
    assert kinds(home.take()) == [("a", "Ended"), ("b", "Stored")]


def test_a_host_of_a_term_that_is_over_is_told_so_whatever_it_says(home):
    home.take()
    over = Which("a/1", 1, 7)
    for what in (said.Missing(over), said.Named(over, 5, {"b": ("T",)})):
        home.hear("b", what)
        assert home.take() == [("b", said.Ended(over))]
    assert home.book.cells["a/1"].origins == {}


def test_a_host_that_lacks_a_term_gets_its_contents(home):
    home.take()
    home.hear("a", said.Missing(home.which()))
    assert home.take() == [("a", ("contents", "a/1", 1))]


def test_origins_that_a_cell_names_are_written_down_once_and_confirmed_each_time(home):
    home.take()
    named = said.Named(home.which(), 5, {"b": ("T",)})
    for _ in range(2):
        home.hear("a", named)
        assert home.take() == [("a", said.Noted(named.which, 5, named.origins))]
    assert home.book.cells["a/1"].origins == {"b": ["T"]}


def test_results_are_taken_once_and_answered_each_time(home):
    home.take()
    row = ("x", "Hot", "y", b'{"id": "r1"}')
    for _ in range(2):
        home.hear("a", said.Results(home.which(), 5, 0, 0, [row]))
        assert home.take() == [("a", said.Taken(home.which(), 5, 1))]
    assert home.book.cells["a/1"].held == [row]


def test_a_snapshot_before_results_that_are_missing_is_not_stored(home):
    home.take()
    home.hear("a", said.Saved(home.which(), 5, 0, 1, 3, b"state"))
    assert home.take() == []
    assert not home.book.cells["a/1"].active


def test_a_host_that_is_lost_for_long_has_the_cell_no_more(home):
    home.saved("a")
    home.place("b")
    home.saved("b", term=2)
    home.lose("b")
    home.wait(HOST_LOST_MS - 1)
    assert home.book.goes_to("a/1") == "b"
    home.wait(1)
    assert home.book.goes_to("a/1") == "a"
    assert home.book.cells["a/1"].reason == "its host was not reached"


def test_a_host_that_is_found_again_is_asked_again_and_keeps_the_cell(home):
    home.saved("a")
    home.place("b")
    home.saved("b", term=2)
    home.lose("b")
    home.via["b"] = "b"
    home.take()
    home.homes.found("b")
    assert wanted(home.take()) == [("b", 2)]
    home.wait(HOST_LOST_MS)
    assert home.book.goes_to("a/1") == "b"


def test_a_move_that_takes_too_long_is_given_up_where_the_cell_runs_on(home):
    home.saved("a")
    home.place("b")
    home.take()
    home.wait(MOVING_MS_MAX)
    assert home.book.goes_to("a/1") == "a"
    assert kinds(home.take()) == [("b", "Ended")]


def test_a_refused_cell_stays_where_it_serves_and_the_reason_is_told(home):
    home.saved("a")
    home.place("b")
    home.hear("b", said.Refused(home.which(2), "no room"))
    assert home.book.goes_to("a/1") == "a"
    assert home.book.cells["a/1"].reason == "no room"
    assert [(level, event) for level, event, _ in home.notes] == [("warning", "cell_refused")]
    assert home.counts["cells_refused"] == 1


def test_a_cell_that_failed_where_it_served_goes_home(home):
    home.saved("a")
    home.place("b")
    home.saved("b", term=2)
    home.hear("b", said.Refused(home.which(2), "it failed"))
    assert home.book.goes_to("a/1") == "a"


def test_an_origin_is_told_of_those_terms_alone_that_are_over(home):
    home.take()
    home.hear("c", said.Asked(("a/1#1", "a/1#4", "a/8#1", "z/1#1")))
    assert home.take() == [("c", said.Over(("a/1#4", "a/8#1")))]


def test_whoever_decides_hears_only_when_a_cell_has_ended(home):
    home.saved("a")
    home.record = lambda what: home.book.drop([KEY])
    home.homes._record = home.record
    home.hear("a", said.Settled(home.which(), 5, 0, [("x", "Hot", 2_000)]))
    assert home.touched == 1


def test_mail_of_a_broker_is_such_a_mail():
    """What stands in for it above has what a home uses of the real one."""
    real = CellMail("a", 1, SimpleNamespace(via={}), SimpleNamespace(number=0))
    assert all(hasattr(real, name) for name in ("on_said", "tell", "home_of"))


def revised(home):
    """Return a home whose cell is active at `b` and to have another text."""
    home.saved("a")
    home.place("b")
    home.saved("b", term=2)
    home.take()
    home.book.revise("a/1", [KEY], b"text", begins=False)
    home.homes.look()
    return home.which(2)


def test_a_host_that_tells_how_it_runs_is_asked_to_take_up_the_text(home):
    which = revised(home)
    assert home.take() == [("b", said.Wanted(which, (KEY,), (), 1))]
    home.hear("b", said.Running(which, 5, (), 0))
    revision = home.book.cells["a/1"].revisions[0]
    assert home.take() == [("b", said.Revised(which, 5, revision))]
    home.hear("b", said.Running(which, 5, (), 1))
    home.hear("b", said.Saved(which, 5, 0, 2, 0, b"state", 1))
    assert home.take() == [("b", said.Stored(which, 5, 2))]
    assert home.book.cells["a/1"].revision == 1


def test_how_subscriptions_of_a_text_before_stand_says_nothing_of_those_now(home):
    which = revised(home)
    home.take()
    stood = (Suspension(*KEY, "too_much_work", 0),)
    home.hear("b", said.Running(which, 5, stood, 0))
    assert kinds(home.take()) == [("b", "Revised")]
    home.hear("b", said.Running(which, 5, stood, 1))
    assert kinds(home.take()) == [("b", "Wanted")]


def test_a_host_of_an_earlier_version_is_left_for_the_home_and_the_text_taken_up_there(home):
    which = revised(home)
    home.take()
    home.hear("b", said.Running(which, 5, ()))
    assert home.book.goes_to("a/1") == "a"
    home.take()
    home.hear("a", said.Running(home.which(3), 6, (), 0))
    assert home.take() == []  # it is to serve first
    home.hear("a", said.Saved(home.which(3), 6, 0, 1, 0, b"state", 0))
    home.take()
    home.hear("a", said.Running(home.which(3), 6, (), 0))
    assert kinds(home.take()) == [("a", "Revised")]
