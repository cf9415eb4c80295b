"""Trees of filters and topics find exactly what the standard says matches."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.mqtt.codec.topics import FilterTree, TopicTree, matches
from broker.mqtt.routing.router import Prefix

few = st.sampled_from(["a", "b", "", "$x", "c"])
names = st.lists(few, min_size=1, max_size=4).map("/".join).filter(bool)
filters = st.builds(
    lambda parts, more: "/".join([*parts, *more]),
    st.lists(st.one_of(few, st.just("+")), min_size=1, max_size=3),
    st.sampled_from([[], ["#"]]),
).filter(bool) | st.just("#")


def by_expression(topic_filter, topic):
    """The same by a regular expression: an independent reading of section 4.7."""
    if topic.startswith("$") and topic_filter[0] in "+#":
        return False
    if topic_filter == "#":
        return True
    beneath = topic_filter.endswith("/#")
    parts = (topic_filter[:-2] if beneath else topic_filter).split("/")
    pattern = "/".join("[^/]*" if part == "+" else re.escape(part) for part in parts)
    return re.fullmatch(pattern + ("(/.*)?" if beneath else ""), topic) is not None


@given(names, st.lists(filters, max_size=8))
def test_a_topic_finds_the_filters_that_match_it_each_once(topic, chosen):
    tree = FilterTree()
    for number, item in enumerate(chosen):
        tree.put(item, number, item)
    expected = sorted((n, item) for n, item in enumerate(chosen) if by_expression(item, topic))
    assert sorted(tree.match(topic)) == expected
    assert all(matches(item, topic) == by_expression(item, topic) for item in chosen)


@given(st.lists(names, max_size=8), filters)
def test_a_filter_finds_the_topics_that_it_matches_each_once(chosen, topic_filter):
    tree = TopicTree()
    for name in chosen:
        tree.put(name, name.upper())
    expected = sorted((n, n.upper()) for n in set(chosen) if by_expression(topic_filter, n))
    assert sorted(tree.match(topic_filter)) == expected
    assert tree.size == len(set(chosen))


@given(st.lists(st.tuples(filters, st.integers(0, 2)), max_size=10), st.data())
def test_removing_filters_leaves_the_others_and_in_the_end_an_empty_tree(chosen, data):
    tree = FilterTree()
    there = {}
    for item, key in chosen:
        assert tree.put(item, key, (item, key)) == ((item, key) not in there)
        there[(item, key)] = None
    for item, key in data.draw(st.permutations(list(there))):
        assert tree.remove(item, key)
        assert not tree.remove(item, key)
        del there[(item, key)]
        assert tree.size == len(there)
        for topic in ("a", "a/b", "$x/a", "b/c/a"):
            expected = [pair for pair in there if by_expression(pair[0], topic)]
            assert sorted(value for _, value in tree.match(topic)) == sorted(expected)
    assert not tree._root.children


@given(st.lists(names, unique=True, max_size=8))
def test_removing_topics_leaves_the_others_and_in_the_end_an_empty_tree(chosen):
    tree = TopicTree()
    for name in chosen:
        assert tree.put(name, 1) is None
        assert tree.put(name, 2) == 1
    for number, name in enumerate(chosen):
        assert tree.get(name) == 2
        assert tree.remove(name) == 2
        assert tree.remove(name) is None
        assert tree.get(name) is None
        assert tree.size == len(chosen) - number - 1
    assert not tree._root.children


@pytest.mark.parametrize(
    ("topic_filter", "topic", "match"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/#", "sport", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/monitor", False),
        ("+/monitor", "$SYS/monitor", False),
        ("$SYS/#", "$SYS/monitor", True),
        ("$SYS/+", "$SYS/monitor", True),
        ("Accounts", "accounts", False),
    ],
)
def test_the_examples_of_the_standard_hold(topic_filter, topic, match):
    """Section 4.7."""
    tree = FilterTree()
    tree.put(topic_filter, "c", 1)
    assert bool(tree.match(topic)) == matches(topic_filter, topic) == match


@pytest.mark.parametrize(
    ("topic", "held"),
    [("site/hw", True), ("site/hw/events/x", True), ("site/hwx", False), ("site", False)],
)
def test_a_prefix_holds_itself_and_what_is_beneath_by_level(topic, held):
    assert Prefix("site/hw").holds(topic) == held
    assert not Prefix().holds(topic)
