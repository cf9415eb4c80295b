"""The folder of a job's files, taken from the stream that fills it.

Owns the claim of it. Must not know what is done there. Invariant: while a folder is changed by
command no stream fills it, neither in a server nor in a migration.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from server.checkpoint import begun_of, hold, version_apart
from server.config import ConfigPart, Jobs, read
from server.errors import JobsError


class JobFolder(NamedTuple):
    """The folder that a job's version of the file fills."""

    jobs: Jobs
    job: ConfigPart
    path: Path


@contextmanager
def folder_alone(path: Path, name: str) -> Iterator[JobFolder]:
    """Yield the folder of a job while no process fills it. Raises JobsError."""
    jobs = read(path)
    if name not in jobs.jobs:
        raise JobsError(f"there is no job {name}; there are: {', '.join(jobs.jobs)}")
    job = jobs.jobs[name]
    sinks = [jobs.sinks[sink] for sink in job["sink"] if jobs.sinks[sink].kind == "parquet"]
    if not sinks:
        raise JobsError(f"jobs.{name}: it fills no folder: none of its sinks is of kind parquet")
    version = version_apart(jobs, job)
    suffix = f"_v{version}" if version else ""
    begun = [stream for stream in begun_of(jobs, job) if stream.version == job["version"]]
    held = [hold(stream.folder) for stream in begun]
    try:
        if None in held:
            raise JobsError(f"jobs.{name} is run by a process: end that first")
        yield JobFolder(jobs, job, jobs.path(sinks[0]["path"] + suffix))
    finally:
        for file in held:
            if file is not None:
                file.close()
