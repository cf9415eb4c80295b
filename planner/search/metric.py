"""What it costs to get a stream from one broker to others: distances and Steiner trees.

Owns one network as a stream of some rate sees it: the links with room for it, and the price of
each. Must not know tasks. Invariant: an answer depends on the weights alone, never on what was
asked before; a tree's cost is the sum of its links' weights.

Up to `exact_ends` ends, costs are exact (Dreyfus and Wagner, 1971), and so is what one end more
would cost at every broker at once, which is what a search asks for. Beyond that trees come from the
heuristic of shortest paths (Takahashi and Matsuyama, 1980).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.network import Arc

Vector = npt.NDArray[np.float64]
Ends = tuple[int, ...]

FAR = 1e7  # the distance where there is no way: dearer than any detour
FLOYD_NODES_MAX = 200
RINGS_DEGREE_MIN, RINGS_DEGREE_MAX = 2.5, 40  # on average, and at most: else other ways are faster
IMPROVED_NODES_MAX = 300  # beyond, trees are improved for the final plan only
KEPT_BYTES_MAX = 150_000_000  # what is remembered between questions is let go beyond this


class Metric:
    """Distances under weights of directed links; missing links have no room."""

    def __init__(self, nodes: int, weights: Mapping[Arc, float], exact_ends: int) -> None:
        self.nodes = nodes
        self.weights = weights
        self.onward: list[list[int]] = [[] for _ in range(nodes)]
        for a, b in sorted(weights):
            self.onward[a].append(b)
        self.symmetric = all(weights.get((b, a)) == w for (a, b), w in weights.items())
        is_tree = self.symmetric and len(weights) == 2 * (nodes - 1)
        self.exact_ends = 1 if is_tree else exact_ends
        self.improves = not is_tree and nodes <= IMPROVED_NODES_MAX
        self.distance = self._distances()
        self._onward: dict[int, npt.NDArray[np.int32]] = {}
        self._kept: dict[object, Vector] = {}
        self._trees: dict[tuple[int, Ends], tuple[float, tuple[Arc, ...]]] = {}
        self._kept_max = max(1000, KEPT_BYTES_MAX // (8 * nodes))

    def _distances(self) -> Vector:
        """All pairs: by Floyd and Warshall, or, of many brokers, by rings or relaxing columns.

        The columns are relaxed in the order of a walk, forth and back, which on trees and near them
        takes a few rounds.
        """
        found = np.full((self.nodes, self.nodes), FAR)
        np.fill_diagonal(found, 0.0)
        if self.nodes <= FLOYD_NODES_MAX:
            for (a, b), weight in self.weights.items():
                found[a, b] = weight
            for node in range(self.nodes):
                np.minimum(found, found[:, node, None] + found[node], out=found)
            near: Vector = np.minimum(found, FAR)
            return near
        degrees = [len(others) for others in self.onward]
        wide = sum(degrees) > RINGS_DEGREE_MIN * self.nodes and max(degrees) <= RINGS_DEGREE_MAX
        if wide and all(weight == 1 for weight in self.weights.values()):
            return self._rings()
        inward: list[list[int]] = [[] for _ in range(self.nodes)]
        for a, b in sorted(self.weights):
            inward[b].append(a)
        prices = [
            np.array([[self.weights[a, node]] for a in others])
            for node, others in enumerate(inward)
        ]
        columns = np.ascontiguousarray(found.T)  # columns[v, u] is the distance from u to v
        order = self._walk()
        changed = True
        while changed:
            changed = False
            for node in order:
                if inward[node]:
                    way = (columns[inward[node]] + prices[node]).min(axis=0)
                    if (way < columns[node]).any():
                        np.minimum(columns[node], way, out=columns[node])
                        changed = True
            order = order[::-1]
        return np.ascontiguousarray(columns.T)

    def _rings(self) -> Vector:
        """All hop counts, where each link is one: rings that widen, for all brokers at once.

        Of each broker the brokers within so many hops are bits of one row.
        """
        most = max(len(others) for others in self.onward)
        near = np.array([(o + [n] * most)[:most] for n, o in enumerate(self.onward)])
        within = np.zeros((self.nodes, -(-self.nodes // 64) * 8), dtype=np.uint8)
        own = np.arange(self.nodes)
        within[own, own // 8] = 1 << (own % 8)
        found = np.zeros((self.nodes, self.nodes), dtype=np.int16)
        while True:
            inside = np.unpackbits(within, axis=1, count=self.nodes, bitorder="little")
            found += 1 - inside
            words = within.view(np.uint64)
            wider = np.bitwise_or.reduce(words[near], axis=1) | words
            if (wider == words).all():
                break
            within = wider.view(np.uint8)
        return np.where(inside, found, FAR)

    def _first_hops(self, node: int) -> npt.NDArray[np.int32]:
        """The first broker on the way to each other: the least number among equals."""
        if (known := self._onward.get(node)) is None:
            others = self.onward[node]
            weights = np.array([[self.weights[node, other]] for other in others])
            best = (self.distance[others] + weights).argmin(axis=0)
            known = self._onward[node] = np.array(others, dtype=np.int32)[best]
        return known

    def _walk(self) -> list[int]:
        met, order = set[int](), []
        for start in range(self.nodes):
            if start in met:
                continue
            met.add(start)
            ring = [start]
            for node in ring:
                for other in self.onward[node]:
                    if other not in met:
                        met.add(other)
                        ring.append(other)
            order += ring
        return order

    # --- what one more end would cost, at every broker ----------------------------------------

    def from_everywhere(self, ends: Ends) -> Vector:
        """For each broker, the cost of a tree from there to all the ends (ascending)."""
        if not ends:
            return np.zeros(self.nodes)
        if len(ends) == 1:
            return self.distance[:, ends[0]]
        if (known := self._kept.get(ends)) is not None:
            return known
        if len(ends) <= self.exact_ends:
            onward = self._branching(ends)
            found = (self.distance + onward).min(axis=1)
        else:
            cost, arcs = self.tree(ends[0], ends[1:])
            nodes = _nodes(ends[0], arcs)
            near = self.distance[nodes].min(axis=0) if self.symmetric else None
            found = cost + (self.distance[:, nodes].min(axis=1) if near is None else near)
        return self._keep(ends, found)

    def to_everywhere(self, source: int, ends: Ends) -> Vector:
        """For each broker, the cost of a tree from the source to it and the ends, ascending."""
        if not ends:
            own: Vector = self.distance[source]
            return own
        if self.symmetric and len(ends) < max(2, self.exact_ends):
            return self.from_everywhere(tuple(sorted((source, *ends))))
        key = (source, ends)
        if (known := self._kept.get(key)) is not None:
            return known
        if len(ends) < self.exact_ends:
            onward = self.distance[source] + self.from_everywhere(ends)
            for some, others in _splits(ends):
                for left, right in ((some, others), (others, some)):
                    way = self.to_everywhere(source, left) + self.from_everywhere(right)
                    np.minimum(onward, way, out=onward)
            found = (self.distance + onward[:, None]).min(axis=0)
        else:
            cost, arcs = self.tree(source, ends)
            found = cost + self.distance[_nodes(source, arcs)].min(axis=0)
        return self._keep(key, found)

    def cost(self, source: int, ends: Ends) -> float:
        """What a tree from the source to the ends (ascending, without it) costs."""
        if not ends:
            return 0.0
        if len(ends) <= self.exact_ends or len(ends) == 1:
            return float(self.from_everywhere(ends)[source])
        if len(ends) == 2 and self.symmetric:
            return float(self._three(source, ends).min())
        return self.tree(source, ends)[0]

    def _three(self, source: int, ends: Ends) -> Vector:
        """For each broker, the cost of a tree that joins a source and two ends there."""
        distance = self.distance
        found: Vector = distance[source] + distance[ends[0]] + distance[ends[1]]
        return found

    def _branching(self, ends: Ends) -> Vector:
        """For each broker, the cost of trees from there to the ends that part at once."""
        found: Vector | None = None
        for some, others in _splits(ends):
            way = self.from_everywhere(some) + self.from_everywhere(others)
            found = way if found is None else np.minimum(found, way)
        assert found is not None
        return found

    def _keep(self, key: object, found: Vector) -> Vector:
        if len(self._kept) >= self._kept_max:
            self._kept.clear()
        self._kept[key] = found
        return found

    # --- trees --------------------------------------------------------------------------------

    def tree(self, source: int, ends: Ends) -> tuple[float, tuple[Arc, ...]]:
        """The cost and the links of a tree from the source to the ends (ascending, without it)."""
        key = (source, ends)
        if (known := self._trees.get(key)) is None:
            if len(self._trees) >= self._kept_max:
                self._trees.clear()
            kept = self._tree(source, ends)
            lost = sum(self.distance[source, end] >= FAR for end in ends)
            cost = sum(self.weights[arc] for arc in kept) + FAR * float(lost)
            known = self._trees[key] = (cost, tuple(kept))
        return known

    def _tree(self, source: int, ends: Ends) -> list[Arc]:
        arcs: set[Arc] = set()
        if len(ends) <= self.exact_ends:
            self._grow(source, ends, arcs)
            return self._trimmed(source, ends, arcs)
        if len(ends) == 2 and self.symmetric:
            fork = int(np.argmin(self._three(source, ends)))
            ways = [(source, fork), (fork, ends[0]), (fork, ends[1])]
            if all(self.distance[a, b] < FAR for a, b in ways):
                return sorted(arc for a, b in ways for arc in self.path(a, b))
        self._join(source, ends, arcs)
        kept = sorted(arcs)
        return self.improved(source, ends, kept) if self.improves else kept

    def path(self, a: int, b: int) -> list[Arc]:
        """The links of a shortest way; none where there is no way."""
        if self.distance[a, b] >= FAR:
            return []
        arcs = []
        while a != b:
            other = int(self._first_hops(a)[b])
            arcs.append((a, other))
            a = other
        return arcs

    def _grow(self, node: int, ends: Ends, arcs: set[Arc]) -> None:
        """Adds the links of a cheapest tree from the node to the ends."""
        if len(ends) == 1:
            arcs.update(self.path(node, ends[0]))
            return
        onward = self._branching(ends)
        fork = int(np.argmin(self.distance[node] + onward))
        arcs.update(self.path(node, fork))
        parts = [
            (self.from_everywhere(some)[fork] + self.from_everywhere(others)[fork], some, others)
            for some, others in _splits(ends)
        ]
        _, some, others = min(parts)
        self._grow(fork, some, arcs)
        self._grow(fork, others, arcs)

    def _join(self, source: int, ends: Sequence[int], arcs: set[Arc]) -> None:
        """Adds shortest ways from what is joined so far, always to the nearest end."""
        distance = self.distance
        left = np.array([end for end in ends if distance[source, end] < FAR], dtype=np.int64)
        near = distance[source, left]
        via = np.full(len(left), source)
        while len(left):
            place = int(near.argmin())
            way = self.path(int(via[place]), int(left[place]))
            arcs.update(way)
            stay = np.arange(len(left)) != place
            left, near, via = left[stay], near[stay], via[stay]
            if len(left) and way:
                nodes = np.array([b for _, b in way])
                ways = distance[np.ix_(nodes, left)]
                nearest = ways.argmin(axis=0)
                least = ways[nearest, np.arange(len(left))]
                nearer = least < near
                near = np.where(nearer, least, near)
                via = np.where(nearer, nodes[nearest], via)

    def _trimmed(self, source: int, ends: Sequence[int], arcs: set[Arc]) -> list[Arc]:
        """A tree within these links from the source, without branches that lead to no end."""
        onward: dict[int, list[int]] = {}
        for a, b in sorted(arcs):
            onward.setdefault(a, []).append(b)
        parent = {source: source}
        reached = [source]
        for node in reached:
            for other in onward.get(node, ()):
                if other not in parent:
                    parent[other] = node
                    reached.append(other)
        kept: dict[Arc, None] = {}
        for end in ends:
            node = end
            while node in parent and parent[node] != node:
                arc = (parent[node], node)
                if arc in kept:
                    break
                kept[arc] = None
                node = parent[node]
        return sorted(kept)

    def improved(self, source: int, ends: Ends, arcs: list[Arc]) -> list[Arc]:
        """Tries to hang each end's own branch elsewhere, until none can be had for less."""
        best = sum(self.weights[arc] for arc in arcs)
        improved = True
        while improved:
            improved = False
            for end in ends:
                others = [other for other in ends if other != end]
                rest = self._trimmed(source, others, set(arcs))
                spots = _nodes(source, rest)
                spot = spots[int(np.argmin(self.distance[spots, end]))]
                new = self._trimmed(source, ends, {*rest, *self.path(spot, end)})
                cost = sum(self.weights[arc] for arc in new)
                if cost < best - 1e-9:
                    best, arcs, improved = cost, new, True
        return arcs


def _nodes(source: int, arcs: Sequence[Arc]) -> list[int]:
    return sorted({source, *(b for _, b in arcs)})


@lru_cache(maxsize=20_000)
def _splits(ends: Ends) -> list[tuple[Ends, Ends]]:
    """The ways to part ends in two; the first end is on the right, so that none comes twice."""
    found = []
    first, rest = ends[0], ends[1:]
    for mask in range(1, 1 << len(rest)):
        some = tuple(end for i, end in enumerate(rest) if mask >> i & 1)
        others = (first, *(end for i, end in enumerate(rest) if not mask >> i & 1))
        found.append((some, others))
    return found
