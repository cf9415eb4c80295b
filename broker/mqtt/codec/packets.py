"""The packets of MQTT 3.1.1 and 5 as typed values, the same classes for both versions.

Owns names and fields. Must not know bytes, topics' meaning or sessions.
Invariant: a packet says all that its bytes say; `properties` is None where a packet carries none.
"""

from typing import TypeAlias

from msgspec import Struct

V311 = 4
V5 = 5


class Properties(Struct, frozen=True, gc=False, omit_defaults=True):
    """MQTT 5 properties (section 2.2.2); None or empty where absent. Times are in seconds."""

    payload_format_indicator: int | None = None
    message_expiry_interval: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    subscription_identifier: tuple[int, ...] = ()
    session_expiry_interval: int | None = None
    assigned_client_identifier: str | None = None
    server_keep_alive: int | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    request_problem_information: int | None = None
    will_delay_interval: int | None = None
    request_response_information: int | None = None
    response_information: str | None = None
    server_reference: str | None = None
    reason_string: str | None = None
    receive_maximum: int | None = None
    topic_alias_maximum: int | None = None
    topic_alias: int | None = None
    maximum_qos: int | None = None
    retain_available: int | None = None
    user_property: tuple[tuple[str, str], ...] = ()
    maximum_packet_size: int | None = None
    wildcard_subscription_available: int | None = None
    subscription_identifier_available: int | None = None
    shared_subscription_available: int | None = None


class Will(Struct, frozen=True, gc=False):
    """The message to be published for a client that is lost."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties | None = None


class Connect(Struct, frozen=True, gc=False):
    """CONNECT; `keep_alive_s` 0 means none; `clean_start` is 3.1.1's clean session."""

    version: int
    client_id: str
    clean_start: bool = True
    keep_alive_s: int = 0
    will: Will | None = None
    username: str | None = None
    password: bytes | None = None
    properties: Properties | None = None


class Connack(Struct, frozen=True, gc=False):
    """CONNACK; `code` is 3.1.1's return code or MQTT 5's reason code."""

    session_present: bool
    code: int
    properties: Properties | None = None


class Publish(Struct, frozen=True, gc=False):
    """PUBLISH; `packet_id` is 0 at QoS 0; `topic` is empty only with an MQTT 5 topic alias."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties | None = None


class Puback(Struct, frozen=True, gc=False):
    """PUBACK; 3.1.1 knows only `code` 0."""

    packet_id: int
    code: int = 0
    properties: Properties | None = None


class Pubrec(Struct, frozen=True, gc=False):
    """PUBREC (QoS 2, first answer)."""

    packet_id: int
    code: int = 0
    properties: Properties | None = None


class Pubrel(Struct, frozen=True, gc=False):
    """PUBREL (QoS 2, release)."""

    packet_id: int
    code: int = 0
    properties: Properties | None = None


class Pubcomp(Struct, frozen=True, gc=False):
    """PUBCOMP (QoS 2, completion)."""

    packet_id: int
    code: int = 0
    properties: Properties | None = None


class Filter(Struct, frozen=True, gc=False):
    """One topic filter of a SUBSCRIBE with its options; 3.1.1 knows `qos` alone."""

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(Struct, frozen=True, gc=False):
    """SUBSCRIBE with at least one filter."""

    packet_id: int
    filters: tuple[Filter, ...]
    properties: Properties | None = None


class Suback(Struct, frozen=True, gc=False):
    """SUBACK, a code per filter."""

    packet_id: int
    codes: tuple[int, ...]
    properties: Properties | None = None


class Unsubscribe(Struct, frozen=True, gc=False):
    """UNSUBSCRIBE with at least one filter."""

    packet_id: int
    filters: tuple[str, ...]
    properties: Properties | None = None


class Unsuback(Struct, frozen=True, gc=False):
    """UNSUBACK; `codes` is empty in 3.1.1."""

    packet_id: int
    codes: tuple[int, ...] = ()
    properties: Properties | None = None


class Pingreq(Struct, frozen=True, gc=False):
    """PINGREQ."""


class Pingresp(Struct, frozen=True, gc=False):
    """PINGRESP."""


class Disconnect(Struct, frozen=True, gc=False):
    """DISCONNECT; 3.1.1 knows only `code` 0."""

    code: int = 0
    properties: Properties | None = None


class Auth(Struct, frozen=True, gc=False):
    """AUTH (MQTT 5 alone)."""

    code: int = 0
    properties: Properties | None = None


Packet: TypeAlias = (
    Connect
    | Connack
    | Publish
    | Puback
    | Pubrec
    | Pubrel
    | Pubcomp
    | Subscribe
    | Suback
    | Unsubscribe
    | Unsuback
    | Pingreq
    | Pingresp
    | Disconnect
    | Auth
)
