"""The server's process: from a file of jobs to an exit status.

Owns the order of start and end, and signals. Must not know what jobs do. Invariant: a file that is
refused starts nothing; a process that was told to end leaves no Java behind.
"""

import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

from server.backfill import unfit_histories
from server.checkpoint import claimed, streams_begun
from server.config import Jobs, read
from server.errors import JobsError, ServerError
from server.face import Face
from server.job_checks import unfit
from server.jobs.kinds import program_of
from server.jobs.reading import options_of
from server.monitor import Monitor
from server.session import SparkSettings, start
from server.sinks.alerts import Alerts
from server.sinks.database import understood
from server.source.log import tell
from server.source.options import OptionError, SourceOptions
from server.streams import JobStream
from server.upkeep.consumers import forget_former
from server.upkeep.versions import unshown

LOOK_S: Final = 0.25
BEGIN_S: Final = 60.0


def run(path: Path, *, once: bool = False) -> int:
    """Run the jobs of a file until SIGTERM or Ctrl-C, or with `once` until all is read.

    0; 1 where a stream stays down. Raises ServerError where nothing can be started.
    """
    jobs, streams = _checked(path, ready=True)
    with claimed(jobs):
        _fit(streams)
        forget_former(jobs)
        return _run(jobs, streams, threading.Event(), once=once, shown=True)


def run_job(path: Path, name: str) -> tuple[Jobs, list[JobStream]]:
    """Return the streams of a job of a file in which nothing is wrong. Raises JobsError."""
    jobs, streams = _checked(path, ready=True)
    if name not in jobs.jobs:
        raise JobsError(f"there is no job {name}; there are: {', '.join(jobs.jobs)}")
    return jobs, [stream for stream in streams if stream.job.name == name]


def read_all(jobs: Jobs, streams: list[JobStream]) -> bool:
    """Run streams up to where the logs end now; return whether they all came there.

    It has no face: the server that goes on meanwhile has that. Raises ServerError.
    """
    stop = threading.Event()
    status = _run(jobs, streams, stop, once=True)
    return status == 0 and not stop.is_set()


def _run(
    jobs: Jobs, streams: list[JobStream], stop: threading.Event, *, once: bool, shown: bool = False
) -> int:
    before = _stopped_by_signals(stop)
    monitor = Monitor(jobs, streams)
    face = Face(jobs.server["http"], monitor.status) if shown else None
    session, gone = None, False
    try:
        monitor.start()  # how far streams are behind can be told before they run
        session = start(_spark(jobs))
        _stopped_by_signals(stop)  # Spark has put one of its own in the place of ours
        for stream in streams:
            stream.start(session, once=once)
            _await_begun(stream, stop)
        if face is not None:
            tell(f"ready: {len(streams)} streams; {face.url}/v1/status tells how far they are")
        _serve(session, streams, stop, once=once)
    except Exception as error:
        gone = isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j")
        if not gone:
            raise
        if not stop.is_set():  # else it was told to end just as we were
            raise ServerError("Spark's Java has ended: killed, or short of memory") from error
    finally:
        monitor.stop()
        if face is not None:
            face.close()
        _end(session, streams, told=gone or stop.is_set())
        for number, handler in before.items():
            signal.signal(number, handler)
    return 1 if any(stream.down for stream in streams) else 0


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def _stopped_by_signals(stop: threading.Event) -> dict[signal.Signals, Any]:
    """Have signals stop the run, and return what was done at these signals before."""
    return {number: signal.signal(number, lambda *_: stop.set()) for number in _SIGNALS}


def _await_begun(stream: JobStream, stop: threading.Event) -> None:
    """One after the other: Spark gives the Python of each source ten seconds to answer."""
    deadline = time.monotonic() + BEGIN_S
    while time.monotonic() < deadline and stream.beginning and not stop.wait(LOOK_S / 5):
        pass


def _end(session: Any, streams: list[JobStream], *, told: bool) -> None:
    """Stop what runs. Told to end, Java may have been told as well, and be gone already."""
    try:
        for stream in streams:
            stream.stop()
        if session is not None:
            session.stop()
    except Exception:
        if not told:
            raise


def check(path: Path) -> None:
    """Check a file of jobs, the specifications that it names and the checkpoints that there are.

    Raises ServerError.
    """
    _, streams = _checked(path, ready=False)
    _fit(streams)


def _checked(path: Path, *, ready: bool) -> tuple[Jobs, list[JobStream]]:
    """The jobs and streams of a file in which nothing is wrong.

    `ready`: passwords are looked up as well, as a server needs them here. Raises JobsError with
    what is good by itself and does not fit, or is understood by its user alone.
    """
    jobs = read(path)
    streams = streams_of(jobs)
    faults = (
        unfit(jobs)
        + unfit_histories(jobs)
        + _of_parts(jobs, ready=ready)
        + _of_specifications(jobs)
    )
    if faults:
        raise JobsError("\n".join(faults))
    return jobs, streams


def _fit(streams: list[JobStream]) -> None:
    """Raise JobsError with each that was begun before and meant something else, or is not shown."""
    faults = []
    for stream in streams:
        try:
            stream.check()
            if (fault := unshown(stream.jobs, stream.job)) is not None:
                faults.append(fault)
        except JobsError as error:
            faults.append(str(error))
    faults = list(dict.fromkeys(faults))  # a job may have several streams
    if faults:
        raise JobsError("\n".join(faults))


def _of_specifications(jobs: Jobs) -> list[str]:
    faults = []
    for job in jobs.jobs.values():
        if job.kind == "detect":
            try:
                program_of(jobs, job, raw=jobs.sources[job["source"]].kind == "events")
            except JobsError as error:
                faults.append(str(error))
    return list(dict.fromkeys(faults))  # several jobs may name one file


def _of_parts(jobs: Jobs, *, ready: bool) -> list[str]:
    faults = []
    for part in (*jobs.sources.values(), *jobs.sinks.values()):
        try:
            if part.kind == "brokers":
                login = SourceOptions.of(options_of(part, "check", in_step=True)).login
                if ready and login.user is not None:
                    login.password()
            elif part.kind == "database":
                understood(part["url"])
            elif part.kind == "mqtt":
                Alerts(part["url"], part["topic"], part["user"], part["password_env"])
        except (JobsError, OptionError) as error:
            kind = "sources" if part.kind == "brokers" else "sinks"
            faults.append(f"{kind}.{part.name}: {error}")
    return faults


def streams_of(jobs: Jobs) -> list[JobStream]:
    """One stream for each job, or for those of its sinks that were begun together.

    Raises JobsError.
    """
    streams = []
    owners: dict[str, str] = {}
    for job in jobs.jobs.values():
        for name in job["sink"]:
            sink = jobs.sinks[name]
            if sink.kind == "parquet" and owners.setdefault(name, job.name) != job.name:
                raise JobsError(
                    f"sinks.{name}: {owners[name]} and {job.name} cannot write one folder: give"
                    f" each a sink of its own"
                )
        for lead, names in streams_begun(jobs, job):
            streams.append(JobStream(jobs, job, tuple(jobs.sinks[name] for name in names), lead))
    return streams


def _spark(jobs: Jobs) -> SparkSettings:
    settings = jobs.server
    return SparkSettings(
        name=settings["name"],
        master=settings["master"],
        memory=settings["memory"],
        partitions=settings["shuffle_partitions"],
        log_level=settings["log"],
        more=settings["spark"],
    )


def _serve(session: Any, streams: list[JobStream], stop: threading.Event, *, once: bool) -> None:
    while not stop.wait(LOOK_S):
        at_work = [stream.look(session, once=once) for stream in streams]
        if not any(at_work):
            return
