"""When each result could first have been known, as far as whoever publishes can tell.

Owns the reckoning of detection latency. Must not know MQTT or the broker. Invariant: a result's
moment is the publication of the last reading that it needs: the one that completes it or, for what
comes out of a window, the one after which no station can send anything more for that window.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from language import Specification, tree


def windows_ms(specification: Specification) -> dict[str, int]:
    """For each subscription that needs tumbling windows, directly or through others, their length.

    Others have none; a subscription that needs several has the longest.
    """
    graph = specification.graph
    by_task_ms: dict[str, int] = {}  # by task, definitions first
    for key, task in graph.tasks.items():
        lengths = [by_task_ms.get(need, 0) for need in task.needs.values()]
        if isinstance(task.node, tree.Definition) and task.node.window is not None:
            lengths.append(task.node.window.every_ms or 0)
        by_task_ms[key] = max(lengths, default=0)
    return {graph.tasks[key].name: by_task_ms[key] for key in graph.roots if by_task_ms[key]}


class ResultMoments:
    """Follows what is published; times are those of one clock that never goes back, in seconds.

    Each station sends in the order of time, and the broker allows no lateness.
    """

    def __init__(self, windows: Mapping[str, int]) -> None:
        """`windows` are those of `windows_ms`."""
        self._windows = windows
        self._sent_s: dict[str, float] = {}
        self._latest_ms: dict[str, float] = {}  # by station that is there
        # where every station has got to, each time that this moved on, and when
        self._frontiers: list[float] = []
        self._frontiers_s: list[float] = []

    def advertised(self, station: str) -> None:
        """A station comes; until its first reading it may send anything."""
        self._latest_ms[station] = -math.inf

    def published(self, station: str, event_id: str, time_ms: int, now_s: float) -> None:
        """A reading is handed to the network."""
        self._sent_s[event_id] = now_s
        if time_ms > self._latest_ms[station]:
            self._latest_ms[station] = time_ms
            self._move(now_s)

    def withdrawn(self, station: str, now_s: float) -> None:
        """A station goes and is not waited for any more."""
        del self._latest_ms[station]
        self._move(now_s)

    def of(self, result: Mapping[str, Any]) -> float | None:
        """The moment of a result as it came, or None where it binds what was never sent."""
        window_ms = self._windows.get(result["subscription"])
        if window_ms is not None:
            closes_ms = (result["end"] // window_ms + 1) * window_ms
            index = bisect_left(self._frontiers, closes_ms)
            return self._frontiers_s[index] if index < len(self._frontiers) else None
        sent = [
            self._sent_s.get(event_id)
            for event_ids in result["events"].values()
            for event_id in event_ids
        ]
        moments = [moment for moment in sent if moment is not None]
        return max(moments) if moments and len(moments) == len(sent) else None

    def _move(self, now_s: float) -> None:
        frontier = min(self._latest_ms.values(), default=math.inf)
        if not self._frontiers or frontier > self._frontiers[-1]:
            self._frontiers.append(frontier)
            self._frontiers_s.append(now_s)
