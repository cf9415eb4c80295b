"""A thorough look: its counts, its slices, who takes it, and what small steps alone do not find."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.trial import Trial
from planner.rounds import machine
from planner.rounds.ball import Ball
from planner.rounds.improve import Effort
from planner.rounds.looking import ThoroughLook, prices
from planner.rounds.rows import FAR, Rows
from planner.rounds.settings import Settings
from planner.rounds.tabu import Tabu
from planner.rounds.thorough import Thorough
from planner.rounds.tree import Tree
from tests.planner.rounds.networks import generated
from tests.planner.rounds.test_ball import EVERYWHERE, Scene


@given(st.integers(0, 10**6), st.sampled_from([1, 2, EVERYWHERE]))
@settings(max_examples=40, deadline=None)
def test_rows_are_what_the_ball_comes_to(seed: int, radius: int) -> None:
    scene = Scene(seed, radius)
    assert scene.view is not None
    ball = Ball(scene.view, prices(scene.view, Settings(price=0.1)))
    random = Random(seed)
    for piece in sorted(ball.at):  # prices hang on where they were found
        ball.move(piece, random.choice([ball.at[piece], random.randrange(len(ball.parent))]))
    tabu = Tabu(ball, random)
    for group in [*((piece,) for piece in tabu.pieces), *tabu._groups()]:
        row = tabu.rows.row(group)
        here, flow, violation = ball.at[group[0]], ball.flow, ball.violation
        for node, come_to in enumerate(row):
            for piece in group:
                ball.move(piece, node)
            outside = any(
                ball.made[number] != ball.made_first[number]
                for number in ball.aggregates_of(group)
                if ball.view.joints[number].beyond >= 0
                and {*ball.view.layout.aggregates[number].partials} & {*group}
            )
            assert (come_to >= FAR // 2) == outside
            if max(come_to, row[here]) < FAR // 2:
                assert come_to - row[here] == ball.flow - flow
            for piece in group:
                ball.move(piece, here)
        assert (ball.flow, ball.violation) == (flow, violation)


def test_rows_without_others_are_those_of_a_network_without_them() -> None:
    for seed in range(20):
        scene = Scene(seed)
        assert scene.view is not None
        ball = Ball(scene.view)
        if len(ball.at) > 1:
            one, other = sorted(ball.at)[:2]
            rows = Rows(ball)
            found = [row - rows.row((one,), {other})[0] for row in rows.row((one,), {other})]
            for node in range(len(ball.parent)):  # wherever the other is, it makes no difference
                ball.move(other, node)
                again = rows.row((one,), {other})
                assert [row - again[0] for row in again] == found


@given(st.integers(0, 10**6), st.sampled_from([1, 2, EVERYWHERE]))
@settings(max_examples=15, deadline=None)
def test_a_look_is_the_same_in_any_slices_and_makes_nothing_worse(seed: int, radius: int) -> None:
    found = []
    for at_once in (1, 700, 10**9):
        scene = Scene(seed, radius)
        assert scene.view is not None
        ball = Ball(scene.view)
        before, start = ball.value, dict(ball.at)
        look = Thorough(ball, Effort(steps=8_000, steps_at_once=at_once), Random(seed))
        slices = 1
        while not look.go_on():
            slices += 1
        assert ball.value <= before
        assert ball.at == start or ball.value < before
        assert slices == 1 or at_once < 10**9
        found.append((ball.value, ball.at))
    assert found[0] == found[1] == found[2]


def test_a_look_is_bounded_in_all_and_in_each_slice() -> None:
    scene = Scene(3)
    assert scene.view is not None
    ball = Ball(scene.view)
    effort = Effort(steps=20_000, steps_at_once=1_000)
    look = Thorough(ball, effort, Random(1))
    rows, spent = look.tabu.rows, [0]
    while not look.go_on():
        spent.append(rows.spent)
    assert len(spent) > 5
    most = 1_000 + 200 + len(ball.at) ** 2 + 4 * len(ball.at) * len(ball.parent) * len(ball.rate)
    assert max(b - a for a, b in pairwise(spent)) <= most
    assert rows.spent <= 20_000 + most


@given(st.integers(0, 10**6), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_somebody_who_is_not_overseen_sees_all_that_anybody_sees(seed: int, radius: int) -> None:
    random = Random(seed)
    count = random.randrange(1, 14)
    tree = Tree(count, [(random.randrange(n), n) for n in range(1, count)], {})
    lookers = [n for n in range(count) if not tree.overseen(n, radius, radius)]
    for broker in range(count):
        own = set(tree.within(broker, radius))
        assert any(own <= set(tree.within(other, radius)) for other in lookers)
    assert tree.overseen(count - 1, EVERYWHERE, radius) == (
        any(len(tree.within(n, radius)) == count for n in range(count - 1))
        or (count == 1 and bool(lookers[1:]))
    )
    assert [n for n in range(count) if not tree.overseen(n, 99, 99)] == [0]


def test_what_all_see_one_alone_looks_at_thoroughly_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began: list[int] = []

    class Counted(ThoroughLook):
        def __init__(self, view, settings, random) -> None:
            super().__init__(view, settings, random)
            began.append(view.brokers[0])

    monkeypatch.setattr(machine, "ThoroughLook", Counted)
    trial = Trial(generated(Random(5), 8, 6), Settings(radius=EVERYWHERE, price=0.0), 5)
    trial.until_quiet()
    assert began
    assert set(began) == {0}
    before = len(began)
    for machine_ in trial.machines:  # asked again, but nothing is new
        machine_._plan(trial.now)
    assert len(began) == before
