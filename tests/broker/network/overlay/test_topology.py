"""All brokers that can hear of each other hold one tree, whatever the order of what they hear."""

import itertools
import random

import pytest

from broker.network.overlay.limits import TopologyLimits
from broker.network.overlay.state import LinkState, encode
from broker.network.overlay.told import (
    KnownChanged,
    LinkDown,
    LinkUp,
    NameTaken,
    Objected,
    StatesReceived,
    Tell,
    TreeChanged,
    Woken,
)
from broker.network.overlay.topology import Topology
from broker.network.overlay.tree import Edge, Tree
from tests.broker.network.overlay.network import Network
from tests.oracles.overlay import joined, least


def check(network):
    """What each broker says against what the links that stand give by definition."""
    links = [(cost, low, high) for (low, high), cost in network.up.items()]
    tree = least(links)
    for name, mine in network.all.items():
        ways = joined(tree, name)
        assert {(e.cost, e.low, e.high) for e in mine.tree.edges} == {
            link for link in tree if link[1] in ways
        }
        assert mine.tree.neighbours == tuple(sorted(n for n, way in ways.items() if len(way) == 2))
        assert mine.tree.hops == {to: len(way) - 1 for to, way in ways.items()}
        assert {to: mine.tree.path(to) for to in ways} == ways
        assert mine.tree.next_hops == {to: way[1] for to, way in ways.items() if to != name}
        assert set(mine.unreachable) == set(mine.known) - set(ways)
        assert len({network.all[to].tree.id for to in ways}) == 1


def grown(seed, many):
    """A network in which links come, go and come back while all is being told."""
    names = [f"b{number:02}" for number in range(many)]
    network = Network(seed, names)
    draw = network.draw
    for _ in range(12 * many):
        what = draw.random()
        one, other = draw.sample(names, 2)
        if what < 0.25:
            network.connect(one, other, draw.choice([1, 1, 1, 2, 5]))
        elif what < 0.35:
            network.cut(one, other)
        elif what < 0.9:
            network.step()
        else:
            network.pass_ms(draw.choice([1, 60, 3100]))
    return network


@pytest.mark.parametrize("many", [2, 3, 6, 15])
def test_random_networks_come_to_one_tree_and_it_is_the_least(many):
    for seed in range(40 // many):
        network = grown(seed, many)
        network.settle()
        check(network)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(4))
def test_the_same_of_many(part):
    for seed in range(part * 200, (part + 1) * 200):
        network = grown(seed, 2 + seed % 20)
        network.settle()
        check(network)


def test_brokers_that_die_and_come_back_are_counted_in_again():
    for seed in range(25):
        network = grown(seed, 8)
        draw = network.draw
        kept = {}
        for _ in range(60):
            name = draw.choice(sorted(network.epochs))
            what = draw.random()
            if what < 0.1 and name in network.all and len(network.all) > 2:
                kept[name] = network.kill(name)
            elif what < 0.25 and name not in network.all:
                network.start(name, kept[name] if draw.random() < 0.5 else b"")
            elif what < 0.5 and len(network.all) > 1:
                network.connect(*draw.sample(sorted(network.all), 2))
            else:
                network.step()
        network.settle()
        check(network)


def test_the_order_of_links_decides_nothing():
    edges = [Edge(1, a, b) for a, b in itertools.combinations("abcdef", 2)]
    expected = Tree("a", edges)
    for seed in range(50):
        random.Random(seed).shuffle(edges)
        tree = Tree("a", edges)
        assert (tree.edges, tree.id) == (expected.edges, expected.id)
        assert list(tree.hops) == list(expected.hops)


def chosen(edges):
    """Those of the tree, and where it is in parts, of all of them."""
    return {edge for name in {edge.low for edge in edges} for edge in Tree(name, edges).edges}


def test_a_link_outside_the_tree_changes_nothing_and_one_inside_changes_one_edge():
    for seed in range(60):
        draw = random.Random(seed)
        names = [f"b{n}" for n in range(9)]
        pairs = draw.sample(list(itertools.combinations(names, 2)), 20)
        edges = [Edge(draw.choice([1, 2]), a, b) for a, b in pairs]
        tree = chosen(edges)
        for lost in edges:
            rest = chosen([edge for edge in edges if edge != lost])
            assert len(tree - rest) == (lost in tree)
            assert len(rest - tree) <= (lost in tree)


def line(*names):
    network = Network(1, names)
    for one, other in itertools.pairwise(names):
        network.connect(one, other)
    network.settle()
    return network


def test_hops_and_next_hops_are_those_of_the_tree():
    network = line("a", "b", "c", "d")
    tree = network.all["a"].tree
    assert tree.hops == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert tree.next_hops == {"b": "b", "c": "b", "d": "b"}
    assert tree.path("d") == ("a", "b", "c", "d")
    assert tree.path("e") is None


def test_a_cut_that_heals_soon_is_told_to_nobody():
    network = line("a", "b", "c")
    before = {name: list(told) for name, told in network.told.items()}
    network.cut("b", "c")
    network.pass_ms(1000)
    network.connect("b", "c")
    network.settle()
    assert network.told == before


def test_a_partition_is_told_with_who_is_beyond_and_since_when():
    network = line("a", "b", "c", "d")
    network.cut("b", "c")
    began = network.now
    network.settle()
    told = network.told["a"][-1]
    assert isinstance(told, TreeChanged)
    assert told.neighbours == ("b",)
    assert told.unreachable == ("c", "d")
    assert set(network.all["a"].unreachable) == {"c", "d"}
    assert all(since > began for since in network.all["a"].unreachable.values())
    network.connect("a", "d")
    network.settle()
    assert network.all["a"].unreachable == {}
    check(network)


def test_a_broker_stays_known_until_somebody_forgets_it():
    network = line("a", "b", "c", "d")
    network.kill("d")
    network.settle()
    network.pass_ms(10**9)
    network.settle()
    for name in "abc":
        assert network.all[name].known == ("a", "b", "c", "d")
    network.forget("a", "d")
    network.settle()
    for name in "abc":
        assert network.all[name].known == ("a", "b", "c")
        assert KnownChanged((), ("d",)) in network.told[name]
        assert network.all[name].unreachable == {}


def test_who_was_forgotten_stays_so_for_those_who_had_not_heard():
    network = line("a", "b", "c")
    network.kill("c")
    network.settle()
    kept = network.kill("b")
    network.forget("a", "c")
    network.settle()
    network.start("b", kept)
    assert network.all["b"].known == ("a", "b", "c")
    network.connect("a", "b")
    network.settle()
    assert network.all["a"].known == network.all["b"].known == ("a", "b")


def test_who_was_forgotten_and_is_there_is_known_again():
    network = line("a", "b", "c")
    network.cut("b", "c")
    network.settle()
    network.forget("a", "c")
    network.settle()
    assert network.all["a"].known == ("a", "b")
    network.connect("b", "c")
    network.settle()
    assert network.all["a"].known == ("a", "b", "c")
    assert KnownChanged(("c",), ()) in network.told["a"]
    check(network)


def test_a_broker_that_is_there_cannot_be_forgotten():
    network = line("a", "b", "c")
    network.forget("a", "c")
    network.settle()
    for name in "abc":
        assert network.all[name].known == ("a", "b", "c")
    assert network.told["a"][-2:] == [KnownChanged((), ("c",)), KnownChanged(("c",), ())]
    check(network)


def test_a_link_that_is_cut_is_not_told_before_its_time_whatever_else_is_due():
    one = Topology("a", 1)
    for peer in "bc":
        one.handle(LinkUp(peer, fresh=True), 0)
    one.handle(LinkDown("b"), 10)
    one.handle(Woken(), 60)
    assert one.links == ("b", "c")
    assert one.handle(Woken(), 3009) == []
    assert one.handle(Woken(), 3010) != []
    assert one.links == ("c",)


def test_of_two_costs_of_a_link_the_greater_counts():
    one = Topology("a", 1)
    one.handle(LinkUp("b", fresh=True, cost=2), 0)
    one.handle(StatesReceived("b", encode([LinkState("b", 1, 1, (("a", 7),))])), 0)
    assert one.edges() == [Edge(7, "a", "b")]


def test_a_restarted_broker_knows_whom_it_knew():
    network = line("a", "b", "c")
    kept = network.kill("a")
    again = Topology("a", 2, kept=kept)
    assert again.known == ("a", "b", "c")
    assert again.state() != kept  # its own links are of a new life


def test_a_burst_of_news_gives_one_tree():
    one = Topology("a", 1)
    one.handle(LinkUp("b", fresh=True), 0)
    for seq in range(1, 20):
        links = tuple(sorted([("a", 1), *((f"c{n}", 1) for n in range(seq))]))
        one.handle(StatesReceived("b", encode([LinkState("b", 1, seq, links)])), 10)
    assert one.wake_at == 50
    changed = [e for e in one.handle(Woken(), 50) if isinstance(e, TreeChanged)]
    assert [e.neighbours for e in changed] == [("b",)]
    assert one.tree.hops == {"a": 0, "b": 1}, "of the others one end alone has told"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff", "cannot be understood"),
        (b"", "cannot be understood"),
        (encode([LinkState("", 1, 1)]), "name"),
        (encode([LinkState("x" * 65, 1, 1)]), "name"),
        (encode([LinkState("x\n", 1, 1)]), "name"),
        (encode([LinkState("x", 1, 1, (("b", 1), ("a", 1)))]), "out of order"),
        (encode([LinkState("x", 1, 1, (("a", 1), ("a", 1)))]), "out of order"),
        (encode([LinkState("x", 1, 1, (("x", 1),))]), "to itself"),
        (encode([LinkState("x", 1, 1, (("a", 0),))]), "cost"),
        (encode([LinkState("x", -1, 1)]), "number"),
        (encode([LinkState("x", 1, 1, tuple((f"b{n}", 1) for n in range(4)))]), "at most 3"),
        (encode([LinkState(f"x{n}", 1, 1) for n in range(6)]), "one broker too many"),
    ],
)
def test_what_a_neighbour_must_not_tell_is_refused_with_a_reason(data, reason):
    one = Topology("a", 1, TopologyLimits(links_max=3, brokers_max=5))
    effects = one.handle(StatesReceived("b", data), 0)
    objected = [e for e in effects if isinstance(e, Objected)]
    assert reason in objected[0].reason
    assert one.counts["objected"] == len(objected)
    assert len(one.known) <= 5


def test_one_who_tells_old_news_is_told_the_new():
    one = Topology("a", 1)
    one.handle(LinkUp("b", fresh=True), 0)
    newer = LinkState("c", 2, 5, (("b", 1),))
    one.handle(StatesReceived("b", encode([newer])), 0)
    effects = one.handle(StatesReceived("b", encode([LinkState("c", 2, 4)])), 0)
    assert effects == [Tell("b", encode([newer]))]


def test_two_brokers_of_one_name_are_told_so_and_do_not_keep_the_others_busy():
    """Each outdoes what the other says of itself: without an end, at the speed of the links."""
    brokers = {"a": Topology("a", 1), "b": Topology("b", 1)}
    brokers |= {"one": Topology("x", 1), "other": Topology("x", 2)}
    ends = {("a", "b"): "b", ("a", "x"): "one", ("one", "a"): "a"}
    ends |= {("b", "a"): "a", ("b", "x"): "other", ("other", "b"): "b"}
    waiting, told, messages, now = [], [], 0, 0

    def tell(who, what):
        for effect in brokers[who].handle(what, now):
            if isinstance(effect, Tell):
                waiting.append((ends[who, effect.to], brokers[who].me, effect.data))
            elif isinstance(effect, NameTaken):
                told.append((who, effect.neighbours))

    for who, peer in ends:
        tell(who, LinkUp(peer, fresh=True))
    while now < 3_600_000:
        while waiting:
            to, by, data = waiting.pop(0)
            messages += 1
            assert messages < 500
            tell(to, StatesReceived(by, data))
        now = min(due for one in brokers.values() if (due := one.wake_at) is not None)
        for who in brokers:
            if (brokers[who].wake_at or now + 1) <= now:
                tell(who, Woken())
    assert set(told) == {("one", ("b",)), ("other", ("a",))}
    assert len(told) < 30
