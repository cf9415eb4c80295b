"""How names stand in topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core import topics
from broker.mqtt.codec.topics import check_topic

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(NAMES, NAMES)
def test_two_names_come_back_as_they_were(first, second):
    address = topics.read(f"events/{topics.level(first)}/{topics.last(second)}")
    if second.startswith("/"):
        assert address is None or address.names == (first, second)
    else:
        assert address == topics.Address("events", (first, second))


@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
def test_two_subscriptions_never_share_a_topic(one, other):
    assert (topics.result(*one) == topics.result(*other)) == (one == other)


@given(NAMES, NAMES)
def test_every_topic_is_one_for_mqtt(first, second):
    for topic in (topics.result(first, second), topics.actor(first)):
        check_topic(f"headwater/{topic}", 64)
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in topic)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("events/Temp/t1", ("events", ("Temp", "t1"))),
        ("events/Temp/floor-1/t1", ("events", ("Temp", "floor-1/t1"))),
        ("events/Temp/50%25", ("events", ("Temp", "50%"))),
        ("events/Temp/50%", ("events", ("Temp", "50%"))),
        ("events/Temp/%FF", ("events", ("Temp", "%FF"))),
        ("sources/a/b", ("sources", ("a/b",))),
        ("submit/team%2Fa/7", ("submit", ("team/a", "7"))),
        ("cancel/me/1", ("cancel", ("me", "1"))),
        ("events/Temp", None),
        ("events/Temp/", None),
        ("events//t1", None),
        ("events", None),
        ("sources", None),
        ("sources/", None),
        ("submit/me", None),
        ("results/a/b", None),
        ("reply/me/1", None),
        ("status/x", None),
        ("", None),
    ],
)
def test_topics_of_clients_are_read(topic, expected):
    assert topics.read(topic) == (None if expected is None else topics.Address(*expected))


def test_topics_are_written_as_the_formats_say():
    assert topics.result("station-team", "Frost") == "results/station-team/Frost"
    assert topics.result("team/a", "pass/frost") == "results/team%2Fa/pass/frost"
    assert topics.actor("AirFlow/room-3") == "actors/AirFlow/room-3"
    assert topics.actor("a+b#") == "actors/a%2Bb%23"
    assert topics.late("Temp") == "late/Temp"
    assert topics.status("site-1") == "status/site-1"
    assert topics.reply("submit/me/1") == "reply/me/1"
