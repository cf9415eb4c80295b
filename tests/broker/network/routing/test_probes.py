"""Probes: an answer means that all who can be reached have heard and answered all before it."""

from collections import deque
from random import Random

import pytest

from broker.network.routing.entry import WAIT_MS, Joining
from broker.network.routing.probes import PLAIN_WAIT_MS, Echo, Neighbours, Probe, Probes

SEEDS = 300


class Net:
    """Brokers in a tree with links that keep order; each word is passed on, and answered.

    A word spreads from `b0`; its answer travels back by the same links. That is all that probes
    rely on.
    """

    def __init__(self, random):
        self.random = random
        self.names = [f"b{n}" for n in range(random.randint(2, 7))]
        self.parent = {
            name: self.names[random.randrange(at)] for at, name in enumerate(self.names) if at
        }
        self.probes = {name: Probes(name) for name in self.names}
        self.links = {}
        self.known = {}  # by broker and another: the last word that it knows answered there
        self.standing = {name: [] for name in self.names}
        self.heard = dict.fromkeys(self.names, 0)  # the last word
        self.replied = dict.fromkeys(self.names, 0)  # as `b0` knows it
        for name in self.parent:
            self.stand(name, self.parent[name])

    def peers(self, name):
        near = [self.parent[name]] if name in self.parent else []
        return near + [child for child in self.parent if self.parent[child] == name]

    def stand(self, one, other):
        for end, far in ((one, other), (other, one)):
            self.links[end, far] = deque()
            self.standing[end].append(far)
        for end, far in ((one, other), (other, one)):  # all is said anew
            if self.parent.get(far) == end:
                self.send(end, far, ("word", self.heard[end]))
            else:
                for name in self.below(end):
                    self.send(end, far, ("reply", name, self.replied_at(name, end)))

    def replied_at(self, name, end):
        return self.heard[name] if name == end else self.known.get((end, name), 0)

    def below(self, name):
        return [name] + [
            x
            for child in self.peers(name)
            if self.parent.get(child) == name
            for x in self.below(child)
        ]

    def send(self, end, far, what):
        if far in self.standing[end]:
            self.links[end, far].append(what)

    def break_(self, one, other):
        for end, far in ((one, other), (other, one)):
            self.standing[end].remove(far)
            self.links.pop((end, far))
            self.probes[end].left(far)

    def run_due(self, now=0):
        for name in self.names:
            near = Neighbours(self.peers(name), self.standing[name])
            for peer, frame in list(self.probes[name].due(near, now)):
                self.send(name, peer, frame)

    def say_word(self, number):
        self.heard["b0"] = number
        for peer in self.standing["b0"]:
            self.send("b0", peer, ("word", number))

    def arrive(self, end, far):
        what = self.links[end, far].popleft()
        if isinstance(what, Probe):
            self.probes[far].heard(end, what)
        elif isinstance(what, Echo):
            self.probes[far].echoed(end, what)
        elif what[0] == "word" and what[1] > self.heard[far]:
            self.heard[far] = what[1]
            for peer in self.standing[far]:
                if peer != end:
                    self.send(far, peer, what)
            self.send(far, end, ("reply", far, what[1]))
        elif what[0] == "reply":
            _, name, number = what
            self.known[far, name] = max(self.known.get((far, name), 0), number)
            if far == "b0":
                self.replied[name] = max(self.replied[name], number)
            else:
                self.send(far, self.parent[far], what)


def run(seed):
    random = Random(seed)
    net = Net(random)
    asked, broken = {}, []
    for step in range(1, random.randint(20, 120)):
        chance = random.random()
        if chance < 0.08:
            net.say_word(step)
            asked[net.probes["b0"].begin()] = step
        elif chance < 0.12 and not broken:
            child = random.choice(list(net.parent))
            net.break_(child, net.parent[child])
            broken.append(child)
        elif chance < 0.25 and broken:
            child = broken.pop()
            net.stand(child, net.parent[child])
        ways = [way for way, queue in net.links.items() if queue]
        if ways:
            net.arrive(*random.choice(ways))
        net.run_due()
        check(net, asked)
    for child in broken:
        net.stand(child, net.parent[child])
    while any(net.links.values()):
        net.run_due()
        for way in [way for way, queue in net.links.items() if queue]:
            net.arrive(*way)
        net.run_due()
        check(net, asked)
    assert net.probes["b0"].answered == max(asked, default=0)
    assert not any(one.busy for one in net.probes.values())


def check(net, asked):
    word = asked.get(net.probes["b0"].answered, 0)
    assert all(net.replied[name] >= word for name in net.names if name != "b0")


def test_what_is_answered_all_have_heard_and_answered_whatever_breaks():
    """The whole of it, on trees drawn anew, with links that end in the middle."""
    for seed in range(SEEDS):
        run(seed)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_so_it_is_in_many_more_runs():
    for seed in range(SEEDS, 20_000):
        run(seed)


def test_who_has_no_neighbours_is_answered_at_once_unless_the_tree_is_about_to_change():
    one = Probes("a")
    one.begin()
    assert list(one.due(Neighbours((), ()), 0, whole=False)) == []
    assert one.pending
    assert list(one.due(Neighbours((), ()), 0)) == []
    assert (one.pending, one.answered) == (False, 1)


def test_a_neighbour_whose_session_does_not_stand_is_waited_for_until_it_is_none():
    one = Probes("a")
    one.begin()
    assert list(one.due(Neighbours(("b",), ()), 0)) == []
    assert one.pending
    assert list(one.due(Neighbours(("b",), ("b",)), 0)) == [("b", Probe("a", 1))]
    one.left("b")
    assert list(one.due(Neighbours((), ()), 0)) == []
    assert not one.pending


def test_an_echo_of_what_was_not_asked_in_this_session_does_not_count():
    one = Probes("a")
    one.begin()
    list(one.due(Neighbours(("b",), ("b",)), 0))
    one.left("b")
    one.echoed("b", Echo("a", 1))
    list(one.due(Neighbours(("b",), ()), 0))
    assert one.pending


def test_what_was_echoed_in_a_session_that_ended_does_not_count():
    """Behind the next session of that neighbour others may be there, who have heard nothing."""
    one, near = Probes("a"), Neighbours(("b", "c"), ("b", "c"))
    one.begin()
    list(one.due(near, 0))
    one.echoed("b", Echo("a", 1))
    one.left("b")
    one.echoed("c", Echo("a", 1))
    assert list(one.due(near, 0)) == [("b", Probe("a", 1))]
    assert one.pending
    one.echoed("b", Echo("a", 1))
    list(one.due(near, 0))
    assert not one.pending


def test_one_echo_stands_for_all_probes_before_it():
    one = Probes("a")
    for _ in range(3):
        one.begin()
        list(one.due(Neighbours(("b",), ("b",)), 0))
    one.echoed("b", Echo("a", 2))
    list(one.due(Neighbours(("b",), ("b",)), 0))
    assert one.answered == 2
    one.echoed("b", Echo("a", 3))
    list(one.due(Neighbours(("b",), ("b",)), 0))
    assert one.answered == 3


def test_a_neighbour_of_the_version_before_is_asked_nothing_and_has_its_time():
    one = Probes("a")
    near = Neighbours(("b",), ("b",), ("b",))
    one.begin()
    assert list(one.due(near, 1_000)) == []
    assert one.wake_at == 1_000 + PLAIN_WAIT_MS
    one.begin()  # what is asked meanwhile has a time of its own
    list(one.due(near, 1_000 + PLAIN_WAIT_MS))
    assert one.answered == 1
    list(one.due(near, 1_000 + 2 * PLAIN_WAIT_MS))
    assert (one.answered, one.wake_at) == (2, None)


def test_a_broker_in_between_waits_for_those_of_the_version_before_too():
    one = Probes("b")
    one.heard("a", Probe("a", 1))
    near = Neighbours(("a", "c"), ("a", "c"), ("c",))
    assert list(one.due(near, 0)) == []
    assert list(one.due(near, PLAIN_WAIT_MS)) == [("a", Echo("a", 1))]
    assert not one.busy


def test_a_process_that_begins_waits_for_its_links_and_not_for_ever():
    one = Joining(["b", "c"], 1_000)
    assert not one.over(["b"], 1_500)
    assert one.over(["b", "c"], 1_500)
    assert one.over([], 1_600)  # once over it stays so
    late = Joining((), 1_000, listens=True)
    assert not late.over([], 999 + WAIT_MS)
    assert late.over([], 1_000 + WAIT_MS)
    assert Joining().over([], 0)
