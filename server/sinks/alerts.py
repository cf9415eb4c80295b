"""Results back to MQTT, as alerts.

Owns the messages and their delivery. Must not know jobs. Invariant: a message carries the id of its
result, and a batch is done only once the server has acknowledged every message of it; so that what
is sent again after a crash is recognised by its id.
"""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from server.errors import JobsError, ServerError
from server.source.options import shown

PORTS: Final = {"mqtt": 1883, "mqtts": 8883}
SILENCE_S: Final = 60.0  # without an acknowledgement; then the batch is tried again as a whole
UNDER_WAY_MAX: Final = 100  # messages that are not acknowledged yet
TOPIC_BYTES_MAX: Final = 1000  # brokers take 1024 unless told otherwise; the rest is cut off
# Wildcards, control characters and what is no character: the standard lets servers refuse them.
_NO_TOPIC: Final = re.compile(
    "[+#\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane * 0x10000 + 0xFFFE + n) for plane in range(17) for n in (0, 1))
    + "]"
)
_PLACE: Final = re.compile(r"\{(\w+)\}")


class Alerts:
    """One server, and the form of its topics."""

    def __init__(
        self, url: str, topic: str, user: str | None = None, password_env: str | None = None
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise JobsError(f"{shown(url)}: {str(error).lower()}") from None
        if parts.username or parts.password:
            raise JobsError("no password belongs into an address; use user and password_env")
        if parts.scheme not in PORTS or not parts.hostname:
            raise JobsError(f"found {shown(url)}, expected mqtt://host:port or mqtts://host:port")
        if "+" in topic or "#" in topic:
            raise JobsError(f"topic {topic}: + and # stand in no topic that one publishes to")
        self._host, self._port = parts.hostname, port or PORTS[parts.scheme]
        self._encrypted = parts.scheme == "mqtts"
        self._topic = topic
        self._user, self._password_env = user, password_env

    def send(self, rows: Iterable[Mapping[str, Any]]) -> int:
        """Deliver rows; how many. Raises ServerError where not all of them were taken."""
        messages = [message_of(self._topic, row) for row in rows]
        if messages:
            asyncio.run(self._deliver(messages))
        return len(messages)

    async def _deliver(self, messages: Sequence[tuple[str, bytes]]) -> None:
        import aiomqtt

        password = os.environ.get(self._password_env or "") if self._user else None
        refused: Counter[str] = Counter()
        try:
            async with (
                asyncio.timeout(SILENCE_S) as limit,
                aiomqtt.Client(
                    self._host,
                    self._port,
                    username=self._user,
                    password=password,
                    protocol=aiomqtt.ProtocolVersion.V5,
                    tls_params=aiomqtt.TLSParameters() if self._encrypted else None,
                ) as client,
            ):
                _count_refused(client, refused)
                client.pending_calls_threshold = UNDER_WAY_MAX
                for begin in range(0, len(messages), UNDER_WAY_MAX):
                    chunk = messages[begin : begin + UNDER_WAY_MAX]
                    # They leave in this order: each is given to the client before it first waits.
                    await asyncio.gather(*(client.publish(*message, qos=1) for message in chunk))
                    limit.reschedule(asyncio.get_running_loop().time() + SILENCE_S)
        except (aiomqtt.MqttError, OSError, TimeoutError) as error:
            raise ServerError(
                f"alerts cannot be sent to {self._host}:{self._port}: {str(error) or 'no answer'}"
            ) from None
        if refused:
            why = ", ".join(f"{number} {reason}" for reason, number in sorted(refused.items()))
            raise ServerError(
                f"alerts were refused by {self._host}:{self._port}: of {len(messages)}, {why}"
            )


def _count_refused(client: Any, refused: Counter[str]) -> None:
    """Count by reason what the server acknowledges as not taken, which aiomqtt passes over."""
    paho = client._client  # noqa: SLF001  its interface is public
    on_publish = paho.on_publish

    def published(one: Any, data: Any, mid: int, code: Any, said: Any) -> None:
        if code.is_failure:
            refused[str(code).lower()] += 1
        on_publish(one, data, mid, code, said)

    paho.on_publish = published


def message_of(template: str, row: Mapping[str, Any]) -> tuple[str, bytes]:
    """Topic and payload of a row.

    The values may come from anybody: a topic that a server closes its connection for, as that of
    another alert, would end the stream.
    """

    def level(place: re.Match[str]) -> str:
        value = row.get(place[1])
        return _NO_TOPIC.sub("_", str(value)) if value not in (None, "") else "none"

    topic = _PLACE.sub(level, template).encode()[:TOPIC_BYTES_MAX].decode(errors="ignore")
    return topic, payload_of(row).encode()


def payload_of(row: Mapping[str, Any]) -> str:
    """The `payload` of a row where it has one, else the row as JSON."""
    payload = row.get("payload")
    return payload if isinstance(payload, str) else json.dumps(row, default=_plain)


def _plain(value: object) -> object:
    """Times as Headwater writes them."""
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return value.isoformat() if isinstance(value, date) else str(value)
