"""A job that means something else than before: filled anew beside itself, then shown.

Owns the order of the steps. Must not know how a stream runs or a view is made. Invariant: until the
new version has read all that there is, people see the former one; a migration that was cut off
anywhere goes on where it was when it is run again.

    fill ──▶ show views ──▶ show folders ──▶ note ──▶ forget the former consumers

Filling is a bounded run of the very streams that the server runs afterwards, from the same
checkpoints. So what it has read before it was cut off is not read again, and the server goes on
where it ended. Meanwhile a server may run the former version, from its own checkpoints.
"""

from collections.abc import Iterator
from pathlib import Path

from server.checkpoint import BegunStream, begun_of, version_apart
from server.config import ConfigPart, Jobs
from server.errors import JobsError, ServerError
from server.history import show_folder
from server.process import read_all, run_job
from server.sinks.alert_marks import alerted_at
from server.sinks.database import opened
from server.sinks.shown import TableName
from server.sinks.views import show_table
from server.source.log import LogError, tell
from server.source.options import OptionError
from server.source.places import LogPlace, places_in
from server.streams import JobStream
from server.upkeep.consumers import consumer_names, consumers_at, forget_of, logs_of
from server.upkeep.versions import ShownVersion, former_streams, note_shown, shown_version


def migrate(path: Path, name: str) -> int:
    """Take a job to the version of the file: 0, or 1 where its streams did not read everything.

    Raises ServerError.
    """
    jobs, streams = run_job(path, name)
    job = jobs.jobs[name]
    version, former = job["version"], _former(jobs, job)
    for stream in streams:
        stream.check()
    if former is None:
        raise JobsError(f"jobs.{name}: no other version was begun, so there is nothing to migrate")
    if (refusal := _shared_table(jobs, job)) is not None:
        raise JobsError(refusal)
    shown = shown_version(jobs, job)
    if shown is None or shown.version != version:
        _fill_and_show(jobs, job, streams, former)
    for sentence in forget_of(jobs, job):
        tell(f"jobs.{name}: {sentence}")
    tell(f"jobs.{name}: version {version} is shown")
    return 0


def _fill_and_show(jobs: Jobs, job: ConfigPart, streams: list[JobStream], former: int) -> None:
    places = _read_places(begun_of(jobs, job), former)
    alerted = alerted_at(job, places).plain()
    try:
        for stream in streams:
            stream.begin(alerted)
        tell(
            f"jobs.{job.name}: version {job['version']} is filled; version {former} is shown until"
            " that is done"
        )
        complete = read_all(jobs, streams)
    finally:
        for stream in streams:
            stream.stop()
    if not complete:
        raise ServerError(
            f"jobs.{job.name}: version {job['version']} has not read everything, and version"
            f" {former} is shown still: run `headwater server migrate {job.name}` again"
        )
    suffix = _suffix(jobs, job)
    for sink in (jobs.sinks[name] for name in job["sink"]):
        if sink.kind == "database":
            engine = opened(sink["url"])
            try:
                show_table(engine, TableName(sink["table"] or job.name, suffix))
            finally:
                engine.dispose()
        elif sink.kind == "parquet":
            show_folder(jobs.path(sink["path"]), suffix)
    note_shown(jobs, job, ShownVersion(job["version"]))


def foresee(path: Path, name: str) -> list[str]:
    """Return what a migration would do, as sentences; nothing is changed. Raises ServerError."""
    jobs, streams = run_job(path, name)
    job = jobs.jobs[name]
    for stream in streams:
        stream.check()
    former, shown = _former(jobs, job), shown_version(jobs, job)
    if former is None:
        return [f"no other version of {name} was begun: there is nothing to migrate"]
    if (refusal := _shared_table(jobs, job)) is not None:
        raise JobsError(refusal)
    if shown is not None and shown.version == job["version"]:
        sentences = [f"version {job['version']} is shown already"]
    else:
        sentences = [
            f"version {job['version']} is filled and then shown in the place of version {former}"
        ]
        sentences += [*_foreseen_reading(jobs, job, former), *_foreseen_sinks(jobs, job)]
    names = consumer_names(jobs, job, former_streams(jobs, job))
    for log in logs_of(jobs, job):
        try:
            sentences += [
                f"broker {log.broker}: consumer {consumer.name} (at offset {consumer.offset}) is"
                " then forgotten"
                for consumer in consumers_at(log, names)
            ]
        except (LogError, OptionError) as error:
            sentences.append(str(error))
    return sentences


def _foreseen_reading(jobs: Jobs, job: ConfigPart, former: int) -> Iterator[str]:
    begun = begun_of(jobs, job)
    places = _read_places(begun, job["version"])
    former_places = _read_places(begun, former)
    for log in logs_of(jobs, job):
        try:
            standing = log.offsets()
        except (LogError, OptionError) as error:
            yield f"{error}; it is waited for"
            continue
        place = places.get(log.broker)
        begin = standing.earliest if place is None else place.next
        yield f"broker {log.broker}: offsets {begin} to {standing.end - 1} are read"
        had = former_places.get(log.broker)
        if place is None and job["backfill"] is None and had is not None and standing.earliest > 0:
            yield (
                f"broker {log.broker}: offsets 0 to {standing.earliest - 1} are in its log no more,"
                f" and version {former} may have them: a `backfill` begins with a history"
            )


def _foreseen_sinks(jobs: Jobs, job: ConfigPart) -> Iterator[str]:
    suffix = _suffix(jobs, job)
    for sink in (jobs.sinks[name] for name in job["sink"]):
        if sink.kind == "database":
            table = TableName(sink["table"] or job.name, suffix)
            yield f"sink {sink.name}: table {table.stored} is filled; the views then show it"
        elif sink.kind == "parquet":
            yield f"sink {sink.name}: folder {jobs.path(sink['path'] + suffix)} is filled"
        elif sink.kind == "mqtt":
            yield f"sink {sink.name}: of what the former version alerted no alert is sent again"


def _suffix(jobs: Jobs, job: ConfigPart) -> str:
    version = version_apart(jobs, job)
    return f"_v{version}" if version else ""


def _former(jobs: Jobs, job: ConfigPart) -> int | None:
    """Return the version that is shown, or was before that of the file."""
    shown = shown_version(jobs, job)
    if shown is not None and shown.version != job["version"]:
        return shown.version
    return max((stream.version for stream in former_streams(jobs, job)), default=None)


def _shared_table(jobs: Jobs, job: ConfigPart) -> str | None:
    """Say with which job this one shares a table: its views cannot show another for one of them."""
    for sink in (jobs.sinks[name] for name in job["sink"]):
        others = [
            other.name for other in jobs.jobs.values()
            if sink["table"] and sink.name in other["sink"] and other.name != job.name
        ] if sink.kind == "database" else []  # fmt: skip
        if others:
            return (
                f"jobs.{job.name}: it shares table {sink['table']} with {', '.join(others)}: each"
                " needs a table of its own to be migrated"
            )
    return None


def _read_places(begun: list[BegunStream], version: int) -> dict[str, LogPlace]:
    """Return how far the streams of a version have read: with several, the one that is behind."""
    least: dict[str, LogPlace] = {}
    for stream in begun:
        for places in places_in(stream.folder / "spark") if stream.version == version else ():
            for name, place in places.items():
                if name not in least or place.next < least[name].next:
                    least[name] = place
    return least
