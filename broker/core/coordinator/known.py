"""What this broker knows of all submissions: each home's statement, and rates that changed since.

Owns these and the putting together of parts. Must not know links. Invariant: brokers that have
heard the same have the same `epoch`, and it never comes again once anything has changed; of each
broker the newest statement holds, and rates belong to the statement that they follow.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from broker.core.coordinator import bounds
from broker.core.coordinator.statement import (
    Part,
    Rated,
    Statement,
    StatementError,
    Submission,
    parts_of,
    statement_of,
)

EPOCH_BYTES = 7  # of a digest, so that an epoch fits into a number of 64 bits


@dataclass
class _Coming:
    place: tuple[int, int]
    data: bytearray = field(default_factory=bytearray)
    parts: int = 0


class Known:
    """Keep each home's statement, and rates that changed since.

    `statements` are by broker, this one's own included.
    """

    def __init__(self) -> None:
        self.statements: dict[str, Statement] = {}
        self.rated: dict[str, dict[str, Rated]] = {}  # by home and key
        self._sizes: dict[str, int] = {}
        self._coming: dict[str, _Coming] = {}

    def take(self, part: Part) -> Statement | None:
        """One more part; the statement, where it is whole and newer. Raises StatementError."""
        place = part.life, part.serial
        have = self.statements.get(part.broker)
        if have is not None and have.place >= place:
            return None
        coming = self._coming.get(part.broker)
        if part.part == 0:
            coming = self._coming[part.broker] = _Coming(place)
        elif coming is None or coming.place != place or coming.parts != part.part:
            return None  # of another than what is coming: all comes again with the next session
        size = len(coming.data) + len(part.data)
        if self._size_of_others(part.broker) + size > bounds.KNOWN_BYTES_MAX:
            del self._coming[part.broker]
            raise StatementError("more is known of others than is allowed")
        coming.data += part.data
        coming.parts += 1
        if coming.parts < part.parts:
            return None
        del self._coming[part.broker]
        statement = statement_of(part.broker, place, bytes(coming.data))
        self.put(statement, size)
        return statement

    def _size_of_others(self, broker: str) -> int:
        known = sum(size for name, size in self._sizes.items() if name != broker)
        return known + sum(len(c.data) for name, c in self._coming.items() if name != broker)

    def put(self, statement: Statement, size: int = 0) -> None:
        """From now on this is what its broker says."""
        self.statements[statement.broker] = statement
        self._sizes[statement.broker] = size
        self.rated.pop(statement.broker, None)

    def rate(self, one: Rated) -> bool:
        """Keep rates of a submission as it stands; tell whether they are other than before."""
        statement = self.statements.get(one.home)
        if statement is None or statement.place != (one.life, one.serial):
            return False
        known = next((each for each in statement.submissions if each.key == one.key), None)
        if known is None or len(known.inputs) != len(one.rates):
            return False
        if (one.host, one.rates, one.sends) == self.of(one.home, known):
            return False
        self.rated.setdefault(one.home, {})[one.key] = one
        return True

    def of(self, home: str, one: Submission) -> tuple[str, tuple[int, ...], int]:
        """(host, rates of the inputs, what is sent) of a submission as they are by now."""
        rated = self.rated.get(home, {}).get(one.key)
        if rated is None:
            return one.host, one.rates, one.sends
        return rated.host, rated.rates, rated.sends

    def rates(self, home: str, one: Submission) -> tuple[tuple[int, ...], int]:
        """The last two of these."""
        return self.of(home, one)[1:]

    def forget(self, broker: str) -> bool:
        """There is no way to a broker any more; whether anything was known of it."""
        self._coming.pop(broker, None)
        self._sizes.pop(broker, None)
        self.rated.pop(broker, None)
        return self.statements.pop(broker, None) is not None

    def words(self, broker: str) -> list[Part | Rated]:
        """All that is known of one broker, as it travels."""
        return [*parts_of(self.statements[broker]), *self.rated.get(broker, {}).values()]

    def epoch(self, tree: str) -> int:
        """The number of the epoch that this knowledge is for, on that tree."""
        said = hashlib.blake2b(tree.encode(), digest_size=EPOCH_BYTES)
        for broker in sorted(self.statements):
            place = self.statements[broker].place
            said.update(f"\n{broker!r} {place[0]} {place[1]}".encode())
        return int.from_bytes(said.digest(), "big")
