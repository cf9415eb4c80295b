"""What a look costs a broker: memory, and CPU between two turns of everything else."""

import time
import tracemalloc
from random import Random

from planner.layout import lay_out
from planner.rounds.looking import Look
from planner.rounds.settings import Settings
from planner.rounds.tables import Amounts, tables_of
from planner.rounds.tree import overlay, whole
from planner.rounds.view import Summary, View, view_of
from tests.planner.rounds.networks import generated

MEMORY_MB, PASS_S = 8.0, 0.2


def vicinity(brokers: int = 30, tasks: int = 60) -> View:
    random = Random(3)
    problem = generated(random, brokers, tasks, (8, 12, None), (None, 20_000))
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


def test_a_slice_of_a_look_is_short() -> None:
    """In CPU, and of several the middle one: a machine that is busy takes some longer."""
    look = Look(vicinity(), Settings())
    spent = []
    for _ in range(7):
        begin = time.process_time()
        look.go_on()
        spent.append(time.process_time() - begin)
    assert sorted(spent)[3] < PASS_S
