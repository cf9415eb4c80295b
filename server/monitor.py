"""How far streams and brokers are: progress, lag and who is waited for.

Owns the numbers that /metrics and the status tell. Must not know HTTP's server side or jobs' plans.
Invariant: what it tells was asked from Spark and from the brokers, not counted a second time.
"""

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from server.config import TIMED, ConfigPart, Jobs
from server.jobs.packed_source import COUNT, READ
from server.source.log import Log, LogError
from server.source.options import Login
from server.source.places import POSTPONED, LogPlace, Postponed, places_in, places_of

EVERY_S: Final = 2.0  # a broker is asked where its log ends
ROUND_S_MAX: Final = 30.0


class StreamProgress(Protocol):
    """A stream, as much as is told of it; `streams.Stream` is one."""

    job: ConfigPart
    sinks: tuple[ConfigPart, ...]
    failures: int
    error: str
    down: bool
    running: Any

    @property
    def name(self) -> str:
        """The stream's name."""


class Sums(NamedTuple):
    """Of the batches up to one: the rows that were read, and what came too late to count."""

    batch: int = -1
    rows: int = 0
    late: int = 0


class Monitor:
    """Asks all brokers of the sources, in a thread of its own, and the streams when it is asked."""

    def __init__(self, jobs: Jobs, streams: Sequence[StreamProgress]) -> None:
        self._jobs = jobs
        self._streams = streams
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._brokers: dict[tuple[str, str], dict[str, Any]] = {}
        self._began = time.time()
        # By source, broker and what a job reads: what is still owed of that. Brokers promise
        # nothing to those who do not ask.
        self._promised: dict[tuple[str, str, frozenset[str]], dict[str, Any]] = {}
        self._timed: dict[str, dict[frozenset[str], None]] = {}  # by source, in order
        for job in jobs.jobs.values():
            if job.kind in TIMED:
                self._timed.setdefault(job["source"], {})[_subscriptions(job)] = None
        self._sums: dict[str, Sums] = {}  # by stream

    def start(self) -> None:
        """Begin to ask: each broker by itself, so that one that is away delays no other."""
        threads = [threading.Thread(target=self._follow, name="monitor", daemon=True)]
        for source in self._jobs.sources.values():
            if source.kind != "brokers":
                continue
            keys = ("user", "password_env", "password_file", "ca_file")
            login = Login(*(source[key] for key in keys))
            threads += [
                threading.Thread(
                    target=self._follow_log,
                    args=((source.name, name), Log(name, url, login)),
                    name=f"monitor {name}",
                    daemon=True,
                )
                for name, url in source["brokers"].items()
            ]
        for thread in threads:
            thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopping.set()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            self._count()
            self._stopping.wait(EVERY_S)

    def _follow_log(self, key: tuple[str, str], log: Log) -> None:
        while not self._stopping.is_set():
            self._note(key, log)
            self._stopping.wait(EVERY_S)
        log.close()

    def _note(self, key: tuple[str, str], log: Log) -> None:
        promised: dict[tuple[str, str, frozenset[str]], dict[str, Any]] = {}
        try:
            standing = log.offsets()
            for names in self._timed.get(key[0], ()):
                promise = log.offsets(settled_ms=0, subscriptions=names)
                if promise.subscriptions:
                    promised[*key, names] = {
                        "settled": promise.settled_ms,
                        "behind": promise.behind,
                    }
                else:
                    promised[*key, names] = {}
            state: dict[str, Any] = {
                "up": True,
                "epoch": standing.epoch,
                "earliest": standing.earliest,
                "end": standing.end,
            }
            state |= _least(promised.values())
        except (LogError, ValueError, OSError) as error:
            with self._lock:
                before = self._brokers.get(key, {})
            state = {**before, "up": False, "why": str(error)}
        with self._lock:
            self._brokers[key] = state
            self._promised |= promised

    def _count(self) -> None:
        """Add the batches that Spark still remembers and that were not counted before."""
        for stream in self._streams:
            running = stream.running
            if running is None:
                continue
            sums = self._sums.get(stream.name, Sums())
            for batch in _recent(running):
                # While there is nothing to read Spark tells of the next batch, which is not there.
                if batch["batchId"] > sums.batch and "addBatch" in batch["durationMs"]:
                    rows, late = sums.rows + rows_read(batch), sums.late + _late(batch)
                    sums = Sums(batch["batchId"], rows, late)
            self._sums[stream.name] = sums

    # --- what is told -------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        with self._lock:
            brokers = {
                (source.name, name): dict(self._brokers[source.name, name])
                for source in self._jobs.sources.values()
                if source.kind == "brokers"
                for name in source["brokers"]
                if (source.name, name) in self._brokers
            }
            promised = dict(self._promised)
        self._count()
        return {
            "server": self._jobs.server["name"],
            "since": round(self._began * 1000),
            "brokers": [
                {"source": source, "broker": name, **state}
                for (source, name), state in brokers.items()
            ],
            "streams": [
                self._told(stream, _of_job(stream.job, brokers, promised))
                for stream in self._streams
            ],
        }

    def _told(
        self, stream: StreamProgress, brokers: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        running = stream.running
        recent = _recent(running) if running is not None else []
        latest = recent[-1] if recent else {}
        places: dict[str, LogPlace] = {}
        read = [_places(source.get("endOffset")) for source in latest.get("sources", ())]
        # Before its first batch is done, a stream is where the run before has left it.
        checkpoint = self._checkpoint(stream)
        postponed = Postponed(checkpoint.parent / POSTPONED)
        for of_source in read if any(read) else places_in(checkpoint):
            for name, place in postponed.rewound(of_source).items():
                # A join reads twice: the one that is behind counts.
                if name not in places or place.next < places[name].next:
                    places[name] = place
        sums = self._sums.get(stream.name, Sums())
        document = {
            "stream": stream.name,
            "job": stream.job.name,
            "kind": stream.job.kind,
            "sink": stream.sinks[0].name,
            "sinks": [sink.name for sink in stream.sinks],
            "state": _state(stream),
            "failures": stream.failures,
            "batch": latest.get("batchId"),
            "rows": sums.rows,
            "batch_ms": latest.get("durationMs", {}).get("triggerExecution"),
            "watermark": latest.get("eventTime", {}).get("watermark"),
            "late": sums.late,
            "input_rows_s": _rate(latest),
            **_held_in_state(latest),
            "brokers": [_lag(name, places.get(name), state) for name, state in brokers.items()],
        }
        if stream.error:
            document["error"] = stream.error
        if stream.job.kind in TIMED:
            document["held_by"] = _hindmost(document["brokers"])
        return document

    def _checkpoint(self, stream: StreamProgress) -> Path:
        state = self._jobs.path(self._jobs.server["state"])
        return state / f"{stream.name}-{stream.job['version']}" / "spark"


def _subscriptions(job: ConfigPart) -> frozenset[str]:
    """Those that a job reads; none for all."""
    if job.kind == "join":
        return frozenset(job[side]["subscription"] for side in ("left", "right"))
    return frozenset(job["subscriptions"])


def _of_job(
    job: ConfigPart,
    brokers: Mapping[tuple[str, str], Mapping[str, Any]],
    promised: Mapping[tuple[str, str, frozenset[str]], dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    """The brokers of a job's source, with what they owe of what it reads."""
    by_broker: dict[str, dict[str, Any]] = {}
    for (source, name), state in brokers.items():
        if source == job["source"]:
            by_broker[name] = {key: state[key] for key in state if key not in {"settled", "behind"}}
            if job.kind in TIMED:
                by_broker[name] |= promised.get((source, name, _subscriptions(job)), {})
    return by_broker


def _hindmost(brokers: Sequence[Mapping[str, Any]]) -> str | None:
    """Behind whom the windows of a stream stay open: a broker that is away, or has promised least.

    None where no broker says.
    """
    for broker in brokers:
        if not broker["up"]:
            return str(broker["broker"])
    least = _least(brokers)
    return str(least["broker"]) if least else None


def _least(promised: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the least of what brokers promised; nothing if none promises."""
    promises = [promise for promise in promised if "settled" in promise]
    nothing = float("-inf")
    return min(
        promises,
        key=lambda promise: nothing if promise["settled"] is None else promise["settled"],
        default={},
    )


def rows_read(progress: Mapping[str, Any]) -> int:
    """The results of a batch: not what a source gives of which nothing but the watermark moved.

    It gives one row for that as well where the last range of a batch has none of the job's
    subscriptions; this cannot be told apart, and counts. Where rows are packed, their source says.
    """
    observed = progress.get("observedMetrics", {}).get(READ)
    if observed is not None:
        return int(observed[COUNT] or 0)
    count = int(progress["numInputRows"])
    for source in progress.get("sources", ()):
        before, after = (_places(source.get(name)) for name in ("startOffset", "endOffset"))
        if before != after and {name: place[:2] for name, place in before.items()} == {
            name: place[:2] for name, place in after.items()
        }:
            count -= 1
    return count


def _rate(progress: Mapping[str, Any]) -> float | None:
    """Results a second that come in, as Spark counts rows."""
    rate = _finite(progress.get("inputRowsPerSecond"))
    if not rate or READ not in progress.get("observedMetrics", {}):
        return rate
    return rate * rows_read(progress) / int(progress["numInputRows"])


def _late(progress: Mapping[str, Any]) -> int:
    """Count what the operators of a batch dropped: rows, or of aggregates, parts of groups."""
    operators = progress.get("stateOperators", ())
    return sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators)


def _held_in_state(progress: Mapping[str, Any]) -> dict[str, Any]:
    """The state that a stream keeps from batch to batch, and the age of its watermark, if any."""
    operators = progress.get("stateOperators", ())
    watermark = progress.get("eventTime", {}).get("watermark")
    age_s = None
    # Spark gives the beginning of all time where there is no watermark yet.
    if watermark is not None and not watermark.startswith("1970-01-01T00:00:00"):
        age_s = round(time.time() - datetime.fromisoformat(watermark).timestamp(), 3)
    return {
        "state_rows": sum(operator.get("numRowsTotal", 0) for operator in operators),
        "state_bytes": sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        "watermark_age_s": age_s,
    }


def _finite(value: Any) -> float | None:
    """A rate; Spark has words for one of no time at all, and none before the first batch."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else None


def _state(stream: StreamProgress) -> str:
    if stream.down:
        return "failed"
    if stream.running is None:
        return "waiting"
    return "running" if stream.running.isActive else "done"


def _lag(name: str, place: LogPlace | None, broker: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stream's progress at a broker; `lag` is in offsets."""
    document: dict[str, Any] = {"broker": name, "up": broker.get("up", False)}
    document |= {key: broker[key] for key in ("settled", "behind") if key in broker}
    if place is not None:
        document["next"] = place.next
        document["reached"] = place.reached_ms
        if broker.get("epoch") == place.epoch:
            document["lag"] = max(0, broker["end"] - max(place.next, broker["earliest"]))
    elif "end" in broker:
        document["lag"] = broker["end"] - broker["earliest"]
    return document


def _recent(running: Any) -> list[dict[str, Any]]:
    try:
        return [json.loads(progress.json) for progress in running.recentProgress]
    except Exception:  # noqa: BLE001 - Spark is ending; there is nothing to tell any more
        return []


def _places(offset: Any) -> dict[str, LogPlace]:
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    try:
        return places_of(offset or {})
    except (ValueError, AttributeError):
        return {}  # a source of files has other offsets


# --- Prometheus' text form -----------------------------------------------------------------------

METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "headwater_server_broker_up": ("gauge", "whether a broker answers"),
    "headwater_server_broker_end": ("gauge", "the end of a broker's log, in offsets"),
    "headwater_server_broker_settled_seconds": (
        "gauge",
        "event time up to which a broker promises that its log is settled, for what jobs read",
    ),
    "headwater_server_stream_up": ("gauge", "whether a stream is at work"),
    "headwater_server_stream_rows_total": ("counter", "rows that a stream has read"),
    "headwater_server_stream_failures_total": ("counter", "how often a stream failed in a row"),
    "headwater_server_stream_batch_seconds": ("gauge", "how long the last batch took"),
    "headwater_server_stream_late_total": ("counter", "rows, or parts of groups, that came late"),
    "headwater_server_stream_input_rows_per_second": ("gauge", "rows a second that came of late"),
    "headwater_server_stream_state_rows": ("gauge", "rows that a stream keeps in its state"),
    "headwater_server_stream_state_bytes": ("gauge", "memory that a stream's state takes"),
    "headwater_server_stream_watermark_age_seconds": (
        "gauge",
        "how far a stream's watermark is behind the time of day",
    ),
    "headwater_server_stream_lag": ("gauge", "offsets of a broker that a stream has not read"),
    "headwater_server_stream_reached_seconds": ("gauge", "event time reached in a broker's log"),
}


def metrics(status: Mapping[str, Any]) -> str:
    """The status as Prometheus reads it."""
    samples: dict[str, list[str]] = {name: [] for name in METRICS}

    def add(name: str, value: Any, **labels: str) -> None:
        if value is not None:
            text = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            samples[f"headwater_server_{name}"].append(f"{{{text}}} {float(value):.15g}")

    for broker in status["brokers"]:
        labels = {"source": broker["source"], "broker": broker["broker"]}
        add("broker_up", broker["up"], **labels)
        add("broker_end", broker.get("end"), **labels)
        settled = broker.get("settled")
        add("broker_settled_seconds", None if settled is None else settled / 1000, **labels)
    for stream in status["streams"]:
        name = stream["stream"]
        add("stream_up", stream["state"] == "running", stream=name)
        add("stream_rows_total", stream["rows"], stream=name)
        add("stream_failures_total", stream["failures"], stream=name)
        took_ms = stream["batch_ms"]
        add("stream_batch_seconds", None if took_ms is None else took_ms / 1000, stream=name)
        add("stream_late_total", stream["late"], stream=name)
        add("stream_input_rows_per_second", stream["input_rows_s"], stream=name)
        add("stream_state_rows", stream["state_rows"], stream=name)
        add("stream_state_bytes", stream["state_bytes"], stream=name)
        add("stream_watermark_age_seconds", stream["watermark_age_s"], stream=name)
        for broker in stream["brokers"]:
            labels = {"stream": name, "broker": broker["broker"]}
            add("stream_lag", broker.get("lag"), **labels)
            reached = broker.get("reached")
            add("stream_reached_seconds", None if reached is None else reached / 1000, **labels)
    lines = []
    for name, (kind, meaning) in METRICS.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{sample}" for sample in samples[name]]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
