"""The rows of a batch as sinks take them.

Owns their two forms. Must not know sinks. Invariant: the rows are worked out at most once for the
sinks that take them as a table, however many these are.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from pyspark.sql import DataFrame


class BatchRows:
    """One batch of a stream."""

    def __init__(self, frame: "DataFrame") -> None:
        self.frame = frame

    @cached_property
    def table(self) -> "pa.Table":
        """The rows in the driver's hands."""
        return self.frame.toArrow()


class BatchSink(Protocol):
    """A place for batches; each has a ledger of its own, so that a batch may come again."""

    def take(self, rows: BatchRows, batch: int) -> None:
        """Put a batch there. Raises ServerError."""

    def holds(self, batch: int) -> bool:
        """Tell whether a batch is there, or may be; not where rows tell that they are repeats."""

    def close(self) -> None:
        """Let go of what is open."""
