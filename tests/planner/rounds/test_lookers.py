"""Who looks: of brokers that see the same one alone, and once only at what has not changed."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.trial import Trial
from planner.network import Network
from planner.rounds import machine
from planner.rounds.looking import Look
from planner.rounds.settings import Settings
from tests.planner.rounds.networks import generated
from tests.planner.rounds.test_vicinity import BRIEF, EVERYWHERE, SCENES, Scene


@given(SCENES, st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_somebody_who_is_not_overseen_sees_all_that_anybody_sees(seed: int, radius: int) -> None:
    random = Random(seed)
    count = random.randrange(1, 14)
    tree = Network(
        [str(n) for n in range(count)], [(random.randrange(n), n) for n in range(1, count)]
    )
    lookers = [n for n in range(count) if not tree.overseen(n, radius, radius)]
    for broker in range(count):
        own = set(tree.within(broker, radius))
        assert any(own <= set(tree.within(other, radius)) for other in lookers)
    assert [n for n in range(count) if not tree.overseen(n, EVERYWHERE, EVERYWHERE)] == [0]


def test_what_all_see_one_alone_looks_at_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[int] = []

    class CountedLook(Look):
        def __init__(self, view, chosen) -> None:
            super().__init__(view, chosen)
            began.append(view.brokers[0])

    monkeypatch.setattr(machine, "Look", CountedLook)
    chosen = Settings(radius=EVERYWHERE, price=0.0, effort=BRIEF.effort)
    trial = Trial(generated(Random(5), 8, 6), chosen, 5)
    trial.until_quiet()
    assert began
    assert set(began) == {0}
    before = len(began)
    for broker in trial.machines:  # asked again, but nothing is new
        broker._plan(trial.now)
    assert len(began) == before


@given(SCENES, st.sampled_from([1, 2, EVERYWHERE]))
@settings(max_examples=20, deadline=None)
def test_equal_views_give_equal_proposals(seed: int, radius: int) -> None:
    looks = [Scene(seed, radius).looked() for _ in range(2)]
    assert looks[0].proposal == looks[1].proposal
