"""How a broker plans: its vicinity, its patience and the price of a move.

Owns the settings, each with its reason. Must not know the machine. Invariant: two brokers of one
network have the same settings, but for the seeds of their random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Effort:
    """Bound a look, in streams looked at at a broker, some 0.3 us of CPU each.

    There are `each` a piece and member, up to `total`; `at_once` are taken in a row, and then it is
    seen whether what was found is worth a turn.
    """

    total: int = 6_000_000
    each: int = 8_000
    at_once: int = 200_000


@dataclass(frozen=True, slots=True)
class Settings:
    """`radius` is in hops, times are in ms.

    `price` is what a move of a piece must gain at least, as a part of the rate of its inputs: its
    state is so much of them, moved once, over the time that the move is to pay off in.
    """

    radius: int = 3
    price: float = 0.1
    settle_ms: int = 200  # knowledge comes in bursts: one look for all of a burst
    spread_ms: int = 1000  # brokers that learn the same look one after the other, not all at once
    retry_ms: int = 150  # about a turn: somebody else's is over by then
    widen_ms: int = 2500  # longer than the others take to look: they may still help
    pause_ms: int = 50  # between slices of a look, so that all else has its turn
    gain: float = 0.0005  # of the vicinity's flow: for less the messages are not worth it
    effort: Effort = field(default_factory=Effort)
