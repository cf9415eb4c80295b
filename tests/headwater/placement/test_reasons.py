"""Why limits are broken is told with the key, by how much, and what would mend it."""

import copy

import pytest

from headwater.placement.reasons import hopeless, reasons
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.methods import Wanted, find
from planner.plan import Plan
from tests.planner.problems import EXAMPLE
from tests.planner.tight import tight


def changed(document, path, value):
    """The document with another value at a path such as `nodes[0].capacity`."""
    later = copy.deepcopy(document)
    *steps, last = path.replace("[", ".").replace("]", "").split(".")
    place = later
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return later


def line(**limits):
    nodes = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    for name, capacity in limits.items():
        nodes["abc".index(name)]["capacity"] = capacity
    return {
        "nodes": nodes,
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 8}}],
        "tasks": [
            {"id": "T", "inputs": ["C"], "cost": 5, "rate": 2, "destinations": ["c"]},
            {"id": "U", "inputs": ["C"], "cost": 3, "rate": 1, "destinations": ["c"]},
        ],
    }


def told(document, hosts):
    layout = lay_out(read_problem(document))
    plan = Plan(hosts)
    return reasons(layout, plan, evaluate(layout, plan))


def test_a_task_that_no_broker_can_hold_is_told_before_any_search():
    (sentence,) = hopeless(lay_out(read_problem(line(a=3, b=4, c=3))))
    assert sentence.startswith("tasks[0].cost: T costs 5, which is 1 more than b bears")
    assert "raise nodes[1].capacity to 5" in sentence


def test_more_work_than_all_brokers_bear_is_told_before_any_search():
    (sentence,) = hopeless(lay_out(read_problem(line(a=0, b=5, c=2))))
    assert sentence == (
        "nodes: all tasks cost 8 together, which is 1 more than the 7 that all brokers bear"
    )


def test_only_brokers_that_a_task_may_run_at_count():
    document = changed(line(a=9, b=4, c=9), "tasks[0].hosts", ["b"])
    (sentence,) = hopeless(lay_out(read_problem(document)))
    assert "b bears, the roomiest broker" in sentence


@pytest.mark.parametrize(
    ("task", "key"),
    [
        ({"mode": "aggregate", "partial_rate": 1, "merge_cost": 9}, "tasks[0].merge_cost"),
        ({"mode": "aggregate", "partial_rate": 1, "cost": {"a": 9}}, "tasks[0].cost.a"),
        ({"mode": "sharded", "cost": {"a": 9}}, "tasks[0].cost.a"),
        ({"mode": "sharded", "cost": 9}, "tasks[0].cost"),
    ],
)
def test_the_key_is_the_one_that_gives_the_cost(task, key):
    """A header is paid for by another key than partials, and a shard may have a cost by itself."""
    document = line(a=3, b=8, c=3)
    document["tasks"] = [{"id": "T", "inputs": ["C"], "rate": 2} | task]
    (sentence,) = hopeless(lay_out(read_problem(document)))
    assert sentence.startswith(f"{key}: T")
    assert "costs 9, which is 1 more than b bears" in sentence


def test_what_may_run_at_one_broker_alone_and_is_too_much_there_is_told():
    """All brokers together bear it, and each piece alone would fit."""
    document = line(a=9, b=7, c=9)
    document["tasks"] = [task | {"hosts": ["b"]} for task in document["tasks"]]
    (sentence,) = hopeless(lay_out(read_problem(document)))
    assert sentence == (
        "nodes[1].capacity: what may run at b alone costs 8 together, which is 1 more than b bears:"
        " raise it to 8, or allow other hosts"
    )


@pytest.mark.parametrize("document", [EXAMPLE, line(), line(a=5, b=3), line(a=5, b=3, c=0)])
def test_what_has_a_plan_is_not_called_hopeless(document):
    assert hopeless(lay_out(read_problem(document))) == []


@pytest.mark.parametrize("seed", range(40))
def test_hopeless_is_said_only_where_no_plan_is_found(seed):
    layout = lay_out(read_problem(tight(seed)))
    if hopeless(layout):
        assert not find(layout, Wanted(steps=60)).evaluation.feasible


def test_a_broker_that_runs_too_much_is_told_with_who_could_take_what():
    (reason,) = told(line(a=6, b=3), (0, 0))
    assert (reason.key, reason.beyond) == ("nodes[0].capacity", 2)
    assert "raise it to 8, or see whether c can do with U, which costs 3" in reason.remedy


def test_a_broker_that_a_task_may_not_run_at_is_proposed_with_that_remark():
    document = changed(line(a=6, b=3), "tasks[1].hosts", ["a", "b"])
    (reason,) = told(document, (0, 0))
    assert "c (not among the hosts of its task)" in reason.remedy


def test_nobody_is_proposed_where_nobody_has_room():
    (reason,) = told(line(a=6, b=2, c=2), (0, 0))
    assert reason.remedy == "raise it to 8"


def test_a_full_link_is_told_with_what_most_of_it_is():
    document = changed(line(), "links[1].capacity", 7)
    (reason,) = told(document, (2, 2))
    assert (reason.key, reason.beyond) == ("links[1].capacity", 1)
    assert reason.remedy == "raise it to 8; most of it is C@a (8)"
    assert str(reason).startswith("b->c carries 8 of at most 7 (links[1].capacity); ")


def test_a_broker_that_sends_too_much_is_told_with_its_streams():
    document = changed(line(), "nodes[0].egress", 2)
    (reason,) = told(document, (0, 0))
    assert (reason.key, reason.beyond) == ("nodes[0].egress", 1)
    assert reason.remedy == "raise it to 3; most of it is T (2) and U (1)"


def test_a_broker_that_no_way_leads_to_is_told():
    document = changed(line(), "links", [{"a": "a", "b": "b"}])
    told_of = told(document, (0, 0))
    assert {reason.key for reason in told_of} == {"links"}
    assert all("link c with the part" in reason.remedy for reason in told_of)


def test_a_task_at_a_broker_that_it_must_not_run_at_is_told():
    document = changed(line(), "tasks[0].hosts", ["b"])
    (reason,) = told(document, (0, 0))
    assert reason.key == "tasks[].hosts"


def test_there_is_a_reason_for_each_broken_limit():
    """Whatever breaks, in the order in which the plan tells its violations."""
    for seed in range(30):
        layout = lay_out(read_problem(tight(seed)))
        found = find(layout, Wanted("central" if layout.problem.server else "greedy"))
        given = reasons(layout, found.plan, found.evaluation)
        sentences = [violation.sentence for violation in found.evaluation.violations]
        assert [reason.sentence for reason in given] == sentences
