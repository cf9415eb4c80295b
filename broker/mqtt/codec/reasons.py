"""MQTT 5 reason codes and the one error that a peer can cause.

Owns the codes' numbers and `ProtocolError`. Must not know packets or connections.
Invariant: whatever bytes arrive, the codec raises nothing but `ProtocolError`.
"""

from enum import IntEnum


class Reason(IntEnum):
    """Reason codes of MQTT 5 (section 2.4); 0x80 and above are failures."""

    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    QOS_NOT_SUPPORTED = 0x9B
    CONNECTION_RATE_EXCEEDED = 0x9F


# What a client may hear again and succeed: its message was not taken, and repeating it makes sense.
# A 3.1.1 PUBACK cannot say so, hence such a client is closed rather than told a lie.
TRANSIENT = frozenset(
    {
        Reason.UNSPECIFIED_ERROR,
        Reason.IMPLEMENTATION_ERROR,
        Reason.SERVER_UNAVAILABLE,
        Reason.SERVER_BUSY,
        Reason.QUOTA_EXCEEDED,
    }
)

# Return codes of a 3.1.1 CONNACK (section 3.2.2.3); a reason not named here closes without one.
CONNECT_RETURN_CODES = {
    Reason.SUCCESS: 0,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: 1,
    Reason.CLIENT_IDENTIFIER_NOT_VALID: 2,
    Reason.SERVER_UNAVAILABLE: 3,
    Reason.SERVER_BUSY: 3,
    Reason.QUOTA_EXCEEDED: 3,
    Reason.CONNECTION_RATE_EXCEEDED: 3,
    Reason.BAD_USER_NAME_OR_PASSWORD: 4,
    Reason.NOT_AUTHORIZED: 5,
}


# What a client may say in a DISCONNECT (section 3.14.2.1).
CLIENT_DISCONNECT_CODES = frozenset(
    {0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99}
)

# What may be said in a CONNACK alone (section 3.2.2.2): whoever is connected and sends a second,
# faulty CONNECT hears of the greater fault.
CONNACK_ONLY = frozenset(
    {
        Reason.UNSUPPORTED_PROTOCOL_VERSION,
        Reason.CLIENT_IDENTIFIER_NOT_VALID,
        Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.BAD_AUTHENTICATION_METHOD,
        Reason.SERVER_UNAVAILABLE,
    }
)


class ProtocolError(Exception):
    """A peer broke the standard or a limit; `reason` is what MQTT 5 calls it."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


def malformed(text: str) -> ProtocolError:
    """A packet that cannot be parsed."""
    return ProtocolError(Reason.MALFORMED_PACKET, text)


def violation(text: str) -> ProtocolError:
    """A packet that can be parsed and must not be sent, or not now."""
    return ProtocolError(Reason.PROTOCOL_ERROR, text)
