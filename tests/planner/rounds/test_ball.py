"""A vicinity that is changed step by step comes to what the planner's own account says."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.flow import evaluate
from planner.layout import Layout, lay_out
from planner.network import Network
from planner.plan import Plan
from planner.problem import Problem
from planner.rounds.ball import OUTSIDE_PARTS, Ball
from planner.rounds.improve import Effort, improve
from planner.rounds.outcome import changed
from planner.rounds.tables import Amounts, Tables, tables_of
from planner.rounds.tree import Tree, overlay, whole
from planner.rounds.units import plain
from planner.rounds.view import Summary, View, view_of
from tests.planner.rounds.networks import generated

EVERYWHERE = 99


class Scene:
    """A generated network with everything placed at random."""

    def __init__(self, seed: int, radius: int = EVERYWHERE) -> None:
        self.random = Random(seed)
        brokers = self.random.randrange(2, 10)
        self.problem: Problem = generated(
            self.random, brokers, self.random.randrange(1, 9), (None, 3, 6), (None, 3000)
        )
        self.layout: Layout = lay_out(self.problem)
        self.tree: Tree = overlay(self.problem)
        self.hosts = [self.random.choice(piece.hosts) for piece in self.layout.pieces]
        self.leader = self.random.randrange(brokers)
        self.tables = self.laid(self.hosts)
        self.view = self.seen(radius, self.tables)
        assert self.view is not None

    def laid(self, hosts: list[int], terms: dict[int, int] | None = None) -> list[Tables]:
        return tables_of(self.layout, self.tree, hosts, Amounts(self.layout), terms)

    def seen(self, radius: int, tables: list[Tables]) -> View | None:
        known = {
            n: Summary(n, 0, 0, whole(node.capacity), whole(node.egress), tables[n])
            for n, node in enumerate(self.problem.nodes)
        }
        return view_of(self.layout, self.tree, self.leader, radius, known)

    def account(self, hosts: list[int]):
        return evaluate(self.layout, Plan(tuple(hosts)), Network(self.problem))


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_a_ball_of_all_comes_to_the_planners_account(seed: int) -> None:
    scene = Scene(seed)
    ball, account = Ball(scene.view), scene.account(scene.hosts)
    assert plain(ball.flow) == pytest.approx(account.flow)
    assert (ball.violation == 0) == account.feasible
    assert ball.violation / 10**6 == pytest.approx(account.excess, abs=1e-4)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_after_any_moves_it_comes_to_what_it_would_if_made_anew(seed: int) -> None:
    scene = Scene(seed)
    ball = Ball(scene.view)
    for _ in range(10):
        if ball.at:
            piece = scene.random.choice(sorted(ball.at))
            ball.move(piece, scene.random.randrange(len(ball.parent)))
    hosts = [scene.view.brokers[ball.at[piece]] for piece in range(len(scene.hosts))]
    scene.view = scene.seen(EVERYWHERE, scene.laid(hosts))
    anew = Ball(scene.view)
    assert ball.value == anew.value
    assert (ball.up, ball.down, ball.work, ball.sent) == (anew.up, anew.down, anew.work, anew.sent)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_moves_taken_back_leave_nothing_behind(seed: int) -> None:
    scene = Scene(seed, radius=2)
    ball = Ball(scene.view, dict.fromkeys(scene.view.at, 7))
    before = ball.value, list(ball.up), list(ball.down), list(ball.sent)
    start = dict(ball.at)
    for piece in sorted(ball.at):
        ball.move(piece, scene.random.randrange(len(ball.parent)))
    for piece, node in start.items():
        ball.move(piece, node)
    assert (ball.value, ball.up, ball.down, ball.sent) == before
    assert changed(ball) == {}


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_what_a_vicinity_gains_the_whole_network_gains(seed: int, radius: int) -> None:
    """So the flow of the whole network falls with every turn, though nobody knows all of it."""
    scene = Scene(seed, radius)
    ball = Ball(scene.view)
    before = ball.value
    moves = improve(ball, Effort(4), scene.random)
    hosts = list(scene.hosts)
    for piece, node in moves.items():
        hosts[piece] = scene.view.brokers[node]
    old, new = scene.account(scene.hosts), scene.account(hosts)
    assert ball.value <= before
    gained = plain(before[1] - ball.value[1])
    assert old.flow - new.flow == pytest.approx(gained, abs=1e-6)
    fell = (before[0] - ball.value[0]) / 10**6
    assert old.excess - new.excess == pytest.approx(fell, abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_the_tables_asked_of_members_are_those_of_the_new_placement(seed: int, radius: int) -> None:
    scene = Scene(seed, radius)
    ball = Ball(scene.view)
    moves = improve(ball, Effort(4), scene.random)
    hosts = list(scene.hosts)
    for piece, node in moves.items():
        hosts[piece] = scene.view.brokers[node]
    asked = changed(ball)
    laid = scene.laid(hosts, dict.fromkeys(moves, 1))
    for broker, tables in enumerate(laid):
        assert asked.get(broker, scene.tables[broker]) == tables


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_no_chosen_plan_sends_more_or_fewer_partial_results_outside(seed: int) -> None:
    scene = Scene(seed, radius=1)
    ball = Ball(scene.view)
    improve(ball, Effort(4), scene.random)
    for number, joint in scene.view.joints.items():
        if joint.beyond >= 0:
            keys = scene.layout.aggregates[number].partials
            start = {ball.start[piece] for piece in keys if piece in ball.at}
            assert len({ball.at[piece] for piece in keys if piece in ball.at}) == len(start)
    assert ball.violation < OUTSIDE_PARTS


# --- planted contradictions ------------------------------------------------------------------


def test_tables_that_contradict_each_other_make_no_view() -> None:
    """Each entry of each broker's tables left out in turn, where its neighbours tell of it too."""
    found = 0
    for seed in range(12):
        scene = Scene(seed)
        for broker, own in enumerate(scene.tables):
            for place, entry in enumerate(own.passing):
                if entry.up < 0 and not entry.down:
                    continue  # nobody else knows of a stream that stays at its broker
                rest = own.passing[:place] + own.passing[place + 1 :]
                faulty = list(scene.tables)
                faulty[broker] = Tables(own.hosted, rest, own.joined)
                assert scene.seen(EVERYWHERE, faulty) is None
                found += 1
    assert found > 50


def test_two_hosts_of_one_piece_make_no_view() -> None:
    scene = Scene(1)
    full = next(n for n, own in enumerate(scene.tables) if own.hosted)
    other = next(n for n in range(len(scene.tables)) if n != full)
    own, theirs = scene.tables[full], scene.tables[other]
    faulty = list(scene.tables)
    hosted = tuple(sorted((*theirs.hosted, own.hosted[0]), key=lambda one: one.piece))
    faulty[other] = Tables(hosted, theirs.passing, theirs.joined)
    assert scene.seen(EVERYWHERE, faulty) is None
