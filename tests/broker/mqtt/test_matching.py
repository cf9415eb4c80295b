"""The trees, the plain comparison and the router's memory against the slow oracle of `matching`."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import ProtocolError
from broker.mqtt.codec.topics import FilterTree, TopicTree, check_filter, check_topic, matches
from tests.broker.mqtt.matching import filter_matches
from tests.broker.mqtt.world import World

LEVELS = ["", "a", "b", "ab", "$a", "$SYS", "ü", " ", "A"]


def some_topics(chance, count):
    found = {"/".join(chance.choices(LEVELS, k=chance.randint(1, 5))) for _ in range(count)}
    return sorted(found - {""})


def some_filters(chance, count):
    found = set()
    for _ in range(count):
        levels = chance.choices([*LEVELS, "+", "+", "+"], k=chance.randint(1, 5))
        found.add("/".join([*levels, *chance.choice([[], [], ["#"]])]))
    return sorted((found | {"#", "+", "+/#"}) - {""})


@pytest.mark.parametrize("seed", range(5))
def test_many_filters_and_topics_find_each_other_while_they_come_and_go(seed):
    chance = random.Random(seed)
    topics, filters = some_topics(chance, 150), some_filters(chance, 150)
    by_filter, by_topic = FilterTree(), TopicTree()
    live_filters, live_topics = {}, {}
    found = 0
    for step in range(400):
        topic, topic_filter = chance.choice(topics), chance.choice(filters)
        key = chance.randrange(3)
        if chance.random() < 0.6:
            assert by_filter.put(topic_filter, key, step) == (
                (topic_filter, key) not in live_filters
            )
            live_filters[topic_filter, key] = step
            assert by_topic.put(topic, step) == live_topics.get(topic)
            live_topics[topic] = step
        else:
            there = live_filters.pop((topic_filter, key), None) is not None
            assert by_filter.remove(topic_filter, key) == there
            assert by_topic.remove(topic) == live_topics.pop(topic, None)
        topic, topic_filter = chance.choice(topics), chance.choice(filters)
        keys = [(k, v) for (f, k), v in live_filters.items() if filter_matches(f, topic)]
        assert sorted(by_filter.match(topic)) == sorted(keys)
        names = [(t, v) for t, v in live_topics.items() if filter_matches(topic_filter, t)]
        assert sorted(by_topic.match(topic_filter)) == sorted(names)
        found += bool(keys) + bool(names)
    assert found > 0.3 * 2 * 400
    assert (by_filter.size, by_topic.size) == (len(live_filters), len(live_topics))


def test_every_pair_of_short_filters_and_topics_is_decided_alike():
    """Exhaustively: up to three levels out of an empty, a plain and a `$` one."""
    levels = ["", "a", "$a"]
    topics = [f"{x}" for x in levels]
    topics += [f"{t}/{x}" for t in topics for x in levels]
    topics += [f"{t}/{x}" for t in topics if "/" in t for x in levels]
    wild = [*levels, "+"]
    heads = list(wild)
    heads += [f"{t}/{x}" for t in heads for x in wild]
    filters = [*heads, "#", *(f"{t}/#" for t in heads)]
    pairs = [(f, t) for f in filters for t in topics if f and t]
    assert len(pairs) > 1000
    for topic_filter, topic in pairs:
        expected = filter_matches(topic_filter, topic)
        tree, names = FilterTree(), TopicTree()
        tree.put(topic_filter, 1, 1)
        names.put(topic, 1)
        assert bool(tree.match(topic)) == expected, (topic_filter, topic)
        assert bool(list(names.match(topic_filter))) == expected, (topic_filter, topic)
        assert matches(topic_filter, topic) == expected, (topic_filter, topic)


@pytest.mark.parametrize("seed", range(3))
def test_the_router_remembers_ways_only_as_long_as_they_hold(seed):
    """Few topics are published to over and over while subscriptions change in between."""
    chance = random.Random(seed)
    topics = [topic for topic in some_topics(chance, 40) if topic[0] != "$"][:12]
    filters = some_filters(chance, 40)
    world = World(limits={"topics_cached_max": 5})
    clients = {name: world.client(p.V311, name) for name in ("a", "b", "c")}
    wanted = {name: set() for name in clients}
    delivered = 0
    for _ in range(300):
        name, topic_filter = chance.choice(sorted(clients)), chance.choice(filters)
        if chance.random() < 0.5:
            clients[name].subscribe(topic_filter)
            wanted[name].add(topic_filter)
        else:
            clients[name].send(p.Unsubscribe(1, (topic_filter,)))
            wanted[name].discard(topic_filter)
        for topic in chance.choices(topics, k=4):
            world.publish(topic, b"x")
            for other, client in clients.items():
                hears = any(filter_matches(item, topic) for item in wanted[other])
                assert client.publishes() == [(topic, b"x")] * hears
                delivered += hears
    assert delivered > 100


texts = st.text(st.sampled_from("a/+#$ü"), max_size=8)


@given(texts)
def test_a_name_is_taken_exactly_where_the_standard_allows_it(name):
    """Section 4.7.1: no wildcard in a name, in a filter only as a whole level, `#` only last."""
    levels = name.split("/")
    as_topic = bool(name) and not set(name) & set("+#")
    as_filter = bool(name) and all(
        (level == "#" and number == len(levels) - 1) or level == "+" or not set(level) & set("+#")
        for number, level in enumerate(levels)
    )
    for check, allowed in ((check_topic, as_topic), (check_filter, as_filter)):
        try:
            check(name, 64)
        except ProtocolError:
            assert not allowed
        else:
            assert allowed
