"""One stream into all sinks of a job: which are opened, and in which order a batch reaches them.

Owns the making of sinks from the file of jobs. Must not know how a stream is started. Invariant:
what a batch puts into a sink it puts there once, or under ids that tell, however often the batch is
run again; a sink that tells people or devices comes after all that keep.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from server.checkpoint import Checkpoint, claim
from server.config import ConfigPart, Jobs
from server.sinks.alert_marks import AlertedRows, alerted_of
from server.sinks.alerts import Alerts, payload_of
from server.sinks.database import Database
from server.sinks.files import FilesSink
from server.sinks.rows import BatchRows, BatchSink
from server.sinks.shown import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A batch is run again where one of its sinks fails, and alerts that went out would go out again: so
# they wait until nothing is left that could fail before them.
_ORDER: Final = ("parquet", "database", "console", "mqtt")


class DatabaseSink:
    """A table; see `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, rows: BatchRows, batch: int) -> None:
        """Put a batch there, unless it is."""
        self._database.write(rows.table, batch)

    def holds(self, batch: int) -> bool:
        """Tell whether a batch is there, or may be."""
        return self._database.holds(batch)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


class AlertSink:
    """An MQTT server; see `Alerts`."""

    def __init__(self, alerts: Alerts, alerted: AlertedRows) -> None:
        self._alerts = alerts
        self._alerted = alerted

    def take(self, rows: BatchRows, _batch: int) -> None:
        """Send each row that no former version of the job has alerted of."""
        listed = rows.table.to_pylist()
        self._alerts.send([row for row in listed if not self._alerted.holds(row)])

    def holds(self, _batch: int) -> bool:
        """Each row has an id, by which a repeat is recognised."""
        return False

    def close(self) -> None:
        """Nothing is open between batches."""


class ConsoleSink:
    """Standard output, a line of JSON for each row."""

    def take(self, rows: BatchRows, _batch: int) -> None:
        """Print each row."""
        for row in rows.table.to_pylist():
            sys.stdout.write(f"{payload_of(row)}\n")
        sys.stdout.flush()

    def holds(self, _batch: int) -> bool:
        """Keep nothing."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class Batches:
    """For `foreachBatch`: the sinks of one stream."""

    def __init__(
        self, jobs: Jobs, job: ConfigPart, sinks: tuple[ConfigPart, ...], place: Checkpoint
    ) -> None:
        ordered = sorted(sinks, key=lambda sink: _ORDER.index(sink.kind))
        self._sinks = [_opened(jobs, job, sink, place) for sink in ordered]
        files = any(sink.kind == "parquet" for sink in sinks)
        self._kept = files and len(sinks) > 1

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Put a batch into all of them. Raises ServerError."""
        if self._kept:  # else each would read the logs and detect for itself
            frame.persist()
        try:
            rows = BatchRows(frame)
            for sink in self._sinks:
                sink.take(rows, batch)
        finally:
            if self._kept:
                frame.unpersist()

    def hold(self, batch: int | None) -> bool:
        """Tell whether a batch is in any of them, or may be."""
        return batch is not None and any(sink.holds(batch) for sink in self._sinks)

    def close(self) -> None:
        """Let go of what they hold open."""
        for sink in self._sinks:
            sink.close()


def folder_of(jobs: Jobs, job: ConfigPart, sink: ConfigPart, place: Checkpoint) -> Path:
    """The folder of files, which is this checkpoint's alone. Raises JobsError."""
    folder = jobs.path(sink["path"])
    claim(folder, place, job["subscriptions"])
    return folder


def _opened(jobs: Jobs, job: ConfigPart, sink: ConfigPart, place: Checkpoint) -> BatchSink:
    if sink.kind == "parquet":
        return FilesSink(folder_of(jobs, job, sink, place), sink["file_rows"])
    if sink.kind == "database":
        target = TableName(sink["table"] or job.name, place.suffix)
        ledger = place.ledger(job.name, sink.name)
        return DatabaseSink(Database(sink["url"], target, ledger, place.id))
    if sink.kind == "mqtt":
        settings = (sink[key] for key in ("url", "topic", "user", "password_env"))
        return AlertSink(Alerts(*settings), alerted_of(place.alerted))
    return ConsoleSink()
