"""Events of a program on their way to a broker: MQTT 5 at QoS 1, until all are acknowledged.

Owns the connection and what is not acknowledged yet. Must not know where events come from.
Invariant: an event that was handed over is acknowledged, counted as refused, or named in an error.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from broker.core import topics
from headwater.cli.mqtt_client import DEFAULT_PREFIX
from headwater.cli.reach import Broker, tls_reason
from headwater.remote import ClientError

BATCH_BYTES = 131_072  # of one payload: a broker takes eight times as much
INFLIGHT_MAX = 100  # on their way to the broker at a time; it takes 500 of a client
WAITING_MAX = 10_000  # messages that are not sent; then who publishes has to wait
RECONNECT_S = (1, 30)  # a lost broker is dialled anew after the first, at last after the second


class Publisher:
    """A connection that comes back by itself; what was not acknowledged is sent again then.

    `refused` counts messages of which the broker took nothing; `headwater/rejected` tells why.
    """

    def __init__(self, broker: Broker, client_id: str, patience_s: float | None = None) -> None:
        """`patience_s`: how long to wait for room among the messages that wait; None: for ever."""
        self.refused = 0
        self._patience_s = patience_s
        self._broker = broker
        self._prefix = broker.path or DEFAULT_PREFIX
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, bytes, bool]] = deque()
        self._open = 0  # messages that were given to the connection and are not acknowledged
        self._connected = False
        self._behind = False  # whether these are sent again, so that others have to wait
        self._ended = False
        # One thread alone hands messages to the connection, which keeps their order.
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._wrong = ""  # why the broker does not let this client in
        self._client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTv5)
        self._client.max_inflight_messages_set(INFLIGHT_MAX)
        self._client.reconnect_delay_set(*RECONNECT_S)
        if broker.user is not None:
            self._client.username_pw_set(broker.user, broker.password)
        if broker.encrypted:
            self._client.tls_set_context(ssl.create_default_context())
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_publish = self._on_publish

    def open(self) -> None:
        """Connect. Raises ClientError where the broker cannot be reached or refuses."""
        try:
            self._client.connect(self._broker.host, self._broker.port)
        except (OSError, ValueError) as error:
            reason = tls_reason(error) or getattr(error, "strerror", None) or str(error)
            raise self._unreachable(reason.lower()) from None
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._connected or self._wrong, self._broker.timeout_s)
            if self._connected:
                self._sender.start()
                return
            wrong = self._wrong
        self.close()
        if wrong:
            raise ClientError(f"{self._broker.url} refused the connection: {wrong}")
        raise self._unreachable("no answer in time")

    def advertise(self, source: str, stated: Mapping[str, Any] | None) -> None:
        """State what a source sends, or with None withdraw it."""
        data = b"" if stated is None else _encoded(dict(stated))
        self._publish(f"{self._prefix}/{topics.source(source)}", data, retain=True)

    def send(self, event_type: str, source: str, events: list[dict[str, Any]]) -> None:
        """Publish events of one type and source; waits where too many wait already."""
        if not event_type or not source:
            raise ClientError("an event that is published needs a type and a source")
        topic = f"{self._prefix}/{topics.events(event_type, source)}"
        for data in _batches([_encoded(one) for one in events]):
            self._publish(topic, data, retain=False)

    def wait(self, timeout_s: float | None = None) -> None:
        """Until all is acknowledged. Raises ClientError where it is not in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._waiting and not self._open, timeout_s):
                left = len(self._waiting) + self._open
                raise ClientError(f"{left} messages were not acknowledged in time")

    def close(self) -> None:
        """End the connection; what is not acknowledged is given up."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._sender.is_alive():
            self._sender.join()
        self._client.disconnect()
        self._client.loop_stop()

    def _publish(self, topic: str, data: bytes, *, retain: bool) -> None:
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._waiting) < WAITING_MAX, self._patience_s
            ):
                raise ClientError(f"{WAITING_MAX} messages wait for {self._broker.url}")
            self._waiting.append((topic, data, retain))
            self._changed.notify_all()

    def _may_send(self) -> bool:
        return self._connected and bool(self._waiting) and not (self._behind and self._open)

    def _send_all(self) -> None:
        """What is sent again after a fault comes before what was not sent yet: else the broker
        would find the former late.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._may_send())
                if self._ended:
                    return
                self._behind = False
                topic, data, retain = self._waiting.popleft()
                self._open += 1
                self._changed.notify_all()
            try:
                self._client.publish(topic, data, qos=1, retain=retain)
            except ValueError:  # longer than a packet may be
                self.refused += 1
                self._done()

    def _unreachable(self, reason: str) -> ClientError:
        return ClientError(str(self._broker.unreachable(reason)), reached=False)

    def _done(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    # --- what comes from the connection's thread ----------------------------------------------

    def _on_connect(
        self, _client: Client, _data: Any, _flags: Any, code: ReasonCode, _said: Properties | None
    ) -> None:
        with self._changed:
            self._connected = not code.is_failure
            self._wrong = str(code).lower() if code.is_failure else ""
            self._changed.notify_all()

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: Any, _code: ReasonCode, _said: Properties | None
    ) -> None:
        with self._changed:
            self._connected, self._behind = False, True

    def _on_publish(
        self, _client: Client, _data: Any, _mid: int, code: ReasonCode, _said: Properties
    ) -> None:
        if code.is_failure:
            self.refused += 1
        self._done()


def _batches(events: list[bytes]) -> Iterator[bytes]:
    """Payloads of several events each; one that is too large goes alone, as the broker decides."""
    begin, size = 0, 0
    for at, event in enumerate(events):
        if at > begin and size + len(event) > BATCH_BYTES:
            yield _joined(events[begin:at])
            begin, size = at, 0
        size += len(event) + 1
    yield _joined(events[begin:])


def _joined(events: list[bytes]) -> bytes:
    return events[0] if len(events) == 1 else b"[" + b",".join(events) + b"]"


def _encoded(value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, default=_plain, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise ClientError(f"this is no event as JSON has it: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"found a value of type {type(value).__name__}")
