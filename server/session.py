"""The Spark of this process.

Owns its settings and its start. Must not know jobs. Invariant: on one machine nothing listens
beyond loopback, this very interpreter runs whatever Spark runs in Python, and the log tells what is
wrong and nothing else.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from server.errors import ServerError
from server.executor_archive import kept_archive
from server.java import cache_folder, java_home, launched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG: Final = """status = error
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
# As loud as all others: where it differs, Spark sets a level of its own and says so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
# A stream that fails is told of by the server, in a sentence. Until then an attempt that fails is
# made again, and what is stopped in the middle is no failure.
logger.batches.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.batches.level = {told}
logger.attempts.name = org.apache.spark.executor.Executor
logger.attempts.level = {told}
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = {told}
logger.files.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.files.level = {told}
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""

# Of a batch that is stopped in the middle Spark asks with a pattern, which takes a stack as long as
# what Python says of it, whether it was an interruption. Stacks take memory only as they grow.
DEEP: Final = "-Xss16m"
# What comes from a process of Python is looked at value by value, and Arrow checks for each that it
# lies within what came: a fifth of what detection takes of Java. Spark asks for no other.
ARROW: Final = "-Darrow.enable_unsafe_memory_access=true"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Where Spark's usual way puts a file of a checkpoint in its place, Hadoop begins a program for each
# look at what may be a link: ten for a file, forty a batch, most of what a small batch takes. This
# way renames as well, and asks Java. Who writes is alone: `checkpoint.hold` sees to that.
FILES: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
QUIET: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "128",
    "spark.sql.streaming.checkpointFileManagerClass": FILES,
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Else a task sorts all rows by day before it writes any; a batch is of few days, and what is of
    # more is sorted from there on.
    "spark.sql.maxConcurrentOutputFileWriters": "4",
}


@dataclass(frozen=True)
class SparkSettings:
    """The settings of Spark. `master` is as Spark writes it; `more` are its own, and win."""

    name: str = "headwater"
    master: str = "local[2,3]"
    memory: str = "1g"
    partitions: int = 2  # of each shuffle; fixed in a checkpoint by its first run
    log_level: str = "error"
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Tell whether all of it runs in this process's own Java."""
        return self.master.startswith("local")


def settings_of(spark: SparkSettings, log_file: Path) -> dict[str, str]:
    """All settings of a session."""
    settings = dict(QUIET) | {
        "spark.driver.memory": spark.memory,
        "spark.sql.shuffle.partitions": str(spark.partitions),
        "spark.driver.extraJavaOptions": (
            f"{DEEP} {ARROW} -Dlog4j2.configurationFile={log_file.as_uri()}"
        ),
        "spark.executor.extraJavaOptions": ARROW,
        "spark.executorEnv.PYTHONHASHSEED": "0",
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if spark.local or "127.0.0.1" in spark.master:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings | dict(spark.more)


def start(spark: SparkSettings) -> "SparkSession":
    """Start Spark. Raises ServerError where it cannot."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ServerError("the server tier needs Spark: pip install 'headwater[server]'") from None
    from server.source import register

    folder = cache_folder(os.environ)
    os.environ["JAVA_HOME"] = str(launched(java_home(), folder))
    # Whatever runs Python for Spark runs this one: another would lack pyarrow, or differ.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if spark.local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder.master(spark.master).appName(spark.name)  # type: ignore[attr-defined, unused-ignore]
    for name, value in settings_of(spark, _log_file(folder, spark.log_level)).items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise ServerError(f"Spark does not start: {error}") from error
    _ship(session, folder)
    register(session, by_value=False)
    _quiet(told=spark.log_level != "error")
    return session


def _quiet(*, told: bool) -> None:
    """Have Spark's Python log the errors that it raises as well, or not (see `_LOG`)."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = not told


def _log_file(folder: Path, level: str) -> Path:
    """Write the file that sets the log of Spark's Java, and return its path."""
    file = folder / f"log4j2-{level}.properties"
    text = _LOG.format(level=level, told="off" if level == "error" else level)
    try:
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            folder.mkdir(parents=True, exist_ok=True)
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(file)
    except OSError as error:
        raise ServerError(f"{file}: cannot be written: {error.strerror}") from None
    return file


def _ship(session: "SparkSession", folder: Path) -> None:
    """Executors import our packages from an archive; on one machine too, so that both are alike.

    Spark puts the archive on this process's own path as well: what is imported later would come
    from there, and the next archive, made of where packages were imported from, would lack it.
    """
    before = list(sys.path)
    session.sparkContext.addPyFile(str(kept_archive(folder)))
    sys.path[:] = before
