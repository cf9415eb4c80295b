"""The log: one line on standard error for each thing that happened.

Owns the form of a line. Must not know what is worth one. Invariant: whatever a line tells, it is
one line; and what is not the broker's own (a library's complaint) comes a bounded number of times
from each place in the code.

As text: `2026-01-02T03:04:05.678Z WARNING site-1 late source=t7 type=Temp`; as JSON: an object with
`time`, `level`, `broker`, `event` and the particulars. Those four say of every line whose it is and
when: a particular of the same name, such as the broker that is waited for, is `about_broker` there.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from broker.config import LogSection
from broker.network.effects import Note

EVENTS = "headwater.event"  # the logger of the broker's own lines
SAME_MAX = 5  # lines from one place in a library's code; more says nothing new
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:/@+,`[]")

_events = logging.getLogger(EVENTS)


def set_up(section: LogSection, broker: str) -> None:
    """Write all logging of this process in the configured form, from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(broker) if section.format == "json" else TextLines(broker))
    handler.addFilter(FewOfTheSame())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(section.level.upper())


def write(note: Note) -> None:
    """A line of the core."""
    tell(note.level, note.event, **note.fields)


def tell(level: str, event: str, /, **fields: object) -> None:
    """A line of the broker's own."""
    number = logging.getLevelNamesMapping()[level.upper()]
    _events.log(number, event, extra={"fields": fields})


def announce(event: str, /, **fields: object) -> None:
    """A line that is written whatever the level is: what a person or program waits for."""
    record = _events.makeRecord(
        EVENTS, logging.INFO, "", 0, event, (), None, extra={"fields": fields}
    )
    logging.getLogger().handle(record)


class FewOfTheSame(logging.Filter):
    """Lets through what is the broker's own, and of the rest a few from each place."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, int], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the line is to be written."""
        if record.name == EVENTS:
            return True
        place = (record.pathname, record.lineno)
        count = self._seen[place] = self._seen.get(place, 0) + 1
        return count <= SAME_MAX


class _Lines(logging.Formatter):
    """Give a record the parts that both forms share."""

    def __init__(self, broker: str) -> None:
        super().__init__()
        self._broker = broker

    def parts(self, record: logging.LogRecord) -> tuple[str, str, Mapping[str, Any]]:
        """Time, event name and particulars."""
        moment = datetime.fromtimestamp(record.created, UTC)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if record.name == EVENTS:
            return time, record.getMessage(), getattr(record, "fields", {})
        fields = {"message": record.getMessage()}
        if record.exc_info:  # False, too, where a library says that there is none
            fields["traceback"] = self.formatException(record.exc_info)
        names = record.name.split(".")
        named = names[1] if names[0] in {"broker", "headwater"} and len(names) > 1 else names[0]
        return time, named, fields


class TextLines(_Lines):
    """For people: time, level, broker, event, key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time, event, fields = self.parts(record)
        pairs = "".join(f" {name}={_shown(value)}" for name, value in fields.items())
        return f"{time} {record.levelname} {self._broker} {event}{pairs}"


class JsonLines(_Lines):
    """For programs."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time, event, fields = self.parts(record)
        head = {
            "time": time,
            "level": record.levelname.lower(),
            "broker": self._broker,
            "event": event,
        }
        particulars = {
            f"about_{name}" if name in head else name: value for name, value in fields.items()
        }
        return json.dumps({**head, **particulars}, default=str)


def _shown(value: object) -> str:
    """A value as it stands, in quotes where that would not be one word."""
    text = str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)
