"""A result comes to its actor once, wherever in the network that listens, also while it moves."""

import json
from collections import Counter
from functools import partial
from itertools import count
from random import Random

import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Publish
from broker.core.limits import Limits
from broker.core.messages import (
    ActorsListening,
    EventsReceived,
    Payload,
    SourceAdvertised,
    SpecificationSubmitted,
)
from broker.core.network.messages import ForgetRequested
from broker.core.network.roaming import ROAMING_MS
from simulation.crashes.outbox import Outbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
FAST_SEEDS = 5
TEXT = """
event Alarm(room: text)
subscription Plain from x to alerts
detect Alarm
subscription Room from x to Air of group.room
detect Alarm
group by room
subscription Near from x to nearest Tablet
detect Alarm
"""
ROOMS = ("r0", "r1")
ACTORS = ("alerts", "Air/r0", "Air/r1", "Tablet/a", "Tablet/b", "Tablet/c")


class Site(Place):
    """A place with actors; `got` are the results that one of them heard here."""

    def __init__(self, world, name):
        options = BrokerOptions(name=name, lateness_ms=0, idle_timeout_ms=1_000, networked=True)
        super().__init__(
            world,
            Machine(
                disk=Disk(world.random),
                outbox=Outbox(),
                options=options,
                limits=Limits(),
                sync_ms=0,
                commit_ms=0,
                snapshot_records=20,
                segment_bytes=5_000,
            ),
        )
        self.actors = {}
        self.got = []

    def start(self):
        super().start()
        self.hear(ActorsListening(self.name, 0, tuple(self.actors), anew=True))

    def listen(self, actor, *, on):
        came, gone = ((actor,), ()) if on else ((), (actor,))
        if on:
            self.actors[actor] = None
        else:
            del self.actors[actor]
        self.hear(ActorsListening(self.name, 0, came, gone))

    def leaves(self, effect):
        if isinstance(effect, Publish):
            for one in effect.publications:
                if one.topic.startswith("actors/"):
                    self._heard(one.topic.removeprefix("actors/"), one.payload)
        super().leaves(effect)

    def delivered(self, rows):
        for one in rows:
            self._heard(one.actor, one.payload)

    def _heard(self, actor, payload):
        if actor in self.actors:
            said = json.loads(payload)
            self.got.append((actor, said["subscription"], said["id"]))


class Town:
    """Brokers in a tree, of which `edges` are the links; the first is the home."""

    def __init__(self, seed, edges, delay_ms=5):
        self.world = World(Random(seed), BEGIN_MS)
        names = sorted({name for edge in edges for name in edge})
        self.sites = {name: Site(self.world, name) for name in names}
        self.links = []
        for one, other in edges:
            a, b = self.sites[one], self.sites[other]
            link = Link(self.world, a, b, delay_ms)
            a.links[b.name] = b.links[a.name] = link
            self.links.append(link)
        self.home = self.sites[names[0]]
        self.ids = count()

    def start(self, where):
        for actor, name in where.items():
            self.sites[name].actors[actor] = None
        for site in self.sites.values():
            site.start()
        for site in self.sites.values():
            data = json.dumps({"types": ["Alarm"]}).encode()
            site.tell(SourceAdvertised(f"s-{site.name}", data), {})
        self.home.tell(SpecificationSubmitted("x", "1", TEXT), {})
        self.run(20_000)
        assert "active" in self.home.states
        self.begin_ms = self.world.now

    def run(self, for_ms):
        self.world.run(self.world.now + for_ms)

    def alarm(self, name):
        number = next(self.ids)
        body = {"id": f"e{number}", "room": ROOMS[number % 2]}
        payload = Payload("Alarm", f"s-{name}", json.dumps(body).encode())
        self.sites[name].tell(EventsReceived((payload,)), {})

    def move(self, actor, to):
        before = next(site for site in self.sites.values() if actor in site.actors)
        if before is not to:
            before.listen(actor, on=False)
            to.listen(actor, on=True)

    def hops(self):
        """How far each broker is from the home, in its tree."""
        found, edge = {self.home.name: 0}, [self.home]
        for site in edge:
            for name in site.process.network.topology.tree.neighbours:
                if name not in found:
                    found[name] = found[site.name] + 1
                    edge.append(self.sites[name])
        return found

    @property
    def heard(self):
        return Counter(one for site in self.sites.values() for one in site.got)

    @property
    def found(self):
        rows = [json.loads(row.payload) for row in self.home.machine.outbox.rows]
        return [(one["actor"], one["subscription"], one["id"]) for one in rows]


def drawn(seed):
    random = Random(seed)
    names = [f"b{number}" for number in range(6)]
    home = random.choice(names)
    edges = [(names[random.randrange(at)], names[at]) for at in range(1, len(names))]
    return random, names, home, edges


@pytest.mark.parametrize("seed", range(FAST_SEEDS))
@pytest.mark.parametrize("cuts", [0, 12])
def test_each_result_is_heard_once_by_its_actor_while_actors_and_links_come_and_go(seed, cuts):
    check(seed, cuts)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(FAST_SEEDS, 105, 50))
@pytest.mark.parametrize("cuts", [0, 12])
def test_each_result_is_heard_once_in_many_more_runs(first, cuts):
    for seed in range(first, first + 50):
        check(seed, cuts)


def check(seed, cuts):
    random, names, home, edges = drawn(seed)
    town = Town(seed, edges, delay_ms=random.choice((5, 100, 400)))
    town.home = town.sites[home]
    town.start({actor: random.choice(names) for actor in ACTORS})
    for number in range(80):
        town.world.at(
            town.begin_ms + 1_000 + number * 200, partial(town.alarm, random.choice(names))
        )
    for _ in range(30):
        at = town.begin_ms + 1_000 + random.randrange(80) * 200 + random.randint(20, 190)
        actor, to = random.choice(ACTORS), town.sites[random.choice(names)]
        town.world.at(at, partial(town.move, actor, to))
    for _ in range(cuts):
        at = town.begin_ms + 1_000 + random.randrange(16_000)
        for_ms = random.choice((500, 5_000))
        town.world.at(
            at, partial(random.choice(town.links).cut, for_ms, lost=random.random() < 0.5)
        )
    town.run(120_000)
    assert len(town.found) == 3 * 80
    assert town.heard == Counter(town.found)
    for site in town.sites.values():
        assert len(site.process.core.network.copies) == 0


LINE = [("b0", "b1"), ("b1", "b2"), ("b2", "b3")]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"Tablet/a": "b3", "Tablet/b": "b1", "Tablet/c": "b2"}, "Tablet/b"),
        ({"Tablet/a": "b1", "Tablet/b": "b1", "Tablet/c": "b3"}, "Tablet/a"),
        ({"Tablet/a": "b2", "Tablet/b": "b3", "Tablet/c": "b0"}, "Tablet/c"),
    ],
)
def test_the_nearest_is_fewest_hops_away_and_of_equals_the_first_by_name(where, expected):
    town = Town(1, LINE)
    town.start(where)
    town.alarm("b3")
    town.run(5_000)
    near = [one for one in town.found if one[1] == "Near"]
    assert [actor for actor, _, _ in near] == [expected]
    assert [town.heard[one] for one in near] == [1]


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_follows_the_tree(seed):
    random, names, _, edges = drawn(seed)
    extra = [(names[0], names[5]), (names[1], names[4])]
    town = Town(seed, list(dict.fromkeys([*edges, *extra])))
    where = {actor: random.choice(names) for actor in ACTORS if actor.startswith("Tablet")}
    town.start(where)
    expected = []
    for number in range(4):
        hops = town.hops()
        expected.append(min(where, key=lambda actor: (hops[where[actor]], actor)))
        town.alarm(random.choice(names))
        town.run(5_000)
        town.links[number].cut(10**9, lost=True)
        town.run(20_000)
        if len(town.hops()) < len(names):
            break  # now some cannot be reached
    near = [one for one in town.found if one[1] == "Near"]
    assert [actor for actor, _, _ in near] == expected
    assert [town.heard[one] for one in near] == [1] * len(near)


def test_one_to_whom_there_is_no_way_is_nearest_only_where_there_is_no_other():
    town = Town(1, LINE)
    town.start({"Tablet/a": "b1", "Tablet/b": "b3", "Tablet/c": "b0"})
    town.move("Tablet/c", town.sites["b3"])
    town.run(1_000)
    town.alarm("b0")
    town.run(1_000)
    middle = town.links[1]
    town.move("Tablet/a", town.sites["b3"])
    town.sites["b1"].listen("Tablet/d", on=True)
    town.run(1_000)
    middle.cut(30_000, lost=False)
    town.run(10_000)
    town.alarm("b0")
    town.run(1_000)
    town.sites["b1"].listen("Tablet/d", on=False)
    town.run(1_000)
    town.alarm("b0")
    town.run(60_000)
    town.alarm("b0")
    town.run(5_000)
    near = [one for one in town.found if one[1] == "Near"]
    assert [actor[-1] for actor, _, _ in near] == ["a", "d", "a", "a"]
    assert [town.heard[one] for one in near] == [1, 1, 1, 1]


def test_what_waits_for_an_actor_that_does_not_come_back_is_let_go():
    town = Town(1, LINE)
    town.start({"alerts": "b3"})
    town.sites["b3"].listen("alerts", on=False)
    town.run(1_000)
    town.alarm("b0")
    town.run(ROAMING_MS)
    town.sites["b2"].listen("alerts", on=True)
    town.run(5_000)
    assert town.heard.total() == 0
    town.alarm("b0")
    town.run(5_000)
    assert [actor for actor, _, _ in town.heard] == ["alerts"]
    assert not any(len(site.process.core.network.roaming) for site in town.sites.values())


def test_what_a_forgotten_broker_did_not_take_goes_to_where_its_actor_is_now():
    town = Town(1, LINE)
    town.start({"alerts": "b3"})
    town.links[2].cut(10**9, lost=True)
    town.run(10_000)
    town.alarm("b0")
    town.run(1_000)
    town.sites["b1"].listen("alerts", on=True)  # b3 is broken, and its client went elsewhere
    town.run(1_000)
    assert town.heard.total() == 0
    town.home.hear(ForgetRequested("b3"))
    town.run(5_000)
    assert [actor for actor, _, _ in town.heard] == ["alerts"]
    assert town.heard.total() == 1
