"""The rows that sharpen the program: no plan breaks them, and they say more than the rest."""

from itertools import pairwise
from random import Random

import highspy
import pytest

from experiments import crowding, cuts, fillings
from experiments.relaxation import Relaxation
from experiments.tightening import _mixture, tighten
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.optimal import solve
from planner.plan import Plan
from planner.program import SCALED, Formulation
from tests.planner.tight import tight

PLANS_TRIED = 400


def mixture(*told):
    return _mixture(highspy, *told)


def columns_of(formulation, hosts, streams):
    """The columns that are one in a plan, of those that such rows are about."""
    layout = formulation.layout
    found = {at[host] for at, host in zip(formulation.at, hosts, strict=True)}
    for name, used in formulation.carries.items():
        found |= {used[formulation.arcs.index(arc)] for arc in streams.get(name, ())}
    for meeting in formulation.meetings:
        header = hosts[meeting.aggregate.header]
        found |= {meeting.columns[hosts[p], header] for p in meeting.aggregate.partials}
    assert len(layout.pieces) == len(hosts)
    return found


def drawn_values(formulation, random):
    """Of each piece parts at some brokers, of streams and what is sent to headers little."""
    values = [
        random.random() * random.choice((0.0, 0.0, 0.1, 0.6)) for _ in formulation.program.cost
    ]
    for at in formulation.at:
        parts = [random.random() ** 2 for _ in at]
        for column, part in zip(at.values(), parts, strict=True):
            values[column] = part / sum(parts)
    return values


def plans(layout, random):
    """Plans within the brokers' capacities, and what their streams take."""
    for _ in range(PLANS_TRIED):
        hosts = tuple(random.choice(piece.hosts) for piece in layout.pieces)
        found = evaluate(layout, Plan(hosts))
        if all(v.kind not in {"capacity", "unreached"} for v in found.violations):
            yield hosts, found.streams


def hold_rows(seed):
    """How many rows were found that parts of pieces break, and held against plans."""
    random = Random(seed)
    layout = lay_out(read_problem(tight(seed, 4, 5)))
    formulation = Formulation(layout)
    made = list(plans(layout, random))
    rows = list(crowding.rows(formulation))
    for _ in range(4 if made else 0):
        values = drawn_values(formulation, random)
        rows += fillings.broken(formulation, values, mixture)
        rows += cuts.broken(formulation, values)
    for hosts, streams in made:
        ones = columns_of(formulation, hosts, streams)
        for terms, least in rows:
            assert sum(value for column, value in terms if column in ones) >= least - 1e-6
    return len(rows) if made else 0


def test_rows_cut_no_plan_off():
    assert sum(hold_rows(seed) for seed in range(40)) > 100


@pytest.mark.long
@pytest.mark.timeout(600)
def test_rows_cut_no_plan_off_again_and_again():
    assert sum(hold_rows(seed) for seed in range(1000, 1600)) > 2000


def test_parts_of_a_cluster_that_fits_nowhere_are_not_enough():
    """All that is made of two contents meets in the relaxation, a third of each at each broker."""
    names = [f"b{i}" for i in range(6)]
    tasks = [
        {"id": f"T{i}", "inputs": inputs, "cost": cost, "rate": 1, "destinations": ["b0"]}
        for i, (inputs, cost) in enumerate(
            [(["C"], 1), (["D"], 1), (["C"], 1), (["D"], 1), (["C", "D"], 3)]
        )
    ]
    document = {
        "nodes": [{"id": name, "capacity": 4} for name in names],
        "links": [{"a": a, "b": b} for a, b in pairwise(names)],
        "contents": [{"id": "C", "rates": {"b1": 100}}, {"id": "D", "rates": {"b4": 100}}],
        "tasks": tasks,
    }
    layout = lay_out(read_problem(document))
    formulation = Formulation(layout)
    scale = max(formulation.program.cost) / SCALED
    plain = Relaxation(highspy, formulation.program, scale, 1)
    assert plain.solved()
    before = plain.proves() * scale
    rows = len(formulation.program.low)
    least = tighten(highspy, formulation, scale, 1, lambda: 0.0)
    assert least > before * 1.001
    assert len(formulation.program.low) > rows
    best = solve(layout, 20.0, threads=1)
    assert best.proven
    assert least <= best.flow * (1 + 1e-9)
