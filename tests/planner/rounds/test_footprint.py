"""What a look costs a broker: memory, and effort between two turns of everything else."""

import tracemalloc
from itertools import pairwise
from random import Random

from experiments.overlay import overlay, whole
from experiments.trial import Amounts, tables_of
from planner.layout import lay_out
from planner.rounds.look import Look
from planner.rounds.settings import Effort, Settings
from planner.rounds.view import Summary, View, view_of
from tests.planner.rounds.networks import generated

MEMORY_MB = 8.0


def vicinity(brokers: int = 30, tasks: int = 60, *, limited: bool = True) -> View:
    random = Random(3)
    capacities, egresses = ((8, 12, None), (None, 20_000)) if limited else ((None,), (None,))
    problem = generated(random, brokers, tasks, capacities, egresses)
    layout, tree = lay_out(problem), overlay(problem)
    hosts = [random.choice(piece.hosts) for piece in layout.pieces]
    known = {
        number: Summary(number, 0, 0, whole(node.capacity), whole(node.egress), own)
        for number, (node, own) in enumerate(
            zip(problem.nodes, tables_of(layout, tree, hosts, Amounts(layout)), strict=True)
        )
    }
    view = view_of(layout, tree, 0, brokers, known)
    assert view is not None
    assert len(view.brokers) == brokers
    return view


def test_a_look_at_thirty_brokers_takes_little_memory() -> None:
    view = vicinity()
    tracemalloc.start()
    try:
        look = Look(view, Settings())
        for _ in range(6):
            look.go_on()
        most = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert most < MEMORY_MB


def test_a_look_is_bounded_in_all_and_in_each_slice() -> None:
    """By effort, so that a busy machine proposes the same; `bench.looks` has the seconds."""
    effort = Effort(total=400_000, at_once=50_000)
    # So much nothing gains, and no limit is broken whose keeping would be worth a turn.
    look = Look(vicinity(limited=False), Settings(effort=effort, gain=1.0))
    spent = [look.search.evaluator.effort]
    over = False
    while not over:
        over = look.go_on()
        spent.append(look.search.evaluator.effort)
    slices = [after - before for before, after in pairwise(spent)]
    assert len(slices) > 5
    # The last step of a slice may go beyond, by what one step takes.
    assert max(slices) < 1.5 * effort.at_once
    assert spent[-1] < effort.total + 0.5 * effort.at_once
    assert look.proposal is None
