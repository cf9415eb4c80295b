"""Simple ways to place tasks, to measure a search against.

Owns the centralised and the local way; the greedy and the hop-based one are the search's beginning
(`planner.search.start.greedy`). Must not know the search.
Invariant: each is determined by the problem alone: ties go to the broker that stands first.
"""

from math import inf

from planner.plan import Plan
from planner.problem import ProblemError
from planner.search.distances import FAR
from planner.search.evaluator import Evaluator
from planner.search.instance import ABSENT, Instance

SWEEPS_MAX = 200
"""Each sweep lowers the flow; this many were never needed."""
GAIN = 1e-12
"""A smaller part of what a piece causes is no gain."""


def central(instance: Instance) -> Plan:
    """Place everything at the server, whatever it costs. Raises ProblemError where none is."""
    layout = instance.layout
    if layout.problem.server is None:
        raise ProblemError("server", "missing: the centralised way runs everything there")
    return Plan((layout.numbers[layout.problem.server],) * instance.pieces)


def local(instance: Instance, radius: int) -> Plan:
    """Place each piece where inputs enter, and hand it on within a radius while that pays.

    The simple form of the paper's local planning (paper 003, section 4.3): a holder knows its
    vicinity and the hop counts to destinations; it hands a piece to whom the flow is least with,
    if it is less than its own and there is room. As the flow falls with each hand-over, nothing
    goes in circles.
    """
    evaluator = Evaluator(instance, _at_inputs(instance))
    for _ in range(SWEEPS_MAX):
        moved = False
        for piece in range(instance.pieces):
            origin, host = evaluator.hosts[piece], _best_near(evaluator, piece, radius)
            if host != origin:
                evaluator.apply([(piece, host)])
                moved = True
        if not moved:
            break
    return Plan(tuple(evaluator.hosts))


def _best_near(evaluator: Evaluator, piece: int, radius: int) -> int:
    """Return the broker to which a piece is handed on, or the one where it is."""
    instance, loads = evaluator.instance, evaluator.loads
    origin, cost = evaluator.hosts[piece], instance.costs[piece]
    away = instance.whole.hops_from(origin)
    near = [node for node in instance.hosts[piece] if 0 < away[node] <= radius]
    now, *row = evaluator.row((piece,), [origin, *near])
    may_stay = origin in instance.allowed[piece] and loads.fits(origin, 0.0)
    best, host = now if may_stay else inf, origin
    for flow, node in zip(row, near, strict=True):
        if loads.fits(node, cost) and flow < best * (1 - GAIN):
            best, host = flow, node
    return host


def _at_inputs(instance: Instance) -> list[int]:
    """Return each piece where its largest input enters, or at the nearest allowed broker."""
    hosts = [ABSENT] * instance.pieces
    for piece in sorted(range(instance.pieces), key=lambda each: (instance.rank[each], each)):
        source = _largest_source(instance, piece, hosts)
        if source == ABSENT:
            hosts[piece] = instance.hosts[piece][0]
            continue
        away = instance.whole.hops_from(source)
        hosts[piece] = min(instance.hosts[piece], key=lambda host: (min(away[host], FAR), host))
    return hosts


def _largest_source(instance: Instance, piece: int, hosts: list[int]) -> int:
    """Return where the largest input comes from; of a header, where the first partial is."""
    greatest, source = -1.0, ABSENT
    for number in instance.of_piece[piece]:
        flow = instance.flows[number]
        if flow.header == piece:
            return hosts[flow.consumers[0]] if flow.consumers else ABSENT
        if flow.header is None and flow.sender != piece and flow.rate > greatest:
            greatest = flow.rate
            source = flow.origin if flow.sender is None else hosts[flow.sender]
    return source
