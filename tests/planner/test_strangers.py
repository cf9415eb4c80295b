"""The search on problems that are strange to it, each with a plan that keeps all limits."""

import pytest

from headwater.placement.plan_document import as_document, read_plan
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import after_steps, at_first
from tests.oracles import placement as oracle
from tests.planner.strangers import NETWORKS, TASKS, strange, strangers


def found_in(stranger, steps, seed=1):
    """The document of the plan that keeps all limits after so many steps at most."""
    layout = lay_out(read_problem(stranger.document))
    search = Search(Instance(layout), seed)
    search.run(at_first(after_steps(steps), lambda progress: progress.feasible))
    return as_document(layout, as_plan(search.instance, search.best))


def test_networks_are_joined_and_have_no_link_twice_and_all_families_are_met():
    met = {tuple(one.name.split(",")[0].split("/")) for one in strangers(110)}
    assert met == {(network, tasks) for network in NETWORKS for tasks in TASKS}
    for network in NETWORKS:
        for seed in range(5):
            document = strange(network, "equal", 0.5, seed, (3, 20)).document
            links = [(link["a"], link["b"]) for link in document["links"]]
            assert len({frozenset(link) for link in links}) == len(links)
            assert all(a != b for a, b in links)
            both = [*links, *((b, a) for a, b in links)]
            names = {node["id"] for node in document["nodes"]}
            assert oracle.reach(document["nodes"][0]["id"], both) == names


@pytest.mark.parametrize("seed", range(0, 110, 10))
def test_a_planted_plan_comes_to_the_same_to_whoever_judges_it(seed):
    (one,) = strangers(1, seed)
    layout = lay_out(read_problem(one.document))
    found = evaluate(layout, read_plan(one.planted, layout))
    assert float(found.flow) == pytest.approx(float(one.flow))
    assert found.feasible


def left_without(problems, steps):
    """The names of those for which no plan is found that the oracle finds to keep all limits."""
    return [one.name for one in problems if not oracle.judge(one.document, found_in(one, steps))[1]]


@pytest.mark.long
def test_of_plans_that_strangers_planted_at_most_one_is_not_found_soon():
    left = left_without(strangers(22, nodes=(10, 16)), 8000)
    assert len(left) <= 1, left


@pytest.mark.long
@pytest.mark.timeout(900)
def test_of_plans_on_more_brokers_with_less_room_few_are_not_found():
    left = left_without(strangers(110, 100, rooms=(0.0, 0.02, 0.1)), 16_000)
    assert len(left) <= 5, left


def test_small_moves_find_room_where_brokers_alone_are_limited():
    (one,) = strangers(1, 148, rooms=(0.0,))
    assert "brokers + 0%" in one.name
    assert left_without([one], 8000) == []


def test_a_plan_without_room_is_improved_whatever_the_first_was():
    """Descents alone stay with the plan that was found first: another by each seed."""
    (one,) = strangers(1, 5016, (10, 14))
    assert "all + 0%" in one.name
    layout = lay_out(read_problem(one.document))
    flows = set()
    for seed in (1, 2):
        search = Search(Instance(layout), seed)
        plan = as_plan(search.instance, search.run(after_steps(10_000)))
        flow, good = oracle.judge(one.document, as_document(layout, plan))
        assert good
        flows.add(flow)
    assert len(flows) == 1, flows
