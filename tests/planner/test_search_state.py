"""Moves: what a row promises, what a move changes, and that undoing it leaves nothing behind."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.generate import links
from planner.flow import as_document, evaluate, over
from planner.layout import lay_out
from planner.plan import Plan
from planner.reading import read_problem
from planner.search import metric
from planner.search.loaded import LoadedState
from planner.search.model import Model
from planner.search.run import Best, as_plan
from planner.search.state import Limits, State
from tests.oracles import placement as oracle
from tests.planner.problems import documents


def drawn(document, data, kind=State):
    model = Model(lay_out(read_problem(document)))
    hosts = [data.draw(st.sampled_from(piece.hosts)) for piece in model.layout.pieces]
    return kind(model, hosts)


def moves_of(state, data):
    pieces = st.integers(0, state.model.pieces - 1)
    chosen = data.draw(st.lists(pieces, min_size=1, max_size=3, unique=True))
    return [(p, data.draw(st.sampled_from(state.model.layout.pieces[p].hosts))) for p in chosen]


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


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_a_row_is_what_each_move_comes_to(document, data):
    state = drawn(document, data)
    if not state.model.pieces:
        return
    piece = data.draw(st.integers(0, state.model.pieces - 1))
    row = state.row((piece,))
    assert row[state.hosts[piece]] == pytest.approx(state.present((piece,)))
    for host in state.model.layout.pieces[piece].hosts:
        change = state.delta([(piece, host)])
        assert row[host] - row[state.hosts[piece]] == pytest.approx(change)


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_a_row_of_several_is_what_moving_them_together_comes_to(document, data):
    state = drawn(document, data)
    if state.model.pieces < 2:
        return
    pieces = st.integers(0, state.model.pieces - 1)
    group = tuple(data.draw(st.lists(pieces, min_size=2, max_size=3, unique=True)))
    row, now = state.row(group), state.present(group)
    for host in range(state.model.nodes):
        change = state.delta([(piece, host) for piece in group])
        assert row[host] - now == pytest.approx(change)


@pytest.mark.parametrize("kind", [State, LoadedState])
@given(document=documents(limited=True).map(tidied), data=st.data())
@settings(max_examples=40)
def test_a_move_changes_the_flow_by_its_delta_and_undoing_restores_all(kind, document, data):
    state = drawn(document, data, kind)
    if not state.model.pieces:
        return
    for _ in range(3):
        moves = moves_of(state, data)
        hosts, flow, work = list(state.hosts), state.flow, state.work.copy()
        promised = state.delta(moves)
        assert state.hosts == hosts
        assert state.flow == pytest.approx(flow)
        assert np.allclose(state.work, work)
        assert state.apply(moves) == pytest.approx(promised)
        fresh = State(state.model, state.hosts)
        assert np.allclose(state.work, fresh.work)
        if kind is State:
            assert state.flow == pytest.approx(fresh.flow)


@given(documents(limited=True).map(tidied), st.data())
@settings(max_examples=60)
def test_trees_and_loads_are_those_that_the_plan_is_charged(document, data):
    """Where all limits of links are kept, the search's flow is the plan's."""
    state = drawn(document, data, LoadedState)
    if not state.model.pieces:
        return
    for _ in range(2):
        state.apply(moves_of(state, data))
        state.relax()
    model = state.model
    best = Best(0.0, 0.0, tuple(state.hosts), state.named_trees())
    found = evaluate(model.layout, as_plan(model, best))
    links = [v for v in found.violations if v.kind in {"link", "egress", "unreached"}]
    assert bool(links) == (state.overload() > 0 or state.flow > 1e6)
    if not links:
        assert state.flow == pytest.approx(float(found.flow))


@given(documents(limited=False).map(tidied), st.data())
@settings(max_examples=60)
def test_without_limits_the_flow_is_the_least_that_routes_can_reach(document, data):
    """On so few brokers: no choice of links that reaches all targets is cheaper."""
    state = drawn(document, data)
    model = state.model
    plan = Plan(tuple(state.hosts))
    for name, rate, source, targets in oracle.streams_of(
        document, as_document(model.layout, plan)["placement"]
    ):
        if targets and not name.count("/partial@"):
            number = next(n for n, s in enumerate(model.layout.streams) if s.name == name)
            least = steiner(document, source, targets)
            assert state.costs[number] == pytest.approx(rate * least)


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


@given(st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9)), min_size=1))
def test_excess_is_told_as_the_flow_tells_it(pairs):
    work = np.array([float(load) for load, _ in pairs])
    capacity = np.array([np.inf if limit is None else float(limit) for _, limit in pairs])
    expected = [0.0 if limit is None else over(load, limit) for load, limit in pairs]
    assert Limits(capacity).excess(work).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("shape", ["grid", "geometric", "tree"])
def test_all_ways_to_count_hops_agree(monkeypatch, shape):
    random = Random(3)
    some = [(a, b) for a, b in links(shape, 90, random) if random.random() < 0.9]
    ways = {arc: 1.0 for a, b in some for arc in ((a, b), (b, a)) if random.random() < 0.95}
    floyd = metric.Metric(90, ways, 1).distance
    monkeypatch.setattr(metric, "FLOYD_NODES_MAX", 0)
    assert (metric.Metric(90, ways, 1).distance == floyd).all()
    monkeypatch.setattr(metric, "RINGS_DEGREE_MIN", 100)
    assert (metric.Metric(90, ways, 1).distance == floyd).all()
