"""The user's own functions, called so that none can do harm.

Owns what happens when a function fails or gives what is no value. Must not know where it is called.
Invariant: a call never raises and gives a value of the stated type, or null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

from broker.engine.event.event import INT64_MAX, INT64_MIN, Event

ResultType = Literal["int", "float", "text", "bool", "bytes"]
PYTHON_TYPES: dict[str, type] = {
    "int": int, "float": float, "text": str, "bool": bool, "bytes": bytes,
}  # fmt: skip


class Function:
    """A function of one's own for conditions and assignments (paper 003, 3.4: place and play).

    `call` takes the values of the arguments, none of them null, and for an alias the bound event as
    a read-only mapping with the keys of an event. It must depend on them alone: the same event may
    be asked about again, and on another broker. What it raises, and what is not of the type
    `result`, is null and counted in `failures`; `last_failure` says what it was.

    `version` belongs to the identity of what is detected: change it with the meaning.
    """

    def __init__(
        self, call: Callable[..., Any], result: ResultType = "float", version: str = ""
    ) -> None:
        if not callable(call):
            raise TypeError(f"found {type(call).__name__}, expected something that can be called")
        if result not in PYTHON_TYPES:
            raise ValueError(f"found result {result!r}, expected one of {', '.join(PYTHON_TYPES)}")
        self._call = call
        self.result: ResultType = result
        self.version = version
        self.failures = 0
        self.last_failure = ""

    def __call__(self, *arguments: Any) -> Any:
        """The value, or None."""
        try:
            value = self._call(*arguments)
        # A user's function may raise anything; one that fails must not stop the events of others
        # (paper 003, 3.4.2 has no word for a failing `execute`).
        except Exception as error:  # noqa: BLE001  # whatever it is, others go on
            return self._failed(f"{type(error).__name__}: {error}")
        if value is None:
            return None
        # `return 0` is an easy slip in a function of floats; beyond the range there is no float
        # that it could mean.
        if self.result == "float" and type(value) is int:
            value = float(value) if abs(value) < 2**1000 else None
        if type(value) is not PYTHON_TYPES[self.result]:
            return self._failed(f"gave {type(value).__name__}, not {self.result}")
        if type(value) is float and not isfinite(value):
            return self._failed("gave a number that is not finite")
        if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
            return self._failed("gave an integer beyond 64 bits")
        return value

    def _failed(self, why: str) -> None:
        self.failures += 1
        self.last_failure = why[:400]


class Aggregate(Function):
    """An aggregate of one's own for windows and lists.

    `call` takes the values of its argument, none of them null, as a list in the order of the events
    that they are from; of none the aggregate is null. Otherwise as for Function. All values that
    are in are kept, as for a median.
    """

    aggregate = True

    def of(self, values: Sequence[Any]) -> Any:
        """The value for these; None of none."""
        return self(list(values)) if values else None


def as_mapping(event: Event) -> Mapping[str, Any]:
    """An event as a function of one's own sees it."""
    known = {
        "type": event.event_type,
        "id": event.id,
        "source": event.source,
        "location": event.location,
        "position": event.position,
        "start": event.start,
        "end": event.end,
        "uncertainty": event.uncertainty,
    }
    # Read-only: the function sees the event that others are given too.
    return MappingProxyType({**event.attribute_values(), **known})
