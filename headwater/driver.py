"""What brings events in from a device that does not speak MQTT.

Owns the loop between a device and a broker. Must not know any device. Invariant: what was read is
published in its order, and acknowledged before the driver ends by itself.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.client import broker_for, publish, publisher_for
from headwater.events import Event

if TYPE_CHECKING:
    from headwater.publisher import Publisher

DEFAULT_ADDRESS = "mqtt://127.0.0.1:1883"


class Driver:
    """Brings a device's readings to a broker (paper 003, 3.4: place and play). Extend it.

    `name` is the source of the events and `event_type` their type, where `read` does not say
    otherwise. `location`, `position`, `uncertainty` (ms) and `rate` (events a second) go into the
    source's advertisement, so that events need not repeat them.

    >>> class Counter(Driver):
    ...     def start(self):
    ...         self.left = [1, 2, 3]
    ...
    ...     def read(self):
    ...         return {"val": self.left.pop()} if self.left else None
    >>> Counter("counter-1", "Count", location="house/hall").advertisement["types"]
    ['Count']
    """

    def __init__(self, name: str, event_type: str, **stated: Any) -> None:
        if not name or not event_type:
            raise ValueError("a driver needs a name and an event type")
        unknown = set(stated) - {"location", "position", "uncertainty", "rate"}
        if unknown:
            raise TypeError(f"found {min(unknown)}, expected location, position, uncertainty, rate")
        self.name = name
        self.event_type = event_type
        self.advertisement = {"source": name, "types": [event_type], **stated}
        self.refused = 0

    def start(self) -> None:
        """Open the device; before the first `read`."""

    def read(self) -> Event | Mapping[str, Any] | Sequence[Event | Mapping[str, Any]] | None:
        """The next reading, or several, or none in []; None: there will be no more.

        Called again and again; wait here for the device. A reading that has no time gets that at
        which it was read.
        """
        raise NotImplementedError(f"{type(self).__name__} says nowhere how it is read")

    def stop(self) -> None:
        """Close the device; after the last `read`, also where that failed."""

    def run(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        user: str | None = None,
        password: str | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        """Read and publish until the device has no more, then withdraw the source.

        A broker that goes away is waited for; what it has not acknowledged is sent again. `refused`
        counts messages of which it took nothing. Raises ClientError where there is no broker to
        begin with, or it refuses, and whatever the device raises.
        """
        broker = broker_for(address, user, password, None, timeout_s)
        publisher = publisher_for(broker, f"headwater-driver-{secrets.token_hex(8)}")
        try:
            publisher.advertise(self.name, self.advertisement)
            self._bring(publisher)
            publisher.wait()
            publisher.advertise(self.name, None)
            publisher.wait()
        finally:
            self.refused += publisher.refused
            publisher.close()

    def _bring(self, publisher: Publisher) -> None:
        self.start()
        try:
            while (read := self.read()) is not None:
                several = [read] if isinstance(read, Mapping | Event) else read
                defaults = {"type": self.event_type, "source": self.name}
                publish(publisher, map(_timed, several), defaults)
        finally:
            self.stop()


def _timed(reading: Event | Mapping[str, Any]) -> Mapping[str, Any]:
    """The reading with a time: that of its arrival would change where it is sent again."""
    document = reading.to_dict() if isinstance(reading, Event) else reading
    if not isinstance(document, Mapping):
        raise TypeError(f"found a reading of type {type(document).__name__}, expected a mapping")
    if any(document.get(key) is not None for key in ("timestamp", "start", "end")):
        return document
    return {**document, "timestamp": time.time_ns() // 1_000_000}
