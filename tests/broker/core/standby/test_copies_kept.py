"""What a neighbour says of itself cannot hurt the broker that keeps its copy."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from broker.core.catalogue import Installed
from broker.core.standby.copies_kept import CopiesKept
from broker.core.standby.home_copy import (
    GivenState,
    HomeState,
    InstalledRow,
    ListingChanged,
    TextRow,
    encoded,
)
from broker.network.delivery.messages import HomeChanged, HomeEntrusted
from broker.network.placement.book import CellBook

ROW = InstalledRow(1, Installed("anna", "Warm", 1, "log", "task", "anna", (), "d", 1_000))
STATE = encoded(HomeState([], [ROW], CellBook("h").state(), 0, [], GivenState()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TAGS = ("listed", "copies_made", "given", "results_given", "delivered", "cell_saved", "cell_moved")
LIKE_CHANGES = st.tuples(st.sampled_from(TAGS), st.lists(VALUES, max_size=8)).map(
    lambda drawn: msgspec.msgpack.encode([drawn[0], *drawn[1]])
)
BYTES = st.binary(max_size=60) | VALUES.map(msgspec.msgpack.encode)


def kept_of(state=STATE):
    kept = CopiesKept()
    kept.entrusted(HomeEntrusted("h", 5, 1, state))
    return kept


@st.composite
def bent(draw):
    """The state with one of its fields, or one byte, replaced."""
    if draw(st.booleans()):
        fields = msgspec.msgpack.decode(STATE)
        fields[draw(st.integers(0, len(fields) - 1))] = draw(VALUES)
        return msgspec.msgpack.encode(fields)
    at = draw(st.integers(0, len(STATE) - 1))
    return STATE[:at] + bytes([draw(st.integers(0, 255))]) + STATE[at + 1 :]


@given(bent() | BYTES.filter(bool))
def test_a_state_that_cannot_be_read_is_no_copy(state):
    kept = kept_of()
    kept.entrusted(HomeEntrusted("h", 6, 1, state))
    if "h" in kept.homes:
        assert kept.homes["h"].run == 6, "the one before is not taken for it"
        again = CopiesKept()
        again.entrusted(HomeEntrusted("h", 6, 1, kept.homes["h"].state()))
        assert again.homes["h"].state() == kept.homes["h"].state()
    else:
        assert (kept.reached("h").run, kept.reached("h").number) == (0, 0)


@given(st.lists(LIKE_CHANGES | BYTES, min_size=1, max_size=3))
def test_a_change_that_cannot_be_read_takes_the_copy_with_it(changes):
    """Half of it may have been taken in."""
    kept = kept_of()
    kept.changed(HomeChanged("h", 5, 2, tuple(changes)))
    if "h" in kept.homes:
        assert kept.homes["h"].number == 1 + len(changes), "all could be read"
    else:
        assert not kept.follows(HomeChanged("h", 5, 3, (b"",))), "the home hears that it is lacking"


def test_what_can_be_read_is_taken_in():
    other = InstalledRow(2, Installed("ben", "Cold", 2, "log", "task", "ben", (), "d", 1_000))
    change = ListingChanged([TextRow(2, b"text", b"ben", False, {}, {})], [other], [], [], [])
    kept = kept_of()
    kept.changed(HomeChanged("h", 5, 2, (encoded(change),)))
    assert list(kept.homes["h"].rows) == [("anna", "Warm"), ("ben", "Cold")]
