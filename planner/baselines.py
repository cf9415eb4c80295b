"""Simple ways to place tasks, to measure a search against.

Owns the centralised, the hop-based and the local way. Must not know the search. Invariant: each is
determined by the problem alone: ties go to the broker that stands first.
"""

import numpy as np

from planner.plan import Plan
from planner.problem import ProblemError
from planner.search.model import Model
from planner.search.start import greedy
from planner.search.state import State

SWEEPS_MAX = 200  # each sweep lowers the flow; this many were never needed


def central(model: Model) -> Plan:
    """Everything at the server, whatever that costs. Raises ProblemError where there is none."""
    server = model.layout.problem.server
    if server is None:
        raise ProblemError("server", "missing: the centralised way runs everything there")
    return Plan((model.layout.numbers[server],) * model.pieces)


def hop(model: Model) -> Plan:
    """Each piece where its inputs and destinations are fewest hops away, however much they send.

    Among equals the nearest to the inputs; what is full is passed over.
    """
    rates, partial_rates = model.rates, model.partial_rates
    model.rates = [1.0] * len(rates)
    model.partial_rates = [1.0] * len(partial_rates)
    try:
        return Plan(tuple(greedy(model)))
    finally:
        model.rates, model.partial_rates = rates, partial_rates


def by_estimate(model: Model) -> Plan:
    """Each piece where the paper's estimate of its flow is least, one after the other."""
    return Plan(tuple(greedy(model)))


def local(model: Model, radius: int) -> Plan:
    """Each piece begins where its inputs enter and is handed on within a radius, while that pays.

    The simple form of the paper's local planning: a holder knows its vicinity and the hop counts to
    destinations; it hands a piece to whom the flow is least with, if it is less than its own and
    there is room. As the flow falls with each hand-over, nothing goes in circles.
    """
    state = State(model, _at_inputs(model))
    distance = [model.network.hops_from(node) for node in range(model.nodes)]
    for _ in range(SWEEPS_MAX):
        moved = False
        for piece in range(model.pieces):
            here = state.hosts[piece]
            row = state.row((piece,))
            best, host = float(row[here]), here
            overloaded = state.work[here] > model.capacity[here] * (1 + 1e-9)
            if overloaded or not model.allowed[piece, here]:
                best = float("inf")
            for node in model.layout.pieces[piece].hosts:
                if not 0 < distance[here][node] <= radius:
                    continue
                room = model.capacity[node] * (1 + 1e-9) - state.work[node]
                if room >= model.costs[piece] and row[node] < best * (1 - 1e-12):
                    best, host = float(row[node]), node
            if host != here:
                state.apply([(piece, host)])
                moved = True
        if not moved:
            break
    return Plan(tuple(state.hosts))


def _at_inputs(model: Model) -> list[int]:
    """Each piece where the largest of its inputs enters, or at the nearest allowed broker."""
    hosts = [-1] * model.pieces
    of_task: dict[str, list[int]] = {}
    for number, piece in enumerate(model.layout.pieces):
        of_task.setdefault(piece.task, []).append(number)
    for task in model.layout.problem.in_order():
        for number in of_task.get(task.id, ()):
            costs = np.zeros(model.nodes)
            if (at := _largest_source(model, number, hosts)) is not None:
                away = np.array(model.network.hops_from(at), dtype=np.float64)
                costs = np.where(away < 0, model.nodes, away)
            hosts[number] = int(np.argmin(np.where(model.allowed[number], costs, np.inf)))
    return hosts


def _largest_source(model: Model, piece: int, hosts: list[int]) -> int | None:
    """Where the largest input comes from; of a header, where the first partial is."""
    if model.is_header(piece) and (of := model.aggregate_of[piece]) is not None:
        partials = model.layout.aggregates[of].partials
        return hosts[partials[0]] if partials else None
    most, at = -1.0, None
    for number in model.of_piece[piece]:
        stream = model.layout.streams[number]
        source = stream.origin if stream.piece is None else hosts[stream.piece]
        if stream.piece != piece and model.rates[number] > most:
            most, at = model.rates[number], source
    return at
