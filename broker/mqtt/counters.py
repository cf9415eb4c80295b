"""What the MQTT face counted: the numbers behind its part of the ledger.

Owns the counters and their names. Must not know how they are shown. Invariant: every message and
every connection that ends otherwise than it hoped is in exactly one reason; at any moment
`routed` = `sent` + everything in `dropped` + what sessions hold that was not sent yet.
"""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Counters:
    """Counts since start, but for those that are told to be of this moment."""

    bytes_in: int = 0
    bytes_out: int = 0
    slowed: int = 0  # times that a publisher was not read on until a subscriber got on
    messages_in: int = 0  # PUBLISH packets of clients and wills
    handed_up: int = 0  # of these, taken by the application
    published: int = 0  # messages of the application
    routed: int = 0  # copies of messages meant for a client
    sent: int = 0  # of these, first transmissions; at QoS 1 the client may still have to confirm
    resent: int = 0
    confirmed: int = 0  # by PUBACKs and PUBRECs of clients
    connections: int = 0  # of this moment
    connections_total: int = 0
    sessions: int = 0  # of this moment, with or without a connection
    subscriptions: int = 0  # of this moment
    retained_messages: int = 0  # of this moment
    retained_bytes: int = 0  # of this moment
    queued_bytes: int = 0  # of this moment
    partial_bytes: int = 0  # of this moment: of packets that are not whole yet
    pending_bytes: int = 0  # of this moment: handed up and not completed
    unkept_bytes: int = 0  # of this moment: changes that gather for the disk, about
    dropped: dict[str, int] = field(default_factory=dict)  # copies, by reason
    refused: dict[str, int] = field(default_factory=dict)  # publishes and subscriptions, by reason
    closed: dict[str, int] = field(default_factory=dict)  # connections, by reason
    ended: dict[str, int] = field(default_factory=dict)  # sessions, by reason

    def drop(self, reason: str, count: int = 1) -> None:
        """Count copies of messages that a client will not get."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    def refuse(self, reason: str) -> None:
        """Count a publish or subscription that was not accepted."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def close(self, reason: str) -> None:
        """Count a connection that ended."""
        self.closed[reason] = self.closed.get(reason, 0) + 1

    def end(self, reason: str) -> None:
        """Count a session that ended."""
        self.ended[reason] = self.ended.get(reason, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """A copy as plain numbers and dictionaries of numbers."""
        return asdict(self)
