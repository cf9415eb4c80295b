"""Filters of the rights file, compared with all topics of a small alphabet."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.rights.topics import covers, fault_of, filled, overlaps, part_below
from tests.broker.mqtt.matching import filter_matches

LEVELS = ("a", "b", "$s")
TOPICS = ["/".join(t) for n in (1, 2, 3) for t in itertools.product(LEVELS, repeat=n)]
FILTERS = st.lists(st.sampled_from(["a", "b", "$s", "+"]), min_size=1, max_size=3).flatmap(
    lambda levels: st.sampled_from(["/".join(levels), "/".join([*levels, "#"]), "#"])
)


@given(FILTERS, FILTERS)
def test_a_filter_is_weighed_as_the_set_of_its_topics(one, other):
    """Compared by trying topics over the filters' own alphabet, and one beyond it."""
    longer = [f"{topic}/z" for topic in TOPICS] + ["z", *TOPICS]
    these = {topic for topic in longer if filter_matches(one, topic)}
    those = {topic for topic in longer if filter_matches(other, topic)}
    assert overlaps(one.split("/"), other.split("/")) == bool(these & those)
    if covers(one.split("/"), other.split("/")):
        assert those <= these
    elif not other.startswith("$"):  # `$s/+` within `$s/#` and the like
        assert not those <= these or not those


@given(FILTERS)
def test_the_part_below_the_prefix_matches_what_the_filter_matches_there(wanted):
    """Otherwise `+/x` would reach around the rights below the prefix."""
    part = part_below(wanted.split("/"), ["a"])
    for topic in TOPICS:
        inside = filter_matches(wanted, f"a/{topic}")
        if not topic.startswith("$"):
            assert inside == (part is not None and filter_matches("/".join(part), topic))


@pytest.mark.parametrize("name", ["+", "#", "a/b", "a/#", "", None])
def test_a_name_cannot_choose_what_a_right_says(name):
    """A user called `#` must not become a wildcard, nor one with `/` two levels."""
    assert filled("dev/{user}", name, "c") is None
    assert filled("dev/{client}", "ann", name or "") is None
    assert filled("dev/{user}/{client}", "ann", "c1") == ["dev", "ann", "c1"]


def test_faulty_filters_are_found():
    assert [fault_of(good) for good in ("#", "a/+/b", "{user}/{client}/#", "/")] == [""] * 4
    for bad in ("", "a/#/b", "a+", "a/b#", "x{user}", "/".join("a" * 65)):
        assert fault_of(bad), bad
