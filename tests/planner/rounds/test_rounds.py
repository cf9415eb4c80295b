"""Planning in rounds: it ends, agrees with itself, and survives what happens to networks."""

import itertools
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from experiments.overlay import overlay
from experiments.trial import Amounts, Conditions, Trial, tables_of
from planner.flow import evaluate
from planner.layout import lay_out
from planner.network import Network
from planner.plan import Plan
from planner.problem import Content, Link, Node, Problem, Task
from planner.rounds.machine import Rounds
from planner.rounds.messages import Envelope, Reserve, Tell
from planner.rounds.settings import Effort, Settings
from planner.rounds.units import scaled
from planner.rounds.view import Ground, Summary
from tests.planner.rounds.networks import best_of_all, generated, placements, value

ROOT = Path(__file__).resolve().parents[3]
QUICK = Effort(total=20_000, at_once=20_000)


def quick(radius: int, price: float = 0.0) -> Settings:
    return Settings(radius=radius, price=price, effort=QUICK)


def assert_agreed(trial: Trial) -> None:
    """Everything is run once, and each broker's tables are those of that placement."""
    hosts = trial.hosts
    assert trial.twice == []
    assert -1 not in hosts
    laid = tables_of(trial.layout, trial.tree, hosts, trial.amounts)
    for number, machine in enumerate(trial.machines):
        if number in trial.gone:
            continue
        assert machine.quiet
        assert machine.tables.passing == laid[number].passing
        assert machine.tables.joined == laid[number].joined
        assert [one.piece for one in machine.tables.hosted] == [
            one.piece for one in laid[number].hosted
        ]


@pytest.mark.parametrize("seed", range(8))
def test_it_ends_with_every_piece_at_one_host(seed: int) -> None:
    random = Random(seed)
    problem = generated(random, random.randrange(3, 12), random.randrange(2, 10), (None, 4))
    conditions = Conditions(loss=0.2 if seed % 2 else 0.0)
    trial = Trial(problem, quick(1 + seed % 3), seed, conditions)
    trial.until_quiet()
    assert_agreed(trial)


@pytest.mark.parametrize("seed", range(4))
def test_every_turn_lessens_violation_or_flow_of_the_whole_network(seed: int) -> None:
    random = Random(100 + seed)
    problem = generated(random, 8, 7, (None, 3), (None, 2000))
    trial = Trial(problem, quick(2), seed, Conditions(loss=0.1))
    values = []
    agreed = -1
    while trial.step():
        count = sum(machine.agreed for machine in trial.machines)
        if (
            trial.standing
            and not any(machine.busy for machine in trial.machines)
            and count != agreed
        ):
            values.append(value(trial.layout, trial.hosts))
            agreed = count
    assert len(values) > 1
    for before, after in itertools.pairwise(values):
        assert after[0] < before[0] - 1e-9 or (
            after[0] <= before[0] + 1e-9 and after[1] < before[1]
        )


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    problem = generated(Random(5), 8, 8)

    def run(seed: int) -> tuple[object, ...]:
        trial = Trial(problem, quick(2), seed, Conditions(loss=0.1))
        trial.until_quiet()
        return trial.now, trial.moves, trial.hosts, trial.counts

    assert run(3) == run(3)
    assert run(3) != run(4)


@pytest.mark.parametrize("seed", range(6))
def test_with_all_in_view_tiny_networks_get_the_best_of_all_placements(seed: int) -> None:
    random = Random(seed)
    while True:
        problem = generated(random, random.randrange(3, 5), random.randrange(2, 4), (None, 3))
        if 3 < placements(problem) < 1500:
            break
    trial = Trial(problem, Settings(radius=9, price=0.0, gain=0.0), seed)
    trial.until_quiet()
    best = best_of_all(problem)
    assert value(trial.layout, trial.hosts) == pytest.approx(best)
    assert bool(trial.infeasible) == (best[0] > 0)


# --- farther than the vicinity ----------------------------------------------------------------


def line(count: int, *tasks: Task, capacities: dict[int, int], rate: int = 100) -> Problem:
    names = [f"b{n}" for n in range(count)]
    nodes = tuple(Node(name, capacities.get(n)) for n, name in enumerate(names))
    links = tuple(Link(a, b) for a, b in itertools.pairwise(names))
    return Problem(nodes, links, (Content("Video", {names[0]: rate}),), tasks)


def test_the_radius_widens_until_a_broker_with_room_is_found() -> None:
    task = Task("Face", ("Video",), 10, cost=5, destinations=("b0",))
    problem = line(7, task, capacities=dict.fromkeys(range(6), 1))
    trial = Trial(problem, quick(1), 1)
    trial.until_quiet()
    assert trial.hosts == [6]
    assert trial.infeasible == []
    assert_agreed(trial)


def test_it_says_where_no_plan_keeps_the_limits() -> None:
    task = Task("Face", ("Video",), 10, cost=5, destinations=("b0",))
    trial = Trial(line(5, task, capacities=dict.fromkeys(range(5), 1)), quick(1), 1)
    trial.until_quiet()
    assert trial.infeasible == trial.hosts
    assert_agreed(trial)


# --- other rates, and prices ------------------------------------------------------------------


def two_sources(rates: tuple[int, int]) -> Problem:
    names = ["left", "middle", "right"]
    links = (Link("left", "middle"), Link("middle", "right"))
    contents = (Content("A", {"left": rates[0]}), Content("B", {"right": rates[1]}))
    join = Task("Join", ("A", "B"), 10, destinations=("middle",))
    return Problem(tuple(Node(name) for name in names), links, contents, (join,))


def rerated(price: float, rates: list[int]) -> Trial:
    trial = Trial(two_sources((400, 100)), quick(2, price), 1)
    trial.until_quiet()
    for rate in rates:
        trial.rate({1: scaled(rate)})
        trial.until_quiet()
    return trial


def test_the_plan_follows_the_load() -> None:
    assert rerated(0.0, []).hosts == [0]
    assert rerated(0.0, [900]).hosts == [2]
    assert rerated(0.0, [900, 100]).hosts == [0]


def test_a_price_holds_back_what_does_not_pay_off() -> None:
    moved = rerated(0.0, [450, 100, 450, 100]).moves
    held = rerated(0.5, [450, 100, 450, 100]).moves
    assert len(moved) > len(held)
    assert rerated(0.5, [4500]).hosts == [2]


def test_nothing_moves_without_a_change() -> None:
    trial = rerated(0.0, [900])
    moves, messages = list(trial.moves), dict(trial.counts.messages)
    trial.rate({1: scaled(900)})
    trial.until_quiet()
    assert (trial.moves, trial.counts.messages) == (moves, messages)


# --- deaths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_what_a_dead_broker_ran_is_run_again_and_planned(seed: int) -> None:
    random = Random(seed)
    problem = generated(random, 8, 6, ring=True)
    trial = Trial(problem, quick(2), seed, Conditions(loss=0.1))
    trial.until_quiet()
    dead = random.choice(sorted(set(trial.hosts)))
    trial.die(dead)
    trial.until_quiet()
    assert dead not in trial.hosts
    assert_agreed(trial)
    trial.revive(dead)
    trial.until_quiet()
    assert_agreed(trial)


@pytest.mark.parametrize("moment", range(0, 100, 14))
def test_a_death_in_the_midst_of_turns_leaves_one_host_for_each_piece(moment: int) -> None:
    """The leader, an old host or a new one may die between promise and commit."""
    random = Random(moment)
    problem = generated(random, 7, 6, ring=True)
    trial = Trial(problem, quick(2), moment, Conditions(loss=0.1))
    while not any(machine.busy for machine in trial.machines):
        trial.step()
    for _ in range(moment % 30):
        trial.step()
    busy = [machine.me for machine in trial.machines if machine.busy]
    trial.die(random.choice(busy or [0]))
    trial.until_quiet()
    assert_agreed(trial)


def test_a_link_that_parts_the_network_gives_each_part_its_own_hosts_and_one_when_it_is_back() -> (
    None
):
    trial = Trial(two_sources((400, 100)), quick(2), 1)
    trial.until_quiet()
    trial.cut_link(0, 1)
    trial.until_quiet()
    assert trial.twice == [0]  # neither part can know of the other
    trial.mend_link(0, 1)
    trial.until_quiet()
    assert_agreed(trial)


def test_the_account_of_the_tables_is_the_planners() -> None:
    problem = generated(Random(9), 9, 8)
    trial = Trial(problem, quick(3), 2)
    trial.until_quiet()
    carried = sum(
        one.rate * len(one.down) for machine in trial.machines for one in machine.tables.passing
    )
    carried += sum(
        one.rate * (one.own + sum(count for _, count in one.come))
        for machine in trial.machines
        for one in machine.tables.joined
        if one.toward >= 0
    )
    flow = evaluate(trial.layout, Plan(tuple(trial.hosts)), Network.of(problem)).flow
    assert carried == scaled(flow)


def test_nobody_plans_with_a_broker_in_view_whose_last_word_is_not_understood() -> None:
    problem = two_sources((400, 100))
    layout, tree = lay_out(problem), overlay(problem)
    tables = tables_of(layout, tree, (1,), Amounts(layout))
    around = {n: Summary(n, 7, 1, None, None, tables[n]) for n in (1, 2)}
    leader = Rounds(0, quick(2), Random(1))
    leader.stand(7, Ground(0, layout, tree, tables[0], {1: around[1]}, (2,)), 0)
    asked = [leader.wake(now) for now in range(0, 10_000, 500)]
    assert not any(asked)
    leader.receive(Envelope(7, 2, 0, Tell(around[2], 0)), 10_000)
    asked = [leader.wake(now) for now in range(10_000, 20_000, 500)]
    assert any(isinstance(one.envelope.body, Reserve) for out in asked for one in out)


# --- other tasks ----------------------------------------------------------------------------------


def test_new_tasks_find_hosts_and_those_that_run_stay_where_they_are() -> None:
    first = Task("Face", ("Video",), 10, cost=1, destinations=("b4",))
    second = Task("Body", ("Video",), 10, cost=1, destinations=("b3",))
    trial = Trial(line(5, first, capacities={}), quick(2), 1)
    trial.until_quiet()
    assert trial.hosts == [0]
    moves = len(trial.moves)
    trial.ask(line(5, second, first, capacities={}))  # the first has another number now
    trial.until_quiet()
    assert trial.hosts == [0, 0]
    assert {piece for _, piece, _ in trial.moves[moves:]} == {0}
    assert_agreed(trial)
    trial.ask(line(5, second, capacities={}))
    trial.until_quiet()
    assert trial.hosts == [0]
    assert_agreed(trial)


def test_the_machines_need_no_heavy_library() -> None:
    """A coordinator runs where memory is scarce."""
    script = "import planner.rounds.machine, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    assert "planner.rounds.machine" in loaded
    assert not {"numpy", "networkx", "highspy", "lark", "asyncio"} & set(loaded)


# --- draining -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_drained_broker_gets_rid_of_everything_and_takes_nothing_up(seed: int) -> None:
    random = Random(seed)
    problem = generated(random, 8, 7, ring=True)
    trial = Trial(problem, quick(1 + seed % 3), seed)
    trial.until_quiet()
    full = random.choice(sorted(set(trial.hosts)))
    trial.drain(full)
    trial.until_quiet()
    assert full not in trial.hosts
    assert trial.infeasible == []
    assert_agreed(trial)
    moves = len(trial.moves)
    stream = random.randrange(len(trial.layout.streams))
    trial.rate({stream: scaled(5000)})
    trial.until_quiet()
    assert full not in {broker for _, _, broker in trial.moves[moves:]}
    trial.drain(full, drained=False)
    trial.until_quiet()
    assert_agreed(trial)


def test_a_drained_broker_says_so_where_nobody_else_may_run_its_task() -> None:
    task = Task("Face", ("Video",), 10, destinations=("b0",), hosts=("b2",))
    trial = Trial(line(5, task, capacities={}), quick(2), 1)
    trial.until_quiet()
    trial.drain(2)
    trial.until_quiet()
    assert trial.hosts == [2]
    assert trial.infeasible == [2]


@pytest.mark.parametrize("moment", range(0, 60, 12))
def test_draining_in_the_midst_of_turns_is_not_forgotten(moment: int) -> None:
    trial = Trial(generated(Random(moment), 7, 6, ring=True), quick(2), moment)
    while not any(machine.busy for machine in trial.machines):
        trial.step()
    for _ in range(moment % 20):
        trial.step()
    busy = [machine.me for machine in trial.machines if machine.busy]
    trial.drain(busy[0] if busy else 0)
    trial.until_quiet()
    assert (busy[0] if busy else 0) not in trial.hosts
    assert_agreed(trial)
