"""A vicinity as a problem of its own comes to what the planner says of the whole network."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from experiments.overlay import overlay, whole
from experiments.trial import Amounts, tables_of
from planner.flow import evaluate
from planner.layout import Layout, lay_out
from planner.network import Network
from planner.plan import Plan
from planner.problem import Problem
from planner.rounds.look import Look
from planner.rounds.settings import Effort, Settings
from planner.rounds.tables import Tables
from planner.rounds.units import plain
from planner.rounds.vicinity import Vicinity
from planner.rounds.view import Summary, View, view_of
from planner.search.evaluator import Evaluator
from planner.search.instance import ABSENT
from tests.planner.rounds.networks import generated

EVERYWHERE = 99
BRIEF = Settings(price=0.0, gain=0.0, effort=Effort(total=30_000, at_once=30_000))
SCENES = st.integers(0, 10**6)


class Scene:
    """A generated network with everything placed at random."""

    def __init__(self, seed: int, radius: int = EVERYWHERE) -> None:
        self.random = Random(seed)
        brokers = self.random.randrange(2, 10)
        self.problem: Problem = generated(
            self.random, brokers, self.random.randrange(1, 9), (None, 3, 6), (None, 3000)
        )
        self.layout: Layout = lay_out(self.problem)
        self.tree: Network = overlay(self.problem)
        self.hosts = [self.random.choice(piece.hosts) for piece in self.layout.pieces]
        self.leader = self.random.randrange(brokers)
        self.tables = self.laid(self.hosts)
        view = self.seen(radius, self.tables)
        assert view is not None
        self.view = view

    def laid(self, hosts: list[int], terms: dict[int, int] | None = None) -> list[Tables]:
        return [
            replace(own, hosted=tuple(
                replace(one, term=(terms or {}).get(one.piece, 0)) for one in own.hosted
            ))
            for own in tables_of(self.layout, self.tree, hosts, Amounts(self.layout))
        ]  # fmt: skip

    def seen(self, radius: int, tables: list[Tables]) -> View | None:
        known = {
            n: Summary(n, 0, 0, whole(node.capacity), whole(node.egress), tables[n])
            for n, node in enumerate(self.problem.nodes)
        }
        return view_of(self.layout, self.tree, self.leader, radius, known)

    def account(self, hosts: list[int]):
        return evaluate(self.layout, Plan(tuple(hosts)), Network.of(self.problem))

    def looked(self) -> Look:
        look = Look(self.view, BRIEF)
        while not look.go_on():
            pass
        return look

    def moved(self, look: Look) -> list[int]:
        hosts = list(self.hosts)
        for piece, whence, whither in look.proposal.moves if look.proposal else ():
            assert hosts[piece] == whence != whither
            hosts[piece] = whither
        return hosts


@given(SCENES)
@settings(max_examples=20, deadline=None)
def test_a_vicinity_of_all_comes_to_the_planners_account(seed: int) -> None:
    scene = Scene(seed)
    violation, flow = Vicinity(scene.view).value()
    account = scene.account(scene.hosts)
    assert plain(flow) == pytest.approx(account.flow)
    assert (violation == 0) == account.feasible
    assert violation / 10**6 == pytest.approx(account.excess, abs=1e-4)


@given(SCENES, st.sampled_from([1, 2, EVERYWHERE]))
@settings(max_examples=25, deadline=None)
def test_a_move_changes_the_evaluators_flow_by_what_it_changes_the_networks(
    seed: int, radius: int
) -> None:
    """The search's own sums and whole tables count alike, at the edge of the vicinity as well."""
    scene = Scene(seed, radius)
    vicinity = Vicinity(scene.view)
    evaluator = Evaluator(vicinity.instance, vicinity.start, check=True)
    before, flow = vicinity.value(), evaluator.flow
    for piece in range(len(vicinity.groups)):
        host = scene.random.choice(vicinity.instance.hosts[piece])
        change = evaluator.apply([(piece, host)])
        if vicinity._apart(evaluator.hosts) == evaluator.hosts:
            after = vicinity.value(vicinity.tables(evaluator.hosts))
            zero = 1e-3 * (1 + evaluator.flow)  # streams without a rate weigh a trifle
            gained = plain(after[1] - before[1])
            assert evaluator.flow - flow == pytest.approx(gained, abs=zero)
            assert not (evaluator.loads.broken and after[0] == 0)
            if radius == EVERYWHERE:
                assert (after[0] == 0) == (not evaluator.loads.broken)
        evaluator.undo(change)


@given(SCENES, st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_what_a_vicinity_gains_the_whole_network_gains(seed: int, radius: int) -> None:
    """So the flow of the whole network falls with every turn, though nobody knows all of it."""
    scene = Scene(seed, radius)
    look = scene.looked()
    if look.proposal is None:
        return
    before = look.vicinity.value()
    tables = [look.proposal.tables.get(one.broker, one.tables) for one in scene.view.summaries]
    after = look.vicinity.value(tables)
    assert after < before
    old, new = scene.account(scene.hosts), scene.account(scene.moved(look))
    gained = plain(before[1] - after[1])
    assert old.flow - new.flow == pytest.approx(gained, abs=1e-6)
    fell = (before[0] - after[0]) / 10**6
    assert old.excess - new.excess == pytest.approx(fell, abs=1e-4)


@given(SCENES, st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_the_tables_asked_of_members_are_those_of_the_new_placement(seed: int, radius: int) -> None:
    scene = Scene(seed, radius)
    look = scene.looked()
    asked = look.proposal.tables if look.proposal else {}
    moves = look.proposal.moves if look.proposal else ()
    laid = scene.laid(scene.moved(look), {piece: 1 for piece, _, _ in moves})
    for broker, tables in enumerate(laid):
        assert asked.get(broker, scene.tables[broker]) == tables


def test_an_unchanged_vicinity_asks_for_nothing() -> None:
    for seed in range(30):
        scene = Scene(seed, 1 + seed % 3)
        vicinity = Vicinity(scene.view)
        assert vicinity.tables(vicinity.start) == [one.tables for one in scene.view.summaries]
        assert vicinity.proposal(vicinity.start, 0.0) is None


def test_partials_whose_header_is_out_of_view_are_never_merged() -> None:
    """All brokers on the way to the header count them, so neither more nor fewer may leave."""
    met = 0
    for seed in range(60):
        scene = Scene(seed, radius=1)
        vicinity = Vicinity(scene.view)
        for number, joint in scene.view.joints.items():
            keys = [p for p in scene.layout.aggregates[number].partials if p in scene.view.hosts]
            if joint.beyond < 0 or len({scene.view.hosts[p] for p in keys}) < 2:
                continue
            met += 1
            count = len({scene.view.hosts[piece] for piece in keys})
            hosts = list(vicinity.start)
            for piece in keys:  # all at one broker, as a search may have them
                hosts[vicinity.piece_of[piece]] = 0
            tables = vicinity.tables(vicinity._apart(hosts))
            sent = [
                one.own + sum(come for _, come in one.come)
                for own in tables
                for one in own.joined
                if one.aggregate == number and one.toward == joint.beyond
            ]
            come = sum(amount for _, _, amount in joint.come)
            assert sent == [count + come]
    assert met > 3


def test_a_drained_member_takes_nothing_and_keeps_only_what_nobody_else_may_run() -> None:
    scene = Scene(4)
    view = scene.view
    full = view.hosts[min(view.hosts)]
    one = view.summaries[full]
    view.summaries[full] = Summary(
        one.broker, 0, 0, one.capacity, one.egress, one.tables, drained=True
    )
    vicinity = Vicinity(view)
    for piece, host in enumerate(vicinity.beginning()):
        hosts = vicinity.instance.hosts[piece]
        assert full not in hosts or hosts == (full,)
        assert (host == ABSENT) == (vicinity.start[piece] == full and hosts != (full,))
    assert vicinity.value()[0] > 0


def test_a_price_keeps_moves_that_do_not_pay() -> None:
    kept = 0
    for seed in range(25):
        scene = Scene(seed, 2)
        look = scene.looked()
        if look.proposal is None or look.vicinity.value()[0]:
            continue
        dear = Vicinity(scene.view, price=1000.0)
        assert dear.proposal(look.search.best.hosts, 0.0) is None or not any(dear.prices.values())
        kept += any(dear.prices.values())
    assert kept > 2


# --- contradictions ----------------------------------------------------------------------------


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
