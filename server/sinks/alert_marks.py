"""What a former version of a job has alerted of, so that a migration does not alert of it again.

Owns that judgement of a row. Must not know MQTT. Invariant: where it is not certain that a row was
alerted of, it was not.

A job that gives results as they are has alerted of each before an offset of its log. Every other
one has alerted of what ended before its watermark: it gave that, or nothing, and cannot any more.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from server.config import TIMED, ConfigPart
from server.source.places import LogPlace
from server.source.planning import mark_of


class AlertedRows(NamedTuple):
    """Up to an `end_ms`, or per (broker, epoch) up to an offset."""

    end_ms: int | None = None
    offsets: Mapping[tuple[str, str], int] = {}

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of the job was alerted of."""
        if self.end_ms is not None and row.get("end") is not None:
            return bool(row["end"].timestamp() * 1000 <= self.end_ms)
        if not self.offsets:
            return False
        return bool(row["offset"] < self.offsets.get((row["broker"], row["epoch"]), 0))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data."""
        offsets = [[*log, offset] for log, offset in self.offsets.items()]
        return {"end": self.end_ms, "offsets": offsets}


def alerted_of(content: Mapping[str, Any] | None) -> AlertedRows:
    """Return what `plain` made."""
    if content is None:
        return AlertedRows()
    offsets = {(broker, epoch): offset for broker, epoch, offset in content["offsets"]}
    return AlertedRows(content["end"], offsets)


def alerted_at(job: ConfigPart, places: Mapping[str, LogPlace]) -> AlertedRows:
    """Return what a version of a job has alerted of that has read up to these places."""
    if job.kind in TIMED:
        return AlertedRows(mark_of(places, job["delay"]))
    logs = {(name, place.epoch): place.next for name, place in places.items()}
    return AlertedRows(offsets=logs)
