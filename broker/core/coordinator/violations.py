"""Limits that the plan breaks, as every broker knows them, and when a person hears of it.

Owns what was reported last. Must not know how a plan is found, nor who asks. Invariant: a limit
that stays broken is reported once, at each broker that has it in view, and once more when kept.

A broker knows all rates, hosts and limits in its vicinity, as they are stated there. So each finds
the broken limits by itself, and nobody has to ask the broker whose limit it is.
"""

from __future__ import annotations

from typing import TypedDict

from broker.network.effects import Note

CHECK_MS = 5_000  # a limit that is kept again by then is not worth a line: a task is on its way


class BrokenLimit(TypedDict):
    """A limit of a broker, or of what it sends to one neighbour, that tasks running now exceed."""

    broker: str
    limit: str  # the setting's name; of a link with the neighbour's
    bytes_per_s: int
    at_most_bytes_per_s: int


class Violations:
    """The broken limits that were seen last; `rows` in the order of brokers."""

    def __init__(self) -> None:
        self.rows: list[BrokenLimit] = []
        self._reported: list[tuple[str, str]] = []
        self._checked_at: int | None = None

    def is_due(self, now: int) -> bool:
        """Tell if it is time to look again."""
        return self._checked_at is None or now - self._checked_at >= CHECK_MS

    def look(self, rows: list[BrokenLimit], now: int) -> Note | None:
        """Take up the limits broken `now`; return a line for the log where that is news.

        Those that were broken at two looks are reported, so that a task on its way is not.
        """
        before = [(row["broker"], row["limit"]) for row in self.rows]
        lasting = [row for row in rows if (row["broker"], row["limit"]) in before]
        self.rows, self._checked_at = rows, now
        keys = [(row["broker"], row["limit"]) for row in lasting]
        if keys == self._reported or (rows and not lasting):
            return None
        self._reported = keys
        if not keys:
            return Note("info", "limits_kept", {})
        return Note("warning", "limits_broken", {"limits": "; ".join(map(sentence, lasting))})

    def broken(self) -> dict[str, int]:
        """Return 1 for each broken limit, by broker and name of the limit, for metrics."""
        return {f"{row['broker']} {row['limit']}": 1 for row in self.rows}


def sentence(row: BrokenLimit) -> str:
    """Return one violation in words."""
    load, limit = row["bytes_per_s"], row["at_most_bytes_per_s"]
    return f"{row['limit']} of {row['broker']}: {load} of {limit}"
