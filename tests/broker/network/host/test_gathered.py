"""What a header remembers of panes that are not complete, and whom it doubts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.intake import Intake, IntakeOptions
from broker.network.host.gathered import RAW_PANES, Gathered, maker_of, origin_of
from language import EventType

A, B = maker_of("a", 1), maker_of("b 2", 7)


def sources(*names, pane=5):
    return {pane: {name.encode() for name in names}}


@pytest.fixture
def gathered():
    """With rows of one maker for a pane."""
    one = Gathered(100)
    one.take(A, 10, sources("x", "y"), raw=False)
    return one


def test_a_maker_is_an_origin_in_one_life():
    assert origin_of(B) == ("b 2", 7)


@pytest.mark.parametrize(
    ("said", "raw", "doubted"),
    [
        (sources("z"), False, []),
        (sources("x", pane=6), False, []),
        (sources("x"), False, [A, B]),
        (sources("x"), True, [A]),
    ],
)
def test_rows_of_one_source_from_two_makers_are_doubted(gathered, said, raw, doubted):
    assert gathered.sharing(B, said, raw=raw) == doubted
    assert gathered.sharing(A, said, raw=raw) == []


def test_rows_that_come_behind_events_of_their_source_are_doubted_alone():
    one = Gathered(100)
    one.take(A, 10, sources("x"), raw=True)
    assert one.sharing(B, sources("x"), raw=False) == [B]
    assert one.sharing(B, sources("x"), raw=True) == []


def test_what_is_doubted_begins_behind_the_first_of_it(gathered):
    gathered.take(A, 14, sources("x", pane=6), raw=False)
    assert gathered.safe(A, 20) == 10
    gathered.complete(6)
    assert gathered.safe(A, 20) == 14
    gathered.doubt(A, 20)
    assert (gathered.doubted, gathered.raw) == ({A: 14}, {A: 0})
    assert gathered.held() == {A: 14}
    gathered.drop(A)
    assert (gathered.doubted, gathered.safe(A, 20)) == ({}, 20)


def test_who_shares_nothing_for_some_panes_need_not_send_events(gathered):
    gathered.doubt(A, 20)
    gathered.drop(A)
    for pane in range(5, 5 + RAW_PANES):
        gathered.take(A, pane, sources("x", pane=pane), raw=True)
        gathered.take(B, pane, sources("x" if pane == 5 else "z", pane=pane), raw=True)
    assert gathered.complete(5 + RAW_PANES) == []
    gathered.take(A, 90, sources("x", pane=90), raw=True)
    assert gathered.complete(91) == [A]
    assert gathered.raw == {}


def test_whose_sources_cannot_be_remembered_could_have_any():
    one = Gathered(100, sources_max=2)
    one.take(A, 10, sources("x", "y"), raw=False)
    assert one.sharing(B, sources("z"), raw=False) == []
    one.take(A, 12, sources("v", pane=6), raw=False)
    assert one.sharing(B, sources("z"), raw=False) == [A, B]
    assert one.sharing(B, sources("z", pane=6), raw=True) == [A]
    one.drop(A)
    assert one.sharing(B, sources("z"), raw=False) == []
    one.take(A, 13, sources("z"), raw=True)
    one.take(A, 13, sources("x", "y", pane=6), raw=True)  # too many again
    assert one.sharing(B, sources("q"), raw=True) == []  # events fall by their ids
    assert one.sharing(B, sources("q"), raw=False) == [B]


@pytest.mark.parametrize("doubts_first", [False, True])
def test_a_maker_that_lives_on_has_sent_what_it_had_and_can_be_asked_again(gathered, doubts_first):
    """A broker that restarts and reaches nobody begins a life that shares all of the one before."""
    later = maker_of("a", 2)
    if doubts_first:
        gathered.doubt(A, 20)
    gathered.rename(A, later)
    assert gathered.sharing(later, sources("x"), raw=False) == []  # it is with itself alone
    assert gathered.sharing(B, sources("x"), raw=False) == [later, B]
    gathered.doubt(later, 20)
    assert gathered.doubted == {later: 10}
    assert gathered.forget(later)


def test_its_state_goes_through_bytes(gathered):
    gathered.take(B, 3, sources("z", pane=8), raw=True)
    gathered.doubt(A, 20)
    intake = Intake(IntakeOptions(lateness_ms=None))
    intake.declare(EventType("T", {"val": "float"}))
    events = intake.from_mappings([{"type": "T", "id": "e", "timestamp": 3, "val": 1.0}]).events
    assert gathered.repeats.admit(events) == (events, [])
    gathered.complete(2)
    other = Gathered(100)
    other.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(gathered.state())))
    assert other.state() == gathered.state()
    assert other.sharing(B, sources("x"), raw=True) == [A]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=3),
            st.integers(0, 2),
        ),
        max_size=25,
    ),
    st.integers(1, 12),
)
def test_of_what_is_merged_no_source_is_in_rows_of_one_and_with_another(said, sources_max):
    """As a header does: what is doubted is taken back, and sent again as events."""
    gathered = Gathered(100, sources_max)
    rows: dict[tuple[str, int], set[str]] = {}
    events: dict[tuple[str, int], set[str]] = {}
    raw = set()
    for maker, names, pane in said:
        again = [(maker, names, pane)]
        while again:
            who, some, where = again.pop(0)
            doubted = gathered.sharing(who, sources(*some, pane=where), raw=who in raw)
            for one in doubted:
                raw.add(one)
                gathered.drop(one)
                gone = [key for key in rows if key[0] == one]
                again += [(one, sorted(rows.pop(key)), key[1]) for key in gone]
            if who in doubted:
                again.append((who, some, where))
                continue
            gathered.take(who, 0, sources(*some, pane=where), raw=who in raw)
            (events if who in raw else rows).setdefault((who, where), set()).update(some)
    for (who, pane), own in rows.items():
        for other, at in [*rows, *events]:
            if other != who and at == pane:
                theirs = rows.get((other, at), set()) | events.get((other, at), set())
                assert not own & theirs
    told = {(who, pane) for who, _, pane in said}
    assert told == {*rows, *events}
