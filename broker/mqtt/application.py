"""The door between the MQTT face and the broker process that takes Headwater's own topics.

Owns the types that cross it. Must not know how either side works. Invariant: a message handed up
carries everything its publisher said; a QoS 1 publisher hears nothing before `complete`.
"""

from typing import Any, Literal, Protocol

from msgspec import Struct

from broker.mqtt.codec.packets import Properties

Action = Literal["publish", "subscribe", "receive"]


class ClientInfo(Struct, frozen=True):
    """The identity of a connection. `user` is None unless a password or a certificate proved it."""

    client_id: str
    user: str | None
    address: str
    version: int


class Token(Struct):
    """Hold what `complete` needs to answer the publisher of one message; made by the face."""

    connection: Any
    packet_id: int
    size_bytes: int
    outcome: int = -1  # the reason code, once there is one
    qos: int = 1


class InboundMessage(Struct, frozen=True):
    """A message under the application's prefix, as a client or its will published it.

    `token` is None at QoS 0: nobody waits. `dup` says that the client may have sent it before.
    """

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    client: ClientInfo
    properties: Properties | None
    token: Token | None

    @property
    def response_topic(self) -> str | None:
        """Return the topic on which an MQTT 5 client wants the answer."""
        return self.properties.response_topic if self.properties is not None else None

    @property
    def correlation_data(self) -> bytes | None:
        """Return the data that an MQTT 5 client wants to find in the answer."""
        return self.properties.correlation_data if self.properties is not None else None


class RetainedMessage(Struct, frozen=True):
    """A retained message as it stands."""

    topic: str
    payload: bytes
    qos: int


class Application(Protocol):
    """The broker process, as the face sees it."""

    def on_publish(self, messages: list[InboundMessage]) -> None:
        """Take the messages of one socket read of one client, in order.

        Must not block. Each token has to be completed, now or later, in any order. An exception
        completes those that were not with `UNSPECIFIED_ERROR`.
        """


class Authorize(Protocol):
    """Answers if a client may publish to a topic, subscribe to a filter or receive a topic.

    Must not block. A filter may be granted of which single topics may not be received.
    """

    def __call__(self, client: ClientInfo, topic: str, action: Action) -> bool:
        """True: it may."""


class Credentials(Protocol):
    """Names and passwords; `broker.credentials.Users` is one."""

    def __bool__(self) -> bool:
        """Tell whether there are any."""

    def remembered(self, name: str, password: str) -> bool:
        """Tell whether this login was good before; quick."""

    def login(self, name: str, password: str) -> bool:
        """Tell whether this login is good; may take long and runs in a thread."""
