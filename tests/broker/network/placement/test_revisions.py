"""Texts that take the place of a cell's: what is set apart meanwhile, and whom a home asks when."""

import json
from types import SimpleNamespace

import pytest

from broker.engine.ingest.times import TIME_MAX_MS
from broker.network.placement import cell_messages as said
from broker.network.placement import home_records as records
from broker.network.placement.book import CellBook
from broker.network.placement.cell_messages import TextRevision, Which
from broker.network.placement.result_queue import RESULTS_BYTES, RESULTS_PART, ResultQueue
from broker.network.placement.revisions import CATCH_UP_MS, Reviser

HOT, COLD = ("x", "Hot"), ("x", "Cold")
WHICH = Which("a/1", 1, 1)


def row(name, key=HOT):
    return (*key, "y", json.dumps({"id": name}).encode())


class Cell:
    """The book of a home with one active cell, of two subscriptions."""

    def __init__(self):
        self.book = CellBook("a")
        self.kept = self.book.begin([HOT, COLD], 1)
        self.save(0, 0)
        self.numbers = {}

    def results(self, *names, revision=0, term=1, life=1, key=HOT):
        first = self.numbers.get((term, life), 0)
        self.numbers[term, life] = first + len(names)
        rows = [row(name, key) for name in names]
        found = self.book.results(records.CellResults("a/1", term, life, 0, first, rows, revision))
        return [json.loads(one[3])["id"] for one in found]

    def save(self, revision, end, term=1, life=1):
        fresh, rows = self.book.save(
            records.CellSaved("a/1", term, life, end if life > 1 else 0, end, b"state", revision)
        )
        return fresh, [json.loads(one[3])["id"] for one in rows]

    def revise(self, *keys, begins=False):
        self.book.revise("a/1", keys or (HOT,), b"text", begins=begins)

    def again(self):
        """The same, from its state."""
        before, self.book = self.book, CellBook("a")
        self.book.restore(before.state())
        self.kept = self.book.cells["a/1"]


@pytest.fixture(params=[False, True])
def cell(request):
    cell = Cell()
    if request.param:  # whatever is done, its state is all that counts
        revise = cell.revise

        def revise_again(*keys, **settings):
            revise(*keys, **settings)
            cell.again()

        cell.revise = revise_again
    return cell


def test_what_is_found_under_a_text_is_given_out_once_a_snapshot_has_it(cell):
    cell.revise()
    assert cell.results("old") == ["old"]  # the host has not heard of it yet
    assert cell.results("new", revision=1) == []
    assert cell.save(0, 1) == ([], [])  # one that was under way
    assert cell.save(1, 1) == ([HOT], ["new"])
    assert cell.results("more", revision=1) == ["more"]


def test_what_is_found_under_a_text_of_which_the_host_is_lost_was_not(cell):
    cell.revise()
    cell.results("old")
    cell.results("new", revision=1)
    assert cell.results("old", "new", life=2) == ["new"]  # under the text before
    cell.results("more", revision=1, life=2)
    assert cell.save(1, 2, life=2) == ([HOT], ["more"])


def test_what_a_term_that_comes_has_found_is_given_out_when_it_serves(cell):
    cell.book.move("a/1", "b", "")
    cell.revise()
    cell.results("one")
    assert cell.results("one", "two", term=2) == []
    assert cell.save(0, 2, term=2) == ([], ["two"])
    assert cell.kept.revisions  # of the term that serves by now nobody has asked it yet


def test_what_a_term_that_is_called_off_has_found_is_not_given_out(cell):
    cell.book.move("a/1", "b", "")
    cell.revise()
    cell.results("two", term=2)
    cell.book.move("a/1", "a", "")
    cell.results("new", revision=1)
    assert cell.save(1, 1) == ([HOT], ["new"])


def test_what_was_set_apart_of_the_term_whose_place_is_taken_is_not_given_out(cell):
    cell.revise()
    cell.results("new", revision=1)
    cell.book.move("a/1", "b", "")  # where it begins from the snapshot before, under that text
    assert cell.save(0, 0, term=2) == ([], [])
    cell.results("again", revision=1, term=2)
    assert cell.save(1, 1, term=2) == ([HOT], ["again"])


def test_of_two_texts_each_is_in_force_with_a_snapshot_of_its_own(cell):
    cell.revise(HOT)
    cell.revise(HOT, COLD)
    cell.results("one", revision=1)
    cell.results("two", revision=2)
    assert cell.save(1, 1) == ([], ["one"])  # another text of both is to come
    assert cell.save(2, 2) == ([HOT, COLD], ["two"])


def test_what_an_earlier_version_says_is_of_the_snapshot_that_it_began_from(cell):
    cell.revise()
    cell.save(1, 0)
    assert cell.results("one", revision=-1) == ["one"]
    cell.save(-1, 1)
    assert cell.kept.revision == 1


def test_how_far_a_text_before_is_settled_is_not_said_of_another(cell):
    cell.revise(HOT)
    cell.book.settle(records.CellSettled("a/1", 1, 1, 0, [(*HOT, 9), (*COLD, 9)]))
    assert cell.book.settled == {COLD: 9}
    cell.save(1, 0)
    cell.book.settle(records.CellSettled("a/1", 1, 1, 0, [(*HOT, 12)]))
    assert cell.book.settled == {COLD: 9, HOT: 12}


def test_what_a_text_has_not_changed_is_given_out_at_once_and_may_end_before_its_snapshot(cell):
    cell.revise(HOT)
    assert cell.results("last", revision=1, key=COLD) == ["last"]
    assert cell.results("new", revision=1) == []
    end = records.CellSettled("a/1", 1, 1, 2, [(*HOT, TIME_MAX_MS), (*COLD, TIME_MAX_MS)])
    cell.book.settle(end)
    assert cell.book.settled == {COLD: TIME_MAX_MS}
    assert cell.results("last", "new", life=2, key=COLD) == ["new"]  # under the text before


def test_what_a_later_text_has_not_changed_does_not_wait_for_it(cell):
    """Else it would be settled beyond what is set apart of it."""
    cell.revise(HOT)
    cell.revise(COLD)
    assert cell.results("one", revision=2) == []
    assert cell.results("other", revision=1, key=COLD) == ["other"]
    assert cell.save(1, 0) == ([HOT], ["one"])
    cell.book.settle(records.CellSettled("a/1", 1, 1, 2, [(*HOT, 9)]))
    assert (cell.book.settled, cell.kept.apart) == ({HOT: 9}, [])


def test_what_was_set_apart_of_a_process_or_a_move_that_is_over_is_let_go(cell):
    cell.revise()
    cell.results("one", "two", revision=1)
    cell.results("one", revision=1, life=2)
    assert [result.run for result in cell.kept.apart] == [2]
    for broker, term in (("b", 2), ("c", 3)):
        cell.book.move("a/1", broker, "")
        cell.results("one", term=term)
    assert [result.run for result in cell.kept.apart] == [2, 4]
    cell.book.move("a/1", "a", "")
    assert [result.run for result in cell.kept.apart] == [2]


# --- who is asked when ---------------------------------------------------------------------------


class Asking:
    """A home that asks the hosts of such a cell."""

    def __init__(self):
        self.cell = Cell()
        self.now, self.sent = 1_000, []
        self.reviser = Reviser(
            self.cell.book.cells,
            lambda to, what: self.sent.append((to, what.life, what.revision.number)),
            lambda: self.now,
            self.cell.book.lacks_results,
        )

    def take(self):
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def asking():
    return Asking()


def test_a_host_is_asked_once_for_each_text_that_it_has_not(asking):
    asking.reviser.runs(WHICH, 1, 0)
    asking.cell.revise()
    asking.cell.revise(COLD)
    asking.reviser.look()
    asking.reviser.look()
    assert asking.take() == [("a", 1, 1), ("a", 1, 2)]
    asking.reviser.runs(WHICH, 1, 1)  # the second was lost
    assert asking.take() == [("a", 1, 2)]
    asking.reviser.runs(WHICH, 1, 2)
    assert asking.take() == []
    asking.cell.revise()
    asking.reviser.look()
    assert asking.take() == [("a", 1, 3)]


def test_a_host_is_asked_once_it_has_found_again_what_was_given_out(asking):
    asking.cell.results("one", "two")
    asking.cell.revise()
    asking.reviser.runs(WHICH, 2, 0)  # another process, which begins from the snapshot
    assert asking.take() == []
    asking.cell.results("one", life=2)
    asking.reviser.ask("a/1")
    assert asking.take() == []
    asking.cell.results("two", life=2)
    asking.reviser.ask("a/1")
    assert asking.take() == [("a", 2, 1)]


def test_what_was_given_out_of_a_subscription_that_is_gone_is_not_waited_for(asking):
    asking.cell.results("one", key=COLD)
    asking.cell.revise()
    asking.cell.book.drop([COLD])
    asking.reviser.runs(WHICH, 2, 0)
    assert asking.take() == [("a", 2, 1)]


def test_a_host_that_does_not_find_it_again_is_asked_after_its_time(asking):
    asking.cell.results("one")
    asking.cell.revise()
    asking.reviser.runs(WHICH, 2, 0)
    (due,) = asking.reviser.next_wake()
    assert due == 1_000 + CATCH_UP_MS
    asking.now = due - 1
    asking.reviser.runs(WHICH, 2, 0)  # it is heard of now and then
    assert asking.take() == []
    asking.now = due
    asking.reviser.look()
    assert asking.take() == [("a", 2, 1)]
    assert asking.reviser.next_wake() == []


def test_nobody_is_asked_while_a_cell_moves(asking):
    asking.reviser.runs(WHICH, 1, 0)
    asking.cell.book.move("a/1", "b", "")
    asking.cell.revise()
    asking.reviser.look()
    assert asking.take() == []
    asking.cell.save(0, 0, term=2)
    asking.reviser.runs(Which("a/1", 1, 2), 7, 0)
    assert asking.take() == [("b", 7, 1)]


def test_what_was_cancelled_since_is_not_asked_for():
    sent = []
    cell = SimpleNamespace(
        keys=[COLD],
        serving=SimpleNamespace(broker="b", life=1),
        coming=None,
        revisions=[TextRevision(1, b"", (HOT, COLD), begins=False)],
    )
    lent = (lambda _, what: sent.append(what)), (lambda: 0), (lambda *_: False)
    reviser = Reviser({"a/1": cell}, *lent)
    reviser.runs(WHICH, 1, 0)
    assert sent == [said.Revised(WHICH, 1, TextRevision(1, b"", (COLD,), begins=False))]


def test_a_cell_that_is_no_more_is_forgotten(asking):
    asking.reviser.runs(WHICH, 1, 0)
    asking.cell.book.drop([HOT, COLD])
    asking.reviser.look()
    asking.reviser.ask("a/1")
    assert asking.take() == asking.reviser.next_wake() == []


# --- the results of a cell -----------------------------------------------------------------------


def parts(queue):
    return [(what.first, what.revision, len(what.rows)) for what in queue.say(WHICH, 1)]


def test_results_of_one_message_are_of_one_text():
    queue = ResultQueue(5, 0)
    for number, revision in enumerate((0, 0, 1, 1, 1)):
        queue.revision = revision
        queue.add(row(str(number)))
    assert parts(queue) == [(5, 0, 2), (7, 1, 3)]
    assert parts(queue) == []
    queue.take(6)
    queue.tell_again()
    assert parts(queue) == [(6, 0, 1), (7, 1, 3)]
    queue.take(99)
    assert (len(queue), queue.first) == (0, 10)


def test_a_message_has_so_many_results_or_so_many_bytes_and_one_at_least():
    queue = ResultQueue(0, 0)
    for number in range(RESULTS_PART + 1):
        queue.add(row(str(number)))
    assert [count for _, _, count in parts(queue)] == [RESULTS_PART, 1]
    for _ in range(3):
        queue.add(("x", "Hot", "y", b"." * RESULTS_BYTES))
    assert [count for _, _, count in parts(queue)] == [1, 1, 1]
