"""A result comes to its actor once, wherever in the network that listens, also while it moves."""

from collections import Counter
from functools import partial
from random import Random

import pytest

from broker.core.exchange.listening import NAMES_CHARS_MAX
from broker.core.messages import ActorsListening
from broker.core.networked import actor_delivery
from broker.network.actors.roaming import ROAMING_MS
from broker.network.frames import frames
from broker.network.frames.messages import ForgetRequested
from tests.simulation.network.town import LINE, TEXT, Town

FAST_SEEDS = 5
ACTORS = ("alerts", "Air/r0", "Air/r1", "Tablet/a", "Tablet/b", "Tablet/c")


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


@pytest.mark.parametrize("seed", range(3))
def test_a_home_that_is_killed_leaves_each_result_heard_once(seed):
    check_killed(seed)


def check_killed(seed):
    random, names, home, edges = drawn(seed)
    others = [name for name in names if name != home]
    town = Town(seed, edges, delay_ms=random.choice((5, 100, 400)))
    town.home = town.sites[home]
    town.start({actor: random.choice(others) for actor in ACTORS})
    begin_ms = town.begin_ms + 1_000
    for number in range(80):
        town.world.at(begin_ms + number * 200, partial(town.alarm, random.choice(others)))
    for _ in range(20):
        at = begin_ms + random.randrange(80) * 200 + random.randint(20, 190)
        actor, to = random.choice(ACTORS), town.sites[random.choice(others)]
        town.world.at(at, partial(town.move, actor, to))
    for _ in range(4):
        town.world.at(begin_ms + random.randrange(16_000), town.home.end)
    town.run(120_000)
    assert town.home.ends > 0
    assert len(town.found) == 3 * 80
    assert town.heard == Counter(town.found)


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


def test_more_names_than_a_link_takes_do_not_hide_the_others():
    town = Town(1, LINE)
    town.start({"Tablet/a": "b3"})
    many = [f"{number:05}{'x' * 1_000}" for number in range(300)]
    for name in many:
        town.sites["b3"].actors[name] = None
    town.sites["b3"].hear(ActorsListening("b3", 0, tuple(many)))
    town.run(1_000)
    network = town.home.process.core.network
    assert list(network.delivery.actors.of("b3")[1]) == sorted(many)[: NAMES_CHARS_MAX // 1_005]
    for name in many:
        town.sites["b3"].listen(name, on=False)
    town.run(1_000)
    assert list(network.delivery.actors.of("b3")[1]) == ["Tablet/a"]


def test_a_result_that_is_too_long_to_travel_is_in_no_others_way():
    town = Town(1, LINE, text=TEXT + "subscription Said from x to alerts\ndetect Alarm as a")
    town.start({"alerts": "b3"})
    limit, actor_delivery.COPY_BYTES_MAX = actor_delivery.COPY_BYTES_MAX, 400
    try:
        town.alarm("b0", room="r" * 400)
        town.alarm("b0")
        town.run(2_000)
    finally:
        actor_delivery.COPY_BYTES_MAX = limit
    assert len([one for one in town.found if one[0] == "alerts"]) == 4
    assert town.heard.total() == 2
    network = town.home.process.core.network
    assert len(network.copies) == 0
    assert network.ledger.notes["copies_too_long"] == 2


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


def test_a_copy_that_came_before_the_way_back_was_known_is_released_when_it_is():
    town = Town(5, LINE[:2])
    town.start({"alerts": "b2"})
    between = town.sites["b1"].process.network
    say = between._on_frame[frames.CopiesTaken]
    between._on_frame[frames.CopiesTaken] = lambda *_: None  # it knows of no way to the home yet
    town.alarm("b0")
    town.run(1_000)
    assert len(town.home.process.core.network.copies) == 1
    between._on_frame[frames.CopiesTaken] = say
    between._say("b2", frames.Here("b0", ("Alarm",)))
    town.sites["b1"].process._perform(between.begun(), None)
    town.run(1_000)
    assert len(town.home.process.core.network.copies) == 0
    assert town.heard["alerts", "Plain", town.found[0][2]] == 1
