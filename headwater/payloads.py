"""What a program publishes as bytes: JSON, several events together.

Owns the form and the size of a payload. Must not know how it is sent. Invariant: the events of the
payloads, put together, are those that were given, in their order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from headwater.remote import ClientError

BATCH_BYTES = 131_072  # of one payload: a broker takes eight times as much


def batches(events: list[bytes]) -> Iterator[bytes]:
    """Payloads of several events each; one that is too large goes alone, as the broker decides."""
    begin, size = 0, 0
    for index, event in enumerate(events):
        if index > begin and size + len(event) > BATCH_BYTES:
            yield _joined(events[begin:index])
            begin, size = index, 0
        size += len(event) + 1
    yield _joined(events[begin:])


def _joined(events: list[bytes]) -> bytes:
    return events[0] if len(events) == 1 else b"[" + b",".join(events) + b"]"


def encoded(value: Any) -> bytes:
    """As JSON, with bytes in base 64. Raises ClientError where JSON has no words for it."""
    try:
        return json.dumps(value, allow_nan=False, default=_plain, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise ClientError(f"this is no event as JSON has it: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"found a value of type {type(value).__name__}")
