"""Tabu search in `planner.search`: which move it makes, and what it forbids afterwards."""

from random import Random

import pytest

from planner.document import read_problem
from planner.layout import lay_out
from planner.search.context import MoveContext
from planner.search.evaluator import Evaluator
from planner.search.instance import Instance
from planner.search.params import SearchParams
from planner.search.tabu import TENURE_MIN, TENURE_SPREAD, TabuSearch
from tests.planner.strangers import strangers

LINE = {
    "nodes": [{"id": "a"}, {"id": "b"}],
    "links": [{"a": "a", "b": "b"}],
    "contents": [{"id": "C", "rates": {"a": 5}}],
    "tasks": [{"id": "T", "inputs": ["C"], "rate": 1}],
}


def tabu_on(document, hosts, penalty):
    instance = Instance(lay_out(read_problem(document)))
    context = MoveContext(Evaluator(instance, hosts, check=True), Random(1), SearchParams())
    context.penalty = penalty
    tabu = TabuSearch(context)
    tabu.restart()
    return tabu, context.evaluator


def test_a_step_does_not_overload_a_broker_where_that_is_dear():
    document = {
        "nodes": [{"id": "a", "capacity": 4}, {"id": "b", "capacity": 9}, {"id": "c"}],
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 100}}],
        "tasks": [{"id": "T", "inputs": ["C"], "cost": 5, "rate": 9, "destinations": ["a"]}],
    }
    for penalty, host in ((1e6, 2), (1.0, 0)):
        tabu, evaluator = tabu_on(document, [1], penalty)
        assert tabu.step() == "relocate"
        assert evaluator.hosts == [host]


def test_a_piece_does_not_return_at_once_to_where_it_left():
    """It leaves the cheaper broker, as there is no other move, and comes back after its tenure."""
    tabu, evaluator = tabu_on(LINE, [0], 1.0)
    hosts = []
    for _ in range(TENURE_MIN + TENURE_SPREAD + 1):
        tabu.step()
        hosts.append(evaluator.hosts[0])
    assert hosts[: TENURE_MIN + 1] == [1] * (TENURE_MIN + 1)
    assert hosts[-1] == 0


def test_a_limit_that_no_move_keeps_does_not_cost_more_and_more_for_ever():
    """An infinite penalty would leave no difference between moves, and none to choose."""
    full = LINE | {"nodes": [{"id": "a", "capacity": 1}, {"id": "b", "capacity": 2}]}
    full |= {"tasks": [{"id": "T", "inputs": ["C"], "cost": 9, "rate": 1}]}
    tabu, _ = tabu_on(full, [0], 1.0)
    kinds = [tabu.step() for _ in range(12_000)]
    assert set(kinds) == {"", "relocate"}
    assert tabu.context.penalty < 1e9


def test_two_pieces_change_places_where_neither_has_room_elsewhere():
    tasks = [
        {"id": task, "inputs": [content], "cost": 1, "rate": 0}
        for task, content in (("T", "C"), ("U", "D"))
    ]
    document = LINE | {
        "nodes": [{"id": "a", "capacity": 1}, {"id": "b", "capacity": 1}],
        "contents": [{"id": "C", "rates": {"a": 5}}, {"id": "D", "rates": {"b": 7}}],
        "tasks": tasks,
    }
    tabu, evaluator = tabu_on(document, [1, 0], 1e6)
    assert tabu.step() == "swap"
    assert (evaluator.hosts, evaluator.loads.broken) == ([0, 1], {})


@pytest.mark.parametrize("number", [1, 2, 4, 9])
def test_the_rows_that_are_kept_are_those_of_the_placement_at_hand(number):
    (problem,) = strangers(1, number, (10, 12))
    instance = Instance(lay_out(read_problem(problem.document)))
    tabu, evaluator = tabu_on(problem.document, [hosts[0] for hosts in instance.hosts], 1e3)
    for _ in range(20):
        tabu.step()
        for piece in range(instance.pieces):
            ascending, by_host = tabu._row(piece)
            expected = evaluator.row((piece,), instance.hosts[piece])
            assert [by_host[host] for host in instance.hosts[piece]] == pytest.approx(expected)
            assert ascending == sorted(ascending)
