"""Words go as far as somebody may have what they say in view, and no farther."""

from itertools import combinations
from random import Random

import pytest

from broker.core.coordinator import bounds
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.claims import HostClaim, HostClaims
from broker.core.coordinator.scope import Geography
from broker.core.coordinator.statement import BrokerWord, Enclosed, encoded
from broker.network.overlay.tree import Edge, Tree
from tests.broker.core.coordinator.test_coordinator import check_sound, settled
from tests.broker.core.coordinator.town import Town, drawn

LINE = [(number, number + 1) for number in range(11)]


def trees(seed: int, count: int = 12) -> dict[str, Tree]:
    draw = Random(f"scope {seed}")
    edges = []
    for child in range(1, count):
        low, high = sorted((f"b{draw.randrange(child)}", f"b{child}"))
        edges.append(Edge(1, low, high))
    return {f"b{number}": Tree(f"b{number}", edges) for number in range(count)}


@pytest.mark.parametrize("seed", range(8))
def test_a_span_is_the_least_part_of_the_tree_from_wherever_it_is_seen(seed: int) -> None:
    """Against all ways between all pairs of its points."""
    views, draw = trees(seed), Random(seed)
    for size in (1, 2, 3, 5):
        points = draw.sample(sorted(views), size)
        whole = set(points)
        for a, b in combinations(points, 2):
            whole |= set(views[a].path(b) or ())
        for me, tree in views.items():
            span = Geography(tree).span(points)
            assert span is not None
            assert span.hops == min(tree.hops[name] for name in whole)
            for neighbour in tree.neighbours:
                near = min(views[neighbour].hops[name] for name in whole)
                assert span.hops_of(neighbour) == near, (me, neighbour)
            for reach in (0, 2, 20):
                found = list(span.members(reach))
                assert len(found) == len(set(found))
                assert set(found) == {name for name in whole if tree.hops[name] <= reach}


@pytest.mark.parametrize("seed", range(4))
def test_the_next_broker_on_a_way_is_the_same_from_wherever_it_is_seen(seed: int) -> None:
    views = trees(seed)
    for me, tree in views.items():
        for a, b in combinations(sorted(views), 2):
            way = views[a].path(b) or ()
            assert Geography(tree).onward(a, b) == way[1], me
        assert Geography(tree).onward(me, me) == ""


def test_a_word_goes_as_far_as_the_radius_from_where_its_streams_pass() -> None:
    """From b0 to b2 they pass; b5 may have b2 in view, b6 has not."""
    town = Town(1, 12, LINE, {("b0", "A"): 1000.0})
    town.submit("b2", {("b0", "A"): 1.0})
    settled(town)
    knows = [bool(house.coordinator.known.submissions) for house in town.alive]
    assert knows == [True] * 6 + [False] * 6
    limits = [len(house.coordinator.known.brokers) for house in town.alive]
    assert limits == [min(n + 6, 11) - max(n - 6, 0) + 1 for n in range(12)]
    town.cancel("b2/0")
    settled(town)
    assert not any(house.coordinator.known.submissions for house in town.alive)


def test_a_task_that_moves_is_known_around_its_new_host_and_no_longer_around_the_old() -> None:
    town = Town(1, 12, LINE, {("b0", "A"): 5000.0, ("b7", "A"): 500.0})
    town.submit("b5", {("b0", "A"): 1.0, ("b7", "A"): 1.0})
    settled(town)
    assert town.jobs["b5/0"].host == "b0"
    knows = [bool(house.coordinator.known.submissions) for house in town.alive]
    assert knows == [True] * 11 + [False]
    town.rate({("b0", "A"): 0.0})
    settled(town, 90)
    assert town.jobs["b5/0"].host == "b7"
    knows = [bool(house.coordinator.known.submissions) for house in town.alive]
    assert knows == [False] * 2 + [True] * 9 + [False]
    check_sound(town)


def test_who_finds_no_room_looks_farther_than_words_go() -> None:
    """The first with room is five hops away; a look sees two, and words go two as well."""
    narrow = CoordinatorSettings(measure_ms=6_000, capacity=100, radius=2)
    wide = CoordinatorSettings(measure_ms=6_000, radius=2)
    limits = {f"b{number}": narrow if number < 5 else wide for number in range(9)}
    town = Town(1, 9, LINE[:8], {("b0", "A"): 1000.0}, limits, wide)
    town.submit("b0", {("b0", "A"): 1.0})
    settled(town, 120)
    assert town.jobs["b0/0"].host == "b5"
    check_sound(town)
    moves = town.moves
    town.run(100)
    assert town.moves == moves


@pytest.mark.parametrize("seed", range(3))
def test_all_that_have_a_broker_in_view_come_to_the_digest_that_it_states(seed: int) -> None:
    town = settled(drawn(seed, brokers=14, jobs=10))
    check_sound(town)
    for house in town.alive:
        laid = house.coordinator.laid
        assert laid is not None
        for name, digest in laid.digests.items():
            other = town.houses[name].coordinator.laid
            assert other is not None
            assert other.digests[name] == digest


def test_a_digest_tells_in_which_direction_a_task_runs() -> None:
    town = settled(Town(1, 5, LINE[:4], {("b4", "A"): 1000.0}))
    town.submit("b2", {("b4", "A"): 1.0})
    settled(town)
    coordinator = town.houses["b2"].coordinator
    assert coordinator.laid is not None
    before = coordinator.laid.digests
    coordinator.known.move([("b2", "b2/0", "b4", "b2", 50)])
    coordinator._post.lay(town.world.now, afresh=False)
    after = coordinator.laid.digests
    assert [name for name in before if before[name] != after[name]] == ["b2", "b3", "b4"]


def test_a_claim_gives_way_to_more_terms_and_to_a_host_that_is_out_of_reach() -> None:
    claims, reached = HostClaims("home"), {"home", "near", "far"}
    assert claims.settle("k", "home", (), reached) == HostClaim(0, "home")
    assert claims.take("k", HostClaim(2, "far"))
    assert not claims.take("k", HostClaim(2, "near")), "the first of as many terms"
    assert not claims.take("k", HostClaim(1, "near")), "the later may be heard of first"
    assert not claims.take("gone", HostClaim(9, "near")), "of what is not at home there"
    assert claims.settle("k", "home", (), reached).host == "far"
    refused = claims.settle("k", "home", ("far",), reached)
    assert refused == HostClaim(2 + bounds.OVERRULED, "home")
    assert not claims.take("k", HostClaim(3, "far")), "agreed on before the home said no"
    assert claims.settle("k", "far", ("far",), reached).term == refused.term, "it runs there"
    lost = claims.settle("k", "lost", (), {"home"})
    assert lost.host == "home"
    assert not lost.stands_in, "it was planned at home"
    away = claims.settle("new", "lost", (), {"home"})
    assert away.stands_in
    assert claims.settle("new", "lost", (), {"home", "lost"}).host == "lost"


def test_the_largest_radius_that_may_be_set_is_planned_with() -> None:
    wide = CoordinatorSettings(measure_ms=6_000, radius=bounds.HOPS_MAX)
    town = Town(1, 4, LINE[:3], {("b0", "A"): 1000.0}, {}, wide)
    town.submit("b3", {("b0", "A"): 1.0})
    settled(town)
    assert all(len(house.coordinator.known.brokers) == 4 for house in town.alive)
    assert town.jobs["b3/0"].host == "b0"
    check_sound(town)


def test_words_on_a_broker_to_whom_there_is_no_way_are_not_kept() -> None:
    town = settled(Town(1, 3, LINE[:2], {("b2", "A"): 1000.0}))
    coordinator = town.houses["b0"].coordinator
    before = dict(coordinator.known.brokers)
    ghost = BrokerWord("ghost", 1, 1, 0, 100, 0, 0, False)
    coordinator.heard("b1", encoded(Enclosed("b0", encoded(ghost))), town.world.now)
    assert coordinator.known.brokers == before
    assert coordinator.counts["words_astray"] == 1
    assert coordinator.quiet


def test_a_broker_without_room_for_its_own_submissions_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it cannot keep stays at home, counted, as what is too long to be said."""
    town = settled(Town(1, 3, LINE[:2], {("b2", "A"): 1000.0}))
    monkeypatch.setattr(bounds, "KNOWN_BYTES_MAX", 0)
    town.submit("b0", {("b2", "A"): 1.0})
    town.run(30)
    coordinator = town.houses["b0"].coordinator
    assert coordinator.untold == 1
    assert not coordinator.known.submissions
    assert town.jobs["b0/0"].host == "b0"
    monkeypatch.undo()
    town.rate({("b2", "A"): 4000.0})
    settled(town, 60)
    assert coordinator.untold == 0
    assert town.jobs["b0/0"].host == "b2"
