"""The clocks of a text by name: one for each event type, and one more for each `wait` over it.

Owns these names. Must not know how a clock is kept. Invariant: a name says the type and the wait,
and the clock of a type without a wait has the type's own name.

A subscription that waits five minutes for brokers that are away has another watermark than one that
waits without end, over the same events. Whoever keeps watermarks by name then needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

SEPARATOR = "\0"  # cannot stand in a type's name


def clock_name(event_type: str, wait_ms: int | None) -> str:
    """Return the name of the clock of `event_type` for tasks that wait `wait_ms`."""
    return event_type if wait_ms is None else f"{event_type}{SEPARATOR}{wait_ms}"


def parts_of(name: str) -> tuple[str, int | None]:
    """Return the event type and the wait of a clock's name."""
    event_type, separator, wait_ms = name.partition(SEPARATOR)
    return event_type, int(wait_ms) if separator else None


def by_wait(times: Mapping[str, int]) -> dict[int | None, dict[str, int]]:
    """Return the times of clocks by how long they wait, and by event type."""
    waits: dict[int | None, dict[str, int]] = {}
    for name, time in times.items():
        event_type, wait_ms = parts_of(name)
        waits.setdefault(wait_ms, {})[event_type] = time
    return waits
