"""What a file of tests says, once it is read.

Owns the shape of tests. Must not know the notation or how a test is played. Invariant: every part
knows the line that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from language import Specification


@dataclass(frozen=True, slots=True)
class SendStep:
    """An event of the test, as a mapping with the keys of the formats."""

    line: int
    event_id: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApproximateNumber:
    """A number that is given to as many digits as are written: `~20.33`."""

    number: Decimal


@dataclass(frozen=True, slots=True)
class Expect:
    """A result that must have been reported by here; what is None or left out may be anything."""

    line: int
    subscription: str
    events: tuple[tuple[str, tuple[str, ...]], ...] = ()  # alias -> ids, in order
    start: int | None = None
    end: int | None = None
    values: tuple[tuple[tuple[str, ...], Any], ...] = ()  # path -> value
    group: tuple[tuple[str, Any], ...] = ()
    certainty: str | None = None


@dataclass(frozen=True, slots=True)
class NoMore:
    """No result but those expected so far, of one subscription or of all."""

    line: int
    subscription: str | None = None


@dataclass(frozen=True, slots=True)
class ExpectRefused:
    """An event that must have been passed over by here, as late or as a repeat."""

    line: int
    event_id: str
    reason: str


Step = SendStep | Expect | NoMore | ExpectRefused


@dataclass(slots=True)
class Test:
    """One test: its steps in the order of the file; times count from `zero_ms`."""

    name: str
    line: int
    zero_ms: int = 0
    lateness_ms: int = 0
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """The specification of a file and its tests."""

    file: str
    specification: Specification
    tests: list[Test]
