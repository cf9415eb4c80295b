"""Descent where no plan is known that keeps all limits: breaks them less, wherever they are.

Owns the moves that may relieve a limit. Must not know when a search ends, nor what is kept: it asks
for what a placement comes to, with its routes, and is answered with a pair of which less is better.
Invariant: each placement that it goes on from is better than the one before.

While limits are broken a search is led by prices that weigh brokers against links only roughly.
What counts in the end is the sum of the parts by which limits are exceeded; this descends by that.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from planner.search.model import Model

Judge = Callable[[tuple[int, ...]], tuple[float, float] | None]
"""By how much a placement breaks limits, and its flow; None where it is not to be gone on with."""


def mend(model: Model, random: Random, hosts: Sequence[int], judge: Judge) -> None:
    """Goes from placement to better placement, by one piece or two, until none is near."""
    now = tuple(hosts)
    least = judge(now)
    while least is not None:
        better = None
        for other in _near(model, random, now):
            found = judge(other)
            if found is None:
                return
            if found < least:
                better, least = other, found
                break
        if better is None:
            return
        now = better


def _near(model: Model, random: Random, hosts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The placements that differ in one piece, then in two that change places or go together."""
    pieces = [*range(model.pieces)]
    random.shuffle(pieces)
    for piece in pieces:
        for host in model.layout.pieces[piece].hosts:
            if host != hosts[piece]:
                yield _with(hosts, (piece, host))
    for place, piece in enumerate(pieces):
        for other in pieces[place + 1 :]:
            here, there = hosts[piece], hosts[other]
            if here != there and model.allowed[piece, there] and model.allowed[other, here]:
                yield _with(hosts, (piece, there), (other, here))
            if other in model.near[piece]:
                for host in model.layout.pieces[piece].hosts:
                    if host not in {here, there} and model.allowed[other, host]:
                        yield _with(hosts, (piece, host), (other, host))


def _with(hosts: tuple[int, ...], *moves: tuple[int, int]) -> tuple[int, ...]:
    changed = list(hosts)
    for piece, host in moves:
        changed[piece] = host
    return tuple(changed)
