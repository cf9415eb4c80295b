"""The small steps that are left when a plan seems good: each stream, then each piece, once more.

Owns the order in which they are tried. Must not know how the plan was found, nor when a search
ends. Invariant: the plan that is handed back keeps all limits and is no worse than the one before;
the same plan gives the same.

A search judges a placement by the trees that it has when it comes by, and is led by what moves
would cost about. Here each step is made in the room that the plan leaves, and counted.
"""

from collections.abc import Sequence

import numpy as np

from planner.layout import carried
from planner.network import Arc
from planner.search.loaded import LoadedState
from planner.search.model import Model
from planner.search.routing import Routed
from planner.search.state import State
from planner.search.untangle import untangle

GAIN = 1e-9
LAYS_MAX, LAYS_CELLS = 4000, 4_000_000  # streams laid, fewer where that takes longer
APPROXIMATE_MAX = 3  # brokers tried though a stream with many ends would not seem less there
WALL_HOPS = 4  # times as many as there are brokers: nothing goes over a link without room

Trees = dict[str, tuple[Arc, ...]]


class Closing:
    """One plan, improved by small steps until none is left or too many were tried."""

    def __init__(self, model: Model, hosts: Sequence[int], trees: Trees) -> None:
        self.model = model
        self.lays = 0
        self.lays_max = min(LAYS_MAX, LAYS_CELLS // model.nodes**2)
        self.free = State(model, hosts)
        """The same placement as if links bore everything: what nothing can be below."""
        self.state: State = self.free
        if model.limited:
            toll = float(WALL_HOPS * model.nodes)
            self.state = LoadedState(model, hosts, toll, walled=True)
            self.state.adopt(trees)

    def run(self) -> None:
        """Goes on until nothing is better."""
        self._streams()
        better = True
        while better and self.lays < self.lays_max:
            better = False
            for piece in range(self.model.pieces):
                better = self._piece(piece) or better
                if self.lays >= self.lays_max:
                    break

    def fits(self) -> bool:
        """Whether links and what is sent keep their limits, as they do in a plan that does."""
        return not isinstance(self.state, LoadedState) or self.state.fits()

    def routed(self) -> Routed:
        """The trees, the shortest of those known; the default one where it is as short."""
        model, state = self.model, self.state
        if isinstance(state, LoadedState):
            state.prefer_default()
            trees = state.named_trees()
        else:
            trees = {}
        found: Trees = {}
        flow = 0.0
        for stream in carried(model.layout, state.hosts):
            if (arcs := trees.get(stream.name)) is None:
                usual, lost = model.network.canonical(stream.source, stream.targets)
                arcs = tuple(usual)
                if stream.number < len(model.layout.streams):
                    best = state.metric(stream.number).tree(stream.source, stream.targets)[1]
                    arcs = best if lost or len(best) < len(usual) else arcs
            found[stream.name] = tuple(sorted(arcs))
            flow += stream.rate * len(arcs)
        return Routed(found, flow, 0.0)

    # --- steps -------------------------------------------------------------------------------

    def _streams(self) -> None:
        """Each stream by its default way or a shorter one in the room that there is."""
        if isinstance(self.state, LoadedState):
            self.state.prefer_default()
            for number in range(len(self.state.hops)):
                self.state.lay_again((number,), self.state.flow * (1 - GAIN))
            self.lays += len(self.state.hops) + untangle(self.state)

    def _piece(self, piece: int) -> bool:
        """Puts a piece elsewhere if that is less; whether it is."""
        state = self.state
        row = self.free.row((piece,))
        row[state.hosts[piece]] = np.inf
        fits = self._fits(piece)
        least = self._now(piece) - GAIN * abs(state.flow)
        order = [int(h) for h in np.argsort(row, kind="stable") if fits[h]]
        below = [host for host in order if row[host] < least]
        if self._approximate(piece):
            below = order[: len(below) + APPROXIMATE_MAX]
        for host in below:
            if self._tried(piece, host):
                self.free.apply([(piece, host)])
                return True
            if self.lays >= self.lays_max:
                break
        return False

    def _now(self, piece: int) -> float:
        """What the streams of a piece cost."""
        state = self.state
        if not isinstance(state, LoadedState):
            return state.present((piece,))
        numbers = state.touched([(piece, 0)])
        return float(state.hops[numbers] @ state.all_rates[numbers])

    def _fits(self, piece: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """The brokers that are allowed and have room for a piece."""
        state, model = self.state, self.model
        work = state.work + model.costs[piece]
        work[state.hosts[piece]] -= model.costs[piece]
        return np.asarray(model.allowed[piece] & (state.limits.excess(work) <= 0))

    def _approximate(self, piece: int) -> bool:
        """Whether a stream of the piece has so many ends that its cost is not known exactly."""
        ends = self.model.exact_ends
        return any(len(self.state.ends(number)[1]) > ends for number in self.model.of_piece[piece])

    def _tried(self, piece: int, host: int) -> bool:
        """Moves a piece, and lays its streams in the room there is; undone if it is no better."""
        state = self.state
        most = state.flow * (1 - GAIN)
        if not isinstance(state, LoadedState):
            self.lays += len(self.model.of_piece[piece])
            return state.flow + state.delta([(piece, host)]) < most
        kept, flow = state.snapshot(), state.flow
        hosts, work = list(state.hosts), state.work.copy()
        state.apply([(piece, host)])
        self.lays += len(state.touched([(piece, 0)]))
        if not (state.fits() and state.flow < most):
            self.lays += untangle(state)
        if state.fits() and state.flow < most:
            return True
        state.put_back(kept, flow)
        state.hosts, state.work = hosts, work
        return False
