"""Brokers that decide together where tasks run: to its end, once, and as the load has it."""

from itertools import pairwise
from random import Random

import pytest

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.statement import Measured, encoded
from broker.network.overlay.tree import Tree
from tests.broker.core.coordinator.town import Town, best, drawn

LINE = [(0, 1), (1, 2), (2, 3), (3, 4)]
QUIET_S = 60  # twice what the slowest of these networks takes
LOOK_S = 20  # and once more, where one has just begun to look
LONG_S = 300


def settled(town: Town, seconds: float = QUIET_S) -> Town:
    """After so long; or soon after, where a look is just being taken."""
    town.run(seconds)
    for _ in range(LOOK_S):
        if town.quiet:
            break
        town.run(1)
    assert town.quiet
    return town


def hosts(town: Town) -> dict[str, str]:
    return {key: job.host for key, job in town.jobs.items()}


def check_sound(town: Town) -> None:
    """What must hold in any network that is quiet: one view, no word that could not be."""
    coordinators = [house.coordinator for house in town.alive]
    assert len({one.epoch for one in coordinators}) == 1
    for one in coordinators:
        assert one.counts["words_malformed"] == one.counts["words_lost"] == 0
        assert one.laid is not None
    for house in town.alive:
        assert house.counts["frames_malformed"] == 0
    for one in coordinators:  # what the rounds agree on is what is
        for piece, broker in one.rounds.hosts.items():
            assert one.laid is not None
            home, key = one.laid.pieces[piece]
            assert home == one.me
            assert town.jobs[key].host == one.laid.names[broker]


def line(a: float, b: float) -> Town:
    """One task in the middle of a line, whose inputs come in at its ends."""
    town = Town(1, 5, LINE, {("b0", "A"): a, ("b4", "B"): b})
    town.submit("b2", {("b0", "A"): 1.0, ("b4", "B"): 1.0})
    return town


@pytest.mark.parametrize("seed", range(2))
def test_a_network_becomes_quiet_near_the_best_plan_and_stays_as_it_is(seed: int) -> None:
    town = settled(drawn(seed))
    check_sound(town)
    _, least = best(town)
    at_home = town.flow({key: job.home for key, job in town.jobs.items()})
    assert town.flow() <= 1.15 * least  # a move has to gain its price, 0.1 of the inputs
    assert town.flow() < at_home
    moves, words = town.moves, town.words
    town.run(LONG_S)
    assert (town.moves, town.words) == (moves, words)


@pytest.mark.parametrize("seed", range(100, 102))
def test_limits_are_kept_where_a_placement_has_fifteen_percent_of_room(seed: int) -> None:
    town = settled(drawn(seed, slack=1.15))
    check_sound(town)
    for name, limits in town.limits.items():
        assert town.work(name) <= limits.capacity * 1.01, name  # rates are rounded and measured
    moves = town.moves
    town.run(LONG_S)
    assert town.moves == moves


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 240))
def test_many_networks_end_feasible_and_near_the_best_plan(seed: int) -> None:
    draw = Random(seed)
    slack = draw.choice((None, 1.15))
    town = drawn(seed, draw.randint(3, 12), draw.randint(1, 12), slack)
    settled(town)
    check_sound(town)
    capacities = {name: float(one.capacity) for name, one in town.limits.items()}
    possible, least = best(town, capacities)
    assert possible
    assert town.flow() <= 1.35 * least
    for name, limits in town.limits.items():
        assert town.work(name) <= limits.capacity * 1.01, name
    moves = town.moves
    town.run(LONG_S)
    assert town.moves == moves


def test_a_task_begins_at_home_and_goes_once_to_where_it_is_best() -> None:
    town = settled(line(1000, 3000))
    assert [host for _, host in town.jobs["b2/0"].moves] == ["b2", "b4"]


def test_tasks_follow_a_rate_that_doubles() -> None:
    town = settled(line(1000, 1600))
    assert hosts(town) == {"b2/0": "b4"}
    before = town.moves
    town.rate({("b0", "A"): 3200.0})
    settled(town)
    assert hosts(town) == {"b2/0": "b0"}
    assert town.moves == before + 1


def test_a_rate_that_changes_by_little_moves_nothing_and_is_not_told() -> None:
    town = settled(line(1000, 3000))
    moves, words = town.moves, town.words
    draw = Random(7)
    for _ in range(60):
        town.rate({("b0", "A"): draw.uniform(900, 1100), ("b4", "B"): draw.uniform(2700, 3300)})
        town.run(5)
    assert (town.moves, town.words) == (moves, words)


def test_what_a_lost_broker_ran_runs_on_elsewhere() -> None:
    town = settled(line(1000, 3000))
    town.die("b3")  # b4 is cut off with it
    settled(town)
    check_sound_part(town, ["b0", "b1", "b2"])
    assert hosts(town) == {"b2/0": "b0"}  # what comes from b4 does not any more
    town.revive("b3")
    settled(town)
    check_sound(town)
    assert hosts(town) == {"b2/0": "b4"}


def check_sound_part(town: Town, names: list[str]) -> None:
    epochs = {town.houses[name].coordinator.epoch for name in names}
    assert len(epochs) == 1


@pytest.mark.parametrize("seed", range(2))
def test_any_broker_may_be_lost_and_come_back(seed: int) -> None:
    town = settled(drawn(seed, brokers=6, jobs=5))
    draw = Random(seed)
    for _ in range(3):
        lost = draw.choice(town.names)
        town.die(lost)
        town.run(draw.choice((2, 20, 60)))
        town.revive(lost)
        town.run(draw.choice((1, 30)))
    settled(town)
    check_sound(town)
    _, least = best(town)
    assert town.flow() <= 1.35 * least
    moves = town.moves
    town.run(LONG_S)
    assert town.moves == moves


def test_two_that_need_the_same_run_together() -> None:
    """What both take travels once: apart, either would rather be at its own home."""
    town = Town(3, 5, LINE, {("b4", "A"): 1000.0})
    town.submit("b0", {("b4", "A"): 1.0}, 0.01)
    town.submit("b1", {("b4", "A"): 0.3}, 0.9)
    settled(town)
    check_sound(town)
    assert town.flow() == pytest.approx(best(town)[1], rel=0.15)


def test_a_broker_is_drained_and_taken_up_again() -> None:
    town = settled(line(1000, 3000))
    house = town.houses["b4"]
    house.do(lambda: house.coordinator.drain(town.world.now, drained=True))
    settled(town)
    assert hosts(town) == {"b2/0": "b3"}
    house.do(lambda: house.coordinator.drain(town.world.now, drained=False))
    settled(town)
    assert hosts(town) == {"b2/0": "b4"}


def test_all_that_can_be_drained_is_and_the_last_keeps_its_own() -> None:
    town = Town(1, 1, [], {("b0", "A"): 1000.0})
    town.submit("b0", {("b0", "A"): 1.0})
    house = town.houses["b0"]
    house.do(lambda: house.coordinator.drain(town.world.now, drained=True))
    settled(town)
    assert hosts(town) == {"b0/0": "b0"}
    assert house.coordinator.rounds.infeasible


def test_a_broker_that_does_not_take_a_task_up_is_left_out() -> None:
    town = Town(1, 5, LINE, {("b4", "B"): 3000.0})
    town.houses["b4"].refuses.add("b2/0")
    town.submit("b2", {("b4", "B"): 1.0})
    settled(town, 120)
    assert hosts(town) == {"b2/0": "b3"}
    moves = town.moves
    town.run(LONG_S)
    assert town.moves == moves


def test_cancelled_and_new_submissions_make_other_epochs() -> None:
    town = settled(line(1000, 3000))
    town.cancel("b2/0")
    town.submit("b1", {("b4", "B"): 1.0})
    settled(town)
    check_sound(town)
    assert hosts(town) == {"b1/0": "b4"}


def test_brokers_without_a_coordinator_part_the_others() -> None:
    """Those on either side plan by themselves; what comes from beyond enters where they begin."""
    town = Town(1, 5, LINE, {("b4", "B"): 3000.0}, silent=("b3",))
    town.submit("b0", {("b4", "B"): 1.0})
    town.run(QUIET_S)
    assert hosts(town) == {"b0/0": "b2"}


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for _ in range(2):
        town = settled(drawn(5))
        runs.append([job.moves for job in town.jobs.values()])
    assert runs[0] == runs[1]


def test_a_flow_is_counted_once_for_all_who_share_it() -> None:
    """The tests' own account: two hosts beyond the same link pay for it once."""
    town = Town(1, 5, LINE, {("b0", "A"): 100.0}, {}, CoordinatorSettings())
    town.submit("b4", {("b0", "A"): 1.0}, 0.0)
    town.submit("b3", {("b0", "A"): 1.0}, 0.0)
    town.run(1)
    assert town.flow({"b4/0": "b4", "b3/1": "b3"}) == 400
    assert Tree("b0", town.alive[0].topology.tree.edges).hops["b4"] == 4


def test_a_home_that_starts_again_leaves_its_tasks_where_they_are() -> None:
    """It knows nobody for a moment; what it placed runs on."""
    town = settled(line(1000, 3000))
    assert hosts(town) == {"b2/0": "b4"}
    moves = town.moves
    town.restart("b2")
    settled(town)
    check_sound(town)
    assert town.moves == moves


def test_rates_of_what_has_just_been_cancelled_are_nobodys() -> None:
    town = settled(line(1000, 3000))
    home = town.houses["b2"].coordinator
    del town.jobs["b2/0"]
    for host in ("b4", "b2"):
        said = Measured("b2", host, "b2/0", {"b4": {"B": 9_000}}, 5)
        home.heard("b3", encoded(said), town.world.now)
    home.touched(town.world.now)
    for host in ("b4", "b2"):
        home.heard("b3", encoded(Measured("b2", host, "b2/0", {}, 5)), town.world.now)
    settled(town)
    assert not home.known.statements["b2"].submissions
    said = Measured("b2", "b2", "b2/0", {"b4": {"B": 9_000}}, 5)
    home.heard("b3", encoded(said), town.world.now)
    assert all(house.counts["frames_malformed"] == 0 for house in town.alive)


def test_steps_on_which_brokers_agree_are_not_carried_out_one_by_one() -> None:
    """Nobody sees the whole line: it is agreed in two steps, and the task moves once."""
    longer = [(number, number + 1) for number in range(8)]
    town = Town(1, 9, longer, {("b8", "A"): 1000.0})
    town.submit("b0", {("b8", "A"): 1.0})
    settled(town)
    assert sum(house.coordinator.rounds.agreed for house in town.alive) > 1
    assert [host for _, host in town.jobs["b0/0"].moves] == ["b0", "b8"]


@pytest.mark.parametrize("turn_s", [7, 11])
def test_a_task_stays_for_a_while_however_rates_go_up_and_down(turn_s: int) -> None:
    town = settled(line(1000, 5000))
    job, stay_ms = town.jobs["b2/0"], 2 * town.settings.measure_ms
    for turn in range(12):
        some = {("b0", "A"): 1000.0, ("b4", "B"): 5000.0}
        other = {("b0", "A"): 5000.0, ("b4", "B"): 1000.0}
        town.rate(other if turn % 2 else some)
        town.run(turn_s)
    settled(town)
    moved_at = [at for at, _ in job.moves[1:]]
    assert len(moved_at) >= 2
    assert job.moves[-1][1] == "b0", "it does follow what lasts"
    assert min(b - a for a, b in pairwise(moved_at)) >= stay_ms


def test_whatever_rates_do_going_to_and_fro_dies_out() -> None:
    town = settled(line(1000, 5000))
    job = town.jobs["b2/0"]
    for _ in range(40):  # each time as soon as it may go
        for rates in ((5000.0, 1000.0), (1000.0, 5000.0)):
            before = len(job.moves)
            town.rate({("b0", "A"): rates[0], ("b4", "B"): rates[1]})
            for _ in range(40):
                town.run(1)
                if len(job.moves) > before:
                    break
    moved_at = [at for at, _ in job.moves[1:]]
    gaps_ms = [b - a for a, b in pairwise(moved_at)]
    assert len(gaps_ms) > 3
    assert max(gaps_ms) > 8 * min(gaps_ms)
