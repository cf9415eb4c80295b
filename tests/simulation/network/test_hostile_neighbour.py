"""Whatever a neighbour asks for, a broker goes on, and events come to whoever needs them."""

import pytest

from broker.engine.event.event import event_class
from broker.engine.ingest.event_bytes import packed
from broker.network.frames import frames, told
from broker.network.frames.messages import FramesReceived
from broker.network.operators.heard import CHARS_MAX, KEYS_MAX, heard, judge, keys_for
from broker.network.routing.advertisement.messages import Advertise, Unwant, Want, Withdraw
from broker.network.routing.advertisement.operator import (
    Advertisement,
    Bounds,
    Key,
    Operator,
    Range,
    Region,
)
from tests.simulation.network.town import Town

NAN, INF, LAST = float("nan"), float("inf"), 2**63 - 1
ROUTED = (Advertise, Unwant, Want, Withdraw)


def key(name="k", **said):
    return Key(name, "Alarm", **said)


CONDITIONS = {
    "no condition": "room >",
    "unclosed": "(((",
    "too long": "x" * 9_000,
    "nested": "(" * 4_000 + "room = 1" + ")" * 4_000,
    "negated": "not " * 2_000 + "room = 1",
    "a long sum": "room = " + "1+" * 4_000 + "1",
    "nested calls": "abs(" * 1_500 + "room" + ")" * 1_500 + " > 1",
    "a huge number": "room = " + "9" * 8_000,
    "beyond floats": "room = 1e999",
    "another item": "room = 1)\nsubscription d from d to d\ndetect c(room = 1",
    "an aggregate": "Count(room) > 1",
    "a table": "Tags[room].x = 1",
    "a set of the file": "room in Dock",
    "zero": "\0",
    "a constant": "1",
    "another type": "room * room > 5",
    "python": "__class__ = 1",
    "a circle of nothing": "position in circle(1, 2, 1e999)",
}
KEYS = {
    "a box of two numbers": {"region": Region("box", (1.0, 2.0))},
    "a polygon of none": {"region": Region("polygon", ())},
    "a circle at no place": {"region": Region("circle", (NAN, NAN, NAN))},
    "an endless box": {"region": Region("box", (-INF, -INF, INF, INF))},
    "a range that ends at no number": {"ranges": (Range("room", NAN, NAN),)},
    "a range of infinities": {"ranges": (Range("room", INF, -INF),)},
    "a range twice": {"ranges": (Range("room", 1.0, 2.0), Range("room", 3.0, 4.0))},
    "equal to no number": {"equals": (("room", NAN),)},
    "no name": {"ranges": (Range("", 1.0, 2.0),), "equals": (("", True),)},
    "no place": {"location": "///", "source": ""},
}
OPERATORS = {
    **{name: Operator("o", (key(condition=text),)) for name, text in CONDITIONS.items()},
    **{name: Operator("o", (key(**said),)) for name, said in KEYS.items()},
    "faulty beside another": Operator("o", (key(condition="(("), key("l")), 1_000),
    "no keys": Operator("o", ()),
    "keys of one name": Operator("o", (key(), key())),
    "many keys": Operator("o", tuple(key(str(n)) for n in range(KEYS_MAX + 1)), 10),
    "time that goes back": Operator("o", (key(), key("l")), -5),
    "no distance": Operator("o", (key(), key("l")), 10, NAN),
    "an endless distance": Operator("o", (key(), key("l")), 2**63, INF),
    "a main key that is not there": Operator("o", (key(), key("l")), 10, main="z"),
    "no type": Operator("o", (Key("k", ""),)),
}
ADVERTISEMENTS = [
    Advertisement("", ()),
    Advertisement("q", ("",)),
    Advertisement("q", ("Alarm",), "///", [NAN, NAN]),
    Advertisement("q", ("Alarm",), None, [1.0]),
    Advertisement("q", ("Alarm",), None, []),
    Advertisement("q", ("Alarm",), None, None, (Bounds("room", NAN, NAN), Bounds("", 5.0, 1.0))),
]


def event(said):
    """What an origin passes on: the claim is a lie, and the events are these bytes."""
    return told.Forwarded("b2", 0, 0, 5, [1], said, {})


NONE = packed([])
TEXT = {"Alarm": {"room": "text"}}
ODD = {"a b": {"x y": "int", "class": "text", "__class__": "int", "a=1\nimport os": "text"}}
FRAMES = [
    frames.Here("", ()),
    frames.Here("b0", ("Alarm",)),
    frames.Here("z", tuple(map(str, range(5_000)))),
    frames.Gone("b0"),
    frames.Reoffer("b2", "b1", 1, 0, None, {"X": {"room": "no kind"}}),
    frames.Reoffer("b2", "b1", 1, 0, None, {"": {"": ""}}),
    frames.Reoffer("b2", "b1", 1, 0, None, ODD),
    frames.Reoffer("b2", "b1", 1, 0, None, {"X": {"type": "text", "start": "bool"}}),
    frames.Reoffer("b2", "b1", 1, 0, None, {"X": {str(n): "int" for n in range(3_000)}}),
    frames.Reoffer("b2", "b1", -1, -5, -10, {"Alarm": {}}),
    frames.Reoffer("b2", "b1", 1, 0, None, TEXT, (Key("", "Alarm", condition="(("),)),
    frames.Reoffer("b0", "b1", 1, 0, None, {}),  # in another's name: it needs nothing any more
    frames.Reoffer("b1", "b1", 1, 0, None, TEXT),
    frames.Stored("b0", "b1", 0, LAST),
    frames.Passed(event(b"\xff")),
    frames.Passed(event(b"\x91\x80")),
    frames.Passed(event(NONE)),
    frames.Passed(told.Forwarded("b2", 0, -5, LAST, [], NONE, {"Alarm": LAST, "": None})),
    frames.Offered("b1", 1, told.Forwarded("b2", LAST, -5, LAST, [1], b"", {}, True), True, True),
    frames.Listening("b2", -5, ("Tablet/q",)),
    frames.Listening("b2", LAST, ("", "/", "a\0b"), -LAST),
    frames.Listening("b1", 0, ("x",)),
    frames.Copied("b2", "b1", -1, -1, -1, "", b""),
    frames.Copied("b2", "b1", 7, 0, 1, "gone", b"x", 0, (("b0", 1), ("nowhere", 5))),
    frames.CopiesTaken("b1", "b0", 0, LAST),
]


def lives_on(*said):
    """Have b2 say this to b1, between it and the home b0; whether all goes on, also later."""
    bodies = [frames.Routed(one) if isinstance(one, ROUTED) else one for one in said]
    town = Town(3, [("b0", "b1"), ("b1", "b2")])
    town.start({"alerts": "b0"})
    middle = town.sites["b1"]
    for body in bodies:
        seal = town.sites["b2"].process.network.sessions.seal("b1")
        data = frames.encoded(frames.Frame(*seal, body))
        middle.hear(FramesReceived("b2", (data,)))
    town.run(1_000)
    for name in ("b0", "b1", "b2"):
        town.alarm(name)
    town.run(3_000)
    town.links[0].cut(6_000, lost=True)  # another tree: all is said anew
    town.run(20_000)
    town.alarm("b1")
    town.alarm("b2")
    town.run(3_000)
    counts = middle.process.network.counts
    middle.end()  # and what it wrote down can be read again
    town.run(20_000)
    town.alarm("b1")
    town.run(3_000)
    assert len([one for one in town.found if one[1] == "Plain"]) == 6
    return counts


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_a_faulty_operator_takes_no_broker_down(operator):
    sound = Operator("o", (key(),))
    counts = lives_on(Want(operator), Want(sound), Want(operator))
    assert counts["frames_malformed"] == 0
    lives_on(Want(operator), Unwant("o"))


@pytest.mark.parametrize("advertisement", ADVERTISEMENTS, ids=repr)
def test_a_strange_advertisement_takes_no_broker_down(advertisement):
    lives_on(Advertise(advertisement))
    lives_on(Advertise(advertisement), Withdraw(advertisement.source))


@pytest.mark.parametrize(
    "body", FRAMES, ids=[f"{n}-{type(b).__name__}" for n, b in enumerate(FRAMES)]
)
def test_a_frame_that_says_what_cannot_be_takes_no_broker_down(body):
    lives_on(body, body)


def test_what_cannot_be_read_is_counted():
    assert lives_on(Want(OPERATORS["unclosed"]))["operators_unread"] == 1


@pytest.mark.parametrize("name", ["no condition", "a box of two numbers", "faulty beside another"])
def test_what_cannot_be_judged_asks_for_all_of_its_types(name):
    found = heard(OPERATORS[name])
    assert found.id == "o"
    assert found.keys == (Key("000000", "Alarm"),)
    assert not found.correlated


def test_what_can_be_judged_stays_as_it_is():
    keys = (
        key(condition="length(room) > 3"),
        key("l", ranges=(Range("room", 1.0, INF),), region=Region("circle", (1.0, 2.0, 3.0))),
        key("m", region=Region("polygon", (0.0, 0.0, 0.0, 1.0, 1.0, 1.0), metric=True)),
    )
    one = Operator("o", keys, 5_000, 10.0)
    assert heard(one) is one


# --- keys that come with a question -----------------------------------------------------------


def test_keys_are_said_once_and_a_type_without_one_is_wanted_whole():
    one = Operator("a", (key("x", source="s"), key("y", optional=True, source="s")))
    other = Operator("b", (Key("z", "Other"),))
    found = keys_for([one, other], ["Alarm", "Third"])
    assert found == (Key("", "Alarm", source="s"), Key("", "Third"))


def test_too_many_keys_or_too_long_ones_are_not_said():
    many = [Operator(str(n), (key(source=str(n)),)) for n in range(KEYS_MAX + 1)]
    assert keys_for(many, ["Alarm"]) is None
    assert len(keys_for(many[1:], ["Alarm"])) == KEYS_MAX
    long = Operator("o", (key(condition="x" * CHARS_MAX),))
    assert keys_for([long], ["Alarm"]) is None


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_no_key_makes_judging_fail(operator):
    wanted = judge(operator.keys)
    alarm = event_class("Alarm", {"room": "text"})
    for room in ("r0", None):
        assert wanted(alarm(id="1", source="s", start=1, end=1, a_room=room)) in {True, False}


def test_a_judge_takes_what_a_key_wants_or_nobody_speaks_of():
    alarm = event_class("Alarm", {"room": "text"})
    other = event_class("Other", {})
    wanted = judge((key(condition='room = "r0"'), key(source="t")))
    said = {"source": "s", "start": 1, "end": 1}
    assert wanted(alarm(id="1", a_room="r0", **said))
    assert not wanted(alarm(id="2", a_room="r1", **said))
    assert wanted(alarm(id="3", a_room="r1", **(said | {"source": "t"})))
    assert wanted(other(id="4", **said))
    assert judge(None)(alarm(id="5", a_room="r1", **said))
