"""The folder in which a stream of Spark keeps how far it is.

Owns what is written there beside Spark's own files. Must not know Spark. Invariant: a stream goes
on from a checkpoint only where it means the same as when that was begun; else it is refused in a
sentence, before Spark fails in many.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from server.config import ConfigPart, Jobs
from server.errors import JobsError

FILE: Final = "headwater.json"
LOCK: Final = "headwater.lock"
FORMAT: Final = 1
# What may change from one run to the next: it decides when, and not what.
_FREE: Final = {
    "brokers", "user", "password_env", "password_file", "ca_file", "starting", "batch_rows", "away",
    "away_timeout", "settled_timeout", "quiet_wait", "lost", "format", "options", "files", "sink",
    "source", "trigger", "version",
}  # fmt: skip
# What checkpoints of before did not have: it counts where it is there.
_LATER: Final = {"backfill", "since"}


@dataclass(frozen=True)
class Checkpoint:
    """One stream's folder; `id` is drawn when it is made.

    `version` is 0 for what fills tables and folders under their own names: the first version of a
    job. What was begun beside another version has tables and folders of its own, so that both can
    be there until the later one is shown.
    """

    folder: Path
    id: str
    version: int = 0
    alerted: Mapping[str, Any] | None = None  # of what a former version has alerted

    @property
    def suffix(self) -> str:
        """Return what stands behind the name of each table and folder."""
        return f"_v{self.version}" if self.version else ""

    def ledger(self, job: str, sink: str) -> str:
        """Return the name of this stream in ledgers; no sink has `@` in its name."""
        return f"{job}-{sink}@{self.version}" if self.version else f"{job}-{sink}"


class JobMeaning(NamedTuple):
    """The text that a job runs besides: in its canonical form, and as it was written.

    Checkpoints of before were of the text as it was written, comments and all. They go on where
    that has not changed.
    """

    canonical: str = ""
    written: str = ""


NOTHING: Final = JobMeaning()


@contextmanager
def claimed(jobs: Jobs) -> Iterator[None]:
    """The folder of checkpoints is this process's alone. Raises JobsError where it is another's."""
    folder = jobs.path(jobs.server["state"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise JobsError(f"{folder}: cannot be written: {(error.strerror or '').lower()}") from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobsError(f"{folder} is in use by another server: end that first") from None
        yield
    finally:
        os.close(held)


def checkpoint(
    jobs: Jobs,
    job: ConfigPart,
    lead: str,
    meaning: JobMeaning = NOTHING,
    sinks: Sequence[str] = (),
    *,
    alerted: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """The checkpoint of a stream, made where there is none. Raises JobsError.

    `sinks` are those that it fills from now on, and `lead` the first of those that it began with.
    `alerted` is where a former version of the job is at, where it goes on from that.
    """
    folder = _folder(jobs, job, lead)
    mark = fingerprint(jobs, job, meaning.canonical)
    file = folder / FILE
    names = list(sinks) or [lead]
    try:
        if file.is_file():
            held, former = _held(jobs, file, job, meaning)
            renewed = alerted is not None and alerted != held.alerted
            if renewed:
                held = replace(held, alerted=alerted)
            # A sink that was taken out misses what comes now: it is no part of this any more.
            if renewed or former != mark or sorted(_sinks_of(file, lead)) != sorted(names):
                _write(held, job, mark, names)
            return held
        version = version_apart(jobs, job)
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Checkpoint(folder, uuid.uuid4().hex, version, alerted)
        _write(fresh, job, mark, names)
    except OSError as error:
        raise JobsError(f"{file}: cannot be written: {(error.strerror or '').lower()}") from None
    return fresh


def _write(place: Checkpoint, job: ConfigPart, mark: str, sinks: Sequence[str]) -> None:
    content = {"format": FORMAT, "id": place.id, "job": job.name, "mark": mark, "sinks": sinks}
    if place.version:
        content["version"] = place.version
    if place.alerted is not None:
        content["alerted"] = place.alerted
    replace_file(place.folder / FILE, json.dumps(content))


def replace_file(file: Path, text: str) -> None:
    """Put a file in the place of another, so that a reader has one or the other, whole."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with fresh.open("w", encoding="utf-8") as target:
        target.write(text)
        target.flush()
        os.fsync(target.fileno())
    fresh.replace(file)


def hold(folder: Path) -> TextIO | None:
    """Take the stream of a checkpoint until the file is closed; None where a process has it."""
    held = (folder / LOCK).open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        return None
    return held


class BegunStream(NamedTuple):
    """A stream of a job that was begun, in whatever version."""

    folder: Path
    lead: str
    version: int
    apart: bool  # it fills tables and folders of its own


def begun_of(jobs: Jobs, job: ConfigPart) -> list[BegunStream]:
    """Return the streams of all versions of a job, in the order of their names."""
    state = jobs.path(jobs.server["state"])
    begun = []
    for file in sorted(state.glob(f"{job.name}-*/{FILE}")):
        lead, _, version = file.parent.name.removeprefix(f"{job.name}-").rpartition("-")
        if version.isdigit() and _owner(file) == job.name:
            apart = bool(json.loads(file.read_text(encoding="utf-8")).get("version", 0))
            begun.append(BegunStream(file.parent, lead, int(version), apart))
    return begun


def version_apart(jobs: Jobs, job: ConfigPart) -> int:
    """Return the version, where it fills tables and folders of its own, else 0."""
    begun = begun_of(jobs, job)
    own = [stream.apart for stream in begun if stream.version == job["version"]]
    apart = all(own) if own else bool(begun)
    return int(job["version"]) if apart else 0


def placed(jobs: Jobs, place: Checkpoint) -> Jobs:
    """Return the file with the folders that the version of a checkpoint fills."""
    sinks = {
        name: replace(sink, values={**sink.values, "path": sink["path"] + place.suffix})
        if sink.kind == "parquet" and place.suffix else sink
        for name, sink in jobs.sinks.items()
    }  # fmt: skip
    return replace(jobs, sinks=sinks)


def streams_begun(jobs: Jobs, job: ConfigPart) -> list[tuple[str, tuple[str, ...]]]:
    """(lead, sinks) of each stream that a job has, in the order of its sinks. Raises JobsError.

    Sinks that were begun together stay together, and so does one that was begun alone: each knows
    how far it is. All others begin as one stream.
    """
    streams: list[tuple[str, tuple[str, ...]]] = []
    state, end = jobs.path(jobs.server["state"]), f"-{job['version']}"
    for file in sorted(state.glob(f"{job.name}-*{end}/{FILE}")):
        lead = file.parent.name.removesuffix(end).removeprefix(f"{job.name}-")
        if _owner(file) == job.name:
            begun = _sinks_of(file, lead)
            streams.append((lead, tuple(name for name in job["sink"] if name in begun)))
    begun_all = {name for _, names in streams for name in names}
    fresh = tuple(name for name in job["sink"] if name not in begun_all)
    if fresh:
        taken = {lead for lead, _ in streams}
        free = [name for name in fresh if name not in taken]
        if not free:
            raise JobsError(
                f"jobs.{job.name}: sink {fresh[0]} was taken out of it before, and has missed what"
                " came since: give the sink another name, or the job another `version`"
            )
        streams.append((free[0], fresh))
    streams = [stream for stream in streams if stream[1]]
    return sorted(streams, key=lambda stream: job["sink"].index(stream[1][0]))


def _owner(file: Path) -> str:
    """The job of a checkpoint; none of one that is damaged, which is told where it is begun."""
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["job"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _sinks_of(file: Path, lead: str) -> list[str]:
    """The sinks of a checkpoint; of one of an older version its lead alone."""
    names: list[str] = json.loads(file.read_text(encoding="utf-8")).get("sinks", [lead])
    return names


def fits(jobs: Jobs, job: ConfigPart, sink: str, meaning: JobMeaning = NOTHING) -> None:
    """Raise JobsError where there is a checkpoint and it is of something else; none is made."""
    file = _folder(jobs, job, sink) / FILE
    try:
        if file.is_file():
            _held(jobs, file, job, meaning)
    except OSError as error:
        raise JobsError(f"{file}: cannot be read: {(error.strerror or '').lower()}") from None


def _folder(jobs: Jobs, job: ConfigPart, sink: str) -> Path:
    return jobs.path(jobs.server["state"]) / f"{job.name}-{sink}-{job['version']}"


def claim(folder: Path, place: Checkpoint, subscriptions: Sequence[str] = ()) -> None:
    """A folder of history belongs to one checkpoint. Raises JobsError where it is another's.

    Spark numbers batches from 0 for each checkpoint and passes over what the folder has by number:
    another checkpoint's first batches would be lost without a word.
    """
    file = folder / f"_{FILE}"
    try:
        if file.is_file():
            if json.loads(file.read_text(encoding="utf-8")).get("checkpoint") != place.id:
                raise JobsError(
                    f"{folder} holds the history of another checkpoint: name another folder"
                )
            return
        if (folder / "_spark_metadata").exists():
            raise JobsError(f"{folder} was written by something else: name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        # For those who read the history: what is in it, and where it says how far it is.
        content: dict[str, Any] = {"checkpoint": place.id, "state": str(place.folder.absolute())}
        if subscriptions:
            content["subscriptions"] = list(subscriptions)
        file.write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise JobsError(f"{file}: cannot be written: {(error.strerror or '').lower()}") from None
    except ValueError:
        raise JobsError(f"{file}: damaged; name another folder") from None


def _held(jobs: Jobs, file: Path, job: ConfigPart, meaning: JobMeaning) -> tuple[Checkpoint, str]:
    """The checkpoint there, and the mark in it. Raises JobsError where it is of something else."""
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        mark, number = document["mark"], int(document["format"])
        held = Checkpoint(
            file.parent, document["id"], int(document.get("version", 0)), document.get("alerted")
        )
    except (ValueError, LookupError, TypeError):
        raise JobsError(f"{file}: damaged; remove {file.parent} to begin anew") from None
    if number > FORMAT:
        raise JobsError(f"{file}: written by a newer Headwater")
    if mark not in {fingerprint(jobs, job, text) for text in meaning}:
        following = max(begun.version for begun in begun_of(jobs, job)) + 1
        raise JobsError(
            f"jobs.{job.name} means something else than when {file.parent} was begun: write version"
            f" = {following} there and run `headwater server migrate {job.name}` with this file, or"
            " put back what was changed"
        )
    return held, mark


def fingerprint(jobs: Jobs, job: ConfigPart, text: str) -> str:
    """A digest of what a job means."""
    values = {
        key: value
        for key, value in job.values.items()
        if key not in _FREE and not (key in _LATER and value is None)
    }
    source = jobs.sources[job["source"]]
    parts = [job.kind, source.kind, values, text]
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]
