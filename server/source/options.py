"""The options of the data source.

Owns their names, defaults and meaning. Must not know Spark or brokers. Invariant: an option that is
not understood is refused with what there is; no password ever stands among them, as Spark shows
options in plans and logs.
"""

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

BROKERS_MAX: Final = 1000  # each is watched by a thread of the driver's
FORMATS: Final = ("auto", "arrow", "msgpack", "json")

# name -> what a user reads when an option is faulty
_KINDS: Final = {
    "brokers": "name=http://host:port, separated by commas",
    "subscriptions": "names separated by commas",
    "startingoffsets": "earliest or latest",
    "maxrowsperbatch": "a whole number, 0 for no limit",
    "splitrows": "a whole number from 1",
    "tasks": "a whole number from 1",
    "pagerows": "a whole number from 1",
    "format": ", ".join(FORMATS),
    "align": "true or false",
    "alignslack": "seconds",
    "quietwait": "seconds",
    "settledtimeout": "seconds, or never",
    "onbrokeraway": "wait or fail",
    "awaytimeout": "seconds, or never",
    "readretry": "seconds",
    "longpoll": "seconds, at most 60",
    "failondataloss": "true or false",
    "lateafter": "seconds, or never",
    "consumer": "a name",
    "history": "the folder of a history, with which a stream begins",
    "since": "milliseconds, or broker=offset separated by commas",
    "notegaps": "the folder of a history, beside which gaps are noted",
    "postponed": "a folder for notes of what a batch leaves out, as its broker is away",
    "wholefirst": "true or false",
    "user": "a name",
    "passwordenv": "the name of an environment variable",
    "passwordfile": "a path",
    "cafile": "a path",
}


class OptionError(ValueError):
    """An option of the source cannot be understood."""


@dataclass(frozen=True)
class Login:
    """As whom brokers are asked; the secret is looked up where it is used."""

    user: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    ca_file: str | None = None

    def password(self) -> str:
        """The secret. Raises OptionError where it is not there."""
        if self.password_file is not None:
            try:
                return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as error:
                raise OptionError(
                    f"passwordFile {self.password_file}: cannot be read: {error.strerror}"
                ) from None
        name = self.password_env or "HEADWATER_PASSWORD"
        if name not in os.environ:
            raise OptionError(f"no password for {self.user}: {name} is not set")
        return os.environ[name]


@dataclass(frozen=True)
class SourceOptions:
    """The options of a source, read and checked; times are in seconds."""

    brokers: tuple[tuple[str, str], ...]
    subscriptions: frozenset[str] = frozenset()
    starting: str = "earliest"
    batch_rows_max: int = 50_000
    split_rows: int = 100_000
    tasks_max: int = 8  # of a batch, but for what one task would read more than `split_rows` of
    page_rows: int = 10_000
    form: str = "auto"
    align: bool = True
    slack_s: float = 0.0
    quiet_s: float = 0.0
    settled_s: float | None = None  # so long may a promise stand still and hold others; or for ever
    on_away: str = "wait"
    away_s: float | None = None  # None: for ever
    retry_s: float = 30.0
    poll_s: float = 20.0
    fail_on_loss: bool = True
    late_s: float | None = None  # how much later than others a result may come; None: no matter
    consumer: str | None = None
    history: str | None = None
    since: int | Mapping[str, int] | None = None  # where a broker is begun: in ms, or its offset
    note_gaps: str | None = None
    postponed: str | None = None
    whole_first: bool = False  # the first batch may be in a sink: leave nothing more out of it
    login: Login = Login()

    @property
    def by_promises(self) -> bool:
        """Tell whether brokers are to promise up to when their logs are settled."""
        return self.align and self.late_s is not None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SourceOptions":
        """From Spark's mapping, whose names are in any case. Raises OptionError."""
        given = {name.lower(): str(value) for name, value in options.items()}
        for name in given:
            if name not in _KINDS:
                raise _unknown(name)
        if "brokers" not in given and "history" not in given:
            raise OptionError(f"the option brokers is needed: {_KINDS['brokers']}")
        away, late = given.get("awaytimeout", "never"), given.get("lateafter", "never")
        settled = given.get("settledtimeout", "never")
        return cls(
            brokers=brokers_of(given["brokers"]) if "brokers" in given else (),
            subscriptions=frozenset(_names(given.get("subscriptions", ""))),
            starting=_one_of(given, "startingoffsets", "earliest", "latest"),
            batch_rows_max=_whole(given, "maxrowsperbatch", cls.batch_rows_max, 0),
            split_rows=_whole(given, "splitrows", cls.split_rows, 1),
            tasks_max=_whole(given, "tasks", cls.tasks_max, 1),
            page_rows=_whole(given, "pagerows", cls.page_rows, 1),
            form=_one_of(given, "format", *FORMATS),
            align=_one_of(given, "align", "true", "false") == "true",
            slack_s=_seconds(given, "alignslack", cls.slack_s),
            quiet_s=_seconds(given, "quietwait", cls.quiet_s),
            settled_s=None if settled == "never" else _seconds(given, "settledtimeout", 0.0),
            on_away=_one_of(given, "onbrokeraway", "wait", "fail"),
            away_s=None if away == "never" else _seconds(given, "awaytimeout", 0.0),
            retry_s=_seconds(given, "readretry", cls.retry_s),
            poll_s=min(60.0, _seconds(given, "longpoll", cls.poll_s)),
            fail_on_loss=_one_of(given, "failondataloss", "true", "false") == "true",
            late_s=None if late == "never" else _seconds(given, "lateafter", 0.0),
            consumer=given.get("consumer"),
            history=given.get("history"),
            since=_since(given),
            note_gaps=given.get("notegaps"),
            postponed=given.get("postponed") or None,
            whole_first=_one_of(given, "wholefirst", "false", "true") == "true",
            login=Login(
                given.get("user"),
                given.get("passwordenv"),
                given.get("passwordfile"),
                given.get("cafile"),
            ),
        )


def brokers_of(text: str) -> tuple[tuple[str, str], ...]:
    """(name, address) of each broker, in the order of the text. Raises OptionError."""
    brokers: dict[str, str] = {}
    for pair in _names(text):
        name, equals, address = pair.partition("=")
        name, address = name.strip(), address.strip()
        if not equals or not re.fullmatch(r"[\w.-]{1,64}", name):
            raise OptionError(f"brokers: found {shown(pair)}, expected {_KINDS['brokers']}")
        if name in brokers:
            raise OptionError(f"brokers: {name} is named twice")
        brokers[name] = _address(address)
    if not 0 < len(brokers) <= BROKERS_MAX:
        raise OptionError(f"brokers: found {len(brokers)}, expected 1 to {BROKERS_MAX}")
    return tuple(brokers.items())


def shown(address: str) -> str:
    """As much of an address as may stand in a message: without user and password."""
    return re.sub(r"[^/=]*@", "…@", address)[:60]


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise OptionError(f"brokers: {shown(text)}: {str(error).lower()}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise OptionError(f"brokers: found {shown(text)}, expected http:// or https://")
    if parts.username or parts.password:
        raise OptionError("brokers: no password belongs into an address; use user and passwordEnv")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "") + parts.path.rstrip("/")


def _unknown(name: str) -> OptionError:
    if name == "password":
        return OptionError(
            "password: Spark shows options in plans; use passwordEnv or passwordFile"
        )
    near = difflib.get_close_matches(name, _KINDS, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(_KINDS)}"
    return OptionError(f"there is no option {name[:60]}{hint}")


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _faulty(name: str, value: str) -> OptionError:
    return OptionError(f"{name}: found {value[:60]}, expected {_KINDS[name]}")


def _one_of(said: Mapping[str, str], name: str, default: str, *others: str) -> str:
    value = said.get(name, default).strip().lower()
    if value not in (default, *others):
        raise _faulty(name, value)
    return value


def _whole(said: Mapping[str, str], name: str, default: int, least: int) -> int:
    value = said.get(name)
    if value is None:
        return default
    if not re.fullmatch(r"\d{1,12}", value.strip()) or int(value) < least:
        raise _faulty(name, value)
    return int(value)


def _seconds(said: Mapping[str, Any], name: str, default: float) -> float:
    value = said.get(name)
    if value is None:
        return default
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        raise _faulty(name, value)
    return float(value)


def _since(said: Mapping[str, str]) -> int | dict[str, int] | None:
    text = said.get("since")
    if text is None:
        return None
    if re.fullmatch(r"-?\d{1,16}", text.strip()):
        return int(text)
    offsets: dict[str, int] = {}
    for part in _names(text):
        name, equals, offset = part.partition("=")
        if not equals or not re.fullmatch(r"\d{1,18}", offset):
            raise _faulty("since", text)
        offsets[name] = int(offset)
    return offsets
