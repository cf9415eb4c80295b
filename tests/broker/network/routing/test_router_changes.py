"""Routers whose tree changes, whose neighbours forget, and what they tell each other."""

from collections import deque
from random import Random

import msgspec
import pytest

from broker.engine.event.event import MetricPosition
from broker.network.routing.advertisement import sources
from broker.network.routing.advertisement.messages import (
    LOCAL,
    Advertise,
    Results,
    Unwant,
    Want,
    Withdraw,
)
from broker.network.routing.advertisement.operator import (
    Advertisement,
    Bounds,
    Key,
    Operator,
    Range,
    Region,
)
from broker.network.routing.advertisement.sources import Directory, project
from broker.network.routing.router import Router
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import SimpleEvent, advertisement_of, operator_of
from tests.broker.network.routing.events import event
from tests.oracles import propagation as oracle
from tests.simulation.propagation.drawn import draw, draw_tree, write


class Net:
    """Routers joined by queues; nothing is counted."""

    def __init__(self, nodes, edges):
        self.near = neighbours(nodes, edges)
        self.routers = [Router(self.near[node]) for node in range(nodes)]
        self.got = {}
        self.queue = deque()

    def say(self, node, sends):
        self.queue.extend((node, send) for send in sends)

    def settle(self):
        while self.queue:
            node, (to, message) = self.queue.popleft()
            if to == LOCAL:
                assert isinstance(message, Results)
                for one, names in message.events:
                    for name in names:
                        assert one.id not in self.got.setdefault(name, set())
                        self.got[name].add(one.id)
                continue
            if isinstance(message, Advertise | Withdraw | Want | Unwant):
                packed = msgspec.msgpack.encode(message)
                assert msgspec.msgpack.decode(packed, type=type(message)) == message
            self.say(int(to), self.routers[int(to)].receive(str(node), message))


def neighbours(nodes, edges):
    return [
        sorted(str(b if a == node else a) for a, b in edges if node in (a, b))
        for node in range(nodes)
    ]


def new_tree(net, random, nodes):
    """Every broker learns of another tree; what was on its way in the old one is gone."""
    net.near = neighbours(nodes, draw_tree(random, nodes))
    for node, router in enumerate(net.routers):
        net.say(node, router.neighbours_changed(net.near[node]))
    net.settle()


def forgetful_link(net, random, nodes):
    """Both ends of a link forget what the other said."""
    node = random.randrange(nodes)
    other = int(random.choice(net.near[node]))
    for here, there in ((node, other), (other, node)):
        net.say(here, net.routers[here].neighbour_reset(str(there)))
    net.settle()


@pytest.mark.parametrize("change", [new_tree, forgetful_link])
@pytest.mark.parametrize("crowded", [False, True])
def test_nothing_is_lost_or_doubled_over_a_change(change, crowded, tmp_path):
    for seed in range(12):
        random = Random(seed)
        told, rows = draw(seed, crowded=crowded)
        scenario = read_scenario(write(tmp_path, told, rows))
        net = Net(scenario.nodes, scenario.edges)
        for sensor in scenario.sensors.values():
            net.say(
                sensor.node, net.routers[sensor.node].advertised(LOCAL, advertisement_of(sensor))
            )
        net.settle()
        for one in scenario.subscriptions.values():
            operator = operator_of(one, scenario.sensors, None)
            net.say(one.node, net.routers[one.node].operator_added(LOCAL, operator))
        net.settle()
        changes = set(random.sample(range(len(rows)), min(3, len(rows))))
        for place, reading in enumerate(scenario.readings):
            if place in changes:
                change(net, random, scenario.nodes)
            sensor = scenario.sensors[reading.sensor]
            at = reading.t * 1000
            where = MetricPosition(*sensor.loc)
            one = SimpleEvent(reading.id, sensor.attr, sensor.id, where, at, at, reading.v)
            net.say(sensor.node, net.routers[sensor.node].events(LOCAL, [one]))
            net.settle()
        wanted = {name: some for name, some in oracle.delivered(told, rows).items() if some}
        assert net.got == wanted, seed


def test_what_is_not_remembered_of_sources_is_looked_up_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CACHE_MAX", 2)
    test_nothing_is_lost_or_doubled_over_a_change(new_tree, False, tmp_path)


def test_the_first_promise_of_bounds_counts_for_what_was_asked_before():
    router = Router(["west", "east"])
    router.advertised("west", Advertisement("a", ("A",)))
    assert asked_for(router.operator_added(LOCAL, simple("low", 0, 1))) == [("west", "Want", "low")]
    bounded = Advertisement("a", ("A",), domain=(Bounds("x", 5.0, 9.0),))
    assert asked_for(router.advertised("west", bounded)) == [("west", "Unwant", "low")]
    further = Advertisement("b", ("A",), domain=(Bounds("x", 0.5, 9.0),))
    assert asked_for(router.advertised("east", further)) == [("east", "Want", "low")]
    assert asked_for(router.withdrawn("east", "b")) == [("east", "Unwant", "low")]


def simple(name, low, high, kind="A"):
    return Operator(name, (Key("k", kind, ranges=(Range("x", low, high),)),))


def sent(router, neighbour):
    """What a neighbour is asked for, without what others cover."""
    return [operator for operator, covered_by in router.asked(neighbour) if not covered_by]


def asked_for(sends):
    return [
        (send.to, type(send.message).__name__, getattr(send.message, "id", "") or
         send.message.operator.id)
        for send in sends
        if isinstance(send.message, Want | Unwant)
    ]  # fmt: skip


@pytest.fixture
def router():
    """One with a source of A in the west, and those who ask in the east."""
    made = Router(["west", "east"])
    made.advertised("west", Advertisement("a", ("A",)))
    return made


def test_what_a_coverer_leaves_bare_is_asked_for_before_it_is_taken_back(router):
    assert asked_for(router.operator_added("east", simple("wide", 0, 9))) == [
        ("west", "Want", "wide")
    ]
    assert router.operator_added("east", simple("left", 0, 4)) == []
    assert router.operator_added(LOCAL, simple("right", 5, 9)) == []
    assert asked_for(router.operator_removed("east", "wide")) == [
        ("west", "Want", "left"),
        ("west", "Want", "right"),
        ("west", "Unwant", "wide"),
    ]
    assert [one.id for one in sent(router, "west")] == ["left", "right"]
    assert asked_for(router.operator_removed("east", "left")) == [("west", "Unwant", "left")]
    assert router.operator_removed("east", "left") == []


def test_an_operator_in_the_place_of_another_is_asked_for_once(router):
    router.operator_added("east", simple("one", 0, 4))
    assert router.operator_added("east", simple("one", 0, 4)) == []
    assert asked_for(router.operator_added("east", simple("one", 0, 6))) == [
        ("west", "Want", "one")
    ]
    assert [key.ranges[0].high for one in sent(router, "west") for key in one.keys] == [6]
    router.operator_added("east", simple("all", 0, 9))
    # What it asks for now is covered, so it goes without another in its place.
    assert asked_for(router.operator_added("east", simple("one", 1, 6))) == [
        ("west", "Unwant", "one")
    ]


def test_a_subscription_waits_for_its_last_source_and_rests_without_it(router):
    keys = (Key("a", "A"), Key("b", "B"))
    assert router.operator_added(LOCAL, Operator("both", keys, 1000)) == []
    said = router.advertised("east", Advertisement("b", ("B",)))
    assert asked_for(said) == [("west", "Want", "both"), ("east", "Want", "both")]
    assert said[0] == ("west", Advertise(Advertisement("b", ("B",))))
    assert router.advertised("east", Advertisement("b", ("B",))) == []
    # A second source elsewhere makes the key optional: alone it is asked for all the same.
    assert asked_for(router.advertised("west", Advertisement("b2", ("B",)))) == [
        ("west", "Want", "both")
    ]
    (west,) = sent(router, "west")
    assert [(key.name, key.optional) for key in west.keys] == [("a", False), ("b", True)]
    assert asked_for(router.withdrawn("west", "b2")) == [("west", "Want", "both")]
    assert asked_for(router.withdrawn("east", "b")) == [
        ("west", "Unwant", "both"),
        ("east", "Unwant", "both"),
    ]
    assert router.withdrawn("east", "b") == []


def test_what_is_held_goes_to_who_asks_later(router):
    one = event("e", "A", 5, x=3)
    assert router.events("west", [one]) == []
    (send,) = router.operator_added("east", simple("late", 0, 9))[:1]
    assert (send.to, send.message.events) == ("east", [one])
    router.expire(6)
    assert len(router.releases) == 0
    assert asked_for(router.operator_added(LOCAL, simple("later", 0, 9))) == []


def test_keys_with_conditions_of_their_own_are_asked_and_cover_nothing():
    router = Router(
        ["west", "east"], compile_condition=lambda text: lambda one: one.a_x > int(text)
    )
    router.advertised("west", Advertisement("a", ("A",)))
    vague = Operator("vague", (Key("k", "A", condition="5"),))
    assert asked_for(router.operator_added("east", vague)) == [("west", "Want", "vague")]
    assert asked_for(router.operator_added("east", Operator("all", (Key("k", "A"),)))) == [
        ("west", "Want", "all")
    ]
    assert router.operator_added("east", Operator("other", (Key("k", "A", condition="7"),))) == []
    router.operator_removed("east", "all")
    low, high = event("low", "A", 1, x=5), event("high", "A", 2, x=6)
    (send,) = router.events("west", [low, high])
    assert send.message.events == [high]


def test_unbounded_attributes_are_not_covered_by_all_their_values(router):
    """An event may lack the attribute: then only who does not ask for it wants it."""
    router.operator_added("east", simple("low", None, 5))
    router.operator_added("east", simple("high", 5, None))
    assert router.operator_added("east", simple("some", 0, 9)) == []
    anything = Operator("any", (Key("k", "A"),))
    assert asked_for(router.operator_added("east", anything)) == [("west", "Want", "any")]
    ((_, message),) = router.events("west", [event("e", "A", 1, x=None)])
    assert [one.id for one in message.events] == ["e"]


@pytest.mark.parametrize(
    ("advertisement", "served"),
    [
        (Advertisement("s", ("A",)), True),
        (Advertisement("s", ()), True),
        (Advertisement("s", ("B",)), False),
        (Advertisement("t", ("A",)), False),
        (Advertisement("s", ("A",), "house/hall/door"), True),
        (Advertisement("s", ("A",), "house"), True),
        (Advertisement("s", ("A",), "house/attic"), False),
        (Advertisement("s", ("A",), None, MetricPosition(1.0, 1.0)), True),
        (Advertisement("s", ("A",), None, MetricPosition(3.0, 1.0)), False),
        (Advertisement("s", ("A",), domain=(Bounds("x", 5.0, 9.0),)), True),
        (Advertisement("s", ("A",), domain=(Bounds("x", 5.5, 9.0),)), False),
        (Advertisement("s", ("A",), domain=(Bounds("x", -3.0, 2.0),)), False),
        (Advertisement("s", ("A",), domain=(Bounds("y", -3.0, 2.0),)), True),
    ],
)
def test_a_source_serves_a_key_unless_it_says_otherwise(advertisement, served):
    key = Key(
        "k",
        "A",
        source="s",
        location="house/hall",
        region=Region("box", (0.0, 0.0, 2.0, 2.0), metric=True),
        ranges=(Range("x", 2.0, 5.0, low_open=True),),
    )
    directory = Directory([LOCAL, "west"])
    directory.put("west", advertisement)
    assert directory.where(key) == (("west",) if served else ())
    assert (project(Operator("o", (key,)), "west", directory) is not None) == served
