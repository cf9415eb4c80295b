"""Agents of patterns with `group by`: how many groups they keep, as keys may be invented.

Owns the limit and what goes at it. Must not know patterns. Invariant: after each batch no more
groups are kept, and no more events and occurrences in all of them, than the limits say; what goes
is counted.

An agent holds the limit of its events and occurrences within the group at hand. Where that has
nothing that it could give up, or there are too many groups, groups go whole: first the one that
began first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.core.agent import LeafEvents
from broker.core.pattern_agent import PatternAgent
from broker.core.staged_agent import StagedAgent

GROUPS_OVERFLOW = "groups_overflow"


class GroupedPatternAgent(PatternAgent):
    """A pattern agent that keeps so many groups."""

    groups_max = 0
    dropped_groups = 0

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        found = super().feed(batch, watermark)
        partitions = self._partitions
        while len(partitions) > self.groups_max or (
            self._size > self._occurrences_max and len(partitions) > 1
        ):
            first = next(iter(partitions))
            self._drop(first)
            self.dropped_groups += 1
        return found

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {**super().dropped(), GROUPS_OVERFLOW: self.dropped_groups}

    def state(self) -> Any:
        """See agent.Agent."""
        return {**super().state(), GROUPS_OVERFLOW: self.dropped_groups}

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        super().restore(state)
        self.dropped_groups = state.get(GROUPS_OVERFLOW, 0)


class GroupedStagedAgent(StagedAgent):
    """A staged agent that keeps so many groups."""

    groups_max = 0
    dropped_groups = 0

    def feed(self, batch: Sequence[LeafEvents], watermark: int) -> list[Any]:
        """See agent.Agent."""
        found = super().feed(batch, watermark)
        partitions = self._partitions
        while len(partitions) > self.groups_max or (
            self._size > self._occurrences_max and len(partitions) > 1
        ):
            self._drop(next(iter(partitions)))
            self.dropped_groups += 1
        return found

    def dropped(self) -> dict[str, int]:
        """See agent.Agent."""
        return {**super().dropped(), GROUPS_OVERFLOW: self.dropped_groups}

    def state(self) -> Any:
        """See agent.Agent."""
        return {**super().state(), GROUPS_OVERFLOW: self.dropped_groups}

    def restore(self, state: Any) -> None:
        """See agent.Agent."""
        super().restore(state)
        self.dropped_groups = state.get(GROUPS_OVERFLOW, 0)
