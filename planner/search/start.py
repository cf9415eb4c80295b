"""Where a search begins: each piece where it seems cheapest, one after the other.

Owns the paper's estimate of a candidate and the greedy placement by it. Must not know the search.
Invariant: a piece goes where there is room for it as long as there is any.
"""

from collections.abc import Sequence

import numpy as np

from planner.search.metric import Vector
from planner.search.model import Model
from planner.search.state import Limits


def estimate(model: Model, piece: int, hosts: Sequence[int]) -> Vector:
    """The paper's v_is: what bringing inputs there and outputs on from there costs, at each broker.

    Every input and destination counts for itself, whatever is shared; consumers not yet placed (a
    host of -1) do not count. Seed 003, section 4.2.
    """
    found = np.zeros(model.nodes)
    for number in model.of_piece[piece]:
        stream = model.layout.streams[number]
        distance, rate = model.metrics[0][number].distance, model.rates[number]
        if stream.piece == piece:
            ends = [hosts[consumer] for consumer in stream.consumers if hosts[consumer] >= 0]
            for end in sorted({*ends, *stream.destinations}):
                found += rate * distance[:, end]
        else:
            source = stream.origin if stream.piece is None else hosts[stream.piece]
            if source is not None and source >= 0:
                found += rate * distance[source]
    if (of := model.aggregate_of[piece]) is not None:
        aggregate = model.layout.aggregates[of]
        distance, rate = model.metrics[1][of].distance, model.partial_rates[of]
        partials = sorted({hosts[p] for p in aggregate.partials if hosts[p] >= 0})
        if model.is_header(piece):
            found += rate * distance[partials].sum(axis=0)
        elif partials:  # the header will not be far from those that are there
            away = rate * distance[:, partials].min(axis=1)
            found += away
    return found


def greedy(model: Model) -> list[int]:
    """A host for each piece, tasks after those that feed them, the cheapest with room first."""
    hosts = [-1] * model.pieces
    work = np.zeros(model.nodes)
    of_task: dict[str, list[int]] = {}
    for number, placed in enumerate(model.layout.pieces):
        of_task.setdefault(placed.task, []).append(number)
    for task in model.layout.problem.in_order():
        for piece in of_task.get(task.id, ()):
            costs = estimate(model, piece, hosts)
            hosts[piece] = roomiest(model, piece, costs, work)
            work[hosts[piece]] += model.costs[piece]
    return hosts


def roomiest(model: Model, piece: int, costs: Vector, work: Vector) -> int:
    """The cheapest allowed broker with room; where none has, the least overloaded of them."""
    after = work + model.costs[piece]
    fits = model.allowed[piece] & (after <= model.capacity * (1 + 1e-9))
    if fits.any():
        return int(np.argmin(np.where(fits, costs, np.inf)))
    limits = Limits(model.capacity)
    beyond = limits.excess(after) - limits.excess(work)
    return int(np.argmin(np.where(model.allowed[piece], beyond, np.inf)))
