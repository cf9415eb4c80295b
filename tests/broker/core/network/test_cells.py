"""What a home remembers of its cells, when they are saved, and how long messages travel."""

import json

import msgspec
import pytest

from broker.core.cells.cell_origins import places
from broker.network.origin.own import Interest
from broker.network.placement import compression as cell_packing
from broker.network.placement import parcels as cell_post
from broker.network.placement.book import CellBook
from broker.network.placement.cell_view import cell_of, home_of, is_cell, term_name
from broker.network.placement.compression import pressed, unpressed
from broker.network.placement.home_records import CellResults, CellSaved
from broker.network.placement.parcels import Post
from broker.network.placement.snapshot_pace import SAVE_MS, SAVE_MS_MAX, SAVE_SHARE, Saver, Saving
from broker.network.routing.advertisement.messages import LOCAL, Advertise, Unwant, Want, Withdraw
from broker.network.routing.advertisement.operator import Advertisement, Key, Operator
from broker.network.routing.growing import GrowingRouter

KEY = ("x", "S")


def row(name):
    return ("x", "S", "alerts", json.dumps({"id": name}).encode())


def results(first, *names, term=1, life=10, floor=0):
    return CellResults("h/1", term, life, floor, first, [row(name) for name in names])


def saved(end, term=1, life=10, floor=0, snapshot=b"s"):
    return CellSaved("h/1", term, life, floor, end, snapshot)


def ids(rows):
    return [json.loads(one[3])["id"] for one in rows]


@pytest.fixture
def book():
    """Of a home with a cell that is active, and has given out one result since."""
    one = CellBook("h")
    one.begin([KEY], 5)
    assert one.save(saved(0)) == ([KEY], [])
    assert ids(one.results(results(0, "a"))) == ["a"]
    return one


# --- results --------------------------------------------------------------------------------


def test_results_are_taken_once_and_in_order(book):
    assert ids(book.results(results(0, "a", "b"))) == ["b"]
    assert book.results(results(3, "d")) == []  # the one before it has not come
    assert ids(book.results(results(2, "c", "d"))) == ["c", "d"]


def test_what_a_new_life_finds_again_is_not_taken_again(book):
    found = book.results(results(0, "b", "a", "c", life=11))
    assert ids(found) == ["b", "c"]
    assert book.results(results(1, "z", life=10)) == []  # the old one is over


def test_two_terms_at_once_find_each_result_once(book):
    book.move("h/1", "b", "")
    assert ids(book.results(results(0, "a", "b", term=2, life=20))) == ["b"]
    assert book.results(results(1, "b")) == []
    assert ids(book.results(results(2, "c"))) == ["c"]
    assert book.save(saved(2, term=2, life=20)) == ([], [])
    assert book.results(results(3, "d")) == []  # the first term is over
    assert ids(book.results(results(2, "c", "d", term=2, life=20))) == ["d"]


def test_ids_are_forgotten_with_the_snapshot_behind_them_alone(book):
    book.results(results(1, "b", "c"))
    book.save(saved(2))
    assert len(book.cells["h/1"].ids) == 1
    assert book.results(results(2, "c", life=11, floor=2)) == []


def test_results_before_it_is_active_are_given_out_with_the_first_snapshot():
    book = CellBook("h")
    book.begin([KEY], 5)
    assert book.results(results(0, "a")) == []
    assert book.save(saved(2)) == ([], [])  # not all before it has come
    fresh, rows = book.save(saved(1))
    assert (fresh, ids(rows)) == ([KEY], ["a"])


def test_what_a_life_found_that_never_was_active_counts_for_nothing():
    book = CellBook("h")
    book.begin([KEY], 5)
    book.results(results(0, "a"))
    _, rows = book.save(saved(0, life=11))
    assert rows == []
    assert ids(book.results(results(0, "a", life=11))) == ["a"]


# --- terms ----------------------------------------------------------------------------------


def test_a_move_begins_a_term_and_the_old_one_goes_on_until_that_is_saved(book):
    book.move("h/1", "b", "")
    assert book.goes_to("h/1") == "b"
    assert not book.is_over("h/1", 1)
    assert not book.saves(saved(1))  # the other one begins from the last
    assert book.save(saved(0, term=2, life=20)) == ([], [])
    assert book.is_over("h/1", 1)
    assert not book.is_over("h/1", 2)


def test_the_same_move_again_changes_nothing_and_back_gives_it_up(book):
    book.move("h/1", "b", "")
    book.move("h/1", "b", "")
    assert book.cells["h/1"].terms == 2
    book.move("h/1", "h", "")
    assert book.is_over("h/1", 2)
    assert book.saves(saved(1))


def test_a_cell_is_over_with_its_last_subscription(book):
    book.drop([KEY])
    assert book.is_over("h/1", 1)
    assert book.goes_to("h/1") is None
    assert book.begin([KEY], 9).name == "h/2"


def test_what_was_remembered_is_taken_up_from_its_state(book):
    book.move("h/1", "b", "why")
    book.name("h/1", {"o": ("Temp",)})
    other = CellBook("h")
    other.restore(book.state())
    assert other.state() == book.state()
    assert other.of == book.of
    assert other.results(results(0, "a", "a", life=12)) == []


def test_names_of_terms_are_those_of_no_broker():
    name = term_name("hall/3", 7)
    assert is_cell(name)
    assert not is_cell("hall")
    assert cell_of(name) == ("hall/3", 7)
    assert home_of(name) == home_of("hall/3") == "hall"
    for wrong in ("hall", "hall/3", "hall/3#", "hall/3#x"):
        with pytest.raises(ValueError, match="no"):
            cell_of(wrong)


# --- origins --------------------------------------------------------------------------------


def test_a_term_that_knows_no_place_begins_where_earlier_ones_left_off():
    hosts = {
        "h/1#1": Interest({}, 7),
        "h/1#2": Interest({}, 5),
        "h/11#1": Interest({}, 1),
        "b": Interest({}, 2),
    }
    assert places(hosts, "h/1#3", None) == (5, 5)
    assert places(hosts, "h/2#1", None) == (None, None)
    assert places(hosts, "h/1#3", 6) == (6, 6)
    assert places(hosts, "h/1#2", 9) == (9, 5)  # it is further than what is stored of it


# --- saving ---------------------------------------------------------------------------------


def test_small_states_go_often_and_large_ones_seldom():
    saver = Saver({}, 0)
    assert saver.due_at({"o": (1, 1)}, 0) == 0
    saver.save(Saving(1, 0, {"o": (1, 1)}, b"x" * 100), 0)
    assert saver.due_at({"o": (1, 9)}, 0) is None  # one is under way
    assert saver.done(1)
    saver.came("o", 9, 50)
    assert saver.due_at({"o": (1, 9)}, 0) == SAVE_MS_MAX
    saver.came("o", 10, (SAVE_SHARE - 1) * 100 + 50)
    assert saver.due_at({"o": (1, 10)}, 0) == SAVE_MS
    saver.save(Saving(2, 0, {"o": (1, 10)}, b"x" * 10_000_000), 0)
    saver.done(2)
    saver.came("o", 11, 50)
    assert saver.due_at({"o": (1, 11)}, 0) == 100_000


def test_a_state_that_is_asked_for_is_saved_when_it_is_wanted():
    saver = Saver({}, 0)
    saver.save(Saving(1, 0, {"o": (1, 1)}, b"x" * 100), 0)
    saver.ask(500)
    assert saver.due_at({"o": (1, 1)}, 0) is None  # one is under way, and is of before
    saver.done(1)
    assert saver.due_at({"o": (1, 1)}, 0) == 500
    saver.save(Saving(2, 0, {"o": (1, 1)}, b"x" * 100), 500)
    saver.done(2)
    assert saver.due_at({"o": (1, 1)}, 0) is None


def test_where_nothing_came_nothing_is_saved():
    saver = Saver({}, 0)
    saver.save(Saving(1, 3, {"o": (1, 1)}, b"x"), 0)
    saver.done(1)
    assert saver.due_at({"o": (1, 9)}, 3) is None
    assert saver.due_at({"o": (1, 9)}, 4) is not None  # but for a result,
    assert saver.due_at({"o": (1, 9), "p": (1, 0)}, 3) is not None  # or an origin more


def test_what_came_ahead_of_something_kept_back_is_saved_when_that_has_come():
    saver = Saver({}, 0)
    saver.came("o", 8, 50)
    saver.save(Saving(1, 3, {"o": (1, 4)}, b"x"), 0)
    saver.done(1)
    assert saver.may_tell("o", 1, 9) == 4
    assert saver.due_at({"o": (1, 4)}, 3) is None  # nothing would be told after another one
    assert saver.due_at({"o": (1, 9)}, 3) == SAVE_MS_MAX
    saver.save(Saving(2, 3, {"o": (1, 9)}, b"x"), 0)
    saver.done(2)
    assert saver.may_tell("o", 1, 9) == 9
    assert saver.due_at({"o": (1, 12)}, 3) is None  # promises alone


def test_an_origin_is_told_what_was_stored_and_more_only_while_nothing_came():
    saver = Saver({}, 0)
    saver.save(Saving(3, 0, {"o": (1, 4)}, b""), 0)
    assert saver.may_tell("o", 1, 4) is None
    assert not saver.done(2)
    assert saver.may_tell("o", 1, 4) is None
    assert saver.done(3)
    assert saver.may_tell("o", 1, 4) == 4
    assert saver.may_tell("o", 1, 7) == 7  # promises alone
    saver.came("o", 8, 50)
    assert saver.may_tell("o", 1, 9) == 4
    assert saver.may_tell("o", 2, 9) is None  # an origin that lost its disk


@pytest.mark.parametrize("size", [0, 1, 5_000, 300_000])
def test_a_state_is_smaller_when_pressed_and_is_what_it_was_when_unpressed(size):
    state = msgspec.msgpack.encode({"rows": [[at, "some words"] for at in range(size // 10)]})
    assert unpressed(pressed(state)) == state
    assert size < 100 or len(pressed(state)) < len(state) / 4
    assert unpressed(state) == state  # as it was kept before


@pytest.mark.parametrize(
    "data", [b"", b"x", pressed(b"\x81")[:-1], pressed(b"\x81") + b"x", b"\xff" * 9]
)
def test_what_is_no_pressed_state_is_refused(data):
    with pytest.raises(ValueError, match="state"):
        unpressed(data)


def test_a_small_message_cannot_become_a_state_of_any_size(monkeypatch):
    bomb = pressed(bytes(1_000_000))
    assert len(bomb) < 10_000
    monkeypatch.setattr(cell_packing, "STATE_BYTES_MAX", 999_999)
    with pytest.raises(ValueError, match="more than may be"):
        unpressed(bomb)


def test_a_state_that_cannot_travel_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(cell_packing, "STATE_BYTES_MAX", 9)
    state = msgspec.msgpack.encode({"a": "long enough"})
    assert pressed(state) == state == unpressed(state)


# --- long messages --------------------------------------------------------------------------


@pytest.fixture
def posts(monkeypatch):
    monkeypatch.setattr(cell_post, "PART_BYTES", 10)
    return Post("a", 1), Post("b", 1)


def test_a_long_message_comes_whole_with_few_parts_under_way(posts):
    a, b = posts
    data = bytes(range(97))
    under_way, came, most = a.send("b", data), [], 0
    while under_way:
        most = max(most, len(under_way))
        whole, taken = b.came(under_way.pop(0))
        came += [whole] if whole is not None else []
        under_way += a.taken(taken)
    assert came == [data]
    assert most <= cell_post.WINDOW


def test_a_short_message_passes_a_long_one_and_a_second_long_one_waits(posts):
    a, b = posts
    first = a.send("b", b"1" * 25)
    assert a.send("b", b"2" * 25) == []
    (short,) = a.send("b", b"short")
    assert b.came(short) == (b"short", None)
    found = []
    while first:
        whole, taken = b.came(first.pop(0))
        found += [whole] if whole is not None else []
        first += a.taken(taken)
    assert found == [b"1" * 25, b"2" * 25]


def test_a_message_of_which_a_part_is_lost_is_not_given_out(posts):
    a, b = posts
    parts = a.send("b", b"x" * 35)
    assert b.came(parts[0])[1] is not None
    assert b.came(parts[2]) == (None, None)
    a.lost_way("b")
    b.lost_way("a")
    assert b.came(parts[1]) == (None, None)


# --- neighbours that come and go ------------------------------------------------------------


def test_a_neighbour_more_is_told_all_and_the_others_hear_only_what_it_wants():
    router = GrowingRouter(("n", "m"))
    temp = Advertisement("s1", ("Temp",), None, None)
    router.advertised("n", temp)
    want = Operator("w", (Key("t", "Temp"),), correlated=False)
    sent = router.neighbour_added("c")
    assert [(one.to, one.message) for one in sent] == [("c", Advertise(temp))]
    sent = router.operator_added("c", want)
    assert [(one.to, type(one.message)) for one in sent] == [("n", Want)]
    sent = router.neighbour_removed("c")
    assert [(one.to, type(one.message)) for one in sent] == [("n", Unwant)]
    assert router.neighbours == ["n", "m"]
    assert router.operators(LOCAL) == []
    sent = router.withdrawn("n", "s1")
    assert [(one.to, type(one.message)) for one in sent] == [("m", Withdraw)]
