"""What a batch read need not read: what Spark's conditions say of brokers, offsets and times.

Owns the translation of Spark's filters into bounds. Must not know how a log is asked. Invariant:
every row that fulfils the conditions is within the bounds. Spark looks at each row again, so bounds
may hold more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@dataclass
class ReadBounds:
    """The part of the logs to read. None, of names: all; of an offset or time: no such bound."""

    brokers: frozenset[str] | None = None
    subscriptions: frozenset[str] | None = None
    first: int = 0
    behind: int | None = None
    after_ms: int | None = None

    @property
    def empty(self) -> bool:
        """True where no row can fulfil the conditions."""
        nothing = self.behind is not None and self.behind <= self.first
        return nothing or self.brokers == frozenset() or self.subscriptions == frozenset()

    def take(self, filters: Iterable[Filter]) -> None:
        """Narrow the bounds by conditions that all hold; those of other forms change nothing."""
        for condition in filters:
            column = getattr(condition, "attribute", ())
            values = getattr(condition, "value", None)
            if column == ("broker",):
                self.brokers = _named(condition, self.brokers, values)
            elif column == ("subscription",):
                self.subscriptions = _named(condition, self.subscriptions, values)
            elif column == ("offset",) and isinstance(values, int):
                self._offset(condition, values)
            elif column == ("end",) and isinstance(values, datetime) and values.tzinfo is not None:
                self._end(condition, values)

    def _offset(self, condition: Filter, value: int) -> None:
        first, behind = self.first, self.behind
        if isinstance(condition, EqualTo):
            first, behind = value, value + 1
        elif isinstance(condition, GreaterThan):
            first = value + 1
        elif isinstance(condition, GreaterThanOrEqual):
            first = value
        elif isinstance(condition, LessThan):
            behind = value
        elif isinstance(condition, LessThanOrEqual):
            behind = value + 1
        self.first = max(self.first, first)
        if behind is not None:
            self.behind = behind if self.behind is None else min(self.behind, behind)

    def _end(self, condition: Filter, value: datetime) -> None:
        """A log tells from where on results end after a time; none tells where they no more do."""
        whole = (value - _EPOCH) // _MS
        exact = _EPOCH + whole * _MS == value
        if isinstance(condition, GreaterThan):
            after_ms = whole
        elif isinstance(condition, GreaterThanOrEqual | EqualTo):
            after_ms = whole - 1 if exact else whole
        else:
            return
        self.after_ms = after_ms if self.after_ms is None else max(self.after_ms, after_ms)


def _named(condition: Filter, before: frozenset[str] | None, values: Any) -> frozenset[str] | None:
    if isinstance(condition, EqualTo):
        names = frozenset((values,))
    elif isinstance(condition, In):
        names = frozenset(values)
    else:
        return before
    return names if before is None else before & names
