"""Who runs what nobody runs: first hosts, guardians, and the election of an aggregate's header.

Owns these choices. Must not know messages. Invariant: all who know the same tree and the same
makers choose the same broker, without asking each other (the paper's blind bid).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.layout import Layout, Role
from planner.problem import Mode
from planner.rounds.tree import Tree


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


def guardian(home: int, tree: Tree, me: int) -> int:
    """Return who looks after a piece: its home, or if that is not reached the first who can be."""
    reached = tree.hops(me)
    return home if home in reached else min(reached)


def first_host(layout: Layout, piece: int, tree: Tree, me: int) -> int | None:
    """Return where a piece begins: a shard or partial at its key's source, else at the guardian.

    Where it is not allowed there, at the nearest broker that is; None where none can be reached.
    """
    known = layout.pieces[piece]
    reached = tree.hops(me)
    wanted = me
    if known.role in {Role.SHARD, Role.PARTIAL}:
        origin = layout.numbers[known.key]
        wanted = origin if origin in reached else me
    allowed = [host for host in known.hosts if host in reached]
    if not allowed:
        return None
    hops = tree.hops(wanted)
    return min(allowed, key=lambda host: (hops[host], host))


def elect(
    layout: Layout,
    number: int,
    makers: Iterable[int],
    tree: Tree,
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
