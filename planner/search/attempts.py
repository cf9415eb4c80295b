"""Moves on a state with its ways that are tried, and undone where they make it worse.

Owns what is kept, and which pieces are at which broker. Must not know what is tried. Invariant:
what limits are broken by, at the prices of the moment, never grows; where it stays, the flow does
not grow either.
"""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

from planner.search.kicks import Moves
from planner.search.traffic import TrafficState

ROUNDING = 1e-12  # of what limits are broken by
SPARE = 1e-9  # so much more and a move is given up before all its streams are laid


class Attempts:
    """A state, what it breaks limits by, and the pieces at each broker."""

    sideways: ClassVar[bool] = True
    """Whether moves are kept that change neither what is broken nor the flow."""

    def __init__(self, state: TrafficState, random: Random) -> None:
        self.state = state
        self.random = random
        self.at: list[dict[int, None]] = [{} for _ in range(state.model.nodes)]
        for piece, host in enumerate(state.hosts):
            self.at[host][piece] = None
        self.excess = state.excess()

    def attempt(self, moves: Moves) -> bool:
        """Makes moves; undone where limits are broken more or, if no less, the flow is more."""
        state = self.state
        moves = [(piece, host) for piece, host in moves if state.hosts[piece] != host]
        if not moves:
            return False
        flow = state.flow
        back = [(piece, state.hosts[piece]) for piece, _ in moves]
        if not state.move(moves, self.vain_beyond()):
            state.undo()
            return False
        if not self.kept(flow):
            return False
        for piece, host in back:
            del self.at[host][piece]
        for piece, host in moves:
            self.at[host][piece] = None
        return True

    def lay_again(self, number: int) -> bool:
        """Lays a stream again; undone as `attempt` has it. Whether limits are broken less."""
        state, flow, before = self.state, self.state.flow, self.excess
        if not state.lay_again([number], self.vain_beyond()):
            state.undo()
            return False
        return self.kept(flow) and self.excess < before

    def lay_wild(self, numbers: Sequence[int]) -> bool:
        """The same with several at once, by ways that chance has chosen."""
        state, flow, before = self.state, self.state.flow, self.excess
        if not state.lay_again(numbers, self.vain_beyond(), self.random):
            state.undo()
            return False
        return self.kept(flow) and self.excess < before

    def vain_beyond(self) -> float:
        """What a move that breaks limits by more is undone for, however sums are rounded."""
        return self.excess + ROUNDING + SPARE * (1.0 + self.excess)

    def kept(self, flow: float) -> bool:
        """Whether the state is no worse than before, with that flow; else it is put back."""
        excess, now = self.state.excess(), self.state.flow
        if excess >= self.excess - ROUNDING and (
            excess > self.excess + ROUNDING or now > flow or (now == flow and not self.sideways)
        ):
            self.state.undo()
            return False
        self.excess = excess
        return True
