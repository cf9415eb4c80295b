"""Sparkplug B beside the other payloads of mappings.

Owns which messages concern a mapping, and when an edge node is asked for its births. Must not know
what becomes of events. Invariant: of messages that concern no mapping nothing is remembered, and an
edge node is asked at most once in `ASK_AGAIN_S`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from broker.bridge.mapped_payload import UnmappableError
from broker.bridge.sparkplug import wire
from broker.bridge.sparkplug.messages import (
    Heard,
    Hearing,
    SparkplugAddress,
    UnbornError,
    address_of,
)
from broker.config.mappings import SPARKPLUG
from broker.mqtt.codec.topics import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.bridge.sparkplug.messages import MetricReading
    from broker.mqtt.application import InboundMessage

TOPICS_CACHED = 4_096  # beyond: the memory begins anew
CACHED_CHARS_MAX = 512  # of a topic that is remembered; MQTT allows 65,535
ASK_AGAIN_S = 60.0  # births are large, and an edge node that does not answer is not to be flooded

logger = logging.getLogger(__name__)


class Said(NamedTuple):
    """A message as it was heard, or why it could not be."""

    address: SparkplugAddress
    heard: Heard
    error: Exception | None = None

    def readings(self) -> list[MetricReading]:
        """Give its readings of metrics. Raises what hearing it raised."""
        if self.error is not None:
            raise self.error
        return self.heard.readings

    def dead_topics(self) -> list[str]:
        """The topics of the deaths of all who are gone."""
        return [self.address.of_death(device) for device in self.heard.gone]


class Sparkplug:
    """The edge nodes of a server, heard for all mappings together."""

    def __init__(
        self,
        filters: Iterable[str],
        payload_bytes_max: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`filters` are those of the mappings. Raises NoProtobufError."""
        wire.check_installed()
        self.hearing = Hearing()
        self._filters = list(filters)
        self._payload_bytes_max = payload_bytes_max
        self._clock_s = clock_s
        self._addresses: dict[str, SparkplugAddress | None] = {}
        self._failed = False  # a fault of ours was told

    def hear(self, message: InboundMessage) -> Said | None:
        """Hear a message; None where it is nothing that a mapping has to hear."""
        address = self._address(message.topic)
        if address is None:
            return None
        nothing = Heard([], [])
        if len(message.payload) > self._payload_bytes_max:
            self.hearing.births.distrust(address.group, address.edge)
            return Said(address, nothing)
        try:
            heard = self.hearing.hear(address, message.payload, again=message.dup)
        except UnmappableError as error:
            return Said(address, nothing, error)
        except Exception as error:
            if not self._failed:
                self._failed = True
                logger.exception("a fault on a message of Sparkplug B")
            return Said(address, nothing, error)
        return Said(address, heard)

    def missed(self) -> None:
        """Messages may have been missed."""
        self.hearing.births.distrust_all()

    def command(self, said: Said, now_ms: int) -> tuple[str, bytes] | None:
        """The message by which births are asked for, where that helps and was not done just now."""
        if not isinstance(said.error, UnbornError):
            return None
        group, name = said.address.group, said.address.edge
        edge = self.hearing.births.known(group, name)
        now_s = self._clock_s()
        if edge is None or (edge.asked_s is not None and now_s - edge.asked_s < ASK_AGAIN_S):
            return None
        edge.asked_s = now_s
        return f"{SPARKPLUG}/{group}/NCMD/{name}", wire.rebirth(now_ms)

    def _address(self, topic: str) -> SparkplugAddress | None:
        if not topic.startswith(f"{SPARKPLUG}/"):
            return None
        if topic in self._addresses:
            return self._addresses[topic]
        if len(self._addresses) >= TOPICS_CACHED:
            self._addresses.clear()
        concerned = any(matches(pattern, topic) for pattern in self._filters)
        address = address_of(topic) if concerned else None
        if len(topic) <= CACHED_CHARS_MAX:
            self._addresses[topic] = address
        return address
