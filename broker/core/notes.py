"""The broker's log lines: one for each distinct cause, however often it comes.

Owns the memory of what was told. Must not know where lines go. Invariant: of one cause there is one
line; of each event so many causes are told, and further ones are only counted (`untold`).
"""

from __future__ import annotations

from broker.core.effects import Level, Note

CAUSES_MAX = 200  # of one event; a log with more complaints is read by nobody; counters go on
FIELD_CHARS_MAX = 300  # a line is read by people


class Notes:
    """Collects lines until they are taken."""

    def __init__(self) -> None:
        self.untold = 0
        self._told: dict[str, set[str]] = {}
        self._lines: list[Note] = []

    @property
    def waiting(self) -> bool:
        """Tell whether there is any line to take."""
        return bool(self._lines)

    def tell(self, level: Level, event: str, /, **fields: str | int) -> None:
        """A line, always: for what happens rarely and on request."""
        cut = {
            name: value[:FIELD_CHARS_MAX] if isinstance(value, str) else value
            for name, value in fields.items()
        }
        self._lines.append(Note(level, event, cut))

    def once(self, level: Level, event: str, cause: str, /, **fields: str | int) -> None:
        """A line the first time that the cause comes; the counters tell how often it came."""
        told = self._told.setdefault(event, set())
        if cause in told:
            return
        if len(told) >= CAUSES_MAX:
            self.untold += 1
            return
        told.add(cause)
        self.tell(level, event, **fields)

    def take(self) -> list[Note]:
        """The lines since the last call."""
        lines, self._lines = self._lines, []
        return lines
