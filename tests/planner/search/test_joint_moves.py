"""Moves of the search in `planner.search` that bring two pieces to their brokers together."""

from itertools import pairwise
from random import Random

import pytest

from bench.planted_placement import planted
from experiments.generate import Limits, problem
from planner.document import read_problem
from planner.layout import lay_out
from planner.search.context import MoveContext
from planner.search.evaluator import Evaluator
from planner.search.instance import Instance
from planner.search.moves.ejection import Eject
from planner.search.moves.joint import MoveJointly, cheapest_pair
from planner.search.moves.kinds import Together
from planner.search.moves.relief import Relieve
from planner.search.params import SearchParams
from planner.search.search import Search

UNREACHED = 1e9  # costs more than any path here: a broker that a stream has no room to get to
NAMES = "abcde"
CHAIN = {
    "nodes": [{"id": name} for name in NAMES],
    "links": [{"a": a, "b": b} for a, b in pairwise(NAMES)],
    "contents": [{"id": "C", "rates": {"a": 10}}, {"id": "D", "rates": {"e": 40}}],
    "tasks": [
        {"id": "T", "inputs": ["C"], "cost": 1, "rate": 30},
        {"id": "U", "inputs": ["T", "D"], "cost": 1, "rate": 1, "destinations": ["e"]},
    ],
}


def context_of(document, hosts, penalty=0.0):
    instance = Instance(lay_out(read_problem(document)))
    evaluator = Evaluator(instance, hosts, check=True)
    context = MoveContext(evaluator, Random(1), SearchParams())
    context.penalty = penalty
    return context


def test_a_piece_goes_along_with_the_one_that_it_feeds():
    """Either alone would stay: what goes between them would be paid for on each link."""
    context = context_of(CHAIN, [0, 0])
    evaluator = context.evaluator
    assert evaluator.flow == 4 * 40 + 4 * 1
    assert evaluator.delta([(0, 4)], 0.0) > 0
    undo = MoveJointly().propose(context)
    assert evaluator.hosts == [4, 4]
    assert evaluator.flow == 4 * 10
    for change in reversed(undo):
        evaluator.undo(change)
    assert (evaluator.hosts, evaluator.flow) == ([0, 0], 4 * 40 + 4 * 1)


def test_what_a_piece_takes_where_it_is_does_not_speak_against_staying():
    """A broker that bears a piece just so is not full for that piece itself."""
    nodes = [{"id": name, "capacity": 1} for name in NAMES]
    context = context_of(CHAIN | {"nodes": nodes}, [0, 4], penalty=1e6)
    scores = {host: score for score, host in context.choices((0,))}
    assert min(scores, key=scores.get) == 3
    assert scores[4] > 1e6 > scores[0]


@pytest.mark.parametrize("limits", [Limits(1.4), Limits(1.4, 1.3, 1.3)], ids=["brokers", "all"])
def test_many_brokers_are_searched_by_the_same_sums(limits, monkeypatch):
    """All values of a row at once are those of the brokers one by one, and no sum is lost."""
    monkeypatch.setattr("planner.search.instance.MANY_NODES", 10)
    monkeypatch.setattr("planner.search.instance.EXACT_NODES_MAX", 0)
    monkeypatch.setattr("planner.search.params.SearchParams.granular", 100)
    instance = Instance(lay_out(read_problem(problem("grid", 36, 30, 1, limits))))
    search = Search(instance, 1, check=True)
    search.run(lambda progress: progress.steps >= 150)
    assert search.moves["settle"] > 0
    context = search.context
    for piece in range(instance.pieces):
        scores = {host: score for score, host in context.choices((piece,))}
        alone = {host: score for score, host in context.choices((piece,), anywhere=True)}
        origin = search.evaluator.hosts[piece]
        for host, score in scores.items():
            change = alone[host] - alone[origin]
            if change < UNREACHED:
                assert score - scores[origin] == pytest.approx(change, rel=1e-4, abs=1.0)
            else:
                assert score - scores[origin] > UNREACHED / 10


@pytest.mark.parametrize("seed", range(20))
def test_no_pair_of_brokers_is_cheaper_than_the_one_that_is_handed_back(seed):
    """Each pair by itself, with the hops between, on a grid."""
    random = Random(seed)
    instance = Instance(lay_out(read_problem(problem("grid", 25, 4, seed))))
    senders, takers = (
        [(random.uniform(0, 100), host) for host in random.sample(range(25), size)]
        for size in (25, 9)
    )
    if seed % 2:  # with no broker in both a pair is apart, however dear its brokers are
        chosen = random.sample(range(25), 25)
        dear = random.choice((1.0, 1e7))
        senders = [(random.uniform(0, 100) * dear, host) for host in chosen[:12]]
        takers = [(random.uniform(0, 100), host) for host in chosen[12:]]
    weight = random.choice((0.0, 1e-6, 1.0, 7.0, 60.0))
    cost = {
        (start, end): sent + taken + weight * instance.whole.hops_from(start)[end]
        for sent, start in senders
        for taken, end in takers
    }
    pair = cheapest_pair(senders, takers, weight, instance.whole.hops_from)
    assert cost[pair] == pytest.approx(min(cost.values()))


@pytest.mark.parametrize("shape", ["grid", "geometric"])
def test_many_brokers_without_room_to_spare_get_the_planted_plan(shape):
    """What brokers can run is just what the planted plan has them run, and no plan is cheaper."""
    document, least = planted(shape, 400, 400, 1)
    search = Search(Instance(lay_out(read_problem(document))), 1)
    best = search.run(lambda progress: progress.steps >= 2000)
    assert best.excess == 0
    assert best.flow == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize(("room", "goal"), [(1, 1), (0, 4)])
def test_a_piece_is_squeezed_in_where_another_makes_way(room, goal):
    """What runs at the full broker goes to the nearest with room, as the first may leave some."""
    capacities = dict(zip(NAMES, (1, room, 0, 0, 1), strict=True))
    nodes = [{"id": name, "capacity": capacity} for name, capacity in capacities.items()]
    context = context_of(CHAIN | {"nodes": nodes}, [0, 1], penalty=1e6)
    undo = Relieve.squeeze(context, 1, 0)
    assert context.evaluator.hosts == [goal, 0]
    assert not context.evaluator.loads.broken
    for change in reversed(undo):
        context.evaluator.undo(change)
    assert context.evaluator.hosts == [0, 1]


def test_what_costs_least_makes_way_at_a_full_broker():
    """Of two that run where a heavy stream begins, the one goes for which it matters less."""
    nodes = [{"id": name, "capacity": 2} for name in NAMES]
    contents = [
        {"id": name, "rates": {"a": rate}} for name, rate in (("H", 100), ("M", 20), ("L", 1))
    ]
    tasks = [{"id": f"T{c['id']}", "inputs": [c["id"]], "cost": 1, "rate": 0} for c in contents]
    document = CHAIN | {"nodes": nodes, "contents": contents, "tasks": tasks}
    context = context_of(document, [4, 0, 0], penalty=1e6)
    assert Eject().propose(context, 0)
    assert context.evaluator.hosts == [0, 0, 1]
    assert context.evaluator.flow == pytest.approx(1, abs=1e-3)
    assert Eject().propose(context, 0) == []  # nothing is cheaper than where it is
    assert context.evaluator.hosts == [0, 0, 1]


def test_all_that_streams_connect_at_a_broker_goes_together():
    """Of three in a chain of shared streams any two would leave a stream behind."""
    tasks = [
        {"id": name, "inputs": inputs, "cost": 1, "rate": 1, "destinations": ["a"]}
        for name, inputs in (("T", ["C"]), ("U", ["C", "D"]), ("V", ["D"]))
    ]
    contents = [{"id": name, "rates": {"a": 10}} for name in "CD"]
    context = context_of(CHAIN | {"contents": contents, "tasks": tasks}, [2, 2, 2])
    evaluator = context.evaluator
    whole = evaluator.delta([(0, 0), (1, 0), (2, 0)], 0.0)
    for pair in ((0, 1), (0, 2), (1, 2)):
        assert evaluator.delta([(piece, 0) for piece in pair], 0.0) > whole
    undo = Together().settle(context, 0)
    assert evaluator.hosts == [0, 0, 0]
    for change in reversed(undo):
        evaluator.undo(change)
    assert evaluator.hosts == [2, 2, 2]
