"""What this broker knows of the brokers and submissions in whose scope it is.

Owns their newest words, and moves that were agreed on since. Must not know links. Invariant: of
each broker and submission the newest word holds; a move holds until the home has a word of as many
terms, so that a word that crossed it on its way takes nothing back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.core.coordinator import bounds
from broker.core.coordinator.statement import (
    BrokerWord,
    MoveWord,
    Piece,
    StatementError,
    Submission,
    Withdrawn,
    encoded,
)


class Known:
    """Keep the newest words; `brokers` by name, `submissions` by (home, key).

    Only of brokers to whom there is a way, so of no more than the tree has. `revision` grows with
    each change.
    """

    def __init__(self) -> None:
        self.brokers: dict[str, BrokerWord] = {}
        self.submissions: dict[Piece, Submission] = {}
        self.revision = 0
        self._moved: dict[Piece, tuple[int, str]] = {}
        self._sizes: dict[Piece, int] = {}
        self._size = 0

    def put_broker(self, word: BrokerWord) -> bool:
        """Take what a broker says of itself; tell whether that is newer."""
        before = self.brokers.get(word.broker)
        if before is not None and before.place >= word.place:
            return False
        self.brokers[word.broker] = word
        self.revision += 1
        return True

    def put(self, word: Submission) -> bool:
        """Take a word on a submission; tell whether it is newer. Raises StatementError."""
        before, size = self.submissions.get(word.piece), len(encoded(word))
        if before is not None and before.place >= word.place:
            return False
        if not self.has_room(word):
            raise StatementError("more is known of others than is allowed")
        self.drop(word.piece)
        self.submissions[word.piece] = word
        self._sizes[word.piece] = size
        self._size += size
        return True

    def has_room(self, word: Submission) -> bool:
        """Tell whether a word fits beside all others."""
        others = self._size - self._sizes.get(word.piece, 0)
        return others + len(encoded(word)) <= bounds.KNOWN_BYTES_MAX

    def withdraw(self, word: Withdrawn) -> Submission | None:
        """Take that a submission is gone; return the last word on it, where that was older."""
        before = self.submissions.get((word.home, word.key))
        if before is None or before.place >= (word.life, word.serial):
            return None
        self.drop(before.piece)
        self._moved.pop(before.piece, None)
        return before

    def drop(self, piece: Piece) -> None:
        """Know a submission no longer; a move of it counts if there is another word on it."""
        self.revision += 1
        if self.submissions.pop(piece, None) is not None:
            self._size -= self._sizes.pop(piece)

    def planned(self, piece: Piece) -> tuple[str, int]:
        """Return (host, term) that was agreed on last, as far as is known."""
        word = self.submissions[piece]
        moved = self._moved.get(piece)
        if moved is not None and moved[0] > word.term:
            return moved[1], moved[0]
        self._moved.pop(piece, None)
        return word.planned, word.term

    def move(self, moves: Iterable[MoveWord]) -> bool:
        """Take moves that were agreed on, of which homes have yet to hear; tell if any is news."""
        is_news = False
        for home, key, _, to, term in moves:
            if (home, key) in self.submissions and term > self.planned((home, key))[1]:
                self._moved[home, key] = (term, to)
                self.revision += 1
                is_news = True
        return is_news

    def content(self, piece: Piece) -> tuple[object, ...] | None:
        """Return what of a submission is planned with; None where nothing is known of it."""
        word = self.submissions.get(piece)
        if word is None:
            return None
        planned = self.planned(piece)[0]
        return word.inputs, word.rates, word.sends, word.not_at, word.filters, planned

    def forget(self, broker: str) -> bool:
        """There is no way to a broker any more; tell whether anything was known of it."""
        pieces = [piece for piece in self.submissions if piece[0] == broker]
        for piece in pieces:
            self.drop(piece)
            self._moved.pop(piece, None)
        self.revision += 1
        return self.brokers.pop(broker, None) is not None or bool(pieces)

    def keep(self, wanted: Callable[[Submission], bool]) -> None:
        """Drop the submissions that are not wanted any more."""
        for word in [word for word in self.submissions.values() if not wanted(word)]:
            self.drop(word.piece)
            self._moved.pop(word.piece, None)
