"""Faults as a person asks for them: `hall-roof@14:00+20m`, `hall@+90m+2m`, `…:500ms`.

Owns this notation and the reading of times. Must not know how a fault is done. Invariant: a fault
that is read lies within the recording, and concerns a broker or link that there is.

A time is a date and time of ISO 8601 (without an offset: UTC), a time of day (the first such at or
after the first event, UTC), or `+` and a duration: so long after the first event.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from simulation.durations import PATTERN, UNITS_MS, duration_ms

LASTS_MS_MAX = 366 * UNITS_MS["d"]
DAY_MS = UNITS_MS["d"]
_TEXT = re.compile(rf"(?P<when>.+)\+(?P<lasts>{PATTERN})(?::(?P<by>{PATTERN}))?")
_OFFSET = re.compile(rf"\+({PATTERN})")
_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class FaultError(ValueError):
    """A fault cannot be read, or does not fit the network or the recording."""


class NetworkFault(Struct, frozen=True):
    """One fault: a link that is cut or slow, a broker whose process ends; `text` as it was asked.

    `brokers` are the ends of the link, or the one broker. `by_ms` is what a slow link takes more.
    """

    kind: str
    brokers: tuple[str, ...]
    at_ms: int
    lasts_ms: int
    by_ms: int = 0
    text: str = ""

    @property
    def over_ms(self) -> int:
        """When it is over."""
        return self.at_ms + self.lasts_ms


class FaultSetting(Struct, frozen=True):
    """The network and the time of a recording, against which faults are read."""

    brokers: Sequence[str]
    links: Sequence[tuple[str, str]]
    first_ms: int
    last_ms: int


def read_fault(kind: str, text: str, setting: FaultSetting) -> NetworkFault:
    """A `cut`, `end` or `slow`. Raises FaultError with a sentence."""
    where, sign, times = text.rpartition("@")
    match = _TEXT.fullmatch(times)
    if not sign or match is None or (match["by"] is None) == (kind == "slow"):
        raise FaultError(f"found `{text}`, expected {_FORMS[kind]}")
    brokers = (_broker(where, setting),) if kind == "end" else _link(where, setting)
    at_ms = time_ms(match["when"], setting.first_ms)
    if not setting.first_ms <= at_ms <= setting.last_ms:
        raise FaultError(
            f"`{text}` begins at {told(at_ms)}, and the events are from {told(setting.first_ms)}"
            f" to {told(setting.last_ms)}"
        )
    lasts_ms = duration_ms(match["lasts"])
    if not 0 < lasts_ms <= LASTS_MS_MAX:
        raise FaultError(f"`{text}`: a fault lasts longer than nothing, and a year at most")
    by_ms = duration_ms(match["by"]) if match["by"] else 0
    return NetworkFault(kind, brokers, at_ms, lasts_ms, by_ms, text)


def check_apart(faults: Sequence[NetworkFault]) -> None:
    """Refuse to end a broker that has ended already. Raises FaultError."""
    over: dict[str, NetworkFault] = {}
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        if fault.kind == "end":
            before = over.get(fault.brokers[0])
            if before is not None and fault.at_ms <= before.over_ms:
                raise FaultError(f"`{fault.text}`: it has ended already, by `{before.text}`")
            over[fault.brokers[0]] = fault


_FORMS = {
    "cut": "as a-b@14:00+20m: two brokers that are linked, when, for how long",
    "end": "as b@14:00+2m: a broker, when its process ends, for how long",
    "slow": "as a-b@14:00+20m:500ms: a link, when, for how long, how much slower",
}


def told(time_ms: int) -> str:
    """A time as it can be written here."""
    spec = "milliseconds" if time_ms % 1000 else "seconds"
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec=spec).replace("+00:00", "Z")
    )


def time_ms(text: str, first_ms: int) -> int:
    """A time by the clock of the events, the first of which is at `first_ms`. Raises FaultError."""
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        return first_ms + duration_ms(offset[1])
    of_day = _OF_DAY.fullmatch(text)
    try:
        if of_day is None:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(moment.timestamp() * 1000)
        hour, minute, second = (int(part or 0) for part in of_day.groups())
        day = datetime.fromtimestamp(first_ms / 1000, UTC)
        moment = day.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except (ValueError, OverflowError, OSError):
        raise FaultError(
            f"found the time {text}, expected 14:00, 2014-01-11T14:00 or +30m from the first event"
        ) from None
    at_ms = round(moment.timestamp() * 1000)
    return at_ms if at_ms >= first_ms else at_ms + DAY_MS


def _broker(name: str, setting: FaultSetting) -> str:
    if name not in setting.brokers:
        raise FaultError(f"no broker is called {name}; there are {_listed(setting.brokers)}")
    return name


def _link(name: str, setting: FaultSetting) -> tuple[str, str]:
    """The link between two brokers; their own names may hold the sign between them."""
    ends = [(name[:index], name[index + 1 :]) for index, sign in enumerate(name) if sign == "-"]
    matches = [link for link in setting.links if link in ends or link[::-1] in ends]
    if len(matches) != 1:
        links = _listed([f"{a}-{b}" for a, b in setting.links])
        raise FaultError(f"no link is called {name}; there are {links}")
    return matches[0]


def _listed(names: Sequence[str]) -> str:
    """The first names of many."""
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
