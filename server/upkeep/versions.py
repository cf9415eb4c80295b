"""Which version of a job people are shown.

Owns the note of it beside the checkpoints. Must not know tables or brokers. Invariant: a server
runs the version that is shown and no other, so that two versions never fill one table.

A job that was never migrated has no note. Whatever version of it was begun is then shown.
"""

import json
from pathlib import Path
from typing import Final, NamedTuple

from server.checkpoint import BegunStream, begun_of, replace_file
from server.config import ConfigPart, Jobs
from server.errors import JobsError

SUFFIX: Final = ".shown"


class ShownVersion(NamedTuple):
    """The version that is shown, and those whose consumers the brokers have forgotten."""

    version: int
    forgotten: tuple[int, ...] = ()


def shown_version(jobs: Jobs, job: ConfigPart) -> ShownVersion | None:
    """Return what the note says; None where the job was never migrated. Raises JobsError."""
    file = _file(jobs, job)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return ShownVersion(int(content["version"]), tuple(map(int, content["forgotten"])))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JobsError(f"{file}: cannot be read: {(error.strerror or '').lower()}") from None
    except (ValueError, LookupError, TypeError):
        raise JobsError(f"{file}: damaged; `headwater server migrate` writes it again") from None


def note_shown(jobs: Jobs, job: ConfigPart, shown: ShownVersion) -> None:
    """Write down that a version is shown. Raises JobsError."""
    file = _file(jobs, job)
    content = {"version": shown.version, "forgotten": sorted(shown.forgotten)}
    try:
        replace_file(file, json.dumps(content))
    except OSError as error:
        raise JobsError(f"{file}: cannot be written: {(error.strerror or '').lower()}") from None


def former_streams(jobs: Jobs, job: ConfigPart) -> list[BegunStream]:
    """Return the streams of all versions but that of the file."""
    return [begun for begun in begun_of(jobs, job) if begun.version != job["version"]]


def unshown(jobs: Jobs, job: ConfigPart) -> str | None:
    """Say why the version of the file cannot be run before it has been migrated to."""
    shown, version = shown_version(jobs, job), job["version"]
    if shown is None:
        begun = [stream for stream in begun_of(jobs, job) if not stream.apart]
        if not begun or any(stream.version == version for stream in begun):
            return None
        former = max(stream.version for stream in begun)
    elif shown.version == version:
        return None
    else:
        former = shown.version
    return (
        f"jobs.{job.name}: version {former} is shown, and the file has version {version}: run"
        f" `headwater server migrate {job.name}` with this file first"
    )


def _file(jobs: Jobs, job: ConfigPart) -> Path:
    return jobs.path(jobs.server["state"]) / f"{job.name}{SUFFIX}"
