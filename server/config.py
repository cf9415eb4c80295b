"""The file of jobs: sources, jobs and sinks.

Owns the file's keys, their meaning and their checks. Must not know Spark. Invariant: a file that
was read names nothing that is not there, and every fault of it is found, not the first alone.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from language.functions import AGGREGATES
from server.errors import JobsError

JOBS_MAX: Final = 100  # each is a stream of Spark's with threads of its own
NAME: Final = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)
_UNITS: Final = {"ms": 1, "s": 1000, "sec": 1000, "min": 60_000, "h": 3_600_000, "hour": 3_600_000}
_UNITS_ALL: Final = (
    _UNITS | {"day": 86_400_000} | {f"{unit}s": ms for unit, ms in _UNITS.items() if len(unit) > 2}
) | {"days": 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,9}) ?([a-z]+)")

_COLUMN: Final = re.compile(r"[\w.-]{1,64}")
_AGGREGATE: Final = re.compile(r"(\w+) ?\( ?([\w.-]{1,64}) ?\)")
FUNCTIONS: Final = tuple(each.name for each in AGGREGATES.values() if each.spark)
OWN_COLUMNS: Final = frozenset({"id", "start", "end", "count", "window", "day"})

Convert = Callable[[Any], Any]
REQUIRED: Final = object()


@dataclass(frozen=True)
class ConfigKey:
    """A key of a table: how its value is understood, what stands in its place, what it means."""

    convert: Convert
    default: Any
    meaning: str


@dataclass(frozen=True)
class ConfigPart:
    """A source, a job or a sink; `values` are checked and complete."""

    name: str
    kind: str
    values: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


@dataclass(frozen=True)
class Jobs:
    """A whole file. `folder` is the file's own: relative paths begin there."""

    folder: Path
    server: Mapping[str, Any]
    sources: Mapping[str, ConfigPart]
    jobs: Mapping[str, ConfigPart]
    sinks: Mapping[str, ConfigPart]

    def path(self, text: str) -> Path:
        """A path of the file."""
        return self.folder / text


# --- how values are understood -------------------------------------------------------------------


def text(value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A text, or a list of them."""
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, list) or not all(isinstance(item, str) and item for item in many):
        raise ValueError("expected a list of texts")
    return tuple(many)


def pairs(value: Any) -> dict[str, str]:
    """A table of texts."""
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError('expected a table of texts, such as { a = "b" }')
    return dict(value)


def yes_no(value: Any) -> bool:
    """A truth value."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")  # noqa: TRY004 - a fault of the file
    return value


def whole(value: Any) -> int:
    """A whole number from 0."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**12:
        raise ValueError("expected a whole number from 0")
    return value


def duration_ms(value: Any) -> int:
    """A length of time, such as "5 mins"."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS_ALL:
        raise ValueError('expected a length of time, such as "500 ms", "10 s", "5 mins" or "1 day"')
    return int(match[1]) * _UNITS_ALL[match[2]]


def one_of(*allowed: str) -> Convert:
    """One of some words."""

    def convert(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"expected {' or '.join(allowed)}")
        return str(value)

    return convert


def names(value: Any) -> tuple[str, ...]:
    """Names of columns or values, at least one."""
    columns = texts(value)
    if not columns or not all(_COLUMN.fullmatch(column) for column in columns):
        raise ValueError("expected names of columns or values")
    return columns


def aggregates(value: Any) -> dict[str, tuple[str, str]]:
    """A table of aggregates: name to function and value."""
    by_name = {}
    for name, call_text in pairs(value).items():
        call = _AGGREGATE.fullmatch(call_text)
        if call is None or call[1] not in FUNCTIONS or not _COLUMN.fullmatch(name):
            forms = ", ".join(f"{function}(name)" for function in FUNCTIONS)
            raise ValueError(f"expected {forms} of each; {name} is {call_text[:40]!r}")
        if name in OWN_COLUMNS:
            raise ValueError(f"{name} is there already")
        by_name[name] = (call[1], call[2])
    return by_name


def side(value: Any) -> dict[str, str]:
    """One side of a join: a subscription, and perhaps a broker."""
    chosen = pairs(value)
    if "subscription" not in chosen or not set(chosen) <= {"subscription", "broker"}:
        raise ValueError('expected { subscription = "…", broker = "…" }, the latter if wanted')
    return chosen


def since(value: Any) -> int | dict[str, int]:
    """A time, in ms, or a table of offsets by broker."""
    if isinstance(value, dict) and value:
        return {str(name): whole(offset) for name, offset in value.items()}
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        when = None
    if not isinstance(when, datetime):
        raise ValueError(  # noqa: TRY004 - a fault of the file
            "expected a time, such as 2026-11-01T00:00:00Z, or offsets, such as { north = 1200 }"
        )
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)


# --- the keys ------------------------------------------------------------------------------------

SERVER: Final = {
    "name": ConfigKey(text, "headwater", "stands before the names of consumers at the brokers"),
    "state": ConfigKey(text, "state", "folder of checkpoints; shared storage on a cluster"),
    "http": ConfigKey(text, "127.0.0.1:8090", "where /metrics and /v1/status answer; port 0: any"),
    "master": ConfigKey(text, "local[2,3]", "where Spark runs"),
    "memory": ConfigKey(text, "1g", "of the driver's Java"),
    "shuffle_partitions": ConfigKey(whole, 2, "of each shuffle; a checkpoint keeps its first"),
    "trigger": ConfigKey(duration_ms, 500, "from the beginning of a batch to the next"),
    "log": ConfigKey(one_of("error", "warn", "info", "debug"), "error", "what Spark logs"),
    "spark": ConfigKey(pairs, {}, "further settings of Spark's own"),
}

SOURCES: Final = {
    "brokers": {
        "brokers": ConfigKey(pairs, REQUIRED, "name to address; the name is the broker's for good"),
        "user": ConfigKey(text, None, "as whom the brokers are asked"),
        "password_env": ConfigKey(text, None, "the variable that holds the password"),
        "password_file": ConfigKey(
            text, None, "the file that holds the password, on every executor"
        ),
        "ca_file": ConfigKey(text, None, "certificates of whom to trust, on every executor"),
        "starting": ConfigKey(
            one_of("earliest", "latest"), "earliest", "where a new broker is begun"
        ),
        "batch_rows": ConfigKey(whole, None, "rows of a batch at most, 0 for no limit"),
        "away": ConfigKey(one_of("wait", "fail"), "wait", "when a broker is away"),
        "away_timeout": ConfigKey(
            duration_ms, None, "then jobs in step wait no longer; else for ever"
        ),
        "settled_timeout": ConfigKey(
            duration_ms,
            None,
            "how long a promise may stand still and hold jobs in step; else for ever",
        ),
        "quiet_wait": ConfigKey(duration_ms, 0, "how long a quiet broker holds jobs in step"),
        "lost": ConfigKey(one_of("fail", "skip"), "fail", "when retention took results unread"),
        "format": ConfigKey(
            one_of("auto", "arrow", "msgpack", "json"), "auto", "the form of pages"
        ),
        "options": ConfigKey(pairs, {}, "further options of the data source"),
    },
    "history": {
        "path": ConfigKey(text, REQUIRED, "folder that a job of kind history fills or has filled"),
        "batch_rows": ConfigKey(whole, None, "rows of a batch at most, 0 for no limit"),
        "lost": ConfigKey(one_of("fail", "skip"), "fail", "when the history has a gap"),
        "options": ConfigKey(pairs, {}, "further options of the data source"),
    },
    "events": {
        "path": ConfigKey(
            text, REQUIRED, "folder of JSON lines, one event a line, to which files come"
        ),
        "files": ConfigKey(whole, 100, "files of a batch at most"),
    },
}

_READING: Final = {
    "source": ConfigKey(text, REQUIRED, "the source"),
    "sink": ConfigKey(texts, REQUIRED, "where to; of several, each is a stream of its own"),
    "subscriptions": ConfigKey(texts, (), "only these; all where none is named"),
    "backfill": ConfigKey(text, None, "the source of kind history with which brokers' logs begin"),
    "since": ConfigKey(since, None, "from when on, or from which offsets"),
    "trigger": ConfigKey(
        duration_ms, None, "from the beginning of a batch to the next; else as [server]"
    ),
    "version": ConfigKey(
        whole, 1, "another one is filled beside this, by `headwater server migrate`"
    ),
}
_TIMED: Final = {
    "delay": ConfigKey(
        duration_ms, 10_000, "how late a result may be to count; see the documentation"
    ),
}
JOBS: Final = {
    "history": dict(_READING),
    "windows": _READING
    | _TIMED
    | {
        "window": ConfigKey(duration_ms, REQUIRED, "how long"),
        "slide": ConfigKey(duration_ms, None, "how often, where windows overlap"),
        "by": ConfigKey(names, ("location",), "columns of the source, or names of values"),
        "values": ConfigKey(aggregates, {}, 'name to aggregate, such as coldest = "Min(temp)"'),
    },
    "join": _READING
    | _TIMED
    | {
        "left": ConfigKey(side, REQUIRED, "what comes first"),
        "right": ConfigKey(side, REQUIRED, "what follows it"),
        "on": ConfigKey(names, ("location",), "columns in which both agree"),
        "within": ConfigKey(duration_ms, REQUIRED, "how long after it at most"),
    },
    "dedup": _READING
    | _TIMED
    | {
        "keys": ConfigKey(names, ("id",), "columns in which repeats agree"),
        "within": ConfigKey(duration_ms, 600_000, "for how long a repeat is known"),
    },
    "detect": _READING
    | _TIMED
    | {
        "specification": ConfigKey(text, REQUIRED, "the file with what is to be detected"),
        "types": ConfigKey(pairs, {}, "subscription to event type, where the name will not do"),
        "longest": ConfigKey(
            duration_ms, 3_600_000, "no event lasts longer; one that does is refused"
        ),
        "parted": ConfigKey(
            yes_no, False, "run what never meets apart, where the text allows that"
        ),
    },
}
TIMED: Final = frozenset(kind for kind, keys in JOBS.items() if "delay" in keys)
SINKS: Final = {
    "parquet": {
        "path": ConfigKey(text, REQUIRED, "folder"),
        "file_rows": ConfigKey(whole, 0, "rows of a file at most, 0 for no limit"),
    },
    "database": {
        "url": ConfigKey(text, REQUIRED, "as SQLAlchemy writes it; $NAME stands for a variable"),
        "table": ConfigKey(text, None, "else the job's name"),
    },
    "mqtt": {
        "url": ConfigKey(text, "mqtt://127.0.0.1:1883", "mqtt:// or mqtts://"),
        "topic": ConfigKey(
            text, "alerts/{actor}/{subscription}", "with columns of the job in braces"
        ),
        "user": ConfigKey(text, None, "as whom"),
        "password_env": ConfigKey(
            text, "HEADWATER_PASSWORD", "the variable that holds the password"
        ),
    },
    "console": {},
}


# --- reading -------------------------------------------------------------------------------------


def read(path: Path) -> Jobs:
    """The jobs of a file. Raises JobsError with every fault."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise JobsError(f"{path}: cannot be read: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise JobsError(f"{path}: not UTF-8") from None
    except (ValueError, RecursionError) as error:  # no TOML, or a number too long
        raise JobsError(f"{path}: {error}") from None
    faults: list[str] = []
    _known(document, ("server", "sources", "jobs", "sinks"), "", faults)
    server = _values(document.get("server", {}), SERVER, "server", faults)
    sources = _parts(document, "sources", SOURCES, "brokers", faults)
    jobs = _parts(document, "jobs", JOBS, None, faults)
    sinks = _parts(document, "sinks", SINKS, None, faults)
    for job in jobs.values():
        _refers(job, "source", [job.values.get("source")], sources, faults)
        _refers(job, "backfill", [job.values.get("backfill")], sources, faults)
        _refers(job, "sink", job.values.get("sink") or [], sinks, faults)
    if not jobs and not faults:
        faults.append("there is no job: [jobs.NAME] with a kind")
    if len(jobs) > JOBS_MAX:
        faults.append(f"there are {len(jobs)} jobs, at most {JOBS_MAX}")
    if faults:
        raise JobsError("\n".join(f"{path}: {fault}" for fault in faults))
    return Jobs(path.resolve().parent, server, sources, jobs, sinks)


def _parts(
    said: Mapping[str, Any],
    table: str,
    kinds: Mapping[str, Mapping[str, ConfigKey]],
    default: str | None,
    faults: list[str],
) -> dict[str, ConfigPart]:
    parts: dict[str, ConfigPart] = {}
    many = said.get(table, {})
    if not isinstance(many, dict):
        faults.append(f"{table}: expected tables [{table}.NAME]")
        return parts
    for name, values in many.items():
        where = f"{table}.{name}"
        if not NAME.fullmatch(name) or not isinstance(values, dict):
            faults.append(f"{where}: expected a table under a name of letters, digits, - and _")
            continue
        kind = str(values.get("kind", default))
        if kind not in kinds:
            faults.append(f"{where}: found kind {kind}, expected {', '.join(kinds)}")
            continue
        options = {key: value for key, value in values.items() if key != "kind"}
        parts[name] = ConfigPart(name, kind, _values(options, kinds[kind], where, faults))
    return parts


def _values(
    said: Any, keys: Mapping[str, ConfigKey], where: str, faults: list[str]
) -> dict[str, Any]:
    if not isinstance(said, dict):
        faults.append(f"{where}: expected a table")
        return {}
    _known(said, keys, f"{where}.", faults)
    values: dict[str, Any] = {}
    for name, key in keys.items():
        if name not in said:
            if key.default is REQUIRED:
                faults.append(f"{where}: {name} is needed: {key.meaning}")
            values[name] = key.default
            continue
        try:
            values[name] = key.convert(said[name])
        except ValueError as error:
            shown = "what is no text" if name == "url" else str(said[name])[:60]
            faults.append(f"{where}.{name}: found {shown}, {error}")
    return values


def _known(said: Mapping[str, Any], allowed: Any, where: str, faults: list[str]) -> None:
    for name in said:
        if name not in allowed:
            near = difflib.get_close_matches(name, list(allowed), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(allowed)}"
            faults.append(f"there is no {where}{name}{hint}")


def _refers(
    job: ConfigPart, key: str, names: Any, parts: Mapping[str, ConfigPart], faults: list[str]
) -> None:
    for name in names:
        if name is not None and name is not REQUIRED and name not in parts:
            listed = ", ".join(parts) or "none"
            faults.append(f"jobs.{job.name}.{key}: there is no {name}; there are: {listed}")
