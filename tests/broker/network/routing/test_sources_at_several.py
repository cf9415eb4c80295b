"""Sources of one name at several brokers: each router knows what is said of them beyond a link."""

from random import Random

import pytest

from broker.engine.event.event import MetricPosition
from broker.network.routing.advertisement.messages import LOCAL, Advertise, Withdraw
from broker.network.routing.advertisement.operator import Advertisement, Bounds, Key, Operator
from broker.network.routing.advertisement.sources import joined
from broker.network.routing.router import Router
from tests.broker.network.routing.events import event
from tests.broker.network.routing.test_router_changes import Net, forgetful_link, new_tree
from tests.simulation.propagation.drawn import draw_tree

NAMES = ("s", "t", "u")
TYPES = ("A", "B")
PLACES = (None, "hall", "hall/1", "yard")


def drawn(random, source):
    types = tuple(sorted(random.sample(TYPES, random.randint(1, 2))))
    spot = random.choice((None, MetricPosition(1.0, 2.0), MetricPosition(3.0, 2.0)))
    low = float(random.randint(0, 3))
    domain = random.choice(((), (Bounds("x", low, low + 1),)))
    return Advertisement(source, types, random.choice(PLACES), spot, domain)


def beyond(net, node, neighbour):
    """The brokers that a link leads to, by a walk."""
    found, edge = {int(neighbour)}, [int(neighbour)]
    for one in edge:
        for other in map(int, net.near[one]):
            if other != node and other not in found:
                found.add(other)
                edge.append(other)
    return found


def as_told(advertisement):
    """What an advertisement claims, as plain facts; a fact that is not there claims nothing."""
    facts = {("types", frozenset(advertisement.types))}
    if advertisement.location is not None:
        facts.add(("location", advertisement.location))
    if advertisement.position is not None:
        facts.add(("position", repr(advertisement.position)))
    return facts | {(one.attribute, (one.low, one.high)) for one in advertisement.domain}


def by_definition(said):
    """What holds of all that was said of a source: the same facts, taken one by one."""
    facts = {("types", frozenset(name for one in said for name in one.types))}
    for field in ("location", "position"):
        values = {repr(getattr(one, field)) for one in said}
        if len(values) == 1 and getattr(said[0], field) is not None:
            one = getattr(said[0], field)
            facts.add((field, one if field == "location" else repr(one)))
    bounds = [one.domain[0] if one.domain else None for one in said]
    if None not in bounds:
        facts.add(("x", (min(one.low for one in bounds), max(one.high for one in bounds))))
    return facts


def check(net, there):
    for node, router in enumerate(net.routers):
        for neighbour in net.near[node]:
            behind = beyond(net, node, neighbour)
            told = {one.source: as_told(one) for one in router.advertisements(neighbour)}
            wanted = {
                source: by_definition([there[at, source] for at in behind if (at, source) in there])
                for source in NAMES
                if any((at, source) in there for at in behind)
            }
            assert told == wanted


@pytest.mark.parametrize("seed", range(40))
def test_a_router_knows_of_each_link_what_all_brokers_beyond_say_together(seed):
    random = Random(seed)
    nodes = random.randint(3, 6)
    net = Net(nodes, draw_tree(random, nodes))
    there = {}
    for _ in range(60):
        node, source = random.randrange(nodes), random.choice(NAMES)
        what = random.random()
        if what < 0.5:
            there[node, source] = drawn(random, source)
            sends = net.routers[node].advertised(LOCAL, there[node, source])
            net.say(node, sends)
        elif what < 0.85:
            there.pop((node, source), None)
            net.say(node, net.routers[node].withdrawn(LOCAL, source))
        else:  # what was under way goes with its session
            net.settle()
            (forgetful_link if what < 0.93 else new_tree)(net, random, nodes)
        if random.random() < 0.5:  # else several changes are under way at once
            net.settle()
            check(net, there)
    net.settle()
    check(net, there)


@pytest.mark.parametrize("seed", range(20))
def test_each_event_reaches_who_wants_it_wherever_its_source_is(seed):
    random = Random(seed)
    nodes = random.randint(3, 6)
    net = Net(nodes, draw_tree(random, nodes))
    there, wants = {}, {}
    for number in range(8):
        name, kind = f"o{number}", random.choice(TYPES)
        source = random.choice((None, *NAMES))
        wants[name] = (kind, source)
        operator = Operator(name, (Key("k", kind, source=source),))
        node = random.randrange(nodes)
        net.say(node, net.routers[node].operator_added(LOCAL, operator))
    expected = {}
    for number in range(80):
        node, source = random.randrange(nodes), random.choice(NAMES)
        if random.random() < 0.3:
            there.pop((node, source), None)
            net.say(node, net.routers[node].withdrawn(LOCAL, source))
        elif random.random() < 0.1:
            forgetful_link(net, random, nodes)
        else:
            said = there.setdefault((node, source), drawn(random, source))
            said = Advertisement(source, said.types)  # no more than what the events keep to
            net.say(node, net.routers[node].advertised(LOCAL, said))
            net.settle()
            one = event(f"e{number}", random.choice(said.types), number, x=1, source=source)
            net.say(node, net.routers[node].events(LOCAL, [one]))
            for name, (kind, wanted) in wants.items():
                if kind == one.event_type and wanted in (None, source):
                    expected.setdefault(name, set()).add(one.id)
        net.settle()
    assert net.got == expected


def test_a_source_that_leaves_one_broker_is_asked_on_at_the_other():
    router = Router(["west", "east"])
    here, there = Advertisement("s", ("A",)), Advertisement("s", ("A",), "hall")
    router.advertised("east", there)
    # West is told what holds of both, and at once what holds of the one that stays.
    assert router.advertised(LOCAL, here) == [("west", Advertise(here)), ("east", Advertise(here))]
    assert router.withdrawn(LOCAL, "s") == [("west", Advertise(there)), ("east", Withdraw("s"))]
    router.advertised(LOCAL, there)
    assert router.withdrawn("east", "s") == []  # to the west nothing is another than before
    assert router.withdrawn(LOCAL, "s") == [("west", Withdraw("s")), ("east", Withdraw("s"))]


def test_a_source_of_any_types_makes_it_of_any_types():
    assert joined([Advertisement("s", ("A",)), Advertisement("s", ())]) == Advertisement("s", ())
    assert joined([Advertisement("s", ("B",)), Advertisement("s", ("A",))]).types == ("A", "B")
    assert joined([]) is None
