"""What a row promises, what a move changes, and that undoing it leaves nothing behind."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.placement.plan_document import as_document
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.plan import Plan
from planner.search.evaluator import Evaluator
from planner.search.instance import Instance
from planner.search.search import BestPlan, as_plan
from tests.oracles import placement as oracle
from tests.planner.problems import documents


def drawn(document, data):
    instance = Instance(lay_out(read_problem(document)))
    hosts = [data.draw(st.sampled_from(piece.hosts)) for piece in instance.layout.pieces]
    return Evaluator(instance, hosts, check=True)


def moves_of(evaluator, data):
    instance = evaluator.instance
    pieces = st.integers(0, instance.pieces - 1)
    chosen = data.draw(st.lists(pieces, min_size=1, max_size=3, unique=True))
    return [(piece, data.draw(st.sampled_from(instance.hosts[piece]))) for piece in chosen]


def tidied(document):
    """Streams without a rate cost a trifle in a search, so that they arrive: not here."""
    for content in document["contents"]:
        content["rates"] = {key: rate + 1 for key, rate in content["rates"].items()}
    for task in document["tasks"]:
        rate = task["rate"]
        task["rate"] = {k: r + 1 for k, r in rate.items()} if isinstance(rate, dict) else rate + 1
        if "partial_rate" in task:
            task["partial_rate"] += 1
    return document


def judged(evaluator):
    """Return what the plan of the placement at hand comes to."""
    hosts, trees = evaluator.snapshot()
    best = BestPlan(evaluator.flow, evaluator.excess(), tuple(hosts), trees)
    return evaluate(evaluator.instance.layout, as_plan(evaluator.instance, best))


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_a_row_is_what_each_move_comes_to(document, data):
    evaluator = drawn(document, data)
    instance = evaluator.instance
    if not instance.pieces:
        return
    piece = data.draw(st.integers(0, instance.pieces - 1))
    here = evaluator.hosts[piece]
    now, *row = evaluator.row((piece,), [here, *instance.hosts[piece]])
    for value, host in zip(row, instance.hosts[piece], strict=True):
        assert value - now == pytest.approx(evaluator.delta([(piece, host)], 0.0))


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_a_row_of_several_is_what_moving_them_together_comes_to(document, data):
    evaluator = drawn(document, data)
    instance = evaluator.instance
    if instance.pieces < 2:
        return
    pieces = st.integers(0, instance.pieces - 1)
    group = tuple(data.draw(st.lists(pieces, min_size=2, max_size=3, unique=True)))
    evaluator.apply([(piece, evaluator.hosts[group[0]]) for piece in group])
    now, *row = evaluator.row(group, [evaluator.hosts[group[0]], *range(instance.nodes)])
    for host, value in enumerate(row):
        change = evaluator.delta([(piece, host) for piece in group], 0.0)
        assert value - now == pytest.approx(change)


@given(document=documents(limited=True).map(tidied), data=st.data())
@settings(max_examples=60)
def test_a_move_changes_the_cost_by_its_delta_and_undoing_restores_all(document, data):
    evaluator = drawn(document, data)
    if not evaluator.instance.pieces:
        return
    for _ in range(3):
        moves, penalty = moves_of(evaluator, data), data.draw(st.sampled_from([0.0, 1.0, 1e4]))
        hosts, flow, loads = list(evaluator.hosts), evaluator.flow, list(evaluator.loads.loads)
        broken, before = dict(evaluator.loads.broken), evaluator.cost(penalty)
        promised = evaluator.delta(moves, penalty)
        assert evaluator.hosts == hosts
        assert evaluator.flow == flow
        assert evaluator.loads.loads == pytest.approx(loads)
        assert evaluator.loads.broken == pytest.approx(broken)
        evaluator.apply(moves)
        assert evaluator.cost(penalty) - before == pytest.approx(promised)


@given(documents(limited=True).map(tidied), st.data(), st.integers(0, 99))
@settings(max_examples=60)
def test_flow_and_excess_are_those_of_the_plan_with_ends_in_any_order(document, data, seed):
    evaluator = drawn(document, data)
    if not evaluator.instance.pieces:
        return
    for order in (None, Random(seed)):
        streams = list(range(len(evaluator.instance.flows)))
        evaluator.apply(moves_of(evaluator, data), streams, order)
        found = judged(evaluator)
        assert evaluator.flow == pytest.approx(float(found.flow))
        assert evaluator.excess() == pytest.approx(float(found.excess))


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_without_limits_the_flow_is_the_least_that_routes_can_reach(document, data):
    """On so few brokers: no choice of links that reaches all targets is cheaper."""
    evaluator = drawn(document, data)
    layout = evaluator.instance.layout
    placement = as_document(layout, Plan(tuple(evaluator.hosts)))["placement"]
    for name, _, source, targets in oracle.streams_of(document, placement):
        if targets and not name.count("/partial@"):
            number = next(n for n, s in enumerate(layout.streams) if s.name == name)
            assert evaluator.laid[number].links == steiner(document, source, targets)


def steiner(document, source, targets):
    """The fewest links that join a source to its targets: joined sets of brokers, less one."""
    ids = [node["id"] for node in document["nodes"]]
    linked = {frozenset((x["a"], x["b"])) for x in document["links"]}
    best = len(ids)
    for mask in range(1 << len(ids)):
        chosen = {name for i, name in enumerate(ids) if mask >> i & 1}
        if {source, *targets} <= chosen and len(chosen) - 1 < best:
            inner = [(a, b) for a in chosen for b in chosen if frozenset((a, b)) in linked]
            if oracle.reach(source, inner) >= chosen:
                best = len(chosen) - 1
    return best


def test_a_limit_names_the_streams_that_take_it_and_no_others():
    document = {
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        "links": [{"a": "a", "b": "b", "capacity": 9}, {"a": "b", "b": "c", "capacity": 9}],
        "contents": [{"id": "C", "rates": {"a": 2}}, {"id": "D", "rates": {"b": 3}}],
        "tasks": [
            {"id": "T", "inputs": ["C"], "rate": 1},
            {"id": "U", "inputs": ["D"], "rate": 1},
        ],
    }
    instance = Instance(lay_out(read_problem(document)))
    evaluator = Evaluator(instance, [2, 2], check=True)
    ab, bc = (instance.numbers[arc] for arc in ((0, 1), (1, 2)))
    users = evaluator.loads.users
    assert (list(users[ab]), len(users[bc])) == ([0], 2)
    evaluator.apply([(0, 0)])
    assert (list(users[ab]), len(users[bc])) == ([], 1)


def test_a_target_is_missed_rather_than_reached_over_a_full_link_where_that_is_wanted():
    document = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "links": [{"a": "a", "b": "b", "capacity": 1}],
        "contents": [{"id": "C", "rates": {"a": 5}}],
        "tasks": [{"id": "T", "inputs": ["C"], "rate": 1}],
    }
    evaluator = Evaluator(Instance(lay_out(read_problem(document))), [0], check=True)
    assert evaluator.delta([(0, 1)], 1.0) == 5.0 + 4.0  # five over a link of one: four times it
    evaluator.builder.strict = True
    assert evaluator.delta([(0, 1)], 1.0) == 1000.0  # as what is not delivered counts
