"""The stand-in for a suspended agent: it takes events and gives nothing.

Owns that stand-in and its state. Must not know why agents are suspended. Invariant: it holds
nothing, and is due at no time, so that nobody waits for what it will not report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SUSPENDED = "suspended"  # the key of its state, which no other agent's has


class SuspendedAgent:
    """Holds the place of an agent until its task is resumed; `why` is what it exceeded."""

    waits = False

    def __init__(self, why: str) -> None:
        self.why = why

    def feed(self, batch: Sequence[Any], watermark: int) -> list[Any]:  # noqa: ARG002
        """Pass over all events."""
        return []

    def watermark_out(self, watermark: int) -> int:
        """Promise nothing, so that nothing is waited for."""
        # What it would have reported is lost and told as such; holding back its users' watermark
        # for it as well would stop those that need other inputs, too.
        return watermark

    def next_due(self) -> int | None:
        """Be due at no time."""
        return None

    def held(self) -> int:
        """Hold nothing."""
        return 0

    def dropped(self) -> dict[str, int]:
        """Count nothing: what the agent in its place had counted went with its state."""
        return {}

    def state(self) -> Any:
        """Give the reason, as plain data."""
        return {SUSPENDED: self.why}

    def restore(self, state: Any) -> None:
        """Take such a state up."""
        self.why = state[SUSPENDED]
