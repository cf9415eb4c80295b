"""How long events last: for what is waited for, and for what is kept.

Owns what is known of each type. Must not know stages. Invariant: what is kept is never less than
what is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.core.event import Event


class Durations:
    """How long events of a type last at most.

    A type whose events so far were readings is taken to have readings only: then what it may yet
    bring begins after the watermark. `limit_ms` is the longest that any event may last. `strict`:
    past the first event that lasts, the limit is waited for; otherwise the longest so far is taken.
    What can no longer matter to an event that lasts for up to the limit is forgotten all the same.
    """

    def __init__(self, limit_ms: int, *, strict: bool) -> None:
        self.limit_ms = limit_ms
        self._strict = strict
        self._longest: dict[str, int] = {}
        self.changes = 0  # how often it turned out that another type has events that last
        self.version = 0  # how often anything became known
        self._foreseen: dict[str, int] | None = None

    def observe(self, event_type: str, duration_ms: int) -> None:
        """An event of the type lasted so long."""
        known = self._longest.get(event_type, 0)
        if duration_ms > known:
            self._longest[event_type] = duration_ms
            self.version += 1
            self.changes += not known

    def foresee(self, longest_ms: dict[str, int]) -> None:
        """All events of the input are known; these are the longest of their types."""
        self._foreseen = longest_ms
        self.changes += 1
        self.version += 1

    def state(self) -> dict[str, int]:
        """Plain data: the longest that was observed of each type."""
        return dict(self._longest)

    def restore(self, state: Mapping[str, int]) -> None:
        """Take up such a state."""
        for event_type, longest_ms in state.items():
            self.observe(event_type, longest_ms)

    def longest_ms(self, event_type: str, *, detected: bool) -> int:
        """How long an event of the type that is still to come may last."""
        if self._foreseen is not None and not detected:
            return self._foreseen.get(event_type, 0)
        seen = self._longest.get(event_type, 0)
        return self.limit_ms if seen and self._strict else seen

    def reach_ms(self, event_type: str, *, lasts: bool) -> int:
        """How long before its end an event that is still to come may begin, for what is kept.

        Waiting for the longest so far is a bet on the others; what is dropped cannot come again.
        So here an event of a type that has lasted may last up to the limit, and so may one that is
        of use only if it lasts, whatever came before. (A detected one always may.)
        """
        if self._foreseen is not None:
            return self._foreseen.get(event_type, 0)
        if lasts:
            return self.limit_ms
        return self.limit_ms if event_type in self._longest else 0

    def longest(self, event_type: str) -> int:
        """How long the longest of the type so far has lasted."""
        return self._longest.get(event_type, 0)


@dataclass(frozen=True, slots=True)
class Foresight:
    """The durations of one task's inputs; `inputs`: type as the task names it → its class's.

    `lasting` are those of which readings are of no use to a pattern: what it waits for will last.
    """

    durations: Durations
    inputs: Mapping[str, str]
    lasting: frozenset[str] = frozenset()

    def of(self, lasting: frozenset[str]) -> Foresight:
        """The same for one of the task's patterns."""
        return Foresight(self.durations, self.inputs, lasting)

    def longest_ms(self, event_type: str) -> int:
        """How long an event of the type that is still to come may last."""
        name = self.inputs[event_type]
        return self.durations.longest_ms(name, detected=name != event_type)

    def reach_ms(self, event_type: str) -> int:
        """How long before its end such an event may begin, for what is kept."""
        name = self.inputs[event_type]
        if name != event_type:
            return self.durations.limit_ms
        return self.durations.reach_ms(name, lasts=event_type in self.lasting)

    def observe(self, batch: Sequence[tuple[int, Sequence[Event]]]) -> None:
        """Remember how long these events lasted."""
        for _, events in batch:
            for event in events:
                if event.start < event.end:
                    self.durations.observe(event.event_type, event.end - event.start)

    def seen(self) -> dict[str, int]:
        """Of each input that has lasted, the longest so far, for a snapshot."""
        longest = {name: self.durations.longest(held) for name, held in self.inputs.items()}
        return {name: lasted_ms for name, lasted_ms in longest.items() if lasted_ms}

    def know(self, seen: Mapping[str, int]) -> None:
        """Take that up again."""
        for name, lasted_ms in seen.items():
            if name in self.inputs:
                self.durations.observe(self.inputs[name], lasted_ms)

    def most_ms(self) -> int:
        """The most of `reach_ms` over all inputs."""
        return max(map(self.reach_ms, self.inputs), default=0)

    def longest_of_all_ms(self) -> int:
        """How long an event of any input that is still to come may last."""
        return max(map(self.longest_ms, self.inputs), default=0)
