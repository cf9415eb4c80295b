"""First events of a type wait until others had time to ask for it, and keep their order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.core.messages import Payload
from broker.core.network import announcing
from broker.core.network.announcing import Announcing

WAIT_MS = 500


def payload(type_name, source, number=0):
    return Payload(type_name, source, str(number).encode())


def test_a_known_type_passes_and_a_new_one_waits_with_what_its_source_says_meanwhile():
    one = Announcing(WAIT_MS)
    known, new = payload("Temp", "a"), payload("Wind", "b")
    assert one.sift([known, new], {"Temp"}, 1_000) == ([known], {("b", "Wind"): None})
    assert one.due == 1_000 + WAIT_MS
    of_the_source, of_the_type = payload("Temp", "b"), payload("Wind", "c")
    # The core knows the type by now, as it was told.
    assert one.sift([of_the_source, of_the_type], {"Temp", "Wind"}, 1_200) == ([], {})
    assert one.due == 1_000 + WAIT_MS
    assert one.take() == (new, of_the_source, of_the_type)
    assert one.due is None
    assert one.sift([new], {"Temp", "Wind"}, 1_600) == ([new], {})


def test_what_was_advertised_just_before_is_as_new_but_told_already():
    one = Announcing(WAIT_MS)
    one.advertised(["Wind"], 1_000)
    first, later = payload("Wind", "a"), payload("Wind", "a", 1)
    assert one.sift([first, payload("Temp", "b")], {"Temp", "Wind"}, 1_100) == (
        [payload("Temp", "b")],
        {},
    )
    assert 1_000 + WAIT_MS <= one.due <= 1_100 + WAIT_MS
    assert one.sift([later], {"Temp", "Wind"}, 1_200) == ([], {})
    assert one.take() == (first, later)
    assert one.sift([later], {"Temp", "Wind"}, 1_600) == ([later], {})


def test_what_was_advertised_long_before_passes():
    one = Announcing(WAIT_MS)
    one.advertised(["Wind"], 1_000)
    assert one.sift([payload("Wind", "a")], {"Wind"}, 1_500) == ([payload("Wind", "a")], {})
    assert one.due is None


def test_one_new_type_after_another_does_not_make_the_first_wait_without_end():
    one = Announcing(WAIT_MS)
    for number in range(100):
        one.sift([payload(f"T{number}", "a")], (), 400 * number)
    assert one.due == announcing.ROUNDS_MAX * WAIT_MS


def test_no_more_wait_than_may(monkeypatch):
    monkeypatch.setattr(announcing, "PAYLOADS_MAX", 3)
    one = Announcing(WAIT_MS)
    one.sift([payload("A", "a", number) for number in range(2)], (), 0)
    assert not one.is_full
    one.sift([payload("A", "a", 2)], {"A"}, 0)
    assert one.is_full


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz")), max_size=30),
    st.sets(st.sampled_from("ABC")),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_nothing_is_lost_and_sources_and_new_types_keep_their_order(sent, known, cuts):
    one = Announcing(WAIT_MS)
    payloads = [payload(kind, source, number) for number, (kind, source) in enumerate(sent)]
    left, fresh = [], set("ABC") - known
    known = set(known)
    edges = [0, *sorted(cuts), len(payloads)]
    for begin, end in pairwise(edges):
        passed, new = one.sift(payloads[begin:end], frozenset(known), begin)
        known |= {kind for _, kind in new}
        left += passed
    left += one.take()
    assert sorted(left, key=payloads.index) == payloads
    for kind in fresh:
        assert [p for p in left if p.type_name == kind] == [
            p for p in payloads if p.type_name == kind
        ]
    for source in "xyz":
        assert [p for p in left if p.source == source] == [
            p for p in payloads if p.source == source
        ]
