"""Who runs what nobody runs: homes, first hosts, and the header that all would elect."""

from random import Random

import pytest

from experiments.first_hosts import elect, homes_of, standing_hosts
from experiments.overlay import overlay
from experiments.trial import Trial
from planner.layout import Role, lay_out
from planner.problem import Content, Link, Mode, Node, Problem, Task
from planner.rounds.settings import Effort, Settings


def ring(makers: tuple[int, ...], wanted: int, rate: int = 10) -> Problem:
    """An aggregate over sources on a ring of eight brokers."""
    names = [f"b{n}" for n in range(8)]
    links = tuple(Link(names[n], names[(n + 1) % 8]) for n in range(8))
    content = Content("Env", {names[maker]: 100 for maker in makers})
    task = Task(
        "Mean",
        ("Env",),
        rate,
        Mode.AGGREGATE,
        cost=1,
        destinations=(names[wanted],),
        partial_rate=10,
        merge_cost=1,
    )
    return Problem(tuple(Node(name) for name in names), links, (content,), (task,))


@pytest.mark.parametrize("seed", range(10))
def test_the_elected_header_is_that_of_the_least_flow(seed: int) -> None:
    random = Random(seed)
    makers = tuple(sorted(random.sample(range(8), 3)))
    wanted, rate = random.randrange(8), random.choice((1, 10, 100))
    problem = ring(makers, wanted, rate)
    layout, tree = lay_out(problem), overlay(problem)
    flows = []
    for candidate in range(8):
        hops = tree.hops(candidate)
        flows.append(10 * sum(hops[maker] for maker in makers) + rate * hops[wanted])
    assert elect(layout, 0, makers, tree, range(8)) == flows.index(min(flows))
    assert elect(layout, 0, reversed(makers), tree, range(7, -1, -1)) == flows.index(min(flows))


def test_a_candidate_that_is_not_allowed_is_not_elected() -> None:
    problem = ring((1, 2), 0)
    layout, tree = lay_out(problem), overlay(problem)
    assert elect(layout, 0, (1, 2), tree, (5, 6)) in {5, 6}


@pytest.mark.parametrize("maker", [1, 3, 6])
def test_the_death_of_the_header_elects_another_and_results_go_on(maker: int) -> None:
    problem = ring((maker, (maker + 2) % 8), (maker + 1) % 8)
    trial = Trial(problem, Settings(radius=1, effort=Effort(total=20_000, at_once=20_000)), maker)
    trial.until_quiet()
    header = next(n for n, piece in enumerate(trial.layout.pieces) if piece.role is Role.HEADER)
    dead = trial.hosts[header]
    trial.die(dead)
    trial.until_quiet()
    assert trial.hosts[header] not in {-1, dead}
    assert trial.twice == []
    joined = [one for machine in trial.machines if machine.me != dead
              for one in machine.tables.joined]  # fmt: skip
    assert sum(one.toward < 0 for one in joined) == 1  # one header, and all know the way to it


def test_shards_and_partials_begin_at_their_origins_and_the_rest_at_home() -> None:
    problem = ring((2, 5), 7)
    layout, tree = lay_out(problem), overlay(problem)
    assert homes_of(layout) == [7, 7, 7]
    hosts, homes = standing_hosts(layout, tree, range(8), {})
    assert hosts[:2] == (2, 5)
    assert homes == (7, 7, 7)


def test_a_task_without_destination_has_the_home_of_who_consumes_it() -> None:
    names = ("a", "b", "c")
    links = (Link("a", "b"), Link("b", "c"))
    tasks = (
        Task("Inner", ("X",), 1),
        Task("Outer", ("Inner",), 1, destinations=("c", "a")),
    )
    problem = Problem(tuple(Node(n) for n in names), links, (Content("X", {"b": 5}),), tasks)
    assert homes_of(lay_out(problem)) == [2, 2]


def test_the_home_is_the_first_that_is_left_where_the_wanted_one_is_gone() -> None:
    layout = lay_out(ring((2, 5), 7))
    tree = overlay(layout.problem, gone=[7])
    part = list(tree.hops(3))
    assert standing_hosts(layout, tree, part, {0: 4})[1] == (0, 0, 0)
    assert standing_hosts(layout, tree, part, {0: 4})[0][:2] == (4, 5)
