"""The consumers at the brokers of versions that are shown no more.

Owns their names and their end. Must not know tables. Invariant: a consumer is forgotten when
another version is shown and no process runs its own; until then its broker keeps what it has not
read.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from server.checkpoint import BegunStream, hold
from server.config import ConfigPart, Jobs
from server.source.log import Log, LogError, tell
from server.source.options import Login, OptionError
from server.upkeep.versions import former_streams, note_shown, shown_version

SIDES = (".left", ".right")  # of a join, which reads twice


class KeptConsumer(NamedTuple):
    """A consumer of a job's stream at a broker, and the offset that it has acknowledged."""

    broker: str
    name: str
    offset: int


def logs_of(jobs: Jobs, job: ConfigPart) -> Iterator[Log]:
    """Yield the log of each broker that a job reads."""
    source = jobs.sources[job["source"]]
    if source.kind == "brokers":
        login = Login(
            *(source[key] for key in ("user", "password_env", "password_file", "ca_file"))
        )
        for name, address in source["brokers"].items():
            with closing(Log(name, address, login)) as log:
                yield log


def consumer_names(jobs: Jobs, job: ConfigPart, streams: Iterable[BegunStream]) -> list[str]:
    """Return the names under which brokers know these streams."""
    names = []
    for stream in streams:
        lead = f"{jobs.server['name']}.{job.name}-{stream.lead}.{stream.version}"
        names += [lead, *(lead + side for side in SIDES)]
    return names


def consumers_at(log: Log, names: Iterable[str]) -> list[KeptConsumer]:
    """Return those of these names that a broker keeps results for. Raises LogError."""
    kept = log.consumers()
    return [KeptConsumer(log.broker, name, kept[name]) for name in names if name in kept]


def forget_former(jobs: Jobs) -> None:
    """Have brokers forget the consumers of all versions that are shown no more.

    What cannot be done now is reported, and is done with the next start or migration.
    """
    for job in jobs.jobs.values():
        for sentence in forget_of(jobs, job):
            tell(f"jobs.{job.name}: {sentence}")


def forget_of(jobs: Jobs, job: ConfigPart) -> list[str]:
    """Do so for one job; return what was done and what was not, as sentences."""
    shown = shown_version(jobs, job)
    if shown is None or shown.version != job["version"]:
        return []
    streams = [
        stream for stream in former_streams(jobs, job) if stream.version not in shown.forgotten
    ]
    if not streams:
        return []
    held = [(stream, hold(stream.folder)) for stream in streams]
    try:
        busy = {stream.version for stream, file in held if file is None}
        free = [stream for stream, file in held if stream.version not in busy]
        sentences = [
            f"version {version} is still run by a process: end that, and start the server with"
            " this file; the brokers then forget its consumers"
            for version in sorted(busy)
        ]
        done, complete = _forgotten(jobs, job, free)
        if complete and free:
            versions = {*shown.forgotten, *(stream.version for stream in free)}
            note_shown(jobs, job, shown._replace(forgotten=tuple(sorted(versions))))
        return sentences + done
    finally:
        for _, file in held:
            if file is not None:
                file.close()


def _forgotten(jobs: Jobs, job: ConfigPart, streams: list[BegunStream]) -> tuple[list[str], bool]:
    """Return sentences, and whether all brokers have forgotten all of these."""
    sentences, complete = [], True
    names = consumer_names(jobs, job, streams)
    for log in logs_of(jobs, job) if streams else ():
        try:
            for consumer in consumers_at(log, names):
                log.forget(consumer.name)
                sentences.append(f"broker {log.broker} has forgotten consumer {consumer.name}")
        except (LogError, OptionError) as error:
            complete = False
            sentences.append(f"{error}; it keeps results for the former version until it is asked")
    return sentences, complete
