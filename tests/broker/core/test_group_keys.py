"""Keys of groups that are equal and differ in form are shown alike, in whatever order they come."""

import itertools

import pytest

import headwater
from broker.core import topics
from broker.engine.event.group_keys import form_of
from broker.mqtt.codec.topics import check_topic
from tests.oracles import spec as s
from tests.oracles.matcher import run

DECLARED = "event P(k: int)\nevent Q(k: float)\n"
PAIR = DECLARED + "subscription S from me to x of group.k detect {} {} group by k\n"
VALUES = "assign k = group.k"
P = {"type": "P", "id": "p", "source": "a", "timestamp": 1_000, "k": 1}
Q = {"type": "Q", "id": "q", "source": "a", "timestamp": 2_000, "k": 1.0}
ZEROS = [
    {"type": "Q", "id": "q", "source": "a", "timestamp": 1_000, "k": -0.0},
    {"type": "Q", "id": "r", "source": "a", "timestamp": 1_500, "k": 0.0},
]
PATTERNS = {
    "a pair": "P and Q",
    "in order": "P then[recent] Q",
    "stages": "P then[first] Q",
    "a list": "P then Q+ as l within 9 s",
    "without": "P without[500 ms] Q as z",
    "absent": "(P as p then absent Q(k < 0) for 1 s)",
    "taken in order": "(P and last Q within 9 s)",
}


def results(text, events, batches):
    """What is reported of events that come in the given batches."""
    engine = headwater.Engine(text, lateness_ms=9_000)
    found = [one for batch in batches for one in engine.push([events[at] for at in batch])]
    return [*found, *engine.finish()]


def told(result):
    return repr((result["actor"], result["group"], result["values"], result["id"]))


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_number_that_some_type_has_as_a_float_is_one(pattern):
    text = PAIR.format(pattern, "" if "+" in pattern else VALUES)
    ways = [[[0, 1]], [[1, 0]], [[0], [1]], [[1], [0]]]
    found = [results(text, [P, Q], way) for way in ways]
    assert len({repr([told(one) for one in each]) for each in found}) == 1
    for one in found[0]:
        assert repr(one["actor"]) == "'x/1.0'"
        assert repr(one["group"]) == "{'k': 1.0}"
        assert "+" in pattern or repr(one["values"]) == "{'k': 1.0}"
    assert found[0]


@pytest.mark.parametrize("pattern", ["Q", "Q as x then Q as y", "Q{2} as r"])
def test_a_zero_has_no_sign(pattern):
    text = PAIR.format(pattern, VALUES)
    for events in itertools.permutations(ZEROS):
        found = results(text, list(events), [[0, 1]])
        assert found
        assert {told(one).split(", 'id")[0].count("-0.0") for one in found} == {0}
        assert {one["actor"] for one in found} == {"x/0.0"}


def test_integers_stay_integers():
    text = PAIR.format("P as a then P as b", "")
    (one,) = results(text, [P, {**P, "id": "o", "timestamp": 2_000}], [[0, 1]])
    assert (one["actor"], repr(one["group"])) == ("x/1", "{'k': 1}")


def test_a_definition_is_given_the_same_key():
    text = (
        f"{DECLARED}define D(k) detect P and Q assign k = group.k group by k\n"
        "subscription S from me to x detect D\n"
    )
    for way in ([[0, 1]], [[1, 0]], [[0], [1]], [[1], [0]]):
        (one,) = results(text, [P, Q], way)
        assert repr(one["values"]) == "{'D': {'k': 1.0}}"


@pytest.mark.parametrize("window", ["every 5 s", "range 5 s", "session 5 s", "every 2 s range 5 s"])
def test_windows_show_it_too(window):
    text = (
        f"{DECLARED}define D(k, n) aggr {window} detect outer P and outer Q\n"
        "assign k = group.k, n = Count(P) + Count(Q) group by k\n"
        "subscription S from me to x of group.k detect D group by k\n"
    )
    for way in ([[0, 1]], [[1, 0]]):
        found = results(text, [P, Q], way)
        assert found
        assert {one["actor"] for one in found} == {"x/1.0"}


def test_a_column_of_a_table_declares_its_type():
    text = (
        f"{DECLARED}table T from 't.csv' key k\ntable U from 'u.csv' key k\n"
        "define A(k) detect P assign k = T[P.k].v\n"
        "define B(k) detect Q assign k = U[Q.k].v\n"
        "subscription S from me to x of group.k detect A and B group by k\n"
    ).replace("'", '"')
    tables = {"t.csv": "k,v\n1,1\n", "u.csv": "k,v\n1,1.0\n"}
    for events in itertools.permutations((P, Q)):
        engine = headwater.Engine(text, 9_000, tables=tables)
        (one,) = [*engine.push(events), *engine.finish()]
        assert one["actor"] == "x/1.0"
        assert repr(one["group"]) == "{'k': 1.0}"


def test_what_nothing_declares_is_an_integer_where_it_is_whole():
    form = form_of({"any", "int"})
    given = [1, 1.0, -0.0, 1.5, 2.0**60, 2**60, 2**60 + 1, "1", True]
    shown = [1, 1, 0, 1.5, 2.0**60, 2.0**60, 2**60 + 1, "1", True]
    assert repr([form(value) for value in given]) == repr(shown)


def test_an_integer_that_equals_no_float_stays_one():
    great = 2**53 + 1
    found = results(PAIR.format("P or Q", ""), [{**P, "k": great}, {**Q, "k": 2.0**53}], [[0, 1]])
    assert [repr(one["group"]["k"]) for one in found] == [str(great), repr(2.0**53)]


def test_the_reference_shows_a_float():
    types = (s.EventType("P", (("k", "int"),)), s.EventType("Q", (("k", "float"),)))
    pair = s.Pair("and", s.Atom("P"), s.Atom("Q"))
    case = s.Case(pair, group_by=("k",))
    asked = s.Subscription("S", case, actor="x", actor_of="k")
    (one,) = run(s.Spec(types, (asked,)), [P, Q])
    assert (one["actor"], repr(one["group"])) == ("x/1.0", "{'k': 1.0}")


KEYS = {  # of each type: keys, the actors' last names, and how these stand in topics
    "bool": [(True, "true", "true"), (False, "false", "false")],
    "bytes": [("AQI+", "AQI+", "AQI%2B")],
    "int": [(-7, "-7", "-7")],
    "float": [(0.5, "0.5", "0.5")],
    "text": [
        ("hall", "hall", "hall"),
        ("a/b", "a/b", "a/b"),
        ("+", "+", "%2B"),
        ("#", "#", "%23"),
        ("%23", "%23", "%2523"),
        ("", "", ""),
        ("a\0b", "a\0b", "a%00b"),
    ],
}


@pytest.mark.parametrize("kind", KEYS)
def test_an_actor_is_named_by_any_key_and_has_a_topic_of_its_own(kind):
    text = f"event P(k: {kind})\nsubscription S from me to x of group.k detect P group by k\n"
    events = [{**P, "id": f"p{at}", "k": key} for at, (key, _, _) in enumerate(KEYS[kind])]
    actors = {one["id"]: one["actor"] for one in results(text, events, [range(len(events))])}
    assert sorted(actors.values()) == sorted(f"x/{name}" for _, name, _ in KEYS[kind])
    for _, name, told in KEYS[kind]:
        topic = topics.actor(f"x/{name}")
        assert topic == f"actors/x/{told}"
        check_topic(topic, 9)


def test_the_reference_names_it_so_too():
    case = s.Case(s.Atom("P"), group_by=("k",))
    asked = s.Subscription("S", case, actor="x", actor_of="k")
    spec = s.Spec((s.EventType("P", (("k", "bool"),)),), (asked,))
    (one,) = run(spec, [{**P, "k": True}])
    assert one["actor"] == "x/true"
