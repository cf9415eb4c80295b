"""All hop counts of a graph at once, and their weighted sums: integers are used as vectors.

Owns hop counts between all pairs. Must not know streams or trees. Invariant: a count is that of a
breadth-first search, and FAR where there is no path.

A Python integer holds one lane for each broker, so one operation works on all brokers: the rings
around all brokers widen together by `or`, and a weighted sum is a product and an addition. On a
geometric graph of 1,000 brokers the rings take 0.12 s, breadth-first searches from each 0.41 s; a
sum of four weighted rows takes 45 microseconds. In a tree rings widen for long, and the hops from a
broker are those from its neighbour, one less to all that lies behind it and one more to the others.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import not_
from sys import byteorder

# The distance where there is no path: farther than any detour.
FAR = 10_000_000
# The width of a lane of weighted sums.
SUM_BYTES = 8
LANE_MAX = (1 << 8 * SUM_BYTES) - 1
# FAR in a weighted sum: farther than any hop count, and lanes do not overflow.
FAR_LANE = 1 << 16
# The bits of the greatest weight: 2 ** 10 terms of it times FAR_LANE leave 14 bits of a lane.
WEIGHT_BITS = 24
# The width of a lane of which the least is taken: 15 bits, and one that tells the lesser.
THIN_BITS = 16
THIN_MAX = (1 << THIN_BITS - 1) - 1

# A number of hops for each broker.
Row = list[int]


class Distances:
    """The hops from each broker to each over `onward`, counted when they are first asked for."""

    def __init__(self, onward: Sequence[Sequence[int]], against: "Distances | None" = None) -> None:
        """Count over `onward`, or take the hops of `against`, which has all links turned round."""
        self.onward = onward
        self.nodes = len(onward)
        self._against = against
        self._rows: list[Row] = []
        self._lanes: dict[int, int] = {}
        self._thin: dict[int, int] = {}
        self._masks: dict[int, int] = {}
        self._guard = sum(1 << THIN_BITS * place + THIN_BITS - 1 for place in range(self.nodes))
        self._ones = sum(1 << 8 * SUM_BYTES * place for place in range(self.nodes))

    def rows(self) -> list[Row]:
        """Return the hops from each broker to each."""
        if not self._rows:
            turned = zip(*self._against.rows(), strict=True) if self._against else ()
            # A byte a lane is twice as fast as two, and enough for paths of up to 254 links.
            self._rows = [*map(list, turned)] or self._handed_on() or self._widen("B")
        return self._rows

    def _handed_on(self) -> list[Row]:
        """Return the hop counts where there is one way at most between two, else [].

        Each broker has them from the one above it in its tree: what lies behind itself is one hop
        nearer, all else one farther, and reached if there is a link up.
        """
        trees = rooted(self.onward)
        rows: list[Row] = [[] for _ in self.onward]
        behind = _places(self.nodes, 16)
        reached = list(behind)
        for above in trees:
            root, *others = above
            for node in reversed(others):
                behind[above[node]] += behind[node]
                if node in self.onward[above[node]]:
                    reached[above[node]] += reached[node]
            counts = {root: sum(behind[node] for node in others)}
            for node in others:
                counts[node] = counts[above[node]] + behind[root] - 2 * behind[node]
                if above[node] in self.onward[node]:
                    reached[node] |= reached[above[node]] & ~behind[node]
            for node, hops in counts.items():
                rows[node] = self._decoded("H", hops, reached[node])
        return rows if trees else []

    def _decoded(self, code: str, counts: int, reached: int) -> Row:
        size = array(code).itemsize * self.nodes
        row = array(code, counts.to_bytes(size, byteorder)).tolist()
        if reached.bit_count() < self.nodes:
            inside = array(code, reached.to_bytes(size, byteorder))
            for place in compress(range(self.nodes), map(not_, inside)):
                row[place] = FAR
        return row

    def lanes(self, source: int) -> int:
        """Return the hops from `source` to each broker as lanes, of which sums can be made."""
        if (kept := self._lanes.get(source)) is None:
            kept = self._lanes[source] = packed(self.rows()[source])
        return kept

    def without(self, lanes: int, nodes: Iterable[int]) -> int:
        """Return `lanes` with those of `nodes` at 0."""
        for node in nodes:
            if (mask := self._masks.get(node)) is None:
                row = [0] * self.nodes
                row[node] = LANE_MAX
                mask = self._masks[node] = wide(row)
            lanes ^= lanes & mask
        return lanes

    def nearest(self, sources: Sequence[int], more: int) -> int:
        """Return the hops from the nearest of `sources`, and `more`, by broker and as lanes.

        What none reaches is FAR_LANE away, and `more`, which counts as FAR_LANE at most.

        Of two lanes the least is b where a - b does not borrow, else a: eight operations for all
        brokers at once. On 1,000 brokers a tree of 30 takes 0.1 ms so, and 0.6 ms link by link.
        """
        more = min(more, FAR_LANE) * self._ones
        guard, least = self._guard, self._thinned(sources[0])
        for node in sources[1:]:
            other = self._thinned(node)
            lesser = (least | guard) - other & guard
            least ^= (least ^ other) & lesser - (lesser >> THIN_BITS - 1)
        # What is THIN_MAX away becomes FAR_LANE; then each lane of two bytes gets its eight.
        far = (least + (guard >> THIN_BITS - 1)) & guard
        least ^= far - (far >> THIN_BITS - 1)
        size, wider = THIN_BITS // 8 * self.nodes, bytearray(SUM_BYTES * self.nodes)
        near = least.to_bytes(size, "little")
        wider[0::SUM_BYTES], wider[1::SUM_BYTES] = near[0::2], near[1::2]
        wider[2::SUM_BYTES] = (far >> THIN_BITS - 1).to_bytes(size, "little")[0::2]
        return int.from_bytes(wider, "little") + more

    def _thinned(self, source: int) -> int:
        if (thin := self._thin.get(source)) is None:
            row = self.rows()[source]
            if max(row) >= THIN_MAX:
                row = list(map(min, row, repeat(THIN_MAX)))
            thin = int.from_bytes(array("H", row).tobytes(), byteorder)
            self._thin[source] = thin
        return thin

    def _widen(self, code: str) -> list[Row]:
        """Return the hop counts from each broker, in lanes of type `code` or twice as wide.

        A broker's ring of `k` hops is the union of its neighbours' rings of `k - 1`; each lane that
        is not inside yet is one hop farther. A broker whose ring did not grow is done.
        """
        lane = 8 * array(code).itemsize
        rings = _places(self.nodes, lane)
        whole = sum(rings)
        counts = [0] * self.nodes
        active = [node for node in range(self.nodes) if self.onward[node]]
        farthest = 0
        while active:
            farthest += 1
            if farthest >= 1 << lane:
                return self._widen("H")
            wider = []
            for node in active:
                ring = rings[node]
                for other in self.onward[node]:
                    ring |= rings[other]
                wider.append(ring)
            growing = []
            for node, ring in zip(active, wider, strict=True):
                if ring != rings[node]:
                    counts[node] += whole ^ rings[node]
                    rings[node] = ring
                    growing.append(node)
            active = growing
        return [self._decoded(code, *pair) for pair in zip(counts, rings, strict=True)]


def rooted(onward: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Return the trees that links make, whatever their direction; [] where a way leads around.

    Each is told by what is above each broker, the root, which is above itself, first.
    """
    import networkx as nx

    if sum(map(len, onward)) > 2 * (len(onward) - 1):  # soon told, and true of most
        return []
    graph = nx.Graph([(node, other) for node, others in enumerate(onward) for other in others])
    graph.add_nodes_from(range(len(onward)))
    if not nx.is_forest(graph):
        return []
    roots = [min(part) for part in nx.connected_components(graph)]
    return [{root: root, **dict(nx.bfs_predecessors(graph, root))} for root in roots]


def _places(nodes: int, lane: int) -> list[int]:
    """Return 1 in the lane of each broker."""
    places = [1 << lane * place for place in range(nodes)]
    return places if byteorder == "little" else places[::-1]


def packed(row: Row) -> int:
    """Return hop counts as lanes; what is FAR becomes FAR_LANE."""
    if max(row) >= FAR:
        row = list(map({FAR: FAR_LANE}.get, row, row))
    return wide(row)


def wide(values: Iterable[int]) -> int:
    """Return values as lanes of sums."""
    return int.from_bytes(array("Q", values).tobytes(), byteorder)


def unpacked(lanes: int, nodes: int) -> Row:
    """Return a sum of lanes times whole weights, by broker."""
    return array("Q", lanes.to_bytes(SUM_BYTES * nodes, byteorder)).tolist()
