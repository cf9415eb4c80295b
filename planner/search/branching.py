"""A tree from one broker to some others, where a branch may cost more than the one before it.

Owns the tree. Must not know what links cost. Invariant: it leads from its source to all targets
that can be reached at all, and each of its leaves is one of them.

It is grown by the cheapest way to the nearest target, again and again. Where that does not do, the
ways between its targets and branchings are taken out and laid again, one at a time, while that
makes it cheaper (the exchange of key paths: Uchoa and Werneck, 2012, section 4), and other targets
are tried as the first.
"""

from collections.abc import Callable, Collection, Sequence
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np

from planner.network import Arc
from planner.search.metric import FAR
from planner.search.model import Model

ROUNDS_MAX = 4
STARTS_MAX = 8
STARTED_ENDS_MAX = 32  # of all trees that are grown for one, so that many ends do not take seconds
LEAST = 1e-9  # hops; less is no gain

Cost = Callable[[Arc, int], float]
"""What a link costs, where a broker sends so often already; a hop at least."""


def branching(
    model: Model,
    source: int,
    targets: Sequence[int],
    cost: Cost,
    free: Callable[[Arc], float],
) -> list[Arc]:
    """A tree; the cheapest of a few where links cost more than if free."""
    best = Branching(model, source, targets, cost, None)
    least = best.total()
    starts = min(STARTS_MAX, STARTED_ENDS_MAX // max(1, len(targets)))
    for first in (None, *targets[:starts]) if len(targets) > 1 else ():
        if least <= sum(map(free, best.arcs())) + LEAST:
            break
        other = best if first is None else Branching(model, source, targets, cost, first)
        other.exchange()
        if (total := other.total()) < least - LEAST:
            best, least = other, total
    return best.arcs()


class Branching:
    """One tree; `first` is the target that it is grown to first."""

    def __init__(
        self, model: Model, source: int, targets: Sequence[int], cost: Cost, first: int | None
    ) -> None:
        self._model, self._source, self._cost = model, source, cost
        self._targets = set(targets)
        self._parent: dict[int, int] = {}  # in the tree, of each broker but the source
        self._branches: dict[int, int] = {}  # so many links of the tree leave a broker
        self._grow(targets, first)

    def arcs(self) -> list[Arc]:
        """The links of the tree."""
        return [(parent, node) for node, parent in self._parent.items()]

    def total(self) -> float:
        """What they cost together."""
        sent: dict[int, int] = {}
        found = 0.0
        for arc in self.arcs():
            found += self._cost(arc, sent.get(arc[0], 0))
            sent[arc[0]] = sent.get(arc[0], 0) + 1
        return found

    def _grow(self, targets: Sequence[int], first: int | None) -> None:
        left = list(targets)
        if first is not None:
            left.remove(first)
            self._hang(self._way([self._source], first, ()))
        while left:
            inside = [self._source, *self._parent]
            away = self._model.hops[np.ix_(inside, left)].min(axis=0)
            target = left.pop(int(away.argmin()))
            if target not in self._parent and target != self._source:
                self._hang(self._way(inside, target, ()))

    def _hang(self, arcs: Sequence[Arc]) -> None:
        for a, b in arcs:
            self._parent[b] = a
            self._branches[a] = self._branches.get(a, 0) + 1

    def exchange(self) -> None:
        """Lays each way anew that ends at a target or a branching, while one gets cheaper."""
        better = True
        rounds = 0
        while better and rounds < ROUNDS_MAX:
            better = False
            rounds += 1
            for node in list(self._parent):
                if node in self._parent and self._is_key(node):
                    better |= self._lay_again(node)

    def _is_key(self, node: int) -> bool:
        return node in self._targets or self._branches.get(node, 0) > 1

    def _lay_again(self, node: int) -> bool:
        old = self._cut(node)
        before = sum(self._cost(arc, self._branches.get(arc[0], 0)) for arc in old)
        beneath = self._beneath(node)
        inside = [one for one in (self._source, *self._parent) if one not in beneath]
        new = self._way(inside, node, beneath - {node})
        after = sum(self._cost(arc, self._branches.get(arc[0], 0)) for arc in new)
        is_better = bool(new) and after < before - LEAST
        self._hang(new if is_better else old)
        return is_better

    def _cut(self, node: int) -> list[Arc]:
        """Takes the way out that leads to a broker from the nearest one that has to stay."""
        found = []
        while True:
            parent = self._parent.pop(node)
            self._branches[parent] -= 1
            found.append((parent, node))
            if parent == self._source or parent in self._targets or self._branches[parent]:
                return found[::-1]
            node = parent

    def _beneath(self, node: int) -> set[int]:
        """A broker and all that the tree leads to from there."""
        found = {node}
        for one in self._parent:
            way, at = [], one
            while at not in found and at in self._parent:
                way.append(at)
                at = self._parent[at]
            if at in found:
                found.update(way)
        return found

    def _way(self, inside: Sequence[int], target: int, barred: Collection[int]) -> list[Arc]:
        """The cheapest way from any of some brokers to another, by A*: a link costs a hop or more.

        It does not pass what is barred. Empty: there is none.
        """
        ahead: list[float] = self._model.hops[target].tolist()
        far = dict.fromkeys(inside, 0.0)
        parent: dict[int, int] = {}
        heap = [(ahead[node], 0.0, node) for node in sorted(inside) if ahead[node] < FAR]
        heapify(heap)
        while heap:
            _, way, node = heappop(heap)
            if node == target:
                break
            if way > far[node]:
                continue
            sent = self._branches.get(node, 0)
            for other in self._model.network.neighbours[node]:
                known = far.get(other, inf)
                if other in barred or way + 1.0 >= known:
                    continue
                on = way + self._cost((node, other), sent)
                if on < known:
                    far[other] = on
                    parent[other] = node
                    heappush(heap, (on + ahead[other], on, other))
        arcs = []
        node = target
        while node in parent:
            arcs.append((parent[node], node))
            node = parent[node]
        return arcs[::-1]
