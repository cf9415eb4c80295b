"""What goes back to the outside of what did not go in: rejected payloads and late events.

Owns the form of these messages. Must not know why something was refused. Invariant: a message about
a payload is bounded, however large the payload is, and an event that was late is told whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from broker.core import topics
from broker.core.catalogue import TOO_MUCH_WORK, Installed
from broker.core.effects import Publication
from broker.core.intake import to_mapping
from broker.engine.event.event import Event
from broker.engine.ingest.faults import Rejection

ECHO_BYTES_MAX = 1_024  # enough to recognise one's payload by
TOLD_MAX = 10  # of a batch; the others are only counted

_encode = msgspec.json.Encoder().encode


def rejected(topic: str, data: bytes, rejections: Sequence[Rejection], now: int) -> Publication:
    """Report a payload of which something was refused; `topic` is that below the prefix.

    `reason` and `message` are those of the first; `count` tells how many events were refused.
    """
    first = rejections[0]
    told: dict[str, Any] = {
        "topic": topic,
        "reason": first.reason,
        "message": first.message,
        "count": len(rejections),
    }
    if first.index is not None:
        told["errors"] = [
            {"index": one.index, "reason": one.reason, "message": one.message}
            for one in rejections[:TOLD_MAX]
        ]
    told |= _echo(data)
    told["rejected_at"] = now
    return Publication(topics.REJECTED, _encode(told))


def crowded_out(topic: str, events: Sequence[Event], reason: str, now: int) -> Publication:
    """Report events that were good and for which there was no place."""
    told = {
        "topic": topic,
        "reason": reason,
        "message": f"as many sources as allowed are known, and {events[0].source} is new",
        "count": len(events),
        "rejected_at": now,
    }
    return Publication(topics.REJECTED, _encode(told))


def suspended(one: Installed, now: int) -> Publication:
    """A subscription of which a step would have taken too much work."""
    report = {
        "subscription": one.name,
        "subscriber": one.subscriber,
        "reason": TOO_MUCH_WORK,
        "message": f"suspended ({one.suspended}), what it held is gone: resume it, or change it",
        "suspended_at": now,
    }
    return Publication(topics.suspended(one.subscriber, one.name), _encode(report))


def late(event: Event) -> Publication:
    """An event that came too late, as it would be read again."""
    return Publication(topics.late(event.event_type), _encode(to_mapping(event)))


def _echo(data: bytes) -> dict[str, Any]:
    """The payload's beginning: as text where it is text, else in base64."""
    head = data[:ECHO_BYTES_MAX]
    size = {"payload_bytes": len(data)}
    try:
        return {"payload": head.decode(), **size}
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 3 and len(data) > len(head):
            return {"payload": head[: error.start].decode(), **size}  # cut within a character
        return {"payload_base64": head, **size}
