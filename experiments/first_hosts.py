"""Where pieces begin that nobody runs: homes, first hosts, and the election of a header.

Owns these choices. Must not know messages. Invariant: all who know the same tree and the same
makers choose the same broker, without asking each other (the paper's blind bid).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planner.layout import Layout, Role
from planner.network import Network
from planner.problem import Mode


def homes_of(layout: Layout) -> list[int]:
    """The home of each piece: its first destination, or that of the first that consumes it.

    A task that nobody wants has its home where its first input enters, or at the first broker.
    """
    problem = layout.problem
    found: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    for task in problem.tasks:
        for name in task.inputs:
            users.setdefault(name, []).append(task.id)
    for task in reversed(problem.in_order()):
        keys = problem.input_keys(task) if task.mode is Mode.SHARDED else ("",)
        ends = [end for key in keys for end in task.destinations_of(key)]
        if ends:
            found[task.id] = layout.numbers[ends[0]]
        else:
            near = [found[user] for user in users.get(task.id, ()) if user in found]
            found[task.id] = near[0] if near else 0
    return [found[piece.task] for piece in layout.pieces]


def standing_hosts(
    layout: Layout, tree: Network, part: Sequence[int], held: Mapping[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return who runs each piece in one `part` of the network, and the home of each there.

    What a broker of the part holds already stays with it; -1 where nobody may run a piece.
    """
    reached = frozenset(part)
    homes = [home if home in reached else min(reached) for home in homes_of(layout)]
    headers = {one.header: number for number, one in enumerate(layout.aggregates)}
    hosts: dict[int, int] = {}
    # Headers last: they are elected by where the partial results are made.
    for piece in sorted(range(len(layout.pieces)), key=lambda each: each in headers):
        if piece in held:
            hosts[piece] = held[piece]
            continue
        allowed = [host for host in layout.pieces[piece].hosts if host in reached]
        if not allowed:
            hosts[piece] = -1
        elif piece in headers:
            partials = layout.aggregates[headers[piece]].partials
            makers = [hosts[partial] for partial in partials if hosts[partial] >= 0]
            hosts[piece] = elect(layout, headers[piece], makers, tree, allowed)
        else:
            hosts[piece] = first_host(layout, piece, tree, homes[piece], allowed)
    return tuple(hosts[piece] for piece in range(len(layout.pieces))), tuple(homes)


def first_host(layout: Layout, piece: int, tree: Network, home: int, allowed: Sequence[int]) -> int:
    """Return where a piece begins: a shard or partial at its key's source, else at its home.

    Where it is not allowed there, at the nearest broker that is.
    """
    known, wanted = layout.pieces[piece], home
    if known.role in {Role.SHARD, Role.PARTIAL}:
        origin = layout.numbers[known.key]
        wanted = origin if origin in tree.hops(home) else home
    hops = tree.hops(wanted)
    return min(allowed, key=lambda host: (hops[host], host))


def elect(
    layout: Layout,
    number: int,
    makers: Iterable[int],
    tree: Network,
    candidates: Sequence[int],
) -> int:
    """The header of an aggregate: the candidate with the lowest bid, the first of these.

    A bid is the flow that this header would cause: each maker's partial results to it, and the
    result to each of its destinations, hop by hop. (The paper tells that candidates are valued by
    topology and identification, not how.)
    """
    aggregate = layout.aggregates[number]
    result = next(one for one in layout.streams if one.piece == aggregate.header)
    ends = list(result.destinations)
    sources = sorted(makers)

    def bid(candidate: int) -> float:
        hops = tree.hops(candidate)
        partials = sum(hops.get(maker, 0) for maker in sources)
        results = sum(hops.get(end, 0) for end in ends)
        return aggregate.rate * partials + result.rate * results

    return min(sorted(candidates), key=lambda one: (bid(one), one))
