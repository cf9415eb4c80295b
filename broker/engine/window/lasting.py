"""How long an event may last that a window has yet to meet.

Owns the joining of what is asked of events, what is foreseen of their types, and the limit. Must
not know windows. Invariant: the answer never shrinks.

What conditions ask is certain, as `duration = 0`; so is the limit of primitive events. Where an
agent is given foresight, types are taken to bring what they have brought (stages.base.Durations):
sessions of readings then close when their gap has passed, and not when an event of the greatest
length could not join any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.engine.event.agent import LeafEvents
from broker.engine.pattern.lasting import Foresight
from broker.engine.window.bound import longest_asked
from broker.engine.window.code import Shape


class Lasting:
    """The durations of one case's inputs."""

    def __init__(self, shape: Shape, limit_ms: int, foresight: Foresight | None) -> None:
        self._types = [operand.event_type for operand in shape.names.operands]
        self._asked = [longest_asked(operand.conditions) for operand in shape.names.operands]
        # What a definition makes may last longer than a primitive event.
        self._limits = [None if detected else limit_ms for detected in shape.detected]
        self._foresight = foresight

    def observe(self, batch: Sequence[LeafEvents]) -> None:
        """Remember how long these events lasted."""
        if self._foresight is None:
            return
        for _, events in batch:
            for event in events:
                if event.start < event.end:
                    duration_ms = event.end - event.start
                    self._foresight.durations.observe(event.event_type, duration_ms)

    def longest_ms(self) -> int | None:
        """How long an event of any operand may last; None where nobody knows."""
        longest = 0
        for at, event_type in enumerate(self._types):
            known = [one for one in (self._asked[at], self._limits[at]) if one is not None]
            if self._foresight is not None:
                known.append(self._foresight.longest_ms(event_type))
            if not known:
                return None
            longest = max(longest, min(known))
        return longest
