"""The paper's tables on the planner: groups, loss by hand, and what a laboratory sends."""

import pytest

from experiments.placing import (
    HOME,
    LABORATORY,
    WINDOW_S,
    come_to,
    example,
    group_rows,
    lost_share,
    outward,
    planned,
    sent,
    settled,
)
from planner.document import read_problem


def line(rate, hosts):
    """Three brokers in a row; what enters at the first is wanted at the last."""
    return read_problem(
        {
            "nodes": [{"id": name} for name in "abc"],
            "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
            "contents": [{"id": "x", "rates": {"a": rate}}],
            "tasks": [{"id": "t", "inputs": ["x"], "rate": rate / 10, "destinations": ["c"]}],
        }
    ), hosts


def test_nine_groups_may_part_and_each_task_is_on_one_side():
    rows = list(group_rows())
    assert len(rows) == 9
    names = {name for _, group, _ in rows for name in group.split(" + ")}
    assert names == {"Video", "Motion", "Face", "Body", "FaceLabel", "ActLabel"}
    for _, group, rest in rows:
        taken = group.split(" + ")
        left = [name for part in rest.split("; ") for name in part.split(" + ")]
        assert len({*taken, *left}) == len(taken) + len(left) == 9


def test_a_packet_is_lost_on_any_of_its_links():
    problem, hosts = line(100.0, (0,))  # the task runs at a: a tenth goes over both links
    assert lost_share(problem, hosts, float("inf"), 0.1) == pytest.approx(1 - 0.9**2)
    assert lost_share(problem, hosts, float("inf"), 0.0) == 0.0


def test_a_full_link_loses_what_is_too_much_and_the_next_gets_the_rest():
    problem, hosts = line(100.0, (2,))  # all of it goes over both links
    assert lost_share(problem, hosts, 100.0, 0.0) == 0.0
    assert lost_share(problem, hosts, 25.0, 0.0) == pytest.approx(0.75)
    problem, hosts = line(100.0, (0,))
    assert lost_share(problem, hosts, 25.0, 0.0) == 0.0


def test_links_of_a_tree_are_told_outward():
    links = [(3, 4), (1, 2), (0, 1), (1, 3)]
    assert outward(0, links) == [(0, 1), (1, 2), (1, 3), (3, 4)]


def test_what_the_brokers_send_is_the_flow():
    evaluation = planned(LABORATORY, "hop")[1]
    brokers = range(len(example(LABORATORY).nodes))
    whole = sum(sent(evaluation, broker) for broker in brokers)
    assert whole == pytest.approx(WINDOW_S * float(evaluation.flow))


def test_a_small_radius_is_enough_in_the_nursing_home():
    assert come_to(settled(HOME, 1)).flow <= planned(HOME, "hop")[1].flow
    assert planned(HOME, "central")[1].flow > 6 * come_to(settled(HOME, 1)).flow
