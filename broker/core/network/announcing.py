"""Payloads of types that no source here has sent before: others hear of the type first.

Owns what waits. Must not know what others need, or how they hear of a type. Invariant: what comes
of one source, or of one new type, leaves in the order in which it came.

A host asks an origin for the types that are sent there. Of one that is new it hears by the first
event, or by an advertisement just before, and would ask too late for that one. So the type is told
at once, and the event taken when there was time to ask. Nothing that waits is acknowledged.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from broker.core.messages import Payload

PAYLOADS_MAX = 10_000  # with so many, all that waits is taken
ROUNDS_MAX = 4  # where one new type follows another, all wait at most so many times as long


class Announcing:
    """See the module. `wait_ms`: for how long, from the first payload of a type on; 0: never."""

    def __init__(self, wait_ms: int) -> None:
        self.wait_ms = wait_ms
        self.due: int | None = None  # when what waits is to be taken
        self._last = 0  # and at the latest
        self._waiting: list[Payload] = []
        self._types: dict[str, None] = {}
        self._fresh: dict[str, int] = {}  # types that were advertised lately, and until when so
        self._sources: dict[str, None] = {}

    def advertised(self, types: Iterable[str], now: int) -> None:
        """Others are being told of these types, which no source here sent before."""
        self._fresh = {name: until for name, until in self._fresh.items() if until > now}
        self._fresh |= dict.fromkeys(types, now + self.wait_ms)

    def sift(
        self, payloads: Iterable[Payload], known: Container[str], now: int
    ) -> tuple[list[Payload], dict[tuple[str, str], None]]:
        """Keeps what has to wait; what need not, and (source, type) of which nobody knew."""
        passed: list[Payload] = []
        new: dict[tuple[str, str], None] = {}
        for one in payloads:
            is_told = one.type_name in known
            is_fresh = not is_told or self._fresh.get(one.type_name, now) > now
            if is_fresh and one.type_name not in self._types:
                if not is_told:
                    new[one.source, one.type_name] = None
                self._types[one.type_name] = None
                self._begin(now)
            elif not self.concerns(one.source, one.type_name):
                passed.append(one)
                continue
            self._sources[one.source] = None
            self._waiting.append(one)
        return passed, new

    def _begin(self, now: int) -> None:
        """For all that waits: a source keeps its order."""
        if self.due is None:
            self._last = now + ROUNDS_MAX * self.wait_ms
        self.due = min(now + self.wait_ms, self._last)

    def concerns(self, source: str, type_name: str = "") -> bool:
        """Whether something of the source or the type waits."""
        return source in self._sources or type_name in self._types

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return len(self._waiting) >= PAYLOADS_MAX

    def take(self) -> tuple[Payload, ...]:
        """All that waited, in its order."""
        found = tuple(self._waiting)
        self._waiting, self._types, self._sources, self.due = [], {}, {}, None
        return found
