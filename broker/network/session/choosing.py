"""Which of two connections to the same neighbour is better: the decider's choice.

Owns that comparison. Must not know what is said on them. Invariant: it hinges on what both hellos
say and on what the decider has heard, on no clock of two machines.
"""

from __future__ import annotations

from msgspec import Struct

from broker.network.session.frames import Hello


class Candidate(Struct, frozen=True):
    """A connection whose other end is known. `dialled`: by this broker; `opened_ms`: when."""

    connection: int
    hello: Hello
    dialled: bool
    opened_ms: int = 0


def better(new: Candidate, current: Candidate, turn: int, up_ms: int | None) -> bool:
    """Tell whether a new connection takes the place of the current one.

    `turn` is the current one's and `up_ms` since when both hold it; None: they do not yet.
    """
    if new.hello.epoch != current.hello.epoch:
        return new.hello.epoch > current.hello.epoch  # the other's process is another one
    if not (new.dialled or current.dialled):
        return new.hello.attempt > current.hello.attempt  # it dials anew when it has lost one
    # It held none, although it had taken the current one. One that was under way already when the
    # current one came up is of two that dialled at once.
    return up_ms is not None and new.hello.holds < turn and new.opened_ms > up_ms
