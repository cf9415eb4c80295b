"""Whether a word of the rounds can be meant for a network: numbers that stand for something.

Owns this check. Must not know what the word leads to. Invariant: what passes names only brokers,
pieces and streams that are there, so that the rounds can take it as it is.
"""

from __future__ import annotations

from planner.network import Network
from planner.rounds import messages as m
from planner.rounds.tables import HERE, Tables


class Numbers:
    """Check numbers in messages: how many brokers, pieces and streams there are."""

    def __init__(self, tree: Network, pieces: int, streams: int) -> None:
        self._brokers = len(tree.neighbours)
        self._pieces = pieces
        self._streams = streams

    def fit(self, envelope: m.Envelope) -> bool:
        """Tell whether all numbers of an envelope stand for something."""
        if not self._broker(envelope.origin):
            return False
        if envelope.to != HERE and not self._broker(envelope.to):
            return False
        match envelope.body:
            case m.Tell(summary, hops):
                own = summary.broker == envelope.origin and summary.epoch == envelope.epoch
                return own and 0 <= hops <= self._brokers and self._tables(summary.tables)
            case m.Commit(_, tables, moves):
                return self._tables(tables) and all(
                    self._piece(piece) and self._broker(a) and self._broker(b)
                    for piece, a, b in moves
                )
            case m.Placed(pieces):
                return all(self._piece(piece) for piece, _ in pieces)
            case _:
                return True

    def _broker(self, number: int) -> bool:
        return 0 <= number < self._brokers

    def _piece(self, number: int) -> bool:
        return 0 <= number < self._pieces

    def _tables(self, tables: Tables) -> bool:
        """Of aggregates there are none: a submission is one piece."""
        return (
            not tables.joined
            and all(self._piece(one.piece) for one in tables.hosted)
            and all(
                0 <= one.stream < self._streams
                and (one.up == HERE or self._broker(one.up))
                and all(self._broker(other) for other in one.down)
                for one in tables.passing
            )
        )
