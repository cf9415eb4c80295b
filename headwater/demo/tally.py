"""What came back: results counted, timed and measured against what was expected.

Owns the account that the summary prints. Must not know MQTT or the screen. Invariant: a result that
comes twice counts once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headwater.demo.moments import ResultMoments


class ResultTally:
    """Counts results by subscription; `complaints` are what must not happen."""

    def __init__(self, expected: Mapping[str, int], moments: ResultMoments) -> None:
        self.expected = dict(expected)
        self.counts = dict.fromkeys(expected, 0)
        self.latencies_s: dict[str, list[float]] = {name: [] for name in expected}
        self.complaints: list[str] = []
        self.first_s: float | None = None
        self.last_s = 0.0
        self._moments = moments
        self._seen: set[str] = set()

    def take(self, payload: bytes, now_s: float) -> dict[str, Any] | None:
        """Account for a result; None if it has been here before or is none."""
        try:
            result: dict[str, Any] = msgspec.json.decode(payload, type=dict[str, Any])
            name, result_id = result["subscription"], result["id"]
        except (msgspec.DecodeError, KeyError):
            self.complain("something came that is no result")
            return None
        if result_id in self._seen:
            return None
        self._seen.add(result_id)
        if name not in self.counts:
            self.complain(f"a result of {name} came, which nobody asked for")
            return None
        self.counts[name] += 1
        if self.first_s is None:
            self.first_s = now_s
        self.last_s = now_s
        moment = self._moments.of(result)
        if moment is None:
            self.complain(f"a result of {name} is made of readings that were never sent")
        else:
            self.latencies_s[name].append(now_s - moment)
        return result

    def complain(self, sentence: str) -> None:
        """Note what must not happen; each sentence once."""
        if sentence not in self.complaints:
            self.complaints.append(sentence)

    @property
    def total(self) -> int:
        """Results so far."""
        return sum(self.counts.values())

    @property
    def complete(self) -> bool:
        """Tell whether every result that is expected has come."""
        return all(self.counts[name] >= count for name, count in self.expected.items())

    def judge(self) -> None:
        """Complain of every subscription whose results are not those expected."""
        for name, count in self.expected.items():
            received = self.counts[name]
            if received == 0:
                self.complain(f"{name} has no result, {count} were expected")
            elif received != count:
                self.complain(f"{name} has {received} results, {count} were expected")


def quantile_ms(latencies_s: Sequence[float], share: float) -> float | None:
    """The smallest latency that at least this share of them does not exceed, in milliseconds."""
    if not latencies_s:
        return None
    rank = math.ceil(share * len(latencies_s))
    return 1000 * sorted(latencies_s)[max(rank, 1) - 1]
