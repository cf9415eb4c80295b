"""Whether the parts of a file of jobs fit together.

Owns what can be told of values that are good each by itself. Must not know Spark. Invariant: what
is refused here would otherwise fail once Spark runs, or find nothing for ever without a word.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from server.config import SINKS, ConfigPart, Jobs

OF_RESULTS: Final = (
    "id", "subscription", "subscriber", "actor", "start", "end", "certainty", "location",
    "group", "values", "events", "payload",
)  # fmt: skip
OF_ROWS: Final = ("broker", "epoch", "offset", "detected_at", *OF_RESULTS)
OF_A_SIDE: Final = ("id", "broker", "start", "end", "payload")
_PLACE: Final = re.compile(r"\{(\w+)\}")
_MEMORY: Final = re.compile(r"[1-9]\d*[kmgt]b?", re.IGNORECASE)
_MASTER: Final = re.compile(r"local(\[.+\])?|yarn|spark://.+|k8s://.+|local-cluster\[.+\]")


def unfit(jobs: Jobs) -> list[str]:
    """Every fault, as a sentence with the key."""
    faults = list(_of_server(jobs.server))
    for job in jobs.jobs.values():
        source = jobs.sources[job["source"]]
        faults += [f"jobs.{job.name}.{fault}" for fault in _of_job(job, source)]
        faults += [f"jobs.{job.name}.{fault}" for fault in _of_past(jobs, job, source)]
    faults += _of_folders(jobs)
    usual_topic = SINKS["mqtt"]["topic"].default
    for sink in jobs.sinks.values():
        using = [job for job in jobs.jobs.values() if sink.name in job["sink"]]
        if sink.kind == "mqtt" and sink["topic"] != usual_topic:
            faults += _of_topic(sink, using)
        elif sink.kind == "database" and sink["table"] is not None:
            faults += _of_table(sink, using)
    return faults


def _of_server(server: Mapping[str, Any]) -> Iterator[str]:
    if not _MASTER.fullmatch(server["master"]):
        yield (
            f"server.master: found {server['master']}, expected local[2,3], spark://host:7077,"
            " k8s://… or yarn"
        )
    if not _MEMORY.fullmatch(server["memory"]):
        yield f'server.memory: found {server["memory"]}, expected such as "512m" or "2g"'
    if server["shuffle_partitions"] < 1:
        yield "server.shuffle_partitions: found 0, expected 1 or more"


def _of_job(job: ConfigPart, source: ConfigPart) -> Iterator[str]:
    if source.kind == "events":
        if job.kind != "detect":
            yield f"source: a job of kind {job.kind} reads brokers, and {source.name} has events"
        elif job["subscriptions"]:
            yield f"subscriptions: {source.name} has events, which are of no subscription"
    if job.kind == "windows":
        if job["window"] < 1:
            yield "window: expected a window longer than nothing"
        elif job["slide"] is not None and not 1 <= job["slide"] <= job["window"]:
            yield "slide: expected more than nothing, and no more than the window"
    if job.kind in {"join", "dedup"} and job["within"] < 1:
        yield "within: nothing is within no time at all"
    if job.kind == "join" and source.kind == "brokers":
        for side in ("left", "right"):
            broker = job[side].get("broker")
            if broker is not None and broker not in source["brokers"]:
                names = ", ".join(source["brokers"])
                yield f"{side}.broker: {source.name} has no {broker}; there are: {names}"


def _of_past(jobs: Jobs, job: ConfigPart, source: ConfigPart) -> Iterator[str]:
    past = source
    if job["backfill"] is not None:
        past = jobs.sources[job["backfill"]]
        if past.kind != "history":
            yield f"backfill: {past.name} is of kind {past.kind}, expected history"
        if source.kind != "brokers":
            yield f"backfill: {source.name} has {source.kind}, which nothing goes on from"
    if job["since"] is None:
        return
    if source.kind == "events":
        yield f"since: {source.name} has events, all of which are read"
    elif isinstance(job["since"], dict) and source.kind == "brokers":
        for name in job["since"]:
            if name not in source["brokers"]:
                brokers = ", ".join(source["brokers"])
                yield f"since.{name}: {source.name} has no {name}; there are: {brokers}"


def _of_folders(jobs: Jobs) -> Iterator[str]:
    owners: dict[Path, str] = {}
    for sink in jobs.sinks.values():
        if sink.kind == "parquet":
            path = jobs.path(sink["path"]).absolute()
            owner = owners.setdefault(path, sink.name)
            if owner != sink.name:
                yield f"sinks.{sink.name}.path: {owner} has that folder; each needs one of its own"


def _of_topic(sink: ConfigPart, jobs: list[ConfigPart]) -> Iterator[str]:
    """A name in braces that no job has would be `none` in each topic."""
    columns = dict.fromkeys(name for job in jobs for name in columns_of(job))
    for name in _PLACE.findall(sink["topic"]):
        if jobs and name not in columns:
            yield f"sinks.{sink.name}.topic: no job has {{{name}}}; there are: {', '.join(columns)}"


def _of_table(sink: ConfigPart, jobs: list[ConfigPart]) -> Iterator[str]:
    for job in jobs[1:]:
        if columns_of(job) != columns_of(jobs[0]):
            yield (
                f"sinks.{sink.name}.table: {jobs[0].name} and {job.name} have other columns; leave"
                " it out, and each job has a table of its own"
            )


def columns_of(job: ConfigPart) -> tuple[str, ...]:
    """The columns of what a job gives."""
    if job.kind == "windows":
        return ("id", "start", "end", "count", *job["by"], *job["values"])
    if job.kind == "join":
        unshared = [name for name in OF_A_SIDE if name not in job["on"]]
        sides = [f"{side}_{name}" for side in ("left", "right") for name in unshared]
        return ("id", "start", "end", *job["on"], *sides)
    return OF_RESULTS if job.kind == "detect" else OF_ROWS
