"""A job on its way to its sinks: a stream of Spark's, kept running.

Owns its start, its end and what is done when it fails. Must not know other streams or how a batch
reaches a sink. Invariant: a
stream that failed for a reason that may pass is begun again, later each time; one that would lose
something or was told wrongly stays down, and says why.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TextIO

from pyspark.errors import PySparkException

from server.checkpoint import NOTHING, Checkpoint, JobMeaning, checkpoint, fits, hold, placed
from server.config import ConfigPart, Jobs
from server.detection.program import canonical_of
from server.errors import JobsError, ServerError
from server.jobs.kinds import firsts_of, frame_of, program_of
from server.jobs.reading import same_by_id
from server.sinks.batches import Batches, folder_of
from server.sinks.files import writer_of
from server.source.log import tell
from server.source.places import POSTPONED, unfinished_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

AGAIN_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
ONCE_MAX: Final = 5  # attempts at a bounded run
CALM_S: Final = 300.0  # up for so long, it is begun again at once when it fails
_NAMED: Final = re.compile(r"\b([A-Za-z]\w*(?:Error|Exception)): \S")
# What trying again does not mend, by the names of errors as they come out of Spark's own.
FINAL: Final = ("LostError", "EpochError", "OptionError", "JobsError", "LanguageError")


@dataclass
class JobStream:
    """One job and its sinks, or those that were begun together. It is named after the first."""

    jobs: Jobs
    job: ConfigPart
    sinks: tuple[ConfigPart, ...]
    lead: str
    clock: Callable[[], float] = time.monotonic
    running: "StreamingQuery | None" = None
    failures: int = 0
    error: str = ""
    down: bool = False  # for good
    _began_s: float = 0.0
    _again_s: float = 0.0
    _batches: Batches | None = field(default=None, repr=False)
    _held: TextIO | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The job's name and that of the sink that it began with."""
        return f"{self.job.name}-{self.lead}"

    @property
    def consumer(self) -> str:
        """As brokers know it."""
        return f"{self.jobs.server['name']}.{self.name}.{self.job['version']}"

    def start(self, spark: "SparkSession", *, once: bool) -> None:
        """Begin; with `once`, up to where the logs end now. Raises ServerError."""
        place = self.begin()
        self._began_s = self.clock()
        try:
            self.running = self._begun(spark, place, once=once)
        except PySparkException as error:
            raise ServerError(f"{self.name}: {short(str(error))}") from error

    def begin(self, alerted: Mapping[str, Any] | None = None) -> Checkpoint:
        """Return its checkpoint, made where there is none, for this process alone.

        Raises JobsError.
        """
        place = checkpoint(
            self.jobs, self.job, self.lead, self._meaning(), self._sink_names, alerted=alerted
        )
        self._held = self._held or hold(place.folder)
        if self._held is None:
            raise JobsError(f"{place.folder} is in use by another process: end that first")
        return place

    def check(self) -> None:
        """Raise JobsError where it was begun before and meant something else; make nothing."""
        fits(self.jobs, self.job, self.lead, self._meaning())

    @property
    def _sink_names(self) -> tuple[str, ...]:
        return tuple(sink.name for sink in self.sinks)

    def _meaning(self) -> JobMeaning:
        """Return what the job runs besides what its file says."""
        if self.job.kind == "detect":
            source = self.jobs.sources[self.job["source"]]
            program = program_of(self.jobs, self.job, raw=source.kind == "events")
            return JobMeaning(canonical_of(program), program.text)
        if self.job.kind == "dedup" and not same_by_id(self.job):
            text = firsts_of(self.job).text
            return JobMeaning(text, text)
        return NOTHING

    def _begun(self, spark: "SparkSession", place: Checkpoint, *, once: bool) -> "StreamingQuery":
        jobs = placed(self.jobs, place)
        batches = self._opened(jobs, place)
        # What some sink has, the others must get as well: no more is left out of it than was.
        whole = batches.hold(unfinished_in(place.folder / "spark"))
        postponed = place.folder / POSTPONED
        frame = frame_of(spark, jobs, self.job, self.consumer, postponed, whole_first=whole)
        writer = self._writer(jobs, frame, place, batches)
        trigger = self.job["trigger"]
        if trigger is None:
            trigger = self.jobs.server["trigger"]
        timed = writer.trigger(
            **{"availableNow": True} if once else {"processingTime": f"{trigger} milliseconds"}
        )
        query: StreamingQuery = (
            timed.queryName(self.name)
            .option("checkpointLocation", str(place.folder / "spark"))
            .start()
        )
        return query

    def look(self, spark: "SparkSession", *, once: bool) -> bool:
        """Begin it again where it has failed and it is time; whether it is at work or will be."""
        if self.down:
            return False
        if self.running is not None:
            if self.running.isActive:
                return True
            failed = self.running.exception()
            if failed is None and once:
                return False  # all is done
            self._failed(str(failed or "it has ended without a word"), once=once)
        return self._again(spark, once=once)

    def _again(self, spark: "SparkSession", *, once: bool) -> bool:
        if self.down or self.clock() < self._again_s:
            return not self.down
        try:
            self.start(spark, once=once)
        except ServerError as error:
            self._failed(f"{type(error).__name__}: {error}", once=once)
        return not self.down

    @property
    def beginning(self) -> bool:
        """Tell whether it is still being made ready."""
        running = self.running
        if running is None or not running.isActive:
            return False
        return str(running.status["message"]).startswith("Initializing")

    def stop(self) -> None:
        """End it, with its batch or without."""
        if self.running is not None and self.running.isActive:
            self.running.stop()
        self._close()

        if self._held is not None:
            self._held.close()
            self._held = None

    def _close(self) -> None:
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    def _failed(self, error: str, *, once: bool) -> None:
        self.running = None
        calm = self.clock() - self._began_s > CALM_S
        self.failures = 1 if calm else self.failures + 1
        self.error = short(error)
        # Who waits for the end of a bounded run is told rather than kept waiting for ever: one that
        # found a broker away has waited for it.
        names = names_in(error)
        in_vain = once and (self.failures == ONCE_MAX or "AwayError" in names)
        self.down = in_vain or any(name in names for name in FINAL)
        pause_s = AGAIN_S[min(self.failures, len(AGAIN_S)) - 1]
        self._again_s = self.clock() + pause_s
        then = "it stays down" if self.down else f"again in {pause_s:g} s"
        tell(f"{self.name}: {self.error}; {then}")

    # --- sinks --------------------------------------------------------------------------------

    def _opened(self, jobs: Jobs, place: Checkpoint) -> Batches:
        self._close()
        sinks = tuple(jobs.sinks[sink.name] for sink in self.sinks)
        self._batches = Batches(jobs, self.job, sinks, place)
        return self._batches

    def _writer(self, jobs: Jobs, frame: "DataFrame", place: Checkpoint, batches: Batches) -> Any:
        sinks = tuple(jobs.sinks[sink.name] for sink in self.sinks)
        if [sink.kind for sink in sinks] == ["parquet"]:
            folder = folder_of(jobs, self.job, sinks[0], place)
            return writer_of(frame, folder, sinks[0]["file_rows"])
        return frame.writeStream.foreachBatch(batches)


def names_in(error: str) -> list[str]:
    """Return the names of the errors that a text tells of.

    Lines of code stand in it as well, such as `except LostError:`, through which another has come.
    """
    return _NAMED.findall(error)


def short(error: str) -> str:
    """Return what went wrong, without the stack of two languages."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    for ending in ("Error", "Exception"):  # ours and Python's, before those of Spark
        for line in reversed(lines):
            kind, colon, message = line.partition(": ")
            name = kind.rpartition(".")[2]
            if colon and name.endswith(ending) and name.isidentifier() and message:
                return message
    return lines[0] if lines else "it failed without a word"
