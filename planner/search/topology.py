"""Hop counts and multicast trees over the links that have room for a stream of some rate.

Owns distances and trees where nothing else is carried. Must not know tasks or loads. Invariant: an
answer depends on the links alone, never on what was asked before.

Up to `exact_ends` ends a tree is a least one (Dreyfus and Wagner, 1971), and what one end more
would cost is known at every broker at once: that is what a search asks for most. Beyond, trees
come from the heuristic of shortest paths (Takahashi and Matsuyama, 1980), each branch laid again
while that is shorter.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import add
from typing import Any, TypeVar

from planner.network import Arc, trimmed
from planner.search.distances import FAR, Distances, Row, packed, rooted

# Of all answers that are kept together; a cell is a reference to a number, 8 bytes.
KEPT_CELLS_MAX = 12_000_000

Ends = tuple[int, ...]
T = TypeVar("T")


class RatedTopology:
    """The links with room for a rate; `inward` and `onward` name neighbours, in ascending order."""

    def __init__(
        self, onward: Sequence[Sequence[int]], exact_ends: int, cells_max: int = KEPT_CELLS_MAX
    ) -> None:
        self.nodes = len(onward)
        self.onward = [list(others) for others in onward]
        self.inward: list[list[int]] = [[] for _ in onward]
        for a, others in enumerate(self.onward):
            for b in others:
                self.inward[b].append(a)
        self.symmetric = self.onward == self.inward
        # Whether there is one way at most between any two.
        self.is_forest = bool(rooted(self.onward))
        self.exact_ends = 1 if self.is_forest else exact_ends
        self.ahead = Distances(self.onward)
        self.back = self.ahead if self.symmetric else Distances(self.inward, self.ahead)
        self._rows: dict[object, Row] = {}
        self._lanes: dict[object, int] = {}
        self._trees: dict[tuple[int, Ends], tuple[Arc, ...]] = {}
        # Rows are let go all at once when there are too many: an order of use would cost each look.
        self.kept_max = max(500, cells_max // max(1, self.nodes))

    # --- hop counts ---------------------------------------------------------------------------

    def hops_from(self, source: int) -> Row:
        """Return the hops from `source` to each broker."""
        return self.ahead.rows()[source]

    def hops_to(self, target: int) -> Row:
        """Return the hops from each broker to `target`."""
        return self.back.rows()[target]

    def path(self, a: int, b: int) -> list[Arc]:
        """Return the links of a shortest way, the least number first among equals; [] without."""
        ahead, onward = self.hops_to(b), self.onward
        if ahead[a] >= FAR:
            return []
        arcs = []
        for hops in range(ahead[a] - 1, -1, -1):
            for other in onward[a]:
                if ahead[other] == hops:
                    break
            arcs.append((a, other))
            a = other
        return arcs

    # --- what one end more would cost, at every broker ------------------------------------------

    def from_everywhere(self, ends: Ends) -> int:
        """Return the links of a tree to all `ends` (ascending), by where it begins, as lanes."""
        if len(ends) < 2:
            return self.back.lanes(ends[0]) if ends else 0
        if len(ends) < self.exact_ends:
            return self._lanes_of(ends, self._least_from)
        return self._joining(self.back, ends[0], ends[1:], ends)

    def to_everywhere(self, source: int, ends: Ends) -> int:
        """Return the links of a tree to `ends` and one more, by the one more, as lanes."""
        if not ends:
            return self.ahead.lanes(source)
        if self.symmetric and len(ends) < max(2, self.exact_ends - 1):
            return self.from_everywhere(tuple(sorted((source, *ends))))
        if len(ends) < self.exact_ends - 1:
            return self._lanes_of((source, ends), lambda key: self._least_to(*key))
        return self._joining(self.ahead, source, ends, (source, ends))

    def links(self, source: int, ends: Ends) -> int:
        """Return how many links a tree has, and FAR more for each end that it does not reach."""
        arcs = self.tree(source, ends)
        ahead = self.hops_from(source)
        return len(arcs) + FAR * sum(ahead[end] >= FAR for end in ends)

    def _lanes_of(self, key: Any, row_of: Callable[[Any], Row]) -> int:
        """Return a row as lanes, counted when it is first asked for."""
        if (lanes := self._lanes.get(key)) is None:
            lanes = self._keep(self._lanes, key, packed(row_of(key)))
        return lanes

    def _joining(self, distances: Distances, source: int, ends: Ends, key: object) -> int:
        """Return the links of a tree and of the way between it and each broker, as lanes."""
        if (lanes := self._lanes.get(key)) is None:
            nodes = (source, *(b for _, b in self.tree(source, ends)))
            lanes = distances.nearest(nodes, self.links(source, ends))
            self._keep(self._lanes, key, lanes)
        return lanes

    # --- trees of few ends, which are least ones ------------------------------------------------

    def _least_from(self, ends: Ends) -> Row:
        if len(ends) == 1:
            return self.hops_to(ends[0])
        if (row := self._rows.get(ends)) is None:
            row = self._keep(self._rows, ends, relaxed(self._branching(ends), self.inward))
        return row

    def _least_to(self, source: int, ends: Ends) -> Row:
        if not ends:
            return self.hops_from(source)
        low = list(map(add, self.hops_from(source), self._least_from(ends)))
        for part, others in splits(ends):
            for left, right in ((part, others), (others, part)):
                both = map(add, self._least_to(source, left), self._least_from(right))
                low = list(map(min, low, both))
        return relaxed(low, self.onward)

    def _branching(self, ends: Ends) -> Row:
        """Return the links of trees that part at once, by the broker where they part."""
        rows = [
            list(map(add, self._least_from(part), self._least_from(others)))
            for part, others in splits(ends)
        ]
        return rows[0] if len(rows) == 1 else list(map(min, *rows))

    def _keep(self, answers: dict[Any, T], key: Any, answer: T) -> T:
        if len(answers) >= self.kept_max:
            answers.clear()
        answers[key] = answer
        return answer

    # --- trees --------------------------------------------------------------------------------

    def tree(self, source: int, ends: Ends) -> tuple[Arc, ...]:
        """Return the links of a tree from `source` to `ends` (ascending, without it)."""
        if (kept := self._trees.get((source, ends))) is None:
            ahead = self.hops_from(source)
            near = tuple(end for end in ends if ahead[end] < FAR)
            if self.is_forest:
                links = sorted({arc for end in near for arc in self.path(source, end)})
            elif len(near) <= self.exact_ends:
                links = trimmed(source, near, self._grown(source, near))
            else:
                parent = self._joined(source, near)
                self._shorten(source, near, parent)
                links = sorted((above, node) for node, above in parent.items())
            kept = self._keep(self._trees, (source, ends), tuple(links))
        return kept

    def _grown(self, node: int, ends: Ends) -> set[Arc]:
        """Return the links of a least tree from `node` to `ends`."""
        if len(ends) <= 1:
            return {arc for end in ends for arc in self.path(node, end)}
        fork = min(
            range(self.nodes),
            key=list(map(add, self.hops_from(node), self._branching(ends))).__getitem__,
        )
        _, part, others = min(
            (self._least_from(part)[fork] + self._least_from(others)[fork], part, others)
            for part, others in splits(ends)
        )
        return {*self.path(node, fork), *self._grown(fork, part), *self._grown(fork, others)}

    def _joined(self, source: int, ends: Sequence[int]) -> dict[int, int]:
        """Return a tree by parents: shortest paths from the tree so far to the nearest end.

        A path never crosses the tree, since it begins at the tree's broker nearest to the end.
        """
        parent: dict[int, int] = {}
        ahead = self.hops_from(source)
        near = {end: (ahead[end], source) for end in ends}
        while near:
            end = min(near, key=lambda left: near[left][0])
            for above, node in self.path(near.pop(end)[1], end):
                parent[node] = above
                row = self.hops_from(node)
                for other, (hops, _) in near.items():
                    if row[other] < hops:
                        near[other] = (row[other], node)
        return parent

    def _shorten(self, source: int, ends: Ends, parent: dict[int, int]) -> None:
        """Hang each end's own branch elsewhere while the tree gets smaller by it."""
        if self.symmetric and len(parent) == len(ends):
            return  # no tree has fewer links than ends
        fixed = {source, *ends}
        children = Counter(parent.values())
        smaller = len(ends) * self.nodes <= 20_000
        while smaller:
            smaller = False
            for end in ends:
                if children[end]:
                    continue
                branch = {end: None}
                top = parent[end]
                while top not in fixed and children[top] == 1:
                    branch[top] = None
                    top = parent[top]
                ahead = self.hops_to(end)
                stem = [source, *(node for node in parent if node not in branch)]
                spot = min(stem, key=ahead.__getitem__)
                if ahead[spot] >= len(branch):
                    continue
                smaller = True
                for node in branch:
                    children[parent.pop(node)] -= 1
                for above, node in self.path(spot, end):
                    parent[node] = above
                    children[above] += 1


def relaxed(low: Row, onward: Sequence[Sequence[int]]) -> Row:
    """Return for each broker the least of what any has, and the hops to it (buckets, in order)."""
    row = list(low)
    buckets: dict[int, list[int]] = {}
    for node, value in enumerate(row):
        buckets.setdefault(value, []).append(node)
    least, highest = min(row), max(row)
    while least <= highest:
        for node in buckets.pop(least, ()):
            if row[node] == least:
                for other in onward[node]:
                    if row[other] > least + 1:
                        row[other] = least + 1
                        buckets.setdefault(least + 1, []).append(other)
        if least not in buckets:
            if not buckets:
                break
            least = min(buckets) if least + 1 not in buckets else least + 1
    return row


@lru_cache(maxsize=20_000)
def splits(ends: Ends) -> tuple[tuple[Ends, Ends], ...]:
    """Return the ways to part `ends` in two; the first is on the right, so that none is twice."""
    first, others = ends[0], ends[1:]
    return tuple(
        (
            tuple(end for i, end in enumerate(others) if mask >> i & 1),
            (first, *(end for i, end in enumerate(others) if not mask >> i & 1)),
        )
        for mask in range(1, 1 << len(others))
    )
